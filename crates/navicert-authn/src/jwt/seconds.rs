//! Parses times in tokens.

use navicert_go::json::{self, Raw};

use crate::profile::{AuthnProfile, Hardening};

/// The last second of the year 9999.
// H12
const MAX_TIMESTAMP: i64 = 253_402_300_799;

/// A time: a number, or a number in quotes; with [`Hardening::StrictTimestamps`] only numbers from 1970 to 9999.
// S124
pub(super) fn seconds(value: Raw<'_>, profile: &AuthnProfile) -> Option<i64> {
    let seconds = match json::plain_digits(value.bytes()) {
        Some(seconds) => seconds,
        None => parse_seconds_slow(value, profile)?,
    };
    if profile.has(Hardening::StrictTimestamps) && !(0..=MAX_TIMESTAMP).contains(&seconds) {
        return None;
    }
    Some(seconds)
}

fn parse_seconds_slow(value: Raw<'_>, profile: &AuthnProfile) -> Option<i64> {
    let quoted = value.string();
    let text = match &quoted {
        Some(text) if !profile.has(Hardening::StrictTimestamps) => text.as_ref(),
        Some(_) => return None,
        None => value.number()?,
    };
    if text.is_empty() || json::number_length(text.as_bytes()) != text.len() {
        return None;
    }
    match text.parse::<i64>() {
        Ok(seconds) => Some(seconds),
        Err(_) => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(truncated),
    }
}

/// Rounds toward zero; out of 64 bits the minimum, as on the reference platform.
// S125
#[expect(clippy::cast_possible_truncation, reason = "the range is checked, and a fraction is to be dropped")]
fn truncated(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S124, S125: with and without the fast path, at every length around its limit.
    #[test]
    fn digits_parse_to_their_value() {
        for digits in 1..=22 {
            for first in ["1", "9"] {
                let text = format!("{first}{}", "7".repeat(digits - 1));
                let raw = Raw::parse(text.as_bytes()).unwrap();
                let quoted = format!("\"{text}\"");
                let quoted = Raw::parse(quoted.as_bytes()).unwrap();
                let expected = text.parse().unwrap_or(i64::MIN);
                assert_eq!(seconds(raw, &AuthnProfile::KUBE), Some(expected), "{text}");
                assert_eq!(seconds(quoted, &AuthnProfile::KUBE), Some(expected), "{text}");
                assert_eq!(parse_seconds_slow(raw, &AuthnProfile::KUBE), Some(expected), "{text}");
                let sane = (0..=MAX_TIMESTAMP).contains(&expected).then_some(expected);
                assert_eq!(seconds(raw, &AuthnProfile::HARDENED), sane, "{text}");
                assert_eq!(seconds(quoted, &AuthnProfile::HARDENED), None, "{text}");
            }
        }
        for (text, expected) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("-0", Some(0)),
            ("1.9", Some(1)),
            ("1e3", Some(1_000)),
            ("1e400", None),
            ("\"01\"", None),
            ("\"\"", None),
            ("\" 1\"", None),
            ("\"1\"", Some(1)),
            ("true", None),
            ("null", None),
            ("[1]", None),
        ] {
            assert_eq!(
                seconds(Raw::parse(text.as_bytes()).unwrap(), &AuthnProfile::KUBE),
                expected,
                "{text}"
            );
        }
    }
}
