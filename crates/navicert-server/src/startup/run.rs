//! Runs a server: binds, confines the process, starts the runtime, and serves until SIGTERM or SIGINT.

use std::io;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use navicert_io::process_memory::hide_memory;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use super::{ServerParts, ServerSpec};
use crate::audit::AuditLog;
use crate::background_tasks::BackgroundTasks;
use crate::confinement::{ConfinementError, ConfinementPlan};
use crate::descriptors;
use crate::listener::{Handler, Security};
use crate::memory::EffectiveLimits;
use crate::metrics::ListenerMetrics;
use crate::proxy::upstream_access::AccessCheckTask;
use crate::reload::ReloadTask;
use crate::report::ServerStarted;
use crate::serving::{BindError, BoundListener, Server, ServerRuntime};

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeEnd {
    /// It drained its requests.
    Drained,
    /// A second signal ended it without draining.
    Forced,
}

/// Why a server cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A socket cannot listen.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A required measure of confinement is not in force.
    #[error(transparent)]
    Confinement(#[from] ConfinementError),
    /// The operating system refuses a thread, a signal handler or a socket; or the start could not be announced.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ServerParts {
    /// Serves until SIGTERM or SIGINT, then drains requests; a second signal ends at once. SIGHUP reloads all files and reopens
    /// the audit log. `announce` is called when the server listens, unless standard output is the audit log.
    ///
    /// # Errors
    /// [`ServeError`]: the server could not start, or could not be announced.
    pub fn serve<H: Handler>(
        self,
        spec: ServerSpec<H>,
        announce: impl FnOnce(&ServerStarted) -> io::Result<()>,
    ) -> Result<ServeEnd, ServeError> {
        let ServerSpec { name, limits, handler, mut reloadables, upstream_access, confinement } = spec;
        if let Err(error) = hide_memory() {
            tracing::warn!(event = "memory_protection_failed", %error, "failed to disable core dumps and memory access by other processes");
        }
        let bound = BoundListener::bind(self.listen)?;
        let inspection = self.servers.health_listen.map(BoundListener::bind).transpose()?;
        reloadables.extend(self.tls.clone().map(|tls| tls as _));
        let EffectiveLimits { limits, memory } = self.limits(limits);
        let limits = descriptors::raise_limit(limits);
        tracing::info!(
            event = "limits",
            connections = limits.connections,
            requests = limits.requests,
            unfinished_bytes = limits.unfinished_bytes,
            memory_bytes = memory.map(|memory| memory.bytes),
            memory_source = memory.map(|memory| memory.source.name()),
            "limits of this server"
        );
        let server = Server {
            security: self.tls.as_ref().map_or(Security::Plain, |tls| tls.security()),
            limits,
            metrics: ListenerMetrics::new(name, Arc::clone(&self.clock)),
            bound,
            handler,
        };
        // A confined process cannot read how many processors its control group may use.
        let threads = thread::available_parallelism().map_or(1, usize::from);
        self.confine(&confinement)?;
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        self.audit.start()?;
        let server_runtime = ServerRuntime {
            shutdown: self.servers.shutdown(),
            health: self.health,
            metrics: self.metrics,
            timer: Arc::clone(&self.timer),
        };
        let is_stdout_taken = self.servers.audit_log_path.as_deref() == Some(Path::new("-"));
        let outcome = runtime.block_on(async {
            let signals = ServerSignals::register()?;
            let reload = ReloadTargets {
                tasks: BackgroundTasks::start(self.reloader, Arc::clone(&self.timer)),
                files: ReloadTask::start(reloadables, self.timer),
                access_check: upstream_access.map(AccessCheckTask::start),
                audit: self.audit.clone(),
            };
            let (address, inspected) =
                (server.bound.address(), inspection.as_ref().map(BoundListener::address));
            tracing::info!(event = "server_started", server = name, listen = %address, health = ?inspected, "server started");
            if !is_stdout_taken {
                announce(&ServerStarted::new(name, address, inspected))?;
            }
            let stop = Notify::new();
            tokio::select! {
                served = server_runtime.serve(server, inspection, stop.notified()) => {
                    served.map(|()| ServeEnd::Drained).map_err(ServeError::from)
                }
                () = signals.second(&stop, || reload.run()) => {
                    tracing::warn!(event = "shutdown_forced", "received a second signal, ended without draining requests");
                    Ok(ServeEnd::Forced)
                }
            }
        });
        // Open streams may never end; their grace period is over.
        runtime.shutdown_background();
        self.audit.close();
        outcome
    }

    /// Confines this process. Every thread is started later and inherits it.
    fn confine(&self, plan: &ConfinementPlan) -> Result<(), ConfinementError> {
        let report = plan.apply()?;
        report.log();
        if report.confines_files() {
            self.reloader.confine(Arc::new(plan.files.clone()));
        }
        Ok(())
    }
}

/// The signals of a server.
struct ServerSignals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl ServerSignals {
    fn register() -> io::Result<Self> {
        Ok(ServerSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Completes with the second SIGTERM or SIGINT; notifies `stop` of the first, and calls `reload` with every SIGHUP.
    async fn second(mut self, stop: &Notify, reload: impl Fn()) {
        let mut is_stopping = false;
        loop {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
                _ = self.hangup.recv() => {
                    reload();
                    continue;
                }
            }
            if mem::replace(&mut is_stopping, true) {
                return;
            }
            stop.notify_one();
        }
    }
}

/// What SIGHUP reloads.
struct ReloadTargets {
    tasks: BackgroundTasks,
    files: ReloadTask,
    access_check: Option<AccessCheckTask>,
    audit: AuditLog,
}

impl ReloadTargets {
    fn run(&self) {
        tracing::info!(event = "reload_requested", "received SIGHUP, reloading files");
        self.tasks.reload_now();
        self.files.reload_now();
        if let Some(access_check) = &self.access_check {
            access_check.check_now();
        }
        self.audit.reopen();
    }
}
