//! Both dialects compared with the output of cel-go 0.29 (string_ext/format, string_ext/format_errors and edge
//! cases).

use super::{ArgumentView, Dialect, FormatArgument, FormatError, Piece, format, pieces};
use crate::instant::{Timestamp, parse_duration};
use Sample::*;

#[derive(Clone)]
enum Sample {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(&'static str),
    Bytes(&'static [u8]),
    Type(&'static str),
    Duration(&'static str),
    Time(&'static str),
    List(Vec<Sample>),
    Map(Vec<(Sample, Sample)>),
    Other(&'static str),
}

impl FormatArgument for Sample {
    fn view(&self) -> ArgumentView<'_> {
        match self {
            Null => ArgumentView::Null,
            Bool(value) => ArgumentView::Bool(*value),
            Int(value) => ArgumentView::Int(*value),
            Uint(value) => ArgumentView::Uint(*value),
            Double(value) => ArgumentView::Double(*value),
            Text(value) => ArgumentView::Text(value),
            Bytes(value) => ArgumentView::Bytes(value),
            Type(value) => ArgumentView::Type(value),
            Duration(value) => ArgumentView::Duration(parse_duration(value).unwrap()),
            Time(value) => ArgumentView::Timestamp(Timestamp::parse(value).unwrap()),
            List(_) => ArgumentView::List,
            Map(_) => ArgumentView::Map,
            Other(_) => ArgumentView::Other,
        }
    }

    fn type_name(&self) -> String {
        match self {
            Null => "null_type",
            Bool(_) => "bool",
            Int(_) => "int",
            Uint(_) => "uint",
            Double(_) => "double",
            Text(_) => "string",
            Bytes(_) => "bytes",
            Type(_) => "type",
            Duration(_) => "google.protobuf.Duration",
            Time(_) => "google.protobuf.Timestamp",
            List(_) => "list",
            Map(_) => "map",
            Other(name) => name,
        }
        .to_owned()
    }

    fn elements(&self, visit: &mut dyn FnMut(Self) -> Result<(), FormatError>) -> Result<(), FormatError> {
        let List(elements) = self else { return Ok(()) };
        elements.iter().cloned().try_for_each(visit)
    }

    fn entries(
        &self,
        visit: &mut dyn FnMut(Self, Self) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let Map(entries) = self else { return Ok(()) };
        entries.iter().cloned().try_for_each(|(key, value)| visit(key, value))
    }
}

fn render(dialect: Dialect, template: &str, arguments: &[Sample]) -> Result<String, String> {
    let mut out = String::new();
    format(&mut out, template, arguments, dialect, 1 << 16).map(|()| out).map_err(|error| error.to_string())
}

fn kubernetes(template: &str, argument: Sample) -> String {
    render(Dialect::Kubernetes, template, &[argument]).unwrap_or_else(|error| error)
}

fn standard(template: &str, argument: Sample) -> String {
    render(Dialect::Standard, template, &[argument]).unwrap_or_else(|error| error)
}

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

#[test]
fn string_clause_formats_every_primitive_value() {
    for (argument, in_kubernetes, in_standard) in [
        (Int(999_999_999_999), "999999999999", "999999999999"),
        (Uint(2), "2", "2"),
        (Double(3.5), "3.5", "3.5"),
        (Double(1e20), "1e+20", "100000000000000000000"),
        (Double(1_234_567.0), "1.234567e+06", "1234567"),
        (Double(1e-6), "1e-06", "0.000001"),
        (Double(-0.0), "-0", "-0"),
        (Double(NAN), "NaN", "NaN"),
        (Double(INF), "+Inf", "Infinity"),
        (Double(-INF), "-Inf", "-Infinity"),
        (Bool(true), "true", "true"),
        (Null, "null", "null"),
        (Text("a\"b"), "a\"b", "a\"b"),
        (Bytes("é".as_bytes()), "é", "é"),
        (
            Bytes(b"a\xff\xfeb\xe2\x82"),
            "error during formatting: could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string",
            "a\u{fffd}\u{fffd}b\u{fffd}\u{fffd}",
        ),
        (Type("int"), "int", "int"),
        (Duration("1h1ns"), "3600.000000001s", "3600.000000001s"),
        (Time("2020-01-01T00:00:00.50+05:30"), "2020-01-01T00:00:00.5+05:30", "2020-01-01T00:00:00.5+05:30"),
    ] {
        assert_eq!(kubernetes("%s", argument.clone()), in_kubernetes);
        assert_eq!(standard("%s", argument), in_standard);
    }
}

#[test]
fn lists_and_maps_quote_strings_in_the_kubernetes_dialect_only() {
    let list = List(vec![
        Text("abc"),
        Double(4.2),
        Null,
        List(vec![Int(9), Uint(8)]),
        Time("2023-02-03T23:31:20Z"),
        Bytes(b"x\"y\n"),
        Type("int"),
        Double(NAN),
        Double(INF),
        Double(-0.0),
    ]);
    assert_eq!(
        kubernetes("%s", list.clone()),
        r#"["abc", 4.200000, null, [9, 8], timestamp("2023-02-03T23:31:20Z"), b"x\"y\n", int, "NaN", "+Inf", -0.000000]"#
    );
    assert_eq!(
        standard("%s", list),
        "[abc, 4.2, null, [9, 8], 2023-02-03T23:31:20Z, x\"y\n, int, NaN, Infinity, -0]"
    );
    let map = Map(vec![
        (Text("strKey"), Text("x")),
        (Int(10), Duration("422s")),
        (Int(9), Map(vec![(Text("a"), Null)])),
        (Bool(true), Int(42)),
    ]);
    assert_eq!(
        kubernetes("%s", map.clone()),
        r#"{"strKey":"x", 10:duration("422s"), 9:{"a":null}, true:42}"#
    );
    assert_eq!(standard("%s", map), "{10: 422s, 9: {a: null}, strKey: x, true: 42}");
    let invalid_key = Map(vec![(Double(1.5), Int(1))]);
    assert_eq!(
        kubernetes("%s", invalid_key.clone()),
        "error during formatting: no formatting function for map key of type double"
    );
    assert_eq!(standard("%s", invalid_key), "{1.5: 1}");
}

#[test]
fn fixed_point_clauses_match_cel_go() {
    for (template, value, in_kubernetes, in_standard) in [
        ("%f", 1.5, "1.500000", "1.500000"),
        ("%.3f", 1.234_56, "1.235", "1.235"),
        ("%.3f", 1.2345, "1.234", "1.234"),
        ("%.0f", 2.5, "2", "2"),
        ("%.0f", 3.5, "4", "4"),
        ("%.0f", 999_999.5, "1,000,000", "1000000"),
        ("%.2f", 1234.5678, "1,234.57", "1234.57"),
        ("%.1f", -1234.56, "-1,234.6", "-1234.6"),
        (
            "%f",
            123_456_789_012_345_680_000.0,
            "123,456,789,012,345,683,968.000000",
            "123456789012345683968.000000",
        ),
        ("%f", -0.0, "0.000000", "-0.000000"),
        ("%.3f", -0.0001, "-0.000", "-0.000"),
        ("%.0f", -0.4, "-0", "-0"),
        ("%.20f", 0.1, "0.10000000000000000555", "0.10000000000000000555"),
        ("%f", NAN, "NaN", "NaN"),
        ("%f", INF, "∞", "Infinity"),
        ("%.2f", -INF, "-∞", "-Infinity"),
    ] {
        assert_eq!(kubernetes(template, Double(value)), in_kubernetes, "{template}");
        assert_eq!(standard(template, Double(value)), in_standard, "{template}");
    }
    assert_eq!(standard("%f", Uint(u64::MAX)), "18446744073709551616.000000");
    assert_eq!(standard("%f", Int(2)), "2.000000");
    assert_eq!(kubernetes("%f", Text("-Infinity")), "-∞");
}

#[test]
fn kubernetes_precision_wraps_at_256() {
    assert_eq!(kubernetes("%.256f", Double(1.5)), "1.5");
    assert_eq!(kubernetes("%.257f", Double(1.55)), "1.5500000000000000444089209850062616169452667236328125");
    assert_eq!(kubernetes("%.300f", Double(1.0)).len(), 46);
    assert_eq!(kubernetes("%.1000f", Double(0.1)).len(), 234);
    assert_eq!(kubernetes("%.10000010f", Double(1.0)), "%!(NOVERB)");
    assert_eq!(kubernetes("%.10000010e", Double(1.0)), "%!(NOVERB)");
    assert_eq!(
        standard("%.101d", Int(1)),
        "could not parse formatting clause: error while parsing precision: precision 101 exceeds maximum allowed precision 100"
    );
}

#[test]
fn scientific_clauses_match_cel_go() {
    for (template, value, in_kubernetes, in_standard) in [
        ("%e", 1_052.032_911_275, "1.052033×10⁰³", "1.052033e+03"),
        ("%.3e", 1_052.032_911_275, "1.052033×10⁰³", "1.052e+03"),
        ("%e", 0.0, "0.000000×10⁰⁰", "0.000000e+00"),
        ("%e", -0.0, "0.000000×10⁰⁰", "-0.000000e+00"),
        ("%e", -1234.5, "-1.234500×10⁰³", "-1.234500e+03"),
        ("%e", 9.999_999_5, "9.999999×10⁰⁰", "9.999999e+00"),
        ("%.0e", 1500.0, "1.500000×10⁰³", "2e+03"),
        ("%.20e", 0.1, "      1.000000×10⁻⁰¹", "1.00000000000000005551e-01"),
        ("%e", 1e300, "1.000000×10³⁰⁰", "1.000000e+300"),
        ("%e", 5e-324, "4.940656×10⁻³²⁴", "4.940656e-324"),
        ("%e", NAN, "   NaN", "NaN"),
        ("%e", -INF, "    -∞", "-Infinity"),
        ("%.5e", INF, "    ∞", "Infinity"),
    ] {
        assert_eq!(kubernetes(template, Double(value)), in_kubernetes, "{template}");
        assert_eq!(standard(template, Double(value)), in_standard, "{template}");
    }
}

#[test]
fn formats_integers_in_every_base() {
    for (template, argument, text) in [
        ("%d", Int(-1_234_567), "-1234567"),
        ("%d", Uint(u64::MAX), "18446744073709551615"),
        ("%x", Int(-255), "-ff"),
        ("%X", Uint(255), "FF"),
        ("%x", Int(i64::MIN), "-8000000000000000"),
        ("%x", Text("hello é"), "68656c6c6f20c3a9"),
        ("%X", Bytes(b"\xff\x00"), "FF00"),
        ("%o", Int(-8), "-10"),
        ("%b", Int(-5), "-101"),
        ("%b", Bool(true), "1"),
        ("%.3d", Int(1), "1"),
        ("%.3s", Text("abcdef"), "abcdef"),
        ("é%s😀", Text("x"), "éx😀"),
        ("%%%s%%", Text("text"), "%text%"),
    ] {
        assert_eq!(kubernetes(template, argument.clone()), text);
        assert_eq!(standard(template, argument), text);
    }
    assert_eq!(standard("%d", Double(1.5)), "1.5");
    assert_eq!(standard("%d", Double(INF)), "Infinity");
}

#[test]
fn rejects_wrong_arguments_and_clauses_with_the_messages_of_cel_go() {
    for (template, argument, message) in [
        (
            "%d",
            Double(1.0),
            "error during formatting: decimal clause can only be used on integers, was given double",
        ),
        (
            "%d",
            Duration("1s"),
            "error during formatting: decimal clause can only be used on integers, was given google.protobuf.Duration",
        ),
        (
            "%f",
            Int(1),
            "error during formatting: fixed-point clause can only be used on doubles, was given int",
        ),
        (
            "%f",
            Text("x"),
            "error during formatting: fixed-point clause can only be used on doubles, was given string",
        ),
        (
            "%e",
            Null,
            "error during formatting: scientific clause can only be used on doubles, was given null_type",
        ),
        (
            "%x",
            Double(0.5),
            "error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given double",
        ),
        (
            "%o",
            Text("a"),
            "error during formatting: octal clause can only be used on integers, was given string",
        ),
        (
            "%b",
            Text("a"),
            "error during formatting: only integers and bools can be formatted as binary, was given string",
        ),
        (
            "%s",
            Other("net.IP"),
            "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given net.IP",
        ),
        (
            "%s",
            List(vec![Other("optional_type")]),
            "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given optional_type",
        ),
        ("100%", Null, "unexpected end of string"),
        ("%q", Null, "could not parse formatting clause: unrecognized formatting clause \"q\""),
        ("%é", Null, "could not parse formatting clause: unrecognized formatting clause \"Ã\""),
        ("%5f", Null, "could not parse formatting clause: unrecognized formatting clause \"5\""),
        (
            "%.",
            Null,
            "could not parse formatting clause: error while parsing precision: could not find end of precision specifier",
        ),
        (
            "%.f",
            Null,
            "could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \"\": invalid syntax",
        ),
        (
            "%.9223372036854775808f",
            Null,
            "could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \"9223372036854775808\": value out of range",
        ),
        ("%s %s", Int(1), "index 1 out of range"),
        ("%s %q", Int(1), "index 1 out of range"),
    ] {
        assert_eq!(kubernetes(template, argument), message, "{template}");
    }
    assert_eq!(
        standard("%o", Double(1.0)),
        "error during formatting: octal clause can only be used on ints and uints, was given double"
    );
}

#[test]
fn extra_arguments_are_ignored() {
    assert_eq!(render(Dialect::Kubernetes, "%d", &[Int(1), Int(2)]).unwrap(), "1");
    let mut parts = pieces("a%d%%", 2, Dialect::Kubernetes);
    assert!(matches!(parts.next(), Some(Ok(Piece::Text("a")))));
    assert_eq!(parts.by_ref().filter(|piece| matches!(piece, Ok(Piece::Clause(_)))).count(), 1);
}

#[test]
fn output_error_and_key_limit_stop_the_rendering() {
    struct Full;
    impl std::fmt::Write for Full {
        fn write_str(&mut self, _: &str) -> std::fmt::Result {
            Err(std::fmt::Error)
        }
    }
    let wide = format(&mut Full, "%.9999999e", &[Double(1.0)], Dialect::Kubernetes, 0);
    assert_eq!(wide, Err(FormatError::TooLarge));
    let map = Map(vec![(Text("abc"), Null)]);
    let small = format(&mut String::new(), "%s", &[map], Dialect::Kubernetes, 4);
    assert_eq!(small, Err(FormatError::TooLarge));
    let deep = (0..1000).fold(Null, |inner, _| List(vec![inner]));
    let run = move || format(&mut String::new(), "%s", &[deep], Dialect::Standard, 0);
    let outcome = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
    assert_eq!(outcome, Err(FormatError::TooDeep));
}
