//! What a configuration gets wrong beyond its shape: field path, type and detail as kube-apiserver reports them.

use std::fmt;

use navicert_types::FieldPath;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What sort.
    pub kind: ViolationKind,
    /// Where.
    pub path: FieldPath,
    /// The value as it is shown; empty where the sort of violation shows none.
    pub value: String,
    /// One clause.
    pub detail: String,
    /// What usually helps.
    pub hint: Option<String>,
}

/// The sorts of violation that Kubernetes has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ViolationKind {
    /// Something has to be there.
    Required,
    /// Something must not be as it is.
    Invalid,
    /// Something is there twice.
    Duplicate,
    /// There is too much of something.
    TooMany,
    /// Something must not be there.
    Forbidden,
    /// An expression cannot be made into a program.
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

    /// The words for it in Kubernetes' messages.
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
    /// The clause about the field, without its path: `Invalid value: "x": must be lowercase`.
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

/// `<path>: <type>: <value>: <detail>` (S16).
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.clause())
    }
}

/// Every broken rule of a configuration, in the order in which they were looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// One after another.
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

    /// Says what helps with the violation that was added last.
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

/// One alone, or `[e1, e2]` (S16).
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
