//! A client certificate and key in one or two files that another program renews, combined with the user's token.
// C163, C455

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use navicert_plugin::detach;
use navicert_types::{Clock, error_chain};
use zeroize::Zeroizing;

use super::{
    BoxFuture, ClientIdentity, Credential, CredentialError, CredentialSource, Generation, IdentityError,
    Rejection, RequestOrigin, SharedFiles,
};

/// How often the files are read, at most.
// C455
const MIN_READ_INTERVAL: Duration = Duration::from_secs(1);

/// Rereads a certificate and key when a request comes, at most once a second. (client-go rereads them when it opens a
/// connection and every five minutes.) A pair that cannot be read or does not match leaves the old one in use: the
/// program that renews the files may have written only one of them.
#[derive(Clone)]
pub(crate) struct CertificateFiles(Arc<Inner>);

struct Inner {
    pair: KeyPairFiles,
    token: Arc<dyn CredentialSource>,
    clock: Arc<dyn Clock>,
    cached: ArcSwap<CachedPair>,
    /// Held while the files are read, so that only one thread reads them.
    read_lock: Mutex<()>,
}

/// The paths of a certificate and its key.
pub(crate) struct KeyPairFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) files: SharedFiles,
}

/// Why a pair of files cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyPairError {
    #[error("unable to read {field} {path}")]
    Unreadable { field: &'static str, path: String, source: std::io::Error },
    #[error("invalid client certificate")]
    Identity(#[from] IdentityError),
}

struct CachedPair {
    credential: Arc<Credential>,
    /// Generation of the token; `None` until the token's source has provided one.
    token: Option<Generation>,
    /// When the files were last read, on the monotonic clock.
    read_at: Duration,
}

impl KeyPairFiles {
    pub(crate) fn read(&self) -> Result<ClientIdentity, KeyPairError> {
        let certificate = self.file("client-cert", &self.certificate)?;
        // One file with both is read once, so that both are of the same version.
        if self.certificate == self.key {
            return Ok(ClientIdentity::from_pem(&certificate, &certificate)?);
        }
        let key = self.file("client-key", &self.key)?;
        Ok(ClientIdentity::from_pem(&certificate, &key)?)
    }

    fn file(&self, field: &'static str, path: &Path) -> Result<Zeroizing<Vec<u8>>, KeyPairError> {
        let unreadable =
            |source| KeyPairError::Unreadable { field, path: path.display().to_string(), source };
        self.files.read(path).map(Zeroizing::new).map_err(unreadable)
    }
}

impl CertificateFiles {
    /// Creates a source that combines the pair with another source's token. The pair was read before, at a time on the
    /// monotonic clock.
    pub(crate) fn new(
        pair: KeyPairFiles,
        (identity, read_at): (Arc<ClientIdentity>, Duration),
        token: Arc<dyn CredentialSource>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let token_credential = token.cached();
        let credential = Credential {
            generation: Generation::FIRST,
            authorization: token_credential
                .as_ref()
                .and_then(|token_credential| token_credential.authorization.clone()),
            identity: Some(identity),
            expires: token_credential.as_ref().and_then(|token_credential| token_credential.expires),
        };
        let cached = CachedPair {
            credential: Arc::new(credential),
            token: token_credential.map(|token_credential| token_credential.generation),
            read_at,
        };
        let cached = ArcSwap::from_pointee(cached);
        CertificateFiles(Arc::new(Inner { pair, token, clock, cached, read_lock: Mutex::new(()) }))
    }

    async fn get_fresh(&self, origin: RequestOrigin) -> Result<Arc<Credential>, CredentialError> {
        let token = match self.0.token.cached() {
            Some(token) => token,
            None => self.0.token.get(origin).await?,
        };
        if let Some(credential) = self.0.cached_with(token.generation) {
            return Ok(credential);
        }
        let (inner, fallback) = (Arc::clone(&self.0), Arc::clone(&self.0.cached.load().credential));
        Ok(detach("certificate-files", move || inner.reload(&token)).await.unwrap_or(fallback))
    }
}

impl CredentialSource for CertificateFiles {
    fn cached(&self) -> Option<Arc<Credential>> {
        let token = self.0.token.cached()?;
        self.0.cached_with(token.generation)
    }

    fn get(&self, origin: RequestOrigin) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(self.get_fresh(origin))
    }

    fn refresh_rejected(
        &self,
        generation: Generation,
        reason: Rejection,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        Box::pin(async move {
            let cached = self.0.cached.load_full();
            if let Some(token) = cached.token.filter(|_| cached.credential.generation == generation) {
                self.0.token.refresh_rejected(token, reason).await?;
            }
            let credential = self.get_fresh(RequestOrigin::Background).await?;
            Ok(Some(credential).filter(|credential| credential.generation != generation))
        })
    }

    fn hint(&self) -> Option<&str> {
        self.0.token.hint()
    }
}

impl Inner {
    fn is_fresh(&self, cached: &CachedPair) -> bool {
        self.clock.monotonic().saturating_sub(cached.read_at) < MIN_READ_INTERVAL
    }

    fn cached_with(&self, token: Generation) -> Option<Arc<Credential>> {
        let cached = self.cached.load();
        (cached.token == Some(token) && self.is_fresh(&cached)).then(|| Arc::clone(&cached.credential))
    }

    /// Rereads the files if it is due; a new pair or a new token starts a new generation.
    fn reload(&self, token: &Credential) -> Arc<Credential> {
        let _guard = self.read_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = self.cached.load_full();
        let old = cached.credential.identity.clone();
        let (identity, read_at) = match self.is_fresh(&cached) {
            true => (old, cached.read_at),
            false => (self.read_pair_or(old), self.clock.monotonic()),
        };
        let is_same = cached.token == Some(token.generation)
            && same_identity(identity.as_ref(), cached.credential.identity.as_ref());
        let credential = if is_same {
            Arc::clone(&cached.credential)
        } else {
            Arc::new(Credential {
                generation: cached.credential.generation.next(),
                authorization: token.authorization.clone(),
                identity,
                expires: token.expires,
            })
        };
        let cached =
            CachedPair { credential: Arc::clone(&credential), token: Some(token.generation), read_at };
        self.cached.store(Arc::new(cached));
        credential
    }

    fn read_pair_or(&self, old: Option<Arc<ClientIdentity>>) -> Option<Arc<ClientIdentity>> {
        match self.pair.read() {
            Ok(identity) => Some(Arc::new(identity)),
            Err(error) => {
                tracing::warn!(
                    event = "client_certificate_reload_failed",
                    error = error_chain(&error),
                    "failed to reload client certificate, keeping the previous one"
                );
                old
            }
        }
    }
}

fn same_identity(one: Option<&Arc<ClientIdentity>>, other: Option<&Arc<ClientIdentity>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.has_same_chain(other),
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
