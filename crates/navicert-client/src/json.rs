//! Reading the JSON of responses and tokens.

use navicert_types::tree::{Node, Value};

/// A member of an object, unless it is null.
pub(crate) fn member<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    let entry = node.as_mapping()?.last(name)?;
    (!matches!(entry.value.value, Value::Null)).then_some(&entry.value)
}
