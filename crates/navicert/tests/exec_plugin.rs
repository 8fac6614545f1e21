//! `navicert exec-plugin`: recorded decisions of client-go through the command, and broken plugins named by their rule.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use navicert_testkit::Program;
use navicert_testkit::cli::output_schema;
use navicert_testkit::cli::program::Outcome;
use navicert_testkit::k8s::vectors::{self, Vector};
use serde_json::Value;

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");

fn responses(verb: &str, vectors: &[Vector]) -> HashMap<String, Value> {
    let command = Program::new(NAVICERT).arguments(["exec-plugin", verb, "--jsonl"]);
    let responses = vectors::responses(command, vectors.iter().map(Vector::request));
    output_schema::check_all(&format!("exec-plugin-{verb}-jsonl"), responses.values());
    responses
}

/// Lines on which navicert is stricter on purpose: they have to be refused, and are counted apart.
const STRICTER: [&str; 3] = ["token: ", "duplicate status key", "(throw-away test key)"];

// §3.4, C240–C244, C330–C336, T01
#[test]
fn decodes_plugin_output_as_recorded() {
    let recorded = vectors::vectors("exec-output.jsonl");
    let responses = responses("decode", &recorded);
    let stricter: Vec<String> = vectors::text("exec-output.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["stricter"] == true)
        .map(|line| line["id"].as_str().unwrap().to_owned())
        .collect();
    let (strict, usual): (Vec<Vector>, Vec<Vector>) =
        recorded.into_iter().partition(|vector| stricter.contains(&vector.id));
    vectors::check("exec-output", &usual, |vector| {
        let response = &responses[&vector.id];
        for member in ["ok", "token", "hasCert", "expires"] {
            if vector.expect.get(member) != response.get(member) {
                return Err(format!("{member}: {response} instead of {}", vector.expect));
            }
        }
        let error = response.get("error").and_then(Value::as_str).unwrap_or_default();
        let token = vector.expect["token"].as_str().unwrap_or("tok-alpha");
        if error.contains(token) { Err(format!("the token is in the error: {error}")) } else { Ok(()) }
    });
    vectors::check("exec-output-stricter", &strict, |vector| {
        assert!(STRICTER.iter().any(|note| vector.note.contains(note)), "{}", vector.note);
        let refused = responses[&vector.id]["ok"] == false;
        if refused { Ok(()) } else { Err("accepted".to_owned()) }
    });
}

// C210–C213, C220–C225, C230
#[test]
fn exec_info_equals_every_recorded_request_byte_for_byte() {
    let recorded = vectors::vectors("exec-info.jsonl");
    let responses = responses("info", &recorded);
    vectors::check("exec-info", &recorded, |vector| {
        let response = &responses[&vector.id];
        if vector.expect["info"] != response["info"] {
            return Err(format!("{response} instead of {}", vector.expect));
        }
        let (expected, found) = (vector.expect.get("error"), response.get("error"));
        if expected.is_some() == found.is_some() {
            Ok(())
        } else {
            Err(format!("error: {found:?} instead of {expected:?}"))
        }
    });
}

#[test]
fn invalid_lines_yield_a_fault_and_processing_continues() {
    let outcome = Program::new(NAVICERT)
        .arguments(["exec-plugin", "decode", "--jsonl"])
        .stdin("c4nary\n{\"id\":\"a\"}\n\n{\"id\":\"b\",\"apiVersion\":\"v9\",\"stdout\":\"\",\"exit\":0}\n")
        .run()
        .unwrap();
    let lines = String::from_utf8(outcome.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0]["fault"].is_string() && lines[0]["id"].is_null());
    assert_eq!(
        (&lines[1]["id"], &lines[1]["fault"]),
        (&Value::from("a"), &Value::from("`apiVersion` must be a string"))
    );
    assert_eq!(lines[2]["ok"], false);
}

fn check(script: &str, extra: &[&str]) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let plugin = dir.path().join("plugin");
    fs::write(&plugin, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).unwrap();
    // Long enough for a busy machine, except for the one that never ends.
    let limit = if script.contains("sleep") { "1" } else { "60" };
    let mut arguments = vec!["-o", "json", "exec-plugin", "check", "--limit", limit];
    arguments.extend(extra);
    let outcome = Program::new(NAVICERT).arguments(arguments).arguments([plugin.as_os_str()]).run().unwrap();
    output_schema::check_all("exec-plugin-check", [&serde_json::from_slice(&outcome.stdout).unwrap()]);
    outcome
}

