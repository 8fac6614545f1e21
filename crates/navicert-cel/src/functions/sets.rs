//! The sets extension.

use super::{Call, Declaration, FunctionResult, NO_SUCH_OVERLOAD};
use crate::eval::contains;
use crate::value::{List, ValueRef};

/// All functions.
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("list_sets_contains_list", "sets.contains(list(T), list(T)): bool", superset),
    ("list_sets_equivalent_list", "sets.equivalent(list(T), list(T)): bool", equivalent),
    ("list_sets_intersects_list", "sets.intersects(list(T), list(T)): bool", intersects),
];

fn includes(list: List<'_>, sublist: List<'_>) -> bool {
    sublist.iter().all(|item| contains(list, item))
}

fn superset<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::List(list), ValueRef::List(sublist)] => Ok(ValueRef::Bool(includes(*list, *sublist))),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn equivalent<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::List(left), ValueRef::List(right)] => {
            Ok(ValueRef::Bool(includes(*left, *right) && includes(*right, *left)))
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn intersects<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::List(left), ValueRef::List(right)] => {
            Ok(ValueRef::Bool(left.iter().any(|item| contains(*right, item))))
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}
