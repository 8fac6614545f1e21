//! What is wrong with a file, with the place: every reader of this crate reports in this form, and the command
//! line draws it as an annotated snippet.

use std::error::Error;
use std::fmt;

use crate::field_path::FieldPath;
use crate::tree::Span;

/// One thing that is wrong with a file.
///
/// The message never repeats a value of the file (it may be a secret), only names of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The field, empty where the trouble is with the document as a whole.
    pub path: FieldPath,
    /// Where in the text.
    pub span: Span,
    /// What sort of trouble.
    pub kind: DiagnosticKind,
    /// One clause, lower case, no final period; the path is not repeated in it.
    pub message: String,
    /// What to do about it, if that is not plain from the message.
    pub hint: Option<String>,
    /// The text at the span may be a secret: name the place, do not show it.
    pub is_secret: bool,
}

/// The sort of trouble a [`Diagnostic`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// The text is not YAML or JSON.
    Syntax,
    /// The text is larger, deeper or more repetitive than this crate reads.
    Limit,
    /// `apiVersion` or `kind` is absent or not known.
    Version,
    /// A field that the schema does not have.
    UnknownField,
    /// A field that occurs twice, or a name that is taken twice in a list of named entries.
    Duplicate,
    /// A value of another type than the field has.
    WrongType,
    /// A value of the right type that is not acceptable.
    InvalidValue,
    /// A field that has to be there and is not.
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

    /// The same with a way out.
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

/// Everything that is wrong with one file, in the order of the text. Never empty when it is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many were found.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// One after another, in the order of the text.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Sorts by place in the text; what was found first at one place stays first.
    pub fn sort(&mut self) {
        self.0.sort_by_key(|diagnostic| diagnostic.span.start);
    }

    /// `Ok(value)` if nothing was found, else everything that was, sorted.
    ///
    /// # Errors
    /// The diagnostics themselves, if there are any.
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
    fn a_diagnostic_starts_with_its_field_path() {
        let path = FieldPath::root().field("jwt").index(0).field("issuer");
        assert_eq!(at(0, path).to_string(), "jwt[0].issuer: expected a string (line 3, column 5)");
    }

    #[test]
    fn trouble_with_the_whole_document_starts_with_the_place() {
        let shown = at(0, FieldPath::root()).with_hint("put it in quotes").to_string();
        assert_eq!(shown, "line 3, column 5: expected a string; put it in quotes");
    }

    #[test]
    fn diagnostics_come_out_in_the_order_of_the_text() {
        let mut found = Diagnostics::default();
        found.extend([at(9, FieldPath::root().field("b")), at(2, FieldPath::root().field("a"))]);
        let sorted = found.into_result(()).unwrap_err();
        assert_eq!(sorted.iter().map(|d| d.path.to_string()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(Diagnostics::default().into_result(7), Ok(7));
    }
}
