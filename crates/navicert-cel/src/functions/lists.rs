//! List functions: the standard lists extension and those of Kubernetes.

use super::{ARENA_FULL, Call, Declaration, FunctionResult, NO_SUCH_OVERLOAD};
use crate::error::{InvalidArgument, Misuse};
use crate::eval::{calculate, contains};
use crate::fault::Cause;
use crate::library::lists_order;
use crate::plan::Arithmetic;
use crate::value::{List, ValueRef, compare, equal};
use std::cmp::Ordering;

/// The standard lists extension, version 3.
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("list_slice", "(list(T)).slice(int, int): list(T)", slice),
    ("list_flatten", "(list(list(T))).flatten(): list(T)", flatten),
    ("list_flatten_int", "(list(dyn)).flatten(int): list(dyn)", flatten),
    ("list_int_sort", "(list(int)).sort(): list(int)", sort),
    ("list_uint_sort", "(list(uint)).sort(): list(uint)", sort),
    ("list_double_sort", "(list(double)).sort(): list(double)", sort),
    ("list_bool_sort", "(list(bool)).sort(): list(bool)", sort),
    ("list_google.protobuf.Duration_sort", "(list(duration)).sort(): list(duration)", sort),
    ("list_google.protobuf.Timestamp_sort", "(list(timestamp)).sort(): list(timestamp)", sort),
    ("list_string_sort", "(list(string)).sort(): list(string)", sort),
    ("list_bytes_sort", "(list(bytes)).sort(): list(bytes)", sort),
    ("list_int_sortByAssociatedKeys", "(list(T)).@sortByAssociatedKeys(list(int)): list(T)", sort_by),
    ("list_uint_sortByAssociatedKeys", "(list(T)).@sortByAssociatedKeys(list(uint)): list(T)", sort_by),
    ("list_double_sortByAssociatedKeys", "(list(T)).@sortByAssociatedKeys(list(double)): list(T)", sort_by),
    ("list_bool_sortByAssociatedKeys", "(list(T)).@sortByAssociatedKeys(list(bool)): list(T)", sort_by),
    (
        "list_duration_sortByAssociatedKeys",
        "(list(T)).@sortByAssociatedKeys(list(duration)): list(T)",
        sort_by,
    ),
    (
        "list_timestamp_sortByAssociatedKeys",
        "(list(T)).@sortByAssociatedKeys(list(timestamp)): list(T)",
        sort_by,
    ),
    ("list_string_sortByAssociatedKeys", "(list(T)).@sortByAssociatedKeys(list(string)): list(T)", sort_by),
    ("list_bytes_sortByAssociatedKeys", "(list(T)).@sortByAssociatedKeys(list(bytes)): list(T)", sort_by),
    ("lists_range", "lists.range(int): list(int)", range),
    ("list_reverse", "(list(T)).reverse(): list(T)", reverse),
    ("list_distinct", "(list(T)).distinct(): list(T)", distinct),
];

/// The function that two-variable macros expand to; implemented by the evaluator.
pub(crate) const MAP_INSERT: &[Declaration] = &[
    ("@mapInsert_map_key_value", "cel.@mapInsert(map(K, V), K, V): map(K, V)", unused),
    ("@mapInsert_map_map", "cel.@mapInsert(map(K, V), map(K, V)): map(K, V)", unused),
];

