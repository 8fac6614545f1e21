//! A verifier for connections whose certificate is not checked: `insecure-skip-tls-verify`, and probes that look at it.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::handshake_signatures::handshake_signatures;

/// Accepts any server certificate; only verifies that the server has its private key.
#[derive(Debug)]
pub struct AnyCertificate {
    algorithms: WebPkiSupportedAlgorithms,
    seen: Option<Arc<Mutex<Vec<CertificateDer<'static>>>>>,
}

impl AnyCertificate {
    /// Creates a verifier with the provider's signature algorithms.
    pub fn new(provider: &CryptoProvider) -> Self {
        AnyCertificate { algorithms: provider.signature_verification_algorithms, seen: None }
    }

    /// Stores the certificates of the last handshake, leaf first.
    #[must_use]
    pub fn recording(self, seen: Arc<Mutex<Vec<CertificateDer<'static>>>>) -> Self {
        AnyCertificate { seen: Some(seen), ..self }
    }
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(seen) = &self.seen {
            let chain =
                std::iter::once(leaf).chain(others).map(|certificate| certificate.clone().into_owned());
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = chain.collect();
        }
        Ok(ServerCertVerified::assertion())
    }

    handshake_signatures!(algorithms);
}
