//! Files that a server follows beside its configuration: certificates, keys, tokens. One task looks at all of them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_client::transport::Timer;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::tls::Tls;
use crate::watch::Watcher;

/// Between two looks, if nothing says that something has changed.
const POLL: Duration = Duration::from_secs(60);

/// Something that follows files.
pub trait Follows: Send + Sync {
    /// Which files.
    fn watched(&self) -> Vec<PathBuf>;

    /// Looks at them, and does what follows from it. What cannot be used is told and changes nothing.
    fn look(&self);
}

impl Follows for Tls {
    fn watched(&self) -> Vec<PathBuf> {
        Tls::watched(self)
    }

    fn look(&self) {
        Tls::look(self);
    }
}

/// The task that looks; it ends when this is dropped.
#[derive(Debug)]
pub struct Following {
    task: JoinHandle<()>,
    asked: Arc<Notify>,
}

impl Following {
    /// Starts it in the current runtime.
    pub fn start(followers: Vec<Arc<dyn Follows>>, timer: Arc<dyn Timer>) -> Self {
        let asked = Arc::new(Notify::new());
        let task = tokio::spawn(follow(followers, timer, Arc::clone(&asked)));
        Following { task, asked }
    }

    /// Looks now: somebody asked for it (SIGHUP).
    pub fn look_now(&self) {
        self.asked.notify_one();
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(followers: Vec<Arc<dyn Follows>>, timer: Arc<dyn Timer>, asked: Arc<Notify>) {
    let mut watcher = Watcher::start();
    loop {
        for follower in &followers {
            // Before the look: what changes from here on is noticed.
            watcher.watch(&follower.watched());
            follower.look();
        }
        tokio::select! {
            () = watcher.changed() => {}
            () = asked.notified() => {}
            () = timer.sleep(POLL) => {}
        }
    }
}
