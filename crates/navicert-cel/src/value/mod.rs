//! Values: [`Val`] is what evaluation passes around, small, copied freely and borrowing everything large;
//! [`Value`] owns its contents, for constants and for results that outlive an evaluation.

mod arena;
mod claims;
mod collection;
mod compare;
mod marked;
mod owned;

pub use arena::Arena;
pub use claims::{ClaimSet, Claims, unescape};
pub use collection::{List, Map, Object, Pairs, Reading};
pub(crate) use compare::{compare, equal, equal_or_error, key_equal};
pub(crate) use marked::{Marked, mark};
pub use owned::{Value, ValueMap};

use crate::instant::Timestamp;
use crate::opaque::Opaque;

/// A value during evaluation.
#[derive(Debug, Clone, Copy)]
pub enum Val<'a> {
    /// `null`
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed 64-bit number.
    Int(i64),
    /// An unsigned 64-bit number.
    Uint(u64),
    /// A double.
    Double(f64),
    /// Text.
    Str(&'a str),
    /// A byte string.
    Bytes(&'a [u8]),
    /// A list.
    List(List<'a>),
    /// A map.
    Map(Map<'a>),
    /// A length of time in nanoseconds.
    Duration(i64),
    /// A point in time.
    Timestamp(Timestamp),
    /// A type, by its name.
    Type(&'a str),
    /// An optional value.
    Optional(Option<&'a Val<'a>>),
    /// A value of one of the Kubernetes types: quantity, URL, address…
    Opaque(&'a Opaque),
    /// A value with declared fields.
    Object(&'a Object<'a>),
    /// The claims of a token.
    Claims(Claims<'a>),
}

impl<'a> Val<'a> {
    /// The name of the value's type as CEL spells it.
    pub fn type_name(&self) -> &'a str {
        match self {
            Val::Null => "null_type",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::Uint(_) => "uint",
            Val::Double(_) => "double",
            Val::Str(_) => "string",
            Val::Bytes(_) => "bytes",
            Val::List(_) => "list",
            Val::Map(_) => "map",
            Val::Duration(_) => "google.protobuf.Duration",
            Val::Timestamp(_) => "google.protobuf.Timestamp",
            Val::Type(_) => "type",
            Val::Optional(_) => "optional_type",
            Val::Opaque(opaque) => opaque.type_name(),
            Val::Object(object) => object.type_name,
            Val::Claims(_) => "kubernetes.claims",
        }
    }

    /// The value of a JSON document, read as [`Reading`] says, without copying.
    pub fn from_json(json: &'a serde_json::Value, reading: Reading) -> Self {
        match json {
            serde_json::Value::Null => Val::Null,
            serde_json::Value::Bool(value) => Val::Bool(*value),
            serde_json::Value::Number(number) => json_number(number, reading),
            serde_json::Value::String(text) => Val::Str(text),
            serde_json::Value::Array(items) => Val::List(List::Json(items, reading)),
            serde_json::Value::Object(members) => Val::Map(Map::Json(members, reading)),
        }
    }

    /// Whether the value is what its type starts out as: `0`, `""`, `[]`, `null`…
    pub fn is_zero(&self) -> bool {
        match *self {
            Val::Null => true,
            Val::Bool(value) => !value,
            Val::Int(value) => value == 0,
            Val::Uint(value) => value == 0,
            Val::Double(value) => value == 0.0,
            Val::Str(text) => text.is_empty(),
            Val::Bytes(bytes) => bytes.is_empty(),
            Val::List(list) => list.is_empty(),
            Val::Map(map) => map.is_empty(),
            Val::Duration(nanoseconds) => nanoseconds == 0,
            // The first moment there is.
            Val::Timestamp(at) => at.seconds() == -62_135_596_800 && at.nanos() == 0,
            Val::Type(_) | Val::Opaque(_) | Val::Claims(_) | Val::Object(_) | Val::Optional(_) => false,
        }
    }

    /// An owned copy.
    pub fn to_value(&self) -> Value {
        Value::from(self)
    }
}

fn json_number(number: &serde_json::Number, reading: Reading) -> Val<'static> {
    if !reading.integers {
        return Val::Double(number.as_f64().unwrap_or(f64::NAN));
    }
    if let Some(value) = number.as_i64() {
        return Val::Int(value);
    }
    match number.as_u64() {
        Some(value) => Val::Uint(value),
        None => Val::Double(number.as_f64().unwrap_or(f64::NAN)),
    }
}
