//! Differences between go-yaml v2 and the parser: YAML 1.2 is stricter about white space and has escapes that YAML 1.1
//! lacks.

use std::borrow::Cow;

use granit_parser::{ErrorKind, ScalarStyle, ScanError, Scanner, StrInput, TokenType};

use crate::tree::Span;

/// A text edited so that the parser accepts what go-yaml accepts, and the mapping back to original positions.
pub(super) struct LenientText<'t> {
    text: Cow<'t, str>,
    edits: Vec<Edit>,
    /// Replaces byte order marks inside the text.
    mark_replacement: Option<char>,
}

/// Inserted white space, a longer escape, or one character replaced by another of the same length.
#[derive(Clone, Copy)]
struct Edit {
    /// Offset in the edited text.
    at: usize,
    line: usize,
    inserted: usize,
}

/// A file that needs more edits is rejected with its first error.
const MAX_EDITS: usize = 64;
/// More than the indentation of most files; inserted repeatedly where that is not enough.
const INSERTED_INDENT: usize = 64;
const BYTE_ORDER_MARK: char = '\u{feff}';

impl<'t> LenientText<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        LenientText { text: Cow::Borrowed(text), edits: Vec::new(), mark_replacement: None }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Edits the text to avoid an error that go-yaml does not report. Returns whether to parse again.
    pub(super) fn repair(&mut self, error: &ScanError) -> bool {
        let marker = error.marker();
        let Some(at) = marker.byte_offset().filter(|_| self.edits.len() < MAX_EDITS) else { return false };
        let Some((before, after)) = self.text.split_at_checked(at) else { return false };
        let edit = match error.kind() {
            // Indentation of a quoted scalar's continuation lines is folded and does not matter, tabs included.
            ErrorKind::InvalidQuotedScalarIndent | ErrorKind::TabInIndentation => {
                let at = before.rfind(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).map_or(0, |at| at + 1);
                let at = (at..=before.len()).find(|at| before.is_char_boundary(*at)).unwrap_or(at);
                Edit { at, line: marker.line(), inserted: INSERTED_INDENT }
            }
            // `"text"#comment`: go-yaml needs no space before a comment here.
            ErrorKind::CommentNotSeparated if after.starts_with('#') => {
                Edit { at, line: marker.line(), inserted: 1 }
            }
            // go-yaml treats a byte order mark after the first character as text, even at the start of a line, where
            // it means to skip it but checks the wrong position.
            ErrorKind::BomInsideDocument if after.starts_with(BYTE_ORDER_MARK) => {
                let unused = |symbol: &char| !self.text.contains(*symbol);
                let Some(stand_in) = self.mark_replacement.or_else(|| ('\u{e000}'..'\u{f8ff}').find(unused))
                else {
                    return false;
                };
                self.text.to_mut().replace_range(at..at + BYTE_ORDER_MARK.len_utf8(), &stand_in.to_string());
                self.mark_replacement = Some(stand_in);
                self.edits.push(Edit { at, line: marker.line(), inserted: 0 });
                return true;
            }
            // go-yaml knows `\'` in double quotes. The longer escape means the same.
            ErrorKind::UnknownQuotedScalarEscape => {
                let Some(escape) = escaped_apostrophe(after) else { return false };
                let at = at + escape;
                self.text.to_mut().replace_range(at..at + 2, "\\x27");
                self.edits.push(Edit { at, line: marker.line(), inserted: 2 });
                return true;
            }
            _ => return false,
        };
        self.text.to_mut().insert_str(edit.at, &" ".repeat(edit.inserted));
        self.edits.push(edit);
        true
    }

    /// The value as written in the original text.
    pub(super) fn original_value<'v>(&self, value: &'v str) -> Cow<'v, str> {
        match self.mark_replacement {
            Some(stand_in) if value.contains(stand_in) => value.replace(stand_in, "\u{feff}").into(),
            _ => value.into(),
        }
    }

    /// Maps a span of the edited text to the original.
    pub(super) fn original_span(&self, span: Span) -> Span {
        let mut original = span;
        // Edits are in order of position, so undo the last one first.
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

/// The offset of the first `\'` in a double-quoted scalar.
fn escaped_apostrophe(scalar: &str) -> Option<usize> {
    let mut symbols = scalar.char_indices().skip(1);
    loop {
        match symbols.next()? {
            (_, '"') => return None,
            (at, '\\') if symbols.next()?.1 == '\'' => return Some(at),
            _ => {}
        }
    }
}

/// Rejects escapes that YAML 1.1 lacks: `\/` and surrogate pairs.
pub(super) fn reject_yaml_1_2_escapes(
    text: &str,
    span: Span,
    style: ScalarStyle,
) -> Result<(), &'static str> {
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
            return Err("YAML has no surrogate pairs of `\\u` escapes; write the character itself");
        }
        let mut symbols = escape.chars();
        symbols.next();
        rest = symbols.as_str();
    }
    Ok(())
}