/// The list functions of Kubernetes.
pub(crate) const KUBERNETES: &[Declaration] = &[
    ("list_int_is_sorted_bool", "(list(int)).isSorted(): bool", is_sorted),
    ("list_uint_is_sorted_bool", "(list(uint)).isSorted(): bool", is_sorted),
    ("list_double_is_sorted_bool", "(list(double)).isSorted(): bool", is_sorted),
    ("list_bool_is_sorted_bool", "(list(bool)).isSorted(): bool", is_sorted),
    ("list_duration_is_sorted_bool", "(list(duration)).isSorted(): bool", is_sorted),
    ("list_timestamp_is_sorted_bool", "(list(timestamp)).isSorted(): bool", is_sorted),
    ("list_string_is_sorted_bool", "(list(string)).isSorted(): bool", is_sorted),
    ("list_bytes_is_sorted_bool", "(list(bytes)).isSorted(): bool", is_sorted),
    ("list_int_sum_int", "(list(int)).sum(): int", sum_int),
    ("list_uint_sum_uint", "(list(uint)).sum(): uint", sum_uint),
    ("list_double_sum_double", "(list(double)).sum(): double", sum_double),
    ("list_duration_sum_duration", "(list(duration)).sum(): duration", sum_duration),
    ("list_int_max_int", "(list(int)).max(): int", max),
    ("list_uint_max_uint", "(list(uint)).max(): uint", max),
    ("list_double_max_double", "(list(double)).max(): double", max),
    ("list_bool_max_bool", "(list(bool)).max(): bool", max),
    ("list_duration_max_duration", "(list(duration)).max(): duration", max),
    ("list_timestamp_max_timestamp", "(list(timestamp)).max(): timestamp", max),
    ("list_string_max_string", "(list(string)).max(): string", max),
    ("list_bytes_max_bytes", "(list(bytes)).max(): bytes", max),
    ("list_int_min_int", "(list(int)).min(): int", min),
    ("list_uint_min_uint", "(list(uint)).min(): uint", min),
    ("list_double_min_double", "(list(double)).min(): double", min),
    ("list_bool_min_bool", "(list(bool)).min(): bool", min),
    ("list_duration_min_duration", "(list(duration)).min(): duration", min),
    ("list_timestamp_min_timestamp", "(list(timestamp)).min(): timestamp", min),
    ("list_string_min_string", "(list(string)).min(): string", min),
    ("list_bytes_min_bytes", "(list(bytes)).min(): bytes", min),
    ("list_a_index_of_int", "(list(A)).indexOf(A): int", index_of),
    ("list_a_last_index_of_int", "(list(A)).lastIndexOf(A): int", last_index_of),
];

/// Added by Kubernetes 1.37.
pub(crate) const INCLUDES: &[Declaration] =
    &[("list_includes_dyn_dyn", "(dyn).includes(dyn): bool", includes)];

fn unused<'a>(_: &Call<'a>, _: &[ValueRef<'a>]) -> FunctionResult<'a> {
    Err(NO_SUCH_OVERLOAD)
}

/// The elements of a list; their memory is reserved in the arena.
fn items<'a>(call: &Call<'a>, list: List<'a>) -> Result<Vec<ValueRef<'a>>, Cause<'a>> {
    let bytes = list.len().checked_mul(size_of::<ValueRef<'a>>()).ok_or(ARENA_FULL)?;
    call.arena.reserve(bytes).ok_or(ARENA_FULL)?;
    Ok(list.iter().collect())
}

fn slice<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let [ValueRef::List(list), ValueRef::Int(start), ValueRef::Int(end)] = *args else {
        return Err(NO_SUCH_OVERLOAD);
    };
    let part = lists_order::slice(start, end, list.len())
        .map_err(|error| call.invalid(InvalidArgument::Slice, error))?;
    call.list(part.filter_map(|index| list.get(index)))
}

fn flatten<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let (list, depth) = match *args {
        [ValueRef::List(list)] => (list, 1),
        [ValueRef::List(list), ValueRef::Int(depth)] => (list, depth),
        _ => return Err(NO_SUCH_OVERLOAD),
    };
    let depth = lists_order::flatten_level(depth)
        .map_err(|error| call.invalid(InvalidArgument::FlattenLevel, error))?;
    let mut flat = call.arena.list();
    // An explicit stack: the depth comes from the expression, the nesting from the data.
    let mut open: Vec<(List<'a>, usize)> = vec![(list, 0)];
    while let Some((list, at)) = open.pop() {
        let Some(item) = list.get(at) else { continue };
        open.push((list, at + 1));
        match item {
            ValueRef::List(inner) if (open.len() as u64) <= depth => open.push((inner, 0)),
            other => flat.push(other).ok_or(ARENA_FULL)?,
        }
    }
    Ok(ValueRef::List(flat.finish()))
}

fn sort<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::List(list)] => sorted(call, list, list),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn sort_by<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::List(list), ValueRef::List(keys)] => sorted(call, list, keys),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

/// Sorts the list by the keys, which must all have one ordered type.
fn sorted<'a>(call: &Call<'a>, list: List<'a>, keys: List<'a>) -> FunctionResult<'a> {
    if list.len() != keys.len() {
        return Err(Cause::Misuse(Misuse::SortKeyCount));
    }
    let Some(first) = keys.get(0) else { return Ok(ValueRef::List(list)) };
    if ordered(first).is_err() {
        return Err(Cause::Misuse(Misuse::NotComparable));
    }
    let keys = items(call, keys)?;
    let same = |key: &ValueRef<'_>| std::mem::discriminant(key) == std::mem::discriminant(&first);
    if !keys.iter().all(same) {
        return Err(Cause::Misuse(Misuse::MixedTypes));
    }
    let key = |index: usize| keys.get(index).copied().unwrap_or(ValueRef::Null);
    let order = lists_order::sorted_positions(keys.len(), |left, right| compare(key(left), key(right)));
    call.list(order.into_iter().filter_map(|index| list.get(index)))
}

