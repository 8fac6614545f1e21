//! Public keys: parsing, comparison and signature verification.
// C834

use aws_lc_rs::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use rustls_pki_types::CertificateDer;
use thiserror::Error;
use x509_parser::prelude::{FromDer, SubjectPublicKeyInfo, X509Certificate};

use crate::der;
use crate::scheme::{Hash, Input, KeyAlgorithm, Scheme};

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0, 34];
const P521: &[u8] = &[0x2b, 0x81, 0x04, 0, 35];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// A public key of a supported algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    algorithm: KeyAlgorithm,
    /// The content of `subjectPublicKey`: an `RSAPublicKey`, a point, 32 octets.
    octets: Vec<u8>,
}

/// Why a public key cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublicKeyError {
    /// Not DER of the expected shape.
    #[error("malformed certificate or public key")]
    Malformed,
    /// Another algorithm or curve.
    #[error(
        "unsupported key algorithm `{0}` (supported: RSA from 2048 bits, P-256, P-384, P-521 and Ed25519)"
    )]
    Unknown(String),
    /// An RSA key that is too small for TLS servers.
    #[error("RSA key of {0} bits is too small (at least 2048 bits are required)")]
    TooSmall(usize),
}

impl PublicKey {
    /// The public key of a certificate.
    ///
    /// # Errors
    /// [`PublicKeyError`]: invalid certificate or unsupported key.
    pub fn from_certificate(certificate: &CertificateDer<'_>) -> Result<Self, PublicKeyError> {
        let (rest, parsed) = X509Certificate::from_der(certificate).map_err(|_| PublicKeyError::Malformed)?;
        if !rest.is_empty() {
            return Err(PublicKeyError::Malformed);
        }
        Self::from_spki(parsed.public_key())
    }

    /// Parses a DER `SubjectPublicKeyInfo`.
    ///
    /// # Errors
    /// [`PublicKeyError`]: malformed or unsupported key.
    pub fn from_der(info: &[u8]) -> Result<Self, PublicKeyError> {
        match SubjectPublicKeyInfo::from_der(info) {
            Ok(([], info)) => Self::from_spki(&info),
            _ => Err(PublicKeyError::Malformed),
        }
    }

    /// From the big-endian modulus and exponent of an RSA key.
    ///
    /// # Errors
    /// [`PublicKeyError::TooSmall`].
    pub(crate) fn from_rsa(modulus: &[u8], exponent: &[u8]) -> Result<Self, PublicKeyError> {
        let significant = modulus.iter().skip_while(|octet| **octet == 0).count();
        // A modulus of 2048 bits has its first bit set, so counting bytes is enough.
        if significant < 256 {
            return Err(PublicKeyError::TooSmall(significant.saturating_mul(8)));
        }
        let octets = der::sequence(&[&der::integer(modulus), &der::integer(exponent)]);
        Ok(PublicKey { algorithm: KeyAlgorithm::Rsa, octets })
    }

    /// From a curve's parameters as a PKCS#11 token has them (`CKA_EC_PARAMS`) and its point (`CKA_EC_POINT`).
    ///
    /// # Errors
    /// [`PublicKeyError`].
    #[cfg(feature = "pkcs11")]
    pub(crate) fn from_curve(parameters: &[u8], point: &[u8]) -> Result<Self, PublicKeyError> {
        let algorithm = parse_curve(parameters)?;
        // The standard requires an OCTET STRING; some tokens omit it.
        let octets = der::octet_string(point).unwrap_or(point);
        let length = point_length(algorithm);
        let is_point =
            octets.len() == length && (algorithm == KeyAlgorithm::Ed25519 || octets.first() == Some(&4));
        if !is_point {
            return Err(PublicKeyError::Malformed);
        }
        Ok(PublicKey { algorithm, octets: octets.to_vec() })
    }

    /// From the content of `subjectPublicKey`, unchecked; for keys of this process.
    pub(crate) fn from_parts(algorithm: KeyAlgorithm, octets: &[u8]) -> Self {
        PublicKey { algorithm, octets: octets.to_vec() }
    }

    /// The key algorithm.
    pub fn algorithm(&self) -> KeyAlgorithm {
        self.algorithm
    }

    /// The DER `SubjectPublicKeyInfo`.
    pub fn to_der(&self) -> Vec<u8> {
        match self.algorithm {
            KeyAlgorithm::Rsa => der::rsa_public_key_info(RSA, &self.octets),
            KeyAlgorithm::P256 => der::public_key_info(EC, Some(P256), &self.octets),
            KeyAlgorithm::P384 => der::public_key_info(EC, Some(P384), &self.octets),
            KeyAlgorithm::P521 => der::public_key_info(EC, Some(P521), &self.octets),
            KeyAlgorithm::Ed25519 => der::public_key_info(ED25519, None, &self.octets),
        }
    }

