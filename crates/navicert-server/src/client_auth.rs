//! Authentication of the clients of the webhook. A token review endpoint also helps an attacker with a stolen token,
//! so clients need a certificate or a bearer token, unless the operator explicitly allows unauthenticated clients.
// S223, A71

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use http::HeaderName;
use http::request::Parts;
use navicert_types::{Secret, error_chain};

use crate::bearer;
use crate::confinement;
use crate::listener::Peer;
use crate::problem::Problem;
use crate::reload::Reloadable;

/// Which clients may use the webhook.
#[derive(Debug)]
pub struct ClientAuth {
    is_open: bool,
    /// `None`: client certificates are not accepted. Empty: any verified certificate is.
    allowed_names: Option<Vec<String>>,
    token: Option<Arc<TokenFile>>,
}

impl ClientAuth {
    /// Allows every client. Use it only where the network restricts access.
    pub fn allow_all() -> Self {
        ClientAuth { is_open: true, allowed_names: None, token: None }
    }

    /// Requires a verified client certificate with one of these names (any name if the list is empty), or this token.
    /// Rejects every client if both are `None`.
    pub fn require(names: Option<Vec<String>>, token: Option<Arc<TokenFile>>) -> Self {
        ClientAuth { is_open: false, allowed_names: names, token }
    }

    /// Checks that the client may use the webhook.
    ///
    /// # Errors
    /// 401 without valid credentials, 403 for a certificate whose name is not allowed.
    pub fn check(&self, head: &Parts, peer: &Peer, header: HeaderName) -> Result<(), Problem> {
        if self.is_open {
            return Ok(());
        }
        if let (Some(names), Some(presented)) = (&self.allowed_names, peer.names()) {
            if names.is_empty() || presented.iter().any(|name| names.contains(name)) {
                return Ok(());
            }
            if self.token.is_none() {
                let message = "client certificate name is not allowed to use this webhook".to_owned();
                return Err(Problem::Forbidden(message));
            }
        }
        match (&self.token, bearer::token_in(&head.headers, header)?) {
            (Some(token), Some(given)) if token.matches(given) => Ok(()),
            _ => Err(Problem::Unauthorized),
        }
    }
}

/// A bearer token in a file, reloaded when the file changes.
pub struct TokenFile {
    path: PathBuf,
    token: ArcSwap<Secret<String>>,
}

/// The token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("failed to read bearer token file `{}`{}", path.display(), confinement::read_hint(path))]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// I/O error reported by the operating system.
        source: io::Error,
    },
    /// The file contains no usable token.
    #[error("invalid bearer token file `{}`: expected a token of at least {MIN_TOKEN_CHARS} characters without white space", path.display())]
    InvalidToken {
        /// Path of the file.
        path: PathBuf,
    },
}

/// Shorter tokens can be guessed.
const MIN_TOKEN_CHARS: usize = 16;

impl TokenFile {
    /// Reads the token file.
    ///
    /// # Errors
    /// The file cannot be read or contains no usable token.
    pub fn open(path: &Path) -> Result<Arc<Self>, TokenFileError> {
        let token = ArcSwap::from_pointee(read(path)?);
        Ok(Arc::new(TokenFile { path: path.to_owned(), token }))
    }

    fn matches(&self, given: &str) -> bool {
        verify_slices_are_equal(given.as_bytes(), self.token.load().expose().as_bytes()).is_ok()
    }
}

impl Reloadable for TokenFile {
    fn watched_files(&self) -> Vec<PathBuf> {
        vec![self.path.clone()]
    }

    fn reload_if_changed(&self) {
        match read(&self.path) {
            Ok(token) if token != **self.token.load() => {
                self.token.store(Arc::new(token));
                tracing::info!(event = "bearer_token_reloaded", file = %self.path.display(), "reloaded the clients' bearer token");
            }
            Ok(_) => {}
            Err(error) => tracing::error!(
                event = "bearer_token_reload_failed",
                error = error_chain(&error),
                "failed to reload the clients' bearer token, previous token stays in use"
            ),
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
    if token.len() < MIN_TOKEN_CHARS || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(TokenFileError::InvalidToken { path: path.to_owned() });
    }
    Ok(Secret::from(token.to_owned()))
}
