//! Changes of lists and mappings in block style: by whole lines, with the indentation that the collection has.

use super::Splice;
use super::position::{Layout, indented};
use crate::tree::{Mapping, MappingEntry, Node, Value, yaml_text};

/// Adds an item after the last one.
pub(super) fn append_item(layout: &Layout<'_>, list: &Node, last: &Node, item: &Node) -> Option<Splice> {
    let indent = layout.dash_column(last).unwrap_or(list.span.column.saturating_sub(1));
    let end = layout.end_of(last, list.span.start)?;
    let lines = indented(&Node::new(vec![item.clone()]).to_yaml(), indent);
    Some(layout.insert_lines(layout.after_content(end, indent), &lines))
}

/// Adds a key after the last one.
pub(super) fn insert_key(
    layout: &Layout<'_>,
    container: &Node,
    last: &MappingEntry,
    key: &str,
    value: &Node,
) -> Option<Splice> {
    let indent = container.span.column.saturating_sub(1);
    let end = layout.end_of_entry(last)?;
    let mut entry = Mapping::default();
    entry.push(key, value.value.clone());
    let lines = indented(&Node::new(entry).to_yaml(), indent);
    Some(layout.insert_lines(layout.after_content(end, indent), &lines))
}

/// Replaces the value of a key. A comment on the line of the key stays there.
pub(super) fn replace_value(
    layout: &Layout<'_>,
    container: &Node,
    entry: &MappingEntry,
    value: &Node,
) -> Option<Splice> {
    let indent = container.span.column.saturating_sub(1);
    let colon = layout.after_colon(entry)?;
    let end = layout.end_of_entry(entry)?;
    let (value_start, column) = layout.start_of(&entry.value);
    let start = if end == colon { colon } else { value_start };
    let begins_on_key_line = layout.line_start(start) == layout.line_start(colon);
    let Some(lines) = block_lines(value) else {
        let text = scalar(value);
        return Some(match begins_on_key_line {
            true => Splice { range: colon..end, text: format!(" {text}") },
            false => Splice { range: start..end, text },
        });
    };
    let fits = column > indent || (column == indent && matches!(value.value, Value::Sequence(_)));
    if !begins_on_key_line && !layout.is_flow(&entry.value) && fits {
        let text = indented(&lines, column).trim().to_owned();
        return Some(Splice { range: start..end, text: layout.with_line_ends(&text) });
    }
    let comment = layout.comment_after(end)?;
    let below = if matches!(value.value, Value::Mapping(_)) { indent + 2 } else { indent };
    let lines = indented(&lines, below);
    let text = format!("{comment}\n{}", lines.trim_end_matches('\n'));
    let start = if begins_on_key_line { colon } else { start };
    Some(Splice { range: start..layout.line_end(end), text: layout.with_line_ends(&text) })
}

/// The lines of a list or mapping; `None` for a value that stands on the line of its key.
fn block_lines(value: &Node) -> Option<String> {
    let is_empty = match &value.value {
        Value::Sequence(items) => items.is_empty(),
        Value::Mapping(mapping) => mapping.is_empty(),
        _ => true,
    };
    (!is_empty).then(|| value.to_yaml())
}

fn scalar(value: &Node) -> String {
    match value.as_str() {
        Some(text) => yaml_text(text, 0),
        None => value.to_json(),
    }
}
