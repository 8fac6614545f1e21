//! JSON as Go's decoders accept it: validated without recursion, then read in place, value by value.
//!
//! Claims need what common JSON libraries hide: duplicate members, the exact text of numbers, strings that are not
//! UTF-8, and 10,000 levels of nesting.
//!
//! The tree of `navicert-types` reads JSON too: files, where every node and error needs its line and column, at the price
//! of an allocation per node. Here nothing is allocated for a text without escapes.

mod number;
mod string;
mod syntax_error;
mod validate;

use std::borrow::Cow;
use std::ops::Range;

pub use number::{number_length, plain_digits};
use string::unquoted;
pub use string::{decode_escape, push_lossy, write_string, write_string_escaping};
pub use syntax_error::syntax_error;
use validate::{Member, after_plain, validate};

/// The maximum nesting of Go's decoder.
pub(crate) const MAX_DEPTH: usize = 10_000;

/// One JSON value in a valid text.
#[derive(Clone, Copy, Debug)]
pub enum Raw<'t> {
    /// UTF-8 without escapes: strings can be borrowed.
    Plain(&'t str),
    /// Anything else.
    Any(&'t [u8]),
}

impl PartialEq for Raw<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

/// Why a text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The byte at this offset is not what JSON needs here.
    #[error("invalid JSON at byte {0}")]
    Syntax(usize),
    /// More than 10,000 containers in each other.
    #[error("JSON nested too deeply")]
    TooDeep,
}

/// Kinds of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Kind {
    /// What Go's decoder calls it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool => "bool",
            Kind::Number => "number",
            Kind::String => "string",
            Kind::Array => "array",
            Kind::Object => "object",
        }
    }

    /// Go's message for a value that does not fit: `json: cannot unmarshal number into Go value of type string`.
    pub fn type_mismatch(self, wanted: &str) -> String {
        format!("json: cannot unmarshal {} into Go value of type {wanted}", self.name())
    }
}

impl<'t> Raw<'t> {
    /// Validates that the text is one JSON value, optionally surrounded by white space.
    ///
    /// # Errors
    /// [`JsonError`] where Go's decoder fails.
    pub fn parse(text: &'t [u8]) -> Result<Self, JsonError> {
        validate(text, |_| {})?;
        Ok(Raw::from_valid(text.trim_ascii()))
    }

    /// Validates a text and returns its depth. If it is an object, collects its members on the way.
    ///
    /// # Errors
    /// [`JsonError`] where Go's decoder fails.
    pub fn parse_object(
        text: &'t [u8],
        members: &mut Vec<(Cow<'t, str>, Raw<'t>)>,
    ) -> Result<(Self, usize), JsonError> {
        // One UTF-8 check of the whole text is cheaper than one per name and value.
        let whole = std::str::from_utf8(text).ok();
        let depth = validate(text, |member| match whole {
            Some(whole) if member.is_plain => {
                let name = whole.get(member.name.start + 1..member.name.end - 1);
                if let (Some(name), Some(value)) = (name, whole.get(member.value)) {
                    members.push((Cow::Borrowed(name), Raw::Plain(value)));
                }
            }
            _ => members.extend(odd_member(text, member)),
        })?;
        Ok((Raw::Any(text.trim_ascii()), depth))
    }

    /// A text that is known to be a valid value.
    fn from_valid(text: &'t [u8]) -> Self {
        match std::str::from_utf8(text) {
            Ok(plain) if memchr::memchr(b'\\', text).is_none() => Raw::Plain(plain),
            _ => Raw::Any(text),
        }
    }

    /// A part of the text that is a value.
    #[inline]
    fn part(self, range: Range<usize>) -> Option<Self> {
        match self {
            Raw::Plain(text) => text.get(range).map(Raw::Plain),
            Raw::Any(bytes) => bytes.get(range).map(Raw::Any),
        }
    }

    /// Which kind of value it is.
    #[inline]
    pub fn kind(self) -> Kind {
        match self.bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// Whether it is `null`.
    #[inline]
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// Whether it is `true`.
    #[inline]
    pub fn is_true(self) -> bool {
        self.bytes() == b"true"
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(self) -> &'t [u8] {
        match self {
            Raw::Plain(text) => text.as_bytes(),
            Raw::Any(bytes) => bytes,
        }
    }

    /// The text of a number.
    #[inline]
    pub fn number(self) -> Option<&'t str> {
        match self {
            _ if self.kind() != Kind::Number => None,
            Raw::Plain(text) => Some(text),
            Raw::Any(bytes) => std::str::from_utf8(bytes).ok(),
        }
    }

