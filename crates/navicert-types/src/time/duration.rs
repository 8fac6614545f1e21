//! metav1.Duration: Go's `time.Duration` as text, such as `1h2m3.5s`.

use std::fmt;
use std::str::FromStr;

use navicert_go::duration;
pub use navicert_go::duration::DurationError;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::decode::{Decode, Decoder};
use crate::diagnostic::DiagnosticKind;
use crate::tree::{Node, Number, Value};

/// A span of time in nanoseconds, written as Go writes it.
///
/// ```
/// use navicert_types::time::Duration;
///
/// let duration: Duration = "1.5h".parse().unwrap();
/// assert_eq!(duration.to_string(), "1h30m0s");
/// assert_eq!("-2m.5s".parse::<Duration>().unwrap().to_string(), "-2m0.5s");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

impl Duration {
    /// Zero.
    pub const ZERO: Duration = Duration(0);

    /// The length in nanoseconds.
    pub const fn nanoseconds(self) -> i64 {
        self.0
    }

    /// The standard library's duration; `None` if negative.
    pub fn to_std(self) -> Option<std::time::Duration> {
        u64::try_from(self.0).ok().map(std::time::Duration::from_nanos)
    }
}

/// Saturates at the maximum.
impl From<std::time::Duration> for Duration {
    fn from(duration: std::time::Duration) -> Self {
        Duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        duration::parse(text).map(Duration)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        duration::Nanoseconds(self.0).fmt(f)
    }
}

impl Decode for Duration {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if let Value::Number(number) = &node.value {
            // Quotes alone would not help: what is missing is the unit.
            let hint = match number {
                Number::Integer(value @ 1..=1_000_000) => {
                    format!("add the unit: `{value}s`, `{value}m` or `{value}h`")
                }
                _ => "write a number with its unit, such as `30s`, `10m` or `12h`".to_owned(),
            };
            let message = "expected a duration, found a number".to_owned();
            decoder.report(node.span, DiagnosticKind::WrongType, message, Some(hint));
            return None;
        }
        let text = String::decode(node, decoder)?;
        text.parse()
            .map_err(|error: DurationError| decoder.report_invalid_value(node, error.to_string()))
            .ok()
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Taken from Go's time package.
    #[test]
    fn parses_and_formats_as_go_does() {
        // I31, I33
        let cases = [
            ("0", 0, "0s"),
            ("0s", 0, "0s"),
            ("+0", 0, "0s"),
            ("-0", 0, "0s"),
            ("1ns", 1, "1ns"),
            ("1100ns", 1_100, "1.1µs"),
            ("5us", 5_000, "5µs"),
            ("5µs", 5_000, "5µs"),
            ("5μs", 5_000, "5µs"),
            ("2200us", 2_200_000, "2.2ms"),
            ("10ms", 10_000_000, "10ms"),
            ("3300ms", 3_300_000_000, "3.3s"),
            ("60s", 60_000_000_000, "1m0s"),
            ("1h", 3_600_000_000_000, "1h0m0s"),
            ("1h2m3.5s", 3_723_500_000_000, "1h2m3.5s"),
            (".5s", 500_000_000, "500ms"),
            ("1.s", 1_000_000_000, "1s"),
            ("-1h", -3_600_000_000_000, "-1h0m0s"),
            ("1h1h", 7_200_000_000_000, "2h0m0s"),
            ("1s1h", 3_601_000_000_000, "1h0m1s"),
            ("0.000000001s", 1, "1ns"),
            ("0.0000000009s", 0, "0s"),
            ("1.00000000000000000000000000001s", 1_000_000_000, "1s"),
            ("0.3333333333333333333h", 1_200_000_000_000, "20m0s"),
            ("9007199254.740993s", 9_007_199_254_740_993_000, "2501999h47m34.740993s"),
            ("9223372036854775807ns", i64::MAX, "2562047h47m16.854775807s"),
            ("2562047h47m16.854775807s", i64::MAX, "2562047h47m16.854775807s"),
            ("-9223372036854775808ns", i64::MIN, "-2562047h47m16.854775808s"),
            ("-2562047h47m16.854775808s", i64::MIN, "-2562047h47m16.854775808s"),
            ("0.100000000000000000000h", 360_000_000_000, "6m0s"),
            ("0.830103483285477580700h", 2_988_372_539_827, "49m48.372539827s"),
        ];
        for (text, nanoseconds, written) in cases {
            let duration: Duration = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(
                (duration.nanoseconds(), duration.to_string().as_str()),
                (nanoseconds, written),
                "{text}"
            );
        }
    }

