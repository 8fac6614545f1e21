//! The lexer: splits an expression into tokens by longest match.

use crate::source::Span;

/// Token kinds; brackets and single-character operators are represented by their character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Uint,
    Float,
    Str,
    Bytes,
    Ident,
    /// An identifier in back-ticks.
    Quoted,
    True,
    False,
    Null,
    In,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
    /// A single-character token.
    Char(u8),
    End,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// An invalid token: its offset and text.
#[derive(Debug, Clone)]
pub(crate) struct LexError {
    pub(crate) at: u32,
    pub(crate) text: String,
}

/// The tokens of the text; the last one is [`Kind::End`].
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, LexError> {
    let mut lexer = Lexer { bytes: text.as_bytes(), text, offset: 0 };
    let mut found = Vec::with_capacity(text.len() / 3 + 4);
    loop {
        lexer.skip_space();
        let start = lexer.offset;
        let kind = lexer.next_kind()?;
        let span = Span { start: offset_u32(start), end: offset_u32(lexer.offset) };
        found.push(Token { kind, span });
        if kind == Kind::End {
            return Ok(found);
        }
    }
}

fn offset_u32(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

struct Lexer<'s> {
    bytes: &'s [u8],
    text: &'s str,
    offset: usize,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.offset + ahead).copied().unwrap_or(0)
    }

    fn skip_space(&mut self) {
        loop {
            match self.peek(0) {
                b'\t' | b' ' | b'\r' | b'\n' | 0x0c => self.offset += 1,
                b'/' if self.peek(1) == b'/' => {
                    let rest = self.bytes.get(self.offset..).unwrap_or(&[]);
                    self.offset += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn next_kind(&mut self) -> Result<Kind, LexError> {
        if self.offset >= self.bytes.len() {
            return Ok(Kind::End);
        }
        let first = self.peek(0);
        let pair = |lexer: &mut Self, second: u8, long: Kind, short: Kind| {
            if lexer.peek(1) == second {
                lexer.offset += 2;
                long
            } else {
                lexer.offset += 1;
                short
            }
        };
        match first {
            b'0'..=b'9' => Ok(self.number()),
            b'.' if self.peek(1).is_ascii_digit() => Ok(self.number()),
            b'"' | b'\'' => self.string(0, Kind::Str),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
            b'`' => self.quoted(),
            b'=' if self.peek(1) == b'=' => Ok(pair(self, b'=', Kind::Equal, Kind::Equal)),
            b'!' => Ok(pair(self, b'=', Kind::NotEqual, Kind::Char(b'!'))),
            b'<' => Ok(pair(self, b'=', Kind::LessEqual, Kind::Less)),
            b'>' => Ok(pair(self, b'=', Kind::GreaterEqual, Kind::Greater)),
            b'&' if self.peek(1) == b'&' => Ok(pair(self, b'&', Kind::And, Kind::And)),
            b'|' if self.peek(1) == b'|' => Ok(pair(self, b'|', Kind::Or, Kind::Or)),
            b'[' | b']' | b'{' | b'}' | b'(' | b')' | b'.' | b',' | b'-' | b'?' | b':' | b'+' | b'*'
            | b'/' | b'%' => {
                self.offset += 1;
                Ok(Kind::Char(first))
            }
            _ => Err(self.error_here(1)),
        }
    }

    fn error_here(&self, len: usize) -> LexError {
        let rest = self.text.get(self.offset..).unwrap_or("");
        let text = rest.chars().take(len.max(1)).collect();
        LexError { at: offset_u32(self.offset), text }
    }

    fn digits(&mut self) {
        while self.peek(0).is_ascii_digit() {
            self.offset += 1;
        }
    }

    fn number(&mut self) -> Kind {
        if self.peek(0) == b'0' && self.peek(1) == b'x' && self.peek(2).is_ascii_hexdigit() {
            self.offset += 2;
            while self.peek(0).is_ascii_hexdigit() {
                self.offset += 1;
            }
            return self.maybe_unsigned();
        }
        self.digits();
        let mut float = false;
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            float = true;
            self.offset += 1;
            self.digits();
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                float = true;
                self.offset += 1 + sign;
                self.digits();
            }
        }
        if float { Kind::Float } else { self.maybe_unsigned() }
    }

    fn maybe_unsigned(&mut self) -> Kind {
        if matches!(self.peek(0), b'u' | b'U') {
            self.offset += 1;
            return Kind::Uint;
        }
        Kind::Int
    }

    /// An identifier, a keyword, or a string with a prefix such as `r` or `br`.
    fn word(&mut self) -> Result<Kind, LexError> {
        let quote = |byte: u8| matches!(byte, b'"' | b'\'');
        match (self.peek(0), self.peek(1), self.peek(2)) {
            (b'r' | b'R', next, _) if quote(next) => return self.string(1, Kind::Str),
            (b'b' | b'B', next, _) if quote(next) => return self.string(1, Kind::Bytes),
            (b'b' | b'B', b'r' | b'R', next) if quote(next) => return self.string(2, Kind::Bytes),
            _ => {}
        }
        let start = self.offset;
        while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == b'_' {
            self.offset += 1;
        }
        Ok(match self.bytes.get(start..self.offset).unwrap_or(&[]) {
            b"true" => Kind::True,
            b"false" => Kind::False,
            b"null" => Kind::Null,
            b"in" => Kind::In,
            _ => Kind::Ident,
        })
    }

    fn quoted(&mut self) -> Result<Kind, LexError> {
        let mut end = 1;
        while matches!(self.peek(end), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'/' | b' ')
        {
            end += 1;
        }
        if end == 1 || self.peek(end) != b'`' {
            return Err(self.error_here(1));
        }
        self.offset += end + 1;
        Ok(Kind::Quoted)
    }

    /// A string literal whose prefix has `prefix` characters.
    fn string(&mut self, prefix: usize, kind: Kind) -> Result<Kind, LexError> {
        let raw = prefix > 0 && matches!(self.peek(prefix - 1), b'r' | b'R');
        let quote = self.peek(prefix);
        let triple = self.peek(prefix + 1) == quote && self.peek(prefix + 2) == quote;
        if triple && let Some(end) = self.string_end(prefix + 3, quote, 3, raw) {
            self.offset += end;
            return Ok(kind);
        }
        match self.string_end(prefix + 1, quote, 1, raw) {
            Some(end) => {
                self.offset += end;
                Ok(kind)
            }
            None => Err(self.error_here(prefix + 1)),
        }
    }

    /// The end of the string, relative to the start of the token; `None` if it is unterminated.
    fn string_end(&self, from: usize, quote: u8, quotes: usize, raw: bool) -> Option<usize> {
        let mut at = from;
        loop {
            if self.offset + at >= self.bytes.len() {
                return None;
            }
            let byte = self.peek(at);
            if byte == quote && (1..quotes).all(|ahead| self.peek(at + ahead) == quote) {
                return Some(at + quotes);
            }
            match byte {
                b'\n' | b'\r' if quotes == 1 => return None,
                b'\\' if !raw => at += self.escape_len(at + 1)? + 1,
                _ => at += 1,
            }
        }
    }

    /// Length of an escape sequence after its backslash; `None` if it is invalid.
    fn escape_len(&self, at: usize) -> Option<usize> {
        let hex = |count: usize| (1..=count).all(|ahead| self.peek(at + ahead).is_ascii_hexdigit());
        match self.peek(at) {
            b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => Some(1),
            b'x' | b'X' if hex(2) => Some(3),
            b'u' if hex(4) => Some(5),
            b'U' if hex(8) => Some(9),
            b'0'..=b'3' if (1..=2).all(|ahead| matches!(self.peek(at + ahead), b'0'..=b'7')) => Some(3),
            _ => None,
        }
    }
}
