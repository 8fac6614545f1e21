//! CEL timestamps: RFC 3339 with Go's leniencies, years 1 to 9999, nanosecond precision, and calendar fields in any
//! time zone. Durations are in [`duration`], time zones in [`zone`].

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

pub mod duration;
pub mod zone;

mod rfc3339;

pub use duration::{DurationText, parse_duration};
pub use zone::{Zone, ZoneError};

/// Maximum length of a displayed [`Timestamp`]: `10000-01-01T02:00:00.123456789+25:00`.
pub const TIMESTAMP_TEXT_LIMIT: usize = 36;

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
    pub fn checked_add(self, nanoseconds: i64) -> Option<Self> {
        self.shifted(i128::from(nanoseconds))
    }

    /// Subtracts a duration in nanoseconds; `None` is "timestamp overflow".
    #[must_use]
    pub fn checked_sub(self, nanoseconds: i64) -> Option<Self> {
        self.shifted(-i128::from(nanoseconds))
    }

    /// The duration since `earlier` in nanoseconds; `None` is "integer overflow".
    #[must_use]
    pub fn since(self, earlier: Self) -> Option<i64> {
        i64::try_from(self.total_nanoseconds() - earlier.total_nanoseconds()).ok()
    }

    /// The calendar fields in `zone`.
    #[must_use]
    pub fn fields(self, zone: &Zone) -> Fields {
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
pub struct Fields {
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
    pub fn day_of_month(self) -> i64 {
        self.day - 1
    }

    fn from_local_seconds(local_seconds: i64, nanos: u32) -> Self {
        let days = local_seconds.div_euclid(SECONDS_PER_DAY);
        let second_of_day = local_seconds.rem_euclid(SECONDS_PER_DAY);
        let (year, month, day) = civil_from_days(days);
        Self {
            year,
            month: month - 1,
            day,
            // 1970-01-01 was a Thursday.
            day_of_week: (days + 4).rem_euclid(7),
            day_of_year: days - days_from_civil(year, 1, 1),
            hours: second_of_day / 3600,
            minutes: second_of_day / 60 % 60,
            seconds: second_of_day % 60,
            milliseconds: i64::from(nanos / 1_000_000),
        }
    }
}

// The calendar repeats every 400 years. Years start in March here, so that the leap day comes last and the months
// start at fixed days: (153 m + 2) / 5.
const DAYS_PER_ERA: i64 = 146_097;
/// 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar; `month` from 1.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (march_year, march_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = march_year.div_euclid(400);
    let year_of_era = march_year.rem_euclid(400);
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - DAYS_TO_1970
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + DAYS_TO_1970;
    let era = shifted.div_euclid(DAYS_PER_ERA);
    let day_of_era = shifted.rem_euclid(DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests;
