//! The client certificate of a handshake: always the one identity, or an error that says why not.

use std::fmt;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;

use super::signer::TlsKey;
use crate::identity::Identity;

/// Presents an [`Identity`] to every server that asks for a client certificate.
///
/// ```
/// # fn example(roots: rustls::RootCertStore, identity: navicert_signer::Identity) -> rustls::ClientConfig {
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
    /// For this identity.
    pub fn new(identity: Arc<Identity>) -> Self {
        let chain = identity.chain().to_vec();
        ClientCertificate(Arc::new(CertifiedKey::new(chain, Arc::new(TlsKey(identity)))))
    }
}

impl ResolvesClientCert for ClientCertificate {
    /// The issuers a server names are hints that many servers get wrong: as Go does with a single certificate that was
    /// configured on purpose, it is presented all the same, and the server decides.
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
