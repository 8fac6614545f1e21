//! Durations: a count of nanoseconds in an `i64`, read as Go reads them (`1h30m`, `1.5s`) and written in seconds.

use crate::number::PlainDouble;
use std::fmt;

/// The longest text [`DurationText`] writes: `-9223372036.854776s`, or a fraction with nine places.
pub const DURATION_TEXT_LIMIT: usize = 32;

/// The limit of a magnitude while it is read: one past `i64::MAX`, reachable only with a minus sign.
const MAGNITUDE_LIMIT: u64 = 1 << 63;

/// Nanoseconds from text like `-1h30m`, `1.5s` or `0`; `None` for bad text and beyond ±292 years.
#[must_use]
pub fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (part, tail) = leading_part(rest)?;
        total = total.checked_add(part).filter(|&sum| sum <= MAGNITUDE_LIMIT)?;
        rest = tail;
    }
    if negative { 0_i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() }
}

/// The first `number unit` of the text in nanoseconds, and what comes after.
fn leading_part(text: &str) -> Option<(u64, &str)> {
    let (whole_digits, rest) = split_digits(text)?;
    let whole = whole_digits.bytes().try_fold(0_u64, |sum, byte| {
        sum.checked_mul(10)?.checked_add(u64::from(byte - b'0')).filter(|&sum| sum <= MAGNITUDE_LIMIT)
    })?;
    let (fraction_digits, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest)?,
        None => ("", rest),
    };
    if whole_digits.is_empty() && fraction_digits.is_empty() {
        return None;
    }
    let end = rest.find(|symbol: char| symbol == '.' || symbol.is_ascii_digit()).unwrap_or(rest.len());
    let (name, rest) = rest.split_at_checked(end)?;
    let unit = unit(name)?;
    let nanoseconds = whole.checked_mul(unit).filter(|&value| value <= MAGNITUDE_LIMIT)?;
    let nanoseconds =
        nanoseconds.checked_add(fraction(fraction_digits, unit)).filter(|&sum| sum <= MAGNITUDE_LIMIT)?;
    Some((nanoseconds, rest))
}

fn split_digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|symbol: char| !symbol.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end)
}

fn unit(name: &str) -> Option<u64> {
    Some(match name {
        "ns" => 1,
        // Both Unicode spellings: micro sign and Greek mu.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// The fraction of a unit. Go computes it in doubles, so this must too: `.000000000001h` is 3 ns, not 4.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as Go computes"
)]
fn fraction(digits: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0_u64, 1.0_f64);
    for byte in digits.bytes() {
        // Digits that no longer fit change nothing.
        let next = (value <= u64::MAX / 20).then(|| value * 10 + u64::from(byte - b'0'));
        let Some(next) = next.filter(|&next| next <= MAGNITUDE_LIMIT) else { break };
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// Displays nanoseconds as `string(duration)` does: seconds with the shortest fraction, computed in doubles.
#[derive(Clone, Copy, Debug)]
pub struct DurationText(pub i64);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", PlainDouble(in_units(self.0, 1_000_000_000)))
    }
}

/// `getHours` of a duration: hours, rounded toward zero.
#[must_use]
pub fn hours(nanoseconds: i64) -> i64 {
    truncated(in_units(nanoseconds, 3_600_000_000_000))
}

/// `getMinutes` of a duration: all its minutes, rounded toward zero.
#[must_use]
pub fn minutes(nanoseconds: i64) -> i64 {
    truncated(in_units(nanoseconds, 60_000_000_000))
}

/// `getSeconds` of a duration: all its seconds, rounded toward zero.
#[must_use]
pub fn seconds(nanoseconds: i64) -> i64 {
    truncated(in_units(nanoseconds, 1_000_000_000))
}

/// `getMilliseconds` of a duration: all its milliseconds, rounded toward zero.
#[must_use]
pub fn milliseconds(nanoseconds: i64) -> i64 {
    nanoseconds / 1_000_000
}

/// Whole units and remainder are turned into doubles apart and added: nearly full units of long durations round up.
#[expect(clippy::cast_precision_loss, reason = "as Go computes")]
fn in_units(nanoseconds: i64, unit: i64) -> f64 {
    (nanoseconds / unit) as f64 + (nanoseconds % unit) as f64 / unit as f64
}

#[expect(clippy::cast_possible_truncation, reason = "at most 2^63 / 10^9")]
fn truncated(value: f64) -> i64 {
    value as i64
}
