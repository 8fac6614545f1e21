//! Parses a timestamp as Go's `time.Parse(time.RFC3339, …)` does. It accepts a one-digit hour, a comma before the
//! fraction, any number of fraction digits, and offsets up to 24 hours and 60 minutes. It rejects leap seconds and
//! a lower-case `t` or `z`.

use jiff::civil::{Date, date};

use super::Timestamp;

pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let mut rest = Reader(text.as_bytes());
    let year = rest.digits(4)?;
    rest.symbol(b'-')?;
    let month = rest.digits(2)?;
    rest.symbol(b'-')?;
    let day = rest.digits(2)?;
    rest.symbol(b'T')?;
    let hour = rest.digits(2).or_else(|| rest.digits(1))?;
    rest.symbol(b':')?;
    let minute = rest.digits(2)?;
    rest.symbol(b':')?;
    let second = rest.digits(2)?;
    let nanos = rest.fraction()?;
    let offset_minutes = rest.offset()?;
    let valid = rest.0.is_empty() && hour < 24 && minute < 60 && second < 60;
    if !valid {
        return None;
    }
    let day =
        Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let midnight = day.duration_since(EPOCH).as_secs();
    let local = midnight + hour * 3600 + minute * 60 + second;
    let utc = Timestamp::new(local - i64::from(offset_minutes) * 60, nanos)?;
    Some(Timestamp { offset_minutes, ..utc })
}

const EPOCH: Date = date(1970, 1, 1);

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (head, tail) = self.0.split_at_checked(count)?;
        let value = head
            .iter()
            .try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))?;
        self.0 = tail;
        Some(value)
    }

    fn symbol(&mut self, wanted: u8) -> Option<()> {
        let (&first, tail) = self.0.split_first()?;
        (first == wanted).then(|| self.0 = tail)
    }

    /// The fraction in nanoseconds; digits after the ninth are dropped. No fraction is 0, a decimal point without
    /// digits is an error.
    fn fraction(&mut self) -> Option<u32> {
        if self.symbol(b'.').or_else(|| self.symbol(b',')).is_none() {
            return Some(0);
        }
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        let nine = digits.iter().copied().chain(std::iter::repeat(b'0')).take(9);
        (count > 0).then(|| nine.fold(0, |sum, byte| sum * 10 + u32::from(byte - b'0')))
    }

    fn offset(&mut self) -> Option<i16> {
        if self.symbol(b'Z').is_some() {
            return Some(0);
        }
        let sign = if self.symbol(b'+').is_some() {
            1
        } else {
            self.symbol(b'-')?;
            -1
        };
        let hours = self.digits(2)?;
        self.symbol(b':')?;
        let minutes = self.digits(2)?;
        if hours > 24 || minutes > 60 {
            return None;
        }
        i16::try_from(sign * (hours * 60 + minutes)).ok()
    }
}
