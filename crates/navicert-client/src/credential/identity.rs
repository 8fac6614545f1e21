//! A client certificate and its key, which belong together: only a pair that matches becomes an [`Identity`].

mod pem;

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, Ed25519KeyPair, KeyPair,
};
use navicert_types::Timestamp;
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};
use thiserror::Error;
use x509_parser::prelude::{FromDer, X509Certificate};
use zeroize::{Zeroize, Zeroizing};

/// A certificate chain, leaf first, and the private key of the leaf: here, where it is cleared from memory when dropped,
/// or in another program, where it stays.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: Place,
    validity: Validity,
}

enum Place {
    Here(PrivateKeyDer<'static>),
    Elsewhere(Arc<navicert_signer::Identity>),
}

/// When a certificate may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From then on.
    pub not_before: Timestamp,
    /// Until then.
    pub not_after: Timestamp,
}

/// Why a chain and a key are no identity. The words are those of Go's `crypto/tls`, which people search for.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdentityError {
    /// No PEM at all where the certificate should be.
    #[error("failed to find any PEM data in certificate input")]
    NoPemInCertificate,
    /// A key where the certificate should be.
    #[error("failed to find certificate PEM data in certificate input, but did find a private key")]
    KeyInCertificate,
    /// PEM, but no certificate.
    #[error("failed to find \"CERTIFICATE\" PEM block in certificate input")]
    NoCertificate,
    /// No PEM at all where the key should be.
    #[error("failed to find any PEM data in key input")]
    NoPemInKey,
    /// A certificate where the key should be.
    #[error("found a certificate rather than a key in the PEM for the private key")]
    CertificateInKey,
    /// PEM, but no key.
    #[error("failed to find PEM block with type ending in \"PRIVATE KEY\" in key input")]
    NoKey,
    /// The first certificate cannot be read.
    #[error("malformed certificate")]
    MalformedCertificate,
    /// The key needs a passphrase, and there is nobody to ask (C335).
    #[error("the private key is encrypted; an unencrypted PKCS#8, PKCS#1 or SEC1 key is needed")]
    EncryptedKey,
    /// None of the encodings and algorithms that are known: PKCS#8, PKCS#1 and SEC1; RSA from 2048 bits, P-256, P-384,
    /// P-521, Ed25519.
    #[error(
        "failed to parse private key (known are RSA from 2048 bits, P-256, P-384, P-521 and Ed25519 as PKCS#8, PKCS#1 or SEC1)"
    )]
    MalformedKey,
    /// An RSA certificate with an EC key, say.
    #[error("private key type does not match public key type")]
    KeyType,
    /// The certificate is for another key.
    #[error("private key does not match public key")]
    Mismatch,
}

impl Identity {
    /// Reads PEM text as Go's `tls.X509KeyPair` does (C244): text between blocks is passed over, so are blocks of
    /// other sorts; any label that ends in `PRIVATE KEY` will do; only the first certificate is looked into.
    ///
    /// # Errors
    /// [`IdentityError`]: something is missing or cannot be read, or the two do not belong together.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let chain = certificates_in(certificates)?;
        Self::from_der(chain, &key_in(key)?)
    }

    /// From a chain and a key in any of the three encodings.
    ///
    /// # Errors
    /// As [`Identity::from_pem`].
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
        Ok(Identity { key: Place::Here(parsed.encoding.wrap(key)), chain, validity })
    }

    /// With a key that stays where it is.
    pub fn external(identity: Arc<navicert_signer::Identity>) -> Self {
        let (not_before, not_after) = identity.validity();
        let (chain, validity) = (identity.chain().to_vec(), Validity { not_before, not_after });
        Identity { chain, key: Place::Elsewhere(identity), validity }
    }

    /// The certificates, leaf first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// The key, if it is here. Search for this name to audit every place that reads it.
    pub fn expose_key(&self) -> Option<&PrivateKeyDer<'static>> {
        match &self.key {
            Place::Here(key) => Some(key),
            Place::Elsewhere(_) => None,
        }
    }

    /// Whoever has the key, if it is not here.
    pub fn signer(&self) -> Option<&Arc<navicert_signer::Identity>> {
        match &self.key {
            Place::Here(_) => None,
            Place::Elsewhere(signer) => Some(signer),
        }
    }

    /// When the leaf may be used.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Whether a server would see the same client: the chains are equal byte for byte, and so the public keys (C464).
    pub fn is_same(&self, other: &Identity) -> bool {
        self.chain == other.chain
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        if let Place::Here(key) = &mut self.key {
            key.zeroize();
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
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
            let encrypted = block.label == "ENCRYPTED PRIVATE KEY" || block.encrypted;
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

/// A private key that could be read: what it is, and the public key that belongs to it as a certificate has it.
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
    /// By content: labels are not to be trusted (C244).
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
