//! Settings of an authenticator.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::command::{DEFAULT_EOF_WAIT, DEFAULT_GRACE, DEFAULT_STDOUT_CAP};
use navicert_plugin::{BackoffSettings, Policy, Stderr};

use super::interactive::StdinUse;
use crate::kuberc::KubercError;

/// How plugins are run and how long credentials are used.
#[derive(Clone, Debug)]
pub struct ExecSettings {
    /// Timeout of a non-interactive run; `None` for no timeout.
    // C306
    pub timeout: Option<Duration>,
    /// Timeout of a run that has the terminal; `None` for no timeout.
    pub interactive_timeout: Option<Duration>,
    /// How long a plugin may take to exit after SIGTERM.
    pub grace: Duration,
    /// How long to wait for end of output after the plugin has exited.
    // C307
    pub eof_wait: Duration,
    /// Maximum bytes of standard output.
    // C305
    pub stdout_cap: usize,
    /// Where the plugin's standard error goes.
    pub stderr: Stderr,
    /// Environment variables that plugins do not inherit.
    // C304
    pub drop_env: Vec<OsString>,
    /// Whether something else uses standard input.
    pub stdin: StdinUse,
    /// How long before expiry a credential is refreshed, at most a tenth of its lifetime; zero refreshes after expiry, as
    /// client-go does.
    // C411
    pub leeway: Duration,
    /// How long a credential that had expired on arrival is used, to tolerate clock skew.
    // C412
    pub past_expiry: Duration,
    /// Back-off after failures; `None` runs again immediately, as client-go does.
    // C441
    pub backoff: Option<BackoffSettings>,
    /// Minimum back-off of background requests after a failed run that had the terminal.
    // C443
    pub interactive_backoff: Duration,
    /// Whether a credential obtained for one server is kept from other servers with the same plugin.
    // C404
    pub isolate_by_server: bool,
    /// Whether errors include the message of a `Status` object printed by a failed plugin.
    // C327
    pub status_message: bool,
}

impl Default for ExecSettings {
    fn default() -> Self {
        ExecSettings {
            timeout: Some(Duration::from_secs(5 * 60)),
            interactive_timeout: Some(Duration::from_secs(15 * 60)),
            grace: DEFAULT_GRACE,
            eof_wait: DEFAULT_EOF_WAIT,
            stdout_cap: DEFAULT_STDOUT_CAP,
            stderr: Stderr::Inherit,
            drop_env: Vec::new(),
            stdin: StdinUse::Free,
            leeway: Duration::from_secs(10),
            past_expiry: Duration::from_secs(10),
            backoff: Some(BackoffSettings::default()),
            interactive_backoff: Duration::from_secs(10),
            isolate_by_server: true,
            status_message: true,
        }
    }
}

/// Which plugins may run: a policy, or the error that blocks all plugins until it is fixed.
// C740
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PluginPolicy {
    /// A policy.
    Policy(Arc<Policy>),
    /// The kuberc cannot be read, so no plugin may run.
    Broken(Arc<KubercError>),
}

impl PluginPolicy {
    /// Permits only what both policies permit.
    // C742
    #[must_use]
    pub fn and(self, stricter: Policy) -> Self {
        match self {
            PluginPolicy::Policy(policy) => Policy::clone(&policy).and(stricter).into(),
            broken @ PluginPolicy::Broken(_) => broken,
        }
    }

    /// Whether it permits every plugin.
    pub(crate) fn allows_all(&self) -> bool {
        matches!(self, PluginPolicy::Policy(policy) if matches!(**policy, Policy::AllowAll))
    }
}

impl Default for PluginPolicy {
    /// Permits every plugin; command-line tools read the kuberc instead.
    // C742
    fn default() -> Self {
        Policy::AllowAll.into()
    }
}

impl From<Policy> for PluginPolicy {
    fn from(policy: Policy) -> Self {
        PluginPolicy::Policy(Arc::new(policy))
    }
}

impl From<Result<Policy, KubercError>> for PluginPolicy {
    fn from(read: Result<Policy, KubercError>) -> Self {
        read.map_or_else(|error| PluginPolicy::Broken(Arc::new(error)), Into::into)
    }
}
