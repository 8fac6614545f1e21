//! Errors of an evaluation as its caller sees them: a kind, and the subexpression that failed. Values from the evaluated data
//! are [`Untrusted`]: `Display` and `Debug` redact them, [`EvalErrorKind::exposed`] does not.

use std::fmt;

use crate::source::Span;
use crate::untrusted::{Operand, Untrusted};

/// A failed evaluation. `Display` contains no value of the evaluated data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct EvalError {
    /// What failed.
    pub kind: EvalErrorKind,
    /// The subexpression that failed.
    pub span: Span,
}

/// What failed. A new kind needs a text in both forms here, and a case in the tests of every program that prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
// Exhaustive: programs that redact errors have to decide about each new kind (a test of navicert-authn names them all).
pub enum EvalErrorKind {
    /// No overload of a function or operator takes arguments of these types.
    NoSuchOverload {
        /// The function or operator; empty if unknown.
        function: String,
        /// The types of the arguments, `(list, string)`; empty if unknown.
        arguments: String,
    },
    /// The left operand supports the operator, but not with this right operand.
    NoSuchOperand {
        /// The operator.
        operator: &'static str,
    },
    /// A map or object has no such key.
    NoSuchKey(Operand),
    /// An index is out of bounds of a list.
    IndexOutOfBounds(Operand),
    /// An index of a list is of a type that cannot be one.
    IndexType {
        /// The type.
        type_name: String,
    },
    /// An index of a list is a number that is no index.
    InvalidIndex(Operand),
    /// A variable has no value.
    NoSuchAttribute(String),
    /// `x / 0`
    DivisionByZero,
    /// `x % 0`
    ModulusByZero,
    /// The result overflows `int`.
    IntOverflow,
    /// The result overflows `uint`.
    UintOverflow,
    /// A timestamp is before year 1 or after year 9999.
    TimestampOverflow,
    /// `optional.none().value()`
    NoValue,
    /// A string cannot be converted to this type.
    Conversion {
        /// The type.
        to: &'static str,
    },
    /// A comprehension over a value that has no elements.
    NotIterable {
        /// Go's name of the type; empty if there is none.
        go_type: &'static str,
    },
    /// A value is of a kind that the operation does not support.
    Misuse(Misuse),
    /// A function rejects the content of an argument.
    InvalidArgument {
        /// The kind of argument.
        argument: InvalidArgument,
        /// The message of the function, which may quote the argument.
        message: Untrusted,
    },
    /// A claim has no value.
    Claim {
        /// The name of the claim.
        claim: String,
        /// Why it has none.
        error: ClaimError,
    },
    /// A limit was reached. Logical operators and macros do not absorb it.
    Limit(Limit),
    /// A fault of the evaluator itself. Logical operators and macros do not absorb it.
    Internal(InternalFault),
}

/// An operation on a value of the wrong kind. The message is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misuse {
    /// NaN is compared.
    NotOrdered,
    /// `math.greatest` of NaN.
    GreatestOfNan,
    /// `math.least` of NaN.
    LeastOfNan,
    /// A comprehension with two variables over something else than a list or a map.
    NotIterableInPairs,
    /// A key that is neither string, number nor bool.
    QualifierType,
    /// A key of a map literal that is neither string, bool nor integer.
    KeyType,
    /// A key that occurs twice in a map literal.
    RepeatedKey,
    /// A key that `transformMapEntry` inserts twice.
    ExistingKey,
    /// `[?x]` where `x` is not optional.
    NotOptionalElement,
    /// `{?k: x}` where `x` is not optional.
    NotOptionalEntry,
    /// `optional.unwrap` of a list with an element that is not optional.
    NotOptional,
    /// A pattern beyond the configured length.
    PatternTooLong,
    /// `sortBy` with another number of keys.
    SortKeyCount,
    /// `sort` of elements without an order.
    NotComparable,
    /// `sort` of elements of different types.
    MixedTypes,
    /// `min` of an empty list.
    MinOfEmptyList,
    /// `max` of an empty list.
    MaxOfEmptyList,
    /// `math.greatest` or `math.least` of an empty list.
    EmptyArguments,
    /// Bytes that are not UTF-8.
    NotText,
    /// A field of a message literal with a value of another type.
    FieldType,
    /// `google.protobuf.Timestamp` or `Duration` with nanoseconds out of range.
    Nanoseconds,
    /// A message literal without a value.
    MessageValue,
    /// `kubernetes.UserInfo{…}`: the type has no literals.
    UserLiteral,
}

