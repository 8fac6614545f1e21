//! Regular expressions with the syntax and meaning of RE2 as Go has it, matched in linear time.
//!
//! This module parses patterns itself, because the syntax of the `regex` crate differs: `\d`,
//! `\w`, `\s` and `\b` are ASCII in RE2, `[a&&b]` is a plain class, `\Q…\E`, `\123` and `a{,5}` are legal, `(?x)` and
//! `a{1001}` are not. A username rule `^\w+$` must not become weaker by a change of engine.

use regex_automata::meta;
use regex_syntax::hir::Look;
use std::fmt;

mod class;
mod escape;
mod names;
mod parse;

/// Bytes a compiled pattern may take unless the caller says otherwise.
pub const DEFAULT_SIZE_LIMIT: usize = 10 << 20;

/// A compiled pattern. Cloning is cheap; matching needs no lock and no allocation once warm.
#[derive(Clone)]
pub struct Pattern {
    regex: meta::Regex,
    /// `\B` holds between the bytes of a character. A search for any match may stop at such a place, see that it is
    /// none, and miss the real match around it; a search for the leftmost match does not.
    has_negated_boundary: bool,
}

impl Pattern {
    /// Compiles a pattern that takes at most [`DEFAULT_SIZE_LIMIT`] bytes.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        Self::with_size_limit(pattern, DEFAULT_SIZE_LIMIT)
    }

    /// Whether it is a pattern: cheaper than compiling it, and blind only to the size of what is compiled.
    pub fn check(pattern: &str) -> Result<(), PatternError> {
        parse::parse(pattern).map(|_| ())
    }

    /// Compiles a pattern that takes at most `size_limit` bytes.
    pub fn with_size_limit(pattern: &str, size_limit: usize) -> Result<Self, PatternError> {
        let tree = parse::parse(pattern)?;
        let config = meta::Config::new().nfa_size_limit(Some(size_limit)).onepass_size_limit(Some(1 << 18));
        let regex = meta::Regex::builder()
            .configure(config)
            .build_from_hir(&tree)
            .map_err(|_| PatternError::new(Fault::TooLarge, ""))?;
        let has_negated_boundary = tree.properties().look_set().contains(Look::WordAsciiNegate);
        Ok(Self { regex, has_negated_boundary })
    }

    /// Whether `text` contains a match: `text.matches(pattern)`.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        if self.has_negated_boundary { self.regex.find(text).is_some() } else { self.regex.is_match(text) }
    }

    /// The leftmost match: `text.find(pattern)`, which gives `""` where this gives `None`.
    #[must_use]
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.regex.find(text).and_then(|found| text.get(found.range()))
    }

    /// All matches from left to right that do not overlap: `text.findAll(pattern)`.
    ///
    /// An empty match right after another match is left out. For `findAll(pattern, n)` take the first `n`, all if `n`
    /// is negative.
    pub fn find_all<'p, 't>(&'p self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'p, 't> {
        self.regex.find_iter(text).filter_map(|found| text.get(found.range()))
    }

    /// Heap bytes of the compiled form, for the size of a cache.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.regex.memory_usage()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pattern").finish_non_exhaustive()
    }
}

/// Why a text is no pattern, and the part of it that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {fault}: `{part}`")]
pub struct PatternError {
    /// What is wrong.
    pub fault: Fault,
    /// Where: the offending piece of the pattern.
    pub part: String,
}

impl PatternError {
    fn new(fault: Fault, part: &str) -> Self {
        Self { fault, part: part.to_owned() }
    }
}

/// What can be wrong with a pattern, in Go's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// `a(b`
    #[error("missing closing )")]
    MissingParenthesis,
    /// `a)b`
    #[error("unexpected )")]
    UnexpectedParenthesis,
    /// `[a`
    #[error("missing closing ]")]
    MissingBracket,
    /// `*a`
    #[error("missing argument to repetition operator")]
    MissingArgument,
    /// `a**`
    #[error("invalid nested repetition operator")]
    NestedRepetition,
    /// `a{1001}`, `a{2,1}`, `(a{100}){100}`
    #[error("invalid repeat count")]
    RepeatCount,
    /// `\8`, `\Z`, `\C`
    #[error("invalid escape sequence")]
    Escape,
    /// A lone `\` at the end.
    #[error("trailing backslash at end of expression")]
    TrailingBackslash,
    /// `[z-a]`, `[[:foo:]]`, `\p{Foo}`
    #[error("invalid character class range")]
    ClassRange,
    /// `(?x)`, `(?=a)`
    #[error("invalid or unsupported Perl syntax")]
    PerlSyntax,
    /// `(?P<>a)`, a name used twice
    #[error("invalid named capture")]
    NamedCapture,
    /// More nesting than the engine takes.
    #[error("expression nests too deeply")]
    TooDeep,
    /// More states than the limit allows.
    #[error("expression too large")]
    TooLarge,
}

#[cfg(test)]
mod tests;
