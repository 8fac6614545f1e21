//! `resource.Quantity`: exact decimal amounts with suffixes (`1.5Gi`, `100m`, `1e3`).
//!
//! Upstream has two representations, a 64-bit integer with a decimal scale and an arbitrary-precision decimal. The
//! choice is visible: only the first can be an integer (`isInteger`), so this module follows the same rule.

use num_bigint::BigInt;
use std::cmp::Ordering;
use std::fmt;

mod amount;
mod parse;

use amount::Amount;

/// An amount with its notation and possibly its source text.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    notation: Notation,
    /// The source text, if it passes upstream's quick test for the canonical form. Upstream returns such a text
    /// unchanged, with sign and zeros.
    text: Option<Box<str>>,
}

/// The notation of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    /// `1k`
    DecimalSuffix,
    /// `1Ki`
    BinarySuffix,
    /// `1e3`
    Exponent,
}

/// An invalid quantity, or an operation without result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuantityError {
    /// The text is not a number with a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The number before the suffix is invalid.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The amount is not a 64-bit integer.
    #[error("cannot convert value to integer")]
    NotInteger,
    /// The amount has too many digits.
    #[error("quantity has too many digits")]
    TooLarge,
}

impl Quantity {
    /// `quantity(text)`; `isQuantity(text)` is whether this succeeds.
    pub(crate) fn parse(text: &str) -> Result<Self, QuantityError> {
        parse::parse(text)
    }

    /// `asInteger()`. Succeeds only for amounts of up to 18 digits written without a fraction.
    pub(crate) fn as_integer(&self) -> Result<i64, QuantityError> {
        self.amount.as_integer().ok_or(QuantityError::NotInteger)
    }

    /// `isInteger()`
    #[must_use]
    pub(crate) fn is_integer(&self) -> bool {
        self.amount.as_integer().is_some()
    }

    /// `asApproximateFloat()`
    #[must_use]
    pub(crate) fn as_approximate_double(&self) -> f64 {
        self.amount.approximate()
    }

    /// `sign(quantity)`: -1, 0 or 1.
    #[must_use]
    pub(crate) fn sign(&self) -> i64 {
        match self.amount.sign() {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// `add(quantity)`. If `self` is zero, the result has the notation of `other`.
    pub(crate) fn checked_add(&self, other: &Self) -> Result<Self, QuantityError> {
        self.combined(other, Amount::checked_add)
    }

    /// `sub(quantity)`
    pub(crate) fn checked_sub(&self, other: &Self) -> Result<Self, QuantityError> {
        self.combined(other, |left, right| left.checked_add(&right.negated()))
    }

    /// `add(int)`
    pub(crate) fn checked_add_int(&self, other: i64) -> Result<Self, QuantityError> {
        self.checked_add(&Self::from_int(other))
    }

    /// `sub(int)`
    pub(crate) fn checked_sub_int(&self, other: i64) -> Result<Self, QuantityError> {
        self.checked_sub(&Self::from_int(other))
    }

    fn from_int(value: i64) -> Self {
        Self { amount: Amount::Small { value, scale: 0 }, notation: Notation::Exponent, text: None }
    }

    fn combined(
        &self,
        other: &Self,
        combine: impl Fn(&Amount, &Amount) -> Option<Amount>,
    ) -> Result<Self, QuantityError> {
        let notation = if self.amount.sign().is_eq() { other.notation } else { self.notation };
        let amount = combine(&self.amount, &other.amount).ok_or(QuantityError::TooLarge)?;
        Ok(Self { amount, notation, text: None })
    }
}

/// Compares amounts: `1` equals `1000m`. `compareTo`, `isLessThan`, `isGreaterThan` and `==` use this order.
impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.compare(&other.amount)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

/// The canonical text. As upstream, amounts from `1000E` on are written without a suffix.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return f.write_str(text);
        }
        if self.amount.sign().is_eq() {
            return f.write_str("0");
        }
        if self.notation == Notation::BinarySuffix
            && let Some(whole) = self.amount.whole_of_at_least(1024)
        {
            return write_binary(f, whole);
        }
        let (digits, exponent) = self.amount.digits_by_thousands();
        f.write_str(&digits)?;
        match (self.notation, exponent) {
            (_, 0) => Ok(()),
            (Notation::Exponent, exponent) => write!(f, "e{exponent}"),
            (_, exponent) => f.write_str(decimal_suffix(exponent)),
        }
    }
}

fn write_binary(f: &mut fmt::Formatter<'_>, whole: BigInt) -> fmt::Result {
    const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let zeros = whole.trailing_zeros().unwrap_or(0) / 10;
    let suffix =
        usize::try_from(zeros).ok().and_then(|zeros| SUFFIXES.get(zeros)).copied().unwrap_or_default();
    write!(f, "{}{suffix}", whole >> (zeros * 10))
}

fn decimal_suffix(exponent: i64) -> &'static str {
    match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
