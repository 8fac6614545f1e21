//! Decodes a tree into types. A schema is written once, as its decoding function, and one pass reports every unknown,
//! duplicate and mistyped field.
//!
//! ```
//! use navicert_types::decode::{Decode, Decoder, DecodeMode, decode};
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
//! let errors = decode::<Issuer>(&node, DecodeMode::Strict).unwrap_err();
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
use crate::tree::{Mapping, MappingEntry, Node, Span, Value};

pub use values::Base64;

/// Further errors are dropped; a file with more errors is of another kind entirely.
const MAX_DIAGNOSTICS: usize = 1_000;

/// How unknown and duplicate fields are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeMode {
    /// Both are errors. For configuration of servers and kubelets, and for navicert's own files.
    Strict,
    /// Unknown fields are ignored (or kept, see [`Fields::rest`]); the last of duplicate fields wins. For kubeconfig
    /// files and plugin output.
    Lenient,
    /// As [`DecodeMode::Lenient`], with duplicate fields as in Go's JSON decoder, which decodes each of them: all must
    /// have the right type, and null removes only an optional value that was decoded before.
    LenientJson,
}

impl DecodeMode {
    fn is_lenient(self) -> bool {
        self != DecodeMode::Strict
    }
}

/// A type that can be decoded from a tree.
///
/// As in Go, every type has a zero value, which `null` and a missing field decode to. An implementation reports errors
/// through the decoder and continues, so that one pass finds all of them; it returns `None`, after reporting why, if it
/// has no value.
pub trait Decode: Default {
    /// Decodes the value. Null reaches this function only as a whole document.
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self>;
}

/// Decodes a whole tree.
///
/// # Errors
/// Every error, in the order of the text.
pub fn decode<T: Decode>(node: &Node, mode: DecodeMode) -> Result<T, Diagnostics> {
    let mut decoder = Decoder::new(mode);
    let value = decoder.value(node);
    decoder.finish(value)
}

/// The state of a decode: the current path and the errors so far.
#[derive(Debug)]
pub struct Decoder {
    mode: DecodeMode,
    path: FieldPath,
    diagnostics: Diagnostics,
    secrets: usize,
    has_type_meta: bool,
}

impl Decoder {
    /// A decoder at the root of a document.
    pub fn new(mode: DecodeMode) -> Self {
        let path = FieldPath::root();
        Decoder { mode, path, diagnostics: Diagnostics::default(), secrets: 0, has_type_meta: false }
    }

    /// A decoder for a document whose `apiVersion` and `kind` have been read already.
    pub(crate) fn after_type_meta(mode: DecodeMode) -> Self {
        Decoder { has_type_meta: true, ..Decoder::new(mode) }
    }

    /// The result of a decode: the value if there were no errors.
    ///
    /// # Errors
    /// Every reported error, in the order of the text.
    pub fn finish<T>(self, value: T) -> Result<T, Diagnostics> {
        self.diagnostics.into_result(value)
    }

    /// The current field.
    pub fn path(&self) -> &FieldPath {
        &self.path
    }

    /// How unknown and duplicate fields are handled.
    pub fn mode(&self) -> DecodeMode {
        self.mode
    }

    /// Decodes a value; null and errors give the zero value.
    pub fn value<T: Decode>(&mut self, node: &Node) -> T {
        if node.is_null() { T::default() } else { T::decode(node, self).unwrap_or_default() }
    }

    /// Decodes an object field by field. Fields that `read` does not request are unknown. Null is an object without
    /// fields.
    pub fn object<T>(&mut self, node: &Node, read: impl FnOnce(&mut Fields<'_>) -> T) -> Option<T> {
        let nothing = Mapping::default();
        let mapping = match &node.value {
            Value::Mapping(mapping) => mapping,
            Value::Null => &nothing,
            _ => {
                self.report_wrong_type(node, "a mapping");
                return None;
            }
        };
        self.report_repeated(mapping, FieldPath::field);
        let mut known = Vec::with_capacity(16);
        if self.has_type_meta && self.path.is_root() {
            known.extend(["apiVersion", "kind"]);
        }
        let mut fields = Fields { decoder: self, mapping, span: node.span, known };
        let value = read(&mut fields);
        fields.finish();
        Some(value)
    }

    /// Decodes an element of a list.
    pub fn index<T: Decode>(&mut self, index: usize, node: &Node) -> T {
        self.path.enter_index(index);
        let value = self.value(node);
        self.path.leave();
        value
    }

    /// Decodes an entry of a map.
    pub fn key<T: Decode>(&mut self, key: &str, node: &Node) -> T {
        self.path.enter_key(key);
        let value = self.value(node);
        self.path.leave();
        value
    }

    /// Decodes a field outside [`Decoder::object`], with the path it has inside its document.
    pub fn field<T: Decode>(&mut self, name: &str, node: &Node) -> T {
        self.path.enter_field(name.to_owned());
        let value = self.value(node);
        self.path.leave();
        value
    }

    /// Decodes one of a fixed set of words.
    pub fn one_of<T: Clone>(&mut self, node: &Node, words: &[(&str, T)]) -> Option<T> {
        let text = String::decode(node, self)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| value.clone());
        if found.is_none() {
            let known: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            self.report_invalid_value(node, format!("expected one of {}", known.join(", ")));
        }
        found
    }

