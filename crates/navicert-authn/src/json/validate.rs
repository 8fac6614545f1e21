//! Whether a text is JSON: one pass without recursion, eight bytes of a string at a time.

use std::ops::Range;

use super::number::number_length;
use super::{GO_DEPTH, JsonError, unit};

/// A member of an outermost object: where its name and its value are, and whether each is without escapes.
pub(super) struct Member {
    pub(super) name: Range<usize>,
    pub(super) name_is_plain: bool,
    pub(super) value: Range<usize>,
    pub(super) value_is_plain: bool,
}

/// One value and white space. Tells of the members of an outermost object, and gives the depth.
pub(super) fn validate(text: &[u8], member: impl FnMut(Member)) -> Result<usize, JsonError> {
    let mut check = Validator { text, at: 0, is_plain: true };
    check.space();
    let depth = match check.peek() {
        Some(b'{') => check.outermost(member)?,
        _ => check.value(0)?,
    };
    check.space();
    if check.at == text.len() { Ok(depth) } else { check.fail() }
}

/// Which containers are open inside of others, one bit each: set for an object.
struct Open {
    /// How many there are around them.
    around: usize,
    outermost: u64,
    /// From the 65th on, 64 in each.
    deeper: Vec<u64>,
    depth: usize,
    most: usize,
    /// Whether the innermost is an object.
    is_object: bool,
}

impl Open {
    fn inside(around: usize) -> Self {
        Open { around, outermost: 0, deeper: Vec::new(), depth: 0, most: around, is_object: false }
    }

    fn push(&mut self, is_object: bool) -> Result<(), JsonError> {
        if self.around + self.depth == GO_DEPTH {
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
        self.most = self.most.max(self.around + self.depth);
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
    text: &'t [u8],
    at: usize,
    /// There was no escape since somebody set this.
    is_plain: bool,
}

impl Validator<'_> {
    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn fail<T>(&self) -> Result<T, JsonError> {
        Err(JsonError::Syntax(self.at))
    }

    #[inline(always)]
    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The object that everything is in. Gives the depth.
    fn outermost(&mut self, mut member: impl FnMut(Member)) -> Result<usize, JsonError> {
        let mut depth = 1;
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(depth);
        }
        loop {
            let start = self.at;
            self.is_plain = true;
            self.quick_string()?;
            let (name, name_is_plain) = (start..self.at, self.is_plain);
            self.colon()?;
            self.space();
            let start = self.at;
            self.is_plain = true;
            depth = depth.max(self.value(1)?);
            member(Member { name, name_is_plain, value: start..self.at, value_is_plain: self.is_plain });
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(depth);
                }
                _ => return self.fail(),
            }
            self.space();
        }
    }

    /// A value inside of so many containers. Gives the depth.
    #[inline(always)]
    fn value(&mut self, around: usize) -> Result<usize, JsonError> {
        match self.peek() {
            Some(b'{' | b'[') => self.container(around),
            _ => self.scalar().map(|()| around),
        }
    }

    fn container(&mut self, around: usize) -> Result<usize, JsonError> {
        let mut open = Open::inside(around);
        'value: loop {
            self.space();
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    open.push(true)?;
                    self.space();
                    if self.peek() != Some(b'}') {
                        self.quick_string()?;
                        self.colon()?;
                        continue 'value;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    open.push(false)?;
                    self.space();
                    if self.peek() != Some(b']') {
                        continue 'value;
                    }
                }
                _ => self.scalar()?,
            }
            // After a value, or at the end of an empty container: close what ends here, or go on to the next value.
            while open.depth > 0 {
                self.space();
                match (self.peek(), open.is_object) {
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.at += 1;
                        open.pop();
                    }
                    (Some(b','), is_object) => {
                        self.at += 1;
                        if is_object {
                            self.space();
                            self.string()?;
                            self.colon()?;
                        }
                        continue 'value;
                    }
                    _ => return self.fail(),
                }
            }
            return Ok(open.most);
        }
    }

    /// What comes after a member's name.
    #[inline(always)]
    fn colon(&mut self) -> Result<(), JsonError> {
        self.space();
        if self.peek() != Some(b':') {
            return self.fail();
        }
        self.at += 1;
        Ok(())
    }

    #[inline(always)]
    fn scalar(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'"') => self.quick_string(),
            _ => self.other_scalar(),
        }
    }

    fn other_scalar(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => {
                let length = number_length(self.text.get(self.at..).unwrap_or_default());
                if length == 0 {
                    return self.fail();
                }
                self.at += length;
                Ok(())
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), JsonError> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return self.fail();
        }
        self.at += word.len();
        Ok(())
    }

    /// A string without escapes, as most are, or any.
    #[inline(always)]
    fn quick_string(&mut self) -> Result<(), JsonError> {
        if self.peek() == Some(b'"') {
            let end = end_of_plain(self.text, self.at + 1);
            if self.text.get(end) == Some(&b'"') {
                self.at = end + 1;
                return Ok(());
            }
        }
        self.string()
    }

    fn string(&mut self) -> Result<(), JsonError> {
        if self.peek() != Some(b'"') {
            return self.fail();
        }
        self.at += 1;
        loop {
            self.at = end_of_plain(self.text, self.at);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                _ => return self.fail(),
            }
        }
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        self.is_plain = false;
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') if self.text.get(self.at + 1..).and_then(unit).is_some() => self.at += 5,
            _ => return self.fail(),
        }
        Ok(())
    }
}

/// Where a run of bytes of a string that stand for themselves ends: at its end, an escape, or what may not be there.
#[inline(always)]
pub(super) fn end_of_plain(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(eight) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let special = special(u64::from_le_bytes(*eight));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while text.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)) {
        at += 1;
    }
    at
}

/// The high bit of the first of eight bytes that is a quote, a backslash or a control character; what is set above it
/// means nothing.
#[inline(always)]
fn special(eight: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    // With its second bit turned, a quote comes right after the control characters.
    let low = (eight ^ (ONES * 2)).wrapping_sub(ONES * 0x21);
    let backslash = (eight ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (low | backslash) & !eight & (ONES * 0x80)
}
