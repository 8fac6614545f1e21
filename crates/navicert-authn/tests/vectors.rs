//! Decisions recorded from kube-apiserver's own code, compared as the vectors' README says.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::collections::BTreeSet;

use navicert_authn::{Profile, batch};
use navicert_testkit::shared;
use serde_json::Value;

#[test]
fn every_recorded_configuration_verdict_agrees() {
    shared::run_suite("authn-config.jsonl", |vector| {
        let answer = batch::check(&vector.input, &Profile::KUBE);
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

#[test]
fn every_recorded_token_decision_agrees() {
    let Some((configs, key_sets)) = references() else { return };
    shared::run_suite("authn-token.jsonl", |vector| {
        let question = question(&vector.input, &configs, &key_sets);
        let answer = batch::eval(&question, &Profile::KUBE);
        let agrees = answer["outcome"] == vector.expect["outcome"]
            && (answer["outcome"] != "authenticated" || answer["user"] == vector.expect["user"]);
        if agrees { Ok(()) } else { Err(format!("{answer} instead of {}", vector.expect)) }
    });
}

/// The configurations and key sets that tokens name.
fn references() -> Option<(Value, Value)> {
    let read = |file: &str| {
        let path = shared::root()?.join("vectors").join(file);
        Some(serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
    };
    Some((read("authn-configs.json")?, read("authn-jwks.json")?))
}

fn question(input: &Value, configs: &Value, key_sets: &Value) -> Value {
    let named = |table: &Value, name: &str| table[input[name].as_str().unwrap()].clone();
    let mut question = input.clone();
    question["config"] = named(configs, "config_ref");
    question["jwks"] = named(key_sets, "jwks_ref");
    question
}
