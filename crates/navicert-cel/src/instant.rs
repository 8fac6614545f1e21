//! CEL timestamps: RFC 3339 with Go's leniencies, years 1 to 9999, nanosecond precision, and calendar fields in any
//! time zone. Durations are in [`duration`], time zones in [`zone`].

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use jiff::civil::DateTime;
use jiff::tz::Offset;

pub(crate) mod duration;
pub(crate) mod zone;

mod rfc3339;

pub(crate) use duration::{DurationText, parse_duration};
pub(crate) use zone::Zone;

const MIN_SECONDS: i64 = -62_135_596_800;
const MAX_SECONDS: i64 = 253_402_300_799;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A point in time between the years 1 and 9999, with the UTC offset of its source text.
///
/// The offset is used only for display; equality, order and calendar fields ignore it.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
    offset_minutes: i16,
}

impl Timestamp {
    /// `timestamp(int)`: seconds since 1970. Returns `None` outside the years 1 to 9999.
    #[must_use]
    pub fn from_seconds(seconds: i64) -> Option<Self> {
        Self::new(seconds, 0)
    }

    /// Seconds since 1970 plus nanoseconds. Returns `None` if either is out of range.
    #[must_use]
    pub fn new(seconds: i64, nanos: u32) -> Option<Self> {
        let in_range = (MIN_SECONDS..=MAX_SECONDS).contains(&seconds) && i64::from(nanos) < NANOS_PER_SECOND;
        in_range.then_some(Self { seconds, nanos, offset_minutes: 0 })
    }

    /// `timestamp(string)`. Returns `None` for an invalid timestamp and for years outside 1 to 9999.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        rfc3339::parse(text)
    }

    /// Whole seconds since 1970, rounded down: the result of `int(timestamp)`.
    #[must_use]
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// The nanoseconds after [`seconds`](Self::seconds).
    #[must_use]
    pub fn nanos(self) -> u32 {
        self.nanos
    }

    /// Adds a duration in nanoseconds; `None` is "timestamp overflow".
    #[must_use]
    pub(crate) fn checked_add(self, nanoseconds: i64) -> Option<Self> {
        self.shifted(i128::from(nanoseconds))
    }

    /// Subtracts a duration in nanoseconds; `None` is "timestamp overflow".
    #[must_use]
    pub(crate) fn checked_sub(self, nanoseconds: i64) -> Option<Self> {
        self.shifted(-i128::from(nanoseconds))
    }

    /// The duration since `earlier` in nanoseconds; `None` is "integer overflow".
    #[must_use]
    pub(crate) fn since(self, earlier: Self) -> Option<i64> {
        i64::try_from(self.total_nanoseconds() - earlier.total_nanoseconds()).ok()
    }

    /// The calendar fields in `zone`.
    #[must_use]
    pub(crate) fn fields(self, zone: &Zone) -> Fields {
        Fields::from_local_seconds(self.seconds.saturating_add(zone.offset_at(self)), self.nanos)
    }

    fn total_nanoseconds(self) -> i128 {
        i128::from(self.seconds) * i128::from(NANOS_PER_SECOND) + i128::from(self.nanos)
    }

    fn shifted(self, nanoseconds: i128) -> Option<Self> {
        let total = self.total_nanoseconds() + nanoseconds;
        let seconds = i64::try_from(total.div_euclid(i128::from(NANOS_PER_SECOND))).ok()?;
        let nanos = u32::try_from(total.rem_euclid(i128::from(NANOS_PER_SECOND))).ok()?;
        Self::new(seconds, nanos).map(|moved| Self { offset_minutes: self.offset_minutes, ..moved })
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

impl Hash for Timestamp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.seconds, self.nanos).hash(state);
    }
}

/// RFC 3339 with the shortest fraction, in the offset of the source text: the result of `string(timestamp)`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields =
            Fields::from_local_seconds(self.seconds + i64::from(self.offset_minutes) * 60, self.nanos);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            fields.year,
            fields.month + 1,
            fields.day,
            fields.hours,
            fields.minutes,
            fields.seconds
        )?;
        if self.nanos != 0 {
            let (mut fraction, mut width) = (self.nanos, 9);
            while fraction % 10 == 0 {
                fraction /= 10;
                width -= 1;
            }
            write!(f, ".{fraction:0width$}")?;
        }
        if self.offset_minutes == 0 {
            return f.write_str("Z");
        }
        let sign = if self.offset_minutes < 0 { '-' } else { '+' };
        let minutes = self.offset_minutes.unsigned_abs();
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

/// The calendar fields, numbered as by the accessor functions of CEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    /// `getFullYear`; may be 0 or 10000 in a time zone at the limits of the range.
    pub year: i64,
    /// `getMonth`: 0 to 11.
    pub month: i64,
    /// `getDate`: day of the month, starting at 1. `getDayOfMonth` is one less.
    pub day: i64,
    /// `getDayOfWeek`: Sunday is 0.
    pub day_of_week: i64,
    /// `getDayOfYear`, starting at 0.
    pub day_of_year: i64,
    /// `getHours`
    pub hours: i64,
    /// `getMinutes`
    pub minutes: i64,
    /// `getSeconds`
    pub seconds: i64,
    /// `getMilliseconds` within the second.
    pub milliseconds: i64,
}

impl Fields {
    /// `getDayOfMonth`: day of the month, starting at 0.
    #[must_use]
    pub(crate) fn day_of_month(self) -> i64 {
        self.day - 1
    }

    fn from_local_seconds(local_seconds: i64, nanos: u32) -> Self {
        let (local, skipped_years) = civil(local_seconds);
        Self {
            year: i64::from(local.year()) + skipped_years,
            month: i64::from(local.month()) - 1,
            day: i64::from(local.day()),
            day_of_week: i64::from(local.weekday().to_sunday_zero_offset()),
            day_of_year: i64::from(local.day_of_year()) - 1,
            hours: i64::from(local.hour()),
            minutes: i64::from(local.minute()),
            seconds: i64::from(local.second()),
            milliseconds: i64::from(nanos / 1_000_000),
        }
    }
}

/// Seconds of 400 years, after which the calendar repeats, weekdays included.
const SECONDS_PER_CYCLE: i64 = 146_097 * SECONDS_PER_DAY;

/// The date and time of seconds since 1970, and the years to add: those of jiff end before a time zone east of Greenwich
/// reaches the year 10000.
fn civil(seconds: i64) -> (DateTime, i64) {
    let (seconds, years) = if seconds > MAX_SECONDS - 2 * SECONDS_PER_DAY {
        (seconds - SECONDS_PER_CYCLE, 400)
    } else {
        (seconds, 0)
    };
    let instant = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    (Offset::UTC.to_datetime(instant), years)
}

#[cfg(test)]
mod tests;
