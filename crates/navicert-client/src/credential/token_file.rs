//! A bearer token in a file that somebody else renews, a kubelet for instance (client-credentials.md C162).

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::HeaderValue;
use navicert_plugin::detach;
use navicert_types::{Clock, Secret};
use thiserror::Error;
use zeroize::Zeroizing;

use super::{
    Asking, BoxFuture, Credential, CredentialError, CredentialSource, Generation, Identity, Refused,
    SharedFiles,
};
use crate::exec::response::{ResponseError, bearer};

/// How old a copy of the file may be: a period of a minute, less ten seconds.
const MAX_AGE: Duration = Duration::from_secs(50);
/// How soon a refusal may make us look again.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(10);

/// Why a token file gives no token.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("failed to read token file {path:?}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// The operating system's word.
        source: Arc<io::Error>,
    },
    /// There is nothing in it but white space.
    #[error("read empty token from file {path:?}")]
    Empty {
        /// The file.
        path: String,
    },
    /// What is in it cannot be sent.
    #[error("token file {path:?} holds something that no header can carry")]
    NotAToken {
        /// The file.
        path: String,
    },
}

/// Reads a token from a file, again and again.
///
/// What was read last is used until something better is: a failed attempt to read keeps the old token.
#[derive(Clone)]
pub struct TokenFile(Arc<Inner>);

struct Inner {
    path: PathBuf,
    files: SharedFiles,
    clock: Arc<dyn Clock>,
    held: ArcSwap<Held>,
    state: Mutex<State>,
    hint: Option<String>,
}

struct Held {
    credential: Arc<Credential>,
    /// When the file was looked at, on the monotonic clock.
    read_at: Duration,
}

#[derive(Default)]
struct State {
    looked_after_refusal: Option<Duration>,
}

impl TokenFile {
    /// A source for this file, read now. `token` is what to use as long as the file cannot be read, `identity` goes with
    /// whatever token there is.
    ///
    /// # Errors
    /// The file cannot be read and there is no `token`.
    pub fn new(
        path: PathBuf,
        token: Option<HeaderValue>,
        identity: Option<Arc<Identity>>,
        files: SharedFiles,
        clock: Arc<dyn Clock>,
        hint: Option<String>,
    ) -> Result<Self, TokenFileError> {
        let authorization = match (read(&path, &files), token) {
            (Ok(read), _) => read,
            (Err(_), Some(token)) => token,
            (Err(error), None) => return Err(error),
        };
        let credential = Arc::new(Credential {
            generation: Generation::FIRST,
            authorization: Some(authorization),
            identity,
            expires: None,
        });
        let held = ArcSwap::from_pointee(Held { credential, read_at: clock.monotonic() });
        Ok(TokenFile(Arc::new(Inner { path, files, clock, held, state: Mutex::default(), hint })))
    }
}

impl CredentialSource for TokenFile {
    fn ready(&self) -> Option<Arc<Credential>> {
        let held = self.0.held.load();
        let age = self.0.clock.monotonic().saturating_sub(held.read_at);
        (age <= MAX_AGE).then(|| Arc::clone(&held.credential))
    }

    fn current(&self, _: Asking) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(async {
            match self.ready() {
                Some(credential) => Ok(credential),
                None => Ok(self.look().await),
            }
        })
    }

    /// Looks again, once in ten seconds (C162 as decided).
    fn refused(
        &self,
        generation: Generation,
        _: Refused,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        Box::pin(async move {
            let held = Arc::clone(&self.0.held.load().credential);
            if held.generation != generation {
                return Ok(Some(held));
            }
            if !self.0.may_look_after_refusal() {
                return Ok(None);
            }
            Ok(Some(self.look().await).filter(|credential| credential.generation != generation))
        })
    }

    fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl TokenFile {
    /// Reads the file on a thread of its own: it may lie on a slow disk.
    async fn look(&self) -> Arc<Credential> {
        let inner = Arc::clone(&self.0);
        let looked = detach("token-file", move || inner.reread()).await;
        looked.unwrap_or_else(|_| Arc::clone(&self.0.held.load().credential))
    }
}

impl Inner {
    fn reread(&self) -> Arc<Credential> {
        let mut credential = Arc::clone(&self.held.load().credential);
        match read(&self.path, &self.files) {
            Ok(authorization) if credential.authorization.as_ref() == Some(&authorization) => {}
            Ok(authorization) => {
                credential = Arc::new(Credential {
                    generation: credential.generation.next(),
                    authorization: Some(authorization),
                    identity: credential.identity.clone(),
                    expires: None,
                });
            }
            Err(error) => tracing::warn!(%error, "the last token that was read is used"),
        }
        let read_at = self.clock.monotonic();
        self.held.store(Arc::new(Held { credential: Arc::clone(&credential), read_at }));
        credential
    }

    fn may_look_after_refusal(&self) -> bool {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        let too_soon = |at: Duration| now.saturating_sub(at) < REFUSAL_INTERVAL;
        let may = !state.looked_after_refusal.is_some_and(too_soon);
        if may {
            state.looked_after_refusal = Some(now);
        }
        may
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenFile").field("path", &self.0.path).finish_non_exhaustive()
    }
}

/// The token, surrounding white space taken off.
fn read(path: &std::path::Path, files: &SharedFiles) -> Result<HeaderValue, TokenFileError> {
    let shown = || path.display().to_string();
    let content = files
        .read(path)
        .map(Zeroizing::new)
        .map_err(|source| TokenFileError::Unreadable { path: shown(), source: Arc::new(source) })?;
    let text = str::from_utf8(&content).map_err(|_| TokenFileError::NotAToken { path: shown() })?.trim();
    if text.is_empty() {
        return Err(TokenFileError::Empty { path: shown() });
    }
    bearer(&Secret::new(text.to_owned()))
        .map_err(|_: ResponseError| TokenFileError::NotAToken { path: shown() })
}

#[cfg(test)]
mod tests;
