//! A thread with its own runtime for a server, so that servers serve tests of every kind: async, blocking, or
//! waiting for a child process.

use std::fmt;
use std::future::Future;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Runs tasks until it is dropped; then every task is dropped before `drop` returns.
pub(crate) struct Background {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn start(name: &str) -> Self {
        let runtime =
            Builder::new_current_thread().enable_all().build().expect("a runtime for a test server");
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let _ = runtime.block_on(stopped);
            })
            .expect("a thread for a test server");
        Background { handle, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(task);
    }

    /// The runtime, for what must be created inside one (sockets).
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A server dropped by one of its own handlers cannot wait for itself.
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != std::thread::current().id())
        {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Background")
    }
}
