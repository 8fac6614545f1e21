//! One line of a batch and its result, both JSON. The same lines can be sent to kube-apiserver's own code.
// S288

use std::sync::Arc;

use navicert_types::Timestamp;
use navicert_types::report::BatchResult;
use serde::Serialize;
use serde_json::Value;

use crate::authenticator::Authenticators;
use crate::config::{
    CompiledIssuer, ConfigError, LoadedConfig, NavicertConfiguration, load_excluding_issuers,
};
pub use crate::given_keys::{key_set, static_keys};
use crate::jwks::KeySource;
use crate::model::AuthnRequest;
use crate::profile::AuthnProfile;
use crate::report::{ConfigCheckResult, OutcomeReport};

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

/// The result of a line `{"config"}`.
///
/// # Errors
/// The line has no configuration.
pub fn check_line<'s>(
    line: &Value,
    settings: impl Into<BatchSettings<'s>>,
) -> Result<ConfigCheckResult, String> {
    let config = line.get("config").and_then(Value::as_str);
    let config = config.ok_or("`config` is missing or not a string")?;
    Ok(settings.into().load(config).map(drop).into())
}

/// The result of a line `{"config", "jwks", "token", "now"}`. `jwks` is one key set for every issuer, one key set per issuer
/// URL, or the raw response body of a key endpoint; `now` is in seconds since 1970.
///
/// # Errors
/// A member is missing, or the configuration is invalid.
pub fn eval_line<'s>(line: &Value, settings: impl Into<BatchSettings<'s>>) -> Result<OutcomeReport, String> {
    let token = line.get("token").and_then(Value::as_str);
    let token = token.ok_or("`token` is missing or not a string")?;
    let now = line.get("now").and_then(Value::as_i64).and_then(|now| Timestamp::from_second(now).ok());
    let now = now.ok_or("`now` is missing or not a time in seconds")?;
    let authenticators = authenticators(line, settings)?;
    Ok(OutcomeReport::from(&authenticators.authenticate(&AuthnRequest::new(token, now))))
}

/// [`check_line`] as JSON: `{"valid", "stage", "errors": [{"type", "field", "detail"}], "messages"}` or `{"fault"}`.
pub fn check<'s>(line: &Value, settings: impl Into<BatchSettings<'s>>) -> Value {
    to_json(check_line(line, settings))
}

/// [`eval_line`] as JSON: `{"outcome", "user", "error", "class"}` or `{"fault"}`.
pub fn eval<'s>(line: &Value, settings: impl Into<BatchSettings<'s>>) -> Value {
    to_json(eval_line(line, settings))
}

fn to_json<T: Serialize>(result: Result<T, String>) -> Value {
    serde_json::to_value(BatchResult::from(result)).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use navicert_testkit::pki::jws::{Algorithm, SigningKey};
    use serde_json::json;

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
