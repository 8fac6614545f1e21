//! Parses JSON (RFC 8259) into the tree as leniently as Go's encoding/json: invalid UTF-8 and lone surrogates become
//! U+FFFD, and repeated keys are kept for the decoder to check.

use navicert_go::json::{decode_escape, push_lossy};
use zeroize::Zeroizing;

use super::builder::{Builder, NO_ANCHOR, syntax_error};
use super::source::Position;
use super::{Node, Number, ParseLimits, Span, Value};
use crate::diagnostic::Diagnostic;

pub(super) fn parse(bytes: &[u8], limits: ParseLimits) -> Result<Node, Diagnostic> {
    let mut reader = Reader {
        bytes,
        offset: 0,
        position: Position::default(),
        builder: Builder::new(limits),
        open: Vec::new(),
    };
    reader.value()?;
    while !reader.open.is_empty() {
        reader.step()?;
    }
    reader.skip_white_space();
    match reader.peek() {
        None => Ok(reader.builder.finish()),
        Some(_) => Err(reader.expected("end of input")),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
    position: Position,
    builder: Builder,
    /// The open collections, innermost last.
    open: Vec<Bracket>,
}

struct Bracket {
    closing: u8,
    has_entries: bool,
}

impl Reader<'_> {
    /// One entry of the innermost open collection, or its end.
    fn step(&mut self) -> Result<(), Diagnostic> {
        self.skip_white_space();
        let Some(Bracket { closing, has_entries }) = self.open.last_mut() else { return Ok(()) };
        let (closing, first) = (*closing, !std::mem::replace(has_entries, true));
        if self.bytes.get(self.offset) == Some(&closing) {
            self.offset += 1;
            self.open.pop();
            return self.builder.close(Some(self.offset));
        }
        if !first {
            if self.peek() != Some(b',') {
                return Err(self.expected(if closing == b'}' { "`,` or `}`" } else { "`,` or `]`" }));
            }
            self.offset += 1;
            self.skip_white_space();
        }
        if closing == b'}' { self.member() } else { self.value() }
    }

    fn member(&mut self) -> Result<(), Diagnostic> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a name in double quotes"));
        }
        self.string()?;
        self.skip_white_space();
        if self.peek() != Some(b':') {
            return Err(self.expected("`:`"));
        }
        self.offset += 1;
        self.value()
    }

    /// A scalar, or the beginning of a collection whose entries [`Reader::step`] reads.
    fn value(&mut self) -> Result<(), Diagnostic> {
        self.skip_white_space();
        match self.peek() {
            Some(b'{') => {
                let span = self.open_bracket(b'}');
                self.builder.open_mapping(span, NO_ANCHOR)
            }
            Some(b'[') => {
                let span = self.open_bracket(b']');
                self.builder.open_sequence(span, NO_ANCHOR)
            }
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            _ => Err(self.expected("a value")),
        }
    }

    fn open_bracket(&mut self, closing: u8) -> Span {
        let span = self.span_to(self.offset + 1);
        self.offset += 1;
        self.open.push(Bracket { closing, has_entries: false });
        span
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<(), Diagnostic> {
        let end = self.offset + word.len();
        if self.bytes.get(self.offset..end) != Some(word.as_bytes()) {
            return Err(self.expected("a value"));
        }
        let span = self.span_to(end);
        self.offset = end;
        self.builder.scalar(value, span, NO_ANCHOR)
    }

    fn number(&mut self) -> Result<(), Diagnostic> {
        let start = self.offset;
        let mut is_integer = true;
        if self.peek() == Some(b'-') {
            self.offset += 1;
        }
        match self.peek() {
            Some(b'0') => self.offset += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            is_integer = false;
            self.offset += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_integer = false;
            self.offset += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.offset += 1;
            }
            self.digits()?;
        }
        let end = self.offset;
        self.offset = start;
        let span = self.span_to(end);
        self.offset = end;
        let literal =
            self.bytes.get(start..end).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("0");
        self.builder.scalar(Value::Number(number(literal, is_integer)), span, NO_ANCHOR)
    }

    fn digits(&mut self) -> Result<(), Diagnostic> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.expected("a digit"));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.offset += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), Diagnostic> {
        let start = self.offset;
        self.span_to(start);
        let position = self.position;
        self.offset += 1;
        let mut text = Zeroizing::new(String::new());
        loop {
            let plain = self.bytes.get(self.offset..).unwrap_or_default();
            let length =
                plain.iter().position(|&byte| matches!(byte, b'"' | b'\\' | 0..0x20)).unwrap_or(plain.len());
            push_lossy(&mut text, plain.get(..length).unwrap_or_default());
            self.offset += length;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape(&mut text)?,
                Some(_) => return Err(self.error_here("control character in string must be escaped")),
                None => return Err(self.error_here("unterminated string")),
            }
        }
        self.offset += 1;
        self.builder.scalar(Value::String(text), position.span(self.offset), NO_ANCHOR)
    }

    fn escape(&mut self, text: &mut String) -> Result<(), Diagnostic> {
        let escape = self.bytes.get(self.offset + 1..).unwrap_or_default();
        match decode_escape(escape) {
            Some((symbol, length)) => {
                text.push(symbol);
                self.offset += 1 + length;
                Ok(())
            }
            None if escape.first() == Some(&b'u') => {
                Err(self.error_here("`\\u` in string needs four hexadecimal digits"))
            }
            None => Err(self.error_here("unknown escape in string")),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.offset).copied()
    }

    fn skip_white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.offset += 1;
        }
    }

    /// From the current offset to `end`.
    fn span_to(&mut self, end: usize) -> Span {
        self.position = self.position.advance_to(self.bytes, self.offset);
        self.position.span(end)
    }

    fn expected(&mut self, what: &str) -> Diagnostic {
        let end = if self.peek().is_none() { "unexpected end of input, " } else { "" };
        self.error_here(&format!("{end}expected {what}"))
    }

    /// A syntax error that points at the whole character at the current offset.
    fn error_here(&mut self, message: &str) -> Diagnostic {
        let rest = self.bytes.get(self.offset + 1..).unwrap_or_default();
        let more = rest.iter().take_while(|byte| **byte & 0xC0 == 0x80).count();
        let end = (self.offset + 1 + more).min(self.bytes.len()).max(self.offset);
        syntax_error(self.span_to(end), message)
    }
}

fn number(literal: &str, is_integer: bool) -> Number {
    if is_integer {
        if let Ok(value) = literal.parse::<i64>() {
            return Number::Integer(value);
        }
        if let Ok(value) = literal.parse::<u64>() {
            return Number::Unsigned(value);
        }
    }
    match literal.parse::<f64>() {
        Ok(value) if value.is_finite() => Number::Float(value),
        _ => Number::OutOfRange(literal.into()),
    }
}
