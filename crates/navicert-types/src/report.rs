//! What every verb of the command line prints with `-o json` besides its own report: the error of a verb that failed, and the
//! frame of a batch.
//!
//! A report is a plain value: `Serialize` is its JSON form, `Display` its text form where it has one. With the feature `schema`
//! every report also has a JSON Schema.

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::Secret;
use crate::redact::REDACTED;

/// The result of a verb that failed without any other result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorReport {
    /// Why the verb failed.
    pub error: ReportedError,
}

/// Why a verb failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReportedError {
    /// The first error, in one line.
    pub message: String,
    /// What kind of failure it is.
    pub class: ErrorClass,
    /// The exit code of the process.
    pub exit_code: u8,
    /// The stable code of the error, for verbs whose errors have one: `login`, `logout` and `status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Every error, the first one included, if there are several. At most 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// The kind of a failure. Each but `failure` has one exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ErrorClass {
    /// Rejected, not valid, mismatch, address in use.
    Failure,
    /// The command line is invalid.
    Usage,
    /// A configuration or input file is missing or invalid.
    InvalidInput,
    /// A peer is unreachable.
    Unreachable,
    /// A policy denies it.
    Denied,
    /// A fault of navicert itself.
    Internal,
}

impl ErrorReport {
    /// The report of a failure with its messages, the most important one first.
    pub fn new(class: ErrorClass, exit_code: u8, messages: Vec<String>) -> Self {
        let message = messages.first().map_or("failed; see standard error", String::as_str).to_owned();
        let details = if messages.len() > 1 { messages } else { Vec::new() };
        ErrorReport { error: ReportedError { message, class, exit_code, code: None, details } }
    }
}

/// One result line of a `--jsonl` batch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BatchResponse<T> {
    /// The `id` of the input line; `null` if it has none or is not JSON.
    pub id: Value,
    /// What the line gave.
    #[serde(flatten)]
    pub result: BatchResult<T>,
}

/// What one line of a batch gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum BatchResult<T> {
    /// The result.
    Done(T),
    /// The line is not an input of this verb.
    Fault {
        /// What is wrong with the line.
        fault: String,
    },
}

impl<T> From<Result<T, String>> for BatchResult<T> {
    fn from(result: Result<T, String>) -> Self {
        result.map_or_else(|fault| BatchResult::Fault { fault }, BatchResult::Done)
    }
}

impl<T> BatchResponse<T> {
    /// Reads one input line and processes it. The parser's own message is not part of a fault: it may quote the line, which may
    /// hold secrets.
    pub fn process(line: &[u8], process: impl FnOnce(&Value) -> Result<T, String>) -> Self {
        match serde_json::from_slice::<Value>(line) {
            Ok(request) => BatchResponse {
                id: request.get("id").cloned().unwrap_or_default(),
                result: process(&request).into(),
            },
            Err(error) => {
                let fault = format!("invalid JSON at column {}", error.column());
                BatchResponse { id: Value::Null, result: BatchResult::Fault { fault } }
            }
        }
    }
}

/// A required string member of a batch's input line.
///
/// # Errors
/// The fault of a line without it.
pub fn string_member<'a>(request: &'a Value, name: &str) -> Result<&'a str, String> {
    request.get(name).and_then(Value::as_str).ok_or_else(|| format!("`{name}` must be a string"))
}

/// A secret in a report: redacted, unless the user has asked to see it. `Debug` never shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedSecret {
    secret: Secret<String>,
    is_shown: bool,
}

impl ReportedSecret {
    /// The secret as the report shows it.
    pub fn new(secret: &Secret<String>, is_shown: bool) -> Self {
        ReportedSecret { secret: secret.clone(), is_shown }
    }

    /// The secret, or the mask.
    pub fn shown(&self) -> &str {
        if self.is_shown { self.secret.expose() } else { REDACTED }
    }
}

impl Serialize for ReportedSecret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ReportedSecret {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ReportedSecret".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn details_are_left_out_unless_there_are_several_errors() {
        let report = |messages: &[&str]| {
            let messages = messages.iter().map(|text| (*text).to_owned()).collect();
            serde_json::to_value(ErrorReport::new(ErrorClass::InvalidInput, 3, messages)).unwrap()
        };
        let one = json!({"error": {"message": "a", "class": "invalid-input", "exitCode": 3}});
        assert_eq!(report(&["a"]), one);
        assert_eq!(report(&["a", "b"])["error"]["details"], json!(["a", "b"]));
        assert_eq!(report(&[])["error"]["message"], "failed; see standard error");
    }

    #[test]
    fn result_line_has_the_identifier_of_the_input_line() {
        let process = |line: &str| {
            let response = BatchResponse::process(line.as_bytes(), |request| {
                string_member(request, "a").map(|text| json!({ "length": text.len() }))
            });
            serde_json::to_value(response).unwrap()
        };
        assert_eq!(process(r#"{"id": 7, "a": "xy"}"#), json!({"id": 7, "length": 2}));
        assert_eq!(process(r#"{"a": "xy"}"#), json!({"id": null, "length": 2}));
        assert_eq!(process(r#"{"id": "b"}"#), json!({"id": "b", "fault": "`a` must be a string"}));
        assert_eq!(
            process("{canary"),
            json!({"id": null, "fault": "invalid JSON at column 2"}),
            "the line is not quoted"
        );
    }

    #[test]
    fn secret_is_serialized_only_if_it_is_to_be_shown() {
        let secret = Secret::new("canary".to_owned());
        assert_eq!(serde_json::to_value(ReportedSecret::new(&secret, false)).unwrap(), REDACTED);
        assert_eq!(serde_json::to_value(ReportedSecret::new(&secret, true)).unwrap(), "canary");
        assert!(!format!("{:?}", ReportedSecret::new(&secret, true)).contains("canary"));
    }
}
