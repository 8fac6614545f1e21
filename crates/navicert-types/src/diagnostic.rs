//! Errors in a file with their positions. Every decoder of this crate reports diagnostics, and the command line prints
//! them as annotated snippets.

use std::error::Error;
use std::fmt;

use crate::field_path::FieldPath;
use crate::tree::Span;

/// One error in a file.
///
/// The message contains field names but never a value of the file, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The field; empty if the error concerns the whole document.
    pub path: FieldPath,
    /// Position in the text.
    pub span: Span,
    /// The kind of error.
    pub kind: DiagnosticKind,
    /// One clause, lower case, no final period, without the path.
    pub message: String,
    /// How to fix it, if the message does not already say so.
    pub hint: Option<String>,
    /// The text at the span may be a secret: print the position, not the text.
    pub is_secret: bool,
}

/// The kind of error a [`Diagnostic`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// The text is not YAML or JSON.
    Syntax,
    /// The input exceeds a size, depth or alias limit.
    Limit,
    /// `apiVersion` or `kind` is missing or unsupported.
    Version,
    /// A field that is not in the schema.
    UnknownField,
    /// A duplicate field, or a duplicate name in a list of named entries.
    Duplicate,
    /// A value of the wrong type.
    WrongType,
    /// An invalid value of the right type.
    InvalidValue,
    /// A missing required field.
    Required,
}

impl Diagnostic {
    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.span.line
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        self.span.column
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_root() {
            write!(f, "line {}, column {}: {}", self.span.line, self.span.column, self.message)?;
        } else {
            write!(
                f,
                "{}: {} (line {}, column {})",
                self.path, self.message, self.span.line, self.span.column
            )?;
        }
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl Error for Diagnostic {}

/// All errors of one file in the order of the text. Never empty when returned as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Whether there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of diagnostics.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Iterates in the order of the text.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Adds a diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Sorts by position in the text; the sort is stable.
    pub fn sort(&mut self) {
        self.0.sort_by_key(|diagnostic| diagnostic.span.start);
    }

    /// `Ok(value)` if there are no diagnostics, otherwise all of them, sorted.
    ///
    /// # Errors
    /// The diagnostics, if there are any.
    pub fn into_result<T>(mut self, value: T) -> Result<T, Diagnostics> {
        if self.is_empty() {
            return Ok(value);
        }
        self.sort();
        Err(self)
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Diagnostics(vec![diagnostic])
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(diagnostics: I) -> Self {
        Diagnostics(diagnostics.into_iter().collect())
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, more: I) {
        self.0.extend(more);
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One line, the diagnostics separated by `; `.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: usize, path: FieldPath) -> Diagnostic {
        let span = Span { start, end: start + 1, line: 3, column: 5 };
        Diagnostic {
            path,
            span,
            kind: DiagnosticKind::WrongType,
            message: "expected a string".into(),
            hint: None,
            is_secret: false,
        }
    }

    #[test]
    fn diagnostic_starts_with_its_field_path() {
        let path = FieldPath::root().field("jwt").index(0).field("issuer");
        assert_eq!(at(0, path).to_string(), "jwt[0].issuer: expected a string (line 3, column 5)");
    }

    #[test]
    fn diagnostic_of_the_whole_document_starts_with_its_position() {
        let shown = at(0, FieldPath::root()).with_hint("put it in quotes").to_string();
        assert_eq!(shown, "line 3, column 5: expected a string; put it in quotes");
    }

    #[test]
    fn diagnostics_are_sorted_by_position() {
        let mut found = Diagnostics::default();
        found.extend([at(9, FieldPath::root().field("b")), at(2, FieldPath::root().field("a"))]);
        let sorted = found.into_result(()).unwrap_err();
        assert_eq!(sorted.iter().map(|d| d.path.to_string()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(Diagnostics::default().into_result(7), Ok(7));
    }
}
