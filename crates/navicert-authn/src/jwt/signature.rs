//! Verifies signatures. aws-lc-rs handles the usual ones; those that only profile `kube` accepts are converted: other pairs of
//! curve and hash to DER, unusual RSA parameters to `legacy_rsa`.

use aws_lc_rs::digest::{self, Digest};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA384_ASN1, ECDSA_P256_SHA512_ASN1, ECDSA_P384_SHA256_ASN1,
    ECDSA_P384_SHA384_FIXED, ECDSA_P384_SHA512_ASN1, ECDSA_P521_SHA256_ASN1, ECDSA_P521_SHA384_ASN1,
    ECDSA_P521_SHA512_FIXED, EcdsaVerificationAlgorithm, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
};

use super::claims::{CheckedClaims, UnverifiedClaims, VerifiedClaims};
use super::compact::{RawToken, SIGNATURE_BUFFER_BYTES, TokenPart};
use super::header::Header;
use super::legacy_rsa;
use crate::jwks::KeySet;
use crate::jwks::key::{Curve, Jwk, Material};
use crate::model::outcome::Refusal;
use crate::model::{JwsAlgorithm, SignatureScheme};
use crate::profile::{AuthnProfile, CurveRule, Hardening};

/// Verifies the signature and returns the verified claims.
pub(crate) fn verify<'p>(
    token: &RawToken<'_>,
    header: (&Header<'_>, &TokenPart),
    payload: &TokenPart,
    claims: (UnverifiedClaims<'p>, &CheckedClaims<'p>),
    keys: &KeySet,
    profile: &AuthnProfile,
) -> Result<VerifiedClaims<'p>, Refusal> {
    check(token, header, payload, keys, profile)?;
    Ok(claims.0.into_verified(claims.1))
}

/// Checks that one of the keys signed the token.
pub(crate) fn check(
    token: &RawToken<'_>,
    (header, header_part): (&Header, &TokenPart),
    payload: &TokenPart,
    keys: &KeySet,
    profile: &AuthnProfile,
) -> Result<(), Refusal> {
    let mut room = [0; SIGNATURE_BUFFER_BYTES];
    let (signature, is_canonical) =
        token.signature(&mut room).ok_or(Refusal::Malformed("the signature is not base64url"))?;
    if profile.has(Hardening::CanonicalEncoding)
        && !(header_part.is_canonical && payload.is_canonical && is_canonical)
    {
        return Err(Refusal::Malformed("the token is not in canonical encoding"));
    }
    if !header.is_understood {
        return Err(Refusal::Signature);
    }
    let message = token.signed(header_part, payload, header.payload_is_encoded);
    let mut candidates = keys.candidates(&header.kid).take(profile.limits.keys).peekable();
    if candidates.peek().is_none() && !header.kid.is_empty() {
        return Err(Refusal::UnknownKey);
    }
    // Hashed once for all keys.
    let message = digest::digest(header.algorithm.digest(), &message);
    let signed_by = |key: &&Jwk| is_signed(key, header.algorithm, &message, &signature, profile);
    let key = candidates.find(signed_by).ok_or(Refusal::Signature)?;
    if header.is_plain && header_part.is_canonical && !header.kid.is_empty() {
        key.remember_header(token.header_text(), header.algorithm);
    }
    Ok(())
}

/// Whether this key made this signature.
fn is_signed(
    key: &Jwk,
    algorithm: JwsAlgorithm,
    message: &Digest,
    signature: &[u8],
    profile: &AuthnProfile,
) -> bool {
    if profile.has(Hardening::KeyUsage) && !key.usage.allows(algorithm) {
        return false;
    }
    let strict = profile.has(Hardening::KeyStrength);
    match (&key.material, algorithm.scheme()) {
        (Material::Rsa { modulus, bits, exponent }, SignatureScheme::Pkcs1 | SignatureScheme::Pss) => {
            let usual = (2048..=8192).contains(bits);
            let parsed = || rsa_key(modulus, *exponent, algorithm);
            if usual
                && key
                    .parsed(algorithm, parsed)
                    .is_some_and(|key| key.verify_digest_sig(message, signature).is_ok())
            {
                return true;
            }
            let rare = !usual || algorithm.scheme() == SignatureScheme::Pss;
            !strict && rare && legacy_rsa::is_signed(modulus, *bits, *exponent, algorithm, message, signature)
        }
        (Material::Ec { curve, point }, SignatureScheme::Ecdsa) => {
            let (verification, is_fixed) = ecdsa(*curve, algorithm);
            let one_curve = strict || profile.facts().curve == CurveRule::OfAlgorithm;
            if signature.len() != ecdsa_length(algorithm) || (one_curve && !is_fixed) {
                return false;
            }
            let Some(key) = key.parsed(algorithm, || ParsedPublicKey::new(verification, point).ok()) else {
                return false;
            };
            if is_fixed {
                return key.verify_digest_sig(message, signature).is_ok();
            }
            key.verify_digest_sig(message, &der(signature)).is_ok()
        }
        _ => false,
    }
}

