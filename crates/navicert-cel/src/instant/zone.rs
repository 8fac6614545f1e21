//! Time zones for the calendar accessors: names of the bundled tz database and fixed offsets such as `+05:30`.

use super::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::sync::LazyLock;

/// The time zone in which calendar fields are computed.
#[derive(Clone, Debug)]
pub(crate) enum Zone {
    /// UTC, the default.
    Utc,
    /// A fixed offset in seconds east of UTC.
    Fixed(i64),
    /// A zone of the tz database.
    Named(TimeZone),
}

/// An invalid time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ZoneError {
    /// The name, in this spelling, is not in the tz database.
    #[error("unknown time zone {0}")]
    Unknown(String),
    /// The name is a path outside the tz database.
    #[error("time: invalid location name")]
    InvalidName,
    /// A part of an `h:m` offset is not an integer.
    #[error("strconv.Atoi: parsing {0:?}: {1}")]
    Offset(String, &'static str),
    /// The minutes of an offset are not those of an hour.
    #[error("timezone offset minutes out of range [0, 59]: {0}")]
    Minutes(String),
}

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

impl Zone {
    /// Parses the time zone argument of accessors such as `getHours("…")`.
    ///
    /// With a colon, the argument is an offset of hours and minutes, each of them any integer; if `bounded`, there are at most 59
    /// minutes. Otherwise it is a case-sensitive name. The empty name and `Local` are UTC.
    pub(crate) fn parse(text: &str, bounded: bool) -> Result<Self, ZoneError> {
        match text.split_once(':') {
            Some((hours, minutes)) => {
                let (hour, minute) = (integer(hours)?, integer(minutes)?);
                if bounded && !(0..60).contains(&minute) {
                    return Err(ZoneError::Minutes(text.to_owned()));
                }
                Ok(Self::from_offset(hours.starts_with('-'), hour, minute))
            }
            None => Self::from_name(text),
        }
    }

    /// Offset in seconds east of UTC at the time `at`.
    #[must_use]
    pub(crate) fn offset_at(&self, at: Timestamp) -> i64 {
        match self {
            Self::Utc => 0,
            Self::Fixed(seconds) => *seconds,
            Self::Named(zone) => {
                // The range of jiff ends one day earlier; no time zone changes its offset on that day.
                let seconds = at.seconds().min(jiff::Timestamp::MAX.as_second() - 1);
                let instant = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
                i64::from(zone.to_offset(instant).seconds())
            }
        }
    }

    fn from_name(name: &str) -> Result<Self, ZoneError> {
        if matches!(name, "" | "UTC" | "Local") {
            return Ok(Self::Utc);
        }
        if name.starts_with(['/', '\\']) || name.contains("..") {
            return Err(ZoneError::InvalidName);
        }
        // Lookups in jiff's database ignore case; Go's are case-sensitive.
        DATABASE
            .get(name)
            .ok()
            .filter(|zone| zone.iana_name() == Some(name))
            .map(Self::Named)
            .ok_or_else(|| ZoneError::Unknown(name.to_owned()))
    }

    fn from_offset(negative: bool, hours: i64, minutes: i64) -> Self {
        let minutes = if negative { minutes.saturating_neg() } else { minutes };
        let seconds = hours.saturating_mul(60).saturating_add(minutes).saturating_mul(60);
        // Far outside the calendar, but small enough that the field arithmetic cannot overflow.
        const LIMIT: i64 = 1 << 52;
        Self::Fixed(seconds.clamp(-LIMIT, LIMIT))
    }
}

fn integer(text: &str) -> Result<i64, ZoneError> {
    text.parse().map_err(|source: std::num::ParseIntError| {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let reason = match source.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        ZoneError::Offset(text.to_owned(), reason)
    })
}
