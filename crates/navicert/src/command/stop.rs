//! Long-running verbs end in good order.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The two signals that mean "end in good order".
pub(crate) struct Stop {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    /// From now on they do not end the process by themselves.
    pub(crate) fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let (terminate, interrupt) = {
            let _inside = runtime.enter();
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
        };
        Ok(Stop { runtime, terminate, interrupt })
    }

    /// Until one of them comes.
    pub(crate) fn wait(mut self) {
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
            }
        });
    }
}
