//! Tables of cel-go's results for timestamps and durations.

use super::duration::{hours, milliseconds, minutes, seconds};
use super::zone::ZoneError;
use super::{DurationText, Timestamp, Zone, parse_duration};
use proptest::prelude::*;

const HOUR: i64 = 3_600_000_000_000;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

#[test]
fn parses_durations_as_go() {
    for (text, nanoseconds) in [
        ("1h", Some(HOUR)),
        ("", None),
        ("0", Some(0)),
        ("-0", Some(0)),
        ("+5s", Some(5_000_000_000)),
        ("-1.5h", Some(-HOUR * 3 / 2)),
        ("1h2m3.5s4ms5us6µs7μs8ns", Some(3_723_504_018_008)),
        ("1d", None),
        (".5s", Some(500_000_000)),
        ("5.s", Some(5_000_000_000)),
        (".s", None),
        ("1", None),
        ("1s ", None),
        ("9223372037s", None),
        ("2562047h47m16.854775807s", Some(i64::MAX)),
        ("2562047h47m16.854775808s", None),
        ("-2562047h47m16.854775808s", Some(i64::MIN)),
        ("9223372036854775808ns", None),
        ("-9223372036854775808ns", Some(i64::MIN)),
        ("9223372036854775809ns", None),
        ("0.0000000001s", Some(0)),
        ("1.9ns", Some(1)),
        (".000000000001h", Some(3)),
        ("0.3333333333333333333h", Some(HOUR / 3)),
        ("0.9999999999999999999999s", Some(1_000_000_000)),
        ("1e3s", None),
        ("-", None),
        ("+", None),
        ("-.5s", Some(-500_000_000)),
        ("1s-1s", None),
        ("é", None),
    ] {
        assert_eq!(parse_duration(text), nanoseconds, "{text}");
    }
}

#[test]
fn formats_durations_in_seconds_with_double_precision() {
    for (text, written) in [
        ("1h", "3600s"),
        ("1.5s", "1.5s"),
        ("1ms", "0.001s"),
        ("-1ns", "-0.000000001s"),
        ("0s", "0s"),
        ("1h1ns", "3600.000000001s"),
        ("2562046h59m59.999999999s", "9223369200s"),
        ("-2562047h47m16.854775808s", "-9223372036.854776s"),
    ] {
        assert_eq!(DurationText(parse_duration(text).unwrap()).to_string(), written);
    }
}

#[test]
fn duration_accessors_count_whole_units_in_doubles() {
    for (text, expected) in [
        ("90m", (1, 90, 5400, 5_400_000)),
        ("-90m", (-1, -90, -5400, -5_400_000)),
        ("-1.5009s", (0, 0, -1, -1500)),
        ("2562046h59m59.999999999s", (2_562_047, 153_722_820, 9_223_369_200, 9_223_369_199_999)),
    ] {
        let value = parse_duration(text).unwrap();
        assert_eq!((hours(value), minutes(value), seconds(value), milliseconds(value)), expected, "{text}");
    }
}

#[test]
fn parses_timestamps_as_go() {
    for (text, written) in [
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00+05:30", "2020-01-01T00:00:00+05:30"),
        ("2020-01-01T00:00:00+24:60", "2020-01-01T00:00:00+25:00"),
        ("2020-01-01T00:00:00-24:60", "2020-01-01T00:00:00-25:00"),
        ("2020-01-01T00:00:00-00:30", "2020-01-01T00:00:00-00:30"),
        ("2020-01-01T00:00:00-00:00", "2020-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00.120Z", "2020-01-01T00:00:00.12Z"),
        ("2020-01-01T00:00:00.1234567890123456789Z", "2020-01-01T00:00:00.123456789Z"),
        ("2020-01-01T00:00:00,5Z", "2020-01-01T00:00:00.5Z"),
        ("2020-01-01T1:02:03Z", "2020-01-01T01:02:03Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"),
        ("2020-02-29T00:00:00Z", "2020-02-29T00:00:00Z"),
    ] {
        assert_eq!(at(text).to_string(), written);
    }
    for text in [
        "2020-01-01t00:00:00z",
        "2020-01-01 00:00:00Z",
        "2020-01-01T00:00:00.Z",
        "2020-01-01T24:00:00Z",
        "2020-01-01T23:59:60Z",
        "2020-01-01T00:60:00Z",
        "2020-02-30T00:00:00Z",
        "2019-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2020-1-01T00:00:00Z",
        "2020-00-01T00:00:00Z",
        "2020-13-01T00:00:00Z",
        "2020-01-00T00:00:00Z",
        "2020-01-32T00:00:00Z",
        "2020-01-01T1:2:3Z",
        "0000-12-31T23:59:59Z",
        "0001-01-01T04:00:00+05:00",
        "9999-12-31T23:59:59-00:01",
        "10000-01-01T00:00:00Z",
        "2020-01-01T00:00:00",
        "2020-01-01T00:00:00+0530",
        "2020-01-01T00:00:00+05",
        "2020-01-01T00:00:00+5:30",
        "2020-01-01T00:00:00+25:00",
        "2020-01-01T00:00:00+24:61",
        "2020-01-01T00:00:00Zx",
        "2020-01-01T00:00:00 Z",
        "2020-01-01T00:00:00.5.5Z",
        "+020-01-01T00:00:00Z",
        "",
    ] {
        assert!(Timestamp::parse(text).is_none(), "{text}");
    }
}

