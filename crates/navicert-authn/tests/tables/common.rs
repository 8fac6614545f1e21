//! Shared by the tables: a minimal authenticator, its errors, and tokens.

use std::sync::OnceLock;

use navicert_authn::{AuthnProfile, batch};
use navicert_testkit::pki::jws::{Algorithm, SigningKey};
use serde_json::{Value, json};

pub(crate) const NOW: i64 = 1_800_000_000;

pub(crate) const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";

pub(crate) const PROFILES: [(&str, AuthnProfile); 2] =
    [("kube", AuthnProfile::KUBE), ("hardened", AuthnProfile::HARDENED)];

pub(crate) fn check(config: &str, profile: &AuthnProfile) -> Value {
    batch::check(&json!({"config": config}), profile)
}

/// The errors of a configuration as `field type`, in order.
pub(crate) fn errors(jwt: &Value, profile: &AuthnProfile) -> Vec<String> {
    errors_of(&json!({"jwt": jwt}), profile)
}

pub(crate) fn errors_of(fields: &Value, profile: &AuthnProfile) -> Vec<String> {
    let mut config =
        json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"});
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let answer = check(&config.to_string(), profile);
    assert_ne!(answer["stage"], "decode", "{answer}");
    let errors = answer["errors"].as_array().unwrap().iter().map(|error| {
        let kind = error["type"].as_str().unwrap().trim_start_matches("FieldValue").to_owned();
        format!("{} {kind}", error["field"].as_str().unwrap().trim_start_matches("jwt[0]."))
    });
    errors.collect()
}

/// A minimal authenticator with a change.
pub(crate) fn authenticator(change: impl Fn(&mut Value)) -> Value {
    let mut value = json!({
        "issuer": {"url": "https://i", "audiences": ["a"]},
        "claimMappings": {"username": {"claim": "c", "prefix": ""}},
    });
    change(&mut value);
    value
}

/// Checks the errors in both profiles; `None`: the same in both.
pub(crate) fn refuses(id: &str, change: impl Fn(&mut Value), kube: &[&str], hardened: Option<&[&str]>) {
    let jwt = json!([authenticator(change)]);
    assert_eq!(errors(&jwt, &AuthnProfile::KUBE), kube, "{id} in kube");
    assert_eq!(errors(&jwt, &AuthnProfile::HARDENED), hardened.unwrap_or(kube), "{id} in hardened");
}

pub(crate) fn key() -> &'static SigningKey {
    static KEY: OnceLock<SigningKey> = OnceLock::new();
    KEY.get_or_init(|| SigningKey::generate(Algorithm::Es256, "k1"))
}

/// The outcome of a token with these payload members, under an authenticator.
pub(crate) fn judged(jwt: &Value, members: &str, profile: &AuthnProfile) -> Value {
    let config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [jwt]});
    let payload = format!(r#"{{"iss":"https://i","aud":"a","exp":{}{members}}}"#, NOW + 300);
    let token = key().token_of_bytes(key().header().to_string().as_bytes(), payload.as_bytes());
    let request =
        json!({"config": config.to_string(), "jwks": {"keys": [key().jwk()]}, "token": token, "now": NOW});
    let answer = batch::eval(&request, profile);
    assert!(answer.get("fault").is_none(), "{answer} {config}");
    answer
}
