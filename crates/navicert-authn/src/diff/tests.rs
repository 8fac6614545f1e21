//! Planted changes are found with a correct example; equivalent files raise no alarm.

mod equivalent;
mod planted;

use serde_json::{Value, json};

use super::*;
use crate::batch;
use crate::profile::KubeVersion;
use crate::report::{ChangeKind, ExampleToken};

/// A configuration with every kind of rule.
fn config() -> Value {
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {
                "url": "https://login.example.com", "audiences": ["kubernetes", "cli"],
                "audienceMatchPolicy": "MatchAny",
            },
            "claimMappings": {
                "username": {"expression": "'oidc:' + claims.sub"},
                "groups": {
                    "expression": "has(claims.roles) ? dyn(claims.roles).map(r, 'team-' + r) : ['everyone']",
                },
                "uid": {"claim": "oid"},
                "extra": [{"key": "example.com/tenant", "valueExpression": "claims.tenant"}],
            },
            "claimValidationRules": [
                {"claim": "hd", "requiredValue": "example.com"},
                {"expression": "claims.level >= 3.0 && claims.tenant in ['one', 'two']", "message": "too low"},
            ],
            "userValidationRules": [
                {"expression": "!user.username.startsWith('oidc:root')", "message": "root may not log in"},
            ],
        }],
    })
}

/// The configuration with one part replaced.
fn changed(pointer: &str, value: Value) -> Value {
    let mut changed = config();
    *changed.pointer_mut(pointer).unwrap() = value;
    changed
}

fn compare(from: (&str, KubeVersion), to: (&str, KubeVersion)) -> DiffReport {
    let navicert_config = NavicertConfiguration::default();
    let file = if from.0 == to.0 { "old.yaml" } else { "new.yaml" };
    let [first, second] = [("old.yaml", from), (file, to)].map(|(file, (config, version))| DiffSide {
        file,
        config: config.as_bytes(),
        profile: AuthnProfile::kube(version),
        navicert_config: &navicert_config,
    });
    diff(&first, &second, Timestamp::from_second(DEFAULT_NOW).unwrap()).unwrap()
}

/// Two files under the newest stable version.
fn compare_files(from: &Value, to: &Value) -> DiffReport {
    let version = KubeVersion::default();
    compare((&from.to_string(), version), (&to.to_string(), version))
}

/// One file under two versions.
fn compare_versions(config: &str, from: KubeVersion, to: KubeVersion) -> DiffReport {
    compare((config, from), (config, to))
}

/// The outcomes of the example when each side decides on it anew, through the interface that the recorded decisions use.
fn decided(
    example: &ExampleToken,
    (from, to): (&str, &str),
    versions: (KubeVersion, KubeVersion),
) -> [Value; 2] {
    [(from, versions.0), (to, versions.1)].map(|(config, version)| {
        let line =
            json!({"config": config, "jwks": example.jwks, "token": example.token, "now": example.now});
        batch::eval(&line, &AuthnProfile::kube(version))
    })
}
