//! Results of `format.<name>().validate(…)` in Kubernetes 1.37.

use super::NamedFormat;

/// All inputs; each is valid for some formats only.
#[rustfmt::skip]
const TEXTS: &[&str] = &[
    "",
    "\0",
    " 2020-01-01",
    "#",
    "*",
    "-0001-01-01",
    "-a",
    "-a/b",
    ".a",
    "////",
    "//x",
    "/b",
    "/p",
    "0000-01-01",
    "00000000-0000-0000-0000-000000000000",
    "1",
    "10000-01-01",
    "123E4567-E89B-12D3-A456-426614174000",
    "123e4567-e89b-12d3-a456-42661417400",
    "123e4567-e89b-12d3-a456-426614174000",
    "123e4567-e89b12d3a456426614174000",
    "123e4567e89b12d3a456426614174000",
    "1a",
    "2006-01-02T15:04:05.999Z",
    "2019-02-29",
    "2020-01-01",
    "2020-01-01 ",
    "2020-01-01 00:00:00Z",
    "2020-01-01T00:00:00",
    "2020-01-01T00:00:00+0100",
    "2020-01-01T00:00:00+01:00",
    "2020-01-01T00:00:00+24:00",
    "2020-01-01T00:00:00,5Z",
    "2020-01-01T00:00:00-07:00",
    "2020-01-01T00:00:00.123456789012Z",
    "2020-01-01T00:00:00.123Z",
    "2020-01-01T00:00:00.Z",
    "2020-01-01T00:00:00Z",
    "2020-01-01T00:00:00z",
    "2020-01-01T00:00:60Z",
    "2020-01-01T00:00Z",
    "2020-01-01T0:00:00Z",
    "2020-01-01T24:00:00Z",
    "2020-01-01t00:00:00z",
    "2020-02-29",
    "2020-02-30",
    "2020-1-1",
    "2020-13-01",
    "20200101",
    "9999-12-31",
    "====",
    "A",
    "A/b",
    "A_b.C/d-E",
    "Y\r\nQ==",
    "Y Q==",
    "YQ",
    "YQ=",
    "YQ==",
    "YR==",
    "YWI",
    "YWI=",
    "_-8=",
    "a",
    "a\nb",
    "a b",
    "a-",
    "a-b",
    "a.",
    "a..b",
    "a.b",
    "a/",
    "a/-b",
    "a/b",
    "a/b/c",
    "a1",
    "a:",
    "a:b",
    "aGVs",
    "aGVs\n",
    "aGVs bG8=",
    "aGVsbG8",
    "aGVsbG8=",
    "a_b",
    "ab+/",
    "ab==",
    "example.com/MyName",
    "http://",
    "http://[::1",
    "http://a",
    "http://a b",
    "mailto:x",
    "path",
    "urn:uuid:123e4567-e89b-12d3-a456-426614174000",
    "x?y",
    "{123e4567-e89b-12d3-a456-426614174000}",
    "é",
    "é/b",
];

