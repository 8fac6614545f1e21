//! A bearer token as a header value.

use http::HeaderValue;
use navicert_types::Secret;
use zeroize::Zeroizing;

/// Why a token is not valid in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BearerError {
    /// It contains control characters.
    Characters,
    /// Leading or trailing white space: whether it belongs to the token is ambiguous.
    Whitespace,
}

/// `Bearer` and the token as a header value. Never trims the token or prints it in an error.
// C336
pub(crate) fn bearer(token: &Secret<String>) -> Result<HeaderValue, BearerError> {
    let text = token.expose();
    if text.trim_matches(|c: char| c.is_ascii_whitespace()).len() != text.len() {
        return Err(BearerError::Whitespace);
    }
    let value = Zeroizing::new(format!("Bearer {text}"));
    let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| BearerError::Characters)?;
    value.set_sensitive(true);
    Ok(value)
}
