//! Whether a key's owner signed a text. Everything usual goes to aws-lc-rs; what only profile `kube` needs takes a
//! longer way: other pairs of curve and hash through DER, and the corners of RSA through `rare_rsa`.

use aws_lc_rs::digest::{self, Digest};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA384_ASN1, ECDSA_P256_SHA512_ASN1, ECDSA_P384_SHA256_ASN1,
    ECDSA_P384_SHA384_FIXED, ECDSA_P384_SHA512_ASN1, ECDSA_P521_SHA256_ASN1, ECDSA_P521_SHA384_ASN1,
    ECDSA_P521_SHA512_FIXED, EcdsaVerificationAlgorithm, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
};

use super::algorithm::{Algorithm, Scheme};
use super::claims::{Checked, UnverifiedClaims, VerifiedClaims};
use super::compact::{Part, ROOM, RawToken};
use super::header::Header;
use super::rare_rsa;
use crate::jwks::KeySet;
use crate::jwks::key::{Curve, Key, Material};
use crate::outcome::Refusal;
use crate::profile::{Profile, Rule};

/// Finds the key that signed the token, and vouches for the claims.
pub(crate) fn verify<'p>(
    token: &RawToken<'_>,
    header: (&Header<'_>, &Part),
    payload: &Part,
    claims: (UnverifiedClaims<'p>, &Checked),
    keys: &KeySet,
    profile: &Profile,
) -> Result<VerifiedClaims<'p>, Refusal> {
    check(token, header, payload, keys, profile)?;
    Ok(claims.0.vouched_for(claims.1))
}

/// Whether some key signed the token.
pub(crate) fn check(
    token: &RawToken<'_>,
    (header, header_part): (&Header, &Part),
    payload: &Part,
    keys: &KeySet,
    profile: &Profile,
) -> Result<(), Refusal> {
    let mut room = [0; ROOM];
    let (signature, is_canonical) =
        token.signature(&mut room).ok_or(Refusal::Malformed("the signature is not base64url"))?;
    if profile.has(Rule::H9) && !(header_part.is_canonical && payload.is_canonical && is_canonical) {
        return Err(Refusal::Malformed("the text is not the canonical one"));
    }
    if !header.is_understood {
        return Err(Refusal::Signature);
    }
    let message = token.signed(header_part, payload, header.payload_is_encoded);
    let mut candidates = keys.candidates(&header.kid).take(profile.limits.keys).peekable();
    if candidates.peek().is_none() && !header.kid.is_empty() {
        return Err(Refusal::UnknownKey);
    }
    // Hashed once, however many keys are tried.
    let message = digest::digest(header.algorithm.digest(), &message);
    let signed_by = |key: &&Key| is_signed(key, header.algorithm, &message, &signature, profile);
    let key = candidates.find(signed_by).ok_or(Refusal::Signature)?;
    if header.is_plain && header_part.is_canonical && !header.kid.is_empty() {
        key.remember_header(token.header_text(), header.algorithm);
    }
    Ok(())
}

/// Whether this key made this signature.
fn is_signed(key: &Key, algorithm: Algorithm, message: &Digest, signature: &[u8], profile: &Profile) -> bool {
    if profile.has(Rule::H10) && !key.usage.allows(algorithm) {
        return false;
    }
    let strict = profile.has(Rule::H11);
    match (&key.material, algorithm.scheme()) {
        (Material::Rsa { modulus, bits, exponent }, Scheme::Pkcs1 | Scheme::Pss) => {
            let usual = (2048..=8192).contains(bits);
            let parsed = || rsa_key(modulus, *exponent, algorithm);
            if usual
                && key
                    .parsed(algorithm, parsed)
                    .is_some_and(|key| key.verify_digest_sig(message, signature).is_ok())
            {
                return true;
            }
            let rare = !usual || algorithm.scheme() == Scheme::Pss;
            !strict && rare && rare_rsa::is_signed(modulus, *bits, *exponent, algorithm, message, signature)
        }
        (Material::Ec { curve, point }, Scheme::Ecdsa) => {
            let (verification, is_fixed) = ecdsa(*curve, algorithm);
            if signature.len() != ecdsa_length(algorithm) || (strict && !is_fixed) {
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

fn rsa_key(modulus: &[u8], exponent: u32, algorithm: Algorithm) -> Option<ParsedPublicKey> {
    let exponent = exponent.to_be_bytes();
    let zeros = exponent.iter().take_while(|byte| **byte == 0).count();
    let components = RsaPublicKeyComponents { n: modulus, e: exponent.get(zeros..)? };
    components.to_parsed_public_key(rsa_parameters(algorithm)?).ok()
}

fn rsa_parameters(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Algorithm::RS256 => Some(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Some(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Some(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Some(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Some(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Some(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 | Algorithm::ES384 | Algorithm::ES512 => None,
    }
}

/// How a pair of curve and algorithm is verified, and whether it is the pair that RFC 7518 means.
fn ecdsa(curve: Curve, algorithm: Algorithm) -> (&'static EcdsaVerificationAlgorithm, bool) {
    match (curve, algorithm) {
        (Curve::P256, Algorithm::ES384) => (&ECDSA_P256_SHA384_ASN1, false),
        (Curve::P256, Algorithm::ES512) => (&ECDSA_P256_SHA512_ASN1, false),
        (Curve::P256, _) => (&ECDSA_P256_SHA256_FIXED, algorithm == Algorithm::ES256),
        (Curve::P384, Algorithm::ES256) => (&ECDSA_P384_SHA256_ASN1, false),
        (Curve::P384, Algorithm::ES512) => (&ECDSA_P384_SHA512_ASN1, false),
        (Curve::P384, _) => (&ECDSA_P384_SHA384_FIXED, algorithm == Algorithm::ES384),
        (Curve::P521, Algorithm::ES256) => (&ECDSA_P521_SHA256_ASN1, false),
        (Curve::P521, Algorithm::ES384) => (&ECDSA_P521_SHA384_ASN1, false),
        (Curve::P521, _) => (&ECDSA_P521_SHA512_FIXED, algorithm == Algorithm::ES512),
    }
}

/// By the algorithm's name, whatever the key's curve (S118).
fn ecdsa_length(algorithm: Algorithm) -> usize {
    match algorithm {
        Algorithm::ES256 => 64,
        Algorithm::ES384 => 96,
        _ => 132,
    }
}

/// Two numbers side by side as the DER sequence of two integers.
fn der(signature: &[u8]) -> Vec<u8> {
    let (r, s) = signature.split_at(signature.len() / 2);
    let mut body = Vec::with_capacity(signature.len() + 8);
    for number in [r, s] {
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        let digits = number.get(zeros..).unwrap_or_default();
        let sign = usize::from(digits.first().is_none_or(|first| first & 0x80 != 0));
        body.push(2);
        // At most 67 bytes: one byte of length.
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
