//! Equality and order, across the numeric types.

use super::{List, Map, Val};
use crate::number::Number;
use crate::opaque::Opaque;
use std::cmp::Ordering;

fn number(val: Val<'_>) -> Option<Number> {
    match val {
        Val::Int(value) => Some(Number::Int(value)),
        Val::Uint(value) => Some(Number::Uint(value)),
        Val::Double(value) => Some(Number::Double(value)),
        _ => None,
    }
}

/// `left == right`. Values of different types are unequal, except that numbers compare by value.
pub(crate) fn equal(left: Val<'_>, right: Val<'_>) -> bool {
    match (left, right) {
        (Val::Str(left), Val::Str(right)) => left == right,
        (Val::Bool(left), Val::Bool(right)) => left == right,
        (Val::Int(left), Val::Int(right)) => left == right,
        (Val::Uint(left), Val::Uint(right)) => left == right,
        (Val::Null, Val::Null) => true,
        (Val::Bytes(left), Val::Bytes(right)) => left == right,
        (Val::List(left), Val::List(right)) => equal_lists(left, right),
        (Val::Map(left), Val::Map(right)) => equal_maps(left, right),
        (Val::Duration(left), Val::Duration(right)) => left == right,
        (Val::Timestamp(left), Val::Timestamp(right)) => left == right,
        (Val::Type(left), Val::Type(right)) => left == right,
        (Val::Optional(None), Val::Optional(None)) => true,
        (Val::Optional(Some(left)), Val::Optional(Some(right))) => equal(*left, *right),
        (Val::Opaque(left), Val::Opaque(right)) => left.equals(right),
        (Val::Object(left), Val::Object(right)) => std::ptr::eq(left, right),
        (Val::Claims(left), Val::Claims(right)) => left.is(&right),
        _ => match (number(left), number(right)) {
            (Some(left), Some(right)) => left.equals(right),
            _ => false,
        },
    }
}

/// `left == right` as Kubernetes answers it: `None` is an error. Its own types cannot be compared with others,
/// nor with a quantity that was computed; inside lists and maps such a pair passes for equal.
pub(crate) fn equal_or_error(left: Val<'_>, right: Val<'_>) -> Option<bool> {
    match (left, right) {
        (Val::Null, _) | (_, Val::Null) => Some(equal(left, right)),
        (Val::Opaque(Opaque::Quantity(..)), Val::Opaque(Opaque::Quantity(_, true))) => None,
        (Val::Opaque(left_opaque), Val::Opaque(right_opaque))
            if std::mem::discriminant(left_opaque) == std::mem::discriminant(right_opaque) =>
        {
            Some(left_opaque.equals(right_opaque))
        }
        (Val::Claims(_), Val::Claims(_)) | (Val::Object(_), Val::Object(_)) => Some(equal(left, right)),
        (Val::Opaque(_) | Val::Claims(_) | Val::Object(_), _) => None,
        (Val::Optional(Some(left)), Val::Optional(Some(right))) => equal_or_error(*left, *right),
        (Val::List(left), Val::List(right)) => {
            let same = |(left, right)| equal_or_error(left, right) != Some(false);
            Some(left.len() == right.len() && left.iter().zip(right.iter()).all(same))
        }
        (Val::Map(left), Val::Map(right)) => {
            let same = |(key, value): (Val<'_>, Val<'_>)| {
                right.find(key).is_some_and(|other| equal_or_error(value, other) != Some(false))
            };
            Some(left.len() == right.len() && left.iter().all(same))
        }
        _ => Some(equal(left, right)),
    }
}

fn equal_lists(left: List<'_>, right: List<'_>) -> bool {
    left.len() == right.len() && left.iter().zip(right.iter()).all(|(left, right)| equal(left, right))
}

fn equal_maps(left: Map<'_>, right: Map<'_>) -> bool {
    left.len() == right.len()
        && left.iter().all(|(key, value)| right.find(key).is_some_and(|other| equal(value, other)))
}

/// The order of two values, if their types have one; `None` also for NaN.
pub(crate) fn compare(left: Val<'_>, right: Val<'_>) -> Option<Ordering> {
    match (left, right) {
        (Val::Str(left), Val::Str(right)) => Some(left.cmp(right)),
        (Val::Bool(left), Val::Bool(right)) => Some(left.cmp(&right)),
        (Val::Bytes(left), Val::Bytes(right)) => Some(left.cmp(right)),
        (Val::Duration(left), Val::Duration(right)) => Some(left.cmp(&right)),
        (Val::Timestamp(left), Val::Timestamp(right)) => Some(left.cmp(&right)),
        _ => number(left)?.compare(number(right)?),
    }
}

/// Whether two map keys are the same key when a map is built: same type, same value.
pub(super) fn same_key(left: Val<'_>, right: Val<'_>) -> bool {
    match (left, right) {
        (Val::Double(left), Val::Double(right)) => left == right,
        (Val::Int(_) | Val::Uint(_) | Val::Double(_), Val::Int(_) | Val::Uint(_) | Val::Double(_)) => {
            std::mem::discriminant(&left) == std::mem::discriminant(&right) && equal(left, right)
        }
        _ => equal(left, right),
    }
}

/// Whether a map finds one key by the other.
pub(crate) fn key_equal(left: Val<'_>, right: Val<'_>) -> bool {
    equal(left, right)
}

/// Some total order of keys in which numerically equal keys stand together.
pub(super) fn compare_keys(left: Val<'_>, right: Val<'_>) -> Ordering {
    fn rank(val: Val<'_>) -> u8 {
        match val {
            Val::Bool(_) => 0,
            Val::Int(_) | Val::Uint(_) | Val::Double(_) => 1,
            Val::Str(_) => 2,
            _ => 3,
        }
    }
    let by_kind = rank(left).cmp(&rank(right));
    by_kind.then_with(|| match compare(left, right) {
        Some(order) => order,
        // NaN goes last; it equals nothing, so its place does not matter.
        None => {
            let nan = |val: Val<'_>| matches!(val, Val::Double(value) if value.is_nan());
            nan(left).cmp(&nan(right))
        }
    })
}
