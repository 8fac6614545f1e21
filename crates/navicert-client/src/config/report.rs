//! Everything that is known after resolving, whether or not a client can be built.

use super::Config;
use super::error::{ConfigError, ConfigErrorStage, ConfigErrors};
use super::warning::ConfigWarning;
#[cfg(feature = "exec")]
use crate::exec::Plugin;
use crate::kubeconfig::Effective;

/// What is known about the selected context.
#[derive(Debug, Default)]
pub struct ConfigReport {
    /// The selection, if the requested entries exist.
    pub(crate) effective: Option<Effective>,
    /// The configuration, if at most the policy prevents using it.
    pub(crate) config: Option<Config>,
    pub(crate) errors: Vec<ConfigError>,
    pub(crate) warnings: Vec<ConfigWarning>,
    pub(crate) in_cluster: bool,
    #[cfg(feature = "exec")]
    pub(crate) plugin: Option<Plugin>,
}

impl ConfigReport {
    /// The configuration.
    ///
    /// # Errors
    /// [`ConfigErrors`]: every problem of the selected context.
    pub fn into_result(self) -> Result<Config, ConfigErrors> {
        match (ConfigErrors::new(self.errors), self.config) {
            (None, Some(config)) => Ok(config),
            (Some(errors), _) => Err(errors),
            (None, None) => Err(ConfigErrors::unknown()),
        }
    }

    /// The configuration, if nothing or only the policy prevents using it. A client of it denies the plugin with every
    /// request.
    pub fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// Whether a client can be built.
    pub fn is_usable(&self) -> bool {
        self.errors.is_empty()
    }

    /// Whether kubectl's validation accepts the context.
    pub fn is_valid(&self) -> bool {
        !self.errors.iter().any(|error| error.stage() <= ConfigErrorStage::Validate)
    }

    /// Whether the pod's service account is used rather than a kubeconfig.
    pub fn is_in_cluster(&self) -> bool {
        self.in_cluster
    }

    /// Every problem, most important first.
    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }

    /// Valid but probably unintended settings.
    pub fn warnings(&self) -> &[ConfigWarning] {
        &self.warnings
    }

    /// The server URL, if the requested entries exist.
    pub fn server(&self) -> Option<String> {
        self.effective.as_ref().map(Effective::server)
    }

    /// The exec plugin that a client would run, even if the server's address cannot be used.
    #[cfg(feature = "exec")]
    pub fn exec_plugin(&self) -> Option<&Plugin> {
        self.plugin.as_ref()
    }

    /// The kinds of credential a client would send, sorted.
    pub fn credential_kinds(&self) -> Vec<&'static str> {
        self.effective.as_ref().map(Effective::credential_kinds).unwrap_or_default()
    }
}
