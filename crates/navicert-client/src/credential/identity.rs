//! A client certificate and its private key: only a matching pair becomes a [`ClientIdentity`].

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, Ed25519KeyPair, KeyPair,
};
use navicert_go::pem;
use navicert_types::Timestamp;
use rustls::client::ResolvesClientCert;
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};
use thiserror::Error;
use x509_parser::prelude::{FromDer, X509Certificate};
use zeroize::{Zeroize, Zeroizing};

/// A certificate chain, leaf first, and the leaf's private key: in memory, zeroed when dropped, or in an external
/// signer.
pub struct ClientIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: KeyLocation,
    validity: Validity,
}

enum KeyLocation {
    InMemory(PrivateKeyDer<'static>),
    #[cfg(feature = "signer")]
    External(Arc<navicert_signer::SigningIdentity>),
}

/// The validity period of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Validity {
    /// Start of the period.
    pub not_before: Timestamp,
    /// End of the period.
    pub not_after: Timestamp,
}

/// Why a chain and a key are not an identity. The texts are those of Go's `crypto/tls`, which users search for.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdentityError {
    /// The certificate input contains no PEM block.
    #[error("failed to find any PEM data in certificate input")]
    NoPemInCertificate,
    /// The certificate input contains a key.
    #[error("failed to find certificate PEM data in certificate input, but did find a private key")]
    KeyInCertificate,
    /// The certificate input contains PEM blocks, but no certificate.
    #[error("failed to find \"CERTIFICATE\" PEM block in certificate input")]
    NoCertificate,
    /// The key input contains no PEM block.
    #[error("failed to find any PEM data in key input")]
    NoPemInKey,
    /// The key input contains a certificate.
    #[error("found a certificate rather than a key in the PEM for the private key")]
    CertificateInKey,
    /// The key input contains PEM blocks, but no key.
    #[error("failed to find PEM block with type ending in \"PRIVATE KEY\" in key input")]
    NoKey,
    /// The first certificate cannot be parsed.
    #[error("malformed certificate")]
    MalformedCertificate,
    /// The key is encrypted; passphrases are not supported.
    // C335
    #[error("private key is encrypted; provide an unencrypted PKCS#8, PKCS#1 or SEC1 key")]
    EncryptedKey,
    /// The key has an unsupported encoding or algorithm. Supported: PKCS#8, PKCS#1 and SEC1; RSA from 2048 bits, P-256,
    /// P-384, P-521, Ed25519.
    #[error(
        "failed to parse private key (supported: RSA from 2048 bits, P-256, P-384, P-521 and Ed25519 as PKCS#8, PKCS#1 or SEC1)"
    )]
    MalformedKey,
    /// Certificate and key have different algorithms.
    #[error("private key type does not match public key type")]
    KeyType,
    /// The certificate is for another key.
    #[error("private key does not match public key")]
    Mismatch,
}

impl ClientIdentity {
    /// Parses PEM as Go's `tls.X509KeyPair` does: text between blocks and other blocks are skipped, any label that ends
    /// in `PRIVATE KEY` is accepted, and only the first certificate is parsed.
    ///
    /// # Errors
    /// [`IdentityError`]: something is missing or invalid, or certificate and key do not match.
    // C244
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let chain = certificates_in(certificates)?;
        Self::from_der(chain, &key_in(key)?)
    }

    /// From a chain and a key in any of the three encodings.
    ///
    /// # Errors
    /// As [`ClientIdentity::from_pem`].
    pub fn from_der(chain: Vec<CertificateDer<'static>>, key: &[u8]) -> Result<Self, IdentityError> {
        let leaf = chain.first().ok_or(IdentityError::NoCertificate)?;
        let (rest, certificate) =
            X509Certificate::from_der(leaf).map_err(|_| IdentityError::MalformedCertificate)?;
        if !rest.is_empty() {
            return Err(IdentityError::MalformedCertificate);
        }
        let parsed = ParsedKey::read(key).ok_or(IdentityError::MalformedKey)?;
        let public = certificate.public_key();
        if parsed.algorithm.oid() != public.algorithm.algorithm.to_id_string() {
            return Err(IdentityError::KeyType);
        }
        if *parsed.public != *public.subject_public_key.data {
            return Err(IdentityError::Mismatch);
        }
        let validity = certificate.validity();
        let moment = |seconds: i64| {
            let bound = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
            Timestamp::from_second(seconds).unwrap_or(bound)
        };
        let validity = Validity {
            not_before: moment(validity.not_before.timestamp()),
            not_after: moment(validity.not_after.timestamp()),
        };
        Ok(ClientIdentity { key: KeyLocation::InMemory(parsed.encoding.wrap(key)), chain, validity })
    }

    /// From an external signer, which keeps the key.
    #[cfg(feature = "signer")]
    pub(crate) fn from_signer(identity: Arc<navicert_signer::SigningIdentity>) -> Self {
        let (not_before, not_after) = identity.validity();
        let (chain, validity) = (identity.chain().to_vec(), Validity { not_before, not_after });
        ClientIdentity { chain, key: KeyLocation::External(identity), validity }
    }

    /// The certificates, leaf first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// The key, if it is in memory. Search for this name to audit every use.
    pub fn expose_key(&self) -> Option<&PrivateKeyDer<'static>> {
        match &self.key {
            KeyLocation::InMemory(key) => Some(key),
            #[cfg(feature = "signer")]
            KeyLocation::External(_) => None,
        }
    }

    /// Whether an external signer holds the key.
    pub(crate) fn is_external(&self) -> bool {
        self.expose_key().is_none()
    }

    /// Signs handshakes with the key of an external signer; `None` for a key in memory.
    pub(crate) fn external_resolver(&self) -> Option<Arc<dyn ResolvesClientCert>> {
        match &self.key {
            KeyLocation::InMemory(_) => None,
            #[cfg(feature = "signer")]
            KeyLocation::External(signer) => {
                Some(Arc::new(navicert_signer::tls::ClientCertificate::new(Arc::clone(signer))))
            }
        }
    }

    /// Whether the key can sign for TLS 1.3. A token without RSA-PSS cannot.
    // C833
    pub(crate) fn supports_tls13(&self) -> bool {
        match &self.key {
            KeyLocation::InMemory(_) => true,
            #[cfg(feature = "signer")]
            KeyLocation::External(signer) => signer.schemes().iter().any(|scheme| scheme.is_in_tls13()),
        }
    }

    /// Validity period of the leaf.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Whether both present the same client: the chains are equal byte for byte, and so the public keys.
    // C464
    pub fn has_same_chain(&self, other: &ClientIdentity) -> bool {
        self.chain == other.chain
    }
}

