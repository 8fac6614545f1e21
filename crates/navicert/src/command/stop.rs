//! Graceful shutdown of long-running verbs.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Handlers of SIGTERM and SIGINT.
pub(crate) struct StopSignals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Installs the handlers, so that the signals no longer kill the process.
    pub(crate) fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let (terminate, interrupt) = {
            let _inside = runtime.enter();
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
        };
        Ok(StopSignals { runtime, terminate, interrupt })
    }

    /// Waits for one of the signals.
    pub(crate) fn wait(mut self) {
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
            }
        });
    }
}
