//! A private key in memory: for tests, demonstrations and as the baseline of benchmarks.

use std::fmt;

use aws_lc_rs::digest::Digest;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaEncoding,
};
use thiserror::Error;

use crate::error::SignError;
use crate::key::Key;
use crate::public_key::PublicKey;
use crate::scheme::{Input, KeyAlgorithm, Scheme};

/// A private key in memory.
pub struct SoftwareKey {
    pair: Pair,
    public_key: PublicKey,
    schemes: Vec<Scheme>,
}

enum Pair {
    Rsa(rsa::KeyPair),
    Ec(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// The bytes are not a supported private key.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "invalid or unsupported private key (supported: RSA from 2048 bits, P-256, P-384, P-521 and Ed25519 as PKCS#8, PKCS#1 or SEC1)"
)]
pub struct UnsupportedKey;

impl SoftwareKey {
    /// Parses DER: PKCS#8, PKCS#1 or SEC1, detected by content.
    ///
    /// # Errors
    /// [`UnsupportedKey`].
    pub fn from_der(der: &[u8]) -> Result<Self, UnsupportedKey> {
        if let Ok(pair) = rsa::KeyPair::from_pkcs8(der).or_else(|_| rsa::KeyPair::from_der(der)) {
            let public = pair.public_key().as_ref().to_vec();
            return Ok(Self::new(Pair::Rsa(pair), KeyAlgorithm::Rsa, &public));
        }
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            let public = pair.public_key().as_ref().to_vec();
            return Ok(Self::new(Pair::Ed25519(pair), KeyAlgorithm::Ed25519, &public));
        }
        let curves = [
            (KeyAlgorithm::P256, &ECDSA_P256_SHA256_ASN1_SIGNING),
            (KeyAlgorithm::P384, &ECDSA_P384_SHA384_ASN1_SIGNING),
            (KeyAlgorithm::P521, &ECDSA_P521_SHA512_ASN1_SIGNING),
        ];
        let found = curves.into_iter().find_map(|(algorithm, curve)| {
            let pair = EcdsaKeyPair::from_private_key_der(curve, der).ok()?;
            Some((algorithm, pair))
        });
        let (algorithm, pair) = found.ok_or(UnsupportedKey)?;
        let public = pair.public_key().as_ref().to_vec();
        Ok(Self::new(Pair::Ec(pair), algorithm, &public))
    }

    /// Generates a P-256 key.
    ///
    /// # Errors
    /// [`UnsupportedKey`] if the random number generator fails.
    pub fn generate_p256() -> Result<Self, UnsupportedKey> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).map_err(|_| UnsupportedKey)?;
        let public = pair.public_key().as_ref().to_vec();
        Ok(Self::new(Pair::Ec(pair), KeyAlgorithm::P256, &public))
    }

    fn new(pair: Pair, algorithm: KeyAlgorithm, public: &[u8]) -> Self {
        let public_key = PublicKey::from_parts(algorithm, public);
        SoftwareKey { pair, public_key, schemes: Scheme::for_key(algorithm).collect() }
    }
}

impl Key for SoftwareKey {
    fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    fn schemes(&self) -> &[Scheme] {
        &self.schemes
    }

    fn sign(&self, scheme: Scheme, input: Input<'_>) -> Result<Vec<u8>, SignError> {
        let failed = |_| SignError::Internal("the cryptographic library failed to sign".to_owned());
        let unsupported = || SignError::UnsupportedScheme { scheme: scheme.to_string() };
        match &self.pair {
            _ if !self.schemes.contains(&scheme) => Err(unsupported()),
            Pair::Rsa(pair) => {
                let padding = rsa_encoding(scheme).ok_or_else(unsupported)?;
                let mut signature = vec![0; pair.public_modulus_len()];
                match input {
                    Input::Message(message) => {
                        pair.sign(padding, &SystemRandom::new(), message, &mut signature).map_err(failed)?;
                    }
                    Input::Digest(_) => {
                        pair.sign_digest(padding, &digest(scheme, input)?, &mut signature).map_err(failed)?;
                    }
                }
                Ok(signature)
            }
            Pair::Ec(pair) => match input {
                Input::Message(message) => pair.sign(&SystemRandom::new(), message),
                Input::Digest(_) => pair.sign_digest(&digest(scheme, input)?),
            }
            .map(|signature| signature.as_ref().to_vec())
            .map_err(failed),
            Pair::Ed25519(pair) => match input {
                Input::Message(message) => {
                    pair.try_sign(message).map(|signature| signature.as_ref().to_vec()).map_err(failed)
                }
                Input::Digest(_) => Err(SignError::Input { scheme, expected: "the whole message" }),
            },
        }
    }
}

fn digest(scheme: Scheme, input: Input<'_>) -> Result<Digest, SignError> {
    let wrong = || SignError::Input { scheme, expected: "a digest of its hash's length" };
    let octets = input.digest(scheme).ok_or_else(wrong)?;
    let hash = scheme.hash().ok_or_else(wrong)?;
    Digest::import_less_safe(&octets, hash.to_aws_lc()).map_err(|_| wrong())
}

fn rsa_encoding(scheme: Scheme) -> Option<&'static dyn RsaEncoding> {
    Some(match scheme {
        Scheme::RsaPssSha256 => &signature::RSA_PSS_SHA256,
        Scheme::RsaPssSha384 => &signature::RSA_PSS_SHA384,
        Scheme::RsaPssSha512 => &signature::RSA_PSS_SHA512,
        Scheme::RsaPkcs1Sha256 => &signature::RSA_PKCS1_SHA256,
        Scheme::RsaPkcs1Sha384 => &signature::RSA_PKCS1_SHA384,
        Scheme::RsaPkcs1Sha512 => &signature::RSA_PKCS1_SHA512,
        _ => return None,
    })
}

impl fmt::Debug for SoftwareKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SoftwareKey").field("algorithm", &self.public_key.algorithm()).finish_non_exhaustive()
    }
}
