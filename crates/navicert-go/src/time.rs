//! Times as Go prints them.

/// A time as Go prints it in UTC, with Go's 64-bit wrap-around.
pub fn format_utc(seconds: i64, nanoseconds: i32) -> String {
    // Go counts unsigned seconds from the first of March of the year -292277022400.
    const YEARS: i128 = 292_277_022_400;
    const DAYS_TO_YEAR_ONE: i128 = YEARS / 400 * 146_097 + 306;
    const DAYS_TO_1970: i128 = DAYS_TO_YEAR_ONE + 719_162;
    let since = (i128::from(seconds) + DAYS_TO_1970 * 86_400).rem_euclid(1 << 64);
    let (days, second) = (since / 86_400, since % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year_of_era - YEARS + later;
    let mut fraction = if nanoseconds > 0 { format!(".{nanoseconds:09}") } else { String::new() };
    fraction.truncate(fraction.trim_end_matches('0').len());
    let sign = if year < 0 { "-" } else { "" };
    format!(
        "{sign}{:04}-{month:02}-{day:02} {:02}:{:02}:{:02}{fraction} +0000 UTC",
        year.abs(),
        second / 3_600,
        second / 60 % 60,
        second % 60,
    )
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
