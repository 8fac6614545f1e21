//! One question of a batch and its answer, both JSON (S288): the same questions go to kube-apiserver's own code.

use std::sync::Arc;

use navicert_types::Timestamp;
use serde_json::{Value, json};

use crate::authenticator::{Authenticators, Question};
use crate::config::{CompiledIssuer, ConfigError, load};
use crate::jwks::{FixedKeys, KeySet, Keys, KeysUnavailable};
use crate::outcome::Outcome;
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

/// `{"config", "jwks", "token", "now"}` in, `{"outcome", "user", "error", "class"}` out. `jwks` is a key set for every
/// issuer, one key set per issuer by its URL, or the raw text of an answer; `now` is in seconds.
pub fn eval(question: &Value, profile: &Profile) -> Value {
    let Some(token) = question.get("token").and_then(Value::as_str) else {
        return json!({"fault": "`token` is missing or no string"});
    };
    let now = question.get("now").and_then(Value::as_i64).and_then(|now| Timestamp::from_second(now).ok());
    let Some(now) = now else { return json!({"fault": "`now` is missing or no time in seconds"}) };
    match authenticators(question, profile) {
        Ok(authenticators) => answer(&authenticators.authenticate(&Question::new(token, now))),
        Err(fault) => json!({"fault": fault}),
    }
}

/// The authenticators of a question: its `config` with its `jwks`.
///
/// # Errors
/// One sentence: the question has no configuration, or one that is not valid.
pub fn authenticators(question: &Value, profile: &Profile) -> Result<Authenticators, String> {
    let config = question.get("config").and_then(Value::as_str);
    let config = config.ok_or("`config` is missing or no string")?;
    let loaded = load(config.as_bytes(), profile)
        .map_err(|error| format!("the configuration is not valid: {error}"))?;
    let jwks = question.get("jwks").unwrap_or(&Value::Null);
    let keys = |issuer: &CompiledIssuer| -> Arc<dyn Keys> { Arc::new(fixed(jwks, &issuer.url, profile)) };
    Ok(Authenticators::new(loaded.compiled, keys))
}

/// An outcome as JSON, without the value of any claim but the user's own.
pub fn answer(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Authenticated(user) => json!({
            "outcome": "authenticated",
            "user": {
                "username": user.username(),
                "uid": user.uid(),
                "groups": user.groups(),
                "extra": user.extra(),
            },
        }),
        Outcome::NoOpinion(why) => json!({"outcome": "no-opinion", "reason": why.to_string()}),
        Outcome::Rejected(rejection) => json!({
            "outcome": "rejected",
            "class": rejection.refusal.class().name(),
            "error": rejection.to_string(),
            "authenticator": rejection.authenticator.to_string(),
        }),
    }
}

/// What an issuer's key endpoint answers, as a question gives it.
pub fn key_set(jwks: &Value, issuer: &str) -> Option<String> {
    match jwks {
        Value::String(raw) => Some(raw.clone()),
        Value::Object(members) if members.contains_key("keys") => Some(jwks.to_string()),
        Value::Object(members) => members.get(issuer).map(ToString::to_string),
        _ => None,
    }
}

/// The keys of an issuer as a question gives them.
pub fn fixed(jwks: &Value, issuer: &str, profile: &Profile) -> FixedKeys {
    let body = key_set(jwks, issuer).unwrap_or_else(|| "{}".to_owned());
    match KeySet::parse(body.as_bytes(), profile) {
        Ok(keys) => FixedKeys::new(keys),
        Err(error) => FixedKeys::unavailable(KeysUnavailable::Failed(error.to_string())),
    }
}
