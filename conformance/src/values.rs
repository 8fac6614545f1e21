//! The suite's way of writing values, and comparison with ours.

use navicert_cel::instant::Timestamp;
use navicert_cel::{Val, Value, ValueMap};
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
pub fn agrees(val: &Val<'_>, expected: &Json) -> bool {
    let Some((kind, inner)) = expected.as_object().and_then(|object| object.iter().next()) else {
        return false;
    };
    match (kind.as_str(), val) {
        ("opaque", _) => opaque_agrees(val, inner.as_str().unwrap_or("")),
        ("optional", Val::Optional(content)) => match (content, inner) {
            (None, Json::Null) => true,
            (Some(content), inner) if !inner.is_null() => agrees(content, inner),
            _ => false,
        },
        ("list", Val::List(list)) => {
            let expected = inner.as_array().map_or(&[][..], |items| items);
            list.len() == expected.len()
                && list.iter().zip(expected).all(|(val, expected)| agrees(&val, expected))
        }
        ("map", Val::Map(map)) => {
            let expected = inner.as_array().map_or(&[][..], |items| items);
            let found = |key: &Val<'_>, value: &Val<'_>| {
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
fn same(left: &Val<'_>, right: &Val<'_>) -> bool {
    match (left, right) {
        (Val::Null, Val::Null) => true,
        (Val::Bool(left), Val::Bool(right)) => left == right,
        (Val::Int(left), Val::Int(right)) => left == right,
        (Val::Uint(left), Val::Uint(right)) => left == right,
        (Val::Double(left), Val::Double(right)) => left == right || (left.is_nan() && right.is_nan()),
        (Val::Str(left), Val::Str(right)) => left == right,
        (Val::Bytes(left), Val::Bytes(right)) => left == right,
        (Val::Duration(left), Val::Duration(right)) => left == right,
        (Val::Timestamp(left), Val::Timestamp(right)) => left == right,
        (Val::Type(left), Val::Type(right)) => left == right,
        _ => false,
    }
}

/// The record names the Go type and prints the value; the value's text must be ours.
fn opaque_agrees(val: &Val<'_>, record: &str) -> bool {
    match val {
        Val::Opaque(opaque) => {
            let text = opaque.to_string();
            record.ends_with(&text)
                || record.contains(&format!("{text} "))
                || record.contains(&format!("{text}}}"))
        }
        _ => false,
    }
}