impl Drop for ClientIdentity {
    fn drop(&mut self) {
        match &mut self.key {
            KeyLocation::InMemory(key) => key.zeroize(),
            #[cfg(feature = "signer")]
            KeyLocation::External(_) => {}
        }
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity")
            .field("chain", &format_args!("{} certificates", self.chain.len()))
            .field("validity", &self.validity)
            .finish_non_exhaustive()
    }
}

fn certificates_in(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let (mut chain, mut others) = (Vec::new(), Vec::new());
    for block in pem::blocks(text) {
        if block.label == "CERTIFICATE" {
            chain.push(CertificateDer::from(block.der.to_vec()));
        } else {
            others.push(block.label);
        }
    }
    match (chain.is_empty(), others.as_slice()) {
        (false, _) => Ok(chain),
        (true, []) => Err(IdentityError::NoPemInCertificate),
        (true, [label]) if is_key(label) => Err(IdentityError::KeyInCertificate),
        (true, _) => Err(IdentityError::NoCertificate),
    }
}

fn key_in(text: &[u8]) -> Result<Zeroizing<Vec<u8>>, IdentityError> {
    let mut others = Vec::new();
    for block in pem::blocks(text) {
        if is_key(&block.label) {
            let encrypted = block.label == "ENCRYPTED PRIVATE KEY" || block.is_encrypted;
            return if encrypted { Err(IdentityError::EncryptedKey) } else { Ok(block.der) };
        }
        others.push(block.label);
    }
    match others.as_slice() {
        [] => Err(IdentityError::NoPemInKey),
        [label] if label == "CERTIFICATE" => Err(IdentityError::CertificateInKey),
        _ => Err(IdentityError::NoKey),
    }
}

fn is_key(label: &str) -> bool {
    label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY")
}

/// A parsed private key: its encoding, algorithm, and public key as a certificate encodes it.
struct ParsedKey {
    encoding: Encoding,
    algorithm: Algorithm,
    public: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Encoding {
    Pkcs8,
    Pkcs1,
    Sec1,
}

impl Encoding {
    fn wrap(self, key: &[u8]) -> PrivateKeyDer<'static> {
        match self {
            Encoding::Pkcs8 => PrivatePkcs8KeyDer::from(key.to_vec()).into(),
            Encoding::Pkcs1 => PrivatePkcs1KeyDer::from(key.to_vec()).into(),
            Encoding::Sec1 => PrivateSec1KeyDer::from(key.to_vec()).into(),
        }
    }
}

#[derive(Clone, Copy)]
enum Algorithm {
    Rsa,
    Ec,
    Ed25519,
}

impl Algorithm {
    fn oid(self) -> &'static str {
        match self {
            Algorithm::Rsa => "1.2.840.113549.1.1.1",
            Algorithm::Ec => "1.2.840.10045.2.1",
            Algorithm::Ed25519 => "1.3.101.112",
        }
    }
}

impl ParsedKey {
    /// Detects the encoding by content: labels may be wrong.
    // C244
    fn read(der: &[u8]) -> Option<Self> {
        let rsa = |encoding, pair: rsa::KeyPair| {
            let public = pair.public_key().as_ref().to_vec();
            ParsedKey { encoding, algorithm: Algorithm::Rsa, public }
        };
        let curves = [
            &ECDSA_P256_SHA256_ASN1_SIGNING,
            &ECDSA_P384_SHA384_ASN1_SIGNING,
            &ECDSA_P521_SHA512_ASN1_SIGNING,
        ];
        let ec = |encoding, pair: EcdsaKeyPair| {
            let public = pair.public_key().as_ref().to_vec();
            ParsedKey { encoding, algorithm: Algorithm::Ec, public }
        };
        if let Ok(pair) = rsa::KeyPair::from_pkcs8(der) {
            return Some(rsa(Encoding::Pkcs8, pair));
        }
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            let public = pair.public_key().as_ref().to_vec();
            return Some(ParsedKey { encoding: Encoding::Pkcs8, algorithm: Algorithm::Ed25519, public });
        }
        if let Some(pair) = curves.iter().find_map(|curve| EcdsaKeyPair::from_pkcs8(curve, der).ok()) {
            return Some(ec(Encoding::Pkcs8, pair));
        }
        if let Ok(pair) = rsa::KeyPair::from_der(der) {
            return Some(rsa(Encoding::Pkcs1, pair));
        }
        let pair = curves.iter().find_map(|curve| EcdsaKeyPair::from_private_key_der(curve, der).ok())?;
        Some(ec(Encoding::Sec1, pair))
    }
}

#[cfg(test)]
mod tests;
