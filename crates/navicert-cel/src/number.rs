//! CEL numbers: conversions between int, uint, double and text, and comparison across the three.
//!
//! The rules are those of cel-go, which uses Go's `strconv`. Surprising ones (lossy comparison of large integers
//! with doubles, `-2^63` not convertible to int) are kept, because rules depend on them.

use crate::stack_text::StackText;
use std::cmp::Ordering;
use std::fmt;

mod float_text;

pub(crate) use float_text::parse_double;

/// A number of one of CEL's three numeric types, for comparison across types.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// A 64-bit signed integer.
    Int(i64),
    /// A 64-bit unsigned integer.
    Uint(u64),
    /// A double.
    Double(f64),
}

impl Number {
    /// Compares across types; `None` if an operand is NaN ("NaN values cannot be ordered").
    ///
    /// Two integers compare exactly. For an integer and a double, the integer is rounded to the nearest double
    /// first, as in cel-go: `9007199254740993 == 9007199254740992.0` is true.
    #[must_use]
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(left), Self::Int(right)) => Some(left.cmp(&right)),
            (Self::Uint(left), Self::Uint(right)) => Some(left.cmp(&right)),
            (Self::Int(left), Self::Uint(right)) => Some(compare_int_uint(left, right)),
            (Self::Uint(left), Self::Int(right)) => Some(compare_int_uint(right, left).reverse()),
            (left, right) => left.as_double().partial_cmp(&right.as_double()),
        }
    }

    /// Equality across types; NaN equals nothing.
    #[must_use]
    pub(crate) fn equals(self, other: Self) -> bool {
        self.compare(other) == Some(Ordering::Equal)
    }

    /// The nearest double.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "rounding to the nearest double is the rule")]
    pub(crate) fn as_double(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Uint(value) => value as f64,
            Self::Double(value) => value,
        }
    }

    /// Converts as `int(...)`; `None` is "integer overflow".
    #[must_use]
    pub(crate) fn to_int(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            Self::Uint(value) => i64::try_from(value).ok(),
            Self::Double(value) => int_from_double(value),
        }
    }

    /// The number as a list index or map key of type int; a double must be integral.
    #[must_use]
    pub(crate) fn lossless_int(self) -> Option<i64> {
        let value = self.to_int()?;
        Self::Int(value).equals(self).then_some(value)
    }
}

fn compare_int_uint(left: i64, right: u64) -> Ordering {
    u64::try_from(left).map_or(Ordering::Less, |left| left.cmp(&right))
}

/// Truncates toward zero. As in cel-go, both ends of the range are exclusive: `-2^63` itself is rejected.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the range was just checked")]
pub(crate) fn int_from_double(value: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (value > -LIMIT && value < LIMIT).then_some(value as i64)
}

/// Truncates toward zero; negative numbers, including `-0.5`, are rejected.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was just checked")]
pub(crate) fn uint_from_double(value: f64) -> Option<u64> {
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    (0.0..LIMIT).contains(&value).then_some(value as u64)
}

/// Parses decimal digits with an optional sign; `None` for invalid text and for overflow.
#[must_use]
pub(crate) fn parse_int(text: &str) -> Option<i64> {
    // Rust's parser accepts the same grammar as Go's for base 10.
    text.parse().ok()
}

/// Parses decimal digits without a sign; `None` for invalid text and for overflow.
#[must_use]
pub(crate) fn parse_uint(text: &str) -> Option<u64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

/// Parses the twelve spellings that `bool("...")` accepts.
#[must_use]
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Displays a double as `string(double)`: the shortest digits that round-trip, in exponent form outside `1e-4 ..=
/// 1e6` (exclusive); the exponent has a sign and at least two digits.
// S76
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoubleText(pub f64);

impl fmt::Display for DoubleText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        if value.is_nan() {
            return f.write_str("NaN");
        }
        if value.is_infinite() {
            return f.write_str(if value > 0.0 { "+Inf" } else { "-Inf" });
        }
        let scientific = shortest(value);
        let (digits, exponent) = mantissa_and_exponent(scientific.as_str());
        if (-4..6).contains(&exponent) {
            return write!(f, "{}", PlainDouble(value));
        }
        f.write_str(digits)?;
        write_exponent(f, exponent)
    }
}

/// Displays a finite double with the shortest digits that round-trip and without an exponent: `0.000001`,
/// `1000000`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainDouble(pub(crate) f64);

impl fmt::Display for PlainDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scientific = shortest(self.0);
        let (mantissa, exponent) = mantissa_and_exponent(scientific.as_str());
        let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
        let (first, others) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        f.write_str(sign)?;
        if exponent < 0 {
            // Zeros before the first digit.
            return write!(
                f,
                "0.{:0>width$}{others}",
                first,
                width = usize::try_from(-exponent).unwrap_or(0)
            );
        }
        let whole = usize::try_from(exponent).unwrap_or(0);
        match others.split_at_checked(whole) {
            Some((whole, "")) => write!(f, "{first}{whole}"),
            Some((whole, fraction)) => write!(f, "{first}{whole}.{fraction}"),
            None => write!(f, "{first}{others:0<whole$}"),
        }
    }
}

/// The shortest digits that round-trip, as `1.5e7`; of several, the nearest to the value; ties go to the even
/// digit.
///
/// The standard library finds the length, but rounds ties up.
fn shortest(value: f64) -> StackText<32> {
    let found = StackText::<32>::from_display(format_args!("{value:e}"));
    let (mantissa, _) = mantissa_and_exponent(found.as_str());
    let places = mantissa.split_once('.').map_or(0, |(_, places)| places.len());
    // Two candidates of one length exist only with nearly all digits in use.
    if places < 13 {
        return found;
    }
    let nearest = StackText::<32>::from_display(format_args!("{value:.places$e}"));
    if nearest.as_str().parse() == Ok(value) { nearest } else { found }
}

fn mantissa_and_exponent(scientific: &str) -> (&str, i32) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    (mantissa, exponent.parse().unwrap_or(0))
}

/// Writes an exponent such as `e+06`, with a sign and at least two digits.
pub(crate) fn write_exponent(out: &mut impl fmt::Write, exponent: i32) -> fmt::Result {
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(out, "e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests;
