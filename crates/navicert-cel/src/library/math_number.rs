//! The math extension on plain numbers. Functions that are methods in Rust (`ceil`, `floor`, `trunc`, `is_nan`,
//! `is_finite`, `&`, `|`, `^`, `!`) are not repeated here.

use crate::number::Number;
use std::cmp::Ordering;

/// Why a function of the math extension fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MathError {
    /// `abs` of the minimum int.
    #[error("integer overflow")]
    Overflow,
    /// An argument of `math.greatest` is NaN.
    #[error("NaN values cannot be ordered: math.@max")]
    GreatestOfNan,
    /// An argument of `math.least` is NaN.
    #[error("NaN values cannot be ordered: math.@min")]
    LeastOfNan,
    /// A shift by a negative offset.
    #[error("{function}() negative offset: {offset}")]
    NegativeOffset {
        /// `math.bitShiftLeft` or `math.bitShiftRight`
        function: &'static str,
        /// The offset.
        offset: i64,
    },
}

/// `math.greatest`: the position of the first greatest number, compared across types; `None` without arguments.
pub(crate) fn greatest(candidates: impl IntoIterator<Item = Number>) -> Result<Option<usize>, MathError> {
    extreme(candidates, Ordering::Greater, MathError::GreatestOfNan)
}

/// `math.least`: the position of the first least number, compared across types; `None` without arguments.
pub(crate) fn least(candidates: impl IntoIterator<Item = Number>) -> Result<Option<usize>, MathError> {
    extreme(candidates, Ordering::Less, MathError::LeastOfNan)
}

fn extreme(
    candidates: impl IntoIterator<Item = Number>,
    wanted: Ordering,
    error: MathError,
) -> Result<Option<usize>, MathError> {
    let mut best: Option<(usize, Number)> = None;
    for (position, candidate) in candidates.into_iter().enumerate() {
        let better = match best {
            None => true,
            Some((_, best)) => candidate.compare(best).ok_or(error)? == wanted,
        };
        if better {
            best = Some((position, candidate));
        }
    }
    Ok(best.map(|(position, _)| position))
}

/// `math.round`: to the nearest integer, ties away from zero.
#[must_use]
pub(crate) fn round(value: f64) -> f64 {
    value.round()
}

/// `math.abs` of an int.
pub(crate) fn absolute_int(value: i64) -> Result<i64, MathError> {
    value.checked_abs().ok_or(MathError::Overflow)
}

/// `math.sign` of a double: -1, 0 or 1; NaN for NaN.
#[must_use]
pub(crate) fn sign_double(value: f64) -> f64 {
    if value.is_nan() {
        value
    } else if value > 0.0 {
        1.0
    } else if value < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// `math.sqrt` of any number; NaN for a negative one.
#[must_use]
pub(crate) fn square_root(value: Number) -> f64 {
    value.as_double().sqrt()
}

/// `math.bitShiftLeft` of an int; 0 for an offset of 64 or more.
pub(crate) fn shift_left_int(value: i64, offset: i64) -> Result<i64, MathError> {
    shift_left_uint(value.cast_unsigned(), offset).map(u64::cast_signed)
}

/// `math.bitShiftLeft` of a uint; 0 for an offset of 64 or more.
pub(crate) fn shift_left_uint(value: u64, offset: i64) -> Result<u64, MathError> {
    let bits = offset_bits("math.bitShiftLeft", offset)?;
    Ok(value.checked_shl(bits).unwrap_or(0))
}

/// `math.bitShiftRight` of an int, without sign extension.
pub(crate) fn shift_right_int(value: i64, offset: i64) -> Result<i64, MathError> {
    shift_right_uint(value.cast_unsigned(), offset).map(u64::cast_signed)
}

/// `math.bitShiftRight` of a uint.
pub(crate) fn shift_right_uint(value: u64, offset: i64) -> Result<u64, MathError> {
    let bits = offset_bits("math.bitShiftRight", offset)?;
    Ok(value.checked_shr(bits).unwrap_or(0))
}

fn offset_bits(function: &'static str, offset: i64) -> Result<u32, MathError> {
    if offset < 0 {
        return Err(MathError::NegativeOffset { function, offset });
    }
    Ok(u32::try_from(offset).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Number::{Double, Int, Uint};

    #[test]
    fn extreme_is_the_first_of_equal_numbers() {
        // math_ext/greatest_*, math_ext/least_*
        assert_eq!(greatest([Int(1), Double(2.0)]), Ok(Some(1)));
        assert_eq!(greatest([Int(1), Double(1.0), Uint(1)]), Ok(Some(0)));
        assert_eq!(greatest([Double(9_007_199_254_740_992.0), Int(9_007_199_254_740_993)]), Ok(Some(0)));
        assert_eq!(least([Int(5), Uint(3), Double(4.0)]), Ok(Some(1)));
        assert_eq!(least([]), Ok(None));
        assert_eq!(greatest([Double(f64::NAN)]), Ok(Some(0)));
        let error = greatest([Int(1), Double(f64::NAN)]).unwrap_err();
        assert_eq!(error.to_string(), "NaN values cannot be ordered: math.@max");
        assert_eq!(least([Double(f64::NAN), Int(1)]), Err(MathError::LeastOfNan));
    }

    #[test]
    fn round_sign_and_sqrt_match_cel_go() {
        for (value, rounded) in [(0.5, 1.0), (1.5, 2.0), (2.5, 3.0), (-0.5, -1.0), (-1.5, -2.0)] {
            assert_eq!(round(value), rounded);
        }
        assert_eq!(round(0.499_999_999_999_999_94), 0.0);
        assert_eq!([sign_double(-5.5), sign_double(-0.0), sign_double(3.0)], [-1.0, 0.0, 1.0]);
        assert!(sign_double(f64::NAN).is_nan());
        assert_eq!(absolute_int(-5), Ok(5));
        assert_eq!(absolute_int(i64::MIN), Err(MathError::Overflow));
        assert_eq!(square_root(Uint(81)), 9.0);
        assert!(square_root(Int(-1)).is_nan());
    }

    #[test]
    fn shifts_are_logical_and_accept_any_offset() {
        // math_ext/bit_shift_left_*, math_ext/bit_shift_right_*
        for (value, offset, left, right) in [
            (1, 2, 4, 0),
            (1, 63, i64::MIN, 0),
            (1, 64, 0, 0),
            (1, 200, 0, 0),
            (1, i64::MAX, 0, 0),
            (-1, 1, -2, i64::MAX),
            (-1024, 2, -4096, 4_611_686_018_427_387_648),
            (-1024, 64, 0, 0),
        ] {
            assert_eq!(shift_left_int(value, offset), Ok(left), "{value} {offset}");
            assert_eq!(shift_right_int(value, offset), Ok(right), "{value} {offset}");
        }
        assert_eq!(shift_right_uint(1024, 2), Ok(256));
        let error = shift_right_uint(1024, -1).unwrap_err();
        assert_eq!(error.to_string(), "math.bitShiftRight() negative offset: -1");
    }
}
