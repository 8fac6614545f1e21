//! Decisions recorded from client-go and kubectl, through the same command a user would run.

#![expect(clippy::indexing_slicing, reason = "a test's helpers fail by panicking")]

use std::collections::BTreeSet;

use navicert_authn::KubeVersion;
use navicert_testkit::Program;
use navicert_testkit::cli::output_schema;
use navicert_testkit::k8s::vectors;
use serde_json::{Map, Value};

#[test]
fn every_recorded_kubeconfig_decision_agrees() {
    through("kubeconfig", &["kubeconfig", "view", "--jsonl"], compare_kubeconfig);
}

#[test]
fn every_recorded_expression_agrees() {
    for version in KubeVersion::ALL {
        through(("cel", version), &["cel", "eval", "--jsonl"], compare_expression);
    }
}

#[test]
fn every_recorded_authentication_configuration_agrees() {
    let compare = |expected: &Value, response: &Value| {
        let errors = |value: &Value| -> BTreeSet<String> {
            let list = value["errors"].as_array().unwrap().iter();
            list.map(|error| format!("{} {}", error["type"], error["field"])).collect()
        };
        let agrees = expected["valid"] == response["valid"] && errors(expected) == errors(response);
        if agrees { Ok(()) } else { Err(response.to_string()) }
    };
    for version in KubeVersion::ALL {
        through(("authn-config", version), &["authn", "check", "--jsonl", "--profile", "kube"], compare);
    }
}

#[test]
fn every_recorded_token_agrees() {
    let compare = |expected: &Value, response: &Value| {
        let agrees =
            expected["outcome"] == response["outcome"] && expected.get("user") == response.get("user");
        if agrees { Ok(()) } else { Err(response.to_string()) }
    };
    for version in KubeVersion::ALL {
        through(("authn-token", version), &["authn", "eval", "--jsonl", "--profile", "kube"], compare);
    }
}

// C185 to C188
#[test]
fn every_recorded_server_certificate_agrees() {
    let stricter: Vec<Value> = vectors::lines("tls-verify.jsonl")
        .into_iter()
        .filter(|line| line["stricter"] == true)
        .map(|line| line["id"].clone())
        .collect();
    through("tls-verify", &["tls-verify", "--jsonl"], |expected, response| {
        let accepts = expected["ok"] == true && !stricter.contains(&response["id"]);
        if response["ok"] == accepts { Ok(()) } else { Err(response.to_string()) }
    });
}

#[test]
fn every_recorded_request_agrees() {
    through("request-info", &["request-info", "--jsonl"], |expected, response| {
        let is_same = |name: &String| name == "error" || expected[name] == response[name];
        let agrees = match expected["ok"] == true {
            true => expected.as_object().is_some_and(|members| members.keys().all(is_same)),
            false => response["ok"] == false,
        };
        if agrees { Ok(()) } else { Err(response.to_string()) }
    });
}

/// Recorded decisions: those of the base, or of a Kubernetes version.
struct Recorded {
    suite: String,
    recorded: Vec<vectors::Vector>,
    version: Option<KubeVersion>,
}

impl From<&str> for Recorded {
    fn from(kind: &str) -> Self {
        let recorded = vectors::vectors(&format!("{kind}.jsonl"));
        Recorded { suite: kind.to_owned(), recorded, version: None }
    }
}

impl From<(&str, KubeVersion)> for Recorded {
    fn from((kind, version): (&str, KubeVersion)) -> Self {
        let recorded = vectors::vectors_of(version.name(), kind);
        Recorded { suite: format!("{kind} ({version})"), recorded, version: Some(version) }
    }
}

/// Asks every question of a file through one run of the command and compares the answers.
fn through(
    suite: impl Into<Recorded>,
    arguments: &[&str],
    compare: impl Fn(&Value, &Value) -> Result<(), String>,
) {
    let Recorded { suite, recorded, version } = suite.into();
    let versioned = version.map(|version| ["--kube-version", version.name()]);
    let arguments: Vec<&str> = arguments.iter().copied().chain(versioned.into_iter().flatten()).collect();
    let tables = [
        ("config", "config_ref", vectors::json("authn-configs.json")),
        ("jwks", "jwks_ref", vectors::json("authn-jwks.json")),
    ];
    let command = Program::new(env!("CARGO_BIN_EXE_navicert")).arguments(&arguments);
    let responses = vectors::responses(command, recorded.iter().map(|vector| request(vector, &tables)));
    let verb: Vec<&str> = arguments.iter().copied().take_while(|word| !word.starts_with('-')).collect();
    output_schema::check_all(&format!("{}-jsonl", verb.join("-")), responses.values());
    vectors::check(&suite, &recorded, |vector| compare(&vector.expect, &responses[&vector.id]));
}

fn request(vector: &vectors::Vector, tables: &[(&str, &str, Value)]) -> Value {
    let mut request = vector.request();
    // Configurations and key sets are named, and lie in tables of their own.
    for (member, reference, table) in tables {
        if let Some(name) = vector.input.get(reference).and_then(Value::as_str) {
            request[member] = table[name].clone();
        }
    }
    request
}

/// By the rules of the vectors' README: texts are never compared, absent, null and empty are the same.
fn compare_kubeconfig(expected: &Value, response: &Value) -> Result<(), String> {
    if let Some(fault) = response.get("fault") {
        return Err(format!("fault: {fault}"));
    }
    for member in ["loads", "valid"] {
        if expected[member] != response[member] {
            return Err(format!("{member}: {} instead of {}", response[member], expected[member]));
        }
    }
    for member in ["merged", "resolved", "redacted"] {
        let (expected, response) = (expected.get(member), response.get(member));
        let unexpected = member == "resolved" && expected.is_none() && response.is_some();
        if unexpected || expected.is_some_and(|expected| Some(normal(expected)) != response.map(normal)) {
            return Err(format!("{member}: {response:?} instead of {expected:?}"));
        }
    }
    let count = |value: &Value| value["errors"].as_array().map_or(0, Vec::len);
    if expected["loads"] == true && count(expected) != count(response) {
        return Err(format!("errors: {} instead of {}", response["errors"], expected["errors"]));
    }
    // A key pair that does not match is found by the TLS library, when the client is built.
    let expected_obstacle = expected.pointer("/client/build_error").and_then(Value::as_str);
    let pair = expected_obstacle.is_some_and(|text| text.starts_with("tls: private key"));
    let obstacle = response.pointer("/client/build_error");
    if !pair && expected_obstacle.is_some() != obstacle.is_some() {
        return Err(format!("build_error: {obstacle:?} instead of {expected_obstacle:?}"));
    }
    Ok(())
}

/// Inside lists and maps numbers compare by value; the members named here are all that is compared.
fn compare_expression(expected: &Value, response: &Value) -> Result<(), String> {
    for member in ["compiled", "ok", "type", "value"] {
        let (expected, response) = (expected.get(member), response.get(member));
        if expected.is_some_and(|expected| response.is_none_or(|response| !same(expected, response))) {
            return Err(format!("{member}: {response:?} instead of {expected:?}"));
        }
    }
    Ok(())
}

fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| right.get(key).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

fn normal(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, value)| {
                !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
            });
            Value::Object(kept.map(|(key, value)| (key.clone(), normal(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(normal).collect()),
        other => other.clone(),
    }
}
