//! A client certificate in two files that somebody else renews (client-credentials.md C163, C455).

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use navicert_types::Clock;
use zeroize::Zeroizing;

use super::settings::Around;
use crate::credential::{
    Asking, BoxFuture, Credential, CredentialError, CredentialSource, Generation, Identity, Refused,
    SharedFiles,
};
use crate::kubeconfig::Effective;

/// How often the files are read, at most (C455).
const PERIOD: Duration = Duration::from_secs(1);

/// Another source's credential, with the certificate in two files beside it.
///
/// The files are read again at most once per second, when a request comes: sooner than client-go, which looks when a
/// connection is opened and every five minutes. A pair that cannot be read or does not match leaves the old one in use:
/// whoever renews the two may be half way through.
pub struct CertificateFiles(Arc<Inner>);

struct Inner {
    source: Arc<dyn CredentialSource>,
    certificate: PathBuf,
    key: PathBuf,
    files: SharedFiles,
    clock: Arc<dyn Clock>,
    held: ArcSwap<Held>,
    /// On the monotonic clock, in milliseconds.
    next_look: AtomicU64,
    changing: Mutex<()>,
}

/// What was put together last.
struct Held {
    /// Of the other source; compared by pointer.
    of: Arc<Credential>,
    credential: Arc<Credential>,
}

impl CertificateFiles {
    /// A source for a user: the same, unless its certificate and key are both in files, which are then read again now
    /// and then. If either is inline, the pair stays as it is (C163).
    pub fn watch(
        source: Arc<dyn CredentialSource>,
        effective: &Effective,
        around: &Around,
    ) -> Arc<dyn CredentialSource> {
        let user = &effective.user;
        let inline = !user.client_certificate_data.is_empty() || !user.client_key_data.is_empty();
        if !effective.is_https() || inline || user.client_certificate.is_empty() || user.client_key.is_empty()
        {
            return source;
        }
        let (certificate, key) = (PathBuf::from(&user.client_certificate), PathBuf::from(&user.client_key));
        let (files, clock) = (Arc::clone(&around.files), Arc::clone(&around.clock));
        Arc::new(CertificateFiles::new(source, certificate, key, files, clock))
    }

    /// The credentials of `source` with the certificate in these files, which were just read: `source` has it.
    pub fn new(
        source: Arc<dyn CredentialSource>,
        certificate: PathBuf,
        key: PathBuf,
        files: SharedFiles,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let of = source.ready().unwrap_or_else(|| Arc::new(Credential::anonymous()));
        let first = Credential { generation: Generation::FIRST, ..Credential::clone(&of) };
        let held = ArcSwap::from_pointee(Held { of, credential: Arc::new(first) });
        let (next_look, changing) = (AtomicU64::new(0), Mutex::default());
        CertificateFiles(Arc::new(Inner {
            source,
            certificate,
            key,
            files,
            clock,
            held,
            next_look,
            changing,
        }))
    }
}

impl Inner {
    fn is_due(&self) -> bool {
        milliseconds(self.clock.monotonic()) >= self.next_look.load(Ordering::Relaxed)
    }

    /// Puts the other source's credential and the files' certificate together anew, if either has changed.
    fn put_together(&self, of: Arc<Credential>) -> Arc<Credential> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let held = self.held.load_full();
        let mut identity = held.credential.identity.clone();
        if self.is_due() {
            let next = milliseconds(self.clock.monotonic() + PERIOD);
            self.next_look.store(next, Ordering::Relaxed);
            match self.read() {
                Some(new) if !identity.as_ref().is_some_and(|old| old.is_same(&new)) => {
                    identity = Some(Arc::new(new));
                }
                _ => {}
            }
        }
        let same_identity = match (&identity, &held.credential.identity) {
            (Some(new), Some(old)) => Arc::ptr_eq(new, old),
            (None, None) => true,
            _ => false,
        };
        if same_identity && Arc::ptr_eq(&of, &held.of) {
            return Arc::clone(&held.credential);
        }
        let credential = Arc::new(Credential {
            generation: held.credential.generation.next(),
            identity,
            ..Credential::clone(&of)
        });
        self.held.store(Arc::new(Held { of, credential: Arc::clone(&credential) }));
        credential
    }

    fn read(&self) -> Option<Identity> {
        let read = |path: &PathBuf| match self.files.read(path) {
            Ok(text) => Some(Zeroizing::new(text)),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the client certificate stays as it was");
                None
            }
        };
        let (certificate, key) = (read(&self.certificate)?, read(&self.key)?);
        match Identity::from_pem(&certificate, &key) {
            Ok(identity) => Some(identity),
            Err(error) => {
                let path = self.certificate.display();
                tracing::warn!(%path, %error, "the client certificate stays as it was");
                None
            }
        }
    }
}

impl CredentialSource for CertificateFiles {
    fn ready(&self) -> Option<Arc<Credential>> {
        let of = self.0.source.ready()?;
        let held = self.0.held.load();
        (Arc::ptr_eq(&of, &held.of) && !self.0.is_due()).then(|| Arc::clone(&held.credential))
    }

    fn current(&self, asking: Asking) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(async move {
            let of = match self.0.source.ready() {
                Some(of) => of,
                None => self.0.source.current(asking).await?,
            };
            Ok(self.0.put_together_elsewhere(of).await)
        })
    }

    fn refused(
        &self,
        generation: Generation,
        reason: Refused,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        Box::pin(async move {
            let held = self.0.held.load_full();
            if held.credential.generation != generation {
                return Ok(Some(Arc::clone(&held.credential)));
            }
            let of = match self.0.source.refused(held.of.generation, reason).await? {
                Some(new) => new,
                None => Arc::clone(&held.of),
            };
            let now = self.0.put_together_elsewhere(of).await;
            Ok((now.generation != generation).then_some(now))
        })
    }

    fn hint(&self) -> Option<&str> {
        self.0.source.hint()
    }
}

impl Inner {
    /// Where reading a file may block.
    async fn put_together_elsewhere(self: &Arc<Self>, of: Arc<Credential>) -> Arc<Credential> {
        let (inner, other) = (Arc::clone(self), Arc::clone(&of));
        match tokio::task::spawn_blocking(move || inner.put_together(other)).await {
            Ok(credential) => credential,
            Err(_) => self.held.load().credential.clone(),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for CertificateFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateFiles").field("certificate", &self.0.certificate).finish_non_exhaustive()
    }
}
