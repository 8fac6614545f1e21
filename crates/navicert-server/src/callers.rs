//! Who may ask about tokens: an endpoint that says whose a token is serves a thief as well (S223, A71). So a caller shows a
//! certificate or a token of its own, or the operator has said in so many words that anybody may ask.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use http::HeaderName;
use http::request::Parts;
use navicert_types::Secret;

use crate::bearer;
use crate::files::Follows;
use crate::listener::Peer;
use crate::problem::Problem;

/// Who may ask.
#[derive(Debug)]
pub struct Callers {
    is_open: bool,
    /// `None`: certificates do not count. Empty: any that verifies does.
    names: Option<Vec<String>>,
    token: Option<Arc<TokenFile>>,
}

impl Callers {
    /// Anybody. Only behind something that keeps strangers away.
    pub fn anybody() -> Self {
        Callers { is_open: true, names: None, token: None }
    }

    /// Whoever shows a certificate that the listener has verified, with one of these names (any, if there are none), or
    /// this token. With neither, nobody.
    pub fn known(names: Option<Vec<String>>, token: Option<Arc<TokenFile>>) -> Self {
        Callers { is_open: false, names, token }
    }

    /// Whether a request of this peer's comes from somebody who may ask.
    ///
    /// # Errors
    /// 401 to strangers, 403 to whoever is known and not meant.
    pub fn check(&self, head: &Parts, peer: &Peer, header: HeaderName) -> Result<(), Problem> {
        if self.is_open {
            return Ok(());
        }
        if let (Some(names), Some(shown)) = (&self.names, peer.names()) {
            if names.is_empty() || shown.iter().any(|name| names.contains(name)) {
                return Ok(());
            }
            if self.token.is_none() {
                let message = "the certificate's name is not among those that may ask".to_owned();
                return Err(Problem::Forbidden(message));
            }
        }
        match (&self.token, bearer::of(&head.headers, header)?) {
            (Some(token), Some(given)) if token.is(given) => Ok(()),
            _ => Err(Problem::Unauthorized),
        }
    }
}

/// A token in a file, which may be replaced.
pub struct TokenFile {
    path: PathBuf,
    token: ArcSwap<Secret<String>>,
}

/// Why a token's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is nothing to compare with.
    #[error("`{}` holds no token of at least {SHORTEST} characters without white space", path.display())]
    Unusable {
        /// Which one.
        path: PathBuf,
    },
}

/// Shorter ones are guessed.
const SHORTEST: usize = 16;

impl TokenFile {
    /// Reads it.
    ///
    /// # Errors
    /// It cannot be read, or holds nothing that could be a token.
    pub fn open(path: &Path) -> Result<Arc<Self>, TokenFileError> {
        let token = ArcSwap::from_pointee(read(path)?);
        Ok(Arc::new(TokenFile { path: path.to_owned(), token }))
    }

    fn is(&self, given: &str) -> bool {
        verify_slices_are_equal(given.as_bytes(), self.token.load().expose().as_bytes()).is_ok()
    }
}

impl Follows for TokenFile {
    fn watched(&self) -> Vec<PathBuf> {
        vec![self.path.clone()]
    }

    fn look(&self) {
        match read(&self.path) {
            Ok(token) if token != **self.token.load() => {
                self.token.store(Arc::new(token));
                tracing::info!(file = %self.path.display(), "the callers' token has been replaced");
            }
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "the earlier callers' token stays in use"),
        }
    }
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenFile").field("path", &self.path).finish_non_exhaustive()
    }
}

fn read(path: &Path) -> Result<Secret<String>, TokenFileError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| TokenFileError::Read { path: path.to_owned(), source })?;
    let text = zeroize::Zeroizing::new(text);
    let token = text.trim();
    if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(TokenFileError::Unusable { path: path.to_owned() });
    }
    Ok(Secret::from(token.to_owned()))
}
