//! Parses the values of the conformance suite, and compares them with navicert-cel's.

use navicert_cel::{Timestamp, Value, ValueMap, ValueRef};
use serde_json::Value as Json;

/// A value written as `{"int": "1"}`.
pub fn read(json: &Json) -> Option<Value> {
    let (kind, inner) = json.as_object()?.iter().next()?;
    let text = || inner.as_str();
    Some(match kind.as_str() {
        "null" => Value::Null,
        "bool" => Value::Bool(inner.as_bool()?),
        "int" => Value::Int(text()?.parse().ok()?),
        "uint" => Value::Uint(text()?.parse().ok()?),
        "double" => Value::Double(read_double(text()?)?),
        "string" => Value::String(text()?.into()),
        "bytes" => Value::Bytes(base64(text()?)?.into()),
        "list" => Value::List(inner.as_array()?.iter().map(read).collect::<Option<_>>()?),
        "map" => {
            let mut entries = Vec::new();
            for entry in inner.as_array()? {
                entries.push((read(entry.get(0)?)?, read(entry.get(1)?)?));
            }
            Value::Map(ValueMap::new(entries))
        }
        "type" => Value::Type(text()?.into()),
        "timestamp" => {
            let (seconds, nanos) = read_time(inner)?;
            Value::Timestamp(Timestamp::new(seconds, u32::try_from(nanos).ok()?)?)
        }
        "duration" => {
            let (seconds, nanos) = read_time(inner)?;
            Value::Duration(seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?)
        }
        "optional" => match inner {
            Json::Null => Value::Optional(None),
            content => Value::Optional(Some(Box::new(read(content)?))),
        },
        _ => return None,
    })
}

fn read_time(json: &Json) -> Option<(i64, i64)> {
    let seconds = json.get("seconds")?.as_str()?.parse().ok()?;
    Some((seconds, json.get("nanos")?.as_i64()?))
}

fn read_double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" | "+Inf" => Some(f64::INFINITY),
        "-Infinity" | "-Inf" => Some(f64::NEG_INFINITY),
        other => other.parse().ok(),
    }
}

/// Standard base64, padding optional.
pub fn base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut bits, mut held) = (0_u32, 0_u32);
    for byte in text.trim_end_matches('=').bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from((bits >> held) & 0xff).ok()?);
        }
    }
    Some(out)
}

/// Whether our value is the recorded one. Opaque values compare by the text form at the end of the record.
pub fn agrees(val: &ValueRef<'_>, expected: &Json) -> bool {
    let Some((kind, inner)) = expected.as_object().and_then(|object| object.iter().next()) else {
        return false;
    };
    match (kind.as_str(), val) {
        ("opaque", _) => opaque_agrees(val, inner.as_str().unwrap_or("")),
        ("optional", ValueRef::Optional(content)) => match (content, inner) {
            (None, Json::Null) => true,
            (Some(content), inner) if !inner.is_null() => agrees(content, inner),
            _ => false,
        },
        ("list", ValueRef::List(list)) => {
            let expected = inner.as_array().map_or(&[][..], |items| items);
            list.len() == expected.len()
                && list.iter().zip(expected).all(|(val, expected)| agrees(&val, expected))
        }
        ("map", ValueRef::Map(map)) => {
            let expected = inner.as_array().map_or(&[][..], |items| items);
            let found = |key: &ValueRef<'_>, value: &ValueRef<'_>| {
                expected.iter().any(|entry| {
                    entry.get(0).is_some_and(|expected| agrees(key, expected))
                        && entry.get(1).is_some_and(|expected| agrees(value, expected))
                })
            };
            map.len() == expected.len() && map.iter().all(|(key, value)| found(&key, &value))
        }
        _ => match read(expected) {
            Some(expected) => same(val, &expected.as_val()),
            None => false,
        },
    }
}

/// Same kind and same value; NaN equals NaN.
fn same(left: &ValueRef<'_>, right: &ValueRef<'_>) -> bool {
    match (left, right) {
        (ValueRef::Null, ValueRef::Null) => true,
        (ValueRef::Bool(left), ValueRef::Bool(right)) => left == right,
        (ValueRef::Int(left), ValueRef::Int(right)) => left == right,
        (ValueRef::Uint(left), ValueRef::Uint(right)) => left == right,
        (ValueRef::Double(left), ValueRef::Double(right)) => {
            left == right || (left.is_nan() && right.is_nan())
        }
        (ValueRef::Str(left), ValueRef::Str(right)) => left == right,
        (ValueRef::Bytes(left), ValueRef::Bytes(right)) => left == right,
        (ValueRef::Duration(left), ValueRef::Duration(right)) => left == right,
        (ValueRef::Timestamp(left), ValueRef::Timestamp(right)) => left == right,
        (ValueRef::Type(left), ValueRef::Type(right)) => left == right,
        _ => false,
    }
}

/// The record names the Go type and prints the value; the text of the value must be equal.
fn opaque_agrees(val: &ValueRef<'_>, record: &str) -> bool {
    match val {
        ValueRef::Opaque(opaque) => {
            let text = opaque.to_string();
            record.ends_with(&text)
                || record.contains(&format!("{text} "))
                || record.contains(&format!("{text}}}"))
        }
        _ => false,
    }
}
