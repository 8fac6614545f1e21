//! Which mechanism of a token does which scheme, and how its answer becomes what TLS wants (client-credentials.md C831).

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

/// What a token with these mechanisms can do with a key of this kind, best first. A token without RSA-PSS is left with
/// the schemes of TLS 1.2.
pub(super) fn schemes(algorithm: KeyAlgorithm, available: &[MechanismType]) -> Vec<Scheme> {
    Scheme::of_key(algorithm).filter(|scheme| way(*scheme, available).is_some()).collect()
}

/// What the device is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A digest that was made here; for PKCS#1 v1.5 with its prefix.
    Digest,
    /// The whole message; the device hashes.
    Message,
}

/// A digest first: less goes over a slow wire, and a caller may have nothing else.
fn way(scheme: Scheme, available: &[MechanismType]) -> Option<Way> {
    let on_digest = match scheme.padding() {
        Some(Padding::Pss) => MechanismType::RSA_PKCS_PSS,
        Some(Padding::Pkcs1) => MechanismType::RSA_PKCS,
        None if scheme == Scheme::Ed25519 => {
            return available.contains(&MechanismType::EDDSA).then_some(Way::Message);
        }
        None => MechanismType::ECDSA,
    };
    if available.contains(&on_digest) {
        return Some(Way::Digest);
    }
    let on_message = hashing(scheme)?.mechanism_type();
    available.contains(&on_message).then_some(Way::Message)
}

/// The mechanism that hashes by itself.
fn hashing(scheme: Scheme) -> Option<Mechanism<'static>> {
    Some(match scheme {
        Scheme::RsaPssSha256 => Mechanism::Sha256RsaPkcsPss(salted(Hash::Sha256)),
        Scheme::RsaPssSha384 => Mechanism::Sha384RsaPkcsPss(salted(Hash::Sha384)),
        Scheme::RsaPssSha512 => Mechanism::Sha512RsaPkcsPss(salted(Hash::Sha512)),
        Scheme::RsaPkcs1Sha256 => Mechanism::Sha256RsaPkcs,
        Scheme::RsaPkcs1Sha384 => Mechanism::Sha384RsaPkcs,
        Scheme::RsaPkcs1Sha512 => Mechanism::Sha512RsaPkcs,
        Scheme::EcdsaP256Sha256 => Mechanism::EcdsaSha256,
        Scheme::EcdsaP384Sha384 => Mechanism::EcdsaSha384,
        Scheme::EcdsaP521Sha512 => Mechanism::EcdsaSha512,
        Scheme::Ed25519 => return None,
    })
}

fn salted(hash: Hash) -> PkcsPssParams {
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

/// What a device is to do, and with which bytes.
type Prepared<'a> = (Mechanism<'static>, Cow<'a, [u8]>);

fn prepare(way: Way, scheme: Scheme, input: Input<'_>) -> Result<Prepared<'_>, SignError> {
    match (way, input) {
        (Way::Digest, input) => {
            let wrong = || SignError::Input { scheme, expected: "a digest of its hash's length" };
            let (digest, hash) = (input.digest(scheme).ok_or_else(wrong)?, scheme.hash().ok_or_else(wrong)?);
            Ok(match scheme.padding() {
                Some(Padding::Pss) => (Mechanism::RsaPkcsPss(salted(hash)), digest),
                Some(Padding::Pkcs1) => (Mechanism::RsaPkcs, hash.digest_info(&digest).into()),
                None => (Mechanism::Ecdsa, digest),
            })
        }
        (Way::Message, Input::Message(message)) => {
            let pure = || Mechanism::Eddsa(EddsaParams::new(EddsaSignatureScheme::Pure));
            Ok((hashing(scheme).unwrap_or_else(pure), message.into()))
        }
        (Way::Message, Input::Digest(_)) => Err(SignError::Input { scheme, expected: "the whole message" }),
    }
}

/// One signature, in TLS's encoding. The outer error is about what was asked, the inner one the module's.
pub(super) fn sign(
    session: &Session,
    key: ObjectHandle,
    available: &[MechanismType],
    scheme: Scheme,
    input: Input<'_>,
) -> Result<Result<Vec<u8>, Error>, SignError> {
    let unsupported = || SignError::UnsupportedScheme { scheme: scheme.to_string() };
    let way = way(scheme, available).ok_or_else(unsupported)?;
    let (mechanism, data) = prepare(way, scheme, input)?;
    Ok(session.sign(&mechanism, key, &data).map(|signature| encoded(scheme, signature)))
}

/// The same by a key that wants a login for every signature (`CKA_ALWAYS_AUTHENTICATE`): it comes between the beginning
/// and the rest. Piece by piece, because that is where there is a gap; so a mechanism that hashes by itself comes first,
/// which every module takes in pieces.
pub(super) fn sign_with_login(
    session: &Session,
    key: ObjectHandle,
    available: &[MechanismType],
    scheme: Scheme,
    input: Input<'_>,
    log_in: impl FnOnce() -> Result<(), SignError>,
) -> Result<Result<Vec<u8>, Error>, SignError> {
    let unsupported = || SignError::UnsupportedScheme { scheme: scheme.to_string() };
    let hashes = hashing(scheme).is_some_and(|mechanism| available.contains(&mechanism.mechanism_type()));
    let way = match input {
        Input::Message(_) if hashes => Way::Message,
        _ => way(scheme, available).ok_or_else(unsupported)?,
    };
    let (mechanism, data) = prepare(way, scheme, input)?;
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
    fn a_token_without_rsa_pss_is_left_with_tls_1_2() {
        let available = [MechanismType::RSA_PKCS, MechanismType::ECDSA];
        let can = schemes(KeyAlgorithm::Rsa, &available);
        assert_eq!(can, [Scheme::RsaPkcs1Sha256, Scheme::RsaPkcs1Sha384, Scheme::RsaPkcs1Sha512]);
        assert!(!can.iter().any(|scheme| scheme.is_in_tls13()));
    }

    #[test]
    fn a_token_that_hashes_itself_can_do_what_it_hashes() {
        let available = [MechanismType::SHA256_RSA_PKCS_PSS, MechanismType::ECDSA_SHA384];
        assert_eq!(schemes(KeyAlgorithm::Rsa, &available), [Scheme::RsaPssSha256]);
        assert_eq!(schemes(KeyAlgorithm::P384, &available), [Scheme::EcdsaP384Sha384]);
        assert!(schemes(KeyAlgorithm::P256, &available).is_empty());
        assert_eq!(way(Scheme::RsaPssSha256, &available), Some(Way::Message));
    }

    #[test]
    fn nothing_signs_with_ed25519_but_eddsa() {
        assert!(schemes(KeyAlgorithm::Ed25519, &[MechanismType::ECDSA]).is_empty());
        assert_eq!(schemes(KeyAlgorithm::Ed25519, &[MechanismType::EDDSA]), [Scheme::Ed25519]);
    }
}
