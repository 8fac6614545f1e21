//! What an authenticator may be told to do differently, and what it needs from outside.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::command::{DEFAULT_EOF_WAIT, DEFAULT_GRACE, DEFAULT_STDOUT_CAP};
use navicert_plugin::{BackoffSettings, Environment, Policy, ProcessRunner, Runner, Stderr};
use navicert_types::{Clock, SystemClock};

use super::interactive::{ProcessTerminal, Stdin, Terminal};
use super::registry::Registry;
use crate::kuberc::KubercError;
use crate::metrics::{Recorder, Unrecorded};

/// How plugins are run and how long their answers are good.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a run may take when nobody is asked anything (C306); `None` is no limit.
    pub limit: Option<Duration>,
    /// How long a run may take when the plugin has the terminal.
    pub interactive_limit: Option<Duration>,
    /// How long a plugin has to end when it is asked to.
    pub grace: Duration,
    /// How long something the plugin left behind may hold its output open (C307).
    pub eof_wait: Duration,
    /// How much a plugin may print (C305).
    pub stdout_cap: usize,
    /// Where the plugin's complaints go.
    pub stderr: Stderr,
    /// Variables that plugins do not inherit (C304).
    pub drop_env: Vec<OsString>,
    /// Whether something else reads standard input.
    pub stdin: Stdin,
    /// How long before its end a credential is renewed, but never more than a tenth of its life; zero waits until it
    /// has expired, as client-go does (C411).
    pub leeway: Duration,
    /// How long a credential is used that had expired when it came: clocks differ (C412).
    pub past_expiry: Duration,
    /// How failures are waited out; `None` runs again at once, as client-go does (C441).
    pub backoff: Option<BackoffSettings>,
    /// The least wait for background requests after a failed run that had the terminal (C443).
    pub interactive_wait: Duration,
    /// Whether a credential got for one server is kept from others that have the same plugin (C404).
    pub isolate_by_server: bool,
    /// Whether the message of a `Status` object that a failed plugin printed is shown (C327).
    pub status_message: bool,
    /// Whether a `pin` in a kubeconfig is handed to an external signer rather than refused (X2): for an application to
    /// decide, never for a file.
    pub allow_pin_in_kubeconfig: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            limit: Some(Duration::from_secs(5 * 60)),
            interactive_limit: Some(Duration::from_secs(15 * 60)),
            grace: DEFAULT_GRACE,
            eof_wait: DEFAULT_EOF_WAIT,
            stdout_cap: DEFAULT_STDOUT_CAP,
            stderr: Stderr::Inherit,
            drop_env: Vec::new(),
            stdin: Stdin::Free,
            leeway: Duration::from_secs(10),
            past_expiry: Duration::from_secs(10),
            backoff: Some(BackoffSettings::default()),
            interactive_wait: Duration::from_secs(10),
            isolate_by_server: true,
            status_message: true,
            allow_pin_in_kubeconfig: false,
        }
    }
}

/// Which plugins may run: a policy, or the reason why none may until somebody mends a file (C740).
#[derive(Clone, Debug)]
pub enum PluginPolicy {
    /// This policy decides.
    Policy(Arc<Policy>),
    /// There is a kuberc that cannot be read, so nothing runs.
    Broken(Arc<KubercError>),
}

impl PluginPolicy {
    /// What both permit (C742).
    #[must_use]
    pub fn and(self, stricter: Policy) -> Self {
        match self {
            PluginPolicy::Policy(policy) => Policy::clone(&policy).and(stricter).into(),
            broken @ PluginPolicy::Broken(_) => broken,
        }
    }

    /// Whether it can only ever say yes.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, PluginPolicy::Policy(policy) if matches!(**policy, Policy::AllowAll))
    }
}

impl Default for PluginPolicy {
    /// The library's default; a command line has to read the kuberc (C742).
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

/// What an authenticator needs from outside. Cheap to clone.
#[derive(Clone)]
pub struct Surroundings {
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Who starts programs.
    pub runner: Arc<dyn Runner>,
    /// Whether there is a terminal.
    pub terminal: Arc<dyn Terminal>,
    /// The environment that plugins inherit, and whose `PATH` they are searched in.
    pub environment: Environment,
    /// Which plugins may run.
    pub policy: PluginPolicy,
    /// Who counts.
    pub recorder: Arc<dyn Recorder>,
    /// Where authenticators that are alike find each other.
    pub registry: Registry,
}

impl Surroundings {
    /// The real ones: this machine's clock, processes and terminal; everything may run and nothing is counted.
    pub fn new(environment: Environment) -> Self {
        let clock = Arc::new(SystemClock);
        Surroundings {
            runner: Arc::new(ProcessRunner::new(Arc::clone(&clock) as Arc<dyn Clock>)),
            clock,
            terminal: Arc::new(ProcessTerminal),
            environment,
            policy: PluginPolicy::default(),
            recorder: Arc::new(Unrecorded),
            registry: Registry::process().clone(),
        }
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings")
            .field("environment", &self.environment)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
