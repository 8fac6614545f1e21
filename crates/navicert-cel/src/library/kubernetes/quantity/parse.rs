//! Parses a quantity. The number may be empty (`Mi` is zero); the required order is sign, digits, decimal point,
//! suffix letters, exponent.

use super::amount::{Amount, DIGIT_LIMIT};
use super::{Notation, Quantity, QuantityError};
use num_bigint::BigInt;

/// The scale of nano, the smallest unit.
const SMALLEST_SCALE: i32 = -9;

pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    let parts = Parts::parse(text)?;
    let (notation, exponent) = suffix(parts.suffix).ok_or(QuantityError::Suffix)?;
    if let Some(quantity) = small(text, &parts, notation, exponent) {
        return Ok(quantity);
    }
    large(&parts, notation, exponent)
}

/// The parts of the text. `whole` has no leading zeros; without any digit it is `0`.
struct Parts<'t> {
    negative: bool,
    any_digit: bool,
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
}

impl<'t> Parts<'t> {
    fn parse(text: &'t str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = leading(unsigned, |symbol| symbol.is_ascii_digit());
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => leading(rest, |symbol| symbol.is_ascii_digit()),
            None => ("", rest),
        };
        let (_, rest) = leading(suffix, |symbol| "eEinumkKMGTP".contains(symbol));
        let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        if !rest.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(QuantityError::Format);
        }
        let any_digit = !whole.is_empty() || !fraction.is_empty();
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            whole => whole,
        };
        Ok(Self { negative, any_digit, whole, fraction, suffix })
    }
}

fn leading(text: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|symbol| !wanted(symbol)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// The notation and the exponent, to base ten or, for binary suffixes, to base two.
fn suffix(text: &str) -> Option<(Notation, i32)> {
    let (notation, exponent) = match text {
        "" => (Notation::DecimalSuffix, 0),
        "n" => (Notation::DecimalSuffix, -9),
        "u" => (Notation::DecimalSuffix, -6),
        "m" => (Notation::DecimalSuffix, -3),
        "k" => (Notation::DecimalSuffix, 3),
        "M" => (Notation::DecimalSuffix, 6),
        "G" => (Notation::DecimalSuffix, 9),
        "T" => (Notation::DecimalSuffix, 12),
        "P" => (Notation::DecimalSuffix, 15),
        "E" => (Notation::DecimalSuffix, 18),
        "Ki" => (Notation::BinarySuffix, 10),
        "Mi" => (Notation::BinarySuffix, 20),
        "Gi" => (Notation::BinarySuffix, 30),
        "Ti" => (Notation::BinarySuffix, 40),
        "Pi" => (Notation::BinarySuffix, 50),
        "Ei" => (Notation::BinarySuffix, 60),
        _ => return Some((Notation::Exponent, text.strip_prefix(['e', 'E'])?.parse().ok()?)),
    };
    Some((notation, exponent))
}

/// The 64-bit representation, if upstream chooses it: up to 18 decimal digits, or a whole binary number that is
/// certain to fit.
fn small(text: &str, parts: &Parts<'_>, notation: Notation, exponent: i32) -> Option<Quantity> {
    let length = i64::try_from(parts.whole.len()).ok()?;
    let places = i32::try_from(parts.fraction.len()).ok()?;
    let (factor, scale, room) = if notation == Notation::BinarySuffix {
        let room = if places == 0 { 14 - length - i64::from(exponent) * 3 / 10 } else { -1 };
        (1_i64.checked_shl(u32::try_from(exponent).ok()?)?, 0, room)
    } else {
        (1, exponent.checked_sub(places)?, 18 - length - i64::from(places))
    };
    if room < 0 || scale < SMALLEST_SCALE {
        return None;
    }
    let written = parts.whole.bytes().chain(parts.fraction.bytes());
    let digits = written.fold(0_i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    let magnitude = digits.checked_mul(factor)?;
    let value = if parts.negative { -magnitude } else { magnitude };
    let keep_text = if notation == Notation::BinarySuffix {
        digits % 8 != 0
    } else {
        scale % 3 == 0 && !parts.whole.starts_with('0') && !ends_in_three_zeros(parts)
    };
    Some(Quantity { amount: Amount::Small { value, scale }, notation, text: keep_text.then(|| text.into()) })
}

fn ends_in_three_zeros(parts: &Parts<'_>) -> bool {
    let mut backward = parts.fraction.bytes().rev().chain(parts.whole.bytes().rev());
    (0..3).all(|_| backward.next() == Some(b'0'))
}

/// The decimal representation: rounded away from zero to nano; binary amounts are limited to 2^63 - 1.
fn large(parts: &Parts<'_>, notation: Notation, exponent: i32) -> Result<Quantity, QuantityError> {
    let (whole, fraction) = (parts.whole, parts.fraction);
    // The 64-bit path treats an empty number as zero, this one does not: `Mi` is valid, `Ei` is not.
    if !parts.any_digit {
        return Err(QuantityError::Number);
    }
    if u64::try_from(whole.len() + fraction.len()).unwrap_or(u64::MAX) > DIGIT_LIMIT {
        return Err(QuantityError::TooLarge);
    }
    let mut digits: BigInt = format!("{whole}{fraction}").parse().map_err(|_| QuantityError::Number)?;
    let mut scale = -i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    if notation == Notation::BinarySuffix {
        digits <<= exponent;
    } else {
        scale += i64::from(exponent);
    }
    let nano = i64::from(SMALLEST_SCALE);
    if digits == BigInt::ZERO {
        // The scale of a zero affects how a sum with it is rounded.
        let scale = i32::try_from(scale).ok().filter(|scale| u64::from(scale.unsigned_abs()) <= DIGIT_LIMIT);
        let amount = Amount::Large { value: digits, scale: scale.unwrap_or(0) };
        return Ok(Quantity { amount, notation, text: None });
    }
    let value = if scale >= nano {
        digits * power_of_ten(scale - nano)?
    } else if let Ok(divisor) = power_of_ten(nano - scale) {
        (digits + &divisor - 1) / divisor
    } else {
        // A non-zero amount far below nano rounds up.
        BigInt::from(1)
    };
    Ok(limited(value, parts.negative, notation))
}

fn power_of_ten(exponent: i64) -> Result<BigInt, QuantityError> {
    let exponent = u32::try_from(exponent).ok().filter(|&exponent| u64::from(exponent) <= DIGIT_LIMIT);
    Ok(BigInt::from(10_u32).pow(exponent.ok_or(QuantityError::TooLarge)?))
}

fn limited(nanos: BigInt, negative: bool, notation: Notation) -> Quantity {
    let one = BigInt::from(1_000_000_000_i64);
    let (mut value, mut scale, mut notation) = (nanos, SMALLEST_SCALE, notation);
    if notation == Notation::BinarySuffix {
        if value > &one * i64::MAX {
            (value, scale) = (BigInt::from(i64::MAX), 0);
        } else if value < one {
            notation = Notation::DecimalSuffix;
        }
    }
    let value = if negative { -value } else { value };
    Quantity { amount: Amount::Large { value, scale }, notation, text: None }
}
