//! Durations: nanoseconds in an `i64`, parsed as in Go (`1h30m`, `1.5s`) and formatted in seconds.

use crate::number::PlainDouble;
use std::fmt;

/// Maximum magnitude while parsing: one more than `i64::MAX`, valid only for negative durations.
const MAGNITUDE_LIMIT: u64 = 1 << 63;

/// Parses a duration such as `-1h30m`, `1.5s` or `0` to nanoseconds. Returns `None` for invalid text and beyond
/// ±292 years.
#[must_use]
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
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

/// Parses the first number with unit to nanoseconds and returns the rest of the text.
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
        // The two Unicode spellings: micro sign and Greek mu.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// The fraction of a unit, computed in doubles as in Go: `.000000000001h` is 3 ns, not 4.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as Go computes"
)]
fn fraction(digits: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0_u64, 1.0_f64);
    for byte in digits.bytes() {
        // Digits that no longer fit are ignored.
        let next = (value <= u64::MAX / 20).then(|| value * 10 + u64::from(byte - b'0'));
        let Some(next) = next.filter(|&next| next <= MAGNITUDE_LIMIT) else { break };
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// Displays nanoseconds as `string(duration)`: seconds with the shortest fraction, computed in doubles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DurationText(pub i64);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", PlainDouble(in_units(self.0, 1_000_000_000)))
    }
}

/// `getHours` of a duration: total hours, rounded toward zero.
#[must_use]
pub(crate) fn hours(nanoseconds: i64) -> i64 {
    truncated(in_units(nanoseconds, 3_600_000_000_000))
}

/// `getMinutes` of a duration: total minutes, rounded toward zero.
#[must_use]
pub(crate) fn minutes(nanoseconds: i64) -> i64 {
    truncated(in_units(nanoseconds, 60_000_000_000))
}

/// `getSeconds` of a duration: total seconds, rounded toward zero.
#[must_use]
pub(crate) fn seconds(nanoseconds: i64) -> i64 {
    truncated(in_units(nanoseconds, 1_000_000_000))
}

/// `getMilliseconds` of a duration: total milliseconds, rounded toward zero.
#[must_use]
pub(crate) fn milliseconds(nanoseconds: i64) -> i64 {
    nanoseconds / 1_000_000
}

/// Converts whole units and remainder to doubles separately and adds them, as in Go; nearly full units of long
/// durations round up.
#[expect(clippy::cast_precision_loss, reason = "as Go computes")]
fn in_units(nanoseconds: i64, unit: i64) -> f64 {
    (nanoseconds / unit) as f64 + (nanoseconds % unit) as f64 / unit as f64
}

#[expect(clippy::cast_possible_truncation, reason = "at most 2^63 / 10^9")]
fn truncated(value: f64) -> i64 {
    value as i64
}
