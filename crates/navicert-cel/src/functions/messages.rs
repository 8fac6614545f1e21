//! The well-known protobuf messages that expressions can construct; their literals evaluate to plain CEL values.

use super::{ARENA_FULL, FunctionResult, json_values};
use crate::error::Misuse;
use crate::fault::Cause;
use crate::instant::Timestamp;
use crate::opaque::Opaque;
use crate::value::{Arena, List, ValueRef};

/// Type of a user in Kubernetes' environments, which expressions cannot construct.
pub(crate) const USER_TYPE: &str = "kubernetes.UserInfo";

/// Name, fields with their types, and the type of a literal.
type Message = (&'static str, &'static [(&'static str, &'static str)], &'static str);

/// All messages.
pub(crate) const MESSAGES: &[Message] = &[
    ("google.protobuf.Timestamp", &[("seconds", "int"), ("nanos", "int")], "timestamp"),
    ("google.protobuf.Duration", &[("seconds", "int"), ("nanos", "int")], "duration"),
    ("google.protobuf.BoolValue", &[("value", "bool")], "wrapper(bool)"),
    ("google.protobuf.BytesValue", &[("value", "bytes")], "wrapper(bytes)"),
    ("google.protobuf.DoubleValue", &[("value", "double")], "wrapper(double)"),
    ("google.protobuf.FloatValue", &[("value", "double")], "wrapper(double)"),
    ("google.protobuf.Int32Value", &[("value", "int")], "wrapper(int)"),
    ("google.protobuf.Int64Value", &[("value", "int")], "wrapper(int)"),
    ("google.protobuf.StringValue", &[("value", "string")], "wrapper(string)"),
    ("google.protobuf.UInt32Value", &[("value", "uint")], "wrapper(uint)"),
    ("google.protobuf.UInt64Value", &[("value", "uint")], "wrapper(uint)"),
    ("google.protobuf.Struct", &[("fields", "map(string, dyn)")], "map(string, dyn)"),
    ("google.protobuf.ListValue", &[("values", "list(dyn)")], "list(dyn)"),
    (
        "google.protobuf.Value",
        &[
            ("null_value", "int"),
            ("number_value", "double"),
            ("string_value", "string"),
            ("bool_value", "bool"),
            ("struct_value", "map(string, dyn)"),
            ("list_value", "list(dyn)"),
        ],
        "dyn",
    ),
    ("google.protobuf.Any", &[("type_url", "string"), ("value", "bytes")], "any"),
    ("google.protobuf.Empty", &[], "google.protobuf.Empty"),
];

/// The constant of the only well-known enumeration; it is an int.
pub(crate) const NULL_VALUE: &str = "google.protobuf.NullValue.NULL_VALUE";

/// The type name that a type value displays.
pub(crate) fn value_type(name: &str) -> &str {
    name
}

/// Whether the name of a message is also a value in Kubernetes' environments.
pub(crate) fn has_type_value(name: &str) -> bool {
    matches!(name, "google.protobuf.Timestamp" | "google.protobuf.Duration" | "google.protobuf.Empty")
}

/// Constructs the value of a message literal.
pub(crate) fn build<'a>(
    arena: &'a Arena,
    name: &str,
    fields: &[(&'a str, ValueRef<'a>)],
) -> FunctionResult<'a> {
    let collection = |wanted: &str| fields.iter().find(|field| field.0 == wanted).map(|field| field.1);
    // A field that holds one value takes it out of an optional; a list or a map does not.
    let field = |wanted: &str| collection(wanted).map(content);
    const FIELD_TYPE: Cause<'static> = Cause::Misuse(Misuse::FieldType);
    let int = |wanted: &str| match field(wanted) {
        None => Ok(0),
        Some(ValueRef::Int(value)) => Ok(value),
        Some(_) => Err(FIELD_TYPE),
    };
    // A field of type `dyn` may hold any value.
    let value = |default: ValueRef<'a>| match field("value") {
        None => Ok(default),
        Some(val) if val.type_name() == default.type_name() => Ok(val),
        Some(_) => Err(FIELD_TYPE),
    };
    let short = name.strip_prefix("google.protobuf.").unwrap_or(name);
    match short {
        "Timestamp" => {
            let nanos = nanos(int("nanos")?)?;
            let carry = i64::from(nanos.div_euclid(1_000_000_000));
            let below = nanos.rem_euclid(1_000_000_000).unsigned_abs();
            let seconds = int("seconds")?.checked_add(carry).ok_or(Cause::TimestampOverflow)?;
            Timestamp::new(seconds, below).map(ValueRef::Timestamp).ok_or(Cause::TimestampOverflow)
        }
        "Duration" => {
            let (seconds, nanos) = (int("seconds")?, i64::from(nanos(int("nanos")?)?));
            let total = seconds.checked_mul(1_000_000_000).and_then(|total| total.checked_add(nanos));
            // Kubernetes takes the longest duration for one that is too long.
            Ok(ValueRef::Duration(total.unwrap_or(if seconds < 0 { i64::MIN } else { i64::MAX })))
        }
        "BoolValue" => value(ValueRef::Bool(false)),
        "BytesValue" => value(ValueRef::Bytes(&[])),
        "DoubleValue" => value(ValueRef::Double(0.0)),
        "FloatValue" => Ok(match value(ValueRef::Double(0.0))? {
            ValueRef::Double(wide) => ValueRef::Double(single_precision(wide)),
            other => other,
        }),
        "Int32Value" => match field("value") {
            Some(ValueRef::Int(wide)) if i32::try_from(wide).is_err() => Err(Cause::IntOverflow),
            _ => value(ValueRef::Int(0)),
        },
        "Int64Value" => value(ValueRef::Int(0)),
        "StringValue" => value(ValueRef::Str("")),
        "UInt32Value" => match field("value") {
            Some(ValueRef::Uint(wide)) if u32::try_from(wide).is_err() => Err(Cause::UintOverflow),
            _ => value(ValueRef::Uint(0)),
        },
        "UInt64Value" => value(ValueRef::Uint(0)),
        "Struct" => match collection("fields") {
            Some(ValueRef::Map(entries)) => json_values::map(arena, entries),
            Some(_) => Err(FIELD_TYPE),
            None => json_values::pairs(arena, &[]),
        },
        "ListValue" => match collection("values") {
            None => Ok(ValueRef::List(List::Refs(&[]))),
            Some(ValueRef::List(items)) => json_values::list(arena, items),
            Some(_) => Err(FIELD_TYPE),
        },
        // The fields are alternatives: the last one counts, and all have to have the right type.
        "Value" => fields.iter().try_fold(ValueRef::Null, |_, (name, val)| alternative(arena, name, *val)),
        "Empty" => arena.opaque(Opaque::Empty).map(ValueRef::Opaque).ok_or(ARENA_FULL),
        USER_TYPE => Err(Cause::Misuse(Misuse::UserLiteral)),
        _ => Err(Cause::Misuse(Misuse::MessageValue)),
    }
}

