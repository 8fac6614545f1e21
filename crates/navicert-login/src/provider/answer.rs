//! Answers of the token and device endpoints.

use std::time::Duration;

use navicert_types::tree::{Node, Number, ParseLimits, Syntax, Value, parse_with};
use navicert_types::{Secret, Timestamp, redact};

use super::http_client::HttpAnswer;
use crate::error::LoginError;

/// Nesting depth of a document.
const MAX_DEPTH: usize = 64;
/// Characters of a description that people see.
const MAX_DESCRIPTION_CHARS: usize = 300;

/// The answer of a token endpoint. `Debug` shows no token.
#[derive(Clone, Debug)]
pub struct TokenAnswer {
    /// `id_token`.
    pub id_token: Option<Secret<String>>,
    /// `access_token`.
    pub access_token: Option<Secret<String>>,
    /// `refresh_token`.
    pub refresh_token: Option<Secret<String>>,
    /// `scope`.
    pub scope: Option<String>,
    /// `expires_in`.
    pub expires_in: Option<Duration>,
    /// `refresh_expires_in`.
    pub refresh_expires_in: Option<Duration>,
    /// `issued_token_type`.
    pub issued_token_type: Option<String>,
    /// The provider's time.
    pub date: Option<Timestamp>,
    /// When it was received, by the local clock.
    pub received_at: Timestamp,
}

/// The answer of a device endpoint.
#[derive(Clone, Debug)]
pub(crate) struct DeviceAnswer {
    pub(crate) device_code: Secret<String>,
    pub(crate) user_code: String,
    pub(crate) verification_uri: String,
    pub(crate) verification_uri_complete: Option<String>,
    pub(crate) expires_in: Duration,
    pub(crate) interval: Duration,
}

impl TokenAnswer {
    pub(super) fn read(answer: &HttpAnswer, host: &str) -> Result<Self, LoginError> {
        let object = Object::read(&answer.body).filter(|_| (200..300).contains(&answer.status));
        let object = object.ok_or_else(|| not_json(answer, host))?;
        let token_type = object.text("token_type").unwrap_or_else(|| "Bearer".to_owned());
        if !token_type.eq_ignore_ascii_case("Bearer") && !token_type.eq_ignore_ascii_case("N_A") {
            return Err(LoginError::TokenType { host: host.to_owned(), found: clean(&token_type, 32) });
        }
        Ok(TokenAnswer {
            id_token: object.secret("id_token"),
            access_token: object.secret("access_token"),
            refresh_token: object.secret("refresh_token"),
            scope: object.text("scope"),
            expires_in: object.seconds("expires_in"),
            refresh_expires_in: object.seconds("refresh_expires_in").filter(|duration| !duration.is_zero()),
            issued_token_type: object.text("issued_token_type"),
            date: answer.date,
            received_at: answer.received_at,
        })
    }
}

impl DeviceAnswer {
    pub(crate) fn read(answer: &HttpAnswer, host: &str) -> Result<Self, LoginError> {
        let object = Object::read(&answer.body).ok_or_else(|| not_json(answer, host))?;
        let uri = object.text("verification_uri").or_else(|| object.text("verification_url"));
        match (object.secret("device_code"), object.text("user_code"), uri) {
            (Some(device_code), Some(user_code), Some(verification_uri)) => Ok(DeviceAnswer {
                device_code,
                user_code,
                verification_uri,
                verification_uri_complete: object.text("verification_uri_complete"),
                expires_in: object.seconds("expires_in").unwrap_or(Duration::from_secs(600)),
                interval: object.seconds("interval").unwrap_or(Duration::from_secs(5)),
            }),
            _ => Err(not_json(answer, host)),
        }
    }
}

/// A JSON object without repeated members.
pub(super) struct Object(Node);

impl Object {
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let limits = ParseLimits { bytes: 2 << 20, depth: MAX_DEPTH, ..ParseLimits::default() };
        let node = parse_with(body, Syntax::Json, limits).ok()?;
        let is_valid = node.as_mapping()?.entries().iter().all(|entry| !entry.repeated);
        is_valid.then_some(Object(node))
    }

    pub(super) fn member(&self, name: &str) -> Option<&Node> {
        let entry = self.0.as_mapping()?.last(name)?;
        (!entry.value.is_null()).then_some(&entry.value)
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.member(name)?.as_str().filter(|text| !text.is_empty()).map(ToOwned::to_owned)
    }

    fn secret(&self, name: &str) -> Option<Secret<String>> {
        self.text(name).map(Secret::new)
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        self.member(name).is_some_and(|node| matches!(node.value, Value::Bool(true)))
    }

    /// A list of texts; `None` if the member is missing or something else.
    pub(super) fn texts(&self, name: &str) -> Option<Vec<String>> {
        let items = self.member(name)?.as_sequence()?;
        items.iter().map(|item| item.as_str().map(ToOwned::to_owned)).collect()
    }

    /// A number of seconds, which some providers send as text.
    fn seconds(&self, name: &str) -> Option<Duration> {
        let seconds = match &self.member(name)?.value {
            Value::Number(number) => number_as_u64(number),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        // A hundred years, so that sums do not overflow.
        seconds.map(|seconds| Duration::from_secs(seconds.min(3_155_760_000)))
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

/// The error for an answer that is not an object with the expected members.
pub(super) fn not_json(answer: &HttpAnswer, host: &str) -> LoginError {
    // A successful answer may contain a token, so nothing of it is shown.
    let start = match answer.status {
        200..=299 => String::new(),
        _ => clean(&String::from_utf8_lossy(&answer.body), 80),
    };
    LoginError::NotJson { host: host.to_owned(), status: answer.status, start }
}

/// Text of the provider for people: on one line, without control characters, cut.
pub(crate) fn clean(text: &str, max_chars: usize) -> String {
    let trimmed: String = text.trim().chars().take(max_chars.min(MAX_DESCRIPTION_CHARS)).collect();
    redact::line(&trimmed).into_owned()
}
