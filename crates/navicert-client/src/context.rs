//! What a client uses of its process: clock, timer, files, environment, programs, terminal and metrics.

use std::fmt;
use std::sync::Arc;

use navicert_plugin::Environment;
#[cfg(feature = "exec")]
use navicert_plugin::{ProcessRunner, Runner};
use navicert_types::{Clock, SystemClock};

use crate::credential::SharedFiles;
#[cfg(feature = "exec")]
use crate::exec::interactive::{ProcessTerminal, Terminal};
#[cfg(feature = "exec")]
use crate::exec::{AuthenticatorRegistry, PluginPolicy};
use crate::kubeconfig::OsFileSystem;
use crate::metrics::{NoopRecorder, Recorder};
use crate::transport::{Timer, TokioTimer};

/// Dependencies of credential sources and transports. Cheap to clone.
#[derive(Clone)]
pub struct ClientContext {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The timer of transports.
    pub timer: Arc<dyn Timer>,
    /// The file system.
    pub files: SharedFiles,
    /// The environment that plugins inherit and whose `PATH` is searched.
    pub environment: Environment,
    /// Starts programs.
    #[cfg(feature = "exec")]
    pub runner: Arc<dyn Runner>,
    /// The terminal.
    #[cfg(feature = "exec")]
    pub terminal: Arc<dyn Terminal>,
    /// Which plugins may run.
    #[cfg(feature = "exec")]
    pub policy: PluginPolicy,
    /// Records metrics.
    pub recorder: Arc<dyn Recorder>,
    /// Shares credentials between authenticators of the same plugin.
    #[cfg(feature = "exec")]
    pub registry: AuthenticatorRegistry,
}

impl ClientContext {
    /// The system's clock, files, processes and terminal with tokio's timer; every plugin is permitted and no metrics are
    /// recorded.
    pub fn new(environment: Environment) -> Self {
        ClientContext {
            clock: Arc::new(SystemClock),
            timer: Arc::new(TokioTimer),
            files: Arc::new(OsFileSystem),
            environment,
            recorder: Arc::new(NoopRecorder),
            #[cfg(feature = "exec")]
            runner: Arc::new(ProcessRunner::new(Arc::new(SystemClock))),
            #[cfg(feature = "exec")]
            terminal: Arc::new(ProcessTerminal),
            #[cfg(feature = "exec")]
            policy: PluginPolicy::default(),
            #[cfg(feature = "exec")]
            registry: AuthenticatorRegistry::process().clone(),
        }
    }

    /// The same with an empty environment, for transports whose credential source runs no program.
    pub fn system() -> Self {
        ClientContext::new(Environment::empty())
    }
}

/// Omits the values of variables, which may be secrets.
impl fmt::Debug for ClientContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("ClientContext");
        text.field("environment", &self.environment);
        #[cfg(feature = "exec")]
        text.field("policy", &self.policy);
        text.finish_non_exhaustive()
    }
}
