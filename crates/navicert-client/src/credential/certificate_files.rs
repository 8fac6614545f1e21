//! A certificate and its key in two files that somebody else renews (client-credentials.md C163, C455), beside whatever
//! token there is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use navicert_plugin::detach;
use navicert_types::Clock;
use zeroize::Zeroizing;

use super::choose::ChooseError;
use super::{
    Asking, BoxFuture, Credential, CredentialError, CredentialSource, Generation, Identity, Refused,
    SharedFiles,
};

/// How often the files are read, at most (C455).
const PERIOD: Duration = Duration::from_secs(1);

/// Reads a pair again and again, at most once a second, when a request comes: sooner than client-go, which looks when a
/// connection is opened and every five minutes. A pair that cannot be read or does not match leaves the old one in use:
/// whoever renews the two may be half way through.
#[derive(Clone)]
pub struct CertificateFiles(Arc<Inner>);

struct Inner {
    pair: PairFiles,
    token: Arc<dyn CredentialSource>,
    clock: Arc<dyn Clock>,
    held: ArcSwap<Held>,
    /// Held while the files are looked at, so that they are looked at once.
    looking: Mutex<()>,
}

/// Where a pair is.
pub(crate) struct PairFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) files: SharedFiles,
}

struct Held {
    credential: Arc<Credential>,
    /// The token's own generation.
    token: Generation,
    /// When the files were looked at, on the monotonic clock.
    read_at: Duration,
}

impl PairFiles {
    pub(super) fn read(&self) -> Result<Identity, ChooseError> {
        let certificate = self.file("client-cert", &self.certificate)?;
        let key = self.file("client-key", &self.key)?;
        Ok(Identity::from_pem(&certificate, &key)?)
    }

    fn file(&self, field: &'static str, path: &Path) -> Result<Zeroizing<Vec<u8>>, ChooseError> {
        let unreadable = |source| ChooseError::Unreadable {
            field,
            path: path.display().to_string(),
            source: Arc::new(source),
        };
        self.files.read(path).map(Zeroizing::new).map_err(unreadable)
    }
}

impl CertificateFiles {
    /// A source for this pair, read now, and the token of another source.
    ///
    /// # Errors
    /// The files cannot be read, or are no pair.
    pub(crate) fn new(
        pair: PairFiles,
        token: Arc<dyn CredentialSource>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ChooseError> {
        let identity = Arc::new(pair.read()?);
        let of_token = token.ready();
        let credential = Credential {
            generation: Generation::FIRST,
            authorization: of_token.as_ref().and_then(|of_token| of_token.authorization.clone()),
            identity: Some(identity),
            expires: None,
        };
        let held = Held {
            credential: Arc::new(credential),
            token: of_token.map_or(Generation::FIRST, |of_token| of_token.generation),
            read_at: clock.monotonic(),
        };
        let held = ArcSwap::from_pointee(held);
        Ok(CertificateFiles(Arc::new(Inner { pair, token, clock, held, looking: Mutex::new(()) })))
    }

    async fn young(&self, asking: Asking) -> Result<Arc<Credential>, CredentialError> {
        let token = match self.0.token.ready() {
            Some(token) => token,
            None => self.0.token.current(asking).await?,
        };
        if let Some(credential) = self.0.held_with(token.generation) {
            return Ok(credential);
        }
        let (inner, fallback) = (Arc::clone(&self.0), Arc::clone(&self.0.held.load().credential));
        Ok(detach("certificate-files", move || inner.look(&token)).await.unwrap_or(fallback))
    }
}

impl CredentialSource for CertificateFiles {
    fn ready(&self) -> Option<Arc<Credential>> {
        let token = self.0.token.ready()?;
        self.0.held_with(token.generation)
    }

    fn current(&self, asking: Asking) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(self.young(asking))
    }

    fn refused(
        &self,
        generation: Generation,
        reason: Refused,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        Box::pin(async move {
            let of_token = self.0.held.load().token;
            if self.0.held.load().credential.generation == generation {
                self.0.token.refused(of_token, reason).await?;
            }
            let credential = self.young(Asking::Background).await?;
            Ok(Some(credential).filter(|credential| credential.generation != generation))
        })
    }

    fn hint(&self) -> Option<&str> {
        self.0.token.hint()
    }
}

impl Inner {
    fn is_young(&self, held: &Held) -> bool {
        self.clock.monotonic().saturating_sub(held.read_at) < PERIOD
    }

    fn held_with(&self, token: Generation) -> Option<Arc<Credential>> {
        let held = self.held.load();
        (held.token == token && self.is_young(&held)).then(|| Arc::clone(&held.credential))
    }

    /// Reads the files if it is time to; a new pair or a new token is another generation.
    fn look(&self, token: &Credential) -> Arc<Credential> {
        let _alone = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let held = self.held.load_full();
        let old = held.credential.identity.clone();
        let (identity, read_at) = match self.is_young(&held) {
            true => (old, held.read_at),
            false => (self.pair_or(old), self.clock.monotonic()),
        };
        let is_same =
            held.token == token.generation && same(identity.as_ref(), held.credential.identity.as_ref());
        let credential = if is_same {
            Arc::clone(&held.credential)
        } else {
            Arc::new(Credential {
                generation: held.credential.generation.next(),
                authorization: token.authorization.clone(),
                identity,
                expires: None,
            })
        };
        let held = Held { credential: Arc::clone(&credential), token: token.generation, read_at };
        self.held.store(Arc::new(held));
        credential
    }

    fn pair_or(&self, old: Option<Arc<Identity>>) -> Option<Arc<Identity>> {
        match self.pair.read() {
            Ok(identity) => Some(Arc::new(identity)),
            Err(error) => {
                tracing::warn!(%error, "the last client certificate that was read is used");
                old
            }
        }
    }
}

fn same(one: Option<&Arc<Identity>>, other: Option<&Arc<Identity>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is_same(other),
        (None, None) => true,
        _ => false,
    }
}

impl fmt::Debug for CertificateFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateFiles")
            .field("certificate", &self.0.pair.certificate)
            .field("token", &self.0.token)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
