//! Reloads files that a server uses besides its configuration: certificates, keys, tokens.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_client::transport::Timer;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::tls::ServerTls;
use crate::watch::Watcher;

/// Poll interval, for changes that file watching misses.
const POLL_INTERVAL: Duration = Duration::from_secs(60);

/// Something loaded from files that can change.
pub trait Reloadable: Send + Sync {
    /// The files to watch.
    fn watched_files(&self) -> Vec<PathBuf>;

    /// Reloads the files if they changed. Invalid contents are logged and the previous contents stay in use.
    fn reload_if_changed(&self);
}

impl Reloadable for ServerTls {
    fn watched_files(&self) -> Vec<PathBuf> {
        ServerTls::watched_files(self)
    }

    fn reload_if_changed(&self) {
        ServerTls::reload_if_changed(self);
    }
}

/// The reloading task; aborted when dropped.
#[derive(Debug)]
pub struct ReloadTask {
    task: JoinHandle<()>,
    reload_requested: Arc<Notify>,
}

impl ReloadTask {
    /// Starts the task on the current runtime.
    pub fn start(reloadables: Vec<Arc<dyn Reloadable>>, timer: Arc<dyn Timer>) -> Self {
        let reload_requested = Arc::new(Notify::new());
        let task = tokio::spawn(run_reloads(reloadables, timer, Arc::clone(&reload_requested)));
        ReloadTask { task, reload_requested }
    }

    /// Checks the files now, for example after SIGHUP.
    pub fn reload_now(&self) {
        self.reload_requested.notify_one();
    }
}

impl Drop for ReloadTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run_reloads(
    reloadables: Vec<Arc<dyn Reloadable>>,
    timer: Arc<dyn Timer>,
    reload_requested: Arc<Notify>,
) {
    let mut watcher = Watcher::start();
    loop {
        for reloadable in &reloadables {
            // Watch first: later changes then wake this task.
            watcher.watch(&reloadable.watched_files());
            reloadable.reload_if_changed();
        }
        tokio::select! {
            () = watcher.changed() => {}
            () = reload_requested.notified() => {}
            () = timer.sleep(POLL_INTERVAL) => {}
        }
    }
}
