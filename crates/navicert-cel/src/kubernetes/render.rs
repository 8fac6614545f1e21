//! Renders results as JSON: a type name and a value.

use crate::instant::Timestamp;
use crate::number::DoubleText;
use crate::opaque::Opaque;
use crate::value::{Map, ValueRef};
use serde_json::{Map as JsonMap, Value as Json, json};

/// The type name of a value, shortened for four types.
pub fn type_name(val: &ValueRef<'_>) -> String {
    match val.type_name() {
        "null_type" => "null",
        "google.protobuf.Duration" => "duration",
        "google.protobuf.Timestamp" => "timestamp",
        "optional_type" => "optional",
        other => other,
    }
    .to_owned()
}

/// Renders a result. Returns `None` for values without a JSON form, such as `claims`.
pub fn value(val: &ValueRef<'_>) -> Option<Json> {
    Some(match val {
        ValueRef::Bytes(bytes) => Json::String(base64(bytes)),
        ValueRef::Type(name) => json!(name),
        ValueRef::Opaque(opaque) if opaque.has_text() => Json::String(opaque.to_string()),
        ValueRef::Opaque(_) | ValueRef::Object(_) | ValueRef::Claims(_) => return None,
        other => nested(other),
    })
}

/// Renders a nested value.
fn nested(val: &ValueRef<'_>) -> Json {
    match val {
        ValueRef::Null => Json::Null,
        ValueRef::Bool(value) => json!(value),
        ValueRef::Int(value) => json!(value),
        ValueRef::Uint(value) => json!(value),
        ValueRef::Double(value) => double(*value),
        ValueRef::Str(text) => json!(text),
        ValueRef::Bytes(bytes) => json!({ "base64": base64(bytes) }),
        ValueRef::List(list) => list.iter().map(|item| nested(&item)).collect(),
        ValueRef::Map(map) => {
            // Kubernetes looks each key up, and NaN is not found.
            let is_nan = |key: &ValueRef<'_>| matches!(key, ValueRef::Double(number) if number.is_nan());
            let entries = map.iter().map(|(key, value)| {
                let shown = if is_nan(&key) { Json::Null } else { nested(&value) };
                (key_text(&key), shown)
            });
            Json::Object(entries.collect::<JsonMap<_, _>>())
        }
        ValueRef::Duration(nanoseconds) => Json::String(duration(*nanoseconds)),
        ValueRef::Timestamp(at) => Json::String(timestamp(*at)),
        ValueRef::Type(name) => json!({ "type": name }),
        ValueRef::Optional(content) => {
            let content: Vec<Json> = content.iter().map(|content| nested(content)).collect();
            json!({ "optional": content })
        }
        ValueRef::Opaque(opaque) if opaque.has_text() => Json::String(opaque.to_string()),
        ValueRef::Opaque(_) | ValueRef::Object(_) | ValueRef::Claims(_) => Json::Null,
    }
}

fn double(value: f64) -> Json {
    if value.is_nan() {
        return json!("NaN");
    }
    if value.is_infinite() {
        return json!(if value > 0.0 { "+Inf" } else { "-Inf" });
    }
    json!(value)
}

fn key_text(key: &ValueRef<'_>) -> String {
    match key {
        ValueRef::Str(text) => (*text).to_owned(),
        ValueRef::Int(value) => format!("int({value})"),
        ValueRef::Uint(value) => format!("uint({value})"),
        ValueRef::Bool(value) => format!("bool({value})"),
        ValueRef::Double(value) => format!("double({})", DoubleText(*value)),
        other => format!("{}({})", type_name(other), plain_text(other)),
    }
}

/// Formats an unusual map key as Go's `%v` does.
fn plain_text(val: &ValueRef<'_>) -> String {
    match val {
        ValueRef::List(list) => {
            let items: Vec<String> = list.iter().map(|item| nested_text(&item)).collect();
            format!("[{}]", items.join(" "))
        }
        ValueRef::Map(map) => {
            let mut entries: Vec<(String, String)> =
                map.iter().map(|(key, value)| (plain_text(&key), nested_text(&value))).collect();
            entries.sort_unstable();
            let entries: Vec<String> =
                entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("map[{}]", entries.join(" "))
        }
        ValueRef::Null => "NULL_VALUE".to_owned(),
        ValueRef::Str(text) | ValueRef::Type(text) => (*text).to_owned(),
        ValueRef::Double(value) => DoubleText(*value).to_string(),
        ValueRef::Timestamp(at) => timestamp(*at).replace('T', " ").replace('Z', " +0000 UTC"),
        ValueRef::Claims(_) | ValueRef::Object(_) => "no such overload".to_owned(),
        ValueRef::Duration(nanoseconds) => units(*nanoseconds),
        ValueRef::Optional(Some(content)) => plain_text(content),
        ValueRef::Optional(None) => "<nil>".to_owned(),
        ValueRef::Opaque(Opaque::Empty) => String::new(),
        other => match nested(other) {
            Json::String(text) => text,
            json => json.to_string(),
        },
    }
}

/// Formats a value inside a key; a map built by the expression is formatted as in CEL.
fn nested_text(val: &ValueRef<'_>) -> String {
    match val {
        ValueRef::Map(map @ (Map::Pairs(_) | Map::Values(_))) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", plain_text(&key), nested_text(&value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        other => plain_text(other),
    }
}

/// Formats a duration as Go does: hours, minutes and seconds, or a smaller unit below one second.
fn units(nanoseconds: i64) -> String {
    let magnitude = nanoseconds.unsigned_abs();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let (unit, name) = match magnitude {
        0 => return "0s".to_owned(),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => {
            let (minutes, rest) = (magnitude / 60_000_000_000, magnitude % 60_000_000_000);
            let seconds = scaled(rest, 1_000_000_000);
            return match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            };
        }
    };
    format!("{sign}{}{name}", scaled(magnitude, unit))
}

/// `value / unit` with the shortest fraction; `unit` is a power of ten.
fn scaled(value: u64, unit: u64) -> String {
    let (whole, fraction) = (value / unit, value % unit);
    if fraction == 0 {
        return whole.to_string();
    }
    let digits = format!("{:0width$}", fraction, width = unit.ilog10() as usize);
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

/// Formats a duration as decimal seconds with the shortest fraction.
fn duration(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    format!("{sign}{}s", scaled(nanoseconds.unsigned_abs(), 1_000_000_000))
}

/// Formats a timestamp as RFC 3339 in UTC with the shortest fraction.
fn timestamp(at: Timestamp) -> String {
    Timestamp::new(at.seconds(), at.nanos()).map_or_else(String::new, |at| at.to_string())
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Standard base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0_u8; 3];
        for (slot, byte) in group.iter_mut().zip(chunk) {
            *slot = *byte;
        }
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for position in 0..4_usize {
            if position <= chunk.len() {
                let index = (bits >> (18 - 6 * position)) & 63;
                text.push(DIGITS.get(index as usize).copied().map_or('=', char::from));
            } else {
                text.push('=');
            }
        }
    }
    text
}
