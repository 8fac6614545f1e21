//! The optional types library.

use super::{ARENA_FULL, Call, Declaration, FunctionResult, NO_SUCH_OVERLOAD};
use crate::error::Misuse;
use crate::fault::Cause;
use crate::value::{Arena, List, Map, Reading, Value, ValueRef};

fn none_here<'a>(_: &Call<'a>, _: &[ValueRef<'a>]) -> FunctionResult<'a> {
    Err(NO_SUCH_OVERLOAD)
}

/// All functions; the evaluator implements `or`, `orValue` and the operators.
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("optional_of", "optional.of(V): optional_type(V)", of),
    ("optional_ofNonZeroValue", "optional.ofNonZeroValue(V): optional_type(V)", of_non_zero),
    ("optional_none", "optional.none(): optional_type(V)", none),
    ("optional_value", "(optional_type(V)).value(): V", value),
    ("optional_hasValue", "(optional_type(V)).hasValue(): bool", has_value),
    ("optional_or_optional", "(optional_type(V)).or(optional_type(V)): optional_type(V)", none_here),
    ("optional_orValue_value", "(optional_type(V)).orValue(V): V", none_here),
    ("list_optindex_optional_int", "_[?_](list(V), int): optional_type(V)", none_here),
    (
        "optional_list_optindex_optional_int",
        "_[?_](optional_type(list(V)), int): optional_type(V)",
        none_here,
    ),
    ("map_optindex_optional_value", "_[?_](map(K, V), K): optional_type(V)", none_here),
    (
        "optional_map_optindex_optional_value",
        "_[?_](optional_type(map(K, V)), K): optional_type(V)",
        none_here,
    ),
    ("optional_list_index_int", "_[_](optional_type(list(V)), int): optional_type(V)", none_here),
    ("optional_map_index_value", "_[_](optional_type(map(K, V)), K): optional_type(V)", none_here),
    ("list_last", "(list(V)).last(): optional_type(V)", last),
    ("list_first", "(list(V)).first(): optional_type(V)", first),
    ("optional_unwrap", "optional.unwrap(list(optional_type(V))): list(V)", unwrap),
    ("optional_unwrapOpt", "(list(optional_type(V))).unwrapOpt(): list(V)", unwrap),
];

/// A constant as a value; the content of an optional is allocated in the arena. `None` if the arena is full.
pub(crate) fn constant<'a>(arena: &'a Arena, value: &'a Value) -> Option<ValueRef<'a>> {
    match value {
        Value::Optional(Some(content)) => {
            let content = constant(arena, content)?;
            Some(ValueRef::Optional(Some(arena.alloc(content)?)))
        }
        other => Some(other.as_val()),
    }
}

fn of<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [val] => call.some(*val),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn of_non_zero<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        // Kubernetes wraps the collections of claims and users in a type that is never a zero value.
        [ValueRef::List(List::Strings(_) | List::Json(_, Reading { unescape: true, .. }))]
            if !call.standard =>
        {
            of(call, args)
        }
        [ValueRef::Map(Map::Lists(_, true) | Map::Json(_, Reading { unescape: true, .. }))]
            if !call.standard =>
        {
            of(call, args)
        }
        [val] if val.is_zero() => Ok(ValueRef::Optional(None)),
        _ => of(call, args),
    }
}

fn none<'a>(_: &Call<'a>, _: &[ValueRef<'a>]) -> FunctionResult<'a> {
    Ok(ValueRef::Optional(None))
}

fn value<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Optional(Some(content))] => Ok(**content),
        [ValueRef::Optional(None)] => Err(Cause::NoValue),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn has_value<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Optional(content)] => Ok(ValueRef::Bool(content.is_some())),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn first<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::List(list)] => match list.get(0) {
            Some(val) => call.some(val),
            None => Ok(ValueRef::Optional(None)),
        },
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn last<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::List(list)] => match list.len().checked_sub(1).and_then(|at| list.get(at)) {
            Some(val) => call.some(val),
            None => Ok(ValueRef::Optional(None)),
        },
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn unwrap<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let [ValueRef::List(list)] = args else { return Err(NO_SUCH_OVERLOAD) };
    let mut kept = call.arena.list();
    for item in list.iter() {
        match item {
            ValueRef::Optional(Some(content)) => kept.push(*content).ok_or(ARENA_FULL)?,
            ValueRef::Optional(None) => {}
            _ => return Err(Cause::Misuse(Misuse::NotOptional)),
        }
    }
    Ok(ValueRef::List(kept.finish()))
}
