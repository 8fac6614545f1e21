//! Base64 as Go's `encoding/base64` reads it.

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
    use super::*;

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
