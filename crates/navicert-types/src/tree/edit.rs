//! Changes one value of a YAML or JSON text and keeps every other byte: comments, order, quoting, line ends.
//!
//! ```text
//! text ──parse──▶ tree ──spans──▶ one splice ──parse──▶ tree, compared with the one that the change must give
//! ```
//!
//! The comparison is what makes a change safe: an anchor whose aliases would change with it, or a style that is read
//! differently from what was expected, is an error and not a damaged file.

mod block;
mod flow;
mod position;
#[cfg(test)]
mod tests;

use std::ops::Range;

use thiserror::Error;

use super::{Mapping, MappingEntry, Node, Syntax, Value, parse};
use crate::diagnostic::Diagnostic;
use crate::field_path::FieldPath;
use position::{Layout, slice};

/// A step from a value to one inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditStep<'a> {
    /// The value of this key.
    Key(&'a str),
    /// The element with this index.
    Index(usize),
}

/// Why a text cannot be changed. The text is as it was.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum EditError {
    /// The value to change has another type.
    #[error("`{path}` is {found}, expected {expected}")]
    Type {
        /// The value.
        path: FieldPath,
        /// Its type.
        found: &'static str,
        /// The type that the change needs.
        expected: &'static str,
    },
    /// The value is not there.
    #[error("missing `{path}`")]
    Missing {
        /// The value.
        path: FieldPath,
    },
    /// The change would also change something else.
    #[error(
        "failed to change `{path}` (line {line}) without changing something else; aliases and unusual YAML cannot be edited, change the file by hand"
    )]
    Entangled {
        /// The value.
        path: FieldPath,
        /// Its line.
        line: usize,
    },
}

/// A document that is edited. Its `Debug` shows no value.
#[derive(Clone, Debug)]
pub struct DocumentEditor {
    text: EditedText,
    syntax: Syntax,
    root: Node,
}

/// A text that may contain secrets.
#[derive(Clone)]
struct EditedText(zeroize::Zeroizing<String>);

impl std::fmt::Debug for EditedText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EditedText({} bytes)", self.0.len())
    }
}

/// The one place of a text that a change replaces.
#[derive(Debug, PartialEq, Eq)]
struct Splice {
    range: Range<usize>,
    text: String,
}

impl DocumentEditor {
    /// Parses the text; of several YAML documents the first is edited.
    ///
    /// # Errors
    /// The text is not valid.
    pub fn new(text: &str, syntax: Syntax) -> Result<Self, Diagnostic> {
        let root = parse(text.as_bytes(), syntax)?;
        Ok(DocumentEditor { text: EditedText(text.to_owned().into()), syntax, root })
    }

    /// The document.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The text as it is now, secrets included.
    pub fn expose_text(&self) -> &str {
        &self.text.0
    }

