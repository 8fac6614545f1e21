//! The API server's version, read when `kubectl --as` needs it and kept for a minute: the control plane may be upgraded
//! while the proxy runs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_client::transport::Transport;
use navicert_types::{Clock, error_chain};

use super::reviews::{CONSTRAINED_IMPERSONATION_SINCE, server_version};

/// How long a version is kept.
const VERSION_TTL: Duration = Duration::from_secs(60);

/// The cached version.
pub(super) struct ServerVersion {
    known: Mutex<Option<CachedVersion>>,
    clock: Arc<dyn Clock>,
}

#[derive(Clone, Copy)]
struct CachedVersion {
    version: (u32, u32),
    expires_at: Duration,
}

impl ServerVersion {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        ServerVersion { known: Mutex::default(), clock }
    }

    /// Whether the API server has constrained impersonation. Without an answer it has not: the legacy permission is the
    /// one that every version requires.
    // S237
    pub(super) async fn has_constrained_impersonation(&self, upstream: &Transport) -> bool {
        let now = self.clock.monotonic();
        let cached = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = cached.filter(|cached| cached.expires_at > now) {
            return cached.version >= CONSTRAINED_IMPERSONATION_SINCE;
        }
        match server_version(upstream, &[]).await {
            Ok(version) => {
                let cached = CachedVersion { version, expires_at: now.saturating_add(VERSION_TTL) };
                *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(cached);
                version >= CONSTRAINED_IMPERSONATION_SINCE
            }
            Err(error) => {
                tracing::debug!(
                    event = "server_version_unknown",
                    error = error_chain(&error),
                    "failed to read the API server's version"
                );
                false
            }
        }
    }
}

impl fmt::Debug for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerVersion").finish_non_exhaustive()
    }
}
