//! How the proxy stands with the API server: whether its credential is accepted and its permissions suffice. Readiness asks
//! here (structured-authentication.md S246, S270).

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_authn::Live;
use navicert_client::transport::Timer;

use super::self_check;
use super::settings::{SelfCheck, Settings};
use crate::files::Follows;
use crate::forward::Forwarder;
use crate::health::Check;

/// Between two looks while something is missing.
const SOON: Duration = Duration::from_secs(10);
/// And while nothing is: permissions come and go, and configurations change what is needed.
const LATER: Duration = Duration::from_secs(300);

/// What is known about it.
pub struct Standing {
    forwarder: Forwarder,
    live: Arc<Live>,
    settings: Settings,
    is_anonymous: bool,
    timer: Arc<dyn Timer>,
    permissions: Mutex<Result<(), String>>,
}

impl Standing {
    pub(super) fn new(
        forwarder: &Forwarder,
        live: &Arc<Live>,
        settings: &Settings,
        is_anonymous: bool,
        timer: Arc<dyn Timer>,
    ) -> Self {
        let unknown = match settings.self_check {
            SelfCheck::Required => Err("not asked yet".to_owned()),
            SelfCheck::Warn | SelfCheck::Off => Ok(()),
        };
        Standing {
            forwarder: forwarder.clone(),
            live: Arc::clone(live),
            settings: settings.clone(),
            is_anonymous,
            timer,
            permissions: Mutex::new(unknown),
        }
    }

    /// Whether the API server accepts our credential.
    ///
    /// # Errors
    /// It does not; in words.
    pub fn credential(&self) -> Result<(), String> {
        match self.forwarder.is_turned_down() {
            true => Err("the API server turned the proxy's own credential down (401)".to_owned()),
            false => Ok(()),
        }
    }

    /// Whether the proxy may do what it has to.
    ///
    /// # Errors
    /// What is missing, with the rules to add.
    pub fn permissions(&self) -> Result<(), String> {
        self.permissions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the API server once, and remembers the answer.
    ///
    /// # Errors
    /// What is missing.
    pub async fn look(&self) -> Result<(), String> {
        if self.settings.self_check == SelfCheck::Off {
            return Ok(());
        }
        let mapped = self.live.mapped();
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
                Ok(()) => tracing::info!("the proxy's account has every permission it can need"),
                Err(missing) => tracing::error!("{missing}"),
            }
        }
        if self.settings.self_check == SelfCheck::Required {
            known.clone_from(&verdict);
        }
        verdict
    }

    /// Asks again and again.
    pub async fn keep_looking(&self) {
        loop {
            let pause = if self.look().await.is_ok() { LATER } else { SOON };
            self.timer.sleep(pause).await;
        }
    }
}

/// Permissions change like files do: they are looked at again and again, and when somebody asks (SIGHUP).
#[derive(Debug)]
pub struct Looking {
    standing: Arc<Standing>,
    is_begun: AtomicBool,
}

impl Looking {
    /// Nobody looks yet.
    pub fn new(standing: Arc<Standing>) -> Self {
        Looking { standing, is_begun: AtomicBool::new(false) }
    }
}

impl Follows for Looking {
    fn watched(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn look(&self) {
        let standing = Arc::clone(&self.standing);
        if self.is_begun.swap(true, Ordering::Relaxed) {
            tokio::spawn(async move { standing.look().await });
        } else {
            tokio::spawn(async move { standing.keep_looking().await });
        }
    }
}

/// The credential as a condition of readiness.
#[derive(Debug)]
pub struct Credential(pub Arc<Standing>);

/// The permissions as one.
#[derive(Debug)]
pub struct Permissions(pub Arc<Standing>);

impl Check for Credential {
    fn name(&self) -> &'static str {
        "upstream-credential"
    }

    fn check(&self) -> Result<(), String> {
        self.0.credential()
    }
}

impl Check for Permissions {
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

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing").field("permissions", &self.permissions()).finish_non_exhaustive()
    }
}