#[test]
fn timestamp_arithmetic_fails_outside_the_range() {
    // timestamps/timestamp_range, timestamps/duration_range
    assert!(Timestamp::from_seconds(253_402_300_799).is_some());
    assert!(Timestamp::from_seconds(253_402_300_800).is_none());
    assert!(Timestamp::from_seconds(-62_135_596_800).is_some());
    assert!(Timestamp::from_seconds(-62_135_596_801).is_none());
    let last = at("9999-12-31T23:59:59.999999999Z");
    assert!(last.checked_add(1).is_none());
    assert!(at("0001-01-01T00:00:00Z").checked_sub(1).is_none());
    assert!(at("0001-01-01T00:00:00Z").checked_sub(i64::MIN).is_some());
    assert!(last.since(at("0001-01-01T00:00:00Z")).is_none());
    assert_eq!(at("2312-01-01T00:00:00Z").since(at("2020-01-01T00:00:00Z")), Some(2_559_600 * HOUR));
    assert!(at("2313-01-01T00:00:00Z").since(at("2020-01-01T00:00:00Z")).is_none());
    assert_eq!(at("1969-12-31T23:59:59.9Z").seconds(), -1);
}

#[test]
fn arithmetic_keeps_the_offset_and_comparison_ignores_it() {
    let moved = at("2020-01-01T00:00:00+05:30").checked_sub(HOUR).unwrap();
    assert_eq!(moved.to_string(), "2019-12-31T23:00:00+05:30");
    let beyond = at("9999-12-31T20:00:00+03:00").checked_add(6 * HOUR).unwrap();
    assert_eq!(beyond.to_string(), "10000-01-01T02:00:00+03:00");
    assert_eq!(at("2020-01-01T00:00:00+05:30"), at("2019-12-31T18:30:00Z"));
    assert!(at("2016-02-29T00:00:00Z") < at("2016-03-01T00:00:00Z"));
}

#[test]
fn calendar_fields_match_the_accessors() {
    let fields = at("2020-12-31T13:14:15.999999Z").fields(&Zone::Utc);
    assert_eq!((fields.year, fields.month, fields.day, fields.day_of_month()), (2020, 11, 31, 30));
    assert_eq!((fields.day_of_week, fields.day_of_year), (4, 365));
    assert_eq!((fields.hours, fields.minutes, fields.seconds, fields.milliseconds), (13, 14, 15, 999));
    assert_eq!(at("2020-06-07T00:00:00Z").fields(&Zone::Utc).day_of_week, 0);
    assert_eq!(at("1969-12-31T23:59:59.999999Z").fields(&Zone::Utc).milliseconds, 999);
    assert_eq!(at("2020-01-01T00:00:00+05:30").fields(&Zone::Utc).hours, 18);
}

