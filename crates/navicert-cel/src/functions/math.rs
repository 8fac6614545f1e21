//! The math extension.

use super::{Call, Declaration, FunctionResult, NO_SUCH_OVERLOAD};
use crate::error::{InvalidArgument, Misuse};
use crate::fault::Cause;
use crate::library::math_number::{self, MathError};
use crate::number::Number;
use crate::value::{ValueRef, number};

/// All functions; `math.greatest` and `math.least` are macros over `math.@max` and `math.@min`.
#[rustfmt::skip]
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("math_@min_double", "math.@min(double): double", least),
    ("math_@min_int", "math.@min(int): int", least),
    ("math_@min_uint", "math.@min(uint): uint", least),
    ("math_@min_double_double", "math.@min(double, double): double", least),
    ("math_@min_double_int", "math.@min(double, int): dyn", least),
    ("math_@min_double_uint", "math.@min(double, uint): dyn", least),
    ("math_@min_int_double", "math.@min(int, double): dyn", least),
    ("math_@min_int_int", "math.@min(int, int): int", least),
    ("math_@min_int_uint", "math.@min(int, uint): dyn", least),
    ("math_@min_uint_double", "math.@min(uint, double): dyn", least),
    ("math_@min_uint_int", "math.@min(uint, int): dyn", least),
    ("math_@min_uint_uint", "math.@min(uint, uint): uint", least),
    ("math_@min_list_double", "math.@min(list(double)): double", least),
    ("math_@min_list_int", "math.@min(list(int)): int", least),
    ("math_@min_list_uint", "math.@min(list(uint)): uint", least),
    ("math_@max_double", "math.@max(double): double", greatest),
    ("math_@max_int", "math.@max(int): int", greatest),
    ("math_@max_uint", "math.@max(uint): uint", greatest),
    ("math_@max_double_double", "math.@max(double, double): double", greatest),
    ("math_@max_double_int", "math.@max(double, int): dyn", greatest),
    ("math_@max_double_uint", "math.@max(double, uint): dyn", greatest),
    ("math_@max_int_double", "math.@max(int, double): dyn", greatest),
    ("math_@max_int_int", "math.@max(int, int): int", greatest),
    ("math_@max_int_uint", "math.@max(int, uint): dyn", greatest),
    ("math_@max_uint_double", "math.@max(uint, double): dyn", greatest),
    ("math_@max_uint_int", "math.@max(uint, int): dyn", greatest),
    ("math_@max_uint_uint", "math.@max(uint, uint): uint", greatest),
    ("math_@max_list_double", "math.@max(list(double)): double", greatest),
    ("math_@max_list_int", "math.@max(list(int)): int", greatest),
    ("math_@max_list_uint", "math.@max(list(uint)): uint", greatest),
    ("math_ceil_double", "math.ceil(double): double", ceil),
    ("math_floor_double", "math.floor(double): double", floor),
    ("math_round_double", "math.round(double): double", round),
    ("math_trunc_double", "math.trunc(double): double", trunc),
    ("math_isInf_double", "math.isInf(double): bool", is_inf),
    ("math_isNaN_double", "math.isNaN(double): bool", is_nan),
    ("math_isFinite_double", "math.isFinite(double): bool", is_finite),
    ("math_abs_double", "math.abs(double): double", abs),
    ("math_abs_int", "math.abs(int): int", abs),
    ("math_abs_uint", "math.abs(uint): uint", abs),
    ("math_sign_double", "math.sign(double): double", sign),
    ("math_sign_int", "math.sign(int): int", sign),
    ("math_sign_uint", "math.sign(uint): uint", sign),
    ("math_bitAnd_int_int", "math.bitAnd(int, int): int", bit_and),
    ("math_bitAnd_uint_uint", "math.bitAnd(uint, uint): uint", bit_and),
    ("math_bitOr_int_int", "math.bitOr(int, int): int", bit_or),
    ("math_bitOr_uint_uint", "math.bitOr(uint, uint): uint", bit_or),
    ("math_bitXor_int_int", "math.bitXor(int, int): int", bit_xor),
    ("math_bitXor_uint_uint", "math.bitXor(uint, uint): uint", bit_xor),
    ("math_bitNot_int_int", "math.bitNot(int): int", bit_not),
    ("math_bitNot_uint_uint", "math.bitNot(uint): uint", bit_not),
    ("math_bitShiftLeft_int_int", "math.bitShiftLeft(int, int): int", shift_left),
    ("math_bitShiftLeft_uint_int", "math.bitShiftLeft(uint, int): uint", shift_left),
    ("math_bitShiftRight_int_int", "math.bitShiftRight(int, int): int", shift_right),
    ("math_bitShiftRight_uint_int", "math.bitShiftRight(uint, int): uint", shift_right),
    ("math_sqrt_double", "math.sqrt(double): double", sqrt),
    ("math_sqrt_int", "math.sqrt(int): double", sqrt),
    ("math_sqrt_uint", "math.sqrt(uint): double", sqrt),
];

