//! JSON text as Go's decoders take it: validated without recursion, then read in place, value by value.
//!
//! Claims need what a usual JSON library hides: repeated members, the exact text of numbers, strings that are not
//! UTF-8, and 10 000 levels of nesting that cost nothing.

use std::borrow::Cow;
use std::ops::Range;

/// The nesting that Go's decoder allows.
pub(crate) const GO_DEPTH: usize = 10_000;

/// One JSON value in a text that is known to be valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw<'t>(&'t [u8]);

/// Why a text is no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonError {
    #[error("invalid JSON at byte {0}")]
    Syntax(usize),
    #[error("JSON nested too deeply")]
    TooDeep,
}

/// The sorts of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl<'t> Raw<'t> {
    /// Checks that the text is one JSON value with nothing but white space around it.
    pub(crate) fn parse(text: &'t [u8]) -> Result<Self, JsonError> {
        validate(text, |_, _, _| {})?;
        Ok(Raw(text.trim_ascii()))
    }

    /// The same, and how deep it is nested. If it is an object, `members` gets its members on the way.
    pub(crate) fn parse_object(
        text: &'t [u8],
        members: &mut Vec<(Cow<'t, str>, Raw<'t>)>,
    ) -> Result<(Self, usize), JsonError> {
        // One look at the whole is cheaper than one at every name.
        let whole = std::str::from_utf8(text).ok();
        let depth = validate(text, |name, is_plain, value| {
            let plain = whole.filter(|_| is_plain);
            let name = match plain.and_then(|whole| whole.get(name.start + 1..name.end.saturating_sub(1))) {
                Some(plain) => Some(Cow::Borrowed(plain)),
                None => text.get(name).and_then(|name| Raw(name).string()),
            };
            if let (Some(name), Some(value)) = (name, text.get(value)) {
                members.push((name, Raw(value)));
            }
        })?;
        Ok((Raw(text.trim_ascii()), depth))
    }

    pub(crate) fn kind(self) -> Kind {
        match self.0.first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            _ => Kind::Number,
        }
    }

    pub(crate) fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    pub(crate) fn is_true(self) -> bool {
        self.0 == b"true"
    }

    /// Its bytes in the text.
    pub(crate) fn bytes(self) -> &'t [u8] {
        self.0
    }

    /// The text of a number.
    pub(crate) fn number(self) -> Option<&'t str> {
        (self.kind() == Kind::Number).then(|| std::str::from_utf8(self.0).ok())?
    }

    /// The value as it is written.
    pub(crate) fn text(self) -> Cow<'t, str> {
        String::from_utf8_lossy(self.0)
    }

    /// A string with its escapes undone; what is not text becomes U+FFFD.
    pub(crate) fn string(self) -> Option<Cow<'t, str>> {
        let inner = self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        match std::str::from_utf8(inner) {
            Ok(plain) if !inner.contains(&b'\\') => Some(Cow::Borrowed(plain)),
            _ => Some(Cow::Owned(unquote(inner))),
        }
    }

    /// The members of an object in the order of the text, repetitions included; none of anything else.
    pub(crate) fn members(self) -> Members<'t> {
        Members(Walk::over(self, b'{'))
    }

    /// The elements of an array; none of anything else.
    pub(crate) fn elements(self) -> Elements<'t> {
        Elements(Walk::over(self, b'['))
    }

    /// Whether some string in it is not text: bytes that are not UTF-8, or half a surrogate pair.
    pub(crate) fn has_replacements(self) -> bool {
        if std::str::from_utf8(self.0).is_err() {
            return true;
        }
        // Only an escape can hide half a pair.
        self.0.windows(3).any(|window| matches!(window, [b'\\', b'u', b'd' | b'D']))
            && self.strings().any(|text| text.contains('\u{fffd}'))
    }

    /// Every string at any depth, names of members included.
    fn strings(self) -> impl Iterator<Item = Cow<'t, str>> {
        let (text, mut at) = (self.0, 0);
        std::iter::from_fn(move || {
            at += text.get(at..)?.iter().position(|byte| *byte == b'"')?;
            let start = at;
            at = end_of_string(text, at);
            Raw(text.get(start..at)?).string()
        })
    }
}

/// See [`Raw::members`].
pub(crate) struct Members<'t>(Walk<'t>);

impl<'t> Iterator for Members<'t> {
    type Item = (Cow<'t, str>, Raw<'t>);

