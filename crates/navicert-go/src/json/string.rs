//! Strings of JSON: unescaped and escaped.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The unescaped string; `None` if it is not a string.
pub(super) fn unquoted(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let inner = bytes.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    match std::str::from_utf8(inner) {
        Ok(plain) if !inner.contains(&b'\\') => Some(Cow::Borrowed(plain)),
        _ => Some(Cow::Owned(unquote(inner))),
    }
}

fn unquote(inner: &[u8]) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(stop) = rest.iter().position(|byte| *byte == b'\\') {
        let (plain, escape) = rest.split_at(stop);
        push_lossy(&mut out, plain);
        let escape = escape.get(1..).unwrap_or_default();
        // The text is valid, so is the escape.
        let Some((symbol, length)) = decode_escape(escape) else { return out };
        out.push(symbol);
        rest = escape.get(length..).unwrap_or_default();
    }
    push_lossy(&mut out, rest);
    out
}

/// Appends text; every byte that is not part of a character becomes one U+FFFD, as in Go.
pub fn push_lossy(out: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
}

/// The character of the escape after a backslash, and the number of bytes that it takes. Two surrogates are one character;
/// one alone is U+FFFD. `None` if the escape is invalid.
pub fn decode_escape(text: &[u8]) -> Option<(char, usize)> {
    let symbol = match text.first()? {
        byte @ (b'"' | b'\\' | b'/') => char::from(*byte),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let (first, rest) = unit(text.get(1..)?)?;
            let second = rest.strip_prefix(b"\\u").and_then(unit);
            if let (0xd800..=0xdbff, Some((second @ 0xdc00..=0xdfff, _))) = (first, second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Some((char::from_u32(code)?, 11));
            }
            return Some((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 5));
        }
        _ => return None,
    };
    Some((symbol, 1))
}

/// Four hexadecimal digits.
pub(super) fn unit(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(4)?;
    let digits =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    Some((u32::from_str_radix(digits, 16).ok()?, rest))
}

/// Writes a string as Go's encoder does: with escapes that are safe in HTML.
pub fn write_string(text: &mut String, value: &str) {
    write_string_escaping(text, value, |c| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'));
}

/// Writes a string. Escapes quotes, backslashes, control characters, and the characters selected by the caller.
pub fn write_string_escaping(text: &mut String, value: &str, is_spelled_out: impl Fn(char) -> bool) {
    let is_special = |c: char| matches!(c, '"' | '\\' | '\0'..' ') || is_spelled_out(c);
    text.push('"');
    let mut rest = value;
    while let Some((plain, from_special)) = rest.find(is_special).and_then(|at| rest.split_at_checked(at)) {
        text.push_str(plain);
        let mut symbols = from_special.chars();
        match symbols.next().unwrap_or_default() {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            other => {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(other));
            }
        }
        rest = symbols.as_str();
    }
    text.push_str(rest);
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_written_as_go_writes_them() {
        let mut text = String::new();
        write_string(&mut text, "\"\\<1>&\u{2028}\u{1}\n\t\r\u{8}\u{c}é\u{7f}");
        assert_eq!(text, r#""\"\\\u003c1\u003e\u0026\u2028\u0001\n\t\r\b\f"#.to_owned() + "é\u{7f}\"");
    }

    #[test]
    fn escapes_are_decoded_and_lone_surrogates_replaced() {
        for (text, expected) in [
            ("n", Some(('\n', 1))),
            ("/x", Some(('/', 1))),
            ("u00e9", Some(('é', 5))),
            ("ud834\\udd1e", Some(('𝄞', 11))),
            ("ud834\\u0041", Some(('\u{fffd}', 5))),
            ("udd1e\\ud834", Some(('\u{fffd}', 5))),
            ("ud834", Some(('\u{fffd}', 5))),
            ("u12", None),
            ("u+123", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(decode_escape(text.as_bytes()), expected, "{text}");
        }
    }
}
