//! What goes on beside the requests: every keeper is tended, the files are watched, and what comes of it is logged.
//! Deciding what to do is `navicert-authn`'s business; this is the part with a runtime.

use std::collections::HashMap;
use std::sync::Arc;

use navicert_authn::Live;
use navicert_authn::config::{Reload, Reloader};
use navicert_authn::jwks::{Keeper, Keys as _};
use navicert_client::transport::Timer;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle};

use crate::watch::Watcher;

/// The work beside the requests; it ends when this is dropped.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use navicert_authn::config::Reloader;
/// # use navicert_client::transport::TokioTimer;
/// # use navicert_server::keeping::Keeping;
/// # async fn example(reloader: Reloader) {
/// let reloader = Arc::new(reloader);
/// let _keeping = Keeping::start(Arc::clone(&reloader), Arc::new(TokioTimer));
/// let outcome = reloader.live().authenticate("a token").await;
/// # let _ = outcome; }
/// ```
#[derive(Debug)]
pub struct Keeping {
    tasks: [JoinHandle<()>; 2],
    asked: Arc<Notify>,
}

impl Keeping {
    /// Starts it in the current runtime.
    pub fn start(reloader: Arc<Reloader>, timer: Arc<dyn Timer>) -> Self {
        let asked = Arc::new(Notify::new());
        let keys = tokio::spawn(tend_keepers(Arc::clone(reloader.live()), Arc::clone(&timer)));
        let files = tokio::spawn(tend_files(reloader, timer, Arc::clone(&asked)));
        Keeping { tasks: [keys, files], asked }
    }

    /// Looks at the files now: somebody asked for it (SIGHUP, an administrator).
    pub fn look_now(&self) {
        self.asked.notify_one();
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// A number from 0 to 1 (never 1 itself), so that many keepers do not all come back at once.
pub fn random() -> f64 {
    let mut bytes = [0u8; 4];
    // Without randomness they do come back at once; that is no reason to stop.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    f64::from(u32::from_ne_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}

/// One task per keeper, for as long as the keeper is in use.
async fn tend_keepers(live: Arc<Live>, timer: Arc<dyn Timer>) {
    let mut running = Running::default();
    loop {
        running.become_those(live.keepers(), &timer);
        live.keepers_changed().await;
    }
}

/// Keepers that are tended, by where they are in memory.
#[derive(Default)]
struct Running(HashMap<usize, (Arc<Keeper>, AbortHandle)>);

impl Running {
    fn become_those(&mut self, keepers: Vec<Arc<Keeper>>, timer: &Arc<dyn Timer>) {
        let address = |keeper: &Arc<Keeper>| Arc::as_ptr(keeper).addr();
        self.0.retain(|known, (_, task)| {
            let stays = keepers.iter().any(|keeper| address(keeper) == *known);
            if !stays {
                task.abort();
            }
            stays
        });
        for keeper in keepers {
            let timer = Arc::clone(timer);
            self.0.entry(address(&keeper)).or_insert_with(|| {
                let task = tokio::spawn(tend(Arc::clone(&keeper), timer));
                (keeper, task.abort_handle())
            });
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for (_, task) in self.0.values() {
            task.abort();
        }
    }
}

async fn tend(keeper: Arc<Keeper>, timer: Arc<dyn Timer>) {
    let (mut said, mut known) = (None, keeper.version());
    loop {
        let pause = keeper.tend().await;
        let version = keeper.version();
        if version != known {
            let keys = keeper.health().usable_keys;
            tracing::info!(issuer = keeper.issuer().url, keys, "an issuer's keys have changed");
            known = version;
        }
        let error = keeper.health().last_error;
        // The same trouble again is no news.
        if error != said {
            match &error {
                Some(error) => tracing::warn!(issuer = keeper.issuer().url, error, "an issuer is in trouble"),
                None => tracing::info!(issuer = keeper.issuer().url, "an issuer is well again"),
            }
            said = error;
        }
        tokio::select! {
            () = timer.sleep(pause) => {}
            () = keeper.asked() => {}
        }
    }
}

async fn tend_files(reloader: Arc<Reloader>, timer: Arc<dyn Timer>, asked: Arc<Notify>) {
    let mut watcher = Watcher::start();
    loop {
        // Before the look: what changes from here on is noticed.
        watcher.watch(&reloader.watched().await);
        let tended = reloader.tend().await;
        match &tended.reload {
            Reload::Unchanged | Reload::Waiting => {}
            Reload::Applied => {
                tracing::info!("the configuration has been reloaded");
                // It may name files that nobody watches yet.
                continue;
            }
            Reload::Refused(why) => tracing::error!(why, "the earlier configuration stays in use"),
        }
        tokio::select! {
            () = watcher.changed() => {}
            () = asked.notified() => {}
            () = timer.sleep(tended.pause) => {}
        }
    }
}