/// Whether a tab precedes this token where go-yaml counts white space as indentation: at the beginning of a line, and after the `-`
/// and `?` of block collections.
pub(super) fn is_indented_by_tab(text: &str, start: usize) -> bool {
    let (rest, indentation) = split_white_space(text, start);
    let begins_line = rest.is_empty() || rest.ends_with(['\n', '\r']);
    (begins_line && indentation.contains('\t')) || follows_indicator_and_tab(text, start)
}

/// Whether there is white space with a tab between this token and a `-` or `?` of a block collection.
fn follows_indicator_and_tab(text: &str, start: usize) -> bool {
    let (rest, white_space) = split_white_space(text, start);
    let is_blank = |text: &str| text.is_empty() || text.ends_with([' ', '\t', '\n', '\r']);
    white_space.contains('\t') && rest.strip_suffix(['-', '?']).is_some_and(is_blank)
}

/// The text before this offset, without and with only the white space at its end.
fn split_white_space(text: &str, end: usize) -> (&str, &str) {
    let before = text.get(..end).unwrap_or_default();
    before.split_at(before.trim_end_matches([' ', '\t']).len())
}

/// Finds the token after white space, an empty line or a comment with a tab where go-yaml rejects it.
pub(super) fn token_after_tab(text: &str, end: usize) -> Option<Span> {
    if !text.contains('\t') {
        return None;
    }
    let (mut flow_depth, mut previous_end, mut previous) = (0_usize, 0, Previous::BlockScalar { indent: 0 });
    // Columns of the open block collections.
    let mut columns = Vec::new();
    for token in Scanner::new(StrInput::new(text)).map_while(Result::ok) {
        let span = super::span(token.span().start, token.span().end);
        let gap = text.get(previous_end..span.start).unwrap_or_default();
        let is_comment = matches!(token.token_type(), TokenType::Comment(_));
        if previous.rejects_tab_in(gap, flow_depth > 0, columns.last().copied())
            || (is_comment && flow_depth == 0 && follows_indicator_and_tab(text, span.start))
        {
            return Some(span);
        }
        if span.start >= end {
            break;
        }
        match token.token_type() {
            TokenType::FlowSequenceStart | TokenType::FlowMappingStart => flow_depth += 1,
            TokenType::FlowSequenceEnd | TokenType::FlowMappingEnd => {
                flow_depth = flow_depth.saturating_sub(1);
            }
            TokenType::BlockMappingStart | TokenType::BlockSequenceStart => {
                columns.push(span.column.saturating_sub(1));
            }
            TokenType::BlockEnd => {
                columns.pop();
            }
            _ => {}
        }
        previous_end = previous_end.max(span.end);
        previous = Previous::after(token.token_type(), span).unwrap_or(previous);
    }
    None
}

/// What precedes white space decides where go-yaml accepts tabs in it.
#[derive(Clone, Copy)]
enum Previous {
    /// A tab must be to the right of the column of the collection.
    PlainScalar,
    /// A tab must be to the right of the indentation of the text.
    BlockScalar { indent: usize },
    /// No tab at the beginning of a line.
    Other,
}

