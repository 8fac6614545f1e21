//! Time zones of the calendar accessors: names of the bundled tz database and fixed offsets like `+05:30`.

use super::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::sync::LazyLock;

/// A zone a timestamp's fields are read in.
#[derive(Clone, Debug)]
pub enum Zone {
    /// UTC, the zone when none is given.
    Utc,
    /// A fixed offset in seconds east of UTC.
    Fixed(i64),
    /// A zone of the tz database.
    Named(TimeZone),
}

/// Why a text is no zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// Not in the tz database, in this spelling.
    #[error("unknown time zone {0}")]
    Unknown(String),
    /// A path that tries to leave the tz database.
    #[error("time: invalid location name")]
    InvalidName,
    /// A part of an `h:m` offset that is no integer.
    #[error("strconv.Atoi: parsing {0:?}: {1}")]
    Offset(String, &'static str),
}

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

impl Zone {
    /// Reads the argument of `getHours("…")` and the like.
    ///
    /// With a colon it is hours and minutes, each any integer; without, a name, spelled exactly. The empty name and
    /// `Local` are UTC.
    pub fn parse(text: &str) -> Result<Self, ZoneError> {
        match text.split_once(':') {
            Some((hours, minutes)) => Self::from_offset(hours, minutes),
            None => Self::from_name(text),
        }
    }

    /// Seconds east of UTC at the time `at`.
    #[must_use]
    pub fn offset_at(&self, at: Timestamp) -> i64 {
        match self {
            Self::Utc => 0,
            Self::Fixed(seconds) => *seconds,
            Self::Named(zone) => {
                // The library's range ends a day before ours; no zone changes its offset on that day.
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
        // The database does not mind the case of letters, Go's file names do.
        DATABASE
            .get(name)
            .ok()
            .filter(|zone| zone.iana_name() == Some(name))
            .map(Self::Named)
            .ok_or_else(|| ZoneError::Unknown(name.to_owned()))
    }

    fn from_offset(hours: &str, minutes: &str) -> Result<Self, ZoneError> {
        let negative = hours.starts_with('-');
        let (hours, minutes) = (integer(hours)?, integer(minutes)?);
        let minutes = if negative { minutes.saturating_neg() } else { minutes };
        let seconds = hours.saturating_mul(60).saturating_add(minutes).saturating_mul(60);
        // Far beyond any calendar; keeps the arithmetic of the fields within bounds.
        const LIMIT: i64 = 1 << 52;
        Ok(Self::Fixed(seconds.clamp(-LIMIT, LIMIT)))
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
