//! From flags, files and environment to a configuration that a client can be built from.
//!
//! ```text
//! ConfigOptions ──resolve──▶ Config ──▶ Client
//!  (files, overrides,  │      (checked: server, trust, proxy, credential)
//!   environment)       └────▶ ConfigErrors (every problem: class, file, line, help)
//! ```
//!
//! [`ConfigOptions::resolve`] reads and checks everything that a client needs, so that creating the client does not fail
//! for a reason that the files or the environment could have shown.

mod credential;
mod error;
mod location;
mod options;
mod problem;
mod report;
#[cfg(test)]
mod tests;
mod transport;
mod undecoded;
mod warning;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_plugin::Environment;
use navicert_types::Clock;
use navicert_types::kubeconfig::{AuthInfo, Cluster};

use crate::context::ClientContext;
use crate::credential::SharedFiles;
#[cfg(feature = "exec")]
use crate::exec::{Plugin, PluginPolicy};
use crate::kubeconfig::Effective;
use crate::transport::{TransportSettings, Trust};

pub(crate) use credential::CredentialPlan;
#[cfg(all(test, feature = "exec", feature = "oidc"))]
pub(crate) use credential::CredentialReader;
pub use error::{ConfigError, ConfigErrorClass, ConfigErrorStage, ConfigErrors, ConfigLocation};
pub use options::ConfigOptions;
#[cfg(any(feature = "doctor", feature = "oidc"))]
pub(crate) use problem::ClientProblem;
#[cfg(feature = "doctor")]
pub(crate) use problem::Problem;
pub use report::ConfigReport;
pub use warning::ConfigWarning;
#[cfg(feature = "doctor")]
pub(crate) use warning::WarningKind;

/// A configuration that a client can be built from: server, trust, proxy, credential and namespace.
#[derive(Clone)]
pub struct Config {
    pub(crate) effective: Effective,
    pub(crate) transport: TransportSettings,
    pub(crate) credential: CredentialPlan,
    pub(crate) environment: Environment,
    pub(crate) files: SharedFiles,
    pub(crate) clock: Arc<dyn Clock>,
    #[cfg(feature = "exec")]
    pub(crate) policy: PluginPolicy,
    warnings: Vec<ConfigWarning>,
    in_cluster: bool,
}

impl Config {
    /// The configuration of this process: the files of `KUBECONFIG`, else `~/.kube/config`, else the pod's service
    /// account.
    ///
    /// # Errors
    /// [`ConfigErrors`]: every problem that prevents building a client.
    pub fn infer() -> Result<Config, ConfigErrors> {
        Config::options().resolve()
    }

    /// The current context of one kubeconfig file.
    ///
    /// # Errors
    /// [`ConfigErrors`]: every problem that prevents building a client.
    pub fn from_kubeconfig(path: impl AsRef<Path>) -> Result<Config, ConfigErrors> {
        Config::options().kubeconfig(path).resolve()
    }

    /// The pod's service account.
    ///
    /// # Errors
    /// [`ConfigErrors`]: this process does not run in a pod, or a file of the service account is invalid.
    pub fn in_cluster() -> Result<Config, ConfigErrors> {
        Config::options().sources(crate::kubeconfig::KubeconfigSources::Nothing).resolve()
    }

    /// Options that start with the environment of this process.
    pub fn options() -> ConfigOptions {
        let current_dir = std::env::current_dir().unwrap_or_else(|_| "/".into());
        ConfigOptions::new(options::process_environment(), current_dir)
    }

    /// The selected context's name, if there is one.
    pub fn context(&self) -> Option<&str> {
        self.effective.context.as_deref()
    }

    /// The namespace; empty if none is set.
    pub fn namespace(&self) -> &str {
        &self.effective.namespace
    }

    /// The cluster entry's name; empty in a pod.
    pub fn cluster_name(&self) -> &str {
        &self.effective.cluster_name
    }

    /// The user entry's name; empty in a pod.
    pub fn user_name(&self) -> &str {
        &self.effective.user_name
    }

    /// The cluster after overrides, with absolute paths.
    pub fn cluster(&self) -> &Cluster {
        &self.effective.cluster
    }

    /// The user after overrides, with absolute paths.
    pub fn user(&self) -> &AuthInfo {
        &self.effective.user
    }

    /// The server URL that requests are sent to.
    pub fn server(&self) -> String {
        self.effective.server()
    }

    /// Whether the server is https. Over plain http no credentials are sent.
    pub fn is_https(&self) -> bool {
        self.effective.is_https()
    }

    /// The kinds of credential a client sends, sorted.
    pub fn credential_kinds(&self) -> Vec<&'static str> {
        self.effective.credential_kinds()
    }

    /// The exec plugin that a client runs, if any.
    #[cfg(feature = "exec")]
    pub fn exec_plugin(&self) -> Option<&Plugin> {
        match &self.credential {
            CredentialPlan::Exec(plugin) => Some(plugin),
            _ => None,
        }
    }

    /// The program that a client starts for its credential, in words; `None` if it starts none.
    pub fn program(&self) -> Option<String> {
        match &self.credential {
            #[cfg(feature = "exec")]
            CredentialPlan::Exec(plugin) => Some(format!("credential plugin `{}`", plugin.command())),
            #[cfg(feature = "signer")]
            CredentialPlan::Signer(plan) => Some(format!("external signer `{}`", plan.program)),
            CredentialPlan::Static { .. } => None,
            #[cfg(feature = "oidc")]
            CredentialPlan::Oidc { .. } => None,
        }
    }

    /// The files that a client reads again while it is in use: certificate authority, token, certificate and key.
    pub fn watched_files(&self) -> Vec<PathBuf> {
        let mut files = self.credential.watched_files();
        if let Trust::File(path) = &self.transport.trust {
            files.push(path.clone());
        }
        files
    }

    /// What a client uses of its process, unless its builder changes it.
    pub(crate) fn client_context(&self) -> ClientContext {
        ClientContext {
            clock: Arc::clone(&self.clock),
            files: Arc::clone(&self.files),
            #[cfg(feature = "exec")]
            policy: self.policy.clone(),
            ..ClientContext::new(self.environment.clone())
        }
    }

    /// Whether this is the pod's service account rather than a kubeconfig.
    pub fn is_in_cluster(&self) -> bool {
        self.in_cluster
    }

    /// Settings that are valid and probably unintended.
    pub fn warnings(&self) -> &[ConfigWarning] {
        &self.warnings
    }
}

/// Omits the credential.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("context", &self.effective.context)
            .field("cluster", &self.effective.cluster_name)
            .field("user", &self.effective.user_name)
            .field("credentials", &self.credential_kinds())
            .finish_non_exhaustive()
    }
}
