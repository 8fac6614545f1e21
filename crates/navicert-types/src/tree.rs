//! One tree for YAML and JSON in which every value and key has its position in the text.
//!
//! Values are what Kubernetes sees: its loaders convert YAML to JSON first (sigs.k8s.io/yaml on go-yaml v2), so plain
//! scalars follow YAML 1.1 (`yes` is true, `017` is 15), keys become strings, `1.0` becomes `1`, and values JSON cannot
//! represent (`.nan`) are errors. [`parse`] builds the tree; [`crate::decode`] decodes it into types.

mod builder;
pub mod edit;
mod json;
mod scalar;
mod source;
#[cfg(test)]
mod tests;
mod write;
mod yaml;

use std::fmt;

use zeroize::Zeroizing;

use crate::diagnostic::Diagnostic;

pub use source::{encode_like, source_text};
pub use write::{yaml_quoted, yaml_text};

/// The language of a text, as its Kubernetes loader decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// Always YAML; JSON is parsed as YAML. Used for kubeconfig files.
    Yaml,
    /// JSON and nothing else if the first character that is not white space is `{`, YAML if not. Most
    /// configuration files, output of exec plugins.
    // C241
    JsonOrYaml,
    /// JSON only. Responses of image credential providers.
    Json,
}

/// Limits on the input. The defaults are far above any real file and keep memory use bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseLimits {
    /// Length of the text in bytes.
    pub bytes: usize,
    /// Nesting depth of lists and mappings after expanding aliases.
    pub depth: usize,
    /// Number of values after expanding aliases.
    pub nodes: usize,
    /// Bytes of text that aliases may repeat.
    pub alias_bytes: usize,
}

impl Default for ParseLimits {
    fn default() -> Self {
        ParseLimits { bytes: 16 << 20, depth: 512, nodes: 1_000_000, alias_bytes: 16 << 20 }
    }
}

/// Parses a text; of several YAML documents, the first.
///
/// An empty text, or one with only comments, is `null`. In JSON it is an error.
///
/// ```
/// use navicert_types::tree::{Syntax, Value, parse};
///
/// let node = parse(b"verbose: yes\n", Syntax::Yaml).unwrap();
/// let verbose = node.as_mapping().unwrap().last("verbose").unwrap();
/// assert_eq!(verbose.value.value, Value::Bool(true));
/// assert_eq!((verbose.value.span.line, verbose.value.span.column), (1, 10));
/// ```
///
/// # Errors
/// One diagnostic: a syntax error, or input beyond the default [`ParseLimits`].
pub fn parse(bytes: &[u8], syntax: Syntax) -> Result<Node, Diagnostic> {
    parse_with(bytes, syntax, ParseLimits::default())
}

/// [`parse`] with other limits.
///
/// # Errors
/// As [`parse`].
pub fn parse_with(bytes: &[u8], syntax: Syntax, limits: ParseLimits) -> Result<Node, Diagnostic> {
    if bytes.len() > limits.bytes {
        return Err(builder::limit_exceeded(
            Span::START,
            format!("text is longer than {} bytes", limits.bytes),
        ));
    }
    match syntax {
        Syntax::Yaml => yaml::parse(bytes, limits),
        Syntax::Json => json::parse(bytes, limits),
        Syntax::JsonOrYaml if source::looks_like_json(bytes) => json::parse(bytes, limits),
        Syntax::JsonOrYaml => yaml::parse(bytes, limits),
    }
}

/// The position of a second, non-empty document. The decoders of this crate use the first document and ignore others.
///
/// ```
/// use navicert_types::tree::second_document;
///
/// assert!(second_document(b"a: 1\n---\n").is_none());
/// assert_eq!(second_document(b"a: 1\n---\nb: 2\n").unwrap().line, 3);
/// ```
pub fn second_document(bytes: &[u8]) -> Option<Span> {
    if source::looks_like_json(bytes) { None } else { yaml::second_document(bytes) }
}

/// A range of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
    /// Line of the first byte, from 1.
    pub line: usize,
    /// Column of the first byte in characters, from 1.
    pub column: usize,
}

impl Span {
    /// The beginning of a text.
    pub const START: Span = Span { start: 0, end: 0, line: 1, column: 1 };
}

/// A value and its position. Values from aliases and merge keys keep the position where they were written.
#[derive(Clone)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its position. A block list or mapping spans from its first entry to its last.
    pub span: Span,
}