/// The valid inputs by format.
#[rustfmt::skip]
const VALID: &[(&str, &[&str])] = &[
    ("dns1123Label", &["0000-01-01", "00000000-0000-0000-0000-000000000000", "1", "10000-01-01", "123e4567-e89b-12d3-a456-42661417400", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b12d3a456426614174000", "123e4567e89b12d3a456426614174000", "1a", "2019-02-29", "2020-01-01", "2020-02-29", "2020-02-30", "2020-1-1", "2020-13-01", "20200101", "9999-12-31", "a", "a-b", "a1", "path"]),
    ("dns1123Subdomain", &["0000-01-01", "00000000-0000-0000-0000-000000000000", "1", "10000-01-01", "123e4567-e89b-12d3-a456-42661417400", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b12d3a456426614174000", "123e4567e89b12d3a456426614174000", "1a", "2019-02-29", "2020-01-01", "2020-02-29", "2020-02-30", "2020-1-1", "2020-13-01", "20200101", "9999-12-31", "a", "a-b", "a.b", "a1", "path"]),
    ("dns1035Label", &["a", "a-b", "a1", "path"]),
    ("qualifiedName", &["0000-01-01", "00000000-0000-0000-0000-000000000000", "1", "10000-01-01", "123E4567-E89B-12D3-A456-426614174000", "123e4567-e89b-12d3-a456-42661417400", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b12d3a456426614174000", "123e4567e89b12d3a456426614174000", "1a", "2019-02-29", "2020-01-01", "2020-02-29", "2020-02-30", "2020-1-1", "2020-13-01", "20200101", "9999-12-31", "A", "YQ", "YWI", "a", "a-b", "a..b", "a.b", "a/b", "a1", "aGVs", "aGVsbG8", "a_b", "example.com/MyName", "path"]),
    ("dns1123LabelPrefix", &["0000-01-01", "00000000-0000-0000-0000-000000000000", "1", "10000-01-01", "123e4567-e89b-12d3-a456-42661417400", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b12d3a456426614174000", "123e4567e89b12d3a456426614174000", "1a", "2019-02-29", "2020-01-01", "2020-02-29", "2020-02-30", "2020-1-1", "2020-13-01", "20200101", "9999-12-31", "a", "a-", "a-b", "a1", "path"]),
    ("dns1123SubdomainPrefix", &["0000-01-01", "00000000-0000-0000-0000-000000000000", "1", "10000-01-01", "123e4567-e89b-12d3-a456-42661417400", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b12d3a456426614174000", "123e4567e89b12d3a456426614174000", "1a", "2019-02-29", "2020-01-01", "2020-02-29", "2020-02-30", "2020-1-1", "2020-13-01", "20200101", "9999-12-31", "a", "a-", "a-b", "a.b", "a1", "path"]),
    ("dns1035LabelPrefix", &["a", "a-", "a-b", "a1", "path"]),
    ("labelValue", &["", "0000-01-01", "00000000-0000-0000-0000-000000000000", "1", "10000-01-01", "123E4567-E89B-12D3-A456-426614174000", "123e4567-e89b-12d3-a456-42661417400", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b12d3a456426614174000", "123e4567e89b12d3a456426614174000", "1a", "2019-02-29", "2020-01-01", "2020-02-29", "2020-02-30", "2020-1-1", "2020-13-01", "20200101", "9999-12-31", "A", "YQ", "YWI", "a", "a-b", "a..b", "a.b", "a1", "aGVs", "aGVsbG8", "a_b", "path"]),
    ("uri", &["*", "////", "//x", "/b", "/p", "a:", "a:b", "http://", "http://a", "mailto:x", "urn:uuid:123e4567-e89b-12d3-a456-426614174000"]),
    ("uuid", &["00000000-0000-0000-0000-000000000000", "123E4567-E89B-12D3-A456-426614174000", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b12d3a456426614174000", "123e4567e89b12d3a456426614174000"]),
    ("byte", &["////", "123e4567e89b12d3a456426614174000", "20200101", "YQ==", "YR==", "YWI=", "aGVs", "aGVsbG8=", "ab+/", "ab==", "path"]),
    ("date", &["0000-01-01", "2020-01-01", "2020-02-29", "9999-12-31"]),
    ("datetime", &["2006-01-02T15:04:05.999Z", "2020-01-01T00:00:00+01:00", "2020-01-01T00:00:00+24:00", "2020-01-01T00:00:00,5Z", "2020-01-01T00:00:00-07:00", "2020-01-01T00:00:00.123456789012Z", "2020-01-01T00:00:00.123Z", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00z", "2020-01-01t00:00:00z"]),
];

#[test]
fn each_format_accepts_the_same_texts_as_upstream() {
    // cel.jsonl "named formats"
    assert_eq!(VALID.len(), NamedFormat::ALL.len());
    for (name, valid) in VALID {
        let format = NamedFormat::from_name(name).unwrap();
        for text in TEXTS {
            assert_eq!(format.validate(text).is_empty(), valid.contains(text), "{name} {text:?}");
        }
    }
    assert_eq!(NamedFormat::from_name("label"), None);
}

#[test]
fn error_messages_match_apimachinery() {
    let long = "a".repeat(64);
    let very_long = format!("{}_/b", "a".repeat(260));
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    let subdomain = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')".to_owned();
    let dns1035 = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    let name = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let key = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
    let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let prefix = format!("prefix part {subdomain}");
    for (format, text, errors) in [
        (NamedFormat::Dns1123Label, "A", &[label][..]),
        (NamedFormat::Dns1123Label, "a.b", &["must not contain dots"]),
        (NamedFormat::Dns1123Label, &long, &["must be no more than 63 characters"]),
        (NamedFormat::Dns1123Subdomain, "A", &[&subdomain]),
        (NamedFormat::Dns1035Label, "1a", &[dns1035]),
        (NamedFormat::QualifiedName, "", &["name part must be non-empty", name]),
        (NamedFormat::QualifiedName, &long, &["name part must be no more than 63 bytes"]),
        (NamedFormat::QualifiedName, "A/-", &[&prefix, name]),
        (NamedFormat::QualifiedName, "/b", &["prefix part must be non-empty"]),
        (NamedFormat::QualifiedName, "a/b/c", &[key]),
        (NamedFormat::QualifiedName, &very_long, &["prefix part must be no more than 253 bytes", &prefix]),
        (NamedFormat::LabelValue, "-a", &[value]),
        (NamedFormat::LabelValue, &long, &["must be no more than 63 bytes"]),
        (NamedFormat::Uri, "\0", &[r#"parse "\x00": net/url: invalid control character in URL"#]),
        (NamedFormat::Uri, "path", &[r#"parse "path": invalid URI for request"#]),
        (NamedFormat::Uuid, "a", &["does not match the UUID format"]),
        (NamedFormat::Byte, "a", &["invalid base64"]),
        (NamedFormat::Date, "a", &["invalid date"]),
        (NamedFormat::DateTime, "a", &["invalid datetime"]),
        (NamedFormat::Dns1123LabelPrefix, "A-", &[]),
        (NamedFormat::Dns1123LabelPrefix, "-", &[label]),
        (NamedFormat::Dns1123LabelPrefix, "é-", &[label]),
        (NamedFormat::DateTime, "2020-01-01T00:00:00ZTxyz", &[]),
        (NamedFormat::DateTime, "2020-01-01T00:00:00x5Z", &[]),
        (NamedFormat::DateTime, "0000-02-29T00:00:00Z", &[]),
    ] {
        assert_eq!(format.validate(text), errors, "{} {text:?}", format.name());
    }
}
