//! Writes a tree as JSON or YAML. The output parses back to the same tree, also in YAML 1.1 loaders.

use std::fmt::Write as _;

use navicert_go::json::write_string_escaping;

use super::scalar::{self, Scalar};
use super::{MappingEntry, Node, Number, Value};

/// Output includes secrets: mask them in the tree first.
impl Node {
    /// JSON on one line. Only the last of repeated keys is written.
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        json(&mut text, self, None);
        text
    }

    /// JSON indented by two spaces, with a final line break.
    pub fn to_json_pretty(&self) -> String {
        let mut text = String::new();
        json(&mut text, self, Some(0));
        text.push('\n');
        text
    }

    /// YAML in block style with lists not indented below their key, as Kubernetes writes it.
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        match &self.value {
            Value::Sequence(items) if !items.is_empty() => yaml_sequence(&mut text, items, 0),
            Value::Mapping(mapping) if !mapping.is_empty() => {
                yaml_mapping(&mut text, &mapping.effective(), 0);
            }
            _ => {
                yaml_scalar(&mut text, self, 0);
                text.push('\n');
            }
        }
        text
    }
}

/// A text as a double-quoted YAML scalar, which is also a JSON string.
///
/// ```
/// use navicert_types::tree::yaml_quoted;
///
/// assert_eq!(yaml_quoted("a: \"b\"\u{7f}"), r#""a: \"b\"\u007f""#);
/// ```
pub fn yaml_quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    json_string(&mut text, value);
    text
}

/// A text as a YAML scalar: plain if that is unambiguous, quoted otherwise. Text of several lines is a literal block whose
/// lines have `indent` spaces, if that preserves it and `indent` is not 0; then the scalar ends with a line break.
pub fn yaml_text(value: &str, indent: usize) -> String {
    let mut text = String::new();
    yaml_string(&mut text, value, indent);
    text
}

fn json(text: &mut String, node: &Node, indent: Option<usize>) {
    let deeper = indent.map(|level| level + 1);
    match &node.value {
        Value::Sequence(items) if !items.is_empty() => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(text, index, deeper);
                json(text, item, deeper);
            }
            new_line(text, indent);
            text.push(']');
        }
        Value::Mapping(mapping) if !mapping.is_empty() => {
            text.push('{');
            for (index, entry) in mapping.effective().into_iter().enumerate() {
                separate(text, index, deeper);
                json_string(text, &entry.key);
                text.push_str(if indent.is_some() { ": " } else { ":" });
                json(text, &entry.value, deeper);
            }
            new_line(text, indent);
            text.push('}');
        }
        _ => json_leaf(text, node),
    }
}

fn json_leaf(text: &mut String, node: &Node) {
    match &node.value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) => number(text, value),
        Value::String(value) => json_string(text, value),
        Value::Sequence(_) => text.push_str("[]"),
        Value::Mapping(_) => text.push_str("{}"),
    }
}

fn separate(text: &mut String, index: usize, indent: Option<usize>) {
    if index > 0 {
        text.push(',');
    }
    new_line(text, indent);
}

fn new_line(text: &mut String, indent: Option<usize>) {
    if let Some(level) = indent {
        text.push('\n');
        spaces(text, level * 2);
    }
}

fn spaces(text: &mut String, count: usize) {
    text.extend(std::iter::repeat_n(' ', count));
}

/// Formats floats like Go: decimal between 1e-6 and 1e21, with an exponent outside that range.
fn number(text: &mut String, number: &Number) {
    // Writing to a String cannot fail.
    let _ = match number {
        Number::Integer(value) => write!(text, "{value}"),
        Number::Unsigned(value) => write!(text, "{value}"),
        Number::OutOfRange(literal) => write!(text, "{literal}"),
        Number::Float(value) if !value.is_finite() => write!(text, "null"),
        Number::Float(value) if *value == 0.0 || (1e-6..1e21).contains(&value.abs()) => {
            write!(text, "{value}")
        }
        Number::Float(value) => write!(text, "{}", format!("{value:e}").replace('e', exponent_mark(*value))),
    };
}

fn exponent_mark(value: f64) -> &'static str {
    if value.abs() >= 1.0 { "e+" } else { "e" }
}

