//! Field paths as Kubernetes writes them: `jwt[0].claimMappings.extra[1].key`, map keys as `annotations[a/b]`.

use std::borrow::Cow;
use std::fmt;

use crate::redact;
use crate::tree::{Node, Value};

/// A path from the root of a document to one field.
///
/// ```
/// use navicert_types::FieldPath;
///
/// let path = FieldPath::root().field("jwt").index(0).field("issuer").field("url");
/// assert_eq!(path.to_string(), "jwt[0].issuer.url");
/// assert_eq!(FieldPath::root().field("extra").key("example.com/a").to_string(), "extra[example.com/a]");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldPath(Vec<Segment>);

/// A path is serialized as its text; the document itself is an empty string.
impl serde::Serialize for FieldPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for FieldPath {
    fn schema_name() -> Cow<'static, str> {
        "FieldPath".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Segment {
    Field(Cow<'static, str>),
    Index(usize),
    Key(String),
}

impl FieldPath {
    /// The document itself.
    pub fn root() -> Self {
        FieldPath::default()
    }

    /// Whether this is the document itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// A named field of the value here.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        self.with(Segment::Field(name.to_owned().into()))
    }

    /// An element of the list here, counted from 0.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    /// An entry of the map here.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.with(Segment::Key(key.to_owned()))
    }

    /// Whether this path is `ancestor` or leads to a value inside it.
    ///
    /// ```
    /// use navicert_types::FieldPath;
    ///
    /// let users = FieldPath::root().field("users");
    /// assert!(users.index(0).field("name").starts_with(&users.index(0)));
    /// assert!(!users.index(1).starts_with(&users.index(0)));
    /// ```
    pub fn starts_with(&self, ancestor: &FieldPath) -> bool {
        self.0.starts_with(&ancestor.0)
    }

    /// The value that holds this one; the root for the root.
    #[must_use]
    pub fn parent(&self) -> Self {
        let mut parent = self.clone();
        parent.leave();
        parent
    }

    /// The node at this path in a document, or its nearest existing ancestor.
    ///
    /// ```
    /// use navicert_types::FieldPath;
    /// use navicert_types::tree::{Syntax, parse};
    ///
    /// let document = parse(b"jwt:\n- issuer: {url: x}\n", Syntax::Yaml).unwrap();
    /// let issuer = FieldPath::root().field("jwt").index(0).field("issuer");
    /// assert_eq!(issuer.field("url").nearest(&document).as_str(), Some("x"));
    /// assert_eq!(issuer.field("audiences").nearest(&document), issuer.nearest(&document));
    /// ```
    pub fn nearest<'n>(&self, document: &'n Node) -> &'n Node {
        let mut here = document;
        for segment in &self.0 {
            let next = match (segment, &here.value) {
                (Segment::Field(name), Value::Mapping(mapping)) => {
                    mapping.last(name).map(|entry| &entry.value)
                }
                (Segment::Key(name), Value::Mapping(mapping)) => mapping.last(name).map(|entry| &entry.value),
                (Segment::Index(index), Value::Sequence(items)) => items.get(*index),
                _ => None,
            };
            match next {
                Some(next) => here = next,
                None => break,
            }
        }
        here
    }

    pub(crate) fn enter_field(&mut self, name: impl Into<Cow<'static, str>>) {
        self.0.push(Segment::Field(name.into()));
    }

    pub(crate) fn enter_index(&mut self, index: usize) {
        self.0.push(Segment::Index(index));
    }

    pub(crate) fn enter_key(&mut self, key: &str) {
        self.0.push(Segment::Key(key.to_owned()));
    }

    pub(crate) fn leave(&mut self) {
        self.0.pop();
    }

    fn with(&self, segment: Segment) -> Self {
        let mut longer = self.clone();
        longer.0.push(segment);
        longer
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Field(name) if position == 0 => write!(f, "{}", Name(name))?,
                Segment::Field(name) => write!(f, ".{}", Name(name))?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) => write!(f, "[{}]", Name(key))?,
            }
        }
        Ok(())
    }
}

/// An untrusted name from a file: truncated and escaped for a terminal.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(MAX_NAME_CHARS) {
            None => f.write_str(&redact::line(self.0)),
            Some((end, _)) => write!(f, "{}…", redact::line(self.0.get(..end).unwrap_or_default())),
        }
    }
}

const MAX_NAME_CHARS: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_as_kubernetes_writes_them() {
        let root = FieldPath::root();
        let cases = [
            (root.clone(), ""),
            (root.field("jwt"), "jwt"),
            (root.field("jwt").index(0).field("issuer").field("url"), "jwt[0].issuer.url"),
            (
                root.field("jwt").index(0).field("claimMappings").field("extra").index(1).field("key"),
                "jwt[0].claimMappings.extra[1].key",
            ),
            (root.field("foo").key("bar"), "foo[bar]"),
            (root.index(2), "[2]"),
        ];
        for (path, text) in cases {
            assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn odd_names_are_safe_to_show() {
        let path = FieldPath::root().field("a\u{1B}[31m").key(&"ü".repeat(500));
        assert_eq!(path.to_string(), format!("aU+001B[31m[{}…]", "ü".repeat(128)));
    }

    #[test]
    fn the_parent_of_the_root_is_the_root() {
        assert_eq!(FieldPath::root().parent(), FieldPath::root());
        assert_eq!(FieldPath::root().field("a").index(1).parent(), FieldPath::root().field("a"));
    }
}
