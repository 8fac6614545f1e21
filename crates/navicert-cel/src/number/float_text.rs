//! Parses a double with the grammar of Go's `strconv.ParseFloat`, which `double("...")` uses: decimal and
//! hexadecimal, underscores between digits, `inf`, `infinity` and `nan` in any case.

use crate::stack_text::StackText;
use std::fmt::Write as _;

/// Parses a double; `None` for invalid text and out of range.
#[must_use]
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    if text.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    }
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let magnitude = if unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity") {
        f64::INFINITY
    } else {
        finite(unsigned).filter(|value| value.is_finite())?
    };
    Some(if negative { -magnitude } else { magnitude })
}

fn finite(text: &str) -> Option<f64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(rest) => {
            underscores_separate_digits(rest, true)?;
            hexadecimal(rest)
        }
        None => {
            underscores_separate_digits(text, false)?;
            decimal(text)
        }
    }
}

/// Checks that every underscore is between two digits; one may also follow a base prefix.
fn underscores_separate_digits(text: &str, hex: bool) -> Option<()> {
    let digit = |byte: u8| if hex { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
    let mut after_digit = hex;
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        if byte == b'_' && !(after_digit && bytes.peek().is_some_and(|&next| digit(next))) {
            return None;
        }
        after_digit = digit(byte);
    }
    Some(())
}

fn decimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => {
            let (mantissa, rest) = text.split_at_checked(at)?;
            (mantissa, Some(rest.get(1..)?))
        }
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !digits(whole) || !digits(fraction) || !mantissa.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if exponent.is_some_and(|exponent| exponent_value(exponent).is_none()) {
        return None;
    }
    if !text.contains('_') {
        return text.parse().ok();
    }
    let mut plain = StackText::<64>::new();
    let fits = text.split('_').try_for_each(|piece| plain.write_str(piece)).is_ok();
    if fits { plain.as_str().parse().ok() } else { text.replace('_', "").parse().ok() }
}

fn digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}

/// Parses a signed decimal exponent, limited to ±1,000,000, beyond which the result does not change.
fn exponent_value(text: &str) -> Option<i64> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if !digits(unsigned) || !unsigned.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let magnitude = unsigned
        .bytes()
        .filter(u8::is_ascii_digit)
        .fold(0_i64, |sum, byte| (sum * 10 + i64::from(byte - b'0')).min(1_000_000));
    Some(if negative { -magnitude } else { magnitude })
}

/// Parses `h.hhh p ±d` after the prefix; the exponent is required.
fn hexadecimal(text: &str) -> Option<f64> {
    let at = text.find(['p', 'P'])?;
    let (mantissa, rest) = text.split_at_checked(at)?;
    let mut exponent = exponent_value(rest.get(1..)?)?;
    let (mut bits, mut sticky, mut any_digit, mut in_fraction) = (0_u64, false, false, false);
    for symbol in mantissa.chars() {
        match (symbol, symbol.to_digit(16)) {
            (_, Some(digit)) => {
                any_digit = true;
                let full = bits >> 60 != 0;
                if full {
                    sticky |= digit != 0;
                } else {
                    bits = bits << 4 | u64::from(digit);
                }
                // A whole-part digit that does not fit in the 64 bits still scales up; a fraction digit that does
                // scales down.
                exponent = exponent.saturating_add(match (full, in_fraction) {
                    (true, false) => 4,
                    (false, true) => -4,
                    _ => 0,
                });
            }
            ('.', None) if !in_fraction => in_fraction = true,
            ('_', None) => {}
            _ => return None,
        }
    }
    any_digit.then(|| scale(bits, sticky, exponent))
}

/// `bits × 2^exponent`, rounded once, ties to even; `sticky` is set if lower bits were dropped.
#[expect(clippy::cast_precision_loss, reason = "at most 53 bits are left when converted")]
fn scale(bits: u64, sticky: bool, exponent: i64) -> f64 {
    if bits == 0 {
        return 0.0;
    }
    let length = i64::from(64 - bits.leading_zeros());
    // Below 2^-1022 the last bit of a double is fixed at 2^-1074.
    let drop = (length - 53).max(-1074 - exponent).max(0);
    let rounded = if drop > 64 {
        0
    } else {
        let wide = u128::from(bits);
        let kept = wide >> drop;
        let rest = wide - (kept << drop);
        let half = if drop == 0 { 0 } else { 1_u128 << (drop - 1) };
        let up = drop > 0 && (rest > half || rest == half && (sticky || kept & 1 == 1));
        kept + u128::from(up)
    };
    let mut value = rounded as f64;
    let mut power = exponent.saturating_add(drop).clamp(-4000, 4000);
    // Each step is exact, or the final result overflows.
    while power != 0 && value.is_finite() {
        let step = power.clamp(-1000, 1000);
        value *= 2_f64.powi(i32::try_from(step).unwrap_or(0));
        power -= step;
    }
    value
}
