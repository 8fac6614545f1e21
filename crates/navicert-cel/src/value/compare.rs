//! Equality and ordering, across numeric types.

use super::{List, Map, ValueRef};
use crate::number::Number;
use crate::opaque::Opaque;
use std::cmp::Ordering;

/// The number of a numeric value.
pub(crate) fn number(val: ValueRef<'_>) -> Option<Number> {
    match val {
        ValueRef::Int(value) => Some(Number::Int(value)),
        ValueRef::Uint(value) => Some(Number::Uint(value)),
        ValueRef::Double(value) => Some(Number::Double(value)),
        _ => None,
    }
}

/// `left == right`. Values of different types are unequal, but numbers compare by value across types.
pub(crate) fn equal(left: ValueRef<'_>, right: ValueRef<'_>) -> bool {
    match (left, right) {
        (ValueRef::Str(left), ValueRef::Str(right)) => left == right,
        (ValueRef::Bool(left), ValueRef::Bool(right)) => left == right,
        (ValueRef::Int(left), ValueRef::Int(right)) => left == right,
        (ValueRef::Uint(left), ValueRef::Uint(right)) => left == right,
        (ValueRef::Null, ValueRef::Null) => true,
        (ValueRef::Bytes(left), ValueRef::Bytes(right)) => left == right,
        (ValueRef::List(left), ValueRef::List(right)) => equal_lists(left, right),
        (ValueRef::Map(left), ValueRef::Map(right)) => equal_maps(left, right),
        (ValueRef::Duration(left), ValueRef::Duration(right)) => left == right,
        (ValueRef::Timestamp(left), ValueRef::Timestamp(right)) => left == right,
        (ValueRef::Type(left), ValueRef::Type(right)) => left == right,
        (ValueRef::Optional(None), ValueRef::Optional(None)) => true,
        (ValueRef::Optional(Some(left)), ValueRef::Optional(Some(right))) => equal(*left, *right),
        (ValueRef::Opaque(left), ValueRef::Opaque(right)) => left.equals(right),
        (ValueRef::Object(left), ValueRef::Object(right)) => std::ptr::eq(left, right),
        (ValueRef::Claims(left), ValueRef::Claims(right)) => left.is(&right),
        _ => match (number(left), number(right)) {
            (Some(left), Some(right)) => left.equals(right),
            _ => false,
        },
    }
}

/// `left == right` with the semantics of Kubernetes; `None` is an error. The Kubernetes types cannot be compared
/// with other types or with a computed quantity. Inside lists and maps such a pair counts as equal.
pub(crate) fn equal_or_error(left: ValueRef<'_>, right: ValueRef<'_>) -> Option<bool> {
    match (left, right) {
        (ValueRef::Null, _) | (_, ValueRef::Null) => Some(equal(left, right)),
        (ValueRef::Opaque(Opaque::Quantity(..)), ValueRef::Opaque(Opaque::Quantity(_, true))) => None,
        (ValueRef::Opaque(left_opaque), ValueRef::Opaque(right_opaque))
            if std::mem::discriminant(left_opaque) == std::mem::discriminant(right_opaque) =>
        {
            Some(left_opaque.equals(right_opaque))
        }
        (ValueRef::Claims(_), ValueRef::Claims(_)) | (ValueRef::Object(_), ValueRef::Object(_)) => {
            Some(equal(left, right))
        }
        (ValueRef::Opaque(Opaque::Empty), _) => Some(false),
        (ValueRef::Opaque(_) | ValueRef::Claims(_) | ValueRef::Object(_), _) => None,
        (ValueRef::Optional(Some(left)), ValueRef::Optional(Some(right))) => equal_or_error(*left, *right),
        (ValueRef::List(left), ValueRef::List(right)) => {
            let same = |(left, right)| equal_or_error(left, right) != Some(false);
            Some(left.len() == right.len() && left.iter().zip(right.iter()).all(same))
        }
        (ValueRef::Map(left), ValueRef::Map(right)) => {
            let same = |(key, value): (ValueRef<'_>, ValueRef<'_>)| {
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

/// The order of two values; `None` for unordered types and NaN.
pub(crate) fn compare(left: ValueRef<'_>, right: ValueRef<'_>) -> Option<Ordering> {
    match (left, right) {
        (ValueRef::Str(left), ValueRef::Str(right)) => Some(left.cmp(right)),
        (ValueRef::Bool(left), ValueRef::Bool(right)) => Some(left.cmp(&right)),
        (ValueRef::Bytes(left), ValueRef::Bytes(right)) => Some(left.cmp(right)),
        (ValueRef::Duration(left), ValueRef::Duration(right)) => Some(left.cmp(&right)),
        (ValueRef::Timestamp(left), ValueRef::Timestamp(right)) => Some(left.cmp(&right)),
        _ => number(left)?.compare(number(right)?),
    }
}

/// Whether two keys are duplicates in a map literal: same type and same value.
pub(super) fn same_key(left: ValueRef<'_>, right: ValueRef<'_>) -> bool {
    match (left, right) {
        (ValueRef::Double(left), ValueRef::Double(right)) => left == right,
        (
            ValueRef::Int(_) | ValueRef::Uint(_) | ValueRef::Double(_),
            ValueRef::Int(_) | ValueRef::Uint(_) | ValueRef::Double(_),
        ) => std::mem::discriminant(&left) == std::mem::discriminant(&right) && equal(left, right),
        _ => equal(left, right),
    }
}

/// Whether a lookup of `key` finds `stored`. Numbers are found across types, except that only a `double` finds a
/// `double`.
pub(crate) fn finds_key(stored: ValueRef<'_>, key: ValueRef<'_>) -> bool {
    match (stored, key) {
        (ValueRef::Double(_), ValueRef::Int(_) | ValueRef::Uint(_)) => false,
        _ => equal(stored, key),
    }
}

/// A total order of keys in which numerically equal keys are adjacent.
pub(super) fn compare_keys(left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
    fn rank(val: ValueRef<'_>) -> u8 {
        match val {
            ValueRef::Bool(_) => 0,
            ValueRef::Int(_) | ValueRef::Uint(_) | ValueRef::Double(_) => 1,
            ValueRef::Str(_) => 2,
            _ => 3,
        }
    }
    let by_kind = rank(left).cmp(&rank(right));
    by_kind.then_with(|| match compare(left, right) {
        Some(order) => order,
        // NaN sorts last; it is equal to no key.
        None => {
            let nan = |val: ValueRef<'_>| matches!(val, ValueRef::Double(value) if value.is_nan());
            nan(left).cmp(&nan(right))
        }
    })
}