impl Previous {
    /// `None` for tokens that have no text of their own.
    fn after(token: &TokenType<'_>, span: Span) -> Option<Self> {
        match token {
            TokenType::Key
            | TokenType::BlockMappingStart
            | TokenType::BlockSequenceStart
            | TokenType::BlockEnd => None,
            TokenType::Scalar(ScalarStyle::Plain, _) => Some(Previous::PlainScalar),
            TokenType::Scalar(ScalarStyle::Literal | ScalarStyle::Folded, _) => {
                Some(Previous::BlockScalar { indent: span.column.saturating_sub(1) })
            }
            _ => Some(Previous::Other),
        }
    }

    fn rejects_tab_in(self, gap: &str, is_flow: bool, column: Option<usize>) -> bool {
        // The number of spaces before a tab at the beginning of a line.
        let tab = |line: &str| {
            let rest = line.trim_start_matches(' ');
            rest.starts_with('\t').then(|| line.len() - rest.len())
        };
        let lines = gap.split('\n');
        match self {
            Previous::PlainScalar => {
                lines.skip(1).filter_map(tab).any(|at| column.is_some_and(|column| at <= column))
            }
            Previous::BlockScalar { indent } => lines.filter_map(tab).any(|at| at < indent),
            Previous::Other => !is_flow && lines.skip(1).any(|line| tab(line).is_some()),
        }
    }
}

/// Anchors have the names that YAML 1.1 allows (what may follow one without a space is not judged), and tags are followed by
/// white space, in braces and brackets too.
pub(super) fn reject_yaml_1_2_properties(text: &str, end: usize) -> Result<(), (Span, &'static str)> {
    const ANCHOR: &str = "anchor names may contain only letters, digits, `-` and `_`; put a value that begins with `&` in quotes";
    const TAG: &str = "missing space after tag; put a value that begins with `!` in quotes";
    let newer = |symbol: char| !symbol.is_ascii_alphanumeric() && !"-_?:,]}%@`".contains(symbol);
    // The text up to `end` has parsed without an error.
    for token in Scanner::new(StrInput::new(text)).map_while(Result::ok) {
        let span = super::span(token.span().start, token.span().end);
        let written = || text.get(span.start..span.end).unwrap_or_default();
        let next = || text.get(span.end..).and_then(|rest| rest.chars().next());
        match token.token_type() {
            _ if span.start >= end => break,
            TokenType::Anchor(name) if name.contains(newer) => return Err((span, ANCHOR)),
            TokenType::Tag(..)
                if written().contains('#') || next().is_some_and(|symbol| !symbol.is_whitespace()) =>
            {
                return Err((span, TAG));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Rejects a plain scalar that begins with `:` in a flow collection.
pub(super) fn reject_leading_colon(text: &str, span: Span, style: ScalarStyle) -> Result<(), &'static str> {
    let begins =
        style == ScalarStyle::Plain && text.get(span.start..).is_some_and(|text| text.starts_with(':'));
    // An empty scalar is not text.
    let is_text = span.end > span.start;
    if begins && is_text { Err("value that begins with `:` must be in quotes here") } else { Ok(()) }
}

/// Rejects a flow mapping key that is not on one line with its colon, unless it begins with `?`.
pub(super) fn reject_multiline_key(text: &str, span: Span) -> Result<(), &'static str> {
    let (before, from_key) = text.split_at_checked(span.start).unwrap_or((text, ""));
    let key = from_key.get(..span.end.saturating_sub(span.start)).unwrap_or_default();
    let after = from_key.get(key.len()..).unwrap_or_default();
    let is_explicit = before.trim_end().ends_with('?');
    let colon = after.find(|symbol: char| !symbol.is_ascii_whitespace());
    let to_colon = colon.and_then(|at| after.split_at_checked(at)).filter(|rest| rest.1.starts_with(':'));
    let is_spread =
        to_colon.is_some_and(|(blank, _)| key.contains(['\n', '\r']) || blank.contains(['\n', '\r']));
    if is_spread && !is_explicit { Err("key and colon must be on one line") } else { Ok(()) }
}
