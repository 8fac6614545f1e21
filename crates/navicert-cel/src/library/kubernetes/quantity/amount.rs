//! The number of a quantity: a 64-bit integer with a decimal scale, or an arbitrary-precision decimal if that
//! overflows.

use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;

/// Maximum number of digits of an expanded amount. Upstream has no limit and can exhaust its memory.
pub(super) const DIGIT_LIMIT: u64 = 10_000;

/// `value × 10^scale`
#[derive(Clone, Debug)]
pub(super) enum Amount {
    Small { value: i64, scale: i32 },
    Large { value: BigInt, scale: i32 },
}

impl Amount {
    pub(super) fn sign(&self) -> Ordering {
        match self {
            Self::Small { value, .. } => value.cmp(&0),
            Self::Large { value, .. } => match value.sign() {
                Sign::Minus => Ordering::Less,
                Sign::NoSign => Ordering::Equal,
                Sign::Plus => Ordering::Greater,
            },
        }
    }

    /// `None` for a large amount or a negative scale, even if the number is whole, as upstream.
    pub(super) fn as_integer(&self) -> Option<i64> {
        match *self {
            Self::Small { value, scale } => scaled(value, u32::try_from(scale).ok()?),
            Self::Large { .. } => None,
        }
    }

    /// The value and the power of ten are rounded separately and multiplied.
    pub(super) fn approximate(&self) -> f64 {
        let (base, scale) = match self {
            Self::Small { value, scale } => (value.to_string().parse().unwrap_or(f64::NAN), *scale),
            // Parsing the digits rounds to nearest, and to infinity out of range.
            Self::Large { value, scale } => (value.to_string().parse().unwrap_or(f64::INFINITY), *scale),
        };
        if scale == 0 { base } else { base * power_of_ten(scale) }
    }

    pub(super) fn negated(&self) -> Self {
        match self {
            Self::Small { value, scale } => match value.checked_neg() {
                Some(value) => Self::Small { value, scale: *scale },
                None => Self::Large { value: -BigInt::from(*value), scale: *scale },
            },
            Self::Large { value, scale } => Self::Large { value: -value, scale: *scale },
        }
    }

    /// `None` if the sum would have more than [`DIGIT_LIMIT`] digits.
    pub(super) fn checked_add(&self, other: &Self) -> Option<Self> {
        if let (
            Self::Small { value: left, scale: left_scale },
            Self::Small { value: right, scale: right_scale },
        ) = (self, other)
        {
            if *right == 0 {
                return Some(self.clone());
            }
            if *left == 0 {
                return Some(other.clone());
            }
            let scale = *left_scale.min(right_scale);
            let aligned = |value: i64, from: i32| scaled(value, from.abs_diff(scale));
            let sum = aligned(*left, *left_scale)
                .zip(aligned(*right, *right_scale))
                .and_then(|(left, right)| left.checked_add(right));
            if let Some(value) = sum {
                return Some(Self::Small { value, scale });
            }
        }
        let scale = self.scale().min(other.scale());
        let value = self.at_scale(scale)? + other.at_scale(scale)?;
        Some(Self::Large { value, scale })
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let by_sign = self.sign().cmp(&other.sign());
        if by_sign.is_ne() || self.sign().is_eq() {
            return by_sign;
        }
        let by_size = match self.leading_place().cmp(&other.leading_place()) {
            // Both have the same leading place, so expanding them to the smaller scale adds no digits beyond those
            // present.
            Ordering::Equal => {
                let scale = self.scale().min(other.scale());
                return self.at_scale(scale).cmp(&other.at_scale(scale));
            }
            unequal => unequal,
        };
        if self.sign().is_lt() { by_size.reverse() } else { by_size }
    }

    /// Digits without trailing zeros, except those needed to make the exponent a multiple of three.
    pub(super) fn digits_by_thousands(&self) -> (String, i64) {
        let mut digits = self.value().to_string();
        let length = digits.trim_end_matches('0').len();
        let removed = digits.len() - length;
        digits.truncate(length);
        let exponent = i64::from(self.scale()).saturating_add(i64::try_from(removed).unwrap_or(i64::MAX));
        let padding = exponent.rem_euclid(3);
        (0..padding).for_each(|_| digits.push('0'));
        (digits, exponent - padding)
    }

    /// The amount as an integer, if it is one and its magnitude is at least `least`.
    pub(super) fn whole_of_at_least(&self, least: u32) -> Option<BigInt> {
        let (value, scale) = (self.value(), self.scale());
        let whole = if scale >= 0 {
            self.at_scale(0)?
        } else {
            let divisor = BigInt::from(10_u32).pow(scale.unsigned_abs());
            let whole = &value / &divisor;
            if &whole * &divisor != value {
                return None;
            }
            whole
        };
        (whole.magnitude() >= &least.into()).then_some(whole)
    }

    fn scale(&self) -> i32 {
        match self {
            Self::Small { scale, .. } | Self::Large { scale, .. } => *scale,
        }
    }

    fn value(&self) -> BigInt {
        match self {
            Self::Small { value, .. } => BigInt::from(*value),
            Self::Large { value, .. } => value.clone(),
        }
    }

    /// The exponent of the place above the first digit.
    fn leading_place(&self) -> i64 {
        let digits = match self {
            Self::Small { value, .. } => {
                value.unsigned_abs().checked_ilog10().map_or(0, |log| i64::from(log) + 1)
            }
            Self::Large { value, .. } => {
                i64::try_from(value.magnitude().to_string().len()).unwrap_or(i64::MAX)
            }
        };
        digits.saturating_add(i64::from(self.scale()))
    }

    /// The value at a scale that is not greater than its own.
    fn at_scale(&self, scale: i32) -> Option<BigInt> {
        let shift = self.scale().abs_diff(scale);
        if u64::from(shift) > DIGIT_LIMIT && self.sign().is_ne() {
            return None;
        }
        Some(self.value() * BigInt::from(10_u32).pow(if self.sign().is_eq() { 0 } else { shift }))
    }
}

fn scaled(value: i64, zeros: u32) -> Option<i64> {
    if value == 0 { Some(0) } else { value.checked_mul(10_i64.checked_pow(zeros)?) }
}

/// The nearest double, or 0 or infinity out of range; a product of powers would be inexact.
fn power_of_ten(exponent: i32) -> f64 {
    crate::stack_text::StackText::<16>::from_display(format_args!("1e{exponent}"))
        .as_str()
        .parse()
        .unwrap_or(f64::NAN)
}
