//! `template.format([arguments])`: parses the clauses of a format string and renders them for any value that
//! implements [`FormatArgument`].
//!
//! There are two dialects. Kubernetes uses version 2 of the strings extension, which renders numbers in US style
//! (`1,234.50`, `1.052033×10⁰³`, `∞`) and quotes strings inside lists. Later versions do neither.

use crate::instant::{DurationText, Timestamp};
use crate::number::{DoubleText, Number};
use std::fmt::{self, Write};

mod clause;
mod number_text;

pub(crate) use clause::{Clause, Piece, Verb, pieces};

/// Maximum nesting depth of lists and maps; beyond it rendering fails with [`FormatError::TooDeep`].
const DEPTH_LIMIT: usize = 300;

/// The version of the strings extension to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Version 2, as in Kubernetes.
    Kubernetes,
    /// The newest version, as in the conformance suite.
    Standard,
}

/// A value that can be formatted; implemented by [`crate::ValueRef`].
pub(crate) trait FormatArgument: Clone {
    /// The type and content of the value.
    fn view(&self) -> ArgumentView<'_>;

    /// The type name for messages: `int`, `google.protobuf.Duration`, `net.IP`.
    fn type_name(&self) -> String;

    /// Calls `visit` for each element of a list, in order; stops at an error.
    fn elements(&self, visit: &mut dyn FnMut(Self) -> Result<(), FormatError>) -> Result<(), FormatError>;

    /// Calls `visit` for each key and value of a map, in any order; stops at an error.
    fn entries(
        &self,
        visit: &mut dyn FnMut(Self, Self) -> Result<(), FormatError>,
    ) -> Result<(), FormatError>;
}

/// The type and content of a [`FormatArgument`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArgumentView<'a> {
    /// null
    Null,
    /// bool
    Bool(bool),
    /// int
    Int(i64),
    /// uint
    Uint(u64),
    /// double
    Double(f64),
    /// string
    Text(&'a str),
    /// bytes
    Bytes(&'a [u8]),
    /// A type, by its name.
    Type(&'a str),
    /// duration, in nanoseconds
    Duration(i64),
    /// timestamp
    Timestamp(Timestamp),
    /// list
    List,
    /// map
    Map,
    /// Any other type; cannot be formatted.
    Other,
}

/// Why formatting fails, worded as in cel-go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FormatError {
    /// A `%` at the end of the format string.
    #[error("unexpected end of string")]
    UnexpectedEnd,
    /// More clauses than arguments.
    #[error("index {0} out of range")]
    MissingArgument(usize),
    /// `%q`
    #[error("could not parse formatting clause: unrecognized formatting clause \"{0}\"")]
    UnknownClause(char),
    /// `%.` or `%.3` at the end
    #[error(
        "could not parse formatting clause: error while parsing precision: could not find end of precision specifier"
    )]
    PrecisionEnd,
    /// `%.f`
    #[error(
        "could not parse formatting clause: error while parsing precision: error while converting precision to \
         integer: strconv.Atoi: parsing \"{0}\": {1}"
    )]
    Precision(String, &'static str),
    /// The precision exceeds 100, in the standard dialect.
    #[error(
        "could not parse formatting clause: error while parsing precision: precision {0} exceeds maximum allowed \
         precision 100"
    )]
    PrecisionLimit(u64),
    /// The clause does not support the type of the argument.
    #[error("error during formatting: {clause}, was given {given}")]
    Mismatch {
        /// The types that the clause supports: [`Verb::domain`].
        clause: &'static str,
        /// The type name of the argument.
        given: String,
    },
    /// Bytes that are not valid UTF-8.
    #[error(
        "error during formatting: could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string"
    )]
    NotText,
    /// A map key that is neither string, bool nor integer.
    #[error("error during formatting: no formatting function for map key of type {0}")]
    MapKey(String),
    /// The nesting exceeds the depth limit.
    #[error("error during formatting: value is nested too deeply")]
    TooDeep,
    /// The output exceeds its size limit.
    #[error("formatted text is too large")]
    TooLarge,
}

impl From<fmt::Error> for FormatError {
    fn from(_: fmt::Error) -> Self {
        Self::TooLarge
    }
}

/// Renders `template` with `arguments` into `out`; extra arguments are ignored.
///
/// An error of `out` stops the rendering and becomes [`FormatError::TooLarge`]. Map keys are rendered separately
/// for sorting, into at most `key_limit` bytes.
pub(crate) fn format<V: FormatArgument>(
    out: &mut dyn Write,
    template: &str,
    arguments: &[V],
    dialect: Dialect,
    key_limit: usize,
) -> Result<(), FormatError> {
    let mut arguments_left = arguments.iter();
    let mut renderer = Renderer { out, dialect, key_budget: key_limit };
    for piece in pieces(template, arguments.len(), dialect) {
        match piece? {
            Piece::Text(text) => renderer.out.write_str(text)?,
            Piece::Clause(clause) => {
                if let Some(argument) = arguments_left.next() {
                    renderer.clause(clause, argument)?;
                }
            }
        }
    }
    Ok(())
}

