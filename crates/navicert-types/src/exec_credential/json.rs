//! JSON byte for byte as Go's encoder writes it: plugins hash, log and compare their input.

pub(super) use navicert_go::json::write_string as string;

use super::{ExecVersion, KIND};
use crate::tree::{MappingEntry, Node, Value};

/// The common beginning of every version: `kind`, then `apiVersion`.
// C210
pub(super) fn start(version: ExecVersion) -> String {
    let mut text = String::from("{");
    string(&mut text, "kind");
    text.push(':');
    string(&mut text, KIND);
    text.push_str(",\"apiVersion\":");
    string(&mut text, version.api_version());
    text
}

/// Writes an object member, preceded by a comma unless it is the first.
pub(super) fn member(text: &mut String, name: &str, value: &str) {
    key(text, name);
    string(text, value);
}

/// Writes a member's name and colon, preceded by a comma unless it is the first.
pub(super) fn key(text: &mut String, name: &str) {
    if !text.ends_with('{') {
        text.push(',');
    }
    string(text, name);
    text.push(':');
}

/// Writes a tree with sorted object keys, like a Go map.
// C230
pub(super) fn tree(text: &mut String, node: &Node) {
    match &node.value {
        Value::String(value) => string(text, value),
        Value::Sequence(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                tree(text, item);
            }
            text.push(']');
        }
        Value::Mapping(mapping) => {
            let mut entries: Vec<&MappingEntry> = mapping.effective();
            entries.sort_by(|one, other| one.key.cmp(&other.key));
            text.push('{');
            for entry in entries {
                key(text, &entry.key);
                tree(text, &entry.value);
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&node.to_json()),
    }
}
