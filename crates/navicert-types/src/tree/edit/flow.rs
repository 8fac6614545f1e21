//! Changes of lists and mappings in brackets, which JSON files consist of: on one line, or one entry per line as the others are.

use super::Splice;
use super::position::Layout;
use crate::tree::{MappingEntry, Node, Value, yaml_quoted};

/// The indentation of entries that stand on lines of their own.
pub(super) struct EntryLines<'t> {
    /// White space before each entry.
    indentation: &'t str,
    /// What each level adds to it.
    unit: &'t str,
}

/// Adds an item after the last one.
pub(super) fn append_item(layout: &Layout<'_>, list: &Node, last: &Node, item: &Node) -> Option<Splice> {
    let lines = entry_lines(layout, list, last.span.start);
    let text = render(item, lines.as_ref());
    insert_after(layout, layout.end_of(last, list.span.start)?, lines.as_ref(), &text)
}

/// Adds a key after the last one.
pub(super) fn insert_key(
    layout: &Layout<'_>,
    container: &Node,
    last: &MappingEntry,
    key: &str,
    value: &Node,
) -> Option<Splice> {
    let lines = entry_lines(layout, container, last.key_span.start);
    let text = format!("{}: {}", yaml_quoted(key), render(value, lines.as_ref()));
    insert_after(layout, layout.end_of_entry(last)?, lines.as_ref(), &text)
}

/// Replaces the value of a key.
pub(super) fn replace_value(
    layout: &Layout<'_>,
    container: &Node,
    entry: &MappingEntry,
    value: &Node,
) -> Option<Splice> {
    let (colon, end) = (layout.after_colon(entry)?, layout.end_of_entry(entry)?);
    let lines = entry_lines(layout, container, entry.key_span.start);
    let text = layout.with_line_ends(&render(value, lines.as_ref()));
    Some(match end == colon {
        true => Splice { range: colon..colon, text: format!(" {text}") },
        false => Splice { range: entry.value.span.start..end, text },
    })
}

fn insert_after(
    layout: &Layout<'_>,
    end: usize,
    lines: Option<&EntryLines<'_>>,
    text: &str,
) -> Option<Splice> {
    let Some(lines) = lines else {
        return Some(Splice { range: end..end, text: format!(", {text}") });
    };
    // The comment of the last entry stays on its line.
    let comment = layout.comment_after(end).filter(|comment| !comment.trim().is_empty());
    let after = comment.map_or(end, |_| layout.line_end(end));
    let text = format!(",{}\n{}{text}", comment.unwrap_or_default(), lines.indentation);
    Some(Splice { range: end..after, text: layout.with_line_ends(&text) })
}

/// How the entries of a collection are indented; `None` if they are not on lines of their own.
fn entry_lines<'t>(layout: &Layout<'t>, container: &Node, entry_start: usize) -> Option<EntryLines<'t>> {
    let indentation = layout.indentation(entry_start)?;
    let line = layout.line_start(container.span.start);
    let before = layout.slice(line..container.span.start);
    let outer = before.len() - before.trim_start_matches([' ', '\t']).len();
    let unit = indentation.get(outer..).filter(|unit| !unit.is_empty()).unwrap_or("  ");
    Some(EntryLines { indentation, unit })
}

/// JSON text, which is YAML too: on one line, or with one entry per line below `lines`.
pub(super) fn render(node: &Node, lines: Option<&EntryLines<'_>>) -> String {
    let mut text = String::new();
    match lines {
        Some(lines) => write(&mut text, node, Some((lines, 0))),
        None => write(&mut text, node, None),
    }
    text
}

fn write(text: &mut String, node: &Node, lines: Option<(&EntryLines<'_>, usize)>) {
    let deeper = lines.map(|(lines, level)| (lines, level + 1));
    match &node.value {
        Value::Sequence(items) if !items.is_empty() => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(text, index, deeper);
                write(text, item, deeper);
            }
            new_line(text, lines);
            text.push(']');
        }
        Value::Mapping(mapping) if !mapping.is_empty() => {
            text.push('{');
            for (index, entry) in mapping.effective().into_iter().enumerate() {
                separate(text, index, deeper);
                text.push_str(&yaml_quoted(&entry.key));
                text.push_str(": ");
                write(text, &entry.value, deeper);
            }
            new_line(text, lines);
            text.push('}');
        }
        _ => text.push_str(&node.to_json()),
    }
}

fn separate(text: &mut String, index: usize, lines: Option<(&EntryLines<'_>, usize)>) {
    match (index, lines) {
        (0, _) => {}
        (_, Some(_)) => text.push(','),
        (_, None) => text.push_str(", "),
    }
    new_line(text, lines);
}

fn new_line(text: &mut String, lines: Option<(&EntryLines<'_>, usize)>) {
    if let Some((lines, level)) = lines {
        text.push('\n');
        text.push_str(lines.indentation);
        text.push_str(&lines.unit.repeat(level));
    }
}
