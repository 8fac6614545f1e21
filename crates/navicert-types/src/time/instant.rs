//! metav1.Time: RFC 3339 on the wire, parsed as leniently as Go does and written as whole seconds in UTC.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use navicert_go::time::{format_rfc3339, parse_rfc3339};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::decode::{Decode, Decoder};
use crate::tree::Node;

/// An instant, or unset: Go's zero time means "not set", as does `null` on the wire.
///
/// Represents every instant of the years 0 to 9999 in any offset, slightly more than a [`Timestamp`].
///
/// ```
/// use navicert_types::time::Time;
///
/// let time: Time = "2031-01-02T03:04:05.678+02:00".parse().unwrap();
/// assert_eq!(time.to_string(), "2031-01-02T01:04:05.678Z");
/// assert_eq!(time.to_wire(), "2031-01-02T01:04:05Z");
/// assert!(Time::default().is_zero());
/// ```
// C333
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Seconds since 1970 in UTC.
    seconds: i64,
    nanoseconds: u32,
}

/// A text is not a valid time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid time; expected RFC 3339 such as `2031-01-02T03:04:05Z`")]
pub struct TimeError;

impl Time {
    /// Go's zero time, the start of the year 1, which means "not set".
    pub const ZERO: Time = Time { seconds: -62_135_596_800, nanoseconds: 0 };

    /// Whether it is not set.
    pub fn is_zero(self) -> bool {
        self == Time::ZERO
    }

    /// Whole seconds since 1970 in UTC.
    pub fn unix_seconds(self) -> i64 {
        self.seconds
    }

    /// A timestamp to compare with a clock. Saturates at the range of [`Timestamp`], which ends two days earlier.
    pub fn timestamp(self) -> Timestamp {
        let nanoseconds = i32::try_from(self.nanoseconds).unwrap_or_default();
        let bound = if self.seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Timestamp::new(self.seconds, nanoseconds).unwrap_or(bound)
    }

    /// The wire format: UTC, whole seconds. Callers send the zero time as null.
    pub fn to_wire(self) -> String {
        Time { nanoseconds: 0, ..self }.to_string()
    }
}

impl Default for Time {
    fn default() -> Self {
        Time::ZERO
    }
}

impl From<Timestamp> for Time {
    fn from(timestamp: Timestamp) -> Self {
        // Before 1970 the fraction is negative.
        let nanoseconds = i64::from(timestamp.subsec_nanosecond());
        let seconds = timestamp.as_second() + nanoseconds.div_euclid(1_000_000_000);
        let nanoseconds = u32::try_from(nanoseconds.rem_euclid(1_000_000_000)).unwrap_or_default();
        Time { seconds, nanoseconds }
    }
}

/// Parses RFC 3339 as Go does.
// C243
impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let (seconds, nanoseconds) = parse_rfc3339(text).ok_or(TimeError)?;
        Ok(Time { seconds, nanoseconds })
    }
}

/// RFC 3339 in UTC with the shortest fraction.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_rfc3339(self.seconds, self.nanoseconds))
    }
}

impl Decode for Time {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let text = String::decode(node, decoder)?;
        text.parse().map_err(|error: TimeError| decoder.report_invalid_value(node, error.to_string())).ok()
    }
}

/// The zero time is null.
impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_zero() { serializer.serialize_none() } else { serializer.serialize_str(&self.to_wire()) }
    }
}

