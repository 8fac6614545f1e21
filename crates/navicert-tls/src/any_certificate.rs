//! A verifier for connections whose certificate is not checked: `insecure-skip-tls-verify`, and probes that look at it.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::{DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

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

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
