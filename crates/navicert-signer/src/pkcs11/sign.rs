//! Chooses the token's mechanism for a scheme and converts the signature to TLS's encoding.
// C831

use std::borrow::Cow;

use cryptoki::error::Error;
use cryptoki::mechanism::eddsa::{EddsaParams, EddsaSignatureScheme};
use cryptoki::mechanism::rsa::{PkcsMgfType, PkcsPssParams};
use cryptoki::mechanism::{Mechanism, MechanismType};
use cryptoki::object::ObjectHandle;
use cryptoki::session::Session;
use cryptoki::types::Ulong;

use crate::der;
use crate::error::SignError;
use crate::scheme::{Hash, Input, KeyAlgorithm, Padding, Scheme};

/// The schemes that a token with these mechanisms supports for a key algorithm, best first. Without RSA-PSS only the
/// schemes of TLS 1.2 remain for RSA.
pub(super) fn schemes(algorithm: KeyAlgorithm, available: &[MechanismType]) -> Vec<Scheme> {
    Scheme::for_key(algorithm).filter(|scheme| mechanism_input(*scheme, available).is_some()).collect()
}

/// What is passed to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MechanismInput {
    /// A digest computed here; for PKCS#1 v1.5 with its `DigestInfo` prefix.
    Digest,
    /// The whole message, which the device hashes.
    Message,
}

/// Prefers a digest: it is smaller to transfer, and the caller may have nothing else.
fn mechanism_input(scheme: Scheme, available: &[MechanismType]) -> Option<MechanismInput> {
    let on_digest = match scheme.padding() {
        Some(Padding::Pss) => MechanismType::RSA_PKCS_PSS,
        Some(Padding::Pkcs1) => MechanismType::RSA_PKCS,
        None if scheme == Scheme::Ed25519 => {
            return available.contains(&MechanismType::EDDSA).then_some(MechanismInput::Message);
        }
        None => MechanismType::ECDSA,
    };
    if available.contains(&on_digest) {
        return Some(MechanismInput::Digest);
    }
    let on_message = hashing_mechanism(scheme)?.mechanism_type();
    available.contains(&on_message).then_some(MechanismInput::Message)
}

/// The mechanism that includes hashing.
fn hashing_mechanism(scheme: Scheme) -> Option<Mechanism<'static>> {
    Some(match scheme {
        Scheme::RsaPssSha256 => Mechanism::Sha256RsaPkcsPss(pss_params(Hash::Sha256)),
        Scheme::RsaPssSha384 => Mechanism::Sha384RsaPkcsPss(pss_params(Hash::Sha384)),
        Scheme::RsaPssSha512 => Mechanism::Sha512RsaPkcsPss(pss_params(Hash::Sha512)),
        Scheme::RsaPkcs1Sha256 => Mechanism::Sha256RsaPkcs,
        Scheme::RsaPkcs1Sha384 => Mechanism::Sha384RsaPkcs,
        Scheme::RsaPkcs1Sha512 => Mechanism::Sha512RsaPkcs,
        Scheme::EcdsaP256Sha256 => Mechanism::EcdsaSha256,
        Scheme::EcdsaP384Sha384 => Mechanism::EcdsaSha384,
        Scheme::EcdsaP521Sha512 => Mechanism::EcdsaSha512,
        Scheme::Ed25519 => return None,
    })
}

fn pss_params(hash: Hash) -> PkcsPssParams {
    let (hash_alg, mgf) = match hash {
        Hash::Sha256 => (MechanismType::SHA256, PkcsMgfType::MGF1_SHA256),
        Hash::Sha384 => (MechanismType::SHA384, PkcsMgfType::MGF1_SHA384),
        Hash::Sha512 => (MechanismType::SHA512, PkcsMgfType::MGF1_SHA512),
    };
    let s_len = Ulong::new(match hash {
        Hash::Sha256 => 32,
        Hash::Sha384 => 48,
        Hash::Sha512 => 64,
    });
    PkcsPssParams { hash_alg, mgf, s_len }
}

/// A mechanism and its input.
type Prepared<'a> = (Mechanism<'static>, Cow<'a, [u8]>);