/// The kind of an argument whose content a function rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it; see `InvalidArgument::description`")]
pub enum InvalidArgument {
    Pattern,
    TimeZone,
    IpAddress,
    Cidr,
    Url,
    Version,
    Quantity,
    Base64,
    Format,
    Position,
    Slice,
    RangeSize,
    FlattenLevel,
    ShiftOffset,
}

/// Why a claim has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
// Exhaustive, as `EvalErrorKind` is.
pub enum ClaimError {
    /// The number is out of range for a double.
    OutOfRange(Untrusted),
    /// The value is nested too deeply.
    TooDeep,
    /// A distributed claim that has not been fetched. `has` is true for it.
    Pending,
    /// A distributed claim that could not be fetched, and why.
    Unavailable(&'static str),
}

/// The limits of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The cost limit.
    Cost,
    /// The memory limit of the arena.
    Memory,
    /// The host interrupted the evaluation.
    Interrupted,
    /// cel-go would fail here with an internal error.
    UpstreamInternal,
}

/// A part of a compiled program that the evaluator did not find. This is a bug in this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InternalFault {
    /// A step.
    #[error("missing step")]
    Step,
    /// A constant.
    #[error("missing constant")]
    Constant,
    /// A text.
    #[error("missing text")]
    Text,
    /// The operands of a step.
    #[error("missing operands")]
    Operands,
    /// The qualifiers of a selection.
    #[error("missing qualifiers")]
    Qualifiers,
    /// A comprehension.
    #[error("missing comprehension")]
    Comprehension,
    /// An element of a comprehension's range.
    #[error("missing element")]
    Element,
    /// The value of a comprehension variable.
    #[error("unbound variable")]
    Local,
    /// A function.
    #[error("missing function")]
    Function,
    /// A compiled pattern.
    #[error("missing pattern")]
    Pattern,
    /// A message type.
    #[error("missing message type")]
    Message,
}

impl EvalError {
    /// The limit that was reached, if any.
    pub fn limit(&self) -> Option<Limit> {
        match self.kind {
            EvalErrorKind::Limit(limit) => Some(limit),
            _ => None,
        }
    }

    /// A suggestion.
    pub fn hint(&self) -> Option<&'static str> {
        self.kind.hint()
    }
}

/// How values of the evaluated data are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Redacted,
    Exposed,
}

impl EvalErrorKind {
    /// The message with the values of the evaluated data, worded as in cel-go where cel-go has such an error. It must not reach
    /// logs, metrics or clients.
    pub fn exposed(&self) -> String {
        Message { kind: self, values: Values::Exposed }.to_string()
    }

