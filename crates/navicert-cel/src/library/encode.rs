//! Base64 of the encoders extension: standard alphabet, encoded with padding; decoding accepts missing padding and
//! ignores line breaks.

use std::fmt;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The byte offset of the first invalid base64 character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("illegal base64 data at input byte {0}")]
pub(crate) struct Base64Error(pub usize);

/// `base64.encode(bytes)`
pub(crate) fn write_base64(out: &mut impl fmt::Write, bytes: &[u8]) -> fmt::Result {
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = ALPHABET.get((bits >> (18 - 6 * at) & 63) as usize).copied().unwrap_or(b'=');
            out.write_char(if at <= group.len() { char::from(digit) } else { '=' })?;
        }
    }
    Ok(())
}

/// Maximum number of bytes that a text of this length decodes to.
#[must_use]
pub(crate) fn decoded_len_limit(text: usize) -> usize {
    text.div_ceil(4).saturating_mul(3)
}

/// `base64.decode(text)`, appended to `out`. After an error, `out` holds the bytes decoded so far.
pub(crate) fn read_base64(out: &mut Vec<u8>, text: &str) -> Result<(), Base64Error> {
    let mut symbols = text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    let (mut bits, mut digits) = (0_u32, 0_usize);
    for (at, byte) in symbols.by_ref() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                let padding = symbols.try_fold(1, |count, (_, byte)| (byte == b'=').then_some(count + 1));
                // Padding that does not complete the group is an error at the first padding character.
                return match (digits, padding) {
                    (2, Some(2)) | (3, Some(1)) => finish(out, bits, digits, text.len()),
                    _ => Err(Base64Error(at)),
                };
            }
            _ => return Err(Base64Error(at)),
        };
        (bits, digits) = (bits << 6 | u32::from(value), digits + 1);
        if digits == 4 {
            out.extend(bits.to_be_bytes().iter().skip(1));
            (bits, digits) = (0, 0);
        }
    }
    finish(out, bits, digits, text.len())
}

/// Decodes the last group; bits that do not fill a byte are ignored.
fn finish(out: &mut Vec<u8>, bits: u32, digits: usize, length: usize) -> Result<(), Base64Error> {
    match digits {
        0 => {}
        2 => out.extend((bits << 12).to_be_bytes().iter().skip(1).take(1)),
        3 => out.extend((bits << 6).to_be_bytes().iter().skip(1).take(2)),
        _ => return Err(Base64Error(length - 1)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(text: &str) -> Result<Vec<u8>, Base64Error> {
        let mut out = Vec::new();
        read_base64(&mut out, text).map(|()| out)
    }

    #[test]
    fn decodes_with_valid_or_missing_padding() {
        // encoders_ext
        for (text, bytes) in [
            ("aGVsbG8=", Ok(&b"hello"[..])),
            ("aGVsbG8", Ok(b"hello")),
            ("", Ok(b"")),
            ("\n", Ok(b"")),
            ("aGVs\r\nbG8=", Ok(b"hello")),
            ("YQ=\n=", Ok(b"a")),
            ("YQ==\n", Ok(b"a")),
            ("YQ\n", Ok(b"a")),
            ("YR==", Ok(b"a")),
            ("YWJ", Ok(b"ab")),
            ("+/8=", Ok(b"\xfb\xff")),
            ("aGVsbG8==", Err(7)),
            ("YQ=", Err(2)),
            ("YQ==YQ==", Err(2)),
            ("====", Err(0)),
            ("a", Err(0)),
            ("aG Vs", Err(2)),
            ("-_8=", Err(0)),
            ("é", Err(0)),
        ] {
            assert_eq!(decoded(text), bytes.map(<[u8]>::to_vec).map_err(Base64Error), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn encoding_round_trips(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut text = String::new();
            write_base64(&mut text, &bytes).unwrap();
            prop_assert!(decoded_len_limit(text.len()) >= bytes.len());
            prop_assert_eq!(decoded(text.trim_end_matches('=')).unwrap(), bytes.clone());
            prop_assert_eq!(decoded(&text).unwrap(), bytes);
        }
    }
}
