//! Parses the first document of a YAML text into the tree, event by event. Accepts what go-yaml v2 accepts, which
//! differs from the underlying parser in details.

mod input;
mod leniency;

use granit_parser::{ErrorKind, Event, Marker, Parser, ScalarStyle, ScanError, StructureStyle, Tag};

use super::builder::{Builder, syntax_error, too_deep};
use super::scalar::{self, Scalar, ScalarError};
use super::{Node, ParseLimits, Span, Value, source};
use crate::diagnostic::Diagnostic;
use input::TextInput;
use leniency::LenientText;

pub(super) fn parse(bytes: &[u8], limits: ParseLimits) -> Result<Node, Diagnostic> {
    let text = source::yaml_text(bytes)?;
    reject_leading_tab(&text)?;
    let mut lenient = LenientText::new(&text);
    loop {
        match read(&lenient, limits) {
            Ok(node) => return Ok(node),
            Err(ReadError::Rejected(diagnostic)) => return Err(diagnostic),
            Err(ReadError::Scan(error)) => {
                if !lenient.repair(&error) {
                    return Err(scan_diagnostic(&error, &lenient, limits));
                }
            }
        }
    }
}

const TAB: &str = "tab is not allowed as indentation";
const TAB_LINE: &str = "tab is not allowed at the beginning of the empty line or comment before this";

/// Why parsing failed.
enum ReadError {
    /// The parser rejects the text.
    Scan(ScanError),
    /// Kubernetes rejects the text.
    Rejected(Diagnostic),
}

impl From<Diagnostic> for ReadError {
    fn from(diagnostic: Diagnostic) -> Self {
        ReadError::Rejected(diagnostic)
    }
}

fn read(lenient: &LenientText<'_>, limits: ParseLimits) -> Result<Node, ReadError> {
    let mut options = granit_parser::options! {
        flow_nesting_limit: limits.depth,
        block_nesting_limit: limits.depth,
    };
    options.set_emit_comments(false);
    let text = lenient.text();
    let mut parser = Parser::with_options(TextInput::new(text), options);
    let mut builder = Builder::new(limits);
    let mut open: Vec<StructureStyle> = Vec::new();
    let mut has_properties = false;
    while let Some(next) = parser.next_event() {
        let (event, parser_span) = next.map_err(ReadError::Scan)?;
        let written = span(parser_span.start, parser_span.end);
        let span = lenient.original_span(written);
        let is_something = written.end > written.start
            || matches!(event, Event::SequenceStart(..) | Event::MappingStart(..));
        if is_something
            && !matches!(open.last(), Some(StructureStyle::Flow))
            && leniency::is_indented_by_tab(text, written.start)
        {
            return Err(syntax_error(span, TAB).with_hint("use spaces").into());
        }
        match event {
            // Later documents are not even looked at.
            Event::DocumentEnd | Event::StreamEnd => {
                if let Some(token) = leniency::token_after_tab(text, written.start) {
                    let span = lenient.original_span(token);
                    return Err(syntax_error(span, TAB_LINE).with_hint("use spaces").into());
                }
                if has_properties {
                    leniency::reject_yaml_1_2_properties(text, written.start)
                        .map_err(|(span, message)| syntax_error(lenient.original_span(span), message))?;
                }
                break;
            }
            Event::DocumentStart(_, Some(version)) if (version.major, version.minor) != (1, 1) => {
                return Err(syntax_error(
                    span,
                    "Kubernetes supports YAML 1.1 only; remove the `%YAML` directive",
                )
                .into());
            }
            Event::Scalar(value, style, anchor, tag) => {
                has_properties |= anchor > 0 || tag.is_some();
                leniency::reject_yaml_1_2_escapes(text, written, style)
                    .map_err(|message| syntax_error(span, message))?;
                if matches!(open.last(), Some(StructureStyle::Flow)) {
                    leniency::reject_leading_colon(text, written, style)
                        .map_err(|message| syntax_error(span, message))?;
                    if builder.expects_key() {
                        leniency::reject_multiline_key(text, written)
                            .map_err(|message| syntax_error(span, message))?;
                    }
                }
                let value = lenient.original_value(without_added_line_end(&value, style, written, text));
                add_scalar(&mut builder, &value, style, tag.as_deref(), span, anchor)?;
            }
            Event::SequenceStart(style, anchor, tag) => {
                has_properties |= anchor > 0 || tag.is_some();
                open.push(style);
                builder.open_sequence(span, anchor)?;
            }
            Event::MappingStart(style, anchor, tag) => {
                has_properties |= anchor > 0 || tag.is_some();
                open.push(style);
                builder.open_mapping(span, anchor)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                open.pop();
                builder.close((span.end > span.start).then_some(span.end))?;
            }
            Event::Alias(anchor) => builder.alias(anchor, span)?,
            _ => {}
        }
    }
    Ok(builder.finish())
}

