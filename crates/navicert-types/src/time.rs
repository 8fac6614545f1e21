//! metav1.Duration: lengths of time as Go writes and reads them (I30–I33).

use std::fmt;

use crate::decode::{Decode, Decoder};
use crate::tree::Node;

/// A length of time in nanoseconds, negative ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

impl Duration {
    /// From nanoseconds.
    pub fn from_nanoseconds(nanoseconds: i64) -> Self {
        Duration(nanoseconds)
    }

    /// In nanoseconds.
    pub fn nanoseconds(self) -> i64 {
        self.0
    }

    /// Reads Go's notation.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, digits) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        if digits == "0" {
            return Some(Duration(0));
        }
        let mut rest = digits;
        let mut sum: i128 = 0;
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let (number, after) = rest.split_at(end);
            let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
            let (unit, tail) = after.split_at(unit_end);
            let scale: i128 = match unit {
                "ns" => 1,
                "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
                "ms" => 1_000_000,
                "s" => 1_000_000_000,
                "m" => 60_000_000_000,
                "h" => 3_600_000_000_000,
                _ => return None,
            };
            let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
            if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
                return None;
            }
            let whole: i128 = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()?.into() };
            let mut part: i128 = whole * scale;
            let mut place = scale;
            for digit in fraction.chars() {
                place /= 10;
                part += i128::from(digit.to_digit(10)?) * place;
            }
            sum += part;
            rest = tail;
        }
        if digits.is_empty() {
            return None;
        }
        i64::try_from(if negative { -sum } else { sum }).ok().map(Duration)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let fraction = |f: &mut fmt::Formatter<'_>, value: u64, scale: u64, width: usize, unit: &str| {
            let rest = format!("{:0width$}", value % scale);
            let rest = rest.trim_end_matches('0');
            let dot = if rest.is_empty() { "" } else { "." };
            write!(f, "{}{dot}{rest}{unit}", value / scale)
        };
        match total {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{total}ns"),
            1_000..1_000_000 => fraction(f, total, 1_000, 3, "\u{b5}s"),
            1_000_000..1_000_000_000 => fraction(f, total, 1_000_000, 6, "ms"),
            _ => {
                let seconds = total / 1_000_000_000;
                if seconds >= 3_600 {
                    write!(f, "{}h", seconds / 3_600)?;
                }
                if seconds >= 60 {
                    write!(f, "{}m", seconds / 60 % 60)?;
                }
                fraction(f, total % 60_000_000_000, 1_000_000_000, 9, "s")
            }
        }
    }
}

impl Decode for Duration {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let text = String::decode(node, decoder)?;
        let duration = Duration::parse(&text);
        if duration.is_none() {
            decoder.invalid_value(node, "expected a length of time such as `12h` or `1m30s`");
        }
        duration
    }
}
