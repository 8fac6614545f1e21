//! Whether the API server accepts the proxy's credential and the proxy has the permissions it needs, for readiness.
// S246, S270

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;
use navicert_authn::ReloadableAuthenticator;
use navicert_client::front_proxy::{FrontProxyTrust, SharedAuthority};
use navicert_client::transport::Timer;
use navicert_types::error_chain;
use tokio::sync::{Notify, OnceCell};
use tokio::task::JoinHandle;

use super::required_permissions::ImpersonationWay;
use super::reviews::{AccessReviewError, self_subject_review, server_version};
use super::self_check::{self, Verdict};
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
    permissions: Mutex<PermissionState>,
    /// User name of the proxy's own account.
    own_username: OnceCell<String>,
    /// Whether any request has told about the credential; without the self check, requests of clients do.
    is_known: AtomicBool,
    /// The certificate of a front proxy is known to be no user's.
    is_authority_separate: AtomicBool,
}

/// What the last check found out.
struct PermissionState {
    /// Readiness.
    verdict: Result<(), String>,
    /// Which requests cannot be forwarded, if not all can.
    limits: Option<String>,
    /// The way of impersonation that the proxy's rules take.
    way: Option<ImpersonationWay>,
    /// The same for service accounts whose token was reviewed.
    service_account_way: Option<ImpersonationWay>,
    /// The certificate of a front proxy is a user's, too.
    shared_authority: Option<SharedAuthority>,
}

impl UpstreamAccess {
    pub(super) fn new(
        forwarder: &Forwarder,
        authenticator: &Arc<ReloadableAuthenticator>,
        settings: &ProxySettings,
        is_anonymous: bool,
        timer: Arc<dyn Timer>,
    ) -> Self {
        let verdict = match settings.self_check {
            SelfCheck::Required => Err(NOT_CHECKED.to_owned()),
            SelfCheck::Warn | SelfCheck::Off => Ok(()),
        };
        let unknown = PermissionState {
            verdict,
            limits: None,
            way: None,
            service_account_way: None,
            shared_authority: None,
        };
        UpstreamAccess {
            forwarder: forwarder.clone(),
            authenticator: Arc::clone(authenticator),
            settings: settings.clone(),
            is_anonymous,
            timer,
            permissions: Mutex::new(unknown),
            own_username: OnceCell::new(),
            is_known: AtomicBool::new(settings.self_check == SelfCheck::Off),
            is_authority_separate: AtomicBool::new(false),
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
        self.state().verdict.clone()
    }

    /// Which requests the proxy cannot forward, and the RBAC rules to add, if its permissions suffice only for some.
    pub fn limits(&self) -> Option<String> {
        self.state().limits.clone()
    }

    /// That the certificate of a front proxy is a user's, too, and what to change.
    pub(crate) fn shared_authority(&self) -> Option<String> {
        self.state().shared_authority.clone().map(|shared| {
            let shared = FrontProxyTrust::Shared(shared);
            format!("{shared}; {}", shared.to_do().unwrap_or_default())
        })
    }

    /// The way of impersonation that the proxy's rules take, as far as known.
    pub(super) fn way(&self) -> Option<ImpersonationWay> {
        self.state().way
    }

    /// Whether service accounts are impersonated by their name alone: the API server sets everything else.
    // S276
    pub(super) fn impersonates_service_accounts_by_name(&self) -> bool {
        self.state().service_account_way == Some(ImpersonationWay::Constrained)
    }

    /// User name of the proxy's own account; `None` if the API server does not say.
    pub(super) async fn own_username(&self) -> Option<&str> {
        let upstream = self.forwarder.upstream();
        let asking = self.own_username.get_or_try_init(|| self_subject_review(upstream, &[]));
        asking.await.ok().map(String::as_str)
    }

    fn state(&self) -> MutexGuard<'_, PermissionState> {
        self.permissions.lock().unwrap_or_else(PoisonError::into_inner)
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
            Ok(Verdict { missing: None, .. }) => Ok(()),
            Ok(Verdict { missing: Some(missing), .. }) => Err(missing.to_string()),
            Err(error) => Err(error_chain(error)),
        };
        self.record_permissions(&verdict, &found);
        self.record(found.map(drop));
        if verdict.is_ok() {
            self.check_authority().await;
        }
        verdict
    }

    /// Checks whether the certificate of a front proxy is a user's, too. Where it is not, the API server audits a failed
    /// request, so that it is asked only once.
    async fn check_authority(&self) {
        if self.is_authority_separate.load(Ordering::Acquire) {
            return;
        }
        let found = self_check::shared_authority(self.forwarder.upstream(), &self.settings).await;
        let Ok(found) = found else { return };
        self.is_authority_separate.store(found.is_none(), Ordering::Release);
        let is_new = std::mem::replace(&mut self.state().shared_authority, found.clone()) != found;
        if let Some(shared) = self.shared_authority().filter(|_| is_new) {
            tracing::warn!(event = "front_proxy_authority_shared", "{shared}");
        }
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

    fn record_permissions(&self, verdict: &Result<(), String>, found: &Result<Verdict, AccessReviewError>) {
        let mut known = self.state();
        let is_required = self.settings.self_check == SelfCheck::Required;
        if matches!(found, Err(AccessReviewError::Transport(_))) {
            // The credential's condition has the reason.
            if is_required {
                known.verdict = Err("not checked: no answer from the API server".to_owned());
            }
            return;
        }
        let limits = match found {
            Ok(Verdict { access, missing: None }) => access.limits.iter().map(ToString::to_string).collect(),
            _ => String::new(),
        };
        let limits = Some(limits).filter(|limits| !limits.is_empty());
        let is_new = known.verdict != *verdict || known.limits != limits;
        if is_new || self.settings.self_check == SelfCheck::Warn {
            match (verdict, &limits) {
                (Ok(()), None) => tracing::info!(
                    event = "upstream_permissions_sufficient",
                    "the proxy has all required permissions"
                ),
                (Ok(()), Some(limits)) => {
                    tracing::warn!(event = "upstream_permissions_limited", "{limits}");
                }
                (Err(missing), _) => tracing::error!(event = "upstream_permissions_missing", "{missing}"),
            }
        }
        known.limits = limits;
        if let Ok(Verdict { access, .. }) = found {
            known.way = access.users;
            known.service_account_way = access.service_accounts;
        }
        if is_required {
            known.verdict.clone_from(verdict);
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

    fn note(&self) -> Option<String> {
        self.0.limits().or_else(|| self.0.shared_authority())
    }
}

impl fmt::Debug for UpstreamAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamAccess").field("permissions", &self.permissions()).finish_non_exhaustive()
    }
}
