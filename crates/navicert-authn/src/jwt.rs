//! Tokens, before and after verification:
//! `compact` (text) → `claims` (unverified: for routing and cheap checks) → `header` → `signature` → [`VerifiedClaims`].

pub(crate) mod algorithm;
pub(crate) mod claims;
pub(crate) mod compact;
pub(crate) mod header;
mod legacy_rsa;
pub(crate) mod registered_claim;
mod seconds;
pub(crate) mod signature;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

pub use algorithm::{JwsAlgorithm, JwsAlgorithmSet};
pub use claims::VerifiedClaims;

/// The audiences that a token states. Unverified: call only for accepted tokens.
pub fn audiences_of_verified(token: &str) -> Vec<String> {
    match unverified_payload(token).as_ref().and_then(|claims| claims.get("aud")) {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// The `jti` that a token states, verified or not, for hashed log fields.
pub fn identifier(token: &str) -> Option<String> {
    unverified_payload(token)?.get("jti")?.as_str().filter(|jti| !jti.is_empty()).map(str::to_owned)
}

fn unverified_payload(token: &str) -> Option<Value> {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice(&payload).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // S221
    #[test]
    fn audience_is_a_string_or_a_list() {
        for (claims, expected) in [
            (r#"{"aud":"a"}"#, vec!["a"]),
            (r#"{"aud":["a","b"]}"#, vec!["a", "b"]),
            (r#"{"aud":[]}"#, vec![]),
            (r#"{"aud":5}"#, vec![]),
            (r"{}", vec![]),
            ("[", vec![]),
        ] {
            let token = format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims));
            assert_eq!(audiences_of_verified(&token), expected, "{claims}");
        }
        assert!(audiences_of_verified("opaque").is_empty());
    }

    // S224
    #[test]
    fn identifier_is_a_non_empty_jti() {
        for (claims, expected) in [
            (r#"{"jti":"a\u0062"}"#, Some("ab")),
            (r#"{"jti":""}"#, None),
            (r#"{"jti":5}"#, None),
            ("[", None),
        ] {
            let token = format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims));
            assert_eq!(identifier(&token).as_deref(), expected, "{claims}");
        }
        assert_eq!(identifier("opaque"), None);
    }
}
