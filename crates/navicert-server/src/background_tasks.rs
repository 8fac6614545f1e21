//! Background tasks of a server: refreshes signing keys, watches and reloads configuration files, logs the outcome.
//! `navicert-authn` decides what is due; this module runs it on tokio.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use navicert_authn::config::{AuthnReloader, ReloadOutcome};
use navicert_authn::jwks::{JwksRefresher, KeySource as _};
use navicert_authn::{Deadlines, ReloadableAuthenticator};
use navicert_client::transport::Timer;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle};

use crate::watch::Watcher;

/// How often the revocation list is read if no change is notified.
const REVOCATION_POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Background tasks; aborted when dropped.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use navicert_authn::config::AuthnReloader;
/// # use navicert_client::transport::TokioTimer;
/// # use navicert_server::background_tasks::BackgroundTasks;
/// # async fn example(reloader: AuthnReloader) {
/// let reloader = Arc::new(reloader);
/// let _tasks = BackgroundTasks::start(Arc::clone(&reloader), Arc::new(TokioTimer));
/// let outcome = reloader.authenticator().authenticate("a token").await;
/// # let _ = outcome; }
/// ```
#[derive(Debug)]
pub struct BackgroundTasks {
    tasks: [JoinHandle<()>; 4],
    reload_requested: [Arc<Notify>; 2],
}

impl BackgroundTasks {
    /// Starts the tasks on the current runtime.
    pub fn start(reloader: Arc<AuthnReloader>, timer: Arc<dyn Timer>) -> Self {
        let reload_requested: [Arc<Notify>; 2] = Default::default();
        let [list_requested, files_requested] = reload_requested.clone();
        let authenticator = Arc::clone(reloader.authenticator());
        authenticator.set_driven();
        let keys = tokio::spawn(refresh_keys(Arc::clone(&authenticator), Arc::clone(&timer)));
        let waits = {
            let timer = Arc::clone(&timer);
            tokio::spawn(async move { expire(authenticator.deadlines(), &*timer).await })
        };
        // A task of its own: a revocation waits for no issuer and for no other file.
        let list = reload_revocations(Arc::clone(&reloader), Arc::clone(&timer), list_requested);
        let list = tokio::spawn(list);
        let files = tokio::spawn(reload_configuration(reloader, timer, files_requested));
        BackgroundTasks { tasks: [keys, waits, list, files], reload_requested }
    }

    /// Checks the files now, for example after SIGHUP.
    pub fn reload_now(&self) {
        for requested in &self.reload_requested {
            requested.notify_one();
        }
    }
}