    /// Whether the signature verifies. ECDSA signatures are DER.
    // C831
    pub fn verifies(&self, scheme: Scheme, input: Input<'_>, signature: &[u8]) -> bool {
        if scheme.algorithm() != self.algorithm {
            return false;
        }
        let key = UnparsedPublicKey::new(verification(scheme), &self.octets);
        match input {
            Input::Message(message) => key.verify(message, signature).is_ok(),
            Input::Digest(digest) => {
                let imported = scheme.hash().and_then(|hash: Hash| {
                    aws_lc_rs::digest::Digest::import_less_safe(digest, hash.to_aws_lc()).ok()
                });
                imported.is_some_and(|digest| key.verify_digest(&digest, signature).is_ok())
            }
        }
    }

    fn from_spki(info: &SubjectPublicKeyInfo<'_>) -> Result<Self, PublicKeyError> {
        let octets = info.subject_public_key.data.to_vec();
        let oid = info.algorithm.algorithm.as_bytes();
        let algorithm = if oid == RSA {
            return parse_rsa(&octets);
        } else if oid == ED25519 {
            KeyAlgorithm::Ed25519
        } else if oid == EC {
            let parameters = info.algorithm.parameters.as_ref().ok_or(PublicKeyError::Malformed)?;
            let curve = parameters.as_oid().map_err(|_| PublicKeyError::Malformed)?;
            known_curve(curve.as_bytes()).ok_or_else(|| PublicKeyError::Unknown(curve.to_id_string()))?
        } else {
            return Err(PublicKeyError::Unknown(info.algorithm.algorithm.to_id_string()));
        };
        if octets.len() != point_length(algorithm) {
            return Err(PublicKeyError::Malformed);
        }
        Ok(PublicKey { algorithm, octets })
    }
}

fn parse_rsa(octets: &[u8]) -> Result<PublicKey, PublicKeyError> {
    let parts = der::split(0x30, octets).and_then(|(content, _)| {
        let (modulus, rest) = der::split(2, content)?;
        let (exponent, _) = der::split(2, rest)?;
        Some((modulus, exponent))
    });
    let (modulus, exponent) = parts.ok_or(PublicKeyError::Malformed)?;
    PublicKey::from_rsa(modulus, exponent)
}

fn known_curve(oid: &[u8]) -> Option<KeyAlgorithm> {
    let known = [(P256, KeyAlgorithm::P256), (P384, KeyAlgorithm::P384), (P521, KeyAlgorithm::P521)];
    let known = known.into_iter().chain([(ED25519, KeyAlgorithm::Ed25519)]);
    known.into_iter().find(|(curve, _)| *curve == oid).map(|(_, algorithm)| algorithm)
}

/// Parses an OID, or the curve's name as a PrintableString, which SoftHSM uses for Ed25519.
#[cfg(feature = "pkcs11")]
fn parse_curve(parameters: &[u8]) -> Result<KeyAlgorithm, PublicKeyError> {
    if let Some(name) = der::split(0x13, parameters).filter(|(_, rest)| rest.is_empty()) {
        let name = String::from_utf8_lossy(name.0).into_owned();
        return if name == "edwards25519" {
            Ok(KeyAlgorithm::Ed25519)
        } else {
            Err(PublicKeyError::Unknown(name))
        };
    }
    let oid = der::object_identifier(parameters).ok_or(PublicKeyError::Malformed)?;
    known_curve(oid).ok_or_else(|| PublicKeyError::Unknown("another elliptic curve".to_owned()))
}

fn point_length(algorithm: KeyAlgorithm) -> usize {
    match algorithm {
        KeyAlgorithm::Rsa => 0,
        KeyAlgorithm::P256 => 65,
        KeyAlgorithm::P384 => 97,
        KeyAlgorithm::P521 => 133,
        KeyAlgorithm::Ed25519 => 32,
    }
}

fn verification(scheme: Scheme) -> &'static dyn VerificationAlgorithm {
    match scheme {
        Scheme::RsaPssSha256 => &signature::RSA_PSS_2048_8192_SHA256,
        Scheme::RsaPssSha384 => &signature::RSA_PSS_2048_8192_SHA384,
        Scheme::RsaPssSha512 => &signature::RSA_PSS_2048_8192_SHA512,
        Scheme::RsaPkcs1Sha256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        Scheme::RsaPkcs1Sha384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        Scheme::RsaPkcs1Sha512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        Scheme::EcdsaP256Sha256 => &signature::ECDSA_P256_SHA256_ASN1,
        Scheme::EcdsaP384Sha384 => &signature::ECDSA_P384_SHA384_ASN1,
        Scheme::EcdsaP521Sha512 => &signature::ECDSA_P521_SHA512_ASN1,
        Scheme::Ed25519 => &signature::ED25519,
    }
}
