//! Resolves YAML scalars as Kubernetes does: go-yaml v2, which is YAML 1.1 without base 60, followed by conversion to
//! JSON.

use base64::Engine as _;
use navicert_go::base64::{STANDARD, without_line_breaks};
use zeroize::Zeroizing;

use super::{Number, Value};

/// A resolved scalar before its conversion to JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
}

/// Why a scalar has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarError {
    /// The text does not have the type its tag names.
    Tag,
    /// `!!binary` text is not base64.
    Binary,
    /// A number JSON cannot represent.
    NotJson,
}

const CORE: &str = "tag:yaml.org,2002:";

/// Resolves a plain scalar without a tag.
pub(super) fn resolve_plain(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Scalar::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let number = match text.as_bytes() {
        [b'.', ..] => separated_float(text),
        [b'0'..=b'9' | b'+' | b'-', ..] => number(&text.replace('_', "")),
        _ => None,
    };
    number.unwrap_or_else(|| Scalar::Text(text.to_owned()))
}

/// Resolves a scalar with a tag; the tag decides whether or not the scalar is quoted.
pub(super) fn resolve_tagged(tag: &str, text: &str) -> Result<Scalar, ScalarError> {
    let resolved = resolve_plain(text);
    match (tag.strip_prefix(CORE), &resolved) {
        (Some("binary"), _) => binary(text),
        (Some("null"), Scalar::Null)
        | (Some("bool"), Scalar::Bool(_))
        | (Some("int"), Scalar::Integer(_) | Scalar::Unsigned(_))
        | (Some("float"), Scalar::Float(_)) => Ok(resolved),
        #[expect(clippy::cast_precision_loss, reason = "`!!float` requests the conversion")]
        (Some("float"), Scalar::Integer(value)) => Ok(Scalar::Float(*value as f64)),
        (Some("timestamp"), Scalar::Text(_)) if looks_like_a_date(text) => Ok(resolved),
        (Some("null" | "bool" | "int" | "float" | "timestamp"), _) => Err(ScalarError::Tag),
        _ => Ok(Scalar::Text(text.to_owned())),
    }
}

impl Scalar {
    /// The JSON value Kubernetes converts it to.
    pub(super) fn into_value(self) -> Result<Value, ScalarError> {
        Ok(match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Integer(value) => Value::Number(Number::Integer(value)),
            Scalar::Unsigned(value) => Value::Number(Number::Unsigned(value)),
            Scalar::Float(value) if !value.is_finite() => return Err(ScalarError::NotJson),
            Scalar::Float(value) => Value::Number(json_number(value)),
            Scalar::Text(text) => Value::String(Zeroizing::new(text)),
        })
    }

    /// The mapping key, or `None` if it cannot be one.
    pub(super) fn into_key(self) -> Option<String> {
        match self {
            Scalar::Null | Scalar::Unsigned(_) => None,
            Scalar::Bool(value) => Some(value.to_string()),
            Scalar::Integer(value) => Some(value.to_string()),
            Scalar::Float(value) => Some(float_key(value)),
            Scalar::Text(text) => Some(text),
        }
    }
}

/// The spelling sigs.k8s.io/yaml gives a float key: Go's shortest form of the number as a 32-bit float.
pub(super) fn float_key(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "the reference narrows here too")]
    let narrow = value as f32;
    if narrow.is_nan() {
        return ".nan".to_owned();
    }
    if narrow.is_infinite() {
        return if narrow > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{narrow:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(-4..6) => narrow.to_string(),
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        Err(_) => scientific,
    }
}

/// Go writes a float without a fraction as an integer (up to 1e21), and JSON decoders then read an integer.
fn json_number(value: f64) -> Number {
    if value.fract() == 0.0 && value.abs() < 1e21 {
        let digits = value.to_string();
        if let Ok(integer) = digits.parse::<i64>() {
            return Number::Integer(integer);
        }
        if let Ok(integer) = digits.parse::<u64>() {
            return Number::Unsigned(integer);
        }
    }
    Number::Float(value)
}

fn number(text: &str) -> Option<Scalar> {
    let (negative, unsigned) = match text.as_bytes() {
        [b'-', ..] => (true, text.strip_prefix('-')?),
        [b'+', ..] => (false, text.strip_prefix('+')?),
        _ => (false, text),
    };
    let has_sign = unsigned.len() != text.len();
    let (digits, radix) = radix(unsigned);
    if !digits.is_empty() && digits.bytes().all(|byte| char::from(byte).is_digit(radix)) {
        let magnitude = u64::from_str_radix(digits, radix).ok();
        if let Some(value) = magnitude.and_then(|magnitude| signed(negative, magnitude)) {
            return Some(Scalar::Integer(value));
        }
        // Without a sign, one more bit is available.
        if let Some(value) = magnitude.filter(|_| !has_sign) {
            return Some(Scalar::Unsigned(value));
        }
    }
    is_decimal_float(unsigned).then(|| finite(text)).flatten()
}

/// The digits after the prefix, and their base: `0x`, `0o`, `0b`, and a leading zero for octal.
fn radix(text: &str) -> (&str, u32) {
    match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (text.get(2..).unwrap_or_default(), 16),
        [b'0', b'o' | b'O', ..] => (text.get(2..).unwrap_or_default(), 8),
        [b'0', b'b' | b'B', ..] => (text.get(2..).unwrap_or_default(), 2),
        [b'0', _, ..] => (text.get(1..).unwrap_or_default(), 8),
        _ => (text, 10),
    }
}

fn signed(negative: bool, magnitude: u64) -> Option<i64> {
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// A number that begins with `.`; `_` may separate its digits.
fn separated_float(text: &str) -> Option<Scalar> {
    let bytes = text.as_bytes();
    let is_digit = |index: Option<usize>| index.and_then(|i| bytes.get(i)).is_some_and(u8::is_ascii_digit);
    let separators_fit = bytes
        .iter()
        .enumerate()
        .filter(|&(_, &byte)| byte == b'_')
        .all(|(index, _)| is_digit(index.checked_sub(1)) && is_digit(Some(index + 1)));
    let plain = text.replace('_', "");
    (separators_fit && is_decimal_float(&plain)).then(|| finite(&plain)).flatten()
}

/// Digits with at most one point and an optional exponent, no sign.
fn is_decimal_float(text: &str) -> bool {
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && all_digits(fraction),
        Some((whole, fraction)) => all_digits(whole) && all_digits(fraction),
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    mantissa_fits && exponent_fits
}

/// Parses a finite double; other texts stay strings.
fn finite(text: &str) -> Option<Scalar> {
    text.parse::<f64>().ok().filter(|value| value.is_finite()).map(Scalar::Float)
}

fn binary(text: &str) -> Result<Scalar, ScalarError> {
    let packed = Zeroizing::new(without_line_breaks(text.as_bytes()));
    let bytes = STANDARD.decode(&*packed).map_err(|_| ScalarError::Binary)?;
    Ok(Scalar::Text(String::from_utf8_lossy(&bytes).into_owned()))
}

fn looks_like_a_date(text: &str) -> bool {
    let (year, rest) = text.split_at_checked(4).unwrap_or_default();
    year.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with('-')
}
