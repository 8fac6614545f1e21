//! The TLS side of a server: which versions, which client certificates, and when to refuse one.

use std::sync::{Arc, Mutex, PoisonError};

use navicert_types::Clock;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
};

use crate::pki::ca::{Ca, Identity};

/// What a server does about client certificates.
#[derive(Clone, Debug)]
pub enum ClientAuth {
    /// Does not ask for one.
    None,
    /// Requests a certificate and accepts any or none, like kube-apiserver, which verifies it in the HTTP layer.
    Requested,
    /// Requests a certificate, accepts none, and verifies one that is sent.
    Optional(Ca),
    /// Demands one and verifies it.
    Required(Ca),
}

/// The settings of a server's TLS.
#[derive(Clone, Debug)]
pub(super) struct TlsSettings {
    pub(super) client_auth: ClientAuth,
    pub(super) versions: Vec<&'static SupportedProtocolVersion>,
    pub(super) protocols: Vec<Vec<u8>>,
    pub(super) resumption: bool,
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) refusal: Refusal,
}

/// Why the next client certificates are refused, if they are; shared with the running server.
pub(super) type Refusal = Arc<Mutex<Option<CertificateError>>>;

impl TlsSettings {
    pub(super) fn config(&self, identity: &Identity) -> Arc<ServerConfig> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let time: Arc<dyn TimeProvider> = match &self.clock {
            Some(clock) => Arc::new(ClockTime(Arc::clone(clock))),
            None => Arc::new(DefaultTimeProvider),
        };
        let mut config = ServerConfig::builder_with_details(Arc::clone(&provider), time)
            .with_protocol_versions(&self.versions)
            .expect("TLS versions the crypto provider has")
            .with_client_cert_verifier(self.verifier(&provider))
            .with_single_cert(identity.chain().to_vec(), identity.rustls_key())
            .expect("a server certificate and its key");
        config.alpn_protocols.clone_from(&self.protocols);
        if !self.resumption {
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Arc::new(config)
    }

    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Arc<dyn ClientCertVerifier> {
        let chain = |ca: &Ca| {
            WebPkiClientVerifier::builder_with_provider(ca.root_store(), Arc::clone(provider))
                .build()
                .expect("a verifier for one CA")
        };
        let (mandatory, chain) = match &self.client_auth {
            ClientAuth::None => return WebPkiClientVerifier::no_client_auth(),
            ClientAuth::Requested => (false, None),
            ClientAuth::Optional(ca) => (false, Some(chain(ca))),
            ClientAuth::Required(ca) => (true, Some(chain(ca))),
        };
        Arc::new(Verifier {
            mandatory,
            chain,
            provider: Arc::clone(provider),
            refusal: Arc::clone(&self.refusal),
        })
    }
}

/// Possession of the key is always checked; the chain only if there is a CA to check it against.
#[derive(Debug)]
struct Verifier {
    mandatory: bool,
    chain: Option<Arc<dyn ClientCertVerifier>>,
    provider: Arc<CryptoProvider>,
    refusal: Refusal,
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        self.mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.as_ref().map_or(&[], |chain| chain.root_hint_subjects())
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if let Some(refusal) = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Err(refusal.into());
        }
        match &self.chain {
            Some(chain) => chain.verify_client_cert(leaf, intermediates, now),
            None => Ok(ClientCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The workspace's clock as a rustls time provider.
#[derive(Debug)]
struct ClockTime(Arc<dyn Clock>);

impl TimeProvider for ClockTime {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds)))
    }
}