/// The value of a node.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// `null`, `~`, or an empty value.
    Null,
    /// `true` and its many YAML 1.1 spellings.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string, cleared from memory when dropped: it may be a token or a key.
    String(Zeroizing<String>),
    /// A list.
    Sequence(Vec<Node>),
    /// A mapping.
    Mapping(Mapping),
}

/// A JSON number.
#[derive(Clone, PartialEq)]
pub enum Number {
    /// An integer that fits into `i64`.
    Integer(i64),
    /// A larger integer that fits into `u64`.
    Unsigned(u64),
    /// Any other number.
    Float(f64),
    /// A JSON number outside the range of a double, as written: valid syntax, unusable as a value.
    OutOfRange(Box<str>),
}

/// The entries of a mapping in the order of the text, repeated keys included.
#[derive(Clone, Default)]
pub struct Mapping(Vec<MappingEntry>);

/// One key with its value.
#[derive(Clone)]
pub struct MappingEntry {
    /// The key. YAML keys that are not strings are spelled as sigs.k8s.io/yaml spells them (`1`, `true`, `1.5`).
    pub key: String,
    /// Position of the key.
    pub key_span: Span,
    /// The value.
    pub value: Node,
    /// Whether the key occurred before; entries of a merge key count at its position.
    pub repeated: bool,
}

impl Node {
    /// A node without a position, for trees that are not parsed.
    pub fn new(value: impl Into<Value>) -> Self {
        Node { value: value.into(), span: Span::START }
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements, if it is a list.
    pub fn as_sequence(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The entries, if it is a mapping.
    pub fn as_mapping(&self) -> Option<&Mapping> {
        match &self.value {
            Value::Mapping(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// The type with its article, for messages: `a string`, `null`.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }
}

impl Mapping {
    /// A mapping without entries.
    pub const EMPTY: Mapping = Mapping(Vec::new());

    /// All entries, repeated keys included.
    pub fn entries(&self) -> &[MappingEntry] {
        &self.0
    }

    /// The entry with this key; the last one if repeated, as in Kubernetes' YAML and JSON loaders.
    pub fn last(&self, key: &str) -> Option<&MappingEntry> {
        self.0.iter().rev().find(|entry| entry.key == key)
    }

    /// Whether the mapping has no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends an entry without a position, for trees that are not parsed.
    pub fn push(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        let key = key.into();
        let repeated = self.last(&key).is_some();
        self.0.push(MappingEntry { key, key_span: Span::START, value: Node::new(value), repeated });
    }

    /// The effective entries: the last of repeated keys, at the position of the first.
    pub fn effective(&self) -> Vec<&MappingEntry> {
        let mut positions = std::collections::HashMap::new();
        let mut kept: Vec<&MappingEntry> = Vec::with_capacity(self.0.len());
        for entry in &self.0 {
            match positions.get(entry.key.as_str()).and_then(|&position: &usize| kept.get_mut(position)) {
                Some(earlier) => *earlier = entry,
                None => {
                    positions.insert(entry.key.as_str(), kept.len());
                    kept.push(entry);
                }
            }
        }
        kept
    }
}

/// Nodes are equal if their values are; positions are ignored.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// Mappings are equal if their effective entries are equal, in any order.
impl PartialEq for Mapping {
    fn eq(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.effective(), other.effective());
        let theirs: std::collections::HashMap<&str, &Node> =
            theirs.into_iter().map(|entry| (entry.key.as_str(), &entry.value)).collect();
        ours.len() == theirs.len()
            && ours
                .iter()
                .all(|entry| theirs.get(entry.key.as_str()).is_some_and(|node| **node == entry.value))
    }
}

impl From<Vec<MappingEntry>> for Mapping {
    fn from(entries: Vec<MappingEntry>) -> Self {
        Mapping(entries)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Number(Number::Integer(value))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(Zeroizing::new(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(Zeroizing::new(text))
    }
}

impl From<Mapping> for Value {
    fn from(mapping: Mapping) -> Self {
        Value::Mapping(mapping)
    }
}

impl From<Vec<Node>> for Value {
    fn from(items: Vec<Node>) -> Self {
        Value::Sequence(items)
    }
}

/// Shape and keys only: any scalar may be a secret.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("Null"),
            Value::Bool(_) => f.write_str("Bool(…)"),
            Value::Number(_) => f.write_str("Number(…)"),
            Value::String(_) => f.write_str("String(…)"),
            Value::Sequence(items) => f.debug_list().entries(items).finish(),
            Value::Mapping(mapping) => mapping.fmt(f),
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|entry| (&entry.key, &entry.value))).finish()
    }
}

impl fmt::Debug for MappingEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {:?}", self.key, self.value)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Number(…)")
    }
}
