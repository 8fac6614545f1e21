//! Validation errors with field path, type and detail, as kube-apiserver reports them.

use std::fmt;

use navicert_types::FieldPath;

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The kind.
    pub kind: ViolationKind,
    /// The field path.
    pub path: FieldPath,
    /// The value as shown; empty for kinds that show none.
    pub value: String,
    /// The detail, one clause.
    pub detail: String,
    /// What usually fixes it.
    pub hint: Option<String>,
}

/// The kinds of violation in Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum ViolationKind {
    /// A value is missing.
    #[serde(rename = "FieldValueRequired")]
    Required,
    /// A value is invalid.
    #[serde(rename = "FieldValueInvalid")]
    Invalid,
    /// A value is duplicated.
    #[serde(rename = "FieldValueDuplicate")]
    Duplicate,
    /// A list has too many items.
    #[serde(rename = "FieldValueTooMany")]
    TooMany,
    /// A value is not allowed.
    #[serde(rename = "FieldValueForbidden")]
    Forbidden,
    /// An expression cannot be compiled to a program.
    #[serde(rename = "InternalError")]
    Internal,
}

impl ViolationKind {
    /// The name of the type in Kubernetes' API.
    pub fn name(self) -> &'static str {
        match self {
            ViolationKind::Required => "FieldValueRequired",
            ViolationKind::Invalid => "FieldValueInvalid",
            ViolationKind::Duplicate => "FieldValueDuplicate",
            ViolationKind::TooMany => "FieldValueTooMany",
            ViolationKind::Forbidden => "FieldValueForbidden",
            ViolationKind::Internal => "InternalError",
        }
    }

    /// The kind as worded in Kubernetes' messages.
    pub fn words(self) -> &'static str {
        match self {
            ViolationKind::Required => "Required value",
            ViolationKind::Invalid => "Invalid value",
            ViolationKind::Duplicate => "Duplicate value",
            ViolationKind::TooMany => "Too many",
            ViolationKind::Forbidden => "Forbidden",
            ViolationKind::Internal => "Internal error",
        }
    }
}

impl Violation {
    /// The message without the field path: `Invalid value: "x": must be lowercase`.
    pub fn clause(&self) -> String {
        let shows_value =
            matches!(self.kind, ViolationKind::Invalid | ViolationKind::Duplicate | ViolationKind::TooMany);
        let mut clause = self.kind.words().to_owned();
        if shows_value {
            clause.push_str(": ");
            clause.push_str(&self.value);
        }
        if !self.detail.is_empty() {
            clause.push_str(": ");
            clause.push_str(&self.detail);
        }
        clause
    }
}

/// `<path>: <type>: <value>: <detail>`.
// S16
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.clause())
    }
}

/// Every violation of a configuration, in the order of validation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// Whether there are no violations.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of violations.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Iterates over the violations.
    pub fn iter(&self) -> std::slice::Iter<'_, Violation> {
        self.0.iter()
    }

    pub(super) fn required(&mut self, path: FieldPath, detail: impl Into<String>) {
        self.push(ViolationKind::Required, path, String::new(), detail.into());
    }

    pub(super) fn invalid(&mut self, path: FieldPath, value: &str, detail: impl Into<String>) {
        self.push(ViolationKind::Invalid, path, quoted(value), detail.into());
    }

    pub(super) fn duplicate(&mut self, path: FieldPath, value: &str) {
        self.push(ViolationKind::Duplicate, path, quoted(value), String::new());
    }

    pub(super) fn too_many(&mut self, path: FieldPath, count: usize, most: usize) {
        let detail = format!("must have at most {most} items");
        self.push(ViolationKind::TooMany, path, count.to_string(), detail);
    }

    pub(super) fn internal(&mut self, path: FieldPath, detail: impl Into<String>) {
        self.push(ViolationKind::Internal, path, String::new(), detail.into());
    }

    /// Adds a hint to the last violation.
    pub(super) fn hint(&mut self, hint: impl Into<String>) {
        if let Some(last) = self.0.last_mut() {
            last.hint = Some(hint.into());
        }
    }

    fn push(&mut self, kind: ViolationKind, path: FieldPath, value: String, detail: String) {
        self.0.push(Violation { kind, path, value, detail, hint: None });
    }
}

impl<'a> IntoIterator for &'a Violations {
    type Item = &'a Violation;
    type IntoIter = std::slice::Iter<'a, Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One violation alone, or `[e1, e2]`.
// S16
impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [one] = self.0.as_slice() {
            return write!(f, "{one}");
        }
        f.write_str("[")?;
        for (index, violation) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{violation}")?;
        }
        f.write_str("]")
    }
}

impl std::error::Error for Violations {}

fn quoted(value: &str) -> String {
    format!("{value:?}")
}
