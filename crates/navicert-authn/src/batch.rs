//! One line of a batch and its result, both JSON. The same lines can be sent to kube-apiserver's own code.
// S288

use std::sync::Arc;

use navicert_types::Timestamp;
use serde_json::{Value, json};

use crate::authenticator::Authenticators;
use crate::config::{CompiledIssuer, ConfigError, load};
use crate::jwks::{KeySet, KeySource, KeysUnavailable, StaticKeys};
use crate::model::AuthnRequest;
use crate::model::outcome::AuthnOutcome;
use crate::profile::AuthnProfile;

/// `{"config"}` in, `{"valid", "stage", "errors": [{"type", "field", "detail"}], "messages"}` out.
pub fn check(line: &Value, profile: &AuthnProfile) -> Value {
    let Some(text) = line.get("config").and_then(Value::as_str) else {
        return json!({"fault": "`config` is missing or not a string"});
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

/// `{"config", "jwks", "token", "now"}` in, `{"outcome", "user", "error", "class"}` out. `jwks` is one key set for every
/// issuer, one key set per issuer URL, or the raw response body of a key endpoint; `now` is in seconds since 1970.
pub fn eval(line: &Value, profile: &AuthnProfile) -> Value {
    let Some(token) = line.get("token").and_then(Value::as_str) else {
        return json!({"fault": "`token` is missing or not a string"});
    };
    let now = line.get("now").and_then(Value::as_i64).and_then(|now| Timestamp::from_second(now).ok());
    let Some(now) = now else { return json!({"fault": "`now` is missing or not a time in seconds"}) };
    match authenticators(line, profile) {
        Ok(authenticators) => outcome_json(&authenticators.authenticate(&AuthnRequest::new(token, now))),
        Err(fault) => json!({"fault": fault}),
    }
}

/// The authenticators of a line: its `config` with its `jwks`.
///
/// # Errors
/// One clause: the line has no configuration, or an invalid one.
pub fn authenticators(line: &Value, profile: &AuthnProfile) -> Result<Authenticators, String> {
    let config = line.get("config").and_then(Value::as_str);
    let config = config.ok_or("`config` is missing or not a string")?;
    let loaded =
        load(config.as_bytes(), profile).map_err(|error| format!("invalid configuration: {error}"))?;
    let jwks = line.get("jwks").unwrap_or(&Value::Null);
    let keys =
        |issuer: &CompiledIssuer| -> Arc<dyn KeySource> { Arc::new(static_keys(jwks, &issuer.url, profile)) };
    Ok(Authenticators::new(loaded.compiled, keys))
}

/// An outcome as JSON. Contains no claim values beyond the user's own attributes.
pub fn outcome_json(outcome: &AuthnOutcome) -> Value {
    match outcome {
        AuthnOutcome::Authenticated(user) => json!({
            "outcome": "authenticated",
            "user": {
                "username": user.username(),
                "uid": user.uid(),
                "groups": user.groups(),
                "extra": user.extra(),
            },
        }),
        AuthnOutcome::NoOpinion(why) => json!({"outcome": "no-opinion", "reason": why.to_string()}),
        AuthnOutcome::Rejected(rejection) => json!({
            "outcome": "rejected",
            "class": rejection.refusal.class().name(),
            "error": rejection.to_string(),
            "authenticator": rejection.authenticator.to_string(),
        }),
    }
}

/// The response body of an issuer's key endpoint, as given in a line.
pub fn key_set(jwks: &Value, issuer: &str) -> Option<String> {
    match jwks {
        Value::String(raw) => Some(raw.clone()),
        Value::Object(members) if members.contains_key("keys") => Some(jwks.to_string()),
        Value::Object(members) => members.get(issuer).map(ToString::to_string),
        _ => None,
    }
}

/// The keys of an issuer, as given in a line.
pub fn static_keys(jwks: &Value, issuer: &str, profile: &AuthnProfile) -> StaticKeys {
    let body = key_set(jwks, issuer).unwrap_or_else(|| "{}".to_owned());
    match KeySet::parse(body.as_bytes(), profile) {
        Ok(keys) => StaticKeys::new(keys),
        Err(error) => StaticKeys::unavailable(KeysUnavailable::Failed(error.to_string())),
    }
}
