//! Results of `resource.Quantity` in Kubernetes 1.37.

use super::{Quantity, QuantityError};
use proptest::prelude::*;

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn canonical_text_matches_upstream() {
    for (text, canonical) in [
        ("1", "1"),
        ("1.5Gi", "1536Mi"),
        ("1000", "1k"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1024Ki", "1Mi"),
        ("1.5Ki", "1536"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("0.0001Ki", "102400u"),
        ("-0.1Ki", "-102400m"),
        // Passes the quick test for the canonical form and is kept as written.
        ("+1", "+1"),
        ("5.", "5."),
        ("00012", "00012"),
        ("1.100k", "1.100k"),
        ("1.500", "1.500"),
        ("1E3", "1E3"),
        ("1e+3", "1e+3"),
        ("+1Ki", "+1Ki"),
        ("001Ki", "001Ki"),
        ("1e-0", "1e-0"),
        ("1.50", "1500m"),
        ("+1000", "1k"),
        ("0.100k", "100"),
        ("1.000", "1"),
        ("1.5e3", "1500"),
        ("1e4", "10e3"),
        ("1e1", "10"),
        ("5e-1", "500e-3"),
        ("1e100", "10e99"),
        // Beyond the largest suffix, none is written.
        ("1000E", "1"),
        ("99999E", "99999E"),
        ("0.1n", "1n"),
        ("1.1n", "2n"),
        ("-1.1n", "-2n"),
        ("1e-10", "1e-9"),
        ("12345678901234567890.123456789123", "12345678901234567890123456790n"),
        ("10Ei", "9223372036854775807"),
        ("-10Ei", "-9223372036854775807"),
        ("8Ei", "9223372036854775807"),
        (".8Ei", "922337203685477580800m"),
        ("9223372036854775808", "9223372036854775808"),
        // An empty number is zero.
        ("-", "0"),
        (".", "0"),
        ("Mi", "0"),
        ("-0", "0"),
        ("0e5", "0"),
        ("e3", "0"),
    ] {
        assert_eq!(quantity(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn rejects_invalid_quantities() {
    for (text, error) in [
        ("", QuantityError::Format),
        ("1 ", QuantityError::Format),
        (" 1", QuantityError::Format),
        ("1e1.5", QuantityError::Format),
        ("1e3k", QuantityError::Format),
        ("1..5", QuantityError::Format),
        ("--1", QuantityError::Suffix),
        ("1٣", QuantityError::Format),
        ("1_0", QuantityError::Format),
        ("1K", QuantityError::Suffix),
        ("1ki", QuantityError::Suffix),
        ("1e", QuantityError::Suffix),
        ("1E+", QuantityError::Suffix),
        ("1-", QuantityError::Suffix),
        ("1mm", QuantityError::Suffix),
        ("1Mi1", QuantityError::Suffix),
        ("1i", QuantityError::Suffix),
        ("Ei", QuantityError::Number),
        ("+.e-12", QuantityError::Number),
        ("12345678901234567890e2000000000", QuantityError::TooLarge),
    ] {
        assert_eq!(Quantity::parse(text).unwrap_err(), error, "{text}");
    }
}

#[test]
fn only_small_amounts_without_a_fraction_are_integers() {
    for (text, integer) in [
        ("1G", Some(1_000_000_000)),
        ("1Ki", Some(1024)),
        ("1e18", Some(1_000_000_000_000_000_000)),
        ("-7", Some(-7)),
        ("1e19", None),
        ("9223372036854775807", None),
        ("7Ei", None),
        ("1.5", None),
        ("1000m", None),
        ("1.0", None),
        ("0.5Ki", None),
    ] {
        assert_eq!(quantity(text).as_integer().ok(), integer, "{text}");
        assert_eq!(quantity(text).is_integer(), integer.is_some(), "{text}");
    }
}

#[test]
fn approximate_double_multiplies_value_and_power_of_ten() {
    for (text, double) in [
        ("1.5", 1.5),
        ("0.1", 0.1),
        ("1n", 1e-9),
        ("1Ki", 1024.0),
        ("0.1Ki", 102.4),
        ("1e100", 1e100),
        ("99999999999999999999", 1e20),
        ("123456789.123456789", 1.234_567_891_234_567_9e8),
        ("9007199254740993", 9_007_199_254_740_992.0),
        ("1e400", f64::INFINITY),
        ("1e2000000000", f64::INFINITY),
    ] {
        assert_eq!(quantity(text).as_approximate_double(), double, "{text}");
    }
}

#[test]
fn sum_has_the_notation_of_the_first_non_zero_operand() {
    for (left, right, sum, difference) in [
        ("1", "1", "2", "0"),
        ("1k", "1", "1001", "999"),
        ("1Ki", "1", "1025", "1023"),
        ("1", "1Ki", "1025", "-1023"),
        ("0", "1Ki", "1Ki", "-1Ki"),
        ("0k", "1e3", "1e3", "-1e3"),
        ("500Ki", "524Ki", "1Mi", "-24Ki"),
        ("10Ki", "9.5Ki", "19968", "512"),
        ("0.5Ki", "0.5Ki", "1Ki", "0"),
        ("100m", "900m", "1", "-800m"),
        ("9E", "1E", "10E", "8E"),
        ("1E", "1n", "1000000000000000000000000001n", "999999999999999999999999999n"),
        ("8Ei", "1Ei", "10376293541461622783", "8070450532247928831"),
        ("9223372036854775807", "1", "9223372036854775808", "9223372036854775806"),
    ] {
        assert_eq!(
            quantity(left).checked_add(&quantity(right)).unwrap().to_string(),
            sum,
            "{left} + {right}"
        );
        assert_eq!(
            quantity(left).checked_sub(&quantity(right)).unwrap().to_string(),
            difference,
            "{left} - {right}"
        );
    }
    assert_eq!(quantity("0Ki").checked_add_int(5000).unwrap().to_string(), "5e3");
    assert_eq!(quantity("1Ki").checked_add_int(1).unwrap().to_string(), "1025");
    assert_eq!(
        quantity("-9223372036854775807").checked_sub_int(10).unwrap().to_string(),
        "-9223372036854775817"
    );
    assert_eq!(quantity("1").checked_sub_int(i64::MIN).unwrap().to_string(), "9223372036854775809");
    let huge = quantity("1e2000000000");
    assert_eq!(huge.checked_add(&quantity("1")).unwrap_err(), QuantityError::TooLarge);
    assert!(huge > quantity("1e1999999999"));
    assert_eq!(huge.to_string(), "100e1999999998");
}

#[test]
fn compares_amounts_and_not_notation() {
    for (left, right) in
        [("1", "2"), ("1k", "1Ki"), ("-1e100", "-1"), ("-1", "0"), ("1n", "1u"), ("1", "1e100"), ("-2", "-1")]
    {
        assert!(quantity(left) < quantity(right), "{left} {right}");
        assert!(quantity(right) > quantity(left), "{left} {right}");
    }
    for (left, right) in
        [("1", "1000m"), ("1.0", "1"), ("1Ki", "1024"), ("-0", "0Ki"), ("1e19", "10E"), ("0.5Ki", "512")]
    {
        assert_eq!(quantity(left), quantity(right));
    }
    assert_eq!([quantity("-5").sign(), quantity("0").sign(), quantity("1e100").sign()], [-1, 0, 1]);
}

proptest! {
    #[test]
    fn subtraction_reverses_addition(left in "-?[0-9]{1,22}(\\.[0-9]{1,6})?(m|k|E|Ki|Mi|e3|e-3)?", right in "-?[0-9]{1,22}(m|k|G|Gi|e12)?") {
        let (left, right) = (quantity(&left), quantity(&right));
        prop_assert_eq!(left.checked_add(&right).unwrap().checked_sub(&right).unwrap(), left.clone());
        prop_assert_eq!(left.checked_sub(&right).unwrap().sign(), match left.cmp(&right) {
            std::cmp::Ordering::Less => -1,
            std::cmp::Ordering::Equal => 0,
            std::cmp::Ordering::Greater => 1,
        });
    }

    #[test]
    fn parsing_quantities_never_panics(text in "[-+]?[0-9.]{0,24}[eEinumkKMGTP]{0,3}[-+]?[0-9]{0,10}") {
        if let Ok(value) = Quantity::parse(&text) {
            let _ = (value.to_string(), value.as_approximate_double(), value.is_integer());
        }
    }
}
