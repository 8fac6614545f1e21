//! Values as `google.protobuf.Value` holds them: the literals of `Struct`, `ListValue` and `Value` convert what they contain
//! to JSON's types, as cel-go does.

use std::fmt;

use super::messages::content;
use super::{ARENA_FULL, FunctionResult};
use crate::error::Misuse;
use crate::fault::Cause;
use crate::instant::DurationText;
use crate::library::encode;
use crate::opaque::Opaque;
use crate::value::{Arena, List, Map, Pairs, ValueRef};

/// Integers beyond this become strings: a double does not represent all of them.
const MAX_EXACT_INTEGER: u64 = (1 << 53) - 1;

const FIELD_TYPE: Cause<'static> = Cause::Misuse(Misuse::FieldType);

/// Converts a value, with everything that a list or a map contains. Types and values of Kubernetes' types have no form in JSON.
pub(super) fn convert<'a>(arena: &'a Arena, value: ValueRef<'a>) -> FunctionResult<'a> {
    match value {
        ValueRef::Null | ValueRef::Bool(_) | ValueRef::Double(_) | ValueRef::Str(_) => Ok(value),
        ValueRef::Int(number) => integer(arena, number.unsigned_abs(), number < 0),
        ValueRef::Uint(number) => integer(arena, number, false),
        ValueRef::Bytes(bytes) => text(arena, |mut out| encode::write_base64(&mut out, bytes)),
        ValueRef::Duration(nanoseconds) => text(arena, |out| write!(out, "{}", DurationText(nanoseconds))),
        ValueRef::Timestamp(at) => text(arena, |out| write!(out, "{at}")),
        ValueRef::List(items) => list(arena, items),
        ValueRef::Map(entries) => map(arena, entries),
        ValueRef::Optional(Some(content)) => convert(arena, *content),
        ValueRef::Opaque(Opaque::Empty) => pairs(arena, &[]),
        ValueRef::Optional(None)
        | ValueRef::Type(_)
        | ValueRef::Opaque(_)
        | ValueRef::Object(_)
        | ValueRef::Claims(_) => Err(FIELD_TYPE),
    }
}

/// The elements of a list.
pub(super) fn list<'a>(arena: &'a Arena, items: List<'a>) -> FunctionResult<'a> {
    let mut converted = arena.list();
    converted.reserve(items.len()).ok_or(ARENA_FULL)?;
    for item in items.iter() {
        converted.push(convert(arena, item)?).ok_or(ARENA_FULL)?;
    }
    Ok(ValueRef::List(converted.finish()))
}

/// The entries of a map; its keys have to be strings.
pub(super) fn map<'a>(arena: &'a Arena, entries: Map<'a>) -> FunctionResult<'a> {
    let mut converted = Vec::with_capacity(entries.len());
    for (key, value) in entries.iter() {
        let key @ ValueRef::Str(_) = content(key) else { return Err(FIELD_TYPE) };
        converted.push((key, convert(arena, value)?));
    }
    pairs(arena, &converted)
}

/// A map of these entries.
pub(super) fn pairs<'a>(arena: &'a Arena, entries: &[(ValueRef<'a>, ValueRef<'a>)]) -> FunctionResult<'a> {
    Pairs::build(arena, entries).map(|pairs| ValueRef::Map(Map::Pairs(pairs))).ok_or(ARENA_FULL)
}

#[expect(clippy::cast_precision_loss, reason = "integers up to the limit are exact")]
fn integer<'a>(arena: &'a Arena, magnitude: u64, negative: bool) -> FunctionResult<'a> {
    let sign = if negative { "-" } else { "" };
    match magnitude {
        0..=MAX_EXACT_INTEGER if negative => Ok(ValueRef::Double(-(magnitude as f64))),
        0..=MAX_EXACT_INTEGER => Ok(ValueRef::Double(magnitude as f64)),
        _ => text(arena, |out| write!(out, "{sign}{magnitude}")),
    }
}

fn text<'a>(arena: &'a Arena, write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) -> FunctionResult<'a> {
    arena.write(write).map(ValueRef::Str).ok_or(ARENA_FULL)
}
