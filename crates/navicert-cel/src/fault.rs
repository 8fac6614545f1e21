//! Faults inside the evaluator. They are small and `Copy`, because `||` and `&&` may absorb them; [`EvalErrorKind`] is made of
//! the one that ends an evaluation.

use std::fmt;

use crate::error::{EvalErrorKind, InternalFault, InvalidArgument, Limit, Misuse};
use crate::untrusted::{Operand, Untrusted};
use crate::value::{ClaimFault, ValueRef};

/// The cause of an evaluation error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause<'a> {
    /// No overload of a function or operator matches the operands.
    NoSuchOverload(&'a str),
    /// As `NoSuchOverload`, with the types of the arguments.
    NoSuchVariant(&'a str, Kinds),
    /// The left operand supports the operator, but not with this right operand.
    NoSuchOperand(&'static str),
    /// A map has no such key.
    NoSuchKey(&'a str, Origin),
    /// An index out of bounds of a list.
    OutOfBounds(i64, Origin),
    /// An index of this type.
    IndexType(&'a str),
    /// A number that is no index.
    InvalidIndex(&'a str, Origin),
    /// A variable has no value.
    NoSuchAttribute(&'a str),
    /// `x / 0`
    DivisionByZero,
    /// `x % 0`
    ModulusByZero,
    /// The result overflows `int`.
    IntOverflow,
    /// The result overflows `uint`.
    UintOverflow,
    /// A timestamp before year 1 or after year 9999.
    TimestampOverflow,
    /// `optional.none().value()`
    NoValue,
    /// A string cannot be converted to this type.
    Conversion(&'static str),
    /// A value without elements, by Go's name of its type.
    NotIterable(&'static str),
    /// A value of the wrong kind.
    Misuse(Misuse),
    /// A function rejects an argument, with its message.
    InvalidArgument(InvalidArgument, &'a str),
    /// A claim has no value.
    Claim(&'a ClaimFault),
    /// A limit was reached. Logical operators and macros do not absorb it.
    Limit(Limit),
    /// A fault of the evaluator itself. Logical operators and macros do not absorb it.
    Internal(InternalFault),
}

/// Where a key or an index comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Written in the expression.
    Literal,
    /// Computed during the evaluation.
    Computed,
}

/// A cause and the syntax node where it occurred.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault<'a> {
    pub(crate) cause: Cause<'a>,
    pub(crate) node: u32,
}

// Every step returns a value or a fault: a larger fault makes every step slower.
const _: () = assert!(size_of::<Cause<'_>>() <= 24 && size_of::<Fault<'_>>() <= 32);

/// The types of the arguments of a call in four bytes: faults are copied often and rarely formatted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds([u8; 4]);

impl Kinds {
    const NAMES: [&'static str; 13] = [
        "null_type",
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "google.protobuf.Duration",
        "google.protobuf.Timestamp",
        "type",
        "optional_type",
    ];

    pub(crate) fn from_values(values: &[ValueRef<'_>]) -> Self {
        let mut kinds = [0_u8; 4];
        if values.len() > kinds.len() {
            return Kinds([0; 4]);
        }
        for (kind, value) in kinds.iter_mut().zip(values) {
            let Some(index) = Kinds::NAMES.iter().position(|name| *name == value.type_name()) else {
                return Kinds([0; 4]);
            };
            *kind = u8::try_from(index + 1).unwrap_or_default();
        }
        Kinds(kinds)
    }
}

/// `(list, string)`; empty if a type is not in the table.
impl fmt::Display for Kinds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |kind: &u8| Kinds::NAMES.get(usize::from(*kind).checked_sub(1)?).copied();
        let names: Vec<&str> = self.0.iter().filter_map(named).collect();
        if names.is_empty() { Ok(()) } else { write!(out, "({})", names.join(", ")) }
    }
}

impl Cause<'_> {
    /// Whether `||`, `&&`, `all` and `exists` must not absorb the error.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(self, Cause::Limit(_) | Cause::Internal(_))
    }

    /// The error as callers see it.
    #[cold]
    pub(crate) fn kind(&self) -> EvalErrorKind {
        let no_such_overload = |function: &str, arguments: String| EvalErrorKind::NoSuchOverload {
            function: function.to_owned(),
            arguments,
        };
        match *self {
            Cause::NoSuchOverload(function) => no_such_overload(function, String::new()),
            Cause::NoSuchVariant(function, kinds) => no_such_overload(function, kinds.to_string()),
            Cause::NoSuchOperand(operator) => EvalErrorKind::NoSuchOperand { operator },
            Cause::NoSuchKey(key, origin) => EvalErrorKind::NoSuchKey(origin.operand(key)),
            Cause::OutOfBounds(index, origin) => {
                EvalErrorKind::IndexOutOfBounds(origin.operand(&index.to_string()))
            }
            Cause::IndexType(type_name) => EvalErrorKind::IndexType { type_name: type_name.to_owned() },
            Cause::InvalidIndex(index, origin) => EvalErrorKind::InvalidIndex(origin.operand(index)),
            Cause::NoSuchAttribute(name) => EvalErrorKind::NoSuchAttribute(name.to_owned()),
            Cause::DivisionByZero => EvalErrorKind::DivisionByZero,
            Cause::ModulusByZero => EvalErrorKind::ModulusByZero,
            Cause::IntOverflow => EvalErrorKind::IntOverflow,
            Cause::UintOverflow => EvalErrorKind::UintOverflow,
            Cause::TimestampOverflow => EvalErrorKind::TimestampOverflow,
            Cause::NoValue => EvalErrorKind::NoValue,
            Cause::Conversion(to) => EvalErrorKind::Conversion { to },
            Cause::NotIterable(go_type) => EvalErrorKind::NotIterable { go_type },
            Cause::Misuse(misuse) => EvalErrorKind::Misuse(misuse),
            Cause::InvalidArgument(argument, message) => {
                EvalErrorKind::InvalidArgument { argument, message: Untrusted::new(message) }
            }
            Cause::Claim(ClaimFault { claim, error }) => {
                EvalErrorKind::Claim { claim: claim.clone(), error: error.clone() }
            }
            Cause::Limit(limit) => EvalErrorKind::Limit(limit),
            Cause::Internal(fault) => EvalErrorKind::Internal(fault),
        }
    }
}

impl Origin {
    fn operand(self, text: &str) -> Operand {
        match self {
            Origin::Literal => Operand::Literal(text.to_owned()),
            Origin::Computed => Operand::Computed(Untrusted::new(text)),
        }
    }
}