    fn next(&mut self) -> Option<Self::Item> {
        let name = self.0.value()?.string()?;
        self.0.skip(b":");
        Some((name, self.0.value()?))
    }
}

/// See [`Raw::elements`].
pub(crate) struct Elements<'t>(Walk<'t>);

impl<'t> Iterator for Elements<'t> {
    type Item = Raw<'t>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.value()
    }
}

/// A place in the inside of a container of valid JSON.
struct Walk<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Walk<'t> {
    fn over(raw: Raw<'t>, open: u8) -> Self {
        let inside = match raw.0 {
            [first, inside @ .., _] if *first == open => inside,
            _ => &[],
        };
        Walk { text: inside, at: 0 }
    }

    fn skip(&mut self, bytes: &[u8]) {
        while let Some(byte) = self.text.get(self.at)
            && (matches!(byte, b' ' | b'\t' | b'\r' | b'\n') || bytes.contains(byte))
        {
            self.at += 1;
        }
    }

    /// The next value, if there is one more.
    fn value(&mut self) -> Option<Raw<'t>> {
        self.skip(b",");
        let start = self.at;
        self.at = end_of_value(self.text, start);
        self.text.get(start..self.at).filter(|value| !value.is_empty()).map(Raw)
    }
}

/// How many bytes of a string stand for themselves, up to its end, an escape, or what may not be there.
fn plain_length(text: &[u8]) -> usize {
    let (eights, _) = text.as_chunks::<8>();
    for (at, eight) in eights.iter().enumerate() {
        let special = special(u64::from_le_bytes(*eight));
        if special != 0 {
            return at * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let whole = eights.len() * 8;
    let rest = text.get(whole..).unwrap_or_default();
    whole + rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).unwrap_or(rest.len())
}

/// The high bit of the first of eight bytes that is a quote, a backslash or a control character; what is set above it
/// means nothing.
fn special(eight: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let quote = below(eight ^ (ONES * b'"' as u64), 1);
    let backslash = below(eight ^ (ONES * b'\\' as u64), 1);
    (quote | backslash | below(eight, 0x20)) & (ONES * 0x80)
}

/// After the string that begins here.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        at += plain_length(rest);
        match text.get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// After the value that begins here.
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

fn unquote(inner: &[u8]) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(stop) = rest.iter().position(|byte| *byte == b'\\') {
        let (plain, escape) = rest.split_at(stop);
        push_lossy(&mut out, plain);
        rest = push_escape(&mut out, escape.get(1..).unwrap_or_default());
    }
    push_lossy(&mut out, rest);
    out
}

/// Every byte that is not part of a character becomes one U+FFFD, as Go has it.
fn push_lossy(out: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| '\u{fffd}'));
    }
}

/// Undoes one escape, backslash already taken; gives what is behind it.
fn push_escape<'t>(out: &mut String, text: &'t [u8]) -> &'t [u8] {
    let [symbol, rest @ ..] = text else { return &[] };
    match symbol {
        b'b' => out.push('\u{8}'),
        b'f' => out.push('\u{c}'),
        b'n' => out.push('\n'),
        b'r' => out.push('\r'),
        b't' => out.push('\t'),
        b'u' => {
            let Some((first, rest)) = unit(rest) else { return &[] };
            if let 0xd800..=0xdbff = first
                && let Some((second @ 0xdc00..=0xdfff, after)) = rest.strip_prefix(b"\\u").and_then(unit)
            {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                return after;
            }
            out.push(char::from_u32(first).unwrap_or('\u{fffd}'));
            return rest;
        }
        other => out.push(char::from(*other)),
    }
    rest
}

/// Four hexadecimal digits.
fn unit(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(4)?;
    let digits =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    Some((u32::from_str_radix(digits, 16).ok()?, rest))
}

/// Which containers are open, one bit each: set for an object.
#[derive(Default)]
struct Open {
    outermost: u64,
    /// From the 65th on, 64 in each.
    deeper: Vec<u64>,
    depth: usize,
    most: usize,
}

impl Open {
    fn push(&mut self, is_object: bool) -> Result<(), JsonError> {
        if self.depth == GO_DEPTH {
            return Err(JsonError::TooDeep);
        }
        if self.depth / 64 > self.deeper.len() {
            self.deeper.push(0);
        }
        let bit = 1 << (self.depth % 64);
        let word = match self.depth / 64 {
            0 => Some(&mut self.outermost),
            number => self.deeper.get_mut(number - 1),
        };
        if let Some(word) = word {
            *word = if is_object { *word | bit } else { *word & !bit };
        }
        self.depth += 1;
        self.most = self.most.max(self.depth);
        Ok(())
    }

