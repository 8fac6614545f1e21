//! Whether the API server accepts the proxy's credential and the proxy has the permissions it needs, for readiness.
// S246, S270

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_authn::ReloadableAuthenticator;
use navicert_client::transport::Timer;
use navicert_types::error_chain;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::self_check;
use super::settings::{ProxySettings, SelfCheck};
use crate::forward::Forwarder;
use crate::health::Check;

/// Interval between checks while permissions are missing.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Interval otherwise: permissions can be revoked, and a new configuration can need others.
const RECHECK_INTERVAL: Duration = Duration::from_secs(60);

/// State of the proxy's access to the API server.
pub struct UpstreamAccess {
    forwarder: Forwarder,
    authenticator: Arc<ReloadableAuthenticator>,
    settings: ProxySettings,
    is_anonymous: bool,
    timer: Arc<dyn Timer>,
    permissions: Mutex<Result<(), String>>,
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
            SelfCheck::Required => Err("not checked yet".to_owned()),
            SelfCheck::Warn | SelfCheck::Off => Ok(()),
        };
        UpstreamAccess {
            forwarder: forwarder.clone(),
            authenticator: Arc::clone(authenticator),
            settings: settings.clone(),
            is_anonymous,
            timer,
            permissions: Mutex::new(unknown),
        }
    }

    /// Whether the API server accepts the proxy's credential.
    ///
    /// # Errors
    /// It was rejected.
    pub fn credential(&self) -> Result<(), String> {
        match self.forwarder.is_credential_rejected() {
            true => Err("the API server rejected the proxy's credential (401)".to_owned()),
            false => Ok(()),
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
    /// What is missing.
    pub async fn check(&self) -> Result<(), String> {
        if self.settings.self_check == SelfCheck::Off {
            return Ok(());
        }
        let mapped = self.authenticator.mapped_attributes();
        let upstream = self.forwarder.upstream();
        let found = self_check::check(upstream, &self.settings, &mapped, self.is_anonymous).await;
        let verdict = match found {
            Ok(None) => Ok(()),
            Ok(Some(missing)) => Err(missing.to_string()),
            Err(error) => Err(error_chain(&error)),
        };
        let mut known = self.permissions.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != verdict || self.settings.self_check == SelfCheck::Warn {
            match &verdict {
                Ok(()) => tracing::info!(
                    event = "upstream_permissions_sufficient",
                    "the proxy has all required permissions"
                ),
                Err(missing) => tracing::error!(event = "upstream_permissions_missing", "{missing}"),
            }
        }
        if self.settings.self_check == SelfCheck::Required {
            known.clone_from(&verdict);
        }
        verdict
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
        }
    }
}

/// Readiness condition: the credential is accepted.
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
        f.debug_struct("Standing").field("permissions", &self.permissions()).finish_non_exhaustive()
    }
}
