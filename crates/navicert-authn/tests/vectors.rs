//! Decisions recorded from kube-apiserver's own code, compared as the vectors' README says.

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
