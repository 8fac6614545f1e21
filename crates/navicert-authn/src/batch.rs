//! One line of a batch and its result, both JSON. The same lines can be sent to kube-apiserver's own code.
// S288

use std::sync::Arc;

use navicert_types::Timestamp;
use serde_json::{Value, json};

use crate::authenticator::Authenticators;
use crate::config::{
    CompiledIssuer, ConfigError, LoadedConfig, NavicertConfiguration, load_excluding_issuers,
};
use crate::jwks::{KeySet, KeySource, KeysUnavailable, StaticKeys};
use crate::model::AuthnRequest;
use crate::model::outcome::AuthnOutcome;
use crate::profile::AuthnProfile;

/// The rules for every line of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchSettings<'s> {
    /// The profile.
    pub profile: &'s AuthnProfile,
    /// Disallowed issuers, and settings of issuers.
    pub navicert_config: Option<&'s NavicertConfiguration>,
}

impl<'s> From<&'s AuthnProfile> for BatchSettings<'s> {
    fn from(profile: &'s AuthnProfile) -> Self {
        BatchSettings { profile, navicert_config: None }
    }
}

impl BatchSettings<'_> {
    fn load(&self, config: &str) -> Result<LoadedConfig, ConfigError> {
        let disallowed = self.navicert_config.map(|config| config.disallowed_issuers.as_slice());
        load_excluding_issuers(config.as_bytes(), self.profile, disallowed.unwrap_or_default())
    }
}

/// `{"config"}` in, `{"valid", "stage", "errors": [{"type", "field", "detail"}], "messages"}` out.
pub fn check<'s>(line: &Value, settings: impl Into<BatchSettings<'s>>) -> Value {
    let settings = settings.into();
    let Some(text) = line.get("config").and_then(Value::as_str) else {
        return json!({"fault": "`config` is missing or not a string"});
    };
    match settings.load(text) {
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
pub fn eval<'s>(line: &Value, settings: impl Into<BatchSettings<'s>>) -> Value {
    let Some(token) = line.get("token").and_then(Value::as_str) else {
        return json!({"fault": "`token` is missing or not a string"});
    };
    let now = line.get("now").and_then(Value::as_i64).and_then(|now| Timestamp::from_second(now).ok());
    let Some(now) = now else { return json!({"fault": "`now` is missing or not a time in seconds"}) };
    match authenticators(line, settings) {
        Ok(authenticators) => outcome_json(&authenticators.authenticate(&AuthnRequest::new(token, now))),
        Err(fault) => json!({"fault": fault}),
    }
}

/// The authenticators of a line: its `config` with its `jwks`.
///
/// # Errors
/// One clause: the line has no configuration, or an invalid one.
pub fn authenticators<'s>(
    line: &Value,
    settings: impl Into<BatchSettings<'s>>,
) -> Result<Authenticators, String> {
    let settings = settings.into();
    let config = line.get("config").and_then(Value::as_str);
    let config = config.ok_or("`config` is missing or not a string")?;
    let loaded = settings.load(config).map_err(|error| format!("invalid configuration: {error}"))?;
    let mut compiled = loaded.compiled;
    if let Some(navicert_config) = settings.navicert_config {
        navicert_config.apply_known(&mut compiled);
    }
    let jwks = line.get("jwks").unwrap_or(&Value::Null);
    let keys = |issuer: &CompiledIssuer| -> Arc<dyn KeySource> {
        Arc::new(static_keys(jwks, &issuer.url, settings.profile))
    };
    Ok(Authenticators::new(compiled, keys))
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

#[cfg(test)]
mod tests {
    use navicert_testkit::pki::jws::{Algorithm, SigningKey};

    use super::*;

    fn batch<'s>(profile: &'s AuthnProfile, settings: &'s NavicertConfiguration) -> BatchSettings<'s> {
        BatchSettings { profile, navicert_config: Some(settings) }
    }

    // H25, S22
    #[test]
    fn batch_honours_disallowed_issuers_and_allowed_algorithms() {
        let settings = |text: &str| {
            let head = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\n";
            NavicertConfiguration::parse(format!("{head}{text}").as_bytes()).unwrap()
        };
        let key = SigningKey::generate(Algorithm::Es256, "k");
        let config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{
                "issuer": {"url": "https://i", "audiences": ["a"]},
                "claimMappings": {"username": {"claim": "sub", "prefix": "o:"}},
            }],
        });
        let claims = json!({"iss": "https://i", "aud": "a", "sub": "ann", "exp": 1_700_000_300});
        let line = json!({
            "config": config.to_string(), "jwks": {"keys": [key.jwk()]}, "token": key.token(&claims),
            "now": 1_700_000_000,
        });
        for (text, class, valid) in [
            ("issuers: [{url: 'https://other', allowedAlgorithms: [RS256]}]", "authenticated", true),
            ("issuers: [{url: 'https://i', allowedAlgorithms: [ES256]}]", "authenticated", true),
            ("issuers: [{url: 'https://i', allowedAlgorithms: [RS256]}]", "alg", true),
            ("disallowedIssuers: ['https://i']", "fault", false),
        ] {
            let settings = settings(text);
            let decided = eval(&line, batch(&AuthnProfile::HARDENED, &settings));
            let found = match (decided.get("class"), decided.get("fault")) {
                (Some(class), _) => class.as_str().unwrap(),
                (None, Some(_)) => "fault",
                (None, None) => decided["outcome"].as_str().unwrap(),
            };
            assert_eq!(found, class, "{text}: {decided}");
            assert_eq!(check(&line, batch(&AuthnProfile::HARDENED, &settings))["valid"], valid, "{text}");
        }
        let settings = settings("issuers: [{url: 'https://i', allowedAlgorithms: [RS256]}]");
        assert_eq!(eval(&line, batch(&AuthnProfile::KUBE, &settings))["outcome"], "authenticated");
        assert_eq!(settings.ignored_settings(&AuthnProfile::KUBE).len(), 1);
        assert_eq!(settings.ignored_settings(&AuthnProfile::HARDENED), [""; 0]);
    }
}
