//! Where go-yaml v2 and the parser part: YAML 1.2 is stricter about white space, and has escapes that 1.1 has not.

use std::borrow::Cow;

use granit_parser::{ErrorKind, ScalarStyle, ScanError, Scanner, StrInput, TokenType};

use crate::tree::Span;

/// A text with what go-yaml passes over mended, and the way back to the places of the original.
pub(super) struct Lenient<'t> {
    text: Cow<'t, str>,
    edits: Vec<Edit>,
    /// Stands for a byte order mark that is part of a text.
    stand_in: Option<char>,
}

/// White space put in, or one character replaced by another of the same length.
#[derive(Clone, Copy)]
struct Edit {
    /// Where in the mended text.
    at: usize,
    line: usize,
    inserted: usize,
}

/// A file that needs more than this is refused for its first flaw.
const MOST_EDITS: usize = 64;
/// More than most files are indented; where it is not enough, once more.
const INDENT: usize = 64;
const MARK: char = '\u{feff}';

impl<'t> Lenient<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Lenient { text: Cow::Borrowed(text), edits: Vec::new(), stand_in: None }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Takes the error's reason away, if go-yaml does not mind it: then the text may be read again.
    pub(super) fn mend(&mut self, error: &ScanError) -> bool {
        let marker = error.marker();
        let Some(at) = marker.byte_offset().filter(|_| self.edits.len() < MOST_EDITS) else { return false };
        let Some((before, after)) = self.text.split_at_checked(at) else { return false };
        let edit = match error.kind() {
            // How far a quoted text's later lines are indented does not matter: white space there is folded.
            ErrorKind::InvalidQuotedScalarIndent => {
                let at = before.rfind(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).map_or(0, |at| at + 1);
                let at = (at..=before.len()).find(|at| before.is_char_boundary(*at)).unwrap_or(at);
                Edit { at, line: marker.line(), inserted: INDENT }
            }
            // `"text"#comment`: a comment needs no space before it where nothing else can begin with a `#`.
            ErrorKind::CommentNotSeparated if after.starts_with('#') => {
                Edit { at, line: marker.line(), inserted: 1 }
            }
            // A byte order mark that is not the first character of the text is one like any other, also where it
            // begins a line: go-yaml means to pass over it there, and looks at the wrong place for it.
            ErrorKind::BomInsideDocument if after.starts_with(MARK) => {
                let unused = |symbol: &char| !self.text.contains(*symbol);
                let Some(stand_in) = self.stand_in.or_else(|| ('\u{e000}'..'\u{f8ff}').find(unused)) else {
                    return false;
                };
                self.text.to_mut().replace_range(at..at + MARK.len_utf8(), &stand_in.to_string());
                self.stand_in = Some(stand_in);
                self.edits.push(Edit { at, line: marker.line(), inserted: 0 });
                return true;
            }
            _ => return false,
        };
        self.text.to_mut().insert_str(edit.at, &" ".repeat(edit.inserted));
        self.edits.push(edit);
        true
    }

    /// A text as it was written.
    pub(super) fn value<'v>(&self, value: &'v str) -> Cow<'v, str> {
        match self.stand_in {
            Some(stand_in) if value.contains(stand_in) => value.replace(stand_in, "\u{feff}").into(),
            _ => value.into(),
        }
    }

    /// A place of the mended text in the original.
    pub(super) fn original(&self, span: Span) -> Span {
        let mut original = span;
        // The latest edit is behind all others, so that going back begins with it.
        for edit in self.edits.iter().rev() {
            let back = |offset: usize| {
                if offset < edit.at { offset } else { offset.saturating_sub(edit.inserted).max(edit.at) }
            };
            if edit.line == original.line && original.start >= edit.at {
                original.column = original.column.saturating_sub(edit.inserted).max(1);
            }
            original.start = back(original.start);
            original.end = back(original.end);
        }
        original
    }
}

