//! One question of a batch and its answer, both JSON (S288): the same questions go to kube-apiserver's own code.

use serde_json::{Value, json};

use crate::config::{ConfigError, load};
use crate::profile::Profile;

/// `{"config"}` in, `{"valid", "stage", "errors": [{"type", "field", "detail"}], "messages"}` out.
pub fn check(question: &Value, profile: &Profile) -> Value {
    let Some(text) = question.get("config").and_then(Value::as_str) else {
        return json!({"fault": "`config` is missing or no string"});
    };
    match load(text.as_bytes(), profile) {
        Ok(_) => json!({"valid": true, "errors": []}),
        Err(ConfigError::Invalid { violations, .. }) => {
            let errors = violations.iter().map(|violation| {
                json!({
                    "type": violation.kind.name(),
                    "field": violation.path.to_string(),
                    "detail": violation.detail,
                })
            });
            json!({"valid": false, "stage": "validate", "errors": errors.collect::<Vec<_>>()})
        }
        Err(ConfigError::Decode(diagnostics)) => {
            let messages: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
            json!({"valid": false, "stage": "decode", "errors": [], "messages": messages})
        }
        Err(error @ ConfigError::Empty) => {
            json!({"valid": false, "stage": "decode", "errors": [], "messages": [error.to_string()]})
        }
    }
}
