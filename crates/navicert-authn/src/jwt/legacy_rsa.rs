//! RSA signatures that kube-apiserver accepts and aws-lc-rs does not support: keys of 1024 to 2047 bits with every hash, and
//! PSS with a salt of any length. Rarely used, verification only, off with [`Hardening::KeyStrength`](crate::profile::Hardening::KeyStrength).
//!
//! Only public values are handled, so constant time is not required. The arithmetic is num-bigint's; the two encodings are
//! those of RFC 8017, sections 9.1.2 and 9.2.
// S118

use aws_lc_rs::digest::{Context, Digest};
use num_bigint::BigUint;

use crate::model::{JwsAlgorithm, SignatureScheme};

/// Accepted key sizes; the upper bound limits the work of one verification.
const KEY_BITS: std::ops::RangeInclusive<usize> = 1024..=16_384;

/// Whether the key signed the message with this hash.
pub(super) fn is_signed(
    modulus: &[u8],
    bits: usize,
    exponent: u32,
    algorithm: JwsAlgorithm,
    hash: &Digest,
    signature: &[u8],
) -> bool {
    if !KEY_BITS.contains(&bits) || signature.len() != modulus.len() {
        return false;
    }
    let (modulus, number) = (BigUint::from_bytes_be(modulus), BigUint::from_bytes_be(signature));
    if number >= modulus {
        return false;
    }
    let opened = number.modpow(&BigUint::from(exponent), &modulus).to_bytes_be();
    match algorithm.scheme() {
        SignatureScheme::Pkcs1 => {
            // The leading zero byte is not part of the number.
            pkcs1(algorithm, hash.as_ref(), signature.len()).is_some_and(|expected| opened == expected)
        }
        SignatureScheme::Pss => pss(algorithm, hash.as_ref(), &opened, bits - 1).is_some(),
        SignatureScheme::Ecdsa => false,
    }
}

/// EMSA-PKCS1-v1_5 without its leading zero byte: 1, padding of 255, 0, the hash's identifier and the hash.
fn pkcs1(algorithm: JwsAlgorithm, hash: &[u8], length: usize) -> Option<Vec<u8>> {
    // DigestInfo of SHA-256, SHA-384 and SHA-512 differ in two lengths and the last byte of the identifier.
    let (name, total) = match hash.len() {
        32 => (1, 0x31),
        48 => (2, 0x41),
        _ => (3, 0x51),
    };
    let hash_length = u8::try_from(hash.len()).ok()?;
    let mut info = vec![0x30, total, 0x30, 0x0d, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, name, 5, 0, 4];
    info.push(hash_length);
    info.extend(hash);
    let padding = length.checked_sub(info.len() + 3).filter(|padding| *padding >= 8)?;
    debug_assert_eq!(algorithm.digest().output_len(), hash.len());
    let mut encoded = vec![1];
    encoded.extend(std::iter::repeat_n(0xff, padding));
    encoded.push(0);
    encoded.extend(info);
    Some(encoded)
}

/// EMSA-PSS-VERIFY with the salt length of the encoding.
fn pss(algorithm: JwsAlgorithm, hash: &[u8], opened: &[u8], bits: usize) -> Option<()> {
    let length = bits.div_ceil(8);
    let mut encoded = vec![0; length.checked_sub(opened.len())?];
    encoded.extend(opened);
    let [rest @ .., 0xbc] = encoded.as_slice() else { return None };
    let (masked, inner) = rest.split_at_checked(rest.len().checked_sub(hash.len())?)?;
    let spare = 8 * length - bits;
    let clear = 0xff_u8.checked_shr(u32::try_from(spare).ok()?)?;
    if masked.first()? & !clear != 0 {
        return None;
    }
    let mut block: Vec<u8> =
        masked.iter().zip(mask(algorithm, inner, masked.len())).map(|(byte, mask)| byte ^ mask).collect();
    *block.first_mut()? &= clear;
    let zeros = block.iter().take_while(|byte| **byte == 0).count();
    let [1, salt @ ..] = block.get(zeros..)? else { return None };
    let mut context = Context::new(algorithm.digest());
    context.update(&[0; 8]);
    context.update(hash);
    context.update(salt);
    (context.finish().as_ref() == inner).then_some(())
}

/// MGF1.
fn mask(algorithm: JwsAlgorithm, seed: &[u8], length: usize) -> Vec<u8> {
    let mut mask = Vec::with_capacity(length + 64);
    for counter in 0_u32.. {
        if mask.len() >= length {
            break;
        }
        let mut context = Context::new(algorithm.digest());
        context.update(seed);
        context.update(&counter.to_be_bytes());
        mask.extend(context.finish().as_ref());
    }
    mask.truncate(length);
    mask
}
