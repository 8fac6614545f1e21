//! A bearer token in a file that another program renews, for example the kubelet.
// C162

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::HeaderValue;
use navicert_plugin::detach;
use navicert_types::{Clock, Secret, error_chain};
use thiserror::Error;
use zeroize::Zeroizing;

use super::{
    BoxFuture, ClientIdentity, Credential, CredentialError, CredentialSource, Generation, Rejection,
    RequestOrigin, SharedFiles, bearer,
};
use crate::kubeconfig::FileSystem;

/// The file is reread after this time: one minute, less ten seconds.
const MAX_AGE: Duration = Duration::from_secs(50);
/// Minimum interval between reads caused by rejected tokens.
const REJECTION_READ_INTERVAL: Duration = Duration::from_secs(10);

/// Why a token file has no usable token.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("failed to read token file {path:?}")]
    Unreadable {
        /// The file.
        path: String,
        /// I/O error reported by the operating system.
        source: Arc<io::Error>,
    },
    /// The file is empty or contains only white space.
    #[error("read empty token from file {path:?}")]
    Empty {
        /// The file.
        path: String,
    },
    /// The content is not valid in a header.
    #[error("invalid token in file {path:?}: not allowed in a header")]
    NotAToken {
        /// The file.
        path: String,
    },
}

/// Reads a token from a file, and rereads it periodically.
///
/// If a read fails, the last token stays in use.
#[derive(Clone)]
pub(crate) struct TokenFile(Arc<Inner>);

struct Inner {
    path: PathBuf,
    files: SharedFiles,
    clock: Arc<dyn Clock>,
    cached: ArcSwap<CachedToken>,
    state: Mutex<RejectionState>,
    hint: Option<String>,
}

struct CachedToken {
    credential: Arc<Credential>,
    /// When the file was last read, on the monotonic clock.
    read_at: Duration,
}

#[derive(Default)]
struct RejectionState {
    read_after_rejection: Option<Duration>,
}

impl TokenFile {
    /// Creates a source that uses `token` while the file cannot be read; `identity` is sent together with the token.
    pub(crate) fn new(
        path: PathBuf,
        token: HeaderValue,
        identity: Option<Arc<ClientIdentity>>,
        files: SharedFiles,
        clock: Arc<dyn Clock>,
        hint: Option<String>,
    ) -> Self {
        let authorization = read_token_file(&path, &*files).unwrap_or(token);
        let credential = Arc::new(Credential {
            generation: Generation::FIRST,
            authorization: Some(authorization),
            identity,
            expires: None,
        });
        let cached = ArcSwap::from_pointee(CachedToken { credential, read_at: clock.monotonic() });
        TokenFile(Arc::new(Inner { path, files, clock, cached, state: Mutex::default(), hint }))
    }
}

impl CredentialSource for TokenFile {
    fn cached(&self) -> Option<Arc<Credential>> {
        let cached = self.0.cached.load();
        let age = self.0.clock.monotonic().saturating_sub(cached.read_at);
        (age <= MAX_AGE).then(|| Arc::clone(&cached.credential))
    }

    fn get(&self, _: RequestOrigin) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(async {
            match self.cached() {
                Some(credential) => Ok(credential),
                None => Ok(self.reread().await),
            }
        })
    }

    /// Rereads the file, at most once in ten seconds.
    // C162 as decided
    fn refresh_rejected(
        &self,
        generation: Generation,
        _: Rejection,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        Box::pin(async move {
            let cached = Arc::clone(&self.0.cached.load().credential);
            if cached.generation != generation {
                return Ok(Some(cached));
            }
            if !self.0.may_read_after_rejection() {
                return Ok(None);
            }
            Ok(Some(self.reread().await).filter(|credential| credential.generation != generation))
        })
    }

    fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl TokenFile {
    /// Reads the file on a separate thread: it may be on a slow disk.
    async fn reread(&self) -> Arc<Credential> {
        let inner = Arc::clone(&self.0);
        let reread = detach("token-file", move || inner.reread()).await;
        reread.unwrap_or_else(|_| Arc::clone(&self.0.cached.load().credential))
    }
}

impl Inner {
    fn reread(&self) -> Arc<Credential> {
        let mut credential = Arc::clone(&self.cached.load().credential);
        match read_token_file(&self.path, &*self.files) {
            Ok(authorization) if credential.authorization.as_ref() == Some(&authorization) => {}
            Ok(authorization) => {
                credential = Arc::new(Credential {
                    generation: credential.generation.next(),
                    authorization: Some(authorization),
                    identity: credential.identity.clone(),
                    expires: None,
                });
            }
            Err(error) => tracing::warn!(
                event = "token_file_reload_failed",
                error = error_chain(&error),
                "failed to reload token file, keeping the previous token"
            ),
        }
        let read_at = self.clock.monotonic();
        self.cached.store(Arc::new(CachedToken { credential: Arc::clone(&credential), read_at }));
        credential
    }

    fn may_read_after_rejection(&self) -> bool {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        let too_soon = |at: Duration| now.saturating_sub(at) < REJECTION_READ_INTERVAL;
        let may = !state.read_after_rejection.is_some_and(too_soon);
        if may {
            state.read_after_rejection = Some(now);
        }
        may
    }

    fn lock(&self) -> MutexGuard<'_, RejectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenFile").field("path", &self.0.path).finish_non_exhaustive()
    }
}

/// The token, without surrounding white space, as the value of an `Authorization` header.
pub(crate) fn read_token_file(path: &Path, files: &dyn FileSystem) -> Result<HeaderValue, TokenFileError> {
    let path_text = || path.display().to_string();
    let content = files
        .read(path)
        .map(Zeroizing::new)
        .map_err(|source| TokenFileError::Unreadable { path: path_text(), source: Arc::new(source) })?;
    let text = str::from_utf8(&content).map_err(|_| TokenFileError::NotAToken { path: path_text() })?.trim();
    if text.is_empty() {
        return Err(TokenFileError::Empty { path: path_text() });
    }
    bearer(&Secret::new(text.to_owned())).map_err(|_| TokenFileError::NotAToken { path: path_text() })
}

#[cfg(test)]
mod tests;
