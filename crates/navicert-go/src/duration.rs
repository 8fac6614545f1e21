//! Durations such as `1h2m3.5s`, as Go's `time.ParseDuration` reads and `time.Duration` writes them.

use std::fmt;

/// Why a text is not a valid duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not a sequence of numbers and units, or out of the range of 64-bit nanoseconds.
    #[error("invalid duration; expected a value such as `1h30m` within range")]
    Invalid,
    /// A number has no unit.
    #[error("missing unit in duration; write `30s`, not `30`")]
    MissingUnit,
    /// The unit is unknown to Go.
    #[error("unknown unit in duration; expected one of `ns`, `us`, `ms`, `s`, `m`, `h`")]
    UnknownUnit,
}

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The magnitude of the smallest duration; one more than that of the largest.
const LIMIT: u64 = 1 << 63;

/// Parses a duration into nanoseconds.
///
/// # Errors
/// [`DurationError`] where Go returns an error.
pub fn parse(text: &str) -> Result<i64, DurationError> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(DurationError::Invalid);
    }
    let mut total = 0u64;
    while !rest.is_empty() {
        let (part, after) = part(rest)?;
        total = total.checked_add(part).filter(|total| *total <= LIMIT).ok_or(DurationError::Invalid)?;
        rest = after;
    }
    let signed = if negative { 0i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() };
    signed.ok_or(DurationError::Invalid)
}

/// One number with its unit in nanoseconds, and the remaining text.
fn part(text: &str) -> Result<(u64, &str), DurationError> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::Invalid);
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let unit = match unit {
        "" => return Err(DurationError::MissingUnit),
        "ns" => 1,
        // The micro sign, and the Greek letter mu.
        "us" | "\u{B5}s" | "\u{3BC}s" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return Err(DurationError::UnknownUnit),
    };
    let whole = if whole.is_empty() { Ok(0) } else { whole.parse::<u64>() };
    let product = whole.ok().and_then(|whole| whole.checked_mul(unit)).ok_or(DurationError::Invalid)?;
    let sum = product.checked_add(fraction_of(unit, fraction)).filter(|sum| *sum <= LIMIT);
    Ok((sum.ok_or(DurationError::Invalid)?, rest))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Computed in a double with as many digits as fit into 63 bits, to get Go's rounding.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the digits are meant to be rounded, and the result is less than one hour"
)]
fn fraction_of(unit: u64, digits: &str) -> u64 {
    let (mut value, mut scale) = (0u64, 1f64);
    for digit in digits.bytes().map(|digit| u64::from(digit - b'0')) {
        let longer = value.checked_mul(10).and_then(|value| value.checked_add(digit));
        match longer.filter(|longer| *longer <= LIMIT && value <= (LIMIT - 1) / 10) {
            Some(longer) => value = longer,
            None => break,
        }
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// A number of nanoseconds that is displayed as Go writes a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nanoseconds(pub i64);

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        if magnitude == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_str("-")?;
        }
        match magnitude {
            ..MICROSECOND => write!(f, "{magnitude}ns"),
            MICROSECOND..MILLISECOND => write!(f, "{}\u{B5}s", Decimal(magnitude, MICROSECOND)),
            MILLISECOND..SECOND => write!(f, "{}ms", Decimal(magnitude, MILLISECOND)),
            _ => {
                let (hours, minutes) = (magnitude / HOUR, magnitude % HOUR / MINUTE);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if magnitude >= MINUTE {
                    write!(f, "{minutes}m")?;
                }
                write!(f, "{}s", Decimal(magnitude % MINUTE, SECOND))
            }
        }
    }
}

/// A number of units with its fraction, without trailing zeros.
struct Decimal(u64, u64);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decimal(value, unit) = *self;
        write!(f, "{}", value / unit)?;
        if value % unit == 0 {
            return Ok(());
        }
        let width = usize::try_from(unit.ilog10()).unwrap_or_default();
        let fraction = format!("{:0width$}", value % unit);
        write!(f, ".{}", fraction.trim_end_matches('0'))
    }
}
