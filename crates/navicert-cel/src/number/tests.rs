//! Tables of cel-go's results for numbers.

use super::{
    DoubleText, Number, int_from_double, parse_bool, parse_double, parse_int, parse_uint, uint_from_double,
};
use proptest::prelude::*;
use std::cmp::Ordering;

#[test]
fn formats_doubles_with_the_shortest_digits() {
    // S76
    for (value, text) in [
        (1.0, "1"),
        (21.0, "21"),
        (-0.0, "-0"),
        (100_000.0, "100000"),
        (1_000_000.0, "1e+06"),
        (1_234_567.0, "1.234567e+06"),
        (12_345_678.0, "1.2345678e+07"),
        (1.7e9, "1.7e+09"),
        (9_007_199_254_740_993.0, "9.007199254740992e+15"),
        (123_456.789, "123456.789"),
        (1e-4, "0.0001"),
        (1e-5, "1e-05"),
        (1e-7, "1e-07"),
        (1e21, "1e+21"),
        (-1.797_693_134_862_315_7e308, "-1.7976931348623157e+308"),
        (5e-324, "5e-324"),
        // Ties between two shortest forms go to the even digit.
        (-110_567.140_869_140_63, "-110567.14086914062"),
        (242_589.590_087_890_63, "242589.59008789062"),
        (0.015, "0.015"),
        (10.25, "10.25"),
        (120.0, "120"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "+Inf"),
        (f64::NEG_INFINITY, "-Inf"),
    ] {
        assert_eq!(DoubleText(value).to_string(), text);
    }
}

#[test]
fn parses_doubles_with_the_grammar_of_go() {
    for (text, value) in [
        ("1_000", Some(1000.0)),
        ("0x1_0p0", Some(16.0)),
        ("0x_1p0", Some(1.0)),
        ("1__0", None),
        ("_1", None),
        ("1_", None),
        ("1_.5", None),
        ("0x1p-2", Some(0.25)),
        ("0X1P+1", Some(2.0)),
        ("0x.8p1", Some(1.0)),
        ("0x1", None),
        ("0xp1", None),
        ("0x1.1.1p0", None),
        ("-inf", Some(f64::NEG_INFINITY)),
        ("+Infinity", Some(f64::INFINITY)),
        ("infin", None),
        ("+nan", None),
        ("1e400", None),
        ("-1e400", None),
        ("0x1p1024", None),
        ("1e-400", Some(0.0)),
        ("0x1p-99999999999", Some(0.0)),
        (".5", Some(0.5)),
        ("5.", Some(5.0)),
        (".", None),
        ("", None),
        ("-", None),
        ("1e", None),
        ("1e+", None),
        ("1e5_0", Some(1e50)),
        ("1e5.0", None),
        (" 1", None),
        ("0x1fffffffffffff8p-1074", Some(f64::from_bits(0x0060_0000_0000_0000))),
        ("0x1.00000000000008p0", Some(1.0)),
        ("0x1.00000000000008000000000001p0", Some(1.000_000_000_000_000_2)),
        ("0x1.00000000000018p0", Some(1.000_000_000_000_000_4)),
        ("0x1p-1074", Some(5e-324)),
        ("0x1p-1075", Some(0.0)),
        ("0x1.8p-1075", Some(5e-324)),
        ("0x10000000000000000000000p-88", Some(1.0)),
    ] {
        assert_eq!(parse_double(text), value, "{text}");
    }
    assert!(parse_double("NaN").is_some_and(f64::is_nan));
}

#[test]
fn parses_integers_from_digits_only() {
    for (text, int, uint) in [
        ("5", Some(5), Some(5)),
        ("+5", Some(5), None),
        ("-5", Some(-5), None),
        ("-0", Some(0), None),
        ("00005", Some(5), Some(5)),
        ("0x1", None, None),
        ("1_000", None, None),
        (" 1", None, None),
        ("", None, None),
        ("+", None, None),
        ("-", None, None),
        ("-9223372036854775808", Some(i64::MIN), None),
        ("9223372036854775808", None, Some(9_223_372_036_854_775_808)),
        ("18446744073709551616", None, None),
    ] {
        assert_eq!(parse_int(text), int, "{text}");
        assert_eq!(parse_uint(text), uint, "{text}");
    }
}