/// Null is the zero time.
impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map_or(Ok(Time::ZERO), |text| text.parse().map_err(serde::de::Error::custom))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // C243
    #[test]
    fn parses_as_leniently_as_go() {
        let cases = [
            ("2031-01-02T03:04:05Z", "2031-01-02T03:04:05Z"),
            ("2031-01-02T03:04:05+02:00", "2031-01-02T01:04:05Z"),
            ("2031-01-02T03:04:05-07:30", "2031-01-02T10:34:05Z"),
            ("2031-01-02T3:04:05Z", "2031-01-02T03:04:05Z"),
            ("2031-01-02T03:04:05,5Z", "2031-01-02T03:04:05.5Z"),
            ("2031-01-02T03:04:05.123456789Z", "2031-01-02T03:04:05.123456789Z"),
            ("2031-01-02T03:04:05.12345678999Z", "2031-01-02T03:04:05.123456789Z"),
            ("2031-01-02T03:04:05.000Z", "2031-01-02T03:04:05Z"),
            ("2031-01-02T03:04:05+24:00", "2031-01-01T03:04:05Z"),
            ("2031-01-02T03:04:05+23:60", "2031-01-01T03:04:05Z"),
            ("2031-01-02T03:04:05-00:00", "2031-01-02T03:04:05Z"),
            ("2028-02-29T00:00:00Z", "2028-02-29T00:00:00Z"),
            ("2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z"),
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
            ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.5Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
            ("0000-01-01T00:00:00+01:00", "-0001-12-31T23:00:00Z"),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
            ("9999-12-31T23:59:59-01:00", "10000-01-01T00:59:59Z"),
            ("0001-01-01T00:00:01Z", "0001-01-01T00:00:01Z"),
        ];
        for (text, written) in cases {
            assert_eq!(text.parse::<Time>().map(|time| time.to_string()), Ok(written.to_owned()), "{text}");
        }
    }

    #[test]
    fn rejects_what_go_rejects() {
        for text in [
            "",
            "2031",
            "2031-01-02",
            "2031-01-02T03:04Z",
            "2031-01-02T03:04:05",
            "2031-01-02t03:04:05Z",
            "2031-01-02T03:04:05z",
            "2031-01-02 03:04:05Z",
            "2031-1-02T03:04:05Z",
            "2031-01-2T03:04:05Z",
            "2031-01-02T03:4:05Z",
            "2031-01-02T03:04:5Z",
            "31-01-02T03:04:05Z",
            "20310-01-02T03:04:05Z",
            "2031-00-02T03:04:05Z",
            "2031-13-02T03:04:05Z",
            "2031-01-00T03:04:05Z",
            "2031-01-32T03:04:05Z",
            "2031-02-29T03:04:05Z",
            "1900-02-29T03:04:05Z",
            "2031-01-02T24:04:05Z",
            "2031-01-02T03:60:05Z",
            "2031-01-02T03:04:60Z",
            "2031-01-02T03:04:05+25:00",
            "2031-01-02T03:04:05+00:61",
            "2031-01-02T03:04:05+0200",
            "2031-01-02T03:04:05+02",
            "2031-01-02T03:04:05Z+02:00",
            "2031-01-02T03:04:05.Z",
            "2031-01-02T03:04:05Z ",
            " 2031-01-02T03:04:05Z",
            "2031-01-02T03:04:05 UTC",
            "20310102T030405Z",
            "1925000000",
            "soon",
            "２031-01-02T03:04:05Z",
        ] {
            assert_eq!(text.parse::<Time>(), Err(TimeError), "{text:?}");
        }
    }

    // C333
    #[test]
    fn zero_time_in_any_offset_is_unset() {
        for text in ["0001-01-01T00:00:00Z", "0001-01-01T02:00:00+02:00", "0000-12-31T23:00:00-01:00"] {
            assert!(text.parse::<Time>().unwrap().is_zero(), "{text}");
        }
        assert!(!"0001-01-01T00:00:00.1Z".parse::<Time>().unwrap().is_zero());
        assert!(serde_json::from_str::<Time>("null").unwrap().is_zero());
        assert_eq!(serde_json::to_string(&Time::ZERO).unwrap(), "null");
    }

    #[test]
    fn wire_format_is_whole_seconds_in_utc() {
        let time: Time = serde_json::from_str(r#""2031-01-02T03:04:05.9+02:00""#).unwrap();
        assert_eq!(serde_json::to_string(&time).unwrap(), r#""2031-01-02T01:04:05Z""#);
        assert!(serde_json::from_str::<Time>(r#""""#).is_err());
        assert!(serde_json::from_str::<Time>("1925000000").is_err());
    }

    #[test]
    fn timestamp_saturates_at_its_range() {
        assert_eq!("9999-12-31T23:59:59Z".parse::<Time>().unwrap().timestamp(), Timestamp::MAX);
        assert_eq!(
            "2031-01-02T03:04:05.5Z".parse::<Time>().unwrap().timestamp().to_string(),
            "2031-01-02T03:04:05.5Z"
        );
        assert!("0000-01-01T00:00:00+24:00".parse::<Time>().unwrap().timestamp() < Timestamp::UNIX_EPOCH);
    }

    proptest! {
        #[test]
        fn calendar_agrees_with_jiff(seconds in -377_705_023_201i64..253_402_207_200, nanoseconds in 0i32..1_000_000_000) {
            let timestamp = Timestamp::new(seconds, nanoseconds).unwrap();
            let time = Time::from(timestamp);
            prop_assert_eq!(time.timestamp(), timestamp);
            if seconds > -62_167_219_200 {
                prop_assert_eq!(time.to_string(), timestamp.to_string());
                prop_assert_eq!(time.to_string().parse::<Time>(), Ok(time));
            }
        }

        #[test]
        fn parser_never_panics(text in "[0-9TZ:.,+-]{0,40}|\\PC{0,10}") {
            let _ = text.parse::<Time>();
        }
    }
}
