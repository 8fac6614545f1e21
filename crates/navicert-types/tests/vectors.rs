//! Checks parsing and decoding against recorded decisions of Kubernetes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers; a broken vector should stop the test")]

use navicert_types::kubeconfig::{self, Kubeconfig};
use navicert_types::tree::{Node, Syntax, Value as TreeValue, parse};
use serde_json::Value;

/// The lines of one file in `conformance/vectors`. The test kit has the same helper but depends on this crate.
fn vectors(file: &str) -> Vec<Value> {
    let path = format!("{}/../../conformance/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("failed to read recorded decisions {path}: {error}"));
    let vectors: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!vectors.is_empty(), "{path} is empty");
    vectors
}

fn text<'a>(vector: &'a Value, pointer: &str) -> &'a str {
    vector.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{pointer} in {vector}"))
}

/// Removes null members and empty lists, which are equal to missing ones.
fn normal(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), normal(value)))
            .filter(|(_, value)| !value.is_null() && *value != Value::Array(Vec::new()))
            .collect(),
        other => other.clone(),
    }
}

fn json(tree: &Node) -> Value {
    normal(&serde_json::from_str(&tree.to_json()).unwrap())
}

#[test]
fn kubeconfig_decodes_exactly_when_kubernetes_loads_it() {
    let mut tried = 0;
    for vector in vectors("kubeconfig.jsonl") {
        let files = vector.pointer("/input/files").and_then(Value::as_object).unwrap();
        let listed = vector.pointer("/input/kubeconfig").and_then(Value::as_array).unwrap();
        let existing: Vec<&str> = listed
            .iter()
            .filter_map(|name| files.get(name.as_str().unwrap()))
            .map(|text| text.as_str().unwrap())
            .collect();
        if text(&vector, "/note") == "directory in place of a file" {
            continue;
        }
        let decoded: Vec<_> = existing.iter().map(|text| kubeconfig::decode(text.as_bytes())).collect();
        let loads = vector.pointer("/expect/loads").and_then(Value::as_bool).unwrap();
        assert_eq!(decoded.iter().all(Result::is_ok), loads, "{} {decoded:?}", text(&vector, "/note"));
        tried += 1;
        if let ([Ok(config)], true) = (decoded.as_slice(), loads) {
            compare_views(&vector, config);
        }
    }
    assert!(tried > 270, "{tried} lines");
}

fn compare_views(vector: &Value, config: &Kubeconfig) {
    let merged = normal(vector.pointer("/expect/merged").unwrap());
    assert_eq!(json(&config.expose_tree()), merged, "{}", text(vector, "/note"));
    if let Some(redacted) = vector.pointer("/expect/redacted") {
        let mut ours = json(&config.redacted_tree());
        hide_less(&mut ours, &normal(redacted));
        assert_eq!(ours, normal(redacted), "{}", text(vector, "/note"));
    }
}

/// Reverts masks that kubectl's view does not have: exec arguments and environment, auth-provider settings, user
/// information in a proxy URL. All other differences stay.
fn hide_less(ours: &mut Value, kubectl: &Value) {
    let masked = |ours: &Value, kubectl: &Value| {
        ours.as_str().is_some_and(|text| text.contains("REDACTED")) && kubectl.as_str() != Some("REDACTED")
    };
    match (ours, kubectl) {
        (Value::Object(ours), Value::Object(kubectl)) => {
            for (name, ours) in ours {
                if let Some(kubectl) = kubectl.get(name) {
                    let may_hide = matches!(
                        name.as_str(),
                        "proxy-url" | "value" | "client-secret" | "id-token" | "refresh-token"
                    );
                    if may_hide && masked(ours, kubectl) {
                        *ours = kubectl.clone();
                    } else {
                        hide_less(ours, kubectl);
                    }
                }
            }
        }
        (Value::Array(ours), Value::Array(kubectl)) => {
            for (ours, kubectl) in ours.iter_mut().zip(kubectl) {
                if masked(ours, kubectl) { *ours = kubectl.clone() } else { hide_less(ours, kubectl) }
            }
        }
        _ => {}
    }
}

/// Every kubeconfig that loads decodes to the same value after encoding.
#[test]
fn every_kubeconfig_round_trips() {
    for vector in vectors("kubeconfig.jsonl") {
        for file in vector.pointer("/input/files").and_then(Value::as_object).unwrap().values() {
            let Ok(config) = kubeconfig::decode(file.as_str().unwrap().as_bytes()) else { continue };
            let written = config.expose_tree_with_unknown_fields();
            for text in [written.to_yaml(), written.to_json_pretty()] {
                let back =
                    kubeconfig::decode(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
                assert_eq!(back.expose_tree_with_unknown_fields(), written, "{text}");
            }
        }
    }
}

fn has_repeated_keys(node: &Node) -> bool {
    match &node.value {
        TreeValue::Sequence(items) => items.iter().any(has_repeated_keys),
        TreeValue::Mapping(mapping) => {
            mapping.entries().iter().any(|entry| entry.repeated || has_repeated_keys(&entry.value))
        }
        _ => false,
    }
}

/// Texts that pass a strict decoder of Kubernetes parse here and have no repeated keys.
#[test]
fn texts_kubernetes_decodes_strictly_parse_without_repeated_keys() {
    for (file, member, syntax) in [
        ("authn-config.jsonl", "config", Syntax::JsonOrYaml),
        ("image-config.jsonl", "config", Syntax::JsonOrYaml),
        ("image-response.jsonl", "response", Syntax::Json),
    ] {
        for vector in vectors(file) {
            let stage = vector.pointer("/expect/stage").and_then(Value::as_str);
            if stage != Some("decode") {
                let input = text(&vector, &format!("/input/{member}"));
                let node = parse(input.as_bytes(), syntax).unwrap_or_else(|error| panic!("{error}: {input}"));
                assert!(!has_repeated_keys(&node), "{input}");
            }
        }
    }
}

#[test]
fn accepted_exec_plugin_output_parses() {
    // C241, C242
    for vector in vectors("exec-output.jsonl") {
        if vector.pointer("/expect/ok") == Some(&Value::Bool(true)) {
            let stdout = text(&vector, "/input/stdout");
            parse(stdout.as_bytes(), Syntax::JsonOrYaml).unwrap_or_else(|error| panic!("{error}: {stdout}"));
        }
    }
}