fn double<'a>(args: &[ValueRef<'a>], apply: fn(f64) -> f64) -> FunctionResult<'a> {
    match args {
        [ValueRef::Double(value)] => Ok(ValueRef::Double(apply(*value))),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

/// The cause for an error of the library.
fn failed<'a>(call: &Call<'a>, error: MathError) -> Cause<'a> {
    match error {
        MathError::Overflow => Cause::IntOverflow,
        MathError::GreatestOfNan => Cause::Misuse(Misuse::GreatestOfNan),
        MathError::LeastOfNan => Cause::Misuse(Misuse::LeastOfNan),
        MathError::NegativeOffset { .. } => call.invalid(InvalidArgument::ShiftOffset, error),
    }
}

/// The extreme of one number, two numbers or a list of numbers, with its type unchanged.
fn extreme<'a>(
    call: &Call<'a>,
    args: &[ValueRef<'a>],
    pick: fn(Vec<Number>) -> Result<Option<usize>, MathError>,
) -> FunctionResult<'a> {
    let candidates: Vec<ValueRef<'a>> = match args {
        [ValueRef::List(list)] => list.iter().collect(),
        numbers => numbers.to_vec(),
    };
    let numbers =
        candidates.iter().map(|&val| number(val)).collect::<Option<Vec<_>>>().ok_or(NO_SUCH_OVERLOAD)?;
    match pick(numbers) {
        Ok(Some(at)) => candidates.get(at).copied().ok_or(NO_SUCH_OVERLOAD),
        Ok(None) => Err(Cause::Misuse(Misuse::EmptyArguments)),
        Err(error) => Err(failed(call, error)),
    }
}

fn greatest<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    extreme(call, args, math_number::greatest)
}

fn least<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    extreme(call, args, math_number::least)
}

fn ceil<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    double(args, f64::ceil)
}

fn floor<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    double(args, f64::floor)
}

fn round<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    double(args, math_number::round)
}

fn trunc<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    double(args, f64::trunc)
}

fn test<'a>(args: &[ValueRef<'a>], holds: fn(f64) -> bool) -> FunctionResult<'a> {
    match args {
        [ValueRef::Double(value)] => Ok(ValueRef::Bool(holds(*value))),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn is_inf<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    test(args, f64::is_infinite)
}

fn is_nan<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    test(args, f64::is_nan)
}

fn is_finite<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    test(args, f64::is_finite)
}

fn abs<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Double(value)] => Ok(ValueRef::Double(value.abs())),
        [ValueRef::Int(value)] => {
            math_number::absolute_int(value).map(ValueRef::Int).map_err(|error| failed(call, error))
        }
        [val @ ValueRef::Uint(_)] => Ok(val),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn sign<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Double(value)] => Ok(ValueRef::Double(math_number::sign_double(value))),
        [ValueRef::Int(value)] => Ok(ValueRef::Int(value.signum())),
        [ValueRef::Uint(value)] => Ok(ValueRef::Uint(value.min(1))),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn bit_and<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Int(left), ValueRef::Int(right)] => Ok(ValueRef::Int(left & right)),
        [ValueRef::Uint(left), ValueRef::Uint(right)] => Ok(ValueRef::Uint(left & right)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn bit_or<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Int(left), ValueRef::Int(right)] => Ok(ValueRef::Int(left | right)),
        [ValueRef::Uint(left), ValueRef::Uint(right)] => Ok(ValueRef::Uint(left | right)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn bit_xor<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Int(left), ValueRef::Int(right)] => Ok(ValueRef::Int(left ^ right)),
        [ValueRef::Uint(left), ValueRef::Uint(right)] => Ok(ValueRef::Uint(left ^ right)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn bit_not<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Int(value)] => Ok(ValueRef::Int(!value)),
        [ValueRef::Uint(value)] => Ok(ValueRef::Uint(!value)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn shift_left<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Int(value), ValueRef::Int(by)] => {
            math_number::shift_left_int(value, by).map(ValueRef::Int).map_err(|error| failed(call, error))
        }
        [ValueRef::Uint(value), ValueRef::Int(by)] => {
            math_number::shift_left_uint(value, by).map(ValueRef::Uint).map_err(|error| failed(call, error))
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn shift_right<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match *args {
        [ValueRef::Int(value), ValueRef::Int(by)] => {
            math_number::shift_right_int(value, by).map(ValueRef::Int).map_err(|error| failed(call, error))
        }
        [ValueRef::Uint(value), ValueRef::Int(by)] => {
            math_number::shift_right_uint(value, by).map(ValueRef::Uint).map_err(|error| failed(call, error))
        }
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn sqrt<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [val] => number(*val)
            .map(|value| ValueRef::Double(math_number::square_root(value)))
            .ok_or(NO_SUCH_OVERLOAD),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}