/// The value of `google.protobuf.Value` by one of its fields.
fn alternative<'a>(arena: &'a Arena, name: &str, val: ValueRef<'a>) -> FunctionResult<'a> {
    match (name, content(val)) {
        ("null_value", ValueRef::Int(number)) => {
            i32::try_from(number).map(|_| ValueRef::Null).map_err(|_| Cause::IntOverflow)
        }
        ("number_value", val @ ValueRef::Double(_))
        | ("string_value", val @ ValueRef::Str(_))
        | ("bool_value", val @ ValueRef::Bool(_)) => Ok(val),
        ("struct_value", ValueRef::Map(entries)) => json_values::map(arena, entries),
        ("list_value", ValueRef::List(items)) => json_values::list(arena, items),
        _ => Err(Cause::Misuse(Misuse::FieldType)),
    }
}

/// What optionals contain, and any other value as it is.
pub(super) fn content(val: ValueRef<'_>) -> ValueRef<'_> {
    match val {
        ValueRef::Optional(Some(inner)) => content(*inner),
        other => other,
    }
}

/// The field `nanos` of a timestamp or a duration, which has 32 bits.
fn nanos<'a>(value: i64) -> Result<i32, Cause<'a>> {
    i32::try_from(value).map_err(|_| Cause::Misuse(Misuse::Nanoseconds))
}

/// The nearest number of single precision, or infinity.
#[expect(clippy::cast_possible_truncation, reason = "the loss of precision is the purpose")]
fn single_precision(wide: f64) -> f64 {
    f64::from(wide as f32)
}
