//! Times as Go reads and prints them. The calendar is jiff's.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, date};
use jiff::tz::Offset;

const EPOCH: Date = date(1970, 1, 1);

/// Reads RFC 3339 as `time.Parse(time.RFC3339, …)` does: the hour may have one digit, a comma may replace the point, digits
/// after the ninth are dropped, offsets reach 24 hours and 60 minutes; second 60 and a lower-case `t` or `z` are rejected.
/// Returns seconds since 1970 in UTC, and nanoseconds after them.
pub fn parse_rfc3339(text: &str) -> Option<(i64, u32)> {
    let mut reader = Reader(text.as_bytes());
    let time = reader.time()?;
    reader.0.is_empty().then_some(time)
}

/// Writes RFC 3339 in UTC with the shortest fraction, for every time that [`parse_rfc3339`] reads.
pub fn format_rfc3339(seconds: i64, nanoseconds: u32) -> String {
    let (year, time) = civil(seconds.into());
    let (fraction, sign) = (fraction(nanoseconds), if year < 0 { "-" } else { "" });
    format!(
        "{sign}{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{fraction}Z",
        year.unsigned_abs(),
        time.month(),
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
    )
}

/// A time as Go prints it in UTC, with Go's 64-bit wrap-around.
pub fn format_utc(seconds: i64, nanoseconds: i32) -> String {
    // Go counts unsigned seconds from the first of March of the year -292277022400.
    const DAYS_TO_1970: i128 = 292_277_022_400 / 400 * 146_097 + 306 + 719_162;
    const SECONDS_TO_1970: i128 = DAYS_TO_1970 * 86_400;
    let wrapped = (i128::from(seconds) + SECONDS_TO_1970).rem_euclid(1 << 64);
    let (year, time) = civil(wrapped - SECONDS_TO_1970);
    let (fraction, sign) =
        (fraction(u32::try_from(nanoseconds).unwrap_or_default()), if year < 0 { "-" } else { "" });
    format!(
        "{sign}{:04}-{:02}-{:02} {:02}:{:02}:{:02}{fraction} +0000 UTC",
        year.unsigned_abs(),
        time.month(),
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
    )
}

/// The year, and the date and time of seconds since 1970. The calendar repeats every 400 years, so that the years of jiff
/// suffice for all.
fn civil(seconds: i128) -> (i128, DateTime) {
    const CYCLE: i128 = 146_097 * 86_400;
    let within = i64::try_from(seconds.rem_euclid(CYCLE)).unwrap_or_default();
    let time = Offset::UTC.to_datetime(Timestamp::from_second(within).unwrap_or_default());
    (i128::from(time.year()) + 400 * seconds.div_euclid(CYCLE), time)
}

/// The shortest fraction of a second, with its point.
fn fraction(nanoseconds: u32) -> String {
    let mut fraction = if nanoseconds > 0 { format!(".{nanoseconds:09}") } else { String::new() };
    fraction.truncate(fraction.trim_end_matches('0').len());
    fraction
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn time(&mut self) -> Option<(i64, u32)> {
        let year = self.two_digits()? * 100 + self.two_digits()?;
        self.expect(b'-')?;
        let month = self.two_digits()?;
        self.expect(b'-')?;
        let day = self.two_digits()?;
        let date =
            Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
        self.expect(b'T')?;
        let hour = self.one_or_two_digits().filter(|hour| *hour < 24)?;
        self.expect(b':')?;
        let minute = self.two_digits().filter(|minute| *minute < 60)?;
        self.expect(b':')?;
        let second = self.two_digits().filter(|second| *second < 60)?;
        let nanoseconds = self.fraction();
        let offset = self.offset()?;
        let midnight = date.duration_since(EPOCH).as_secs();
        Some((midnight + hour * 3_600 + minute * 60 + second - offset, nanoseconds))
    }

    /// A point or comma and at least one digit; anything else is left for what follows.
    fn fraction(&mut self) -> u32 {
        let [b'.' | b',', digits @ ..] = self.0 else { return 0 };
        let count = digits.iter().take_while(|digit| digit.is_ascii_digit()).count();
        if count == 0 {
            return 0;
        }
        let padded = digits.iter().take(count).copied().chain(std::iter::repeat(b'0')).take(9);
        let nanoseconds = padded.fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
        self.0 = digits.get(count..).unwrap_or_default();
        nanoseconds
    }

    /// Seconds east of Greenwich.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.next()? {
            b'Z' => return Some(0),
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let hours = self.two_digits().filter(|hours| *hours <= 24)?;
        self.expect(b':')?;
        let minutes = self.two_digits().filter(|minutes| *minutes <= 60)?;
        Some(sign * (hours * 3_600 + minutes * 60))
    }

    fn two_digits(&mut self) -> Option<i64> {
        Some(self.digit()? * 10 + self.digit()?)
    }

    fn one_or_two_digits(&mut self) -> Option<i64> {
        let first = self.digit()?;
        Some(self.digit().map_or(first, |second| first * 10 + second))
    }

    fn digit(&mut self) -> Option<i64> {
        let (digit, rest) = self.0.split_first().filter(|(digit, _)| digit.is_ascii_digit())?;
        self.0 = rest;
        Some(i64::from(digit - b'0'))
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.next().filter(|next| *next == byte).map(|_| ())
    }

    fn next(&mut self) -> Option<u8> {
        let (next, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_match_go() {
        for (seconds, nanoseconds, message) in [
            (0, 0, "1970-01-01 00:00:00 +0000 UTC"),
            (1_800_000_000, 250_000_000, "2027-01-15 08:00:00.25 +0000 UTC"),
            (-1, 0, "1969-12-31 23:59:59 +0000 UTC"),
            (-62_135_596_800, 0, "0001-01-01 00:00:00 +0000 UTC"),
            (951_782_400, 0, "2000-02-29 00:00:00 +0000 UTC"),
            (i64::MAX, 0, "292277026596-12-04 15:30:07 +0000 UTC"),
            (i64::MIN, 0, "292277026596-12-04 15:30:08 +0000 UTC"),
        ] {
            assert_eq!(format_utc(seconds, nanoseconds), message);
        }
    }
}
