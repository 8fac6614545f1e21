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
/// rustls::ClientConfig::builder()
///     .with_root_certificates(roots)
///     .with_client_cert_resolver(identity.client_cert_resolver())
/// # }
/// ```
pub struct ClientCertificate(Arc<CertifiedKey>);

impl ClientCertificate {
    /// Presents this identity.
    pub fn new(identity: Arc<SigningIdentity>) -> Self {
        ClientCertificate(certified_key(identity))
    }
}

/// The chain and key of an identity as rustls uses them.
pub(crate) fn certified_key(identity: Arc<SigningIdentity>) -> Arc<CertifiedKey> {
    let chain = identity.chain().to_vec();
    Arc::new(CertifiedKey::new(chain, Arc::new(TlsKey(identity))))
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
