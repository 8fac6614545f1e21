//! What a client uses of its process: clock, timer, files, environment, programs, terminal and metrics.

use std::fmt;
use std::sync::Arc;

use navicert_plugin::{Environment, ProcessRunner, Runner};
use navicert_types::{Clock, SystemClock};

use crate::credential::SharedFiles;
use crate::exec::interactive::{ProcessTerminal, Terminal};
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
    pub runner: Arc<dyn Runner>,
    /// The terminal.
    pub terminal: Arc<dyn Terminal>,
    /// Which plugins may run.
    pub policy: PluginPolicy,
    /// Records metrics.
    pub recorder: Arc<dyn Recorder>,
    /// Shares credentials between authenticators of the same plugin.
    pub registry: AuthenticatorRegistry,
}

impl ClientContext {
    /// The system's clock, files, processes and terminal with tokio's timer; every plugin is permitted and no metrics are
    /// recorded.
    pub fn new(environment: Environment) -> Self {
        let clock = Arc::new(SystemClock);
        ClientContext {
            runner: Arc::new(ProcessRunner::new(Arc::clone(&clock) as Arc<dyn Clock>)),
            clock,
            timer: Arc::new(TokioTimer),
            files: Arc::new(OsFileSystem),
            environment,
            terminal: Arc::new(ProcessTerminal),
            policy: PluginPolicy::default(),
            recorder: Arc::new(NoopRecorder),
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
        f.debug_struct("ClientContext")
            .field("environment", &self.environment)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
