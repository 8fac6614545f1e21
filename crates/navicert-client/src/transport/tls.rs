//! TLS client configuration: trusted certificate authorities and the client certificate. Each client certificate has
//! its own configuration, and sessions are never shared between them.
// C180, C181, C460, C461

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use navicert_tls::{AnyCertificate, ServerVerifier, TrustedRoots};
use navicert_types::Clock;
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::aws_lc_rs;
use rustls::time_provider::TimeProvider;
use rustls_pki_types::{CertificateDer, UnixTime};

use super::error::BuildError;
use crate::context::ClientContext;
use crate::credential::{ClientIdentity, SharedFiles};
use crate::metrics::{AuthorityReload, Recorder};

/// How often a certificate authority file is reloaded, at most.
// C181
const CA_RELOAD_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// Which certificate authorities are trusted.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Trust {
    /// The system root certificates.
    #[default]
    System,
    /// Only these certificates, in PEM.
    Pem(Vec<u8>),
    /// Only these certificates, each in DER.
    Der(Vec<Vec<u8>>),
    /// Only the certificates in this file, which is reloaded periodically.
    File(PathBuf),
    /// No verification: any server certificate is accepted.
    Insecure,
}

/// The current root certificates, and when to reload them.
pub(super) struct Roots {
    trust: Trust,
    files: SharedFiles,
    clock: Arc<dyn Clock>,
    recorder: Arc<dyn Recorder>,
    current: ArcSwap<RootVersion>,
    /// On the monotonic clock, in milliseconds.
    next_reload: AtomicU64,
    reload_lock: Mutex<()>,
}

/// Root certificates as loaded, with a version number.
pub(super) struct RootVersion {
    pub(super) number: u64,
    text: Vec<u8>,
    store: Arc<TrustedRoots>,
}

impl Roots {
    pub(super) fn new(trust: Trust, client_context: &ClientContext) -> Result<Self, BuildError> {
        let (files, clock) = (Arc::clone(&client_context.files), Arc::clone(&client_context.clock));
        let (text, store) = match &trust {
            Trust::Insecure => (Vec::new(), TrustedRoots::empty()),
            Trust::System => (Vec::new(), system_roots()),
            Trust::Pem(text) => (Vec::new(), parse(text).ok_or(BuildError::ParseAuthority)?),
            Trust::Der(certificates) => {
                let store: TrustedRoots = certificates.iter().cloned().map(CertificateDer::from).collect();
                (Vec::new(), Some(store).filter(|store| !store.is_empty()).ok_or(BuildError::ParseAuthority)?)
            }
            Trust::File(path) => {
                let text = files.read(path).map_err(|source| BuildError::ReadAuthority {
                    path: path.display().to_string(),
                    source,
                })?;
                // An empty file means that no certificate is trusted (C180).
                let store = if text.is_empty() { Some(TrustedRoots::empty()) } else { parse(&text) };
                (text, store.ok_or(BuildError::ParseAuthority)?)
            }
        };
        let current = ArcSwap::from_pointee(RootVersion { number: 0, text, store: Arc::new(store) });
        let next_look = AtomicU64::new(milliseconds(clock.monotonic() + CA_RELOAD_INTERVAL));
        let recorder = Arc::clone(&client_context.recorder);
        Ok(Roots {
            trust,
            files,
            clock,
            recorder,
            current,
            next_reload: next_look,
            reload_lock: Mutex::default(),
        })
    }

    pub(super) fn current(&self) -> Arc<RootVersion> {
        self.current.load_full()
    }

    /// Whether it is time to reload the file.
    pub(super) fn is_due(&self) -> bool {
        matches!(self.trust, Trust::File(_))
            && milliseconds(self.clock.monotonic()) >= self.next_reload.load(Ordering::Relaxed)
    }

