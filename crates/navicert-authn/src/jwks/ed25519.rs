//! Which Ed25519 keys go-jose 4 accepts in a key set. They verify no token here, but an invalid one rejects its set.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};

use super::key::JwkError;

/// Length of a public key and of a seed in bytes.
const KEY_BYTES: usize = 32;

/// The encoded y coordinates of points of low order, without the sign of x.
const LOW_ORDER: [[u8; KEY_BYTES]; 7] = [
    [0; KEY_BYTES],
    with_ends(1, 0, 0),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5,
        0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a,
        0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
    with_ends(0xec, 0xff, 0x7f),
    with_ends(0xed, 0xff, 0x7f),
    with_ends(0xee, 0xff, 0x7f),
];

const fn with_ends(first: u8, middle: u8, last: u8) -> [u8; KEY_BYTES] {
    let mut bytes = [middle; KEY_BYTES];
    bytes[0] = first;
    bytes[KEY_BYTES - 1] = last;
    bytes
}

/// Checks a public key, and the seed of a private one.
pub(super) fn check(public: &[u8], seed: Option<&[u8]>) -> Result<(), JwkError> {
    let mut unsigned = <[u8; KEY_BYTES]>::try_from(public).map_err(|_| JwkError::Point)?;
    if let Some(last) = unsigned.last_mut() {
        *last &= 0x7f;
    }
    if LOW_ORDER.contains(&unsigned) {
        return Err(JwkError::Point);
    }
    let Some(seed) = seed else { return Ok(()) };
    let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| JwkError::Point)?;
    if pair.public_key().as_ref() == public { Ok(()) } else { Err(JwkError::Point) }
}

#[cfg(test)]
mod tests {
    use super::*;

    // V2
    #[test]
    fn low_order_points_and_foreign_seeds_are_rejected() {
        let seed = [7; KEY_BYTES];
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
        let public = pair.public_key().as_ref();
        assert_eq!(check(public, None), Ok(()));
        assert_eq!(check(public, Some(&seed)), Ok(()));
        assert_eq!(check(public, Some(&[8; KEY_BYTES])), Err(JwkError::Point));
        assert_eq!(check(public, Some(&[7; 31])), Err(JwkError::Point));
        assert_eq!(check(&public[1..], None), Err(JwkError::Point));
        for mut point in LOW_ORDER {
            assert_eq!(check(&point, None), Err(JwkError::Point));
            point[31] |= 0x80;
            assert_eq!(check(&point, None), Err(JwkError::Point));
        }
    }
}
