//! Whether the API server accepts the proxy's credential and the proxy has the permissions it needs, for readiness.
// S246, S270

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_authn::ReloadableAuthenticator;
use navicert_client::transport::Timer;

use super::self_check;
use super::settings::{ProxySettings, SelfCheck};
use crate::forward::Forwarder;
use crate::health::Check;
use crate::reload::Reloadable;

/// Interval between checks while permissions are missing.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Interval otherwise: permissions can be revoked, and a new configuration can need others.
const RECHECK_INTERVAL: Duration = Duration::from_secs(300);

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
            Err(error) => Err(with_source(&error)),
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

    /// Checks periodically.
    pub async fn keep_looking(&self) {
        loop {
            let pause = if self.check().await.is_ok() { RECHECK_INTERVAL } else { RETRY_INTERVAL };
            self.timer.sleep(pause).await;
        }
    }
}

/// Permissions change like files do: they are looked at again and again, and when somebody asks (SIGHUP).
#[derive(Debug)]
pub struct Looking {
    standing: Arc<UpstreamAccess>,
    is_begun: AtomicBool,
}

impl Looking {
    /// Nobody looks yet.
    pub fn new(standing: Arc<UpstreamAccess>) -> Self {
        Looking { standing, is_begun: AtomicBool::new(false) }
    }
}

impl Reloadable for Looking {
    fn watched_files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn reload_if_changed(&self) {
        let standing = Arc::clone(&self.standing);
        if self.is_begun.swap(true, Ordering::Relaxed) {
            tokio::spawn(async move { standing.check().await });
        } else {
            tokio::spawn(async move { standing.keep_looking().await });
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

fn with_source(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

impl fmt::Debug for UpstreamAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing").field("permissions", &self.permissions()).finish_non_exhaustive()
    }
}