/// Escapes that YAML 1.1 does not have: `\/`, and pairs of surrogates.
pub(super) fn refuse_newer(text: &str, span: Span, style: ScalarStyle) -> Result<(), &'static str> {
    if style != ScalarStyle::DoubleQuoted {
        return Ok(());
    }
    let mut rest = text.get(span.start..span.end).unwrap_or_default();
    while let Some((_, escape)) = rest.split_once('\\') {
        if escape.starts_with('/') {
            return Err("YAML 1.1 has no escape `\\/`; write `/`");
        }
        let surrogate = escape.strip_prefix('u').and_then(|digits| digits.get(..4));
        let surrogate = surrogate.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        if surrogate.is_some_and(|code| (0xd800..0xe000).contains(&code)) {
            return Err("YAML has no pairs of `\\u` escapes; write the character itself");
        }
        let mut symbols = escape.chars();
        symbols.next();
        rest = symbols.as_str();
    }
    Ok(())
}

/// Whether this is the first thing on its line, and has a tab before it.
pub(super) fn is_indented_by_tab(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    let rest = before.trim_end_matches([' ', '\t']);
    let indentation = before.get(rest.len()..).unwrap_or_default();
    indentation.contains('\t') && (rest.is_empty() || rest.ends_with(['\n', '\r']))
}

/// Anchors have the names that YAML 1.1 allows (what may follow one without a space is not judged), and tags are followed by
/// white space, in braces and brackets too.
pub(super) fn refuse_newer_properties(text: &str, end: usize) -> Result<(), (Span, &'static str)> {
    const ANCHOR: &str =
        "an anchor's name has only letters, digits, `-` and `_`; a text that begins with `&` needs quotes";
    const TAG: &str = "a space has to be after a tag; a text that begins with `!` needs quotes";
    let newer = |symbol: char| !symbol.is_ascii_alphanumeric() && !"-_?:,]}%@`".contains(symbol);
    // It was read without an error up to there.
    for token in Scanner::new(StrInput::new(text)).map_while(Result::ok) {
        let place = super::span(token.span().start, token.span().end);
        let written = || text.get(place.start..place.end).unwrap_or_default();
        let next = || text.get(place.end..).and_then(|rest| rest.chars().next());
        match token.token_type() {
            _ if place.start >= end => break,
            TokenType::Anchor(name) if name.contains(newer) => return Err((place, ANCHOR)),
            TokenType::Tag(..)
                if written().contains('#') || next().is_some_and(|symbol| !symbol.is_whitespace()) =>
            {
                return Err((place, TAG));
            }
            _ => {}
        }
    }
    Ok(())
}

/// In braces and brackets a colon is never the first character of a text without quotes.
pub(super) fn refuse_leading_colon(text: &str, span: Span, style: ScalarStyle) -> Result<(), &'static str> {
    let begins =
        style == ScalarStyle::Plain && text.get(span.start..).is_some_and(|text| text.starts_with(':'));
    // Nothing at all, between a colon and whatever comes next, is no text.
    let is_text = span.end > span.start;
    if begins && is_text { Err("a value that begins with `:` has to be in quotes here") } else { Ok(()) }
}

/// In braces and brackets too, a key stands on one line with its colon, unless a `?` is before it.
pub(super) fn refuse_spread_key(text: &str, span: Span) -> Result<(), &'static str> {
    let (before, from_key) = text.split_at_checked(span.start).unwrap_or((text, ""));
    let key = from_key.get(..span.end.saturating_sub(span.start)).unwrap_or_default();
    let after = from_key.get(key.len()..).unwrap_or_default();
    let is_explicit = before.trim_end().ends_with('?');
    let colon = after.find(|symbol: char| !symbol.is_ascii_whitespace());
    let to_colon = colon.and_then(|at| after.split_at_checked(at)).filter(|rest| rest.1.starts_with(':'));
    let is_spread =
        to_colon.is_some_and(|(blank, _)| key.contains(['\n', '\r']) || blank.contains(['\n', '\r']));
    if is_spread && !is_explicit { Err("a key and its colon have to be on one line") } else { Ok(()) }
}
