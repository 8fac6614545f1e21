//! Number formatting for the clauses of the two dialects.

use super::Verb;
use crate::number::{PlainDouble, write_exponent};
use crate::stack_text::StackText;
use std::fmt::{self, Write};

/// Buffer for the integer digits of any double, a decimal point and all its fraction digits.
type Digits = StackText<1500>;
const FRACTION_LIMIT: usize = 1100;

/// The precision from which Go's printer cannot parse it and writes an error into the text.
const PRECISION_LIMIT: u64 = 10_000_010;
const UNREADABLE: &str = "%!(NOVERB)";

/// `%f` of the standard dialect.
pub(super) fn fixed(out: &mut dyn Write, value: f64, precision: u64) -> fmt::Result {
    match word(value) {
        Some(word) => out.write_str(word),
        None => write!(out, "{value:.*}", usize::try_from(precision).unwrap_or(FRACTION_LIMIT)),
    }
}

/// `%e` of the standard dialect: `1.052033e+03`.
pub(super) fn scientific(out: &mut dyn Write, value: f64, precision: u64) -> fmt::Result {
    if let Some(word) = word(value) {
        return out.write_str(word);
    }
    let (digits, exponent) =
        mantissa_and_exponent(value, usize::try_from(precision).unwrap_or(FRACTION_LIMIT));
    out.write_str(digits.as_str())?;
    let mut text = StackText::<8>::new();
    write_exponent(&mut text, exponent)?;
    out.write_str(text.as_str())
}

/// `%s` and `%d` of a double in the standard dialect: all digits, never an exponent.
pub(super) fn plain(out: &mut dyn Write, value: f64) -> fmt::Result {
    match word(value) {
        Some(word) => out.write_str(word),
        None => write!(out, "{}", PlainDouble(value)),
    }
}

fn word(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        None
    }
}

fn symbol(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "∞" } else { "-∞" })
    } else {
        None
    }
}

/// `%f` of Kubernetes: `1,234.50`.
///
/// Go's printer stores the minimum number of fraction digits in one byte: from precision 256 on, trailing zeros are
/// written only up to the precision modulo 256. It stores the maximum in a signed number of two bytes: if that is
/// negative, the shortest digits that identify the number are written.
pub(super) fn grouped(out: &mut dyn Write, value: f64, precision: u64) -> fmt::Result {
    if precision >= PRECISION_LIMIT {
        return out.write_str(UNREADABLE);
    }
    if let Some(symbol) = symbol(value) {
        return out.write_str(symbol);
    }
    let max_places = usize::try_from(precision % 65_536).unwrap_or(FRACTION_LIMIT);
    let digits = if max_places < 32_768 {
        let places = max_places.min(FRACTION_LIMIT);
        Digits::from_display(format_args!("{:.places$}", value.abs()))
    } else {
        Digits::from_display(format_args!("{}", value.abs()))
    };
    let (whole, fraction) = digits.as_str().split_once('.').unwrap_or((digits.as_str(), ""));
    if value < 0.0 {
        out.write_char('-')?;
    }
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            out.write_char(',')?;
        }
        out.write_char(digit)?;
    }
    let min_places = usize::try_from(precision % 256).unwrap_or(0);
    let significant = fraction.trim_end_matches('0').len().max(min_places);
    if significant == 0 {
        return Ok(());
    }
    out.write_char('.')?;
    let written = fraction.get(..significant).unwrap_or(fraction);
    out.write_str(written)?;
    (written.len()..significant).try_for_each(|_| out.write_char('0'))
}

/// `%e` of Kubernetes: `1.052033×10⁰³`, always with six digits; the precision is the minimum width, which Go's printer
/// stores in two bytes.
pub(super) fn superscript(out: &mut dyn Write, value: f64, precision: u64) -> fmt::Result {
    if precision >= PRECISION_LIMIT {
        return out.write_str(UNREADABLE);
    }
    let mut text = StackText::<64>::new();
    if let Some(symbol) = symbol(value) {
        text.write_str(symbol)?;
    } else {
        // No sign for a negative zero.
        let (digits, exponent) = mantissa_and_exponent(if value == 0.0 { 0.0 } else { value }, 6);
        write!(text, "{}×10{}", digits.as_str(), if exponent < 0 { "⁻" } else { "" })?;
        let digits = StackText::<8>::from_display(format_args!("{:02}", exponent.unsigned_abs()));
        digits.as_str().chars().try_for_each(|digit| text.write_char(raised(digit)))?;
    }
    let width = u64::try_from(text.as_str().chars().count()).unwrap_or(u64::MAX);
    (width..precision % 65_536).try_for_each(|_| out.write_char(' '))?;
    out.write_str(text.as_str())
}

fn raised(digit: char) -> char {
    match digit {
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        _ => '⁹',
    }
}

fn mantissa_and_exponent(value: f64, places: usize) -> (StackText<160>, i32) {
    let places = places.min(100);
    let text = StackText::<160>::from_display(format_args!("{value:.places$e}"));
    match text.as_str().split_once('e') {
        Some((digits, exponent)) => (StackText::from_display(digits), exponent.parse().unwrap_or(0)),
        None => (text, 0),
    }
}

/// `%x`, `%X`, `%o` and `%b` of an integer, given as sign and magnitude.
pub(super) fn in_base(out: &mut dyn Write, verb: Verb, negative: bool, magnitude: u64) -> fmt::Result {
    if negative {
        out.write_char('-')?;
    }
    match verb {
        Verb::Binary => write!(out, "{magnitude:b}"),
        Verb::Octal => write!(out, "{magnitude:o}"),
        Verb::UpperHex => write!(out, "{magnitude:X}"),
        _ => write!(out, "{magnitude:x}"),
    }
}

/// `%x` and `%X` of strings and bytes: two digits per byte.
pub(super) fn hex_bytes(out: &mut dyn Write, verb: Verb, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| match verb {
        Verb::UpperHex => write!(out, "{byte:02X}"),
        _ => write!(out, "{byte:02x}"),
    })
}
