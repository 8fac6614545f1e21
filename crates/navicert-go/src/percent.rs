//! Percent-decoding as Go's `net/url` does it: an invalid escape sequence is an error.

use std::borrow::Cow;

/// What `+` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plus {
    /// Itself, as in a path.
    Literal,
    /// A space, as in a query.
    Space,
}

/// The decoded bytes; `None` if `%` is not followed by two hexadecimal digits.
pub fn decode(text: &str, plus: Plus) -> Option<Cow<'_, [u8]>> {
    let is_special = |byte: u8| byte == b'%' || byte == b'+' && plus == Plus::Space;
    if !text.bytes().any(is_special) {
        return Some(Cow::Borrowed(text.as_bytes()));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => digit(bytes.next()?)? << 4 | digit(bytes.next()?)?,
            b'+' if plus == Plus::Space => b' ',
            other => other,
        });
    }
    Some(Cow::Owned(decoded))
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
