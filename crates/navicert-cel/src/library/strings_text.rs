//! The strings extension on `&str`. Positions count code points, results borrow where possible, and for functions
//! that build a string there is one that computes its length first.

use std::fmt;

/// An invalid position in a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PositionError {
    /// The position is out of range.
    #[error("index out of range: {0}")]
    OutOfRange(i64),
    /// The end comes before the start.
    #[error("invalid substring range. start: {start}, end: {end}")]
    Reversed {
        /// Start of the range.
        start: i64,
        /// End of the range.
        end: i64,
    },
}

/// `text.charAt(index)`: one character, or an empty string at the end.
pub(crate) fn char_at(text: &str, index: i64) -> Result<&str, PositionError> {
    let rest = substring_from(text, index)?;
    let mut symbols = rest.chars();
    symbols.next();
    Ok(rest.strip_suffix(symbols.as_str()).unwrap_or(rest))
}

/// `text.substring(start)`
pub(crate) fn substring_from(text: &str, start: i64) -> Result<&str, PositionError> {
    byte_position(text, start).and_then(|at| text.get(at..)).ok_or(PositionError::OutOfRange(start))
}

/// `text.substring(start, end)`
pub(crate) fn substring(text: &str, start: i64, end: i64) -> Result<&str, PositionError> {
    if start > end {
        return Err(PositionError::Reversed { start, end });
    }
    let rest = substring_from(text, start)?;
    let length = byte_position(rest, end - start).ok_or(PositionError::OutOfRange(end))?;
    Ok(rest.get(..length).unwrap_or(rest))
}

/// `text.indexOf(needle)`; -1 if absent.
#[must_use]
pub(crate) fn index_of(text: &str, needle: &str) -> i64 {
    text.find(needle).map_or(-1, |at| symbols_before(text, at))
}

/// `text.indexOf(needle, offset)`: the first occurrence at or after `offset`.
///
/// An offset beyond the end finds only the empty string, at the end.
pub(crate) fn index_of_from(text: &str, needle: &str, offset: i64) -> Result<i64, PositionError> {
    if offset < 0 {
        return Err(PositionError::OutOfRange(offset));
    }
    let start = byte_position(text, offset).unwrap_or(text.len());
    let found = text.get(start..).and_then(|rest| rest.find(needle));
    Ok(found.map_or(-1, |at| symbols_before(text, start + at)))
}

/// `text.lastIndexOf(needle)`; -1 if absent.
#[must_use]
pub(crate) fn last_index_of(text: &str, needle: &str) -> i64 {
    text.rfind(needle).map_or(-1, |at| symbols_before(text, at))
}

/// `text.lastIndexOf(needle, offset)`: the last occurrence that starts at or before `offset`.
///
/// An offset at or beyond the end finds only the empty string, at the end.
pub(crate) fn last_index_of_from(text: &str, needle: &str, offset: i64) -> Result<i64, PositionError> {
    if offset < 0 {
        return Err(PositionError::OutOfRange(offset));
    }
    let Some(start) = byte_position(text, offset).filter(|&at| at < text.len() || needle.is_empty()) else {
        return Ok(if needle.is_empty() { symbols_before(text, text.len()) } else { -1 });
    };
    // The occurrence may extend past the offset; only its start counts.
    let end = (start + needle.len()).min(text.len());
    let found = text.as_bytes().get(..end).and_then(|head| find_last(head, needle.as_bytes()));
    Ok(found.map_or(-1, |at| symbols_before(text, at)))
}

/// `text.split(separator)` with `limit` -1, or `text.split(separator, limit)`: at most `limit` parts, the last one
/// with the rest of the text; 0 returns no parts, a negative limit all. An empty separator splits at every
/// character.
pub(crate) fn split<'t>(text: &'t str, separator: &'t str, limit: i64) -> Split<'t> {
    let nothing = limit == 0 || text.is_empty() && separator.is_empty();
    Split { rest: (!nothing).then_some(text), separator, left: u64::try_from(limit).unwrap_or(u64::MAX) }
}

/// Iterator over the parts of [`split`].
#[derive(Clone, Debug)]
pub(crate) struct Split<'t> {
    rest: Option<&'t str>,
    separator: &'t str,
    left: u64,
}

