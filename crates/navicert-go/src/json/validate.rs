//! Validates JSON in one pass without recursion, eight bytes of a string at a time.

use std::ops::Range;

use super::number::number_length;
use super::string::unit;
use super::{JsonError, MAX_DEPTH};

/// A member of the outermost object: the ranges of its name and value, and whether both are free of escapes.
pub(super) struct Member {
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
    pub(super) is_plain: bool,
}

/// Validates one value with surrounding white space. Reports the members of an outermost object, and returns the depth.
pub(super) fn validate(text: &[u8], member: impl FnMut(Member)) -> Result<usize, JsonError> {
    let mut check = Validator { length: text.len(), rest: text, is_plain: true };
    let depth = match check.peek() {
        Some(b'{') => check.outermost(member)?,
        _ => check.value(0)?,
    };
    match check.peek() {
        None => Ok(depth),
        Some(_) => check.fail(),
    }
}

/// The open containers, one bit each: set for an object.
struct OpenContainers {
    /// Depth outside of them.
    outer_depth: usize,
    outermost: u64,
    /// From the 65th on, 64 per word.
    deeper: Vec<u64>,
    depth: usize,
    max_depth: usize,
    /// Whether the innermost is an object.
    is_object: bool,
}

impl OpenContainers {
    fn inside(around: usize) -> Self {
        OpenContainers {
            outer_depth: around,
            outermost: 0,
            deeper: Vec::new(),
            depth: 0,
            max_depth: around,
            is_object: false,
        }
    }

    fn push(&mut self, is_object: bool) -> Result<(), JsonError> {
        if self.outer_depth + self.depth == MAX_DEPTH {
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
        self.max_depth = self.max_depth.max(self.outer_depth + self.depth);
        self.is_object = is_object;
        Ok(())
    }

    fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        let Some(top) = self.depth.checked_sub(1) else { return };
        let word = match top / 64 {
            0 => self.outermost,
            number => self.deeper.get(number - 1).copied().unwrap_or_default(),
        };
        self.is_object = word & (1 << (top % 64)) != 0;
    }
}

struct Validator<'t> {
    /// Length of the whole text.
    length: usize,
    /// The unread text.
    rest: &'t [u8],
    /// No escape has been seen since this was last set.
    is_plain: bool,
}

impl Validator<'_> {
    #[inline(always)]
    fn at(&self) -> usize {
        self.length - self.rest.len()
    }

    #[cold]
    fn fail<T>(&self) -> Result<T, JsonError> {
        Err(JsonError::Syntax(self.at()))
    }

    /// The next byte that is not white space, without consuming it.
    #[inline(always)]
    fn peek(&mut self) -> Option<u8> {
        while let [first, rest @ ..] = self.rest {
            if !matches!(first, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(*first);
            }
            self.rest = rest;
        }
        None
    }

    /// Consumes this many bytes, which must exist.
    #[inline(always)]
    fn take(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    /// The outermost object. Returns the depth.
    fn outermost(&mut self, mut member: impl FnMut(Member)) -> Result<usize, JsonError> {
        let mut depth = 1;
        self.take(1);
        if self.peek() == Some(b'}') {
            self.take(1);
            return Ok(depth);
        }
        loop {
            let start = self.at();
            self.is_plain = true;
            self.string()?;
            let name = start..self.at();
            self.colon()?;
            let first = self.peek();
            let start = self.at();
            depth = depth.max(match first {
                Some(b'"') => self.string().map(|()| 1)?,
                _ => self.value(1)?,
            });
            let value = start..self.at();
            member(Member { name, value, is_plain: self.is_plain });
            match self.peek() {
                Some(b',') => self.take(1),
                Some(b'}') => {
                    self.take(1);
                    return Ok(depth);
                }
                _ => return self.fail(),
            }
            self.peek();
        }
    }

    /// A value inside this many containers. Returns the depth.
    fn value(&mut self, around: usize) -> Result<usize, JsonError> {
        match self.peek() {
            Some(b'{' | b'[') => self.container(around),
            _ => self.scalar().map(|()| around),
        }
    }

    fn container(&mut self, around: usize) -> Result<usize, JsonError> {
        let mut open = OpenContainers::inside(around);
        'value: loop {
            match self.peek() {
                Some(b'{') => {
                    self.take(1);
                    open.push(true)?;
                    if self.peek() != Some(b'}') {
                        self.string()?;
                        self.colon()?;
                        continue 'value;
                    }
                }
                Some(b'[') => {
                    self.take(1);
                    open.push(false)?;
                    if self.peek() != Some(b']') {
                        continue 'value;
                    }
                }
                Some(b'"') => self.string()?,
                _ => self.scalar()?,
            }
            // After a value, or at the end of an empty container: close finished containers, or continue with the next value.
            while open.depth > 0 {
                match (self.peek(), open.is_object) {
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.take(1);
                        open.pop();
                    }
                    (Some(b','), is_object) => {
                        self.take(1);
                        if is_object {
                            self.peek();
                            self.string()?;
                            self.colon()?;
                        }
                        continue 'value;
                    }
                    _ => return self.fail(),
                }
            }
            return Ok(open.max_depth);
        }
    }

    /// The colon after a member's name.
    #[inline(always)]
    fn colon(&mut self) -> Result<(), JsonError> {
        if self.peek() != Some(b':') {
            return self.fail();
        }
        self.take(1);
        Ok(())
    }

    fn scalar(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => {
                let length = number_length(self.rest);
                if length == 0 {
                    return self.fail();
                }
                self.take(length);
                Ok(())
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), JsonError> {
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => self.fail(),
        }
    }

    /// A string that starts here; usually without escapes.
    #[inline(always)]
    fn string(&mut self) -> Result<(), JsonError> {
        if let [b'"', inside @ ..] = self.rest
            && let [b'"', rest @ ..] = after_plain(inside)
        {
            self.rest = rest;
            return Ok(());
        }
        self.any_string()
    }

    #[cold]
    fn any_string(&mut self) -> Result<(), JsonError> {
        if self.rest.first() != Some(&b'"') {
            return self.fail();
        }
        self.take(1);
        loop {
            self.rest = after_plain(self.rest);
            match self.rest.first() {
                Some(b'"') => {
                    self.take(1);
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                _ => return self.fail(),
            }
        }
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        self.is_plain = false;
        self.take(1);
        match self.rest {
            [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => self.take(1),
            [b'u', code @ ..] if unit(code).is_some() => self.take(5),
            _ => return self.fail(),
        }
        Ok(())
    }
}

/// The rest after a run of plain bytes of a string: its end, an escape, or an invalid byte.
#[inline(always)]
pub(super) fn after_plain(text: &[u8]) -> &[u8] {
    let mut rest = text;
    while let Some((eight, after)) = rest.split_first_chunk::<8>() {
        let special = special(u64::from_le_bytes(*eight));
        if special != 0 {
            return rest.get(special.trailing_zeros() as usize / 8..).unwrap_or_default();
        }
        rest = after;
    }
    while let [first, after @ ..] = rest
        && !matches!(first, b'"' | b'\\' | 0..0x20)
    {
        rest = after;
    }
    rest
}

/// The high bit of the first of eight bytes that is a quote, a backslash or a control character; bits above it are
/// undefined.
#[inline(always)]
fn special(eight: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    // With its second bit flipped, a quote follows the control characters.
    let low = (eight ^ (ONES * 2)).wrapping_sub(ONES * 0x21);
    let backslash = (eight ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (low | backslash) & !eight & (ONES * 0x80)
}
