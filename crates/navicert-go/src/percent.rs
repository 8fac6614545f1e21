//! Percent encoding of bytes.
//!
//! Two decoders, because two rules are needed: [`decode`] fails where Go's `net/url` fails; [`decode_lenient`] keeps what is
//! not an escape, for texts that are searched for secrets or that another program may read in the most lenient way.

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
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        decoded.push(match byte {
            b'%' => {
                rest = after.get(2..)?;
                escaped_byte(after)?
            }
            b'+' if plus == Plus::Space => b' ',
            other => other,
        });
    }
    Some(Cow::Owned(decoded))
}

/// The decoded bytes; what is not an escape stays as it is. Borrowed if nothing changes.
pub fn decode_lenient(text: &[u8], plus: Plus) -> Cow<'_, [u8]> {
    let mut decoded: Option<Vec<u8>> = None;
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let changed = match (byte, escaped_byte(after)) {
            (b'%', Some(escaped)) => Some((escaped, after.get(2..).unwrap_or_default())),
            (b'+', _) if plus == Plus::Space => Some((b' ', after)),
            _ => None,
        };
        if changed.is_some() && decoded.is_none() {
            let mut start = Vec::with_capacity(text.len());
            start.extend_from_slice(text.get(..text.len() - rest.len()).unwrap_or_default());
            decoded = Some(start);
        }
        let (new, remaining) = changed.unwrap_or((byte, after));
        if let Some(decoded) = &mut decoded {
            decoded.push(new);
        }
        rest = remaining;
    }
    decoded.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// The value of two hexadecimal digits at the start of the text.
#[inline]
pub(crate) fn escaped_byte(text: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let [high, low, ..] = text else { return None };
    Some(digit(*high)? << 4 | digit(*low)?)
}

/// Encodes every byte that is not plain.
pub fn encode(text: &str, plus: Plus, is_plain: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    encode_into(&mut encoded, text.as_bytes(), plus, is_plain);
    encoded
}

/// Appends the bytes, and encodes every one that is not plain. Plain bytes are ASCII.
pub fn encode_into(encoded: &mut String, bytes: &[u8], plus: Plus, is_plain: impl Fn(u8) -> bool) {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0').to_ascii_uppercase();
    for &byte in bytes {
        match byte {
            b' ' if plus == Plus::Space => encoded.push('+'),
            _ if is_plain(byte) => encoded.push(char::from(byte)),
            _ => encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]),
        }
    }
}

/// Letters, digits, `-`, `.`, `_` and `~`: never encoded (RFC 3986, section 2.3).
pub fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// Allowed in the name of a header (RFC 9110, section 5.6.2), except `%`, which marks an escape: how client-go writes the
/// keys of a user's extra values into header names.
pub fn is_header_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn strict_and_lenient_decoding_differ_only_in_invalid_escapes() {
        for (text, plus, strict, lenient) in [
            ("a", Plus::Space, Some("a"), "a"),
            ("a%20b+c", Plus::Literal, Some("a b+c"), "a b+c"),
            ("a%20b+c", Plus::Space, Some("a b c"), "a b c"),
            ("%25", Plus::Literal, Some("%"), "%"),
            ("%2541", Plus::Literal, Some("%41"), "%41"),
            ("%41%4a%4A", Plus::Literal, Some("AJJ"), "AJJ"),
            ("%", Plus::Literal, None, "%"),
            ("%4", Plus::Literal, None, "%4"),
            ("%zz%41", Plus::Literal, None, "%zzA"),
            ("%+1+", Plus::Space, None, "% 1 "),
            ("%%41", Plus::Literal, None, "%A"),
            ("", Plus::Literal, Some(""), ""),
        ] {
            assert_eq!(decode(text, plus).as_deref(), strict.map(str::as_bytes), "{text}");
            assert_eq!(&*decode_lenient(text.as_bytes(), plus), lenient.as_bytes(), "{text}");
        }
        assert!(matches!(decode_lenient(b"%zz", Plus::Space), Cow::Borrowed(_)), "nothing changed");
    }

    #[test]
    fn encodes_what_is_not_plain() {
        assert_eq!(encode("a b/é~", Plus::Space, is_unreserved), "a+b%2F%C3%A9~");
        assert_eq!(encode("a b", Plus::Literal, is_unreserved), "a%20b");
        for (key, name) in
            [("example.org/foo", "example.org%2Ffoo"), ("a%b", "a%25b"), ("é", "%C3%A9"), ("a_b", "a_b")]
        {
            assert_eq!(encode(key, Plus::Literal, is_header_key_byte), name);
        }
    }

    proptest! {
        #[test]
        fn decodes_what_it_encodes(text in ".*", has_plus in any::<bool>()) {
            let plus = if has_plus { Plus::Space } else { Plus::Literal };
            let encoded = encode(&text, plus, is_unreserved);
            prop_assert_eq!(decode(&encoded, plus).unwrap(), text.as_bytes());
            prop_assert_eq!(decode_lenient(encoded.as_bytes(), plus), text.as_bytes());
        }
    }
}