    /// Reloads the file if it is due. A file that cannot be read, is empty or has no valid certificate changes nothing.
    // C181
    pub(super) fn reload_if_due(&self) {
        let _guard = self.reload_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let Trust::File(path) = &self.trust else { return };
        if !self.is_due() {
            return;
        }
        let next = milliseconds(self.clock.monotonic() + CA_RELOAD_INTERVAL);
        self.next_reload.store(next, Ordering::Relaxed);
        let outcome = self.reload(path);
        self.recorder.authority_reload(outcome);
        if let ("failure", reason) = outcome.labels() {
            tracing::warn!(
                event = "ca_reload_failed",
                path = %path.display(),
                reason,
                "failed to reload certificate authority, keeping the previous one"
            );
        }
    }

    fn reload(&self, path: &Path) -> AuthorityReload {
        let Ok(text) = self.files.read(path) else { return AuthorityReload::ReadError };
        let old = self.current.load_full();
        if text.is_empty() {
            return AuthorityReload::Empty;
        }
        if text == old.text {
            return AuthorityReload::Unchanged;
        }
        let Some(store) = parse(&text) else { return AuthorityReload::ParseError };
        let number = old.number.saturating_add(1);
        self.current.store(Arc::new(RootVersion { number, text, store: Arc::new(store) }));
        AuthorityReload::Updated
    }

    /// A configuration with its own session store, with or without a client certificate.
    pub(super) fn client_config(
        &self,
        version: &RootVersion,
        identity: Option<&ClientIdentity>,
        http2: bool,
    ) -> Result<ClientConfig, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let time = Arc::new(ClockTimeProvider(Arc::clone(&self.clock)));
        let tls12_only = identity.is_some_and(|identity| !identity.supports_tls13());
        let versions = if tls12_only { &[&rustls::version::TLS12][..] } else { rustls::DEFAULT_VERSIONS };
        let builder = ClientConfig::builder_with_details(Arc::clone(&provider), time)
            .with_protocol_versions(versions)?;
        let builder = match self.trust {
            Trust::Insecure => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate::new(&provider)))
            }
            _ => {
                let verifier = ServerVerifier::new(Arc::clone(&version.store), &provider);
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
            }
        };
        let key = identity.and_then(|identity| Some((identity, identity.expose_key()?)));
        let resolver = identity.and_then(ClientIdentity::external_resolver);
        let is_external = resolver.is_some();
        let mut config = match (key, resolver) {
            (Some((identity, key)), _) => {
                builder.with_client_auth_cert(identity.chain().to_vec(), key.clone_key())?
            }
            (None, Some(resolver)) => builder.with_client_cert_resolver(resolver),
            (None, None) => builder.with_no_client_auth(),
        };
        // With an external signer, every connection proves possession of the key (C844).
        config.resumption =
            if is_external { Resumption::disabled() } else { Resumption::in_memory_sessions(32) };
        config.alpn_protocols = if http2 { vec![b"h2".to_vec(), b"http/1.1".to_vec()] } else { only_http1() };
        Ok(config)
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roots").field("roots", &self.current.load().store.len()).finish_non_exhaustive()
    }
}

pub(super) fn only_http1() -> Vec<Vec<u8>> {
    vec![b"http/1.1".to_vec()]
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Whether a PEM text has a certificate that can be trusted.
pub(crate) fn has_certificate(text: &[u8]) -> bool {
    parse(text).is_some()
}

/// Skips certificates that cannot be parsed, as long as one can.
fn parse(text: &[u8]) -> Option<TrustedRoots> {
    let store = TrustedRoots::from_pem(text);
    (!store.is_empty()).then_some(store)
}

fn system_roots() -> TrustedRoots {
    let store: TrustedRoots = rustls_native_certs::load_native_certs().certs.into_iter().collect();
    if store.is_empty() {
        tracing::warn!(
            event = "system_roots_missing",
            "no system root certificates found, server certificates cannot be verified"
        );
    }
    store
}

/// Makes rustls verify certificates against the transport's clock.
#[derive(Debug)]
struct ClockTimeProvider(Arc<dyn Clock>);

impl TimeProvider for ClockTimeProvider {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}
