//! JSON objects of providers, and their texts for people.

use std::time::Duration;

use navicert_types::tree::{Node, Number, ParseLimits, Syntax, Value, parse_with};
use navicert_types::{Secret, redact};

/// Nesting depth of a document.
const MAX_DEPTH: usize = 64;
/// Bytes of a document: larger ones are not received.
const MAX_BYTES: usize = 2 << 20;
/// Characters of a description that people see.
const MAX_DESCRIPTION_CHARS: usize = 300;
/// A hundred years, so that sums do not overflow.
const MAX_SECONDS: u64 = 3_155_760_000;

/// A JSON object without repeated members.
#[derive(Clone, Debug)]
pub struct JsonObject(Node);

impl JsonObject {
    /// Reads a document; `None` if it is something else.
    pub fn read(body: &[u8]) -> Option<Self> {
        let limits = ParseLimits { bytes: MAX_BYTES, depth: MAX_DEPTH, ..ParseLimits::default() };
        let node = parse_with(body, Syntax::Json, limits).ok()?;
        let is_valid = node.as_mapping()?.entries().iter().all(|entry| !entry.repeated);
        is_valid.then_some(JsonObject(node))
    }

    /// A member that is not null.
    pub fn member(&self, name: &str) -> Option<&Node> {
        let entry = self.0.as_mapping()?.last(name)?;
        (!entry.value.is_null()).then_some(&entry.value)
    }

    /// A text that is not empty.
    pub fn text(&self, name: &str) -> Option<String> {
        self.member(name)?.as_str().filter(|text| !text.is_empty()).map(ToOwned::to_owned)
    }

    /// The same as a secret.
    pub fn secret(&self, name: &str) -> Option<Secret<String>> {
        self.text(name).map(Secret::new)
    }

    /// Whether a member is true.
    pub fn is_true(&self, name: &str) -> bool {
        self.member(name).is_some_and(|node| matches!(node.value, Value::Bool(true)))
    }

    /// A list of texts; `None` if the member is missing or something else.
    pub fn texts(&self, name: &str) -> Option<Vec<String>> {
        let items = self.member(name)?.as_sequence()?;
        items.iter().map(|item| item.as_str().map(ToOwned::to_owned)).collect()
    }

    /// A number of seconds, which some providers send as text.
    pub fn seconds(&self, name: &str) -> Option<Duration> {
        let seconds = match &self.member(name)?.value {
            Value::Number(number) => number_as_u64(number),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        seconds.map(|seconds| Duration::from_secs(seconds.min(MAX_SECONDS)))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn number_as_u64(number: &Number) -> Option<u64> {
    match number {
        Number::Integer(integer) => u64::try_from(*integer).ok(),
        Number::Unsigned(integer) => Some(*integer),
        Number::Float(float) => (0.0..1e15).contains(float).then_some(*float as u64),
        Number::OutOfRange(_) => None,
    }
}

/// Text of a provider for people: on one line, without control characters, cut.
pub fn clean(text: &str, max_chars: usize) -> String {
    let trimmed: String = text.trim().chars().take(max_chars.min(MAX_DESCRIPTION_CHARS)).collect();
    redact::line(&trimmed).into_owned()
}