struct Renderer<'o> {
    out: &'o mut dyn Write,
    dialect: Dialect,
    key_budget: usize,
}

impl Renderer<'_> {
    fn clause<V: FormatArgument>(&mut self, clause: Clause, argument: &V) -> Result<(), FormatError> {
        let view = argument.view();
        let standard = self.dialect == Dialect::Standard;
        match (clause.verb, view) {
            (Verb::Text, _) => return self.text(argument),
            (Verb::Decimal, ArgumentView::Int(value)) => write!(self.out, "{value}")?,
            (Verb::Decimal, ArgumentView::Uint(value)) => write!(self.out, "{value}")?,
            (Verb::Decimal, ArgumentView::Double(_)) if standard => return self.text(argument),
            (Verb::Fixed | Verb::Scientific, _) => {
                let Some(value) = self.as_double(view) else {
                    return Err(self.mismatch(clause.verb, argument));
                };
                match (clause.verb, standard) {
                    (Verb::Fixed, true) => number_text::fixed(self.out, value, clause.precision)?,
                    (Verb::Fixed, false) => number_text::grouped(self.out, value, clause.precision)?,
                    (_, true) => number_text::scientific(self.out, value, clause.precision)?,
                    (_, false) => number_text::superscript(self.out, value, clause.precision)?,
                }
            }
            (Verb::Binary, ArgumentView::Bool(value)) => self.out.write_str(if value { "1" } else { "0" })?,
            (
                verb @ (Verb::Binary | Verb::Octal | Verb::LowerHex | Verb::UpperHex),
                ArgumentView::Int(value),
            ) => {
                number_text::in_base(self.out, verb, value < 0, value.unsigned_abs())?;
            }
            (
                verb @ (Verb::Binary | Verb::Octal | Verb::LowerHex | Verb::UpperHex),
                ArgumentView::Uint(value),
            ) => {
                number_text::in_base(self.out, verb, false, value)?;
            }
            (verb @ (Verb::LowerHex | Verb::UpperHex), ArgumentView::Text(text)) => {
                number_text::hex_bytes(self.out, verb, text.as_bytes())?;
            }
            (verb @ (Verb::LowerHex | Verb::UpperHex), ArgumentView::Bytes(bytes)) => {
                number_text::hex_bytes(self.out, verb, bytes)?;
            }
            (verb, _) => return Err(self.mismatch(verb, argument)),
        }
        Ok(())
    }

    /// The double for `%f` or `%e`. Kubernetes accepts three special strings but no integers, the standard dialect
    /// the reverse.
    fn as_double(&self, view: ArgumentView<'_>) -> Option<f64> {
        let standard = self.dialect == Dialect::Standard;
        match view {
            ArgumentView::Double(value) => Some(value),
            ArgumentView::Int(value) if standard => Some(Number::Int(value).as_double()),
            ArgumentView::Uint(value) if standard => Some(Number::Uint(value).as_double()),
            ArgumentView::Text("NaN") if !standard => Some(f64::NAN),
            ArgumentView::Text("Infinity") if !standard => Some(f64::INFINITY),
            ArgumentView::Text("-Infinity") if !standard => Some(f64::NEG_INFINITY),
            _ => None,
        }
    }

    fn mismatch<V: FormatArgument>(&self, verb: Verb, argument: &V) -> FormatError {
        FormatError::Mismatch { clause: verb.domain(self.dialect), given: argument.type_name() }
    }

    /// `%s` of an argument.
    fn text<V: FormatArgument>(&mut self, argument: &V) -> Result<(), FormatError> {
        match (argument.view(), self.dialect) {
            (ArgumentView::Double(value), Dialect::Kubernetes) => write!(self.out, "{}", DoubleText(value))?,
            (ArgumentView::Text(text), Dialect::Kubernetes) => self.out.write_str(text)?,
            (ArgumentView::Bytes(bytes), Dialect::Kubernetes) => {
                self.out.write_str(std::str::from_utf8(bytes).map_err(|_| FormatError::NotText)?)?;
            }
            (ArgumentView::Duration(value), Dialect::Kubernetes) => {
                write!(self.out, "{}", DurationText(value))?;
            }
            (ArgumentView::Timestamp(value), Dialect::Kubernetes) => write!(self.out, "{value}")?,
            _ => return self.nested(argument, 0),
        }
        Ok(())
    }

    /// `%s` of an element of a list or map; in the standard dialect the same as for an argument.
    fn nested<V: FormatArgument>(&mut self, argument: &V, depth: usize) -> Result<(), FormatError> {
        if depth > DEPTH_LIMIT {
            return Err(FormatError::TooDeep);
        }
        let standard = self.dialect == Dialect::Standard;
        match argument.view() {
            ArgumentView::Null => self.out.write_str("null")?,
            ArgumentView::Bool(value) => write!(self.out, "{value}")?,
            ArgumentView::Int(value) => write!(self.out, "{value}")?,
            ArgumentView::Uint(value) => write!(self.out, "{value}")?,
            ArgumentView::Type(name) => self.out.write_str(name)?,
            ArgumentView::Double(value) if standard => number_text::plain(self.out, value)?,
            ArgumentView::Double(value) if value.is_finite() => write!(self.out, "{value:.6}")?,
            ArgumentView::Double(value) => write!(self.out, "\"{}\"", DoubleText(value))?,
            ArgumentView::Text(text) if standard => self.out.write_str(text)?,
            ArgumentView::Text(text) => self.quoted(text)?,
            ArgumentView::Bytes(bytes) if standard => lossy(self.out, bytes)?,
            ArgumentView::Bytes(bytes) => {
                let text = std::str::from_utf8(bytes).map_err(|_| FormatError::NotText)?;
                self.out.write_char('b')?;
                self.quoted(text)?;
            }
            ArgumentView::Duration(value) if standard => write!(self.out, "{}", DurationText(value))?,
            ArgumentView::Duration(value) => write!(self.out, "duration(\"{}\")", DurationText(value))?,
            ArgumentView::Timestamp(value) if standard => write!(self.out, "{value}")?,
            ArgumentView::Timestamp(value) => write!(self.out, "timestamp(\"{value}\")")?,
            ArgumentView::List => return self.list(argument, depth),
            ArgumentView::Map => return self.map(argument, depth),
            ArgumentView::Other => return Err(self.mismatch(Verb::Text, argument)),
        }
        Ok(())
    }

    fn quoted(&mut self, text: &str) -> fmt::Result {
        super::strings_quote::write_go_quoted(&mut self.out, text)
    }

    fn list<V: FormatArgument>(&mut self, list: &V, depth: usize) -> Result<(), FormatError> {
        self.out.write_char('[')?;
        let mut between = "";
        list.elements(&mut |element| {
            self.out.write_str(between)?;
            between = ", ";
            self.nested(&element, depth + 1)
        })?;
        Ok(self.out.write_char(']')?)
    }

    /// Entries are sorted by the rendered key.
    fn map<V: FormatArgument>(&mut self, map: &V, depth: usize) -> Result<(), FormatError> {
        let mut entries = Vec::new();
        map.entries(&mut |key, value| {
            entries.push((self.key(&key, depth)?, value));
            Ok(())
        })?;
        entries.sort_by(|(left, _), (right, _)| left.cmp(right));
        let colon = if self.dialect == Dialect::Standard { ": " } else { ":" };
        self.out.write_char('{')?;
        for (position, (key, value)) in entries.iter().enumerate() {
            self.out.write_str(if position == 0 { "" } else { ", " })?;
            self.out.write_str(key)?;
            self.out.write_str(colon)?;
            self.nested(value, depth + 1)?;
        }
        Ok(self.out.write_char('}')?)
    }

    fn key<V: FormatArgument>(&mut self, key: &V, depth: usize) -> Result<String, FormatError> {
        let plain = matches!(
            key.view(),
            ArgumentView::Text(_) | ArgumentView::Bool(_) | ArgumentView::Int(_) | ArgumentView::Uint(_)
        );
        if !plain && self.dialect == Dialect::Kubernetes {
            return Err(FormatError::MapKey(key.type_name()));
        }
        let mut text = LimitedText { text: String::new(), left: self.key_budget };
        let mut inner = Renderer { out: &mut text, dialect: self.dialect, key_budget: 0 };
        inner.nested(key, depth + 1)?;
        self.key_budget = text.left;
        Ok(text.text)
    }
}

/// Replaces each invalid byte with a replacement character, as Go does.
fn lossy(out: &mut dyn Write, bytes: &[u8]) -> fmt::Result {
    bytes.utf8_chunks().try_for_each(|chunk| {
        out.write_str(chunk.valid())?;
        chunk.invalid().iter().try_for_each(|_| out.write_char('\u{fffd}'))
    })
}

/// A string writer with a size limit.
struct LimitedText {
    text: String,
    left: usize,
}

impl Write for LimitedText {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.left = self.left.checked_sub(piece.len()).ok_or(fmt::Error)?;
        self.text.push_str(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