/// A JSON string that is also a valid double-quoted YAML scalar: characters YAML does not allow and YAML 1.1 line breaks
/// are escaped.
fn json_string(text: &mut String, value: &str) {
    let is_spelled_out = |c: char| {
        matches!(c, '\u{7F}'..='\u{9F}' | '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}')
    };
    write_string_escaping(text, value, is_spelled_out);
}

fn yaml_mapping(text: &mut String, entries: &[&MappingEntry], indent: usize) {
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            spaces(text, indent);
        }
        yaml_key(text, &entry.key, indent);
        match &entry.value.value {
            Value::Sequence(items) if !items.is_empty() => {
                text.push_str(":\n");
                spaces(text, indent);
                yaml_sequence(text, items, indent);
            }
            Value::Mapping(mapping) if !mapping.is_empty() => {
                text.push_str(":\n");
                spaces(text, indent + 2);
                yaml_mapping(text, &mapping.effective(), indent + 2);
            }
            _ => {
                text.push_str(": ");
                yaml_scalar(text, &entry.value, indent + 2);
                end_line(text);
            }
        }
    }
}

fn yaml_sequence(text: &mut String, items: &[Node], indent: usize) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            spaces(text, indent);
        }
        text.push_str("- ");
        match &item.value {
            Value::Sequence(items) if !items.is_empty() => yaml_sequence(text, items, indent + 2),
            Value::Mapping(mapping) if !mapping.is_empty() => {
                yaml_mapping(text, &mapping.effective(), indent + 2);
            }
            _ => {
                yaml_scalar(text, item, indent + 2);
                end_line(text);
            }
        }
    }
}

/// Ends the line unless a block scalar has already ended it.
fn end_line(text: &mut String) {
    if !text.ends_with('\n') {
        text.push('\n');
    }
}

/// A simple key has at most 1024 characters including escapes; a longer one needs the explicit `?` form.
fn yaml_key(text: &mut String, key: &str, indent: usize) {
    if key.len() > 128 {
        text.push_str("? ");
        json_string(text, key);
        text.push('\n');
        spaces(text, indent);
    } else if is_safe_plain(key) {
        text.push_str(key);
    } else {
        json_string(text, key);
    }
}

fn yaml_scalar(text: &mut String, node: &Node, indent: usize) {
    match &node.value {
        Value::String(value) => yaml_string(text, value, indent),
        Value::Number(Number::OutOfRange(literal)) => json_string(text, literal),
        _ => json_leaf(text, node),
    }
}

fn yaml_string(text: &mut String, value: &str, indent: usize) {
    if is_safe_plain(value) {
        text.push_str(value);
    } else if indent > 0 && is_safe_block(value) {
        yaml_block(text, value, indent);
    } else {
        json_string(text, value);
    }
}

fn yaml_block(text: &mut String, value: &str, indent: usize) {
    text.push_str(if value.ends_with('\n') { "|\n" } else { "|-\n" });
    for line in value.lines() {
        if !line.is_empty() {
            spaces(text, indent);
        }
        text.push_str(line);
        text.push('\n');
    }
}

/// Whether an indented literal block preserves this multi-line text. Markers of documents are none if they are indented.
fn is_safe_block(value: &str) -> bool {
    let body = value.strip_suffix('\n').unwrap_or(value);
    body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\n', '\t'])
        && body.chars().all(|c| c == '\n' || c == '\t' || is_plain_character(c))
        && body.lines().all(|line| !line.ends_with([' ', '\t']))
}

/// Whether YAML 1.1 and 1.2 parsers both read this plain scalar as exactly this string.
fn is_safe_plain(text: &str) -> bool {
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '.'))
        || text.starts_with(|c: char| !c.is_ascii() && c.is_alphabetic());
    starts_well
        && text.len() <= 1024 * 64
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && text.chars().all(is_plain_character)
        && !text.contains(['{', '}', '[', ']', ',', '"', '\'', '`'])
        && !looks_numeric(text)
        && matches!(scalar::resolve_plain(text), Scalar::Text(_))
        && !text.starts_with("...")
}

/// Dates, times and numbers of any YAML dialect, which some parsers resolve to another type.
fn looks_numeric(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && text.bytes().all(|byte| byte.is_ascii_hexdigit() || b"_.:+-xXoOtTzZ ".contains(&byte))
}

fn is_plain_character(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{A0}'..='\u{2027}' | '\u{202A}'..='\u{D7FF}' | '\u{E000}'..='\u{FEFE}'
        | '\u{FF00}'..='\u{FFFD}' | '\u{10000}'..)
}