    fn is_object(&self) -> bool {
        let Some(top) = self.depth.checked_sub(1) else { return false };
        let word = match top / 64 {
            0 => self.outermost,
            number => self.deeper.get(number - 1).copied().unwrap_or_default(),
        };
        word & (1 << (top % 64)) != 0
    }
}

/// One value and white space, without recursion. Tells where the names and values of an outermost object are, and
/// whether a name stands for itself, and gives the depth.
fn validate(
    text: &[u8],
    mut member: impl FnMut(Range<usize>, bool, Range<usize>),
) -> Result<usize, JsonError> {
    let mut open = Open::default();
    let mut check = Validator { text, at: 0 };
    // Of the outermost object: the name that was read last, and where its value begins.
    let (mut name, mut start) = ((0..0, true), 0);
    'value: loop {
        check.space();
        if open.depth == 1 {
            start = check.at;
        }
        let mut is_complete = false;
        match check.peek() {
            Some(b'{') => {
                check.at += 1;
                open.push(true)?;
                check.space();
                if check.peek() != Some(b'}') {
                    let found = check.name()?;
                    if open.depth == 1 {
                        name = found;
                    }
                    continue 'value;
                }
            }
            Some(b'[') => {
                check.at += 1;
                open.push(false)?;
                check.space();
                if check.peek() != Some(b']') {
                    continue 'value;
                }
            }
            _ => {
                check.scalar()?;
                is_complete = true;
            }
        }
        // After a value, or at the end of an empty container: close what ends here, or go on to the next value.
        loop {
            if is_complete && open.depth == 1 && open.is_object() {
                member(name.0.clone(), name.1, start..check.at);
            }
            check.space();
            if open.depth == 0 {
                return if check.at == text.len() { Ok(open.most) } else { check.fail() };
            }
            match (check.peek(), open.is_object()) {
                (Some(b'}'), true) | (Some(b']'), false) => {
                    check.at += 1;
                    open.depth -= 1;
                    is_complete = true;
                }
                (Some(b','), is_object) => {
                    check.at += 1;
                    if is_object {
                        check.space();
                        let found = check.name()?;
                        if open.depth == 1 {
                            name = found;
                        }
                    }
                    continue 'value;
                }
                _ => return check.fail(),
            }
        }
    }
}

struct Validator<'t> {
    text: &'t [u8],
    at: usize,
}

impl Validator<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn fail<T>(&self) -> Result<T, JsonError> {
        Err(JsonError::Syntax(self.at))
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// A member's name and its colon; gives where the name is, and whether it is without escapes.
    fn name(&mut self) -> Result<(Range<usize>, bool), JsonError> {
        let start = self.at;
        let is_plain = self.string()?;
        let name = (start..self.at, is_plain);
        self.space();
        if self.peek() != Some(b':') {
            return self.fail();
        }
        self.at += 1;
        Ok(name)
    }

    fn scalar(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'"') => self.string().map(|_| ()),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), JsonError> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return self.fail();
        }
        self.at += word.len();
        Ok(())
    }

    /// Whether it is without escapes.
    fn string(&mut self) -> Result<bool, JsonError> {
        if self.peek() != Some(b'"') {
            return self.fail();
        }
        self.at += 1;
        let mut is_plain = true;
        loop {
            self.at += plain_length(self.text.get(self.at..).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(is_plain);
                }
                Some(b'\\') => {
                    is_plain = false;
                    self.at += 1;
                    match self.peek() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
                        Some(b'u') if self.text.get(self.at + 1..).and_then(unit).is_some() => self.at += 5,
                        _ => return self.fail(),
                    }
                }
                _ => return self.fail(),
            }
        }
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let length = number_length(self.text.get(self.at..).unwrap_or_default());
        if length == 0 {
            return self.fail();
        }
        self.at += length;
        Ok(())
    }
}

/// How many bytes of the text are a JSON number; 0 if it begins with none.
pub(crate) fn number_length(text: &[u8]) -> usize {
    let digits = |from: usize| {
        text.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut at = usize::from(text.first() == Some(&b'-'));
    match text.get(at) {
        Some(b'0') => at += 1,
        Some(b'1'..=b'9') => at += digits(at),
        _ => return 0,
    }
    if text.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return 0;
        }
        at += 1 + fraction;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return 0;
        }
        at += 1 + sign + exponent;
    }
    at
}

#[cfg(test)]
mod tests;
