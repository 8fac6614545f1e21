//! The trace that a request belongs to, for the audit log: `traceparent` of W3C Trace Context. The header itself is
//! forwarded like any other; only a well-formed value is written to a log.

use std::fmt;
use std::str;

use http::HeaderMap;
use http::header::HeaderName;
use serde::{Serialize, Serializer};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Length of version, trace ID, parent ID and flags with their dashes.
const TRACE_PARENT_BYTES: usize = 55;

/// A well-formed `traceparent`: `00-<32 hexadecimal digits>-<16>-<2>`. It contains nothing else, so it is safe in a log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TraceParent([u8; TRACE_PARENT_BYTES]);

impl TraceParent {
    /// The request's `traceparent`; `None` if it is missing, repeated or invalid.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => TraceParent::parse(value.as_bytes()),
            _ => None,
        }
    }

    /// Of a later version, which may append fields, only the fields known today are kept.
    fn parse(value: &[u8]) -> Option<Self> {
        let (known, rest) = value.split_first_chunk::<TRACE_PARENT_BYTES>()?;
        let mut fields = known.split(|byte| *byte == b'-');
        let mut field = |length: usize| fields.next().filter(|field| is_hexadecimal(field, length));
        let (version, trace, parent, _flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
        let is_extended = version != b"00" && rest.starts_with(b"-");
        let is_zero = |field: &[u8]| field.iter().all(|byte| *byte == b'0');
        let is_valid = version != b"ff" && !is_zero(trace) && !is_zero(parent);
        (is_valid && (rest.is_empty() || is_extended)).then_some(TraceParent(*known))
    }

    /// The value as text.
    pub fn as_str(&self) -> &str {
        // Hexadecimal digits and dashes only.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Digits in lower case, as the format requires.
fn is_hexadecimal(field: &[u8], length: usize) -> bool {
    field.len() == length && field.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl fmt::Debug for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for TraceParent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use http::header::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(values: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TRACEPARENT, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        TraceParent::from_headers(&headers).map(|parent| parent.as_str().to_owned())
    }

    #[test]
    fn reads_well_formed_values() {
        assert_eq!(read(&[GOOD]).as_deref(), Some(GOOD));
        let later = GOOD.replacen("00", "cc", 1);
        assert_eq!(read(&[&later]).as_deref(), Some(&*later));
        assert_eq!(
            read(&[&format!("{later}-new")]).as_deref(),
            Some(&*later),
            "known fields of a later version"
        );
    }

    #[test]
    fn ignores_missing_repeated_and_malformed_values() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[GOOD, GOOD]), None);
        let zero_trace = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
        let zero_parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01";
        for bad in [
            String::new(),
            GOOD.to_uppercase(),
            format!("{GOOD}-new"),
            format!("{GOOD} "),
            GOOD.get(..54).unwrap().to_owned(),
            GOOD.replacen("00", "ff", 1),
            GOOD.replacen("00", "0", 1),
            GOOD.replacen("-01", "_01", 1),
            GOOD.replacen("4b", "\"}", 1),
            format!("{}x", GOOD.replacen("00", "cc", 1)),
            zero_trace.to_owned(),
            zero_parent.to_owned(),
        ] {
            assert_eq!(read(&[&bad]), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn written_values_have_only_hexadecimal_digits_and_dashes(value in prop::collection::vec(any::<u8>(), 50..60)) {
            if let Some(parent) = TraceParent::parse(&value) {
                prop_assert!(parent.as_str().bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()));
            }
        }
    }
}
