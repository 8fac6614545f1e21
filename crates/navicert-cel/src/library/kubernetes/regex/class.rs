//! Character classes: `[…]`, and the set operations of RE2's syntax.

use super::parse::text_before;
use super::{Fault, PatternError, escape};
use regex_syntax::hir::{self, ClassUnicode, ClassUnicodeRange, Hir};

/// A set of characters.
pub(super) struct Class(ClassUnicode);

impl Class {
    pub(super) fn from_range(first: char, last: char) -> Self {
        Self::ranges(&[(first, last)])
    }

    pub(super) fn ranges(ranges: &[(char, char)]) -> Self {
        Self(ClassUnicode::new(ranges.iter().map(|&(first, last)| ClassUnicodeRange::new(first, last))))
    }

    pub(super) fn from_set(set: ClassUnicode) -> Self {
        Self(set)
    }

    /// Adds every character that differs only in case. This includes `\w`: `(?i)\w` matches the long s and the
    /// Kelvin sign.
    pub(super) fn folded(mut self) -> Self {
        // Fails only if the case tables are not compiled in.
        let _ = self.0.try_case_fold_simple();
        self
    }

    pub(super) fn negated(mut self) -> Self {
        self.0.negate();
        self
    }

    pub(super) fn into_tree(self) -> Hir {
        Hir::class(hir::Class::Unicode(self.0))
    }

    fn add(&mut self, other: &Self) {
        self.0.union(&other.0);
    }
}

/// The code points from `first` to `last`, without surrogates.
fn code_points(first: u32, last: u32) -> Option<ClassUnicodeRange> {
    let first = char::from_u32(first).unwrap_or('\u{e000}');
    let last = char::from_u32(last).unwrap_or('\u{d7ff}');
    (first <= last).then(|| ClassUnicodeRange::new(first, last))
}

/// Parses the bracket expression at the start of `text` and returns the class and the rest.
pub(super) fn parse_bracket(text: &str, fold_case: bool) -> Result<(Class, &str), PatternError> {
    let missing = || PatternError::new(Fault::MissingBracket, text);
    let mut rest = text.strip_prefix('[').ok_or_else(missing)?;
    let negated = rest.starts_with('^');
    if negated {
        rest = rest.strip_prefix('^').unwrap_or(rest);
    }
    let mut class = Class::ranges(&[]);
    let mut ranges = Vec::new();
    // A closing bracket at the start is a member of the class.
    let mut first = true;
    loop {
        if rest.is_empty() {
            return Err(missing());
        }
        if !first && let Some(after) = rest.strip_prefix(']') {
            rest = after;
            break;
        }
        first = false;
        if let Some((named, after)) = ascii_class(rest, fold_case)? {
            class.add(&named);
            rest = after;
            continue;
        }
        if rest.starts_with('\\')
            && let Some((escaped, after)) = escape::parse_class(rest, fold_case)?
        {
            class.add(&escaped);
            rest = after;
            continue;
        }
        let (low, high, after) = range(text, rest)?;
        ranges.extend(code_points(low, high));
        rest = after;
    }
    let members = Class(ClassUnicode::new(ranges));
    class.add(&if fold_case { members.folded() } else { members });
    Ok((if negated { class.negated() } else { class }, rest))
}

/// `a` or `a-z`; a minus sign that cannot form a range is a literal.
fn range<'p>(bracket: &str, text: &'p str) -> Result<(u32, u32, &'p str), PatternError> {
    let (low, rest) = member(bracket, text)?;
    match rest.strip_prefix('-') {
        Some(after) if !after.is_empty() && !after.starts_with(']') => {
            let (high, rest) = member(bracket, after)?;
            if high < low {
                return Err(PatternError::new(Fault::ClassRange, text_before(text, rest)));
            }
            Ok((low, high, rest))
        }
        _ => Ok((low, low, rest)),
    }
}

fn member<'p>(bracket: &str, text: &'p str) -> Result<(u32, &'p str), PatternError> {
    let mut symbols = text.chars();
    match symbols.next() {
        None => Err(PatternError::new(Fault::MissingBracket, bracket)),
        Some('\\') => escape::parse_symbol(text),
        Some(symbol) => Ok((u32::from(symbol), symbols.as_str())),
    }
}

/// `[:alpha:]` or `[:^alpha:]` at the start of `text`.
fn ascii_class(text: &str, fold_case: bool) -> Result<Option<(Class, &str)>, PatternError> {
    let Some((name, rest)) = text.strip_prefix("[:").and_then(|inner| inner.split_once(":]")) else {
        return Ok(None);
    };
    let (negated, plain) = match name.strip_prefix('^') {
        Some(plain) => (true, plain),
        None => (false, name),
    };
    let ranges: &[(char, char)] = match plain {
        "alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        "alpha" => &[('A', 'Z'), ('a', 'z')],
        "ascii" => &[('\0', '\x7f')],
        "blank" => &[('\t', '\t'), (' ', ' ')],
        "cntrl" => &[('\0', '\x1f'), ('\x7f', '\x7f')],
        "digit" => &[('0', '9')],
        "graph" => &[('!', '~')],
        "lower" => &[('a', 'z')],
        "print" => &[(' ', '~')],
        "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "space" => &[('\t', '\r'), (' ', ' ')],
        "upper" => &[('A', 'Z')],
        "word" => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
        "xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
        _ => return Err(PatternError::new(Fault::ClassRange, text_before(text, rest))),
    };
    let class = Class::ranges(ranges);
    let class = if fold_case { class.folded() } else { class };
    Ok(Some((if negated { class.negated() } else { class }, rest)))
}