    /// Sets a key of the mapping at `path`: replaces its value, or adds it at the end. A mapping that is null or empty is created,
    /// together with the key that it is the value of.
    ///
    /// ```
    /// use navicert_types::tree::edit::{DocumentEditor, EditStep};
    /// use navicert_types::tree::{Node, Syntax};
    ///
    /// let text = "contexts:\n- name: dev # mine\n  context: {cluster: c, user: ann}\n";
    /// let mut editor = DocumentEditor::new(text, Syntax::Yaml).unwrap();
    /// let path = [EditStep::Key("contexts"), EditStep::Index(0), EditStep::Key("context")];
    /// editor.set(&path, "user", &Node::new("bob")).unwrap();
    /// assert_eq!(editor.expose_text(), text.replace("ann", "\"bob\""));
    /// ```
    ///
    /// # Errors
    /// [`EditError`]: the text is unchanged.
    pub fn set(&mut self, path: &[EditStep<'_>], key: &str, value: &Node) -> Result<(), EditError> {
        let shown = field_path(path);
        let container = find(&self.root, path);
        let is_empty = container.is_none_or(|node| node.is_null() || is_empty_mapping(node));
        if is_empty && let Some((EditStep::Key(parent), rest)) = path.split_last() {
            let mut mapping = Mapping::default();
            mapping.push(key, value.value.clone());
            return self.set(rest, parent, &Node::new(mapping));
        }
        let Some(container) = container else { return Err(EditError::Missing { path: shown }) };
        if !container.is_null() && container.as_mapping().is_none() {
            return Err(wrong_type(shown, container, "a mapping"));
        }
        let (splice, line) = (self.set_splice(container, key, value), container.span.line);
        let expected = changed(&self.root, path, &|node| with_key(node, key, value));
        self.apply(splice, &expected, || (shown.field(key), line))
    }

    /// Appends an item to the list `key` of the mapping at `path`. A list that is missing, null or empty is created.
    ///
    /// # Errors
    /// [`EditError`]: the text is unchanged.
    pub fn append(&mut self, path: &[EditStep<'_>], key: &str, item: &Node) -> Result<(), EditError> {
        let list_path: Vec<EditStep<'_>> = path.iter().copied().chain([EditStep::Key(key)]).collect();
        let list = find(&self.root, &list_path).filter(|node| !node.is_null());
        let Some(list) = list.filter(|node| node.as_sequence().is_none_or(|items| !items.is_empty())) else {
            return self.set(path, key, &Node::new(vec![item.clone()]));
        };
        let Some(items) = list.as_sequence() else {
            return Err(wrong_type(field_path(&list_path), list, "a list"));
        };
        let layout = Layout::new(&self.text.0);
        let splice = match layout.is_flow(list) {
            true => items.last().and_then(|last| flow::append_item(&layout, list, last, item)),
            false => items.last().and_then(|last| block::append_item(&layout, list, last, item)),
        };
        let line = list.span.line;
        let expected = changed(&self.root, &list_path, &|node| with_item(node, item));
        self.apply(splice, &expected, || (field_path(&list_path), line))
    }

    fn set_splice(&self, container: &Node, key: &str, value: &Node) -> Option<Splice> {
        let layout = Layout::new(&self.text.0);
        let Some(mapping) = container.as_mapping().filter(|mapping| !mapping.is_empty()) else {
            return Some(self.first_key(&layout, container, key, value));
        };
        let own: Vec<&MappingEntry> =
            mapping.entries().iter().filter(|entry| layout.is_written_in(container, entry)).collect();
        let known = own.iter().rev().find(|entry| entry.key == key);
        match (layout.is_flow(container), known) {
            (true, Some(entry)) => flow::replace_value(&layout, container, entry, value),
            (true, None) => flow::insert_key(&layout, container, own.last()?, key, value),
            (false, Some(entry)) => block::replace_value(&layout, container, entry, value),
            (false, None) => block::insert_key(&layout, container, own.last()?, key, value),
        }
    }

    /// The first key of a document without any.
    fn first_key(&self, layout: &Layout<'_>, root: &Node, key: &str, value: &Node) -> Splice {
        let mut mapping = Mapping::default();
        mapping.push(key, value.value.clone());
        if root.as_mapping().is_some() || self.syntax == Syntax::Json {
            let range = root.span.start..root.span.end;
            return Splice { range, text: flow::render(&Node::new(mapping), None) };
        }
        let end = self.text.0.len();
        let separator = if self.text.0.is_empty() || self.text.0.ends_with('\n') { "" } else { "\n" };
        let text = layout.with_line_ends(&format!("{separator}{}", Node::new(mapping).to_yaml()));
        Splice { range: end..end, text }
    }

    /// Replaces one place if exactly the expected document results.
    fn apply(
        &mut self,
        splice: Option<Splice>,
        expected: &Node,
        place: impl FnOnce() -> (FieldPath, usize),
    ) -> Result<(), EditError> {
        let result = splice.and_then(|Splice { range, text }| {
            let before = slice(&self.text.0, 0..range.start);
            let after = self.text.0.get(range.end..)?;
            let edited = zeroize::Zeroizing::new([before, &text, after].concat());
            let root = parse(edited.as_bytes(), self.syntax).ok()?;
            (root == *expected).then_some((edited, root))
        });
        let Some((text, root)) = result else {
            let (path, line) = place();
            return Err(EditError::Entangled { path, line });
        };
        (self.text, self.root) = (EditedText(text), root);
        Ok(())
    }
}

/// The value at a path.
pub fn find<'n>(root: &'n Node, path: &[EditStep<'_>]) -> Option<&'n Node> {
    path.iter().try_fold(root, |node, step| match step {
        EditStep::Key(key) => node.as_mapping()?.last(key).map(|entry| &entry.value),
        EditStep::Index(index) => node.as_sequence()?.get(*index),
    })
}

fn is_empty_mapping(node: &Node) -> bool {
    node.as_mapping().is_some_and(Mapping::is_empty)
}

fn field_path(path: &[EditStep<'_>]) -> FieldPath {
    path.iter().fold(FieldPath::root(), |shown, step| match step {
        EditStep::Key(key) => shown.field(key),
        EditStep::Index(index) => shown.index(*index),
    })
}

fn wrong_type(path: FieldPath, node: &Node, expected: &'static str) -> EditError {
    EditError::Type { path, found: node.kind(), expected }
}

/// A copy of the document in which the value at `path` is changed.
fn changed(node: &Node, path: &[EditStep<'_>], change: &dyn Fn(&Node) -> Value) -> Node {
    let Some((step, rest)) = path.split_first() else { return Node::new(change(node)) };
    match (step, &node.value) {
        (EditStep::Key(key), Value::Mapping(mapping)) => {
            let mut copy = Mapping::default();
            for entry in mapping.effective() {
                let value =
                    if entry.key == *key { changed(&entry.value, rest, change) } else { entry.value.clone() };
                copy.push(&entry.key, value.value);
            }
            Node::new(copy)
        }
        (EditStep::Index(index), Value::Sequence(items)) => {
            let items = items.iter().enumerate().map(|(number, item)| {
                if number == *index { changed(item, rest, change) } else { item.clone() }
            });
            Node::new(items.collect::<Vec<_>>())
        }
        _ => node.clone(),
    }
}

fn with_key(node: &Node, key: &str, value: &Node) -> Value {
    let mut copy = Mapping::default();
    let entries = node.as_mapping().map(Mapping::effective).unwrap_or_default();
    for entry in entries.into_iter().filter(|entry| entry.key != key) {
        copy.push(&entry.key, entry.value.value.clone());
    }
    copy.push(key, value.value.clone());
    copy.into()
}

fn with_item(node: &Node, item: &Node) -> Value {
    let items = node.as_sequence().unwrap_or_default().iter().chain([item]);
    items.cloned().collect::<Vec<_>>().into()
}
