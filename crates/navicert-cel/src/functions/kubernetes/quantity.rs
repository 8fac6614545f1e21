//! Functions of `kubernetes.Quantity`.

use crate::error::InvalidArgument;
use crate::functions::{Call, Declaration, FunctionResult, NO_SUCH_OVERLOAD};
use crate::library::kubernetes::quantity::{Quantity, QuantityError};
use crate::opaque::Opaque;
use crate::value::ValueRef;

/// All functions.
#[rustfmt::skip]
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("string_to_quantity", "quantity(string): kubernetes.Quantity", quantity),
    ("is_quantity_string", "isQuantity(string): bool", is_quantity),
    ("quantity_sign", "sign(kubernetes.Quantity): int", sign),
    ("quantity_is_greater_than", "(kubernetes.Quantity).isGreaterThan(kubernetes.Quantity): bool", greater),
    ("quantity_is_less_than", "(kubernetes.Quantity).isLessThan(kubernetes.Quantity): bool", less),
    ("quantity_compare_to", "(kubernetes.Quantity).compareTo(kubernetes.Quantity): int", compare_to),
    ("quantity_get_float", "(kubernetes.Quantity).asApproximateFloat(): double", as_double),
    ("quantity_get_int", "(kubernetes.Quantity).asInteger(): int", as_integer),
    ("quantity_is_integer", "(kubernetes.Quantity).isInteger(): bool", is_integer),
    ("quantity_add", "(kubernetes.Quantity).add(kubernetes.Quantity): kubernetes.Quantity", add),
    ("quantity_add_int", "(kubernetes.Quantity).add(int): kubernetes.Quantity", add),
    ("quantity_sub", "(kubernetes.Quantity).sub(kubernetes.Quantity): kubernetes.Quantity", sub),
    ("quantity_sub_int", "(kubernetes.Quantity).sub(int): kubernetes.Quantity", sub),
];

fn one<'a>(args: &[ValueRef<'a>]) -> Option<&'a Quantity> {
    match args {
        [ValueRef::Opaque(Opaque::Quantity(quantity, _))] => Some(quantity),
        _ => None,
    }
}

fn two<'a>(args: &[ValueRef<'a>]) -> Option<(&'a Quantity, &'a Quantity)> {
    match args {
        [ValueRef::Opaque(Opaque::Quantity(left, _)), ValueRef::Opaque(Opaque::Quantity(right, _))] => {
            Some((left, right))
        }
        _ => None,
    }
}

fn result<'a>(
    call: &Call<'a>,
    quantity: Result<Quantity, QuantityError>,
    computed: bool,
) -> FunctionResult<'a> {
    match quantity {
        Ok(quantity) => call.opaque(Opaque::Quantity(Box::new(quantity), computed)),
        Err(error) => Err(call.invalid(InvalidArgument::Quantity, error)),
    }
}

fn quantity<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text)] => result(call, Quantity::parse(text), false),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn is_quantity<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text)] => Ok(ValueRef::Bool(Quantity::parse(text).is_ok())),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn sign<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    one(args).map(|quantity| ValueRef::Int(quantity.sign())).ok_or(NO_SUCH_OVERLOAD)
}

fn greater<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    two(args).map(|(left, right)| ValueRef::Bool(left > right)).ok_or(NO_SUCH_OVERLOAD)
}

fn less<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    two(args).map(|(left, right)| ValueRef::Bool(left < right)).ok_or(NO_SUCH_OVERLOAD)
}

fn compare_to<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    two(args).map(|(left, right)| ValueRef::Int(left.cmp(right) as i64)).ok_or(NO_SUCH_OVERLOAD)
}

fn as_double<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    one(args).map(|quantity| ValueRef::Double(quantity.as_approximate_double())).ok_or(NO_SUCH_OVERLOAD)
}

fn as_integer<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let quantity = one(args).ok_or(NO_SUCH_OVERLOAD)?;
    quantity.as_integer().map(ValueRef::Int).map_err(|error| call.invalid(InvalidArgument::Quantity, error))
}

fn is_integer<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    one(args).map(|quantity| ValueRef::Bool(quantity.is_integer())).ok_or(NO_SUCH_OVERLOAD)
}

fn add<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Opaque(Opaque::Quantity(left, _)), ValueRef::Int(right)] => {
            result(call, left.checked_add_int(*right), true)
        }
        _ => {
            let (left, right) = two(args).ok_or(NO_SUCH_OVERLOAD)?;
            result(call, left.checked_add(right), true)
        }
    }
}

fn sub<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        // Kubernetes negates the minimum int to itself and fails only if the sum overflows.
        [ValueRef::Opaque(Opaque::Quantity(left, _)), ValueRef::Int(i64::MIN)]
            if left.as_integer().is_ok_and(|value| value >= 0) =>
        {
            result(call, left.checked_add_int(i64::MIN), true)
        }
        [ValueRef::Opaque(Opaque::Quantity(left, _)), ValueRef::Int(right)] => {
            result(call, left.checked_sub_int(*right), true)
        }
        _ => {
            let (left, right) = two(args).ok_or(NO_SUCH_OVERLOAD)?;
            result(call, left.checked_sub(right), true)
        }
    }
}
