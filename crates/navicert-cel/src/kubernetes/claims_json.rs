//! Decodes claims as Go's `encoding/json` does: each top-level claim on its own, the last of repeated names wins,
//! lone surrogates become U+FFFD, and a number outside the range of a double invalidates only its own claim.

use crate::error::ClaimError;
use crate::untrusted::Untrusted;
use crate::value::ClaimSet;
use serde_json::{Map, Number, Value as Json};

/// A payload that is not an object of claims.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimsError {
    /// The text is not JSON.
    #[error("invalid JSON at byte {0}")]
    Syntax(usize),
    /// The text is JSON, but not an object.
    #[error("the payload is not a JSON object")]
    NotAnObject,
    /// The nesting exceeds the depth limit.
    #[error("the payload is nested too deeply")]
    TooDeep,
}

/// Maximum nesting depth, equal to the limit of serde_json.
const DEPTH_LIMIT: usize = 128;

/// Decodes a payload.
pub fn decode(text: &str) -> Result<ClaimSet<'static>, ClaimsError> {
    let mut reader = Reader { bytes: text.as_bytes(), text, at: 0, number_fault: None };
    reader.space();
    if reader.peek() != Some(b'{') {
        return Err(ClaimsError::NotAnObject);
    }
    let mut set = ClaimSet::new();
    reader.at += 1;
    reader.members(0, &mut |reader, name, value| {
        let outcome = match reader.number_fault.take() {
            None => Ok(value),
            Some(number) => Err(ClaimError::OutOfRange(Untrusted::new(number))),
        };
        set.insert(name, outcome);
    })?;
    reader.space();
    if reader.at < reader.bytes.len() {
        return Err(ClaimsError::Syntax(reader.at));
    }
    Ok(set)
}

struct Reader<'t> {
    bytes: &'t [u8],
    text: &'t str,
    at: usize,
    /// A number of the current claim that is out of range for a double.
    number_fault: Option<String>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn fail<T>(&self) -> Result<T, ClaimsError> {
        Err(ClaimsError::Syntax(self.at))
    }

    fn expect(&mut self, byte: u8) -> Result<(), ClaimsError> {
        self.space();
        if self.peek() != Some(byte) {
            return self.fail();
        }
        self.at += 1;
        Ok(())
    }

    /// The members of an object, after the opening brace.
    fn members(
        &mut self,
        depth: usize,
        keep: &mut dyn FnMut(&mut Self, String, Json),
    ) -> Result<(), ClaimsError> {
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return self.fail();
            }
            let name = self.string()?;
            self.expect(b':')?;
            let value = self.value(depth + 1)?;
            keep(self, name, value);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.fail(),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json, ClaimsError> {
        if depth > DEPTH_LIMIT {
            return Err(ClaimsError::TooDeep);
        }
        self.space();
        match self.peek() {
            Some(b'{') => {
                self.at += 1;
                let mut map = Map::new();
                self.members(depth, &mut |_, name, value| {
                    map.insert(name, value);
                })?;
                Ok(Json::Object(map))
            }
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Json::String),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, ClaimsError> {
        let end = self.at + word.len();
        if self.text.get(self.at..end) != Some(word) {
            return self.fail();
        }
        self.at = end;
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Json, ClaimsError> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Json::Array(items));
                }
                _ => return self.fail(),
            }
        }
    }

    fn digits(&mut self) -> Result<(), ClaimsError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { self.fail() } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Json, ClaimsError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = self.text.get(start..self.at).unwrap_or("");
        match text.parse::<f64>().ok().and_then(Number::from_f64) {
            Some(number) => Ok(Json::Number(number)),
            None => {
                self.number_fault.get_or_insert_with(|| text.to_owned());
                Ok(Json::Null)
            }
        }
    }

    fn string(&mut self) -> Result<String, ClaimsError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or("");
            let stop = rest.find(|symbol: char| matches!(symbol, '"' | '\\') || symbol < ' ');
            let Some(stop) = stop else { return self.fail() };
            out.push_str(rest.get(..stop).unwrap_or(""));
            self.at += stop;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape(&mut out)?;
                }
                _ => return self.fail(),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), ClaimsError> {
        let symbol = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                let symbol = self.unicode()?;
                out.push(symbol);
                return Ok(());
            }
            _ => return self.fail(),
        };
        out.push(symbol);
        self.at += 1;
        Ok(())
    }

    fn hex(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4)?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    }

    /// The character of `\uXXXX` or of a surrogate pair; a lone surrogate is U+FFFD.
    fn unicode(&mut self) -> Result<char, ClaimsError> {
        let Some(first) = self.hex(self.at) else { return self.fail() };
        self.at += 4;
        if let 0xd800..=0xdbff = first
            && self.text.get(self.at..self.at + 2) == Some("\\u")
            && let Some(second @ 0xdc00..=0xdfff) = self.hex(self.at + 2)
        {
            self.at += 6;
            let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Ok(char::from_u32(code).unwrap_or('\u{fffd}'));
        }
        Ok(char::from_u32(first).unwrap_or('\u{fffd}'))
    }
}
