//! Reads the first document of a YAML text into the tree, event by event: what go-yaml v2 takes, which is not quite what
//! the parser takes.

mod leniency;

use granit_parser::{ErrorKind, Event, Marker, Parser, ScalarStyle, ScanError, StructureStyle, Tag};

use super::builder::{Builder, syntax, too_deep};
use super::scalar::{self, Scalar, Unfit};
use super::{Limits, Node, Span, Value, source};
use crate::diagnostic::Diagnostic;
use leniency::Lenient;

pub(super) fn parse(bytes: &[u8], limits: Limits) -> Result<Node, Diagnostic> {
    let text = source::yaml_text(bytes)?;
    refuse_leading_tab(&text)?;
    let mut lenient = Lenient::new(&text);
    loop {
        match read(&lenient, limits) {
            Ok(node) => return Ok(node),
            Err(Broken::Rules(diagnostic)) => return Err(diagnostic),
            Err(Broken::Text(error)) => {
                if !lenient.mend(&error) {
                    return Err(broken(&error, &lenient, limits));
                }
            }
        }
    }
}

const TAB: &str = "a tab cannot be used as indentation";

/// Why there is no tree.
enum Broken {
    /// The parser says so.
    Text(ScanError),
    /// Kubernetes would say so.
    Rules(Diagnostic),
}

impl From<Diagnostic> for Broken {
    fn from(diagnostic: Diagnostic) -> Self {
        Broken::Rules(diagnostic)
    }
}

fn read(lenient: &Lenient<'_>, limits: Limits) -> Result<Node, Broken> {
    let mut options = granit_parser::options! {
        flow_nesting_limit: limits.depth,
        block_nesting_limit: limits.depth,
    };
    options.set_emit_comments(false);
    let text = lenient.text();
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut builder = Builder::new(limits);
    let mut open: Vec<StructureStyle> = Vec::new();
    let mut has_properties = false;
    while let Some(next) = parser.next_event() {
        let (event, place) = next.map_err(Broken::Text)?;
        let written = span(place.start, place.end);
        let span = lenient.original(written);
        let is_something = written.end > written.start
            || matches!(event, Event::SequenceStart(..) | Event::MappingStart(..));
        if is_something
            && !matches!(open.last(), Some(StructureStyle::Flow))
            && leniency::is_indented_by_tab(text, written.start)
        {
            return Err(syntax(span, TAB).with_hint("use spaces").into());
        }
        match event {
            // Later documents are not even looked at.
            Event::DocumentEnd | Event::StreamEnd => {
                if has_properties {
                    leniency::refuse_newer_properties(text, written.start)
                        .map_err(|(place, message)| syntax(lenient.original(place), message))?;
                }
                break;
            }
            Event::DocumentStart(_, Some(version)) if (version.major, version.minor) != (1, 1) => {
                return Err(syntax(span, "Kubernetes reads YAML 1.1 only; take the `%YAML` line out").into());
            }
            Event::Scalar(value, style, anchor, tag) => {
                has_properties |= anchor > 0 || tag.is_some();
                leniency::refuse_newer(text, written, style).map_err(|message| syntax(span, message))?;
                if matches!(open.last(), Some(StructureStyle::Flow)) {
                    leniency::refuse_leading_colon(text, written, style)
                        .map_err(|message| syntax(span, message))?;
                    if builder.expects_key() {
                        leniency::refuse_spread_key(text, written)
                            .map_err(|message| syntax(span, message))?;
                    }
                }
                let value = lenient.value(without_invented_line_end(&value, style, written, text));
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

/// The first thing after the first document that is more than markers and comments.
pub(super) fn second_document(bytes: &[u8]) -> Option<Span> {
    let text = source::yaml_text(bytes).ok()?;
    let mut options = granit_parser::options! {};
    options.set_emit_comments(false);
    let mut parser = Parser::new_from_str_with_options(&text, options);
    let mut ended = false;
    while let Some(next) = parser.next_event() {
        // Text that cannot be read is more than nothing.
        let Ok((event, place)) = next else { return ended.then_some(Span::START) };
        match event {
            Event::DocumentEnd => ended = true,
            Event::StreamEnd => break,
            Event::Scalar(value, ScalarStyle::Plain, _, None)
                if matches!(value.as_ref(), "" | "~" | "null") => {}
            Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..) | Event::Alias(_)
                if ended =>
            {
                return Some(span(place.start, place.end));
            }
            _ => {}
        }
    }
    None
}

/// The parser passes over a tab before the first token; go-yaml does not, and a file that looks indented is not.
fn refuse_leading_tab(text: &str) -> Result<(), Diagnostic> {
    let blank = text.len() - text.trim_start_matches([' ', '\t', '\r', '\n']).len();
    let Some(tab) = text.bytes().take(blank).position(|byte| byte == b'\t') else { return Ok(()) };
    let place = source::Position::default().advance_to(text.as_bytes(), tab);
    Err(syntax(place.span(tab + 1), TAB).with_hint("use spaces"))
}

/// A block scalar at the very end of a text that has no final line break: the parser adds one, go-yaml does not.
fn without_invented_line_end<'a>(value: &'a str, style: ScalarStyle, span: Span, text: &str) -> &'a str {
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
        Some(tag) => {
            scalar::tagged(&format!("{}{}", tag.handle(), tag.suffix()), text).map_err(|e| unfit(span, e))?
        }
        None if style == ScalarStyle::Plain => scalar::plain(text),
        None => Scalar::Text(text.to_owned()),
    };
    let value = if is_key {
        scalar.into_key().map(Value::from).ok_or_else(|| {
            syntax(span, "a mapping's key cannot be null or a number of this size; put it in quotes")
        })?
    } else {
        scalar.into_value().map_err(|error| unfit(span, error))?
    };
    builder.scalar(value, span, anchor)
}

fn unfit(span: Span, unfit: Unfit) -> Diagnostic {
    let message = match unfit {
        Unfit::Tag => "the value is not of the type its tag names",
        Unfit::Binary => "a value tagged `!!binary` has to be base64",
        Unfit::NotJson => {
            "infinity and not-a-number have no place in a Kubernetes file; put the value in quotes"
        }
    };
    syntax(span, message)
}

/// The parser's own words, where they are plain enough: they name what was expected, never what the file says beyond
/// one character.
fn broken(error: &ScanError, lenient: &Lenient<'_>, limits: Limits) -> Diagnostic {
    let span = lenient.original(span(*error.marker(), *error.marker()));
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => too_deep(span, limits.depth),
        ErrorKind::UnknownAnchor => syntax(span, "an alias of an anchor that is not defined before it"),
        ErrorKind::SimpleKeyExpected => syntax(span, "a mapping's key without `:` after it"),
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
            syntax(span, TAB).with_hint("use spaces")
        }
        _ => syntax(span, error.info()),
    }
}

fn span(start: Marker, end: Marker) -> Span {
    let offset = |marker: Marker| marker.byte_offset().unwrap_or_else(|| marker.index());
    Span { start: offset(start), end: offset(end), line: start.line(), column: start.col() + 1 }
}
