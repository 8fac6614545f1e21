//! Whom we trust and who we are in TLS: one client configuration per client certificate, none of which shares a session
//! with another (client-credentials.md C180, C181, C460, C461).

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use navicert_signer::tls::ClientCertificate;
use navicert_types::Clock;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::time_provider::TimeProvider;
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::error::BuildError;
use super::settings::Around;
use crate::credential::{Identity, SharedFiles};
use crate::metrics::{AuthorityReload, Recorder};

/// How often the file of a certificate authority is looked at, at most (C181).
const AUTHORITY_PERIOD: Duration = Duration::from_secs(5 * 60);

/// Whose word counts for who the server is.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// The certificate authorities of this machine.
    #[default]
    System,
    /// These certificate authorities alone, in PEM.
    Pem(Vec<u8>),
    /// Those in this file alone; it is looked at again now and then.
    File(PathBuf),
    /// Nobody's: any certificate will do.
    Insecure,
}

/// The roots that count now, and when to look at them again.
pub(super) struct Roots {
    trust: Trust,
    files: SharedFiles,
    clock: Arc<dyn Clock>,
    recorder: Arc<dyn Recorder>,
    current: ArcSwap<RootVersion>,
    /// On the monotonic clock, in milliseconds.
    next_look: AtomicU64,
    looking: Mutex<()>,
}

/// Roots as they were read, numbered.
pub(super) struct RootVersion {
    pub(super) number: u64,
    text: Vec<u8>,
    store: Arc<RootCertStore>,
}

impl Roots {
    pub(super) fn new(trust: Trust, around: &Around) -> Result<Self, BuildError> {
        let (files, clock) = (Arc::clone(&around.files), Arc::clone(&around.clock));
        let (text, store) = match &trust {
            Trust::Insecure => (Vec::new(), RootCertStore::empty()),
            Trust::System => (Vec::new(), system_roots()),
            Trust::Pem(text) => (Vec::new(), parse(text).ok_or(BuildError::ParseAuthority)?),
            Trust::File(path) => {
                let text = files.read(path).map_err(|source| BuildError::ReadAuthority {
                    path: path.display().to_string(),
                    source,
                })?;
                // An empty file is an authority that vouches for nobody (C180).
                let store = if text.is_empty() { Some(RootCertStore::empty()) } else { parse(&text) };
                (text, store.ok_or(BuildError::ParseAuthority)?)
            }
        };
        let current = ArcSwap::from_pointee(RootVersion { number: 0, text, store: Arc::new(store) });
        let next_look = AtomicU64::new(milliseconds(clock.monotonic() + AUTHORITY_PERIOD));
        let recorder = Arc::clone(&around.recorder);
        Ok(Roots { trust, files, clock, recorder, current, next_look, looking: Mutex::default() })
    }

    pub(super) fn current(&self) -> Arc<RootVersion> {
        self.current.load_full()
    }

    /// Whether it is time to look at the file again.
    pub(super) fn is_due(&self) -> bool {
        matches!(self.trust, Trust::File(_))
            && milliseconds(self.clock.monotonic()) >= self.next_look.load(Ordering::Relaxed)
    }

    /// Looks at the file again. What cannot be read, is empty or is no certificate leaves everything as it is (C181).
    pub(super) fn look_again(&self) {
        let _one_at_a_time = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let Trust::File(path) = &self.trust else { return };
        if !self.is_due() {
            return;
        }
        let next = milliseconds(self.clock.monotonic() + AUTHORITY_PERIOD);
        self.next_look.store(next, Ordering::Relaxed);
        let outcome = self.reload(path);
        self.recorder.authority_reload(outcome);
        if let ("failure", reason) = outcome.labels() {
            tracing::warn!(path = %path.display(), reason, "the certificate authority stays as it was");
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

    /// A configuration with a session store of its own, for a client certificate or none.
    pub(super) fn client_config(
        &self,
        version: &RootVersion,
        identity: Option<&Identity>,
        http2: bool,
    ) -> Result<ClientConfig, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let time = Arc::new(ClockTime(Arc::clone(&self.clock)));
        let signer = identity.and_then(Identity::signer);
        // A token without RSA-PSS cannot sign for TLS 1.3 (C833).
        let only_old =
            signer.is_some_and(|signer| !signer.schemes().iter().any(|scheme| scheme.is_in_tls13()));
        let versions = if only_old { &[&rustls::version::TLS12][..] } else { rustls::DEFAULT_VERSIONS };
        let builder = ClientConfig::builder_with_details(Arc::clone(&provider), time)
            .with_protocol_versions(versions)?;
        let builder = match self.trust {
            Trust::Insecure => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer(provider)))
            }
            _ => builder.with_root_certificates(Arc::clone(&version.store)),
        };
        let key = identity.and_then(|identity| Some((identity, identity.expose_key()?)));
        let mut config = match (key, signer) {
            (Some((identity, key)), _) => {
                builder.with_client_auth_cert(identity.chain().to_vec(), key.clone_key())?
            }
            (None, Some(signer)) => {
                builder.with_client_cert_resolver(Arc::new(ClientCertificate::new(Arc::clone(signer))))
            }
            (None, None) => builder.with_no_client_auth(),
        };
        // A connection with a key that is elsewhere proves each time that it still is there (C844).
        config.resumption =
            if signer.is_some() { Resumption::disabled() } else { Resumption::in_memory_sessions(32) };
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

/// Certificates that cannot be read are passed over, as long as one can.
fn parse(text: &[u8]) -> Option<RootCertStore> {
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text).flatten() {
        let _ = store.add(certificate);
    }
    (!store.is_empty()).then_some(store)
}

fn system_roots() -> RootCertStore {
    let mut store = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        tracing::warn!("no certificate authorities found on this machine: no server will be trusted");
    }
    store
}

/// rustls checks certificates against our clock.
#[derive(Debug)]
struct ClockTime(Arc<dyn Clock>);

impl TimeProvider for ClockTime {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// `insecure-skip-tls-verify`: whoever answers is the server; only that it has the key it shows is checked.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
