//! Whether the API server accepts the proxy's credential and the proxy has the permissions it needs, for readiness.
// S246, S270

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use navicert_authn::ReloadableAuthenticator;
use navicert_client::transport::Timer;
use navicert_types::error_chain;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::reviews::{AccessReviewError, server_version};
use super::self_check;
use super::settings::{ProxySettings, SelfCheck};
use crate::forward::Forwarder;
use crate::health::Check;

/// Interval between checks while permissions are missing.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Interval otherwise: permissions can be revoked, and a new configuration can need others.
const RECHECK_INTERVAL: Duration = Duration::from_secs(60);

const NOT_CHECKED: &str = "not checked yet";

/// State of the proxy's access to the API server.
pub struct UpstreamAccess {
    forwarder: Forwarder,
    authenticator: Arc<ReloadableAuthenticator>,
    settings: ProxySettings,
    is_anonymous: bool,
    timer: Arc<dyn Timer>,
    permissions: Mutex<Result<(), String>>,
    /// Whether any request has told about the credential; without the self check, requests of clients do.
    is_known: AtomicBool,
}

impl UpstreamAccess {
    pub(super) fn new(
        forwarder: &Forwarder,
        authenticator: &Arc<ReloadableAuthenticator>,
        settings: &ProxySettings,
        is_anonymous: bool,
        timer: Arc<dyn Timer>,
    ) -> Self {
        let unknown = match settings.self_check {
            SelfCheck::Required => Err(NOT_CHECKED.to_owned()),
            SelfCheck::Warn | SelfCheck::Off => Ok(()),
        };
        UpstreamAccess {
            forwarder: forwarder.clone(),
            authenticator: Arc::clone(authenticator),
            settings: settings.clone(),
            is_anonymous,
            timer,
            permissions: Mutex::new(unknown),
            is_known: AtomicBool::new(settings.self_check == SelfCheck::Off),
        }
    }

    /// Whether the API server answers and accepts the proxy's credential.
    ///
    /// # Errors
    /// It rejected the credential, did not answer, or was not asked yet.
    pub fn credential(&self) -> Result<(), String> {
        self.forwarder.upstream_state().outcome()?;
        match self.is_known.load(Ordering::Acquire) {
            true => Ok(()),
            false => Err(NOT_CHECKED.to_owned()),
        }
    }

    /// Whether the proxy has the permissions it needs.
    ///
    /// # Errors
    /// What is missing, with the RBAC rules to add.
    pub fn permissions(&self) -> Result<(), String> {
        self.permissions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Checks the permissions and records the result.
    ///
    /// # Errors
    /// What is missing, or why the API server did not say.
    pub async fn check(&self) -> Result<(), String> {
        let upstream = self.forwarder.upstream();
        if self.settings.self_check == SelfCheck::Off {
            // A server that is not ready gets no requests that could show that the API server answers again.
            if self.credential().is_err() {
                self.record(server_version(upstream, &[]).await.map(drop));
            }
            return self.credential();
        }
        let mapped = self.authenticator.mapped_attributes();
        let found = self_check::check(upstream, &self.settings, &mapped, self.is_anonymous).await;
        let verdict = match &found {
            Ok(None) => Ok(()),
            Ok(Some(missing)) => Err(missing.to_string()),
            Err(error) => Err(error_chain(error)),
        };
        let is_unanswered = matches!(&found, Err(AccessReviewError::Transport(_)));
        self.record(found.map(drop));
        self.record_permissions(&verdict, is_unanswered);
        verdict
    }

    /// Records what a request of the proxy itself says about the API server and the credential.
    fn record(&self, outcome: Result<(), AccessReviewError>) {
        let state = self.forwarder.upstream_state();
        let _ = match outcome {
            Err(AccessReviewError::Transport(error)) => state.record_failure(&error),
            Err(AccessReviewError::UnexpectedResponse { status, .. }) => state.record_response(status),
            Ok(()) | Err(AccessReviewError::Undetermined { .. }) => state.record_response(StatusCode::OK),
        };
        self.is_known.store(true, Ordering::Release);
    }

    fn record_permissions(&self, verdict: &Result<(), String>, is_unanswered: bool) {
        let mut known = self.permissions.lock().unwrap_or_else(PoisonError::into_inner);
        let is_required = self.settings.self_check == SelfCheck::Required;
        if is_unanswered {
            // The credential's condition has the reason.
            if is_required {
                *known = Err("not checked: no answer from the API server".to_owned());
            }
            return;
        }
        if *known != *verdict || self.settings.self_check == SelfCheck::Warn {
            match verdict {
                Ok(()) => tracing::info!(
                    event = "upstream_permissions_sufficient",
                    "the proxy has all required permissions"
                ),
                Err(missing) => tracing::error!(event = "upstream_permissions_missing", "{missing}"),
            }
        }
        if is_required {
            known.clone_from(verdict);
        }
    }
}

/// Checks the permissions periodically and on request; aborted when dropped.
#[derive(Debug)]
pub struct AccessCheckTask {
    task: JoinHandle<()>,
    check_requested: Arc<Notify>,
}

impl AccessCheckTask {
    /// Starts the task on the current runtime. The first check is immediate.
    pub fn start(access: Arc<UpstreamAccess>) -> Self {
        let check_requested = Arc::new(Notify::new());
        let task = tokio::spawn(run_checks(access, Arc::clone(&check_requested)));
        AccessCheckTask { task, check_requested }
    }

    /// Checks now, for example after SIGHUP.
    pub fn check_now(&self) {
        self.check_requested.notify_one();
    }
}

impl Drop for AccessCheckTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run_checks(access: Arc<UpstreamAccess>, check_requested: Arc<Notify>) {
    loop {
        let pause = if access.check().await.is_ok() { RECHECK_INTERVAL } else { RETRY_INTERVAL };
        tokio::select! {
            () = access.timer.sleep(pause) => {}
            () = check_requested.notified() => {}
            () = access.forwarder.upstream_state().failed() => {}
        }
    }
}

/// Readiness condition: the API server answers and accepts the credential.
#[derive(Debug)]
pub struct CredentialCheck(pub Arc<UpstreamAccess>);

/// Readiness condition: the permissions suffice.
#[derive(Debug)]
pub struct PermissionsCheck(pub Arc<UpstreamAccess>);

impl Check for CredentialCheck {
    fn name(&self) -> &'static str {
        "upstream-credential"
    }

    fn check(&self) -> Result<(), String> {
        self.0.credential()
    }
}

impl Check for PermissionsCheck {
    fn name(&self) -> &'static str {
        "upstream-permissions"
    }

    fn check(&self) -> Result<(), String> {
        self.0.permissions()
    }
}

impl fmt::Debug for UpstreamAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamAccess").field("permissions", &self.permissions()).finish_non_exhaustive()
    }
}