impl Drop for BackgroundTasks {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Runs one task per refresher while the refresher is in use.
async fn refresh_keys(authenticator: Arc<ReloadableAuthenticator>, timer: Arc<dyn Timer>) {
    let mut running = RefreshTasks::default();
    loop {
        running.reconcile(authenticator.refreshers(), &timer);
        authenticator.refreshers_changed().await;
    }
}

/// Tasks by the address of their refresher.
#[derive(Default)]
struct RefreshTasks(HashMap<usize, (Arc<JwksRefresher>, AbortHandle)>);

impl RefreshTasks {
    fn reconcile(&mut self, refreshers: Vec<Arc<JwksRefresher>>, timer: &Arc<dyn Timer>) {
        let address = |refresher: &Arc<JwksRefresher>| Arc::as_ptr(refresher).addr();
        self.0.retain(|known, (_, task)| {
            let stays = refreshers.iter().any(|refresher| address(refresher) == *known);
            if !stays {
                task.abort();
            }
            stays
        });
        for refresher in refreshers {
            let timer = Arc::clone(timer);
            self.0.entry(address(&refresher)).or_insert_with(|| {
                let task = tokio::spawn(run_refresher(Arc::clone(&refresher), timer));
                (refresher, task.abort_handle())
            });
        }
    }
}

impl Drop for RefreshTasks {
    fn drop(&mut self) {
        for (_, task) in self.0.values() {
            task.abort();
        }
    }
}

/// Wakes requests whose deadline has passed.
async fn expire(deadlines: &Deadlines, timer: &dyn Timer) {
    loop {
        match deadlines.expire() {
            Some(next) => tokio::select! {
                () = timer.sleep(next) => {}
                () = deadlines.changed() => {}
            },
            None => deadlines.changed().await,
        }
    }
}

async fn run_refresher(refresher: Arc<JwksRefresher>, timer: Arc<dyn Timer>) {
    let _driver = refresher.attach_driver();
    tokio::select! {
        () = refresh_and_log(&refresher, &*timer) => {}
        () = expire(refresher.deadlines(), &*timer) => {}
    }
}

async fn refresh_and_log(refresher: &JwksRefresher, timer: &dyn Timer) {
    let (mut logged, mut known) = (None, refresher.version());
    loop {
        let pause = refresher.run_due().await;
        let version = refresher.version();
        if version != known {
            let keys = refresher.health().usable_keys;
            tracing::info!(
                event = "jwks_changed",
                issuer = refresher.issuer().url,
                keys,
                "signing keys changed"
            );
            known = version;
        }
        let error = refresher.health().last_error;
        // Logs an error once, not at every retry.
        if error != logged {
            match &error {
                Some(error) => tracing::warn!(
                    event = "jwks_refresh_failed",
                    issuer = refresher.issuer().url,
                    error,
                    "failed to refresh signing keys"
                ),
                None => tracing::info!(
                    event = "jwks_refresh_recovered",
                    issuer = refresher.issuer().url,
                    "signing keys refreshed again"
                ),
            }
            logged = error;
        }
        tokio::select! {
            () = timer.sleep(pause) => {}
            () = refresher.schedule_changed() => {}
        }
    }
}

/// Logs settings without effect, once per configuration.
fn report_ignored_settings(reloader: &AuthnReloader, logged: &mut Vec<String>) {
    let ignored = reloader.authenticator().ignored_settings();
    if ignored != *logged {
        for why in &ignored {
            tracing::warn!(event = "setting_ignored", why, "a setting has no effect");
        }
        *logged = ignored;
    }
}

/// Logs which issuer a new configuration waits for.
fn report_waiting(reloader: &AuthnReloader, logged: &mut Option<String>) {
    let waiting = reloader.waiting_for();
    if waiting != *logged
        && let Some(why) = &waiting
    {
        tracing::warn!(
            event = "configuration_reload_waiting",
            why,
            "new configuration waits for an issuer, previous configuration stays in use"
        );
    }
    *logged = waiting;
}

/// Reads the revocation list whenever it changes.
async fn reload_revocations(
    reloader: Arc<AuthnReloader>,
    timer: Arc<dyn Timer>,
    reload_requested: Arc<Notify>,
) {
    let mut watcher = Watcher::start();
    loop {
        if let Some(path) = reloader.revocation_list() {
            // Watch first: later changes then wake this task.
            watcher.watch(&[path]);
        }
        match reloader.check_revocations() {
            ReloadOutcome::Unchanged | ReloadOutcome::Waiting => {}
            ReloadOutcome::Applied => tracing::info!(
                event = "revocation_list_reloaded",
                entries = reloader.authenticator().revocations().current().len(),
                "reloaded revocation list"
            ),
            ReloadOutcome::Refused(why) => tracing::error!(
                event = "revocation_list_reload_failed",
                error = why,
                "failed to reload revocation list, previous list stays in use"
            ),
        }
        tokio::select! {
            () = watcher.changed() => {}
            () = reload_requested.notified() => {}
            () = reloader.revocation_list_moved() => {}
            () = timer.sleep(REVOCATION_POLL_INTERVAL) => {}
        }
    }
}

async fn reload_configuration(
    reloader: Arc<AuthnReloader>,
    timer: Arc<dyn Timer>,
    reload_requested: Arc<Notify>,
) {
    let mut watcher = Watcher::start();
    let (mut ignored, mut waiting) = (Vec::new(), None);
    loop {
        report_ignored_settings(&reloader, &mut ignored);
        // Watch first: later changes then wake this task.
        watcher.watch(&reloader.watched().await);
        let checked = reloader.check_configuration().await;
        report_waiting(&reloader, &mut waiting);
        match &checked.reload {
            ReloadOutcome::Unchanged | ReloadOutcome::Waiting => {}
            ReloadOutcome::Applied => {
                tracing::info!(event = "configuration_reloaded", "reloaded configuration");
                // The new configuration may name files that are not watched yet.
                continue;
            }
            ReloadOutcome::Refused(why) => tracing::error!(
                event = "configuration_reload_failed",
                error = why,
                "failed to reload configuration, previous configuration stays in use"
            ),
        }
        tokio::select! {
            () = watcher.changed() => {}
            () = reload_requested.notified() => {}
            () = timer.sleep(checked.pause) => {}
        }
    }
}
