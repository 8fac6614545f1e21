//! Decodes bytes into text: byte order marks, UTF-16, and the characters YAML does not allow.

use std::borrow::Cow;

use super::Span;
use super::builder::syntax_error;
use crate::diagnostic::Diagnostic;

/// The text that [`Span`]s of a parsed file point into, for printing excerpts: without a byte order mark, UTF-16 as
/// UTF-8, invalid characters replaced.
///
/// It contains the file's secrets: print only the lines a diagnostic names.
pub fn source_text(bytes: &[u8]) -> Cow<'_, str> {
    match utf16(bytes) {
        Some(units) => char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect(),
        None => String::from_utf8_lossy(bytes.strip_prefix(UTF8_BYTE_ORDER_MARK).unwrap_or(bytes)),
    }
}

/// Encodes an edited [`source_text`] as its original is encoded: with its byte order mark, in UTF-8 or UTF-16.
///
/// ```
/// use navicert_types::tree::{encode_like, source_text};
///
/// let original = b"\xFF\xFEa\0";
/// assert_eq!(encode_like(original, &source_text(original)), original);
/// ```
pub fn encode_like(original: &[u8], text: &str) -> Vec<u8> {
    match original {
        [0xFF, 0xFE, ..] => {
            [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
        }
        [0xFE, 0xFF, ..] => {
            [0xFE, 0xFF].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect()
        }
        _ if original.starts_with(UTF8_BYTE_ORDER_MARK) => [UTF8_BYTE_ORDER_MARK, text.as_bytes()].concat(),
        _ => text.as_bytes().to_vec(),
    }
}

/// Decodes the text of a YAML file.
pub(super) fn yaml_text(bytes: &[u8]) -> Result<Cow<'_, str>, Diagnostic> {
    let text: Cow<'_, str> = match utf16(bytes) {
        Some(units) => char::decode_utf16(units)
            .collect::<Result<String, _>>()
            .map_err(|_| syntax_error(Span::START, "invalid UTF-16"))?
            .into(),
        None => {
            let bytes = bytes.strip_prefix(UTF8_BYTE_ORDER_MARK).unwrap_or(bytes);
            std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))?.into()
        }
    };
    if is_printable_ascii(text.as_bytes()) {
        return Ok(text);
    }
    match text.char_indices().find(|(_, c)| !is_allowed(*c)) {
        None => Ok(text),
        Some((offset, c)) => {
            let span = Position::default().advance_to(text.as_bytes(), offset).span(offset + c.len_utf8());
            Err(syntax_error(span, "control character is not allowed"))
        }
    }
}

/// Whether a loader that accepts both languages treats this as JSON: the first character that is not white space is
/// `{`.
// C241
pub(super) fn looks_like_json(bytes: &[u8]) -> bool {
    bytes.utf8_chunks().next().is_some_and(|chunk| chunk.valid().trim_start().starts_with('{'))
}

const UTF8_BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The code units after a UTF-16 byte order mark. An odd final byte becomes a lone surrogate, which is rejected or
/// replaced like any other.
fn utf16(bytes: &[u8]) -> Option<impl Iterator<Item = u16>> {
    let (rest, is_little_endian) = match bytes {
        [0xFF, 0xFE, rest @ ..] => (rest, true),
        [0xFE, 0xFF, rest @ ..] => (rest, false),
        _ => return None,
    };
    Some(rest.chunks(2).map(move |pair| match *pair {
        [first, second] if is_little_endian => u16::from_le_bytes([first, second]),
        [first, second] => u16::from_be_bytes([first, second]),
        _ => 0xD800,
    }))
}

fn not_utf8(bytes: &[u8], offset: usize) -> Diagnostic {
    let span = Position::default().advance_to(bytes, offset).span(offset + 1);
    syntax_error(span, "invalid UTF-8")
}

/// Whether there is nothing but printable ASCII and white space in it, as in most files; looked at in stretches, which is
/// several times as fast as character by character.
fn is_printable_ascii(bytes: &[u8]) -> bool {
    let is_plain = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    bytes.chunks(256).all(|stretch| stretch.iter().fold(true, |all, byte| all & is_plain(byte)))
}

/// The characters go-yaml accepts.
fn is_allowed(c: char) -> bool {
    matches!(c,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}'
        | '\u{10000}'..)
}

/// A position that only moves forward, so that computing every line and column takes one pass.
#[derive(Clone, Copy)]
pub(super) struct Position {
    offset: usize,
    line: usize,
    column: usize,
}

impl Default for Position {
    fn default() -> Self {
        Position { offset: 0, line: 1, column: 1 }
    }
}

impl Position {
    /// The position at `offset`, which must not precede this one.
    pub(super) fn advance_to(mut self, bytes: &[u8], offset: usize) -> Self {
        for &byte in bytes.get(self.offset..offset).unwrap_or_default() {
            if byte == b'\n' {
                self.line += 1;
                self.column = 1;
            } else if byte & 0xC0 != 0x80 {
                self.column += 1;
            }
        }
        self.offset = offset;
        self
    }

    /// From here to `end`.
    pub(super) fn span(self, end: usize) -> Span {
        Span { start: self.offset, end, line: self.line, column: self.column }
    }
}