    /// The value as written.
    pub fn text(self) -> Cow<'t, str> {
        String::from_utf8_lossy(self.bytes())
    }

    /// An unescaped string; invalid text becomes U+FFFD.
    #[inline]
    pub fn string(self) -> Option<Cow<'t, str>> {
        match self {
            Raw::Plain(text) if text.starts_with('"') => text.get(1..text.len() - 1).map(Cow::Borrowed),
            Raw::Plain(_) => None,
            Raw::Any(bytes) => unquoted(bytes),
        }
    }

    /// The members of an object in order, duplicates included; empty for other values.
    #[inline]
    pub fn members(self) -> Members<'t> {
        Members(Walk::over(self, b'{'))
    }

    /// The elements of an array; empty for other values.
    #[inline]
    pub fn elements(self) -> Elements<'t> {
        Elements(Walk::over(self, b'['))
    }

    /// Whether a string contains invalid UTF-8 or an unpaired surrogate.
    pub fn has_replacements(self) -> bool {
        let bytes = self.bytes();
        if std::str::from_utf8(bytes).is_err() {
            return true;
        }
        // Only an escape can be an unpaired surrogate.
        bytes.windows(3).any(|window| matches!(window, [b'\\', b'u', b'd' | b'D']))
            && self.strings().any(|text| text.contains('\u{fffd}'))
    }

    /// Every string at any depth, member names included.
    fn strings(self) -> impl Iterator<Item = Cow<'t, str>> {
        let (text, mut at) = (self.bytes(), 0);
        std::iter::from_fn(move || {
            at += text.get(at..)?.iter().position(|byte| *byte == b'"')?;
            let start = at;
            at = end_of_string(text, at);
            Raw::Any(text.get(start..at)?).string()
        })
    }
}

/// A member with escapes, or one that is not UTF-8.
#[cold]
fn odd_member(text: &[u8], member: Member) -> Option<(Cow<'_, str>, Raw<'_>)> {
    let name = text.get(member.name).and_then(unquoted)?;
    Some((name, Raw::from_valid(text.get(member.value)?)))
}

/// See [`Raw::members`].
#[derive(Debug)]
pub struct Members<'t>(Walk<'t>);

impl<'t> Iterator for Members<'t> {
    type Item = (Cow<'t, str>, Raw<'t>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let name = self.0.value()?.string()?;
        self.0.skip(b':');
        Some((name, self.0.value()?))
    }
}

/// See [`Raw::elements`].
#[derive(Debug)]
pub struct Elements<'t>(Walk<'t>);

impl<'t> Iterator for Elements<'t> {
    type Item = Raw<'t>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.value()
    }
}

/// A position inside a container of valid JSON.
#[derive(Debug)]
struct Walk<'t> {
    inside: Raw<'t>,
    at: usize,
}

impl<'t> Walk<'t> {
    fn over(raw: Raw<'t>, open: u8) -> Self {
        let inside = match raw.bytes() {
            [first, .., _] if *first == open => raw.part(1..raw.bytes().len() - 1),
            _ => None,
        };
        Walk { inside: inside.unwrap_or(Raw::Any(&[])), at: 0 }
    }

    fn skip(&mut self, separator: u8) {
        let text = self.inside.bytes();
        while let Some(byte) = text.get(self.at)
            && (matches!(byte, b' ' | b'\t' | b'\r' | b'\n') || *byte == separator)
        {
            self.at += 1;
        }
    }

    /// The next value, if any.
    fn value(&mut self) -> Option<Raw<'t>> {
        self.skip(b',');
        let start = self.at;
        self.at = end_of_value(self.inside.bytes(), start);
        if self.at == start {
            return None;
        }
        self.inside.part(start..self.at)
    }
}

/// The end of the string that starts here.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut rest = text.get(start + 1..).unwrap_or_default();
    loop {
        rest = match after_plain(rest) {
            [b'\\', _, rest @ ..] => rest,
            [b'"', rest @ ..] => return text.len() - rest.len(),
            [_, rest @ ..] => rest,
            [] => return text.len(),
        };
    }
}

/// The end of the value that starts here.
fn end_of_value(text: &[u8], start: usize) -> usize {
    let mut at = start;
    let mut depth = 0_usize;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = end_of_string(text, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
                continue;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' if depth > 0 => {
                at += 1;
                continue;
            }
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => return at,
            _ => {
                at += 1;
                while text.get(at).is_some_and(|byte| !b",:]} \t\r\n".contains(byte)) {
                    at += 1;
                }
            }
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