#[test]
fn parses_zone_names_and_offsets() {
    // timestamps/timestamp_selectors_tz
    for (time, zone, hours, minutes) in [
        ("2020-06-01T00:00:00Z", "America/New_York", 20, 0),
        ("2020-06-01T00:00:00Z", "+05:30", 5, 30),
        ("2020-06-01T00:00:00Z", "05:30", 5, 30),
        ("2020-06-01T00:00:00Z", "5:30", 5, 30),
        ("2020-06-01T00:00:00Z", "-5:30", 18, 30),
        ("2020-06-01T00:00:00Z", "-0:30", 23, 30),
        ("2020-06-01T00:00:00Z", "-01:20", 22, 40),
        ("2020-06-01T00:00:00Z", "5:-30", 4, 30),
        ("2020-06-01T00:00:00Z", "99:99", 4, 39),
        ("2020-06-01T00:00:00Z", "-24:00", 0, 0),
        ("2020-06-01T00:00:00Z", "", 0, 0),
        ("2020-06-01T00:00:00Z", "UTC", 0, 0),
        ("2020-06-01T00:00:00Z", "Local", 0, 0),
        ("2020-06-01T00:00:00Z", "EST", 19, 0),
        ("2020-06-01T00:00:00Z", "EST5EDT", 20, 0),
        ("2020-06-01T00:00:00Z", "GMT", 0, 0),
        ("2020-06-01T00:00:00Z", "US/Central", 19, 0),
        ("2020-06-01T00:00:00Z", "Etc/GMT+5", 19, 0),
        ("1850-06-01T00:00:00Z", "America/New_York", 19, 3),
        ("2500-07-01T00:00:00Z", "America/New_York", 20, 0),
    ] {
        let fields = at(time).fields(&Zone::parse(zone, false).unwrap());
        assert_eq!((fields.hours, fields.minutes), (hours, minutes), "{zone}");
    }
    for (time, zone, year) in [
        ("0001-01-01T00:00:00Z", "-01:00", 0),
        ("0001-01-01T00:00:00Z", "America/New_York", 0),
        ("9999-12-31T23:59:59Z", "01:00", 10_000),
        ("9999-12-31T23:59:59Z", "Asia/Tokyo", 10_000),
        ("2020-06-01T00:00:00Z", "1000000:0", 2134),
        ("2020-06-01T00:00:00Z", "-100000:0", 2009),
    ] {
        assert_eq!(at(time).fields(&Zone::parse(zone, false).unwrap()).year, year, "{zone}");
    }
}

#[test]
fn rejects_invalid_zones_with_a_reason() {
    for zone in ["utc", "local", "Z", "america/new_york", "No/Where", "+0530"] {
        assert_eq!(Zone::parse(zone, false).unwrap_err(), ZoneError::Unknown(zone.to_owned()));
    }
    for (zone, message) in [
        ("../etc", "time: invalid location name"),
        ("1:2:3", "strconv.Atoi: parsing \"2:3\": invalid syntax"),
        (":", "strconv.Atoi: parsing \"\": invalid syntax"),
        ("+ 5:30", "strconv.Atoi: parsing \"+ 5\": invalid syntax"),
        ("9223372036854775808:0", "strconv.Atoi: parsing \"9223372036854775808\": value out of range"),
    ] {
        assert_eq!(Zone::parse(zone, false).unwrap_err().to_string(), message);
    }
    let minutes = |zone: &str, bounded: bool| Zone::parse(zone, bounded).is_ok();
    for zone in ["05:60", "05:-1", "-05:90"] {
        assert_eq!((minutes(zone, false), minutes(zone, true)), (true, false), "{zone}");
    }
    assert!(minutes("-05:59", true));
    // A very large offset must not panic.
    let _ = at("2020-06-01T00:00:00Z")
        .fields(&Zone::parse("9223372036854775807:9223372036854775807", false).unwrap());
}

proptest! {
    #[test]
    fn timestamp_round_trips_through_text(seconds in -62_135_596_800_i64..=253_402_300_799, nanos in 0_u32..1_000_000_000) {
        let value = Timestamp::new(seconds, nanos).unwrap();
        prop_assert_eq!(Timestamp::parse(&value.to_string()), Some(value));
    }

    #[test]
    fn calendar_fields_agree_with_jiff(seconds in -62_135_596_800_i64..=253_402_000_000) {
        let fields = Timestamp::from_seconds(seconds).unwrap().fields(&Zone::Utc);
        let other = jiff::Timestamp::from_second(seconds).unwrap().to_zoned(jiff::tz::TimeZone::UTC);
        prop_assert_eq!(fields.year, i64::from(other.year()));
        prop_assert_eq!(fields.month + 1, i64::from(other.month()));
        prop_assert_eq!(fields.day, i64::from(other.day()));
        prop_assert_eq!(fields.day_of_year + 1, i64::from(other.day_of_year()));
        prop_assert_eq!(fields.day_of_week, i64::from(other.weekday().to_sunday_zero_offset()));
    }

    #[test]
    fn parsing_durations_never_panics(text in "[-+]?([0-9.]{0,25}(ns|us|µs|ms|s|m|h|x)){0,3}") {
        if let Some(value) = parse_duration(&text) {
            prop_assert!(DurationText(value).to_string().len() <= 32);
        }
    }
}