impl<'t> Iterator for Split<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let rest = self.rest.take()?;
        if self.left <= 1 {
            return Some(rest);
        }
        self.left -= 1;
        if !self.separator.is_empty() {
            let found = match self.separator.as_bytes() {
                &[only] => memchr::memchr(only, rest.as_bytes()).and_then(|at| {
                    let (part, rest) = rest.split_at_checked(at)?;
                    Some((part, rest.get(1..)?))
                }),
                _ => rest.split_once(self.separator),
            };
            let Some((part, rest)) = found else { return Some(rest) };
            self.rest = Some(rest);
            return Some(part);
        }
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let (part, rest) = rest.split_at_checked(first)?;
        self.rest = (!rest.is_empty()).then_some(rest);
        Some(part)
    }
}

/// The length in bytes of the output of [`write_replaced`]; `usize::MAX` on overflow.
#[must_use]
pub(crate) fn replaced_len(text: &str, old: &str, new: &str, limit: i64) -> usize {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let matches = if limit == 0 {
        0
    } else if old.is_empty() {
        text.chars().count().saturating_add(1).min(limit)
    } else {
        text.matches(old).take(limit).count()
    };
    // The removed bytes are part of the text, so subtracting them first cannot underflow.
    let kept = text.len().saturating_sub(matches.saturating_mul(old.len()));
    new.len().checked_mul(matches).and_then(|added| added.checked_add(kept)).unwrap_or(usize::MAX)
}

/// `text.replace(old, new)` with `limit` -1, or `text.replace(old, new, limit)`: replaces the first `limit`
/// occurrences, or all if negative. An empty `old` occurs before every character and at the end.
pub(crate) fn write_replaced(
    out: &mut impl fmt::Write,
    text: &str,
    old: &str,
    new: &str,
    limit: i64,
) -> fmt::Result {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut rest = text;
    for (at, found) in text.match_indices(old).take(limit) {
        let done = text.len() - rest.len();
        out.write_str(text.get(done..at).unwrap_or_default())?;
        out.write_str(new)?;
        rest = text.get(at + found.len()..).unwrap_or_default();
    }
    out.write_str(rest)
}

/// `text.trim()`: removes Unicode white space at both ends.
#[must_use]
pub(crate) fn trim(text: &str) -> &str {
    text.trim()
}

/// `text.lowerAscii()`; the length is unchanged. [`str::make_ascii_lowercase`] works in place.
pub(crate) fn write_lower_ascii(out: &mut impl fmt::Write, text: &str) -> fmt::Result {
    text.chars().try_for_each(|symbol| out.write_char(symbol.to_ascii_lowercase()))
}

/// `text.upperAscii()`; the length is unchanged. [`str::make_ascii_uppercase`] works in place.
pub(crate) fn write_upper_ascii(out: &mut impl fmt::Write, text: &str) -> fmt::Result {
    text.chars().try_for_each(|symbol| out.write_char(symbol.to_ascii_uppercase()))
}

/// `text.reverse()`; the length is unchanged.
pub(crate) fn write_reversed(out: &mut impl fmt::Write, text: &str) -> fmt::Result {
    text.chars().rev().try_for_each(|symbol| out.write_char(symbol))
}

/// The byte offset of the code point `index`; the end of the text is included.
fn byte_position(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    if index > text.len() {
        return None;
    }
    if text.is_ascii() {
        return Some(index);
    }
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(index)
}

fn symbols_before(text: &str, at: usize) -> i64 {
    let head = text.get(..at).unwrap_or(text);
    i64::try_from(if head.is_ascii() { head.len() } else { head.chars().count() }).unwrap_or(i64::MAX)
}

/// The last occurrence in bytes that may end inside a character. Both inputs start as UTF-8, so a match is aligned
/// to characters.
fn find_last(text: &[u8], needle: &[u8]) -> Option<usize> {
    if needle.is_empty() {
        return Some(text.len());
    }
    // The standard search needs `&str`: drop an incomplete character at the end.
    let whole = match std::str::from_utf8(text) {
        Ok(whole) => whole,
        Err(cut) => text.get(..cut.valid_up_to()).and_then(|head| std::str::from_utf8(head).ok())?,
    };
    std::str::from_utf8(needle).ok().and_then(|needle| whole.rfind(needle))
}

#[cfg(test)]
mod tests;