    /// Decodes a secret: diagnostics reported meanwhile are marked so that their source text is not printed.
    pub fn within_secret<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.secrets += 1;
        let value = read(self);
        self.secrets -= 1;
        value
    }

    /// Reports a value of the wrong type; `expected` is such as `a string` or `a list`.
    pub fn report_wrong_type(&mut self, node: &Node, expected: &str) {
        let message = format!("expected {expected}, found {}", node.kind());
        let quotes = expected == "a string" && matches!(node.value, Value::Bool(_) | Value::Number(_));
        let hint = quotes.then(|| "put the value in quotes".to_owned());
        self.report(node.span, DiagnosticKind::WrongType, message, hint);
    }

    /// Reports an invalid value. The message must not contain it.
    pub fn report_invalid_value(&mut self, node: &Node, message: impl Into<String>) {
        self.report(node.span, DiagnosticKind::InvalidValue, message.into(), None);
    }

    /// Reports an error at the current path.
    pub fn report(&mut self, span: Span, kind: DiagnosticKind, message: String, hint: Option<String>) {
        if self.diagnostics.len() >= MAX_DIAGNOSTICS {
            return;
        }
        let (path, is_secret) = (self.path.clone(), self.secrets > 0);
        self.diagnostics.push(Diagnostic { path, span, kind, message, hint, is_secret });
    }

    /// Reports an error at another path.
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

    /// In strict mode, reports every duplicate key of this mapping.
    pub(crate) fn report_repeated(&mut self, mapping: &Mapping, step: fn(&FieldPath, &str) -> FieldPath) {
        let mut repeated = mapping.entries().iter().filter(|entry| entry.repeated).peekable();
        if self.mode.is_lenient() || repeated.peek().is_none() {
            return;
        }
        let first_ones = mapping.entries().iter().filter(|entry| !entry.repeated);
        let lines: HashMap<&str, usize> =
            first_ones.map(|entry| (entry.key.as_str(), entry.key_span.line)).collect();
        for entry in repeated {
            let line = lines.get(entry.key.as_str()).copied().unwrap_or(entry.key_span.line);
            let message = format!("duplicate field, first on line {line}");
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

/// The fields of one object during decoding.
#[derive(Debug)]
pub struct Fields<'a> {
    decoder: &'a mut Decoder,
    mapping: &'a Mapping,
    span: Span,
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// An optional field; null counts as missing.
    pub fn optional<T: Decode>(&mut self, name: &'static str) -> Option<T> {
        if self.decoder.mode == DecodeMode::LenientJson {
            return self.every(name).pop().flatten();
        }
        let node = self.node(name).filter(|node| !node.is_null())?;
        self.decode_field(name, node)
    }

    /// A field whose zero value is used if it is missing.
    pub fn default<T: Decode>(&mut self, name: &'static str) -> T {
        if self.decoder.mode == DecodeMode::LenientJson {
            return self.every(name).into_iter().flatten().next_back().unwrap_or_default();
        }
        self.optional(name).unwrap_or_default()
    }

    /// Decodes every occurrence of a field; null gives `None`.
    fn every<T: Decode>(&mut self, name: &'static str) -> Vec<Option<T>> {
        self.known.push(name);
        let nodes = self.mapping.entries().iter().filter(|entry| entry.key == name).map(|entry| &entry.value);
        nodes.map(|node| if node.is_null() { None } else { self.decode_field(name, node) }).collect()
    }

    fn decode_field<T: Decode>(&mut self, name: &'static str, node: &Node) -> Option<T> {
        self.decoder.path.enter_field(name);
        let value = T::decode(node, self.decoder);
        self.decoder.path.leave();
        value
    }

    /// A required field; reported if missing.
    pub fn required<T: Decode>(&mut self, name: &'static str) -> T {
        if self.node(name).is_none_or(Node::is_null) {
            let path = self.decoder.path.field(name);
            self.decoder.report_at(
                path,
                self.span,
                DiagnosticKind::Required,
                "missing required field".into(),
                None,
            );
        }
        self.default(name)
    }

    /// The undecoded node of a field; the field counts as known.
    pub fn node(&mut self, name: &'static str) -> Option<&'a Node> {
        self.known.push(name);
        self.mapping.last(name).map(|entry| &entry.value)
    }

    /// Every field that has not been requested yet. Request the known fields first.
    pub fn rest(&mut self) -> Mapping {
        let rest = self.unknown().cloned().collect::<Vec<_>>();
        self.mapping = const { &Mapping::EMPTY };
        rest.into()
    }

    /// [`Fields::rest`] in lenient mode; empty in strict mode, where unknown fields are reported.
    pub fn rest_if_lenient(&mut self) -> Mapping {
        if self.decoder.mode.is_lenient() { self.rest() } else { Mapping::default() }
    }

    /// Decodes fields that may contain secrets but are not [`crate::Secret`]s, see [`Decoder::within_secret`].
    pub fn within_secret<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.decoder.secrets += 1;
        let value = read(self);
        self.decoder.secrets -= 1;
        value
    }

    /// The decoder, for checks that concern several fields.
    pub fn decoder(&mut self) -> &mut Decoder {
        self.decoder
    }

    fn unknown(&self) -> impl Iterator<Item = &'a MappingEntry> {
        self.mapping.entries().iter().filter(|entry| !self.known.contains(&entry.key.as_str()))
    }

    fn finish(self) {
        if self.decoder.mode.is_lenient() {
            return;
        }
        let unknown: Vec<&MappingEntry> = self.unknown().filter(|entry| !entry.repeated).collect();
        for entry in unknown {
            let hint = closest(&entry.key, &self.known).map(|name| format!("did you mean `{name}`?"));
            let path = self.decoder.path.field(&entry.key);
            let kind = DiagnosticKind::UnknownField;
            self.decoder.report_at(path, entry.key_span, kind, "unknown field".into(), hint);
        }
    }
}