fn rsa_key(modulus: &[u8], exponent: u32, algorithm: JwsAlgorithm) -> Option<ParsedPublicKey> {
    let exponent = exponent.to_be_bytes();
    let zeros = exponent.iter().take_while(|byte| **byte == 0).count();
    let components = RsaPublicKeyComponents { n: modulus, e: exponent.get(zeros..)? };
    components.to_parsed_public_key(rsa_parameters(algorithm)?).ok()
}

fn rsa_parameters(algorithm: JwsAlgorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        JwsAlgorithm::RS256 => Some(&RSA_PKCS1_2048_8192_SHA256),
        JwsAlgorithm::RS384 => Some(&RSA_PKCS1_2048_8192_SHA384),
        JwsAlgorithm::RS512 => Some(&RSA_PKCS1_2048_8192_SHA512),
        JwsAlgorithm::PS256 => Some(&RSA_PSS_2048_8192_SHA256),
        JwsAlgorithm::PS384 => Some(&RSA_PSS_2048_8192_SHA384),
        JwsAlgorithm::PS512 => Some(&RSA_PSS_2048_8192_SHA512),
        JwsAlgorithm::ES256 | JwsAlgorithm::ES384 | JwsAlgorithm::ES512 => None,
    }
}

/// The verification algorithm for a curve, and whether it is the pair that RFC 7518 defines.
fn ecdsa(curve: Curve, algorithm: JwsAlgorithm) -> (&'static EcdsaVerificationAlgorithm, bool) {
    match (curve, algorithm) {
        (Curve::P256, JwsAlgorithm::ES384) => (&ECDSA_P256_SHA384_ASN1, false),
        (Curve::P256, JwsAlgorithm::ES512) => (&ECDSA_P256_SHA512_ASN1, false),
        (Curve::P256, _) => (&ECDSA_P256_SHA256_FIXED, algorithm == JwsAlgorithm::ES256),
        (Curve::P384, JwsAlgorithm::ES256) => (&ECDSA_P384_SHA256_ASN1, false),
        (Curve::P384, JwsAlgorithm::ES512) => (&ECDSA_P384_SHA512_ASN1, false),
        (Curve::P384, _) => (&ECDSA_P384_SHA384_FIXED, algorithm == JwsAlgorithm::ES384),
        (Curve::P521, JwsAlgorithm::ES256) => (&ECDSA_P521_SHA256_ASN1, false),
        (Curve::P521, JwsAlgorithm::ES384) => (&ECDSA_P521_SHA384_ASN1, false),
        (Curve::P521, _) => (&ECDSA_P521_SHA512_FIXED, algorithm == JwsAlgorithm::ES512),
    }
}

/// By the algorithm's name, regardless of the key's curve.
// S118
fn ecdsa_length(algorithm: JwsAlgorithm) -> usize {
    match algorithm {
        JwsAlgorithm::ES256 => 64,
        JwsAlgorithm::ES384 => 96,
        _ => 132,
    }
}

/// Converts a fixed-size signature to a DER sequence of two integers.
fn der(signature: &[u8]) -> Vec<u8> {
    let (r, s) = signature.split_at(signature.len() / 2);
    let mut body = Vec::with_capacity(signature.len() + 8);
    for number in [r, s] {
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        let digits = number.get(zeros..).unwrap_or_default();
        let sign = usize::from(digits.first().is_none_or(|first| first & 0x80 != 0));
        body.push(2);
        // At most 67 bytes, so the length fits in one byte.
        body.push(u8::try_from(digits.len() + sign).unwrap_or_default());
        body.extend(std::iter::repeat_n(0, sign));
        body.extend(digits);
    }
    let mut sequence = vec![0x30];
    match u8::try_from(body.len()) {
        Ok(length @ 0..0x80) => sequence.push(length),
        Ok(length) => sequence.extend([0x81, length]),
        Err(_) => return Vec::new(),
    }
    sequence.extend(body);
    sequence
}