    #[test]
    fn rejects_what_go_rejects() {
        use DurationError::{Invalid, MissingUnit, UnknownUnit};
        let cases = [
            ("", Invalid),
            ("-", Invalid),
            ("+", Invalid),
            (".", Invalid),
            ("-.", Invalid),
            (".s", Invalid),
            ("s", Invalid),
            (" 1s", Invalid),
            ("1s ", UnknownUnit),
            ("1", MissingUnit),
            ("60", MissingUnit),
            ("1.5", MissingUnit),
            ("1d", UnknownUnit),
            ("1e3s", UnknownUnit),
            ("1m 1s", UnknownUnit),
            ("PT1H", Invalid),
            ("abc", Invalid),
            ("--1s", Invalid),
            ("1S", UnknownUnit),
            ("2562047h47m16.854775808s", Invalid),
            ("-2562047h47m16.854775809s", Invalid),
            ("9223372036854775808ns", Invalid),
            ("-9223372036854775809ns", Invalid),
            ("3000000h", Invalid),
            ("9223372036854775.808us", Invalid),
            ("99999999999999999999s", Invalid),
            ("1000000000000000000000000ns", Invalid),
        ];
        for (text, error) in cases {
            assert_eq!(text.parse::<Duration>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn invalid_duration_in_a_file_is_reported_at_its_position() {
        let read = |text: &str| {
            let node = crate::tree::parse(text.as_bytes(), crate::tree::Syntax::Yaml).unwrap();
            crate::decode::decode::<Vec<Duration>>(&node, crate::decode::DecodeMode::Strict)
                .map_err(|errors| errors.to_string())
        };
        assert_eq!(read("[1m, 2h]"), Ok(vec![Duration(60_000_000_000), Duration(7_200_000_000_000)]));
        assert_eq!(
            read("[1m, 1d]").unwrap_err(),
            "[1]: unknown unit in duration; expected one of `ns`, `us`, `ms`, `s`, `m`, `h` (line 1, column 6)"
        );
        assert_eq!(
            read("[60]").unwrap_err(),
            "[0]: expected a duration, found a number (line 1, column 2); add the unit: `60s`, `60m` or `60h`"
        );
        assert_eq!(
            read("[1.5]").unwrap_err(),
            "[0]: expected a duration, found a number (line 1, column 2); write a number with its unit, such as \
             `30s`, `10m` or `12h`"
        );
    }

    #[test]
    fn every_duration_that_a_hint_suggests_is_valid() {
        for number in ["12", "1000000", "1000001", "9223372036854775807", "1.5", "0", "-3"] {
            let node = crate::tree::parse(number.as_bytes(), crate::tree::Syntax::Yaml).unwrap();
            let errors =
                crate::decode::decode::<Duration>(&node, crate::decode::DecodeMode::Strict).unwrap_err();
            let hint = errors.into_iter().next().unwrap().hint.unwrap();
            let suggested: Vec<&str> = hint.split('`').skip(1).step_by(2).collect();
            assert_eq!(suggested.len(), 3, "{hint}");
            for text in suggested {
                assert!(text.parse::<Duration>().is_ok(), "{number}: {hint}");
            }
        }
    }

    #[test]
    fn converts_to_and_from_the_standard_duration() {
        assert_eq!(Duration::from(std::time::Duration::from_millis(1_500)).to_string(), "1.5s");
        assert_eq!(Duration::from(std::time::Duration::MAX), Duration(i64::MAX));
        assert_eq!("90s".parse::<Duration>().unwrap().to_std(), Some(std::time::Duration::from_secs(90)));
        assert_eq!(Duration(-1).to_std(), None);
    }

    proptest! {
        #[test]
        fn formatted_duration_parses_back(nanoseconds in prop_oneof![any::<i64>(), -5_000_000_000i64..5_000_000_000]) {
            let text = Duration(nanoseconds).to_string();
            prop_assert_eq!(text.parse(), Ok(Duration(nanoseconds)), "{}", text);
            let json = serde_json::to_string(&Duration(nanoseconds)).unwrap();
            prop_assert_eq!(serde_json::from_str::<Duration>(&json).unwrap(), Duration(nanoseconds));
        }

        #[test]
        fn parser_never_panics(text in "[-+0-9.nuµmsh]{0,40}|\\PC{0,10}") {
            let _ = text.parse::<Duration>();
        }
    }
}
