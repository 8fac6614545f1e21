//! Values of the Kubernetes types, which expressions pass around without seeing inside.

use std::fmt;

/// A value of one of the Kubernetes types.
#[derive(Debug, Clone)]
pub enum Opaque {
    /// A named format.
    Format(&'static str),
}

impl Opaque {
    /// The name of the type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Opaque::Format(_) => "kubernetes.NamedFormat",
        }
    }

    /// Whether two values are equal in an expression.
    pub(crate) fn equals(&self, other: &Opaque) -> bool {
        match (self, other) {
            (Opaque::Format(left), Opaque::Format(right)) => left == right,
        }
    }

    /// The size that costs are counted by, if the type has one.
    pub(crate) fn size(&self) -> Option<u64> {
        None
    }

    /// The length of a format's pattern, for costs.
    pub(crate) fn pattern_size(&self) -> Option<u64> {
        None
    }

    /// Bytes owned outside the value itself, roughly.
    pub(crate) fn heap_size(&self) -> usize {
        0
    }

    /// Whether the value has a text form of its own.
    pub(crate) fn has_text(&self) -> bool {
        !matches!(self, Opaque::Format(_))
    }
}

impl fmt::Display for Opaque {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Opaque::Format(name) => out.write_str(name),
        }
    }
}
