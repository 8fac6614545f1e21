//! The part of a verifier that does not depend on the certificate's trust: the signature of the handshake, which proves that
//! the server has the private key.

/// Inside an `impl` of `ServerCertVerifier`, writes the methods that verify handshake signatures with a field of type
/// `WebPkiSupportedAlgorithms`.
macro_rules! handshake_signatures {
    ($algorithms:ident) => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &rustls_pki_types::CertificateDer<'_>,
            signed: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.$algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &rustls_pki_types::CertificateDer<'_>,
            signed: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.$algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            self.$algorithms.supported_schemes()
        }
    };
}

pub(crate) use handshake_signatures;