/// Answers in the version it is asked in.
const GOOD: &str = r#"
version=$(echo "$KUBERNETES_EXEC_INFO" | sed 's/.*"apiVersion":"\([^"]*\)".*/\1/')
answer() { printf '{"kind":"ExecCredential","apiVersion":"%s","status":{%s}}\n' "$version" "$1"; }
"#;

// C607
#[test]
fn accepts_a_conforming_plugin_in_every_case() {
    let outcome = check(&format!("{GOOD}\nanswer '\"token\":\"t\"'"), &[]);
    let report: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    assert_eq!((outcome.code(), &report["conforms"]), (Some(0), &Value::Bool(true)), "{report}");
    let cases = report["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 8);
    assert!(cases.iter().all(|case| case["findings"] == Value::Array(Vec::new())), "{report}");
}

// C607: twelve and more broken plugins, each named by its rule.
#[test]
fn names_the_rule_that_each_broken_plugin_violates() {
    let rows = [
        ("exit 3", "exits-zero"),
        ("kill -9 $$", "exits-zero"),
        ("echo logging in; answer '\"token\":\"t\"'", "one-document"),
        ("answer '\"token\":\"t\"'; answer '\"token\":\"t\"'", "one-document"),
        ("true", "has-version"),
        ("version=client.authentication.k8s.io/v9; answer '\"token\":\"t\"'", "known-version"),
        ("version=client.authentication.k8s.io/v1beta1; answer '\"token\":\"t\"'", "asked-version"),
        ("answer '\"token\":5'", "field-types"),
        ("answer '\"token\":\"t\",\"expirationTimestamp\":\"soon\"'", "field-types"),
        ("printf '{\"apiVersion\":\"%s\"}' $version", "has-status"),
        ("answer ''", "has-credential"),
        ("answer '\"clientKeyData\":\"k\"'", "whole-pair"),
        ("answer '\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"'", "pair-matches"),
        ("answer '\"token\":\"t\\n\"'", "token-fits-header"),
        ("head -c 2000000 /dev/zero", "fits-the-limit"),
        ("exec sleep 60", "ends-in-time"),
    ];
    for (script, rule) in rows {
        let outcome = check(&format!("{GOOD}\n{script}"), &["--api-version", "v1"]);
        let report: Value = serde_json::from_slice(&outcome.stdout).unwrap();
        assert_eq!(
            (outcome.code(), &report["broken"]),
            (Some(1), &Value::from(vec![rule])),
            "{script}: {report}"
        );
    }
    let missing = Program::new(NAVICERT)
        .arguments(["-o", "json", "exec-plugin", "check", "/no/such/plugin"])
        .run()
        .unwrap();
    let report: Value = serde_json::from_slice(&missing.stdout).unwrap();
    assert_eq!((missing.code(), &report["broken"]), (Some(1), &Value::from(vec!["starts"])));
}

// C607, C222
#[test]
fn plugin_that_needs_a_terminal_fails_only_without_one() {
    let outcome =
        check(&format!("{GOOD}\ntest -t 0 || exit 7; answer '\"token\":\"t\"'"), &["--api-version", "v1"]);
    let report: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    for case in report["cases"].as_array().unwrap() {
        let is_good = case["findings"] == Value::Array(Vec::new());
        assert_eq!(case["terminal"] == true, is_good, "{case}");
    }
    assert_eq!(report["broken"], Value::from(vec!["exits-zero"]));
}

#[test]
fn exec_info_preserves_every_character_of_the_cluster_config() {
    let request = "{\"id\":1,\"apiVersion\":\"client.authentication.k8s.io/v1\",\"server\":\"https://h\",\
        \"interactiveMode\":\"Never\",\"provideClusterInfo\":true,\"clusterConfig\":\"a\\u007fb\\u0080c\\ufeffd\\u001be\"}\n";
    let outcome =
        Program::new(NAVICERT).arguments(["exec-plugin", "info", "--jsonl"]).stdin(request).run().unwrap();
    let response: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    let info: Value = serde_json::from_str(response["info"].as_str().unwrap()).unwrap();
    assert_eq!(info["spec"]["cluster"]["config"], "a\u{7f}b\u{80}c\u{feff}d\u{1b}e");
}
