//! Strings in double quotes, as Go's `%q` and `strconv.Quote` write them.

use std::fmt::{self, Write as _};

/// Displays a text in quotes; what Go does not consider printable becomes an escape such as `\x00`, `\u200b` or `\U000e0001`.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'t>(pub &'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for symbol in self.0.chars() {
            match symbol {
                '"' | '\\' => write!(f, "\\{symbol}")?,
                '\u{7}' => f.write_str("\\a")?,
                '\u{8}' => f.write_str("\\b")?,
                '\u{c}' => f.write_str("\\f")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\u{b}' => f.write_str("\\v")?,
                '\0'..' ' | '\u{7f}' => write!(f, "\\x{:02x}", u32::from(symbol))?,
                _ if is_printable(symbol) => f.write_char(symbol)?,
                '\u{80}'..='\u{ffff}' => write!(f, "\\u{:04x}", u32::from(symbol))?,
                _ => write!(f, "\\U{:08x}", u32::from(symbol))?,
            }
        }
        f.write_char('"')
    }
}

/// A string in quotes.
pub fn quoted(text: &str) -> String {
    Quoted(text).to_string()
}

/// A list of quoted strings in brackets.
pub fn quoted_list<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    format!("[{}]", texts.map(quoted).collect::<Vec<_>>().join(" "))
}

/// Letters, marks, numbers, punctuation, symbols and the ASCII space. The standard library escapes the same characters, and
/// in addition a mark at the start of a text: hence the letter before it.
fn is_printable(symbol: char) -> bool {
    if symbol.is_ascii() {
        return matches!(symbol, ' '..='~');
    }
    let mut text = [b'a'; 5];
    let Some(end) = text.get_mut(1..) else { return false };
    let length = 1 + symbol.encode_utf8(end).len();
    let text = text.get(..length).and_then(|text| str::from_utf8(text).ok());
    text.is_some_and(|text| text.escape_debug().nth(1) == Some(symbol))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go_does() {
        for (text, written) in [
            ("a b", "\"a b\""),
            ("é日𝄞😀", "\"é日𝄞😀\""),
            ("\"\\", "\"\\\"\\\\\""),
            ("\u{7}\u{8}\u{c}\n\r\t\u{b}", "\"\\a\\b\\f\\n\\r\\t\\v\""),
            ("\0\u{1b}\u{7f}", "\"\\x00\\x1b\\x7f\""),
            ("\u{80}\u{a0}\u{ad}", "\"\\u0080\\u00a0\\u00ad\""),
            ("\u{200b}\u{2028}\u{202e}\u{feff}\u{e000}", "\"\\u200b\\u2028\\u202e\\ufeff\\ue000\""),
            ("\u{378}\u{e0001}\u{10ffff}", "\"\\u0378\\U000e0001\\U0010ffff\""),
            ("\u{301}e\u{301}", "\"\u{301}e\u{301}\""),
            ("'", "\"'\""),
        ] {
            assert_eq!(quoted(text), written);
        }
        assert_eq!(quoted_list(["a", "b\""].into_iter()), "[\"a\" \"b\\\"\"]");
    }
}