    /// A suggestion.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            EvalErrorKind::NoSuchKey(_) => {
                Some("a missing key is an error; use `.?key` with orValue(…), or test with has(…)")
            }
            EvalErrorKind::NoSuchOperand { .. } => Some(NUMBERS),
            EvalErrorKind::NoSuchOverload { function, .. }
                if matches!(function.as_str(), "_+_" | "_-_" | "_*_" | "_/_" | "_%_") =>
            {
                Some(NUMBERS)
            }
            _ => None,
        }
    }

    /// Whether [`EvalErrorKind::exposed`] contains values of the evaluated data.
    pub fn has_values(&self) -> bool {
        match self {
            EvalErrorKind::NoSuchKey(operand)
            | EvalErrorKind::IndexOutOfBounds(operand)
            | EvalErrorKind::InvalidIndex(operand) => {
                matches!(operand, Operand::Computed(_))
            }
            EvalErrorKind::InvalidArgument { .. }
            | EvalErrorKind::Claim { error: ClaimError::OutOfRange(_), .. } => true,
            EvalErrorKind::NoSuchOverload { .. }
            | EvalErrorKind::NoSuchOperand { .. }
            | EvalErrorKind::IndexType { .. }
            | EvalErrorKind::NoSuchAttribute(_)
            | EvalErrorKind::DivisionByZero
            | EvalErrorKind::ModulusByZero
            | EvalErrorKind::IntOverflow
            | EvalErrorKind::UintOverflow
            | EvalErrorKind::TimestampOverflow
            | EvalErrorKind::NoValue
            | EvalErrorKind::Conversion { .. }
            | EvalErrorKind::NotIterable { .. }
            | EvalErrorKind::Misuse(_)
            | EvalErrorKind::Claim { .. }
            | EvalErrorKind::Limit(_)
            | EvalErrorKind::Internal(_) => false,
        }
    }

    /// Whether [`EvalErrorKind::exposed`] is the message of an error that cel-go or Kubernetes has as well.
    pub fn is_upstream(&self) -> bool {
        match self {
            EvalErrorKind::Misuse(Misuse::PatternTooLong) | EvalErrorKind::Internal(_) => false,
            // Go words each defect of an address differently.
            EvalErrorKind::InvalidArgument { argument, .. } => {
                !matches!(argument, InvalidArgument::IpAddress | InvalidArgument::Cidr)
            }
            EvalErrorKind::Claim { error, .. } => matches!(error, ClaimError::OutOfRange(_)),
            EvalErrorKind::Limit(limit) => match limit {
                Limit::Cost => true,
                // cel-go appends the text of its panic.
                Limit::Memory | Limit::Interrupted | Limit::UpstreamInternal => false,
            },
            _ => true,
        }
    }

    /// Whether the evaluator itself failed.
    pub fn is_internal(&self) -> bool {
        matches!(self, EvalErrorKind::Internal(_))
    }
}

const NUMBERS: &str = "claim numbers are doubles: write 1.0, or convert with int(…)";

/// Without the values of the evaluated data.
impl fmt::Display for EvalErrorKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Message { kind: self, values: Values::Redacted }.fmt(out)
    }
}

struct Message<'k> {
    kind: &'k EvalErrorKind,
    values: Values,
}

impl Message<'_> {
    fn operand<'o>(&self, operand: &'o Operand) -> &'o dyn fmt::Display {
        match (operand, self.values) {
            (Operand::Computed(text), Values::Exposed) => &text.0,
            (operand, _) => operand,
        }
    }
}

impl fmt::Display for Message<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            EvalErrorKind::NoSuchOverload { function, arguments } if function.is_empty() => {
                write!(out, "no such overload{arguments}")
            }
            EvalErrorKind::NoSuchOverload { function, arguments } => {
                write!(out, "no such overload: {function}{arguments}")
            }
            EvalErrorKind::NoSuchOperand { .. } => out.write_str("no such overload"),
            EvalErrorKind::NoSuchKey(key) => write!(out, "no such key: {}", self.operand(key)),
            EvalErrorKind::IndexOutOfBounds(index) => {
                write!(out, "index out of bounds: {}", self.operand(index))
            }
            EvalErrorKind::IndexType { type_name } => {
                write!(out, "unsupported index type '{type_name}' in list")
            }
            EvalErrorKind::InvalidIndex(index) => {
                write!(out, "unsupported index value {} in list", self.operand(index))
            }
            EvalErrorKind::NoSuchAttribute(name) => write!(out, "no such attribute(s): {name}"),
            EvalErrorKind::DivisionByZero => out.write_str("division by zero"),
            EvalErrorKind::ModulusByZero => out.write_str("modulus by zero"),
            EvalErrorKind::IntOverflow => out.write_str("integer overflow"),
            EvalErrorKind::UintOverflow => out.write_str("unsigned integer overflow"),
            EvalErrorKind::TimestampOverflow => out.write_str("timestamp overflow"),
            EvalErrorKind::NoValue => out.write_str("optional.none() dereference"),
            EvalErrorKind::Conversion { to } => {
                write!(out, "type conversion error from 'string' to '{to}'")
            }
            EvalErrorKind::NotIterable { go_type: "" } => out.write_str("value is not iterable"),
            EvalErrorKind::NotIterable { go_type } => {
                write!(out, "got '{go_type}', expected iterable type")
            }
            EvalErrorKind::Misuse(misuse) => out.write_str(misuse.message()),
            EvalErrorKind::InvalidArgument { message, .. } if self.values == Values::Exposed => {
                out.write_str(message.expose())
            }
            EvalErrorKind::InvalidArgument { argument, .. } => out.write_str(argument.description()),
            EvalErrorKind::Claim { claim, error } => self.claim(out, claim, error),
            EvalErrorKind::Limit(limit) => out.write_str(limit.message()),
            EvalErrorKind::Internal(fault) => write!(out, "internal fault of the evaluator: {fault}"),
        }
    }
}

