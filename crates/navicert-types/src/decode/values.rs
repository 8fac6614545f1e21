//! Decoding of plain types with the strictness of Go's JSON decoder: no conversion between types.

use std::fmt;

use base64::Engine as _;
use indexmap::IndexMap;
use navicert_go::base64::{STANDARD, without_line_breaks};
use zeroize::{Zeroize, Zeroizing};

use super::{Decode, Decoder};
use crate::diagnostic::DiagnosticKind;
use crate::field_path::FieldPath;
use crate::secret::Secret;
use crate::tree::{Node, Number, Value};

impl Decode for String {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match &node.value {
            Value::String(text) => Some(text.to_string()),
            _ => {
                decoder.report_wrong_type(node, "a string");
                None
            }
        }
    }
}

impl Decode for bool {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match &node.value {
            Value::Bool(value) => Some(*value),
            _ => {
                decoder.report_wrong_type(node, "a boolean");
                None
            }
        }
    }
}

impl Decode for f64 {
    #[expect(clippy::cast_precision_loss, reason = "as for any JSON number that is read as a double")]
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match &node.value {
            Value::Number(Number::Integer(value)) => Some(*value as f64),
            Value::Number(Number::Unsigned(value)) => Some(*value as f64),
            Value::Number(Number::Float(value)) => Some(*value),
            Value::Number(Number::OutOfRange(_)) => {
                decoder.report_invalid_value(node, "number is out of range");
                None
            }
            _ => {
                decoder.report_wrong_type(node, "a number");
                None
            }
        }
    }
}

macro_rules! decode_integer {
    ($($integer:ty),*) => {$(
        impl Decode for $integer {
            fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
                let fitting = match &node.value {
                    Value::Number(Number::Integer(value)) => Self::try_from(*value).ok(),
                    Value::Number(Number::Unsigned(value)) => Self::try_from(*value).ok(),
                    Value::Number(_) => None,
                    _ => {
                        decoder.report_wrong_type(node, "an integer");
                        return None;
                    }
                };
                if fitting.is_none() {
                    let (low, high) = (Self::MIN, Self::MAX);
                    decoder.report_invalid_value(node, format!("expected an integer between {low} and {high}"));
                }
                fitting
            }
        }
    )*};
}

decode_integer!(i32, i64, u8, u16, u32, u64);

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let Value::Sequence(items) = &node.value else {
            decoder.report_wrong_type(node, "a list");
            return None;
        };
        Some(items.iter().enumerate().map(|(index, item)| decoder.index(index, item)).collect())
    }
}

/// A map with free keys, in the order of the text.
impl<T: Decode> Decode for IndexMap<String, T> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let Value::Mapping(mapping) = &node.value else {
            decoder.report_wrong_type(node, "a mapping");
            return None;
        };
        decoder.report_repeated(mapping, FieldPath::key);
        let entries = mapping.effective();
        Some(
            entries
                .into_iter()
                .map(|entry| (entry.key.clone(), decoder.key(&entry.key, &entry.value)))
                .collect(),
        )
    }
}

/// For elements of lists and maps where missing and empty differ.
impl<T: Decode> Decode for Option<T> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        T::decode(node, decoder).map(Some)
    }
}

impl<T: Decode> Decode for Box<T> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        T::decode(node, decoder).map(Box::new)
    }
}

impl Default for Node {
    fn default() -> Self {
        Node::new(Value::Null)
    }
}

/// Any value, kept undecoded.
impl Decode for Node {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        report_repeated_within(node, decoder);
        Some(node.clone())
    }
}

fn report_repeated_within(node: &Node, decoder: &mut Decoder) {
    match &node.value {
        Value::Sequence(items) => items.iter().for_each(|item| report_repeated_within(item, decoder)),
        Value::Mapping(mapping) => {
            decoder.report_repeated(mapping, FieldPath::field);
            mapping.entries().iter().for_each(|entry| report_repeated_within(&entry.value, decoder));
        }
        _ => {}
    }
}

/// Errors are reported without the value.
impl Decode for Secret<String> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.within_secret(|decoder| String::decode(node, decoder)).map(Secret::new)
    }
}

impl Decode for Secret<Vec<u8>> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.within_secret(|decoder| Base64::decode(node, decoder)).map(|bytes| Secret::new(bytes.0))
    }
}

/// Bytes in standard base64 (Go's `[]byte`).
///
/// Padding is required and line breaks are ignored. As in Go, a list of numbers is accepted too.
// C106
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Base64(pub Vec<u8>);

/// Shows only the length: the bytes may be a key.
impl fmt::Debug for Base64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Base64({} bytes)", self.0.len())
    }
}

impl Decode for Base64 {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match &node.value {
            Value::String(text) => {
                // Usually the encoding is canonical and has no line breaks; then no copy is needed.
                if let Ok(bytes) = base64_simd::STANDARD.decode_to_vec(text.as_bytes()) {
                    return Some(Base64(bytes));
                }
                let packed = Zeroizing::new(without_line_breaks(text.as_bytes()));
                let bytes = STANDARD.decode(&*packed).ok();
                if bytes.is_none() {
                    decoder.report_invalid_value(node, not_base64(&packed));
                }
                bytes.map(Base64)
            }
            Value::Sequence(_) => Vec::<u8>::decode(node, decoder).map(Base64),
            _ => {
                let message = format!("expected base64 text, found {}", node.kind());
                decoder.report(node.span, DiagnosticKind::WrongType, message, None);
                None
            }
        }
    }
}

/// Describes common mistakes.
fn not_base64(text: &[u8]) -> &'static str {
    if text.starts_with(b"-----BEGIN") {
        "expected base64, found PEM; the field without `-data` takes a file name, this one the file's base64"
    } else if text.iter().any(|byte| matches!(byte, b'-' | b'_')) {
        "expected standard base64, found the URL-safe alphabet"
    } else if !text.len().is_multiple_of(4) {
        "expected base64 with padding"
    } else {
        "expected base64"
    }
}

impl Base64 {
    /// The text form, with padding and without line ends.
    pub fn encode(bytes: &[u8]) -> String {
        STANDARD.encode(bytes)
    }
}

impl Zeroize for Base64 {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}
