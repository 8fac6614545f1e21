//! From the tree to types: a schema is written once, as the function that reads it, and every unknown, repeated and
//! mistyped field is found in one pass.
//!
//! ```
//! use navicert_types::decode::{Decode, Decoder, Mode, decode};
//! use navicert_types::tree::{Node, Syntax, parse};
//!
//! #[derive(Debug, Default)]
//! struct Issuer {
//!     url: String,
//!     audiences: Vec<String>,
//!     discovery_url: Option<String>,
//! }
//!
//! impl Decode for Issuer {
//!     fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
//!         decoder.object(node, |fields| Issuer {
//!             url: fields.default("url"),
//!             audiences: fields.default("audiences"),
//!             discovery_url: fields.optional("discoveryURL"),
//!         })
//!     }
//! }
//!
//! let node = parse(b"url: 5\naudiences: [a]\naudience: b\n", Syntax::JsonOrYaml).unwrap();
//! let errors = decode::<Issuer>(&node, Mode::Strict).unwrap_err();
//! assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [
//!     "url: expected a string, found a number (line 1, column 6); put the value in quotes",
//!     "audience: unknown field (line 3, column 1); did you mean `audiences`?",
//! ]);
//! ```

mod suggest;

#[cfg(test)]
mod tests;
mod values;

pub use suggest::closest;

use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics};
use crate::field_path::FieldPath;
use crate::tree::{Entry, Mapping, Node, Span, Value};

pub use values::Base64;

/// A file with more errors than this is not what its reader takes it for; the first ones say so.
const MOST_DIAGNOSTICS: usize = 1_000;

/// What becomes of fields that the schema does not know, and of repeated ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Both are errors. Configuration files of servers and kubelets, our own files.
    Strict,
    /// Unknown ones are passed over (or kept, see [`Fields::rest`]); of repeated ones the last counts. Kubeconfig
    /// files, what plugins print.
    Lenient,
}

/// A type that can be read from a tree.
///
/// As in Go, every such type has a zero value, which is what `null` and an absent field give. An implementation
/// reports through the decoder whatever is wrong and goes on, so that one pass finds everything; it returns `None`
/// when there is nothing to go on with, after having reported why.
pub trait Decode: Default {
    /// Reads the value. Null never gets here except as a whole document.
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self>;
}

/// Reads a whole tree.
///
/// # Errors
/// Everything that is wrong, in the order of the text.
pub fn decode<T: Decode>(node: &Node, mode: Mode) -> Result<T, Diagnostics> {
    let mut decoder = Decoder::new(mode);
    let value = decoder.value(node);
    decoder.finish(value)
}

/// Where a decode stands, and what it has found wrong so far.
#[derive(Debug)]
pub struct Decoder {
    mode: Mode,
    path: FieldPath,
    diagnostics: Diagnostics,
    secrets: usize,
    has_type_meta: bool,
}

impl Decoder {
    /// A decoder at the root of a document.
    pub fn new(mode: Mode) -> Self {
        let path = FieldPath::root();
        Decoder { mode, path, diagnostics: Diagnostics::default(), secrets: 0, has_type_meta: false }
    }

    /// A decoder for a document whose `apiVersion` and `kind` have been looked at already.
    pub(crate) fn after_type_meta(mode: Mode) -> Self {
        Decoder { has_type_meta: true, ..Decoder::new(mode) }
    }

    /// The result of a decode: the value if nothing is wrong.
    ///
    /// # Errors
    /// Everything that was reported, in the order of the text.
    pub fn finish<T>(self, value: T) -> Result<T, Diagnostics> {
        self.diagnostics.into_result(value)
    }

    /// The field that is being read.
    pub fn path(&self) -> &FieldPath {
        &self.path
    }

    /// How unknown and repeated fields are taken.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Reads a value; null and what is wrong give the zero value.
    pub fn value<T: Decode>(&mut self, node: &Node) -> T {
        if node.is_null() { T::default() } else { T::decode(node, self).unwrap_or_default() }
    }

    /// Reads an object field by field. Whatever `read` does not ask for is unknown. Null is an object without
    /// fields.
    pub fn object<T>(&mut self, node: &Node, read: impl FnOnce(&mut Fields<'_>) -> T) -> Option<T> {
        let nothing = Mapping::default();
        let mapping = match &node.value {
            Value::Mapping(mapping) => mapping,
            Value::Null => &nothing,
            _ => {
                self.wrong_type(node, "a mapping");
                return None;
            }
        };
        self.report_repeated(mapping, FieldPath::field);
        let known =
            if self.has_type_meta && self.path.is_root() { vec!["apiVersion", "kind"] } else { Vec::new() };
        let mut fields = Fields { decoder: self, mapping, span: node.span, known };
        let value = read(&mut fields);
        fields.finish();
        Some(value)
    }

    /// Reads an element of a list.
    pub fn index<T: Decode>(&mut self, index: usize, node: &Node) -> T {
        self.path.enter_index(index);
        let value = self.value(node);
        self.path.leave();
        value
    }

    /// Reads an entry of a map.
    pub fn key<T: Decode>(&mut self, key: &str, node: &Node) -> T {
        self.path.enter_key(key);
        let value = self.value(node);
        self.path.leave();
        value
    }

    /// Reads the field of an object that somebody else has read: a part of a document, as if it were read within it.
    pub fn field<T: Decode>(&mut self, name: &str, node: &Node) -> T {
        self.path.enter_field(name);
        let value = self.value(node);
        self.path.leave();
        value
    }

    /// Reads one of a fixed set of words.
    pub fn one_of<T: Clone>(&mut self, node: &Node, words: &[(&str, T)]) -> Option<T> {
        let text = String::decode(node, self)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| value.clone());
        if found.is_none() {
            let known: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            self.invalid_value(node, format!("expected one of {}", known.join(", ")));
        }
        found
    }

