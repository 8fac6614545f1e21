//! Evaluation errors. Faults are small and `Copy`, because `||` and `&&` may absorb them; messages are formatted on demand.

use std::fmt;

use crate::value::ValueRef;

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
    NoSuchKey(&'a str),
    /// An index out of bounds of a list.
    OutOfBounds(i64),
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
    /// Any other message.
    Message(&'a str),
    /// A limit was reached. Logical operators and macros do not absorb it.
    Limit(Limit),
}

/// The limits of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The cost limit.
    Cost,
    /// The memory limit of the arena.
    Memory,
    /// The host interrupted the evaluation.
    Interrupted,
    /// cel-go would fail here with an internal error.
    Internal,
}

/// A cause and the syntax node where it occurred.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault<'a> {
    pub(crate) cause: Cause<'a>,
    pub(crate) node: u32,
}

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
    pub(crate) fn is_limit(&self) -> bool {
        matches!(self, Cause::Limit(_))
    }
}

impl fmt::Display for Cause<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::NoSuchOverload("") => out.write_str("no such overload"),
            Cause::NoSuchOverload(function) => write!(out, "no such overload: {function}"),
            Cause::NoSuchVariant(function, kinds) => write!(out, "no such overload: {function}{kinds}"),
            Cause::NoSuchOperand(_) => out.write_str("no such overload"),
            Cause::NoSuchKey(key) => write!(out, "no such key: {key}"),
            Cause::OutOfBounds(index) => write!(out, "index out of bounds: {index}"),
            Cause::NoSuchAttribute(name) => write!(out, "no such attribute(s): {name}"),
            Cause::DivisionByZero => out.write_str("division by zero"),
            Cause::ModulusByZero => out.write_str("modulus by zero"),
            Cause::IntOverflow => out.write_str("integer overflow"),
            Cause::UintOverflow => out.write_str("unsigned integer overflow"),
            Cause::TimestampOverflow => out.write_str("timestamp overflow"),
            Cause::NoValue => out.write_str("optional.none() dereference"),
            Cause::Message(text) => out.write_str(text),
            Cause::Limit(Limit::Cost) => out.write_str("operation cancelled: actual cost limit exceeded"),
            Cause::Limit(Limit::Memory) => out.write_str("operation cancelled: memory limit exceeded"),
            Cause::Limit(Limit::Internal) => out.write_str("internal error"),
            Cause::Limit(Limit::Interrupted) => out.write_str("operation interrupted"),
        }
    }
}

/// A failed evaluation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EvalError {
    /// The error message, worded as in cel-go where cel-go has one.
    pub message: String,
    /// The limit that was reached, if any.
    pub limit: Option<Limit>,
    /// The subexpression that failed.
    pub span: crate::source::Span,
    /// A suggestion.
    pub hint: Option<&'static str>,
}

impl EvalError {
    pub(crate) fn new(fault: &Fault<'_>, span: crate::source::Span) -> Self {
        let hint = match fault.cause {
            Cause::NoSuchKey(_) => {
                Some("a missing key is an error; use `.?key` with orValue(…), or test with has(…)")
            }
            Cause::NoSuchOverload("_+_" | "_-_" | "_*_" | "_/_" | "_%_") | Cause::NoSuchOperand(_) => {
                Some("claim numbers are doubles: write 1.0, or convert with int(…)")
            }
            _ => None,
        };
        let limit = match fault.cause {
            Cause::Limit(limit) => Some(limit),
            _ => None,
        };
        EvalError { message: fault.cause.to_string(), limit, span, hint }
    }
}