fn prepare(kind: MechanismInput, scheme: Scheme, input: Input<'_>) -> Result<Prepared<'_>, SignError> {
    match (kind, input) {
        (MechanismInput::Digest, input) => {
            let wrong = || SignError::Input { scheme, expected: "a digest of its hash's length" };
            let (digest, hash) = (input.digest(scheme).ok_or_else(wrong)?, scheme.hash().ok_or_else(wrong)?);
            Ok(match scheme.padding() {
                Some(Padding::Pss) => (Mechanism::RsaPkcsPss(pss_params(hash)), digest),
                Some(Padding::Pkcs1) => (Mechanism::RsaPkcs, hash.digest_info(&digest).into()),
                None => (Mechanism::Ecdsa, digest),
            })
        }
        (MechanismInput::Message, Input::Message(message)) => {
            let pure = || Mechanism::Eddsa(EddsaParams::new(EddsaSignatureScheme::Pure));
            Ok((hashing_mechanism(scheme).unwrap_or_else(pure), message.into()))
        }
        (MechanismInput::Message, Input::Digest(_)) => {
            Err(SignError::Input { scheme, expected: "the whole message" })
        }
    }
}

/// Signs once, in TLS's encoding. The outer error is an unsupported request, the inner one an error of the module.
pub(super) fn sign(
    session: &Session,
    key: ObjectHandle,
    available: &[MechanismType],
    scheme: Scheme,
    input: Input<'_>,
) -> Result<Result<Vec<u8>, Error>, SignError> {
    let unsupported = || SignError::UnsupportedScheme { scheme: scheme.to_string() };
    let kind = mechanism_input(scheme, available).ok_or_else(unsupported)?;
    let (mechanism, data) = prepare(kind, scheme, input)?;
    Ok(session.sign(&mechanism, key, &data).map(|signature| encoded(scheme, signature)))
}

/// Like [`sign`], for a key with `CKA_ALWAYS_AUTHENTICATE`: the login happens between `C_SignInit` and `C_SignUpdate`.
/// Prefers a mechanism that includes hashing, because every module supports those in multi-part operations.
pub(super) fn sign_with_login(
    session: &Session,
    key: ObjectHandle,
    available: &[MechanismType],
    scheme: Scheme,
    input: Input<'_>,
    log_in: impl FnOnce() -> Result<(), SignError>,
) -> Result<Result<Vec<u8>, Error>, SignError> {
    let unsupported = || SignError::UnsupportedScheme { scheme: scheme.to_string() };
    let hashes =
        hashing_mechanism(scheme).is_some_and(|mechanism| available.contains(&mechanism.mechanism_type()));
    let kind = match input {
        Input::Message(_) if hashes => MechanismInput::Message,
        _ => mechanism_input(scheme, available).ok_or_else(unsupported)?,
    };
    let (mechanism, data) = prepare(kind, scheme, input)?;
    if let Err(error) = session.sign_init(&mechanism, key) {
        return Ok(Err(error));
    }
    log_in()?;
    let signed = session.sign_update(&data).and_then(|()| session.sign_final());
    Ok(signed.map(|signature| encoded(scheme, signature)))
}

fn encoded(scheme: Scheme, signature: Vec<u8>) -> Vec<u8> {
    match scheme {
        Scheme::EcdsaP256Sha256 | Scheme::EcdsaP384Sha384 | Scheme::EcdsaP521Sha512 => {
            der::ecdsa_signature(&signature)
        }
        _ => signature,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_without_rsa_pss_supports_only_tls_1_2_schemes() {
        let available = [MechanismType::RSA_PKCS, MechanismType::ECDSA];
        let can = schemes(KeyAlgorithm::Rsa, &available);
        assert_eq!(can, [Scheme::RsaPkcs1Sha256, Scheme::RsaPkcs1Sha384, Scheme::RsaPkcs1Sha512]);
        assert!(!can.iter().any(|scheme| scheme.is_in_tls13()));
    }

    #[test]
    fn token_with_hashing_mechanisms_supports_their_schemes() {
        let available = [MechanismType::SHA256_RSA_PKCS_PSS, MechanismType::ECDSA_SHA384];
        assert_eq!(schemes(KeyAlgorithm::Rsa, &available), [Scheme::RsaPssSha256]);
        assert_eq!(schemes(KeyAlgorithm::P384, &available), [Scheme::EcdsaP384Sha384]);
        assert!(schemes(KeyAlgorithm::P256, &available).is_empty());
        assert_eq!(mechanism_input(Scheme::RsaPssSha256, &available), Some(MechanismInput::Message));
    }

    #[test]
    fn ed25519_requires_the_eddsa_mechanism() {
        assert!(schemes(KeyAlgorithm::Ed25519, &[MechanismType::ECDSA]).is_empty());
        assert_eq!(schemes(KeyAlgorithm::Ed25519, &[MechanismType::EDDSA]), [Scheme::Ed25519]);
    }
}
