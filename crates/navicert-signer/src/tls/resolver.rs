//! Resolves the client certificate of a handshake to the configured identity.

use std::fmt;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;

use super::signer::TlsKey;
use crate::identity::SigningIdentity;

/// Presents a [`SigningIdentity`] to every server that asks for a client certificate.
///
/// ```
/// # fn example(roots: rustls::RootCertStore, identity: navicert_signer::SigningIdentity) -> rustls::ClientConfig {
/// use std::sync::Arc;
/// use navicert_signer::tls::ClientCertificate;
///
/// rustls::ClientConfig::builder()
///     .with_root_certificates(roots)
///     .with_client_cert_resolver(Arc::new(ClientCertificate::new(Arc::new(identity))))
/// # }
/// ```
pub struct ClientCertificate(Arc<CertifiedKey>);

impl ClientCertificate {
    /// Presents this identity.
    pub fn new(identity: Arc<SigningIdentity>) -> Self {
        let chain = identity.chain().to_vec();
        ClientCertificate(Arc::new(CertifiedKey::new(chain, Arc::new(TlsKey(identity)))))
    }
}

impl ResolvesClientCert for ClientCertificate {
    /// Ignores the server's list of acceptable issuers, which many servers get wrong. Like Go with a single configured
    /// certificate, it always presents the certificate, and the server decides.
    fn resolve(&self, _issuers: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientCertificate")
    }
}