/// The first content after the first document that is more than markers and comments.
pub(super) fn second_document(bytes: &[u8]) -> Option<Span> {
    let text = source::yaml_text(bytes).ok()?;
    let mut options = granit_parser::options! {};
    options.set_emit_comments(false);
    let mut parser = Parser::new_from_str_with_options(&text, options);
    let mut ended = false;
    while let Some(next) = parser.next_event() {
        // Text that does not parse counts as a document.
        let Ok((event, parser_span)) = next else { return ended.then_some(Span::START) };
        match event {
            Event::DocumentEnd => ended = true,
            Event::StreamEnd => break,
            Event::Scalar(value, ScalarStyle::Plain, _, None)
                if matches!(value.as_ref(), "" | "~" | "null") => {}
            Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..) | Event::Alias(_)
                if ended =>
            {
                return Some(span(parser_span.start, parser_span.end));
            }
            _ => {}
        }
    }
    None
}

/// Rejects a tab before the first token, as go-yaml does; the parser would skip it.
fn reject_leading_tab(text: &str) -> Result<(), Diagnostic> {
    let blank = text.len() - text.trim_start_matches([' ', '\t', '\r', '\n']).len();
    let Some(tab) = text.bytes().take(blank).position(|byte| byte == b'\t') else { return Ok(()) };
    let position = source::Position::default().advance_to(text.as_bytes(), tab);
    Err(syntax_error(position.span(tab + 1), TAB).with_hint("use spaces"))
}

/// Removes the line break the parser adds to a block scalar at the end of a text without one; go-yaml adds none.
fn without_added_line_end<'a>(value: &'a str, style: ScalarStyle, span: Span, text: &str) -> &'a str {
    let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
    if is_block && span.end >= text.len() && !text.ends_with(['\n', '\r']) {
        return value.strip_suffix('\n').unwrap_or(value);
    }
    value
}

fn add_scalar(
    builder: &mut Builder,
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    span: Span,
    anchor: usize,
) -> Result<(), Diagnostic> {
    let is_key = builder.expects_key();
    if is_key && text == "<<" && tag.is_none() && style == ScalarStyle::Plain {
        builder.merge_key(span);
        return Ok(());
    }
    let scalar = match tag {
        Some(tag) => scalar::resolve_tagged(&format!("{}{}", tag.handle(), tag.suffix()), text)
            .map_err(|e| scalar_diagnostic(span, e))?,
        None if style == ScalarStyle::Plain => scalar::resolve_plain(text),
        None => Scalar::Text(text.to_owned()),
    };
    let value = if is_key {
        scalar.into_key().map(Value::from).ok_or_else(|| {
            syntax_error(span, "mapping key must not be null or a number of this size; put it in quotes")
        })?
    } else {
        scalar.into_value().map_err(|error| scalar_diagnostic(span, error))?
    };
    builder.scalar(value, span, anchor)
}

fn scalar_diagnostic(span: Span, unfit: ScalarError) -> Diagnostic {
    let message = match unfit {
        ScalarError::Tag => "value does not have the type its tag names",
        ScalarError::Binary => "value tagged `!!binary` must be base64",
        ScalarError::NotJson => "infinity and not-a-number are not allowed; put the value in quotes",
    };
    syntax_error(span, message)
}

/// Keeps the parser's message unless a clearer one exists. Parser messages name what was expected and never more than
/// one character of the file.
fn scan_diagnostic(error: &ScanError, lenient: &LenientText<'_>, limits: ParseLimits) -> Diagnostic {
    let span = lenient.original_span(span(*error.marker(), *error.marker()));
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => too_deep(span, limits.depth),
        ErrorKind::UnknownAnchor => syntax_error(span, "alias of an undefined anchor"),
        ErrorKind::SimpleKeyExpected => syntax_error(span, "mapping key without a following `:`"),
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
            syntax_error(span, TAB).with_hint("use spaces")
        }
        _ => syntax_error(span, error.info()),
    }
}

fn span(start: Marker, end: Marker) -> Span {
    let offset = |marker: Marker| marker.byte_offset().unwrap_or_else(|| marker.index());
    Span { start: offset(start), end: offset(end), line: start.line(), column: start.col() + 1 }
}
