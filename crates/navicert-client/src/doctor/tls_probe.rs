//! A TLS handshake that verifies nothing and records what the server does: its certificate chain, whether it requests a
//! client certificate, and the alert it sends. Explains failures; never sends a credential other than the client
//! certificate.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use navicert_tls::AnyCertificate;
use rustls::client::ResolvesClientCert;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, ClientConfig, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use x509_parser::prelude::{FromDer as _, X509Certificate, X509Name};

use crate::credential::ClientIdentity;

/// Limit for the whole observation.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What a server did.
pub(super) struct Observed {
    /// The server's certificates, leaf first.
    pub(super) chain: Vec<CertificateDer<'static>>,
    /// Whether it requested a client certificate.
    pub(super) requests_certificate: bool,
    /// The fatal alert it sent during or after the handshake.
    pub(super) alert: Option<AlertDescription>,
}

/// Connects directly and records what happens; `None` if the server cannot be reached or does not speak TLS.
pub(super) async fn observe(
    (host, port): (&str, u16),
    server_name: &str,
    identity: Option<&ClientIdentity>,
) -> Option<Observed> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let recorder = Arc::new(Recorder::new(identity, &provider)?);
    let chain = Arc::default();
    let verifier = AnyCertificate::new(&provider).recording(Arc::clone(&chain));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::DEFAULT_VERSIONS)
        .ok()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(Arc::clone(&recorder) as Arc<dyn ResolvesClientCert>);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from(server_name.to_owned()).ok()?;
    let exchange = async {
        let stream = TcpStream::connect((host, port)).await?;
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        // In TLS 1.3 the server verifies the client certificate after the client's handshake is complete.
        let request = format!("GET /version HTTP/1.1\r\nhost: {server_name}\r\nconnection: close\r\n\r\n");
        let written = stream.write_all(request.as_bytes()).await;
        stream.read(&mut [0; 64]).await.and(written)
    };
    let outcome = tokio::time::timeout(TIMEOUT, exchange).await.unwrap_or(Ok(()));
    let chain: Vec<CertificateDer<'static>> =
        std::mem::take(&mut *chain.lock().unwrap_or_else(PoisonError::into_inner));
    let alert = outcome.err().and_then(|error| alert_in(&error));
    let requests_certificate = recorder.requested.load(Ordering::Acquire);
    (!chain.is_empty() || alert.is_some()).then_some(Observed { chain, requests_certificate, alert })
}

/// The TLS alert among an error's causes, if any.
pub(super) fn alert_in(error: &(dyn Error + 'static)) -> Option<AlertDescription> {
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let tls = inner.and_then(|inner| inner.downcast_ref()).or_else(|| error.downcast_ref());
        if let Some(rustls::Error::AlertReceived(alert)) = tls {
            return Some(*alert);
        }
        next = error.source();
    }
    None
}

/// The names in a certificate that explain why it is not trusted.
pub(super) struct CertificateNames {
    pub(super) subject: String,
    pub(super) issuer: String,
}

impl CertificateNames {
    pub(super) fn parse(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        Some(CertificateNames { subject: readable(parsed.subject()), issuer: readable(parsed.issuer()) })
    }
}

/// The common name, or the whole name if there is none.
fn readable(name: &X509Name<'_>) -> String {
    let common = name.iter_common_name().next().and_then(|name| name.as_str().ok());
    let text = common.map_or_else(|| name.to_string(), ToOwned::to_owned);
    navicert_types::redact::line(&text).into_owned()
}

/// Presents the client certificate if there is one, and records whether it was requested.
#[derive(Debug)]
struct Recorder {
    identity: Option<Arc<CertifiedKey>>,
    requested: AtomicBool,
}

impl Recorder {
    /// `None` if the key cannot be used. A key in an external signer is not used: it may prompt.
    fn new(identity: Option<&ClientIdentity>, provider: &CryptoProvider) -> Option<Self> {
        let identity = match identity {
            None => None,
            Some(identity) => {
                let key = provider.key_provider.load_private_key(identity.expose_key()?.clone_key()).ok()?;
                Some(Arc::new(CertifiedKey::new(identity.chain().to_vec(), key)))
            }
        };
        Some(Recorder { identity, requested: AtomicBool::new(false) })
    }
}

impl ResolvesClientCert for Recorder {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.requested.store(true, Ordering::Release);
        self.identity.clone()
    }

    fn has_certs(&self) -> bool {
        true
    }
}
