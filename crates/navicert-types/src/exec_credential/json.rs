//! JSON as Go's encoder writes it, to the byte: plugins hash, log and compare what they are given.

use super::{KIND, Version};
use crate::tree::{Entry, Node, Value, quoted};

/// Every version begins with these, in this order (C210).
pub(super) fn start(version: Version) -> String {
    let mut text = String::from("{");
    string(&mut text, "kind");
    text.push(':');
    string(&mut text, KIND);
    text.push_str(",\"apiVersion\":");
    string(&mut text, version.api_version());
    text
}

/// A member of an object, with a comma if it is not the first.
pub(super) fn member(text: &mut String, name: &str, value: &str) {
    key(text, name);
    string(text, value);
}

/// The name of a member and its colon, with a comma if it is not the first.
pub(super) fn key(text: &mut String, name: &str) {
    if !text.ends_with('{') {
        text.push(',');
    }
    string(text, name);
    text.push(':');
}

/// A tree; the keys of objects are sorted, as those of a Go map are (C230).
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
            let mut entries: Vec<&Entry> = mapping.effective();
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

/// A string with Go's escapes: what could end a script element is spelled out, and so are the line separators that
/// JavaScript once stumbled over.
pub(super) fn string(text: &mut String, value: &str) {
    quoted(text, value, |c| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'));
}
