//! Two kinds of string quoting: `strings.quote` of the extension, and Go's quoting, which `format` uses inside
//! lists.

use std::fmt::{self, Write};
use std::sync::LazyLock;

/// `strings.quote(text)`: adds quotes and escapes the characters that are invalid in a CEL string literal.
pub(crate) fn write_quoted(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for symbol in text.chars() {
        match short_escape(symbol) {
            Some(letter) => out.write_char('\\').and_then(|()| out.write_char(letter))?,
            None => out.write_char(symbol)?,
        }
    }
    out.write_char('"')
}

/// Quotes as Go's `strconv.Quote`: non-printable characters become escapes such as `\x00`, `\u200b` or
/// `\U0001f3fb`.
pub(crate) fn write_go_quoted(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for symbol in text.chars() {
        if let Some(letter) = short_escape(symbol) {
            out.write_char('\\')?;
            out.write_char(letter)?;
        } else if is_printable(symbol) {
            out.write_char(symbol)?;
        } else {
            match u32::from(symbol) {
                code @ ..0x80 => write!(out, "\\x{code:02x}")?,
                code @ 0x80..0x1_0000 => write!(out, "\\u{code:04x}")?,
                code => write!(out, "\\U{code:08x}")?,
            }
        }
    }
    out.write_char('"')
}

fn short_escape(symbol: char) -> Option<char> {
    Some(match symbol {
        '\x07' => 'a',
        '\x08' => 'b',
        '\x0c' => 'f',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\x0b' => 'v',
        '\\' => '\\',
        '"' => '"',
        _ => return None,
    })
}

/// Whether Go considers the character printable: letters, marks, numbers, punctuation, symbols and the ASCII space.
fn is_printable(symbol: char) -> bool {
    if symbol.is_ascii() {
        return matches!(symbol, ' '..='~');
    }
    let at = PRINTABLE.partition_point(|&(_, last)| last < symbol);
    PRINTABLE.get(at).is_some_and(|&(first, _)| first <= symbol)
}

static PRINTABLE: LazyLock<Vec<(char, char)>> = LazyLock::new(|| {
    use regex_syntax::hir::{Class, HirKind};
    match regex_syntax::Parser::new().parse(r"[\pL\pM\pN\pP\pS]").map(regex_syntax::hir::Hir::into_kind) {
        Ok(HirKind::Class(Class::Unicode(set))) => {
            set.iter().map(|range| (range.start(), range.end())).collect()
        }
        // Unreachable: the pattern is constant and the Unicode tables are compiled in.
        _ => Vec::new(),
    }
});

#[cfg(test)]
mod tests {
    use super::{write_go_quoted, write_quoted};

    #[test]
    fn quote_escapes_only_what_a_cel_literal_needs() {
        // string_ext/quote
        for (text, quoted) in [
            ("", r#""""#),
            ("first\nsecond\t\"q\"'\\ \x07\x08\x0c\r\x0b", r#""first\nsecond\t\"q\"'\\ \a\b\f\r\v""#),
            ("é😀\0\x7f\u{200b}", "\"é😀\0\x7f\u{200b}\""),
        ] {
            let mut out = String::new();
            write_quoted(&mut out, text).unwrap();
            assert_eq!(out, quoted);
        }
    }

    #[test]
    fn go_quoting_escapes_non_printable_characters() {
        for (text, quoted) in [
            ("\né\0😀\x7f\u{200b}", r#""\né\x00😀\x7f\u200b""#),
            ("\u{a0}\u{ad}\u{e000}\u{10ffff}\u{fffd}", "\"\\u00a0\\u00ad\\ue000\\U0010ffff\u{fffd}\""),
        ] {
            let mut out = String::new();
            write_go_quoted(&mut out, text).unwrap();
            assert_eq!(out, quoted);
        }
    }
}