    /// Reads something that is a secret: what is reported meanwhile is marked, so that nobody shows the text.
    pub fn secretly<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.secrets += 1;
        let value = read(self);
        self.secrets -= 1;
        value
    }

    /// Reports a value of another type than expected (`a string`, `a list`).
    pub fn wrong_type(&mut self, node: &Node, expected: &str) {
        let message = format!("expected {expected}, found {}", node.kind());
        let quotes = expected == "a string" && matches!(node.value, Value::Bool(_) | Value::Number(_));
        let hint = quotes.then(|| "put the value in quotes".to_owned());
        self.report(node.span, DiagnosticKind::WrongType, message, hint);
    }

    /// Reports a value that is not acceptable. The message must not repeat it.
    pub fn invalid_value(&mut self, node: &Node, message: impl Into<String>) {
        self.report(node.span, DiagnosticKind::InvalidValue, message.into(), None);
    }

    /// Reports anything else at the current path.
    pub fn report(&mut self, span: Span, kind: DiagnosticKind, message: String, hint: Option<String>) {
        if self.diagnostics.len() >= MOST_DIAGNOSTICS {
            return;
        }
        let (path, is_secret) = (self.path.clone(), self.secrets > 0);
        self.diagnostics.push(Diagnostic { path, span, kind, message, hint, is_secret });
    }

    /// Reports anything at another path.
    pub fn report_at(
        &mut self,
        path: FieldPath,
        span: Span,
        kind: DiagnosticKind,
        message: String,
        hint: Option<String>,
    ) {
        let here = std::mem::replace(&mut self.path, path);
        self.report(span, kind, message, hint);
        self.path = here;
    }

    /// Strict mode: every repetition of a key in this mapping.
    pub(crate) fn report_repeated(&mut self, mapping: &Mapping, step: fn(&FieldPath, &str) -> FieldPath) {
        let mut repeated = mapping.entries().iter().filter(|entry| entry.repeated).peekable();
        if self.mode == Mode::Lenient || repeated.peek().is_none() {
            return;
        }
        let first_ones = mapping.entries().iter().filter(|entry| !entry.repeated);
        let lines: HashMap<&str, usize> =
            first_ones.map(|entry| (entry.key.as_str(), entry.key_span.line)).collect();
        for entry in repeated {
            let line = lines.get(entry.key.as_str()).copied().unwrap_or(entry.key_span.line);
            let message = format!("given more than once, first on line {line}");
            self.report_at(
                step(&self.path, &entry.key),
                entry.key_span,
                DiagnosticKind::Duplicate,
                message,
                None,
            );
        }
    }
}

/// The fields of one object while it is read.
#[derive(Debug)]
pub struct Fields<'a> {
    decoder: &'a mut Decoder,
    mapping: &'a Mapping,
    span: Span,
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// A field that may be absent; null counts as absent.
    pub fn optional<T: Decode>(&mut self, name: &'static str) -> Option<T> {
        let node = self.node(name).filter(|node| !node.is_null())?;
        self.decoder.path.enter_field(name);
        let value = T::decode(node, self.decoder);
        self.decoder.path.leave();
        value
    }

    /// A field whose absence means its zero value.
    pub fn default<T: Decode>(&mut self, name: &'static str) -> T {
        self.optional(name).unwrap_or_default()
    }

    /// A field that has to be there; its absence is reported.
    pub fn required<T: Decode>(&mut self, name: &'static str) -> T {
        if self.node(name).is_none_or(Node::is_null) {
            let path = self.decoder.path.field(name);
            self.decoder.report_at(
                path,
                self.span,
                DiagnosticKind::Required,
                "required field is missing".into(),
                None,
            );
        }
        self.default(name)
    }

    /// The tree of a field, for those who read it themselves; it counts as known.
    pub fn node(&mut self, name: &'static str) -> Option<&'a Node> {
        self.known.push(name);
        self.mapping.last(name).map(|entry| &entry.value)
    }

    /// Every field that was not asked for, to be kept. Ask for the known ones first.
    pub fn rest(&mut self) -> Mapping {
        let rest = self.unknown().cloned().collect::<Vec<_>>();
        self.mapping = const { &Mapping::EMPTY };
        rest.into()
    }

    /// The same where unknown fields are tolerated; where they are errors they stay to be reported.
    pub fn rest_if_lenient(&mut self) -> Mapping {
        if self.decoder.mode == Mode::Lenient { self.rest() } else { Mapping::default() }
    }

    /// Reads fields that may hold secrets without being [`crate::Secret`]s, see [`Decoder::secretly`].
    pub fn secretly<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.decoder.secrets += 1;
        let value = read(self);
        self.decoder.secrets -= 1;
        value
    }

    /// The decoder, for checks that concern several fields.
    pub fn decoder(&mut self) -> &mut Decoder {
        self.decoder
    }

    fn unknown(&self) -> impl Iterator<Item = &'a Entry> {
        self.mapping.entries().iter().filter(|entry| !self.known.contains(&entry.key.as_str()))
    }

    fn finish(self) {
        if self.decoder.mode == Mode::Lenient {
            return;
        }
        let unknown: Vec<&Entry> = self.unknown().filter(|entry| !entry.repeated).collect();
        for entry in unknown {
            let hint = closest(&entry.key, &self.known).map(|name| format!("did you mean `{name}`?"));
            let path = self.decoder.path.field(&entry.key);
            let kind = DiagnosticKind::UnknownField;
            self.decoder.report_at(path, entry.key_span, kind, "unknown field".into(), hint);
        }
    }
}
