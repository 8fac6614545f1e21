//! Base64 as Go's `encoding/base64` reads it: bits left over at the end need not be zero, and line breaks are skipped.
//!
//! The engines of the `base64` crate cannot skip line breaks; where they may occur, callers decode
//! [`without_line_breaks`].

use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const PADDED: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::RequireCanonical);

const RAW: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_encode_padding(false)
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::RequireNone);

/// `StdEncoding`: the standard alphabet with padding.
pub const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, PADDED);

/// `RawStdEncoding`: the standard alphabet without padding.
pub const RAW_STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, RAW);

/// `RawURLEncoding`: the URL-safe alphabet without padding.
pub const RAW_URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, RAW);

/// The text without the bytes that Go's decoder skips.
pub fn without_line_breaks(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect()
}

/// Go's error for the first byte that is not unpadded base64url.
pub fn raw_url_error(text: &str) -> Option<String> {
    error_at(text, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'), false)
}

/// The same for padded standard base64.
pub fn standard_error(text: &str) -> Option<String> {
    let symbols = text.trim_end_matches('=');
    error_at(symbols, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'), true)
}

fn error_at(text: &str, is_symbol: impl Fn(u8) -> bool, is_padded: bool) -> Option<String> {
    let invalid = text.bytes().position(|byte| !is_symbol(byte));
    let dangling = (text.len() % 4 == 1).then(|| text.len() - usize::from(!is_padded || text.len() == 1));
    invalid.or(dangling).map(|at| format!("illegal base64 data at input byte {at}"))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;

    #[test]
    fn decodes_what_go_decodes() {
        assert_eq!(STANDARD.decode("+/8=").unwrap(), STANDARD.decode("+/9=").unwrap(), "trailing bits");
        assert_eq!(RAW_STANDARD.decode("+/8").unwrap(), RAW_URL.decode("-_8").unwrap());
        assert_eq!(RAW_URL.encode([0xfb, 0xff]), "-_8");
        for (engine, bad) in
            [(&STANDARD, "+/8"), (&STANDARD, "-_8="), (&RAW_STANDARD, "+/8="), (&RAW_URL, "-_8=")]
        {
            assert!(engine.decode(bad).is_err(), "{bad}");
        }
        assert_eq!(without_line_breaks(b"+/\r\n8=\n"), b"+/8=");
    }

    #[test]
    fn base64_error_positions_match_go() {
        for (text, at) in [("A", 0), ("AAAAA", 4), ("A+AA", 1), ("AA=A", 2)] {
            assert_eq!(
                raw_url_error(text),
                Some(format!("illegal base64 data at input byte {at}")),
                "{text}"
            );
        }
        assert_eq!(raw_url_error("AAAA"), None);
    }
}
