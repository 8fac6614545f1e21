//! Regular expressions with the syntax and semantics of RE2 as implemented in Go, matched in linear time.
//!
//! This module has its own parser, because the syntax of the `regex` crate differs: `\d`, `\w`, `\s` and `\b` are
//! ASCII in RE2, `[a&&b]` is a plain class, `\Q…\E`, `\123` and `a{,5}` are valid, `(?x)` and `a{1001}` are not. A
//! user name rule `^\w+$` must accept the same names here as in Kubernetes.

use regex_automata::meta;
use regex_syntax::hir::Look;
use std::fmt;

mod class;
mod escape;
mod names;
mod parse;

/// Default limit in bytes for a compiled pattern.
pub(crate) const DEFAULT_SIZE_LIMIT: usize = 10 << 20;

/// A compiled pattern. It is cheap to clone; matching takes no lock and, after the first match, does not allocate.
#[derive(Clone)]
pub(crate) struct Pattern {
    regex: meta::Regex,
    /// Set if the pattern contains `\B`, which also matches between the bytes of a character. A search for any
    /// match may stop at such a position, discard it, and miss the valid match around it; a leftmost search does
    /// not.
    has_negated_boundary: bool,
}

impl Pattern {
    /// Compiles a pattern with the limit [`DEFAULT_SIZE_LIMIT`].
    pub(crate) fn new(pattern: &str) -> Result<Self, PatternError> {
        Self::with_size_limit(pattern, DEFAULT_SIZE_LIMIT)
    }

    /// Checks a pattern without compiling it: cheaper, but does not detect a pattern that is too large when
    /// compiled.
    pub(crate) fn check(pattern: &str) -> Result<(), PatternError> {
        parse::parse(pattern).map(|_| ())
    }

    /// Compiles a pattern to at most `size_limit` bytes.
    pub(crate) fn with_size_limit(pattern: &str, size_limit: usize) -> Result<Self, PatternError> {
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
    pub(crate) fn is_match(&self, text: &str) -> bool {
        if self.has_negated_boundary { self.regex.find(text).is_some() } else { self.regex.is_match(text) }
    }

    /// The leftmost match: `text.find(pattern)`, which returns `""` for `None`.
    #[must_use]
    pub(crate) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.regex.find(text).and_then(|found| text.get(found.range()))
    }

    /// All non-overlapping matches from left to right: `text.findAll(pattern)`.
    ///
    /// An empty match adjacent to the preceding match is omitted. For `findAll(pattern, n)`, take the first `n`
    /// matches, or all if `n` is negative.
    pub(crate) fn find_all<'p, 't>(&'p self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'p, 't> {
        self.regex.find_iter(text).filter_map(|found| text.get(found.range()))
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pattern").finish_non_exhaustive()
    }
}

/// An invalid pattern, with the invalid part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {fault}: `{part}`")]
pub(crate) struct PatternError {
    /// The cause.
    pub fault: Fault,
    /// The invalid part of the pattern.
    pub part: String,
}

impl PatternError {
    fn new(fault: Fault, part: &str) -> Self {
        Self { fault, part: part.to_owned() }
    }
}

/// Why a pattern is invalid, worded as in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
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
    /// The nesting exceeds the limit.
    #[error("expression nests too deeply")]
    TooDeep,
    /// The compiled pattern exceeds the size limit.
    #[error("expression too large")]
    TooLarge,
}

#[cfg(test)]
mod tests;
