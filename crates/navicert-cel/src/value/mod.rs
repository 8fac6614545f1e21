//! Values: [`ValueRef`] is a small `Copy` value that borrows its contents during evaluation; [`Value`] owns its contents,
//! for constants and for results that outlive an evaluation.

mod arena;
mod claims;
mod collection;
mod compare;
mod hashed_name;
mod owned;

pub use arena::Arena;
pub(crate) use claims::ClaimFault;
pub use claims::{ClaimSet, Claims, unescape};
pub use collection::{List, Map, Object, Pairs, Reading};
pub(crate) use compare::{compare, equal, equal_or_error, finds_key, number};
pub(crate) use hashed_name::{HashedName, fingerprint};
pub use owned::{Value, ValueMap};

use crate::instant::Timestamp;
use crate::opaque::Opaque;

/// A value during evaluation.
#[derive(Debug, Clone, Copy)]
pub enum ValueRef<'a> {
    /// `null`
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed 64-bit integer.
    Int(i64),
    /// An unsigned 64-bit integer.
    Uint(u64),
    /// A double.
    Double(f64),
    /// A string.
    Str(&'a str),
    /// A byte string.
    Bytes(&'a [u8]),
    /// A list.
    List(List<'a>),
    /// A map.
    Map(Map<'a>),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A timestamp.
    Timestamp(Timestamp),
    /// A type, by its name.
    Type(&'a str),
    /// An optional value.
    Optional(Option<&'a ValueRef<'a>>),
    /// A value of one of the Kubernetes types: quantity, URL, address…
    Opaque(&'a Opaque),
    /// A value with declared fields.
    Object(&'a Object<'a>),
    /// The claims of a token.
    Claims(Claims<'a>),
}

impl<'a> ValueRef<'a> {
    /// The name of the value's type in CEL.
    pub fn type_name(&self) -> &'a str {
        match self {
            ValueRef::Null => "null_type",
            ValueRef::Bool(_) => "bool",
            ValueRef::Int(_) => "int",
            ValueRef::Uint(_) => "uint",
            ValueRef::Double(_) => "double",
            ValueRef::Str(_) => "string",
            ValueRef::Bytes(_) => "bytes",
            ValueRef::List(_) => "list",
            ValueRef::Map(_) => "map",
            ValueRef::Duration(_) => "google.protobuf.Duration",
            ValueRef::Timestamp(_) => "google.protobuf.Timestamp",
            ValueRef::Type(_) => "type",
            ValueRef::Optional(_) => "optional_type",
            ValueRef::Opaque(opaque) => opaque.type_name(),
            ValueRef::Object(object) => object.type_name,
            ValueRef::Claims(_) => "kubernetes.claims",
        }
    }

    /// Wraps a JSON document without copying it.
    pub fn from_json(json: &'a serde_json::Value, reading: Reading) -> Self {
        match json {
            serde_json::Value::Null => ValueRef::Null,
            serde_json::Value::Bool(value) => ValueRef::Bool(*value),
            serde_json::Value::Number(number) => json_number(number, reading),
            serde_json::Value::String(text) => ValueRef::Str(text),
            serde_json::Value::Array(items) => ValueRef::List(List::Json(items, reading)),
            serde_json::Value::Object(members) => ValueRef::Map(Map::Json(members, reading)),
        }
    }

    /// Whether the value is the zero value of its type: `0`, `""`, `[]`, `null`…
    pub fn is_zero(&self) -> bool {
        match *self {
            ValueRef::Null | ValueRef::Opaque(Opaque::Empty) => true,
            ValueRef::Bool(value) => !value,
            ValueRef::Int(value) => value == 0,
            ValueRef::Uint(value) => value == 0,
            ValueRef::Double(value) => value == 0.0,
            ValueRef::Str(text) => text.is_empty(),
            ValueRef::Bytes(bytes) => bytes.is_empty(),
            ValueRef::List(list) => list.is_empty(),
            ValueRef::Map(map) => map.is_empty(),
            ValueRef::Duration(nanoseconds) => nanoseconds == 0,
            // 0001-01-01T00:00:00Z, Go's zero time.
            ValueRef::Timestamp(at) => at.seconds() == -62_135_596_800 && at.nanos() == 0,
            ValueRef::Type(_)
            | ValueRef::Opaque(_)
            | ValueRef::Claims(_)
            | ValueRef::Object(_)
            | ValueRef::Optional(_) => false,
        }
    }

    /// An owned copy.
    pub fn to_value(&self) -> Value {
        Value::from(self)
    }
}

fn json_number(number: &serde_json::Number, reading: Reading) -> ValueRef<'static> {
    if !reading.integers {
        return ValueRef::Double(number.as_f64().unwrap_or(f64::NAN));
    }
    if let Some(value) = number.as_i64() {
        return ValueRef::Int(value);
    }
    match number.as_u64() {
        Some(value) => ValueRef::Uint(value),
        None => ValueRef::Double(number.as_f64().unwrap_or(f64::NAN)),
    }
}
