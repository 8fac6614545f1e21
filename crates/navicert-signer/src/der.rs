//! Minimal DER: writes public keys and ECDSA signatures, and reads the elements of keys.

pub(crate) use navicert_tls::der::split;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
#[cfg(any(test, feature = "pkcs11"))]
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const NULL: u8 = 0x05;
const SEQUENCE: u8 = 0x30;

/// Encodes an element with its tag and length.
pub(crate) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(length @ 0..=127) => out.push(length),
        _ => {
            let octets = content.len().to_be_bytes();
            let octets: Vec<u8> = octets.into_iter().skip_while(|octet| *octet == 0).collect();
            out.push(0x80 | u8::try_from(octets.len()).unwrap_or(0x7f));
            out.extend_from_slice(&octets);
        }
    }
    out.extend_from_slice(content);
    out
}

/// Encodes a sequence of encoded elements.
pub(crate) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

/// A non-negative integer from its big-endian octets.
pub(crate) fn integer(octets: &[u8]) -> Vec<u8> {
    let mut digits: Vec<u8> = octets.iter().copied().skip_while(|octet| *octet == 0).collect();
    if digits.first().is_none_or(|first| first & 0x80 != 0) {
        digits.insert(0, 0);
    }
    element(INTEGER, &digits)
}

/// `SubjectPublicKeyInfo` of an algorithm (encoded OIDs, the second one a parameter) and a key's octets.
pub(crate) fn public_key_info(algorithm: &[u8], parameter: Option<&[u8]>, key: &[u8]) -> Vec<u8> {
    let algorithm = element(OBJECT_IDENTIFIER, algorithm);
    let parameter = parameter.map(|oid| element(OBJECT_IDENTIFIER, oid)).unwrap_or_default();
    let mut bits = vec![0];
    bits.extend_from_slice(key);
    sequence(&[&sequence(&[&algorithm, &parameter]), &element(BIT_STRING, &bits)])
}

/// `SubjectPublicKeyInfo` of an RSA key, with a NULL algorithm parameter.
pub(crate) fn rsa_public_key_info(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    let algorithm = sequence(&[&element(OBJECT_IDENTIFIER, algorithm), &element(NULL, &[])]);
    let mut bits = vec![0];
    bits.extend_from_slice(key);
    sequence(&[&algorithm, &element(BIT_STRING, &bits)])
}

/// `SEQUENCE { r, s }` from `r ‖ s` of equal length.
// C831
pub(crate) fn ecdsa_signature(fixed: &[u8]) -> Vec<u8> {
    let (r, s) = fixed.split_at(fixed.len() / 2);
    sequence(&[&integer(r), &integer(s)])
}

/// The content of an OCTET STRING that is the whole input.
#[cfg(any(test, feature = "pkcs11"))]
pub(crate) fn octet_string(input: &[u8]) -> Option<&[u8]> {
    whole(OCTET_STRING, input)
}

/// The octets of an OBJECT IDENTIFIER that is the whole input.
#[cfg(any(test, feature = "pkcs11"))]
pub(crate) fn object_identifier(input: &[u8]) -> Option<&[u8]> {
    whole(OBJECT_IDENTIFIER, input)
}

#[cfg(any(test, feature = "pkcs11"))]
fn whole(tag: u8, input: &[u8]) -> Option<&[u8]> {
    let (content, rest) = split(tag, input)?;
    rest.is_empty().then_some(content)
}

/// Splits concatenated DER sequences, such as a certificate chain; `None` on trailing data.
pub(crate) fn sequences(mut input: &[u8]) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    while !input.is_empty() {
        let (_, rest) = split(SEQUENCE, input)?;
        let (one, after) = input.split_at_checked(input.len().checked_sub(rest.len())?)?;
        found.push(one);
        input = after;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn encodes_integers_as_positive_and_minimal() {
        assert_eq!(integer(&[0, 0, 1]), [2, 1, 1]);
        assert_eq!(integer(&[0x80]), [2, 2, 0, 0x80]);
        assert_eq!(integer(&[0, 0]), [2, 1, 0]);
    }

    #[test]
    fn encodes_long_lengths() {
        for length in [0, 127, 128, 255, 256, 70_000] {
            let encoded = element(OCTET_STRING, &vec![7; length]);
            assert_eq!(octet_string(&encoded).map(<[u8]>::len), Some(length));
        }
    }

    proptest! {
        #[test]
        fn parser_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = (split(SEQUENCE, &bytes), sequences(&bytes), octet_string(&bytes));
        }

        #[test]
        fn splits_concatenated_sequences(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..4)) {
            let encoded: Vec<Vec<u8>> = parts.iter().map(|part| sequence(&[part])).collect();
            let joined = encoded.concat();
            let apart: Vec<Vec<u8>> = sequences(&joined).unwrap().into_iter().map(<[u8]>::to_vec).collect();
            prop_assert_eq!(apart, encoded);
        }
    }
}
