//! Debian's kubectl 1.20 beside us on the same files: the merge and the redaction it shows have to be ours.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers fail by panicking")]

use std::path::{Path, PathBuf};

use navicert_testkit::Program;
use navicert_testkit::cli::tools;
use serde_json::Value;

const FIRST: &str = "
apiVersion: v1
kind: Config
clusters:
- name: shared
  cluster: {server: 'https://first:6443', certificate-authority: ca.crt}
- name: only-first
  cluster: {server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}
users:
- name: ann
  user: {token: canary-token}
- name: bob
  user: {username: bob, password: canary-password}
contexts:
- name: dev
  context: {cluster: shared, user: ann, namespace: team}
";

const SECOND: &str = "
apiVersion: v1
kind: Config
clusters:
- name: shared
  cluster: {server: 'https://second:6443', tls-server-name: ignored}
- name: only-second
  cluster:
    server: https://second:6443
    certificate-authority-data: Y2FuYXJ5
    proxy-url: http://127.0.0.1:3128
    extensions:
    - name: client.authentication.k8s.io/exec
      extension: {audience: dev}
users:
- name: ann
  user: {client-certificate-data: Y2FuYXJ5, client-key-data: Y2FuYXJ5}
- name: plug
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      command: plugin
      args: [get-token]
      env: [{name: REGION, value: north}]
- name: cert
  user: {client-certificate-data: Y2FuYXJ5, client-key-data: Y2FuYXJ5, tokenFile: t}
contexts:
- name: prod
  context: {cluster: only-second, user: plug}
- name: dev
  context: {cluster: only-second, user: cert}
current-context: prod
";

fn kubectl() -> PathBuf {
    tools::kubectl().unwrap()
}

fn view(program: &Path, dir: &Path, arguments: &[&str]) -> Value {
    let outcome = Program::new(program)
        .arguments(arguments)
        .own_environment()
        .variable("HOME", dir)
        .variable("KUBECONFIG", "first.yaml:absent.yaml:second.yaml")
        .directory(dir)
        .run()
        .unwrap();
    assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    serde_json::from_slice(&outcome.stdout).unwrap()
}

/// What 1.20 does not know yet, masks with another word or not at all (passwords), and writes although it is empty.
fn of_1_20(mut value: Value, raw: bool) -> Value {
    for user in value["users"].as_array_mut().unwrap() {
        if let Some(exec) = user.pointer_mut("/user/exec").and_then(Value::as_object_mut) {
            exec.remove("interactiveMode");
        }
        for field in ["client-certificate-data", "client-key-data", "password"] {
            if let Some(mask) = user.pointer_mut(&format!("/user/{field}")).filter(|_| !raw) {
                *mask = Value::from("masked");
            }
        }
    }
    if let Some(top) = value.as_object_mut() {
        top.retain(|name, value| {
            name != "preferences" || value.as_object().is_some_and(|object| !object.is_empty())
        });
    }
    value
}

#[test]
fn two_files_merge_and_are_redacted_as_kubectl_shows_them() {
    let Some(_) = tools::kubectl() else { return };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("first.yaml"), FIRST).unwrap();
    std::fs::write(dir.path().join("second.yaml"), SECOND).unwrap();
    let navicert = Path::new(env!("CARGO_BIN_EXE_navicert"));
    for (theirs, ours) in [
        (
            &["config", "view", "-o", "json"][..],
            &["kubeconfig", "view", "--profile", "kube", "-o", "json"][..],
        ),
        (&["config", "view", "--raw", "-o", "json"], &["kubeconfig", "view", "--raw", "-o", "json"]),
        (
            &["config", "view", "--minify", "-o", "json"],
            &["kubeconfig", "view", "--minify", "--profile", "kube", "-o", "json"],
        ),
    ] {
        let raw = ours.contains(&"--raw");
        let (theirs, ours) = (view(&kubectl(), dir.path(), theirs), view(navicert, dir.path(), ours));
        assert_eq!(of_1_20(ours, raw), of_1_20(theirs, raw));
    }
}

#[test]
fn default_view_redacts_at_least_what_kubectl_redacts() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("first.yaml"), FIRST).unwrap();
    std::fs::write(dir.path().join("second.yaml"), SECOND).unwrap();
    let navicert = Path::new(env!("CARGO_BIN_EXE_navicert"));
    let shown = view(navicert, dir.path(), &["kubeconfig", "view", "-o", "json"]).to_string();
    for secret in ["canary", "Y2FuYXJ5", "north"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}