impl Message<'_> {
    fn claim(&self, out: &mut fmt::Formatter<'_>, claim: &str, error: &ClaimError) -> fmt::Result {
        match error {
            ClaimError::OutOfRange(number) => {
                let number: &dyn fmt::Display =
                    if self.values == Values::Exposed { &number.0 } else { number };
                write!(
                    out,
                    "claim {claim:?} failed to unmarshal: json: cannot unmarshal number {number} into Go value of type \
                     float64"
                )
            }
            ClaimError::TooDeep => write!(out, "claim {claim:?} is nested too deeply"),
            ClaimError::Pending => write!(out, "distributed claim {claim:?} has not been fetched"),
            ClaimError::Unavailable(why) => out.write_str(why),
        }
    }
}

impl Misuse {
    /// The message of cel-go where it has one.
    pub fn message(self) -> &'static str {
        match self {
            Misuse::NotOrdered => "NaN values cannot be ordered",
            Misuse::GreatestOfNan => "NaN values cannot be ordered: math.@max",
            Misuse::LeastOfNan => "NaN values cannot be ordered: math.@min",
            Misuse::NotIterableInPairs => "unsupported comprehension range type",
            Misuse::QualifierType => "invalid qualifier type",
            Misuse::KeyType => "unsupported key type",
            Misuse::RepeatedKey => "Failed with repeated key",
            Misuse::ExistingKey => "insert failed: key already exists",
            Misuse::NotOptionalElement => "cannot initialize optional list element from non-optional value",
            Misuse::NotOptionalEntry => "cannot initialize optional entry from non-optional value",
            Misuse::NotOptional => "value is not optional",
            Misuse::PatternTooLong => "the pattern is too long",
            Misuse::SortKeyCount => "@sortByAssociatedKeys() expected a list of the same size as the keys",
            Misuse::NotComparable => "list elements must be comparable",
            Misuse::MixedTypes => "list elements must have the same type",
            Misuse::MinOfEmptyList => "min called on empty list",
            Misuse::MaxOfEmptyList => "max called on empty list",
            Misuse::EmptyArguments => "argument must not be empty",
            Misuse::NotText => "invalid UTF-8 in bytes, cannot convert to string",
            Misuse::FieldType => "field type conversion error",
            Misuse::Nanoseconds => "invalid nanos",
            Misuse::MessageValue => "unsupported conversion to a value",
            Misuse::UserLiteral => "unknown type 'kubernetes.UserInfo'",
        }
    }
}

impl InvalidArgument {
    /// What is wrong, without the argument.
    pub fn description(self) -> &'static str {
        match self {
            InvalidArgument::Pattern => "invalid regular expression",
            InvalidArgument::TimeZone => "unknown time zone",
            InvalidArgument::IpAddress => "invalid IP address",
            InvalidArgument::Cidr => "invalid CIDR",
            InvalidArgument::Url => "invalid URL",
            InvalidArgument::Version => "invalid semantic version",
            InvalidArgument::Quantity => "invalid quantity",
            InvalidArgument::Base64 => "invalid base64",
            InvalidArgument::Format => "the format string does not fit its arguments",
            InvalidArgument::Position => "position out of range in a string",
            InvalidArgument::Slice => "position out of range in a list",
            InvalidArgument::RangeSize => "the size of a range is out of range",
            InvalidArgument::FlattenLevel => "the level of flatten is negative",
            InvalidArgument::ShiftOffset => "the offset of a shift is negative",
        }
    }
}

impl Limit {
    fn message(self) -> &'static str {
        match self {
            Limit::Cost => "operation cancelled: actual cost limit exceeded",
            Limit::Memory => "operation cancelled: memory limit exceeded",
            Limit::UpstreamInternal => "internal error",
            Limit::Interrupted => "operation interrupted",
        }
    }
}