fn range<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let [ValueRef::Int(count)] = *args else { return Err(NO_SUCH_OVERLOAD) };
    let numbers = lists_order::range(count, call.facts.range_is_bounded)
        .map_err(|error| call.invalid(InvalidArgument::RangeSize, error))?;
    // The range is lazy: its elements are computed on access.
    usize::try_from(numbers.end).map(|count| ValueRef::List(List::Range(count))).map_err(|_| ARENA_FULL)
}

fn reverse<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::List(list)] => call.list((0..list.len()).rev().filter_map(|index| list.get(index))),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn distinct<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let [ValueRef::List(list)] = *args else { return Err(NO_SUCH_OVERLOAD) };
    let mut kept = call.arena.list();
    let mut seen = std::collections::HashSet::new();
    for item in list.iter() {
        let fresh = match item {
            // A string equals only strings, so a hash set is enough.
            ValueRef::Str(text) => seen.insert(text),
            other => !kept.items().iter().any(|known| equal(*known, other)),
        };
        if fresh {
            kept.push(item).ok_or(ARENA_FULL)?;
        }
    }
    Ok(ValueRef::List(kept.finish()))
}

/// Fails if values of this type have no order.
fn ordered<'a>(val: ValueRef<'a>) -> Result<(), Cause<'a>> {
    match val {
        ValueRef::Int(_)
        | ValueRef::Uint(_)
        | ValueRef::Double(_)
        | ValueRef::Bool(_)
        | ValueRef::Duration(_)
        | ValueRef::Timestamp(_)
        | ValueRef::Str(_)
        | ValueRef::Bytes(_) => Ok(()),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn is_sorted<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let [ValueRef::List(list)] = *args else { return Err(NO_SUCH_OVERLOAD) };
    let mut before = None;
    for item in list.iter() {
        ordered(item)?;
        if before.is_some_and(|before| compare(before, item) == Some(Ordering::Greater)) {
            return Ok(ValueRef::Bool(false));
        }
        before = Some(item);
    }
    Ok(ValueRef::Bool(true))
}

fn sum<'a>(call: &Call<'a>, args: &[ValueRef<'a>], zero: ValueRef<'a>) -> FunctionResult<'a> {
    let [ValueRef::List(list)] = *args else { return Err(NO_SUCH_OVERLOAD) };
    let mut total = zero;
    for item in list.iter() {
        total = calculate(call.arena, Arithmetic::Add, total, item)?;
    }
    Ok(total)
}

fn sum_int<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    sum(call, args, ValueRef::Int(0))
}

fn sum_uint<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    sum(call, args, ValueRef::Uint(0))
}

fn sum_double<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    sum(call, args, ValueRef::Double(0.0))
}

fn sum_duration<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    sum(call, args, ValueRef::Duration(0))
}

fn extreme<'a>(args: &[ValueRef<'a>], if_empty: Misuse, replaced_by: Ordering) -> FunctionResult<'a> {
    let [ValueRef::List(list)] = *args else { return Err(NO_SUCH_OVERLOAD) };
    let mut best: Option<ValueRef<'a>> = None;
    for item in list.iter() {
        ordered(item)?;
        match best {
            Some(known) if compare(known, item) != Some(replaced_by) => {}
            _ => best = Some(item),
        }
    }
    best.ok_or(Cause::Misuse(if_empty))
}

fn max<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    extreme(args, Misuse::MaxOfEmptyList, Ordering::Less)
}

fn min<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    extreme(args, Misuse::MinOfEmptyList, Ordering::Greater)
}

fn position<'a>(found: Option<usize>) -> FunctionResult<'a> {
    Ok(ValueRef::Int(found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)))
}

fn index_of<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let [ValueRef::List(list), item] = *args else { return Err(NO_SUCH_OVERLOAD) };
    position(list.iter().position(|element| equal(element, item)))
}

fn last_index_of<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let [ValueRef::List(list), item] = *args else { return Err(NO_SUCH_OVERLOAD) };
    position((0..list.len()).rev().find(|&at| list.get(at).is_some_and(|element| equal(element, item))))
}

fn includes<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::List(list), item] => Ok(ValueRef::Bool(contains(list, item))),
        [target, item] => Ok(ValueRef::Bool(equal(target, item))),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}
