//! Decisions recorded from kube-apiserver's own code, compared as the vectors' README specifies.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::collections::BTreeSet;

use navicert_authn::{AuthnProfile, KubeVersion, batch};
use navicert_testkit::k8s::vectors;
use serde_json::Value;

#[test]
fn every_recorded_configuration_decision_agrees() {
    for version in KubeVersion::ALL {
        check_configurations(version);
    }
}

fn check_configurations(version: KubeVersion) {
    let recorded = vectors::vectors_of(version.name(), "authn-config");
    vectors::check(&format!("authn-config ({version}, library)"), &recorded, |vector| {
        let answer = batch::check(&vector.input, &AuthnProfile::kube(version));
        let stage = |value: &Value| value.get("stage").cloned();
        if answer["valid"] != vector.expect["valid"] || stage(&answer) != stage(&vector.expect) {
            return Err(format!("{answer}"));
        }
        let (ours, theirs) = (errors(&answer), errors(&vector.expect));
        if ours == theirs { Ok(()) } else { Err(format!("{ours:?} instead of {theirs:?}")) }
    });
}

/// The set of (type, field).
fn errors(answer: &Value) -> BTreeSet<(String, String)> {
    let errors = answer["errors"].as_array().into_iter().flatten();
    errors.map(|error| (error["type"].to_string(), error["field"].to_string())).collect()
}

// S288
#[test]
fn every_recorded_token_decision_agrees() {
    for version in KubeVersion::ALL {
        check_tokens(version);
    }
}

fn check_tokens(version: KubeVersion) {
    let (configs, key_sets) = (vectors::json("authn-configs.json"), vectors::json("authn-jwks.json"));
    let recorded = vectors::vectors_of(version.name(), "authn-token");
    vectors::check(&format!("authn-token ({version}, library)"), &recorded, |vector| {
        let request = request(&vector.input, &configs, &key_sets);
        let answer = batch::eval(&request, &AuthnProfile::kube(version));
        let agrees = answer["outcome"] == vector.expect["outcome"]
            && (answer["outcome"] != "authenticated" || answer["user"] == vector.expect["user"]);
        if agrees { Ok(()) } else { Err(format!("{answer} instead of {}", vector.expect)) }
    });
}

fn request(input: &Value, configs: &Value, key_sets: &Value) -> Value {
    let named = |table: &Value, name: &str| table[input[name].as_str().unwrap()].clone();
    let mut request = input.clone();
    request["config"] = named(configs, "config_ref");
    request["jwks"] = named(key_sets, "jwks_ref");
    request
}