#[test]
fn parses_twelve_spellings_of_booleans() {
    for word in ["1", "t", "T", "true", "TRUE", "True"] {
        assert_eq!(parse_bool(word), Some(true));
    }
    for word in ["0", "f", "F", "false", "FALSE", "False"] {
        assert_eq!(parse_bool(word), Some(false));
    }
    for word in ["tRUE", "yes", "", "no", "2"] {
        assert_eq!(parse_bool(word), None);
    }
}

#[test]
fn rejects_doubles_outside_the_integer_range() {
    for (value, int, uint) in [
        (-9_223_372_036_854_775_808.0, None, None),
        (9_223_372_036_854_775_807.0, None, Some(9_223_372_036_854_775_808)),
        (9_223_372_036_854_774_784.0, Some(9_223_372_036_854_774_784), Some(9_223_372_036_854_774_784)),
        (-0.9, Some(0), None),
        (-0.0, Some(0), Some(0)),
        (1.9, Some(1), Some(1)),
        (18_446_744_073_709_551_615.0, None, None),
        (18_446_744_073_709_549_568.0, None, Some(18_446_744_073_709_549_568)),
        (f64::NAN, None, None),
        (f64::INFINITY, None, None),
    ] {
        assert_eq!(int_from_double(value), int, "{value}");
        assert_eq!(uint_from_double(value), uint, "{value}");
    }
}

#[test]
fn integers_and_doubles_compare_as_doubles() {
    // comparisons/lt_mixed_types: *_lossy, not_lt_dyn_*; S74, S77
    use Number::{Double, Int, Uint};
    for (left, right, order) in [
        (Int(9_007_199_254_740_993), Double(9_007_199_254_740_992.0), Some(Ordering::Equal)),
        (Int(i64::MAX), Double(9_223_372_036_854_775_808.0), Some(Ordering::Equal)),
        (Uint(u64::MAX), Double(18_446_744_073_709_551_616.0), Some(Ordering::Equal)),
        (Uint(u64::MAX), Double(1.9e19), Some(Ordering::Less)),
        (Int(-1), Uint(u64::MAX), Some(Ordering::Less)),
        (Uint(u64::MAX), Int(-1), Some(Ordering::Greater)),
        (Int(1), Uint(1), Some(Ordering::Equal)),
        (Int(1), Double(f64::NAN), None),
        (Double(f64::NAN), Double(f64::NAN), None),
        (Int(i64::MAX), Double(f64::INFINITY), Some(Ordering::Less)),
        (Double(-0.0), Int(0), Some(Ordering::Equal)),
    ] {
        assert_eq!(left.compare(right), order, "{left:?} {right:?}");
    }
    assert!(!Double(f64::NAN).equals(Double(f64::NAN)));
}

#[test]
fn only_integral_doubles_are_indexes() {
    assert_eq!(Number::Double(2.0).lossless_int(), Some(2));
    assert_eq!(Number::Double(2.5).lossless_int(), None);
    assert_eq!(Number::Uint(u64::MAX).lossless_int(), None);
    assert_eq!(Number::Double(f64::NAN).lossless_int(), None);
}

proptest! {
    #[test]
    fn double_round_trips_through_text(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        let text = DoubleText(value).to_string();
        let back = parse_double(&text).unwrap();
        prop_assert!(back.to_bits() == value.to_bits() || value.is_nan() && back.is_nan());
    }

    #[test]
    fn plain_digits_round_trip(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let text = super::PlainDouble(value).to_string();
        prop_assert!(!text.contains('e'));
        prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
        prop_assert_eq!(text.len(), value.to_string().len());
    }

    #[test]
    fn hexadecimal_doubles_round_to_nearest_even(bits in any::<u64>(), shift in 0_i32..900) {
        #[expect(clippy::cast_precision_loss, reason = "the oracle's rounding")]
        let expected = bits as f64 * 2_f64.powi(-shift);
        prop_assert_eq!(parse_double(&format!("0x{bits:x}p-{shift}")), Some(expected));
    }

    #[test]
    fn parsing_doubles_never_panics(text in "[-+]?[0-9a-fA-FxXpPeE_.]{0,12}") {
        let value = parse_double(&text);
        if let (Some(value), Ok(standard)) = (value, text.parse::<f64>()) {
            prop_assert!(value == standard || value.is_nan());
        }
    }
}
