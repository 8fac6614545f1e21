//! Decisions recorded from the kubelet, through the same commands a user would run.

#![expect(clippy::indexing_slicing, reason = "a test's helpers fail by panicking")]

use std::collections::BTreeSet;

use navicert_testkit::Program;
use navicert_testkit::cli::output_schema;
use navicert_testkit::k8s::vectors;
use serde_json::Value;

/// Puts every vector of a file to a command and compares the answers.
fn suite(file: &str, verb: &str, compare: fn(&Value, &Value) -> bool) {
    let recorded = vectors::vectors(file);
    let command = Program::new(env!("CARGO_BIN_EXE_navicert")).arguments(["image", verb, "--jsonl"]);
    let responses = vectors::responses(command, recorded.iter().map(vectors::Vector::request));
    output_schema::check_all(&format!("image-{verb}-jsonl"), responses.values());
    vectors::check(file.trim_end_matches(".jsonl"), &recorded, |vector| {
        let response = &responses[&vector.id];
        if compare(&vector.expect, response) {
            Ok(())
        } else {
            Err(format!("{response} instead of {}", vector.expect))
        }
    });
}

#[test]
fn image_match_agrees() {
    suite("image-match.jsonl", "match", |expected, response| expected["match"] == response["match"]);
}

#[test]
fn image_keyring_agrees() {
    suite("image-keyring.jsonl", "keyring", |expected, response| {
        expected["credentials"] == response["credentials"]
            && expected["error"].is_null() == response["error"].is_null()
    });
}

#[test]
fn image_response_agrees() {
    suite("image-response.jsonl", "response", |expected, response| {
        let members = ["ok", "cacheKeyType", "cacheDuration", "auth"];
        members.iter().all(|member| expected[member] == response[member])
    });
}

#[test]
fn image_check_agrees() {
    suite("image-config.jsonl", "check", |expected, response| {
        let errors = |value: &Value| -> BTreeSet<String> {
            let list = value["errors"].as_array().cloned().unwrap_or_default();
            list.iter().map(|error| format!("{} {}", error["type"], error["field"])).collect()
        };
        let validated = expected["stage"] == "validate";
        expected["valid"] == response["valid"] && (!validated || errors(expected) == errors(response))
    });
}

#[test]
fn invalid_lines_yield_a_fault_and_processing_continues() {
    let outcome = Program::new(env!("CARGO_BIN_EXE_navicert"))
        .arguments(["image", "match", "--jsonl"])
        .stdin(
            "{\"id\":1,\"pattern\":\"a.io\"}\ncanary\n{\"id\":3,\"pattern\":\"a.io\",\"image\":\"a.io/x\"}\n",
        )
        .run()
        .unwrap();
    let lines: Vec<Value> = String::from_utf8(outcome.stdout.clone())
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(outcome.code(), Some(0));
    assert_eq!(lines[0]["fault"], "`image` must be a string");
    assert!(lines[1]["fault"].as_str().unwrap().starts_with("invalid JSON") && lines[1]["id"].is_null());
    assert_eq!((&lines[2]["id"], &lines[2]["match"]), (&Value::from(3), &Value::from(true)));
}
