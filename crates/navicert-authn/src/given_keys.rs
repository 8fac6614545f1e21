//! The keys of issuers as a test file or a batch line gives them: one key set for all issuers, or one per issuer.

use serde_json::Value;

use crate::jwks::{KeySet, KeysUnavailable, StaticKeys};
use crate::profile::AuthnProfile;

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
