//! `logout` and `status` of a kubeconfig context, and of all sessions.

use std::path::{Path, PathBuf};
use std::process::Command;

use navicert_testkit::Kubeconfig;
use serde_json::{Value, json};

use super::{Setup, output};

/// A kubeconfig whose user logs in with this setup's provider.
fn kubeconfig(setup: &Setup, command: &str, verb: &[&str]) -> PathBuf {
    let mut args: Vec<String> = verb.iter().map(|word| (*word).to_owned()).collect();
    args.extend(setup.selection());
    args.push(format!("--password-file={}", setup.dir.path().join("password").display()));
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": command, "args": args,
        "interactiveMode": "IfAvailable", "provideClusterInfo": true,
    });
    let file = setup.dir.path().join("config");
    Kubeconfig::new("https://127.0.0.1:1").user(json!({"exec": exec})).write(&file);
    file
}

fn verb(setup: &Setup, words: &[&str], file: &Path) -> Command {
    let mut command = setup.program(Path::new(env!("CARGO_BIN_EXE_navicert")));
    command.args(words).arg("--kubeconfig").arg(file);
    command
}

// L1102, L1106, L1236
#[test]
fn session_of_a_context_is_shown_and_ended() {
    let setup = Setup::new();
    let file = kubeconfig(&setup, "navicert", &["login"]);
    assert_eq!(output(verb(&setup, &["status"], &file)).1, "no sessions\n");
    output(setup.login());
    let (code, stdout, stderr) = output(verb(&setup, &["status", "-o", "json"], &file));
    let status: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &status["sessions"][0]["user"]), (Some(0), &json!("ann@example.com")), "{stderr}");
    let (code, stdout, stderr) = output(verb(&setup, &["logout"], &file));
    assert!(code == Some(0) && stdout.contains("revoked"), "{stdout}{stderr}");
    assert!(setup.provider.state().is_over);
    let (code, stdout, _) = output(verb(&setup, &["logout"], &file));
    assert!(code == Some(0) && stdout.starts_with("not logged in"), "{stdout}");
    let (code, _, stderr) = output(verb(&setup, &["logout", "--context=none"], &file));
    assert!(code == Some(3) && stderr.contains("none"), "{stderr}");
}

// L1106
#[test]
fn context_that_does_not_log_in_is_named() {
    let setup = Setup::new();
    for (command, words, what) in [
        ("aws", &["eks"][..], "the exec plugin `aws`"),
        ("kubectl", &["oidc-login", "get-token"], "kubelogin, whose sessions are its own"),
    ] {
        let file = kubeconfig(&setup, command, words);
        let (code, _, stderr) = output(verb(&setup, &["status"], &file));
        assert!(code == Some(1) && stderr.contains(what), "{stderr}");
        let (code, _, stderr) = output(verb(&setup, &["logout"], &file));
        assert!(code == Some(2) && stderr.contains(what), "{stderr}");
    }
}

// L1102, L1104
#[test]
fn all_sessions_are_ended_at_once() {
    let setup = Setup::new();
    let cache = format!("--token-cache-dir={}", setup.cache().display());
    let all = |words: &[&str]| {
        let mut command = setup.program(Path::new(env!("CARGO_BIN_EXE_navicert")));
        command.args(["logout", "--all"]).args(words).arg(&cache);
        output(command)
    };
    assert_eq!(all(&[]), (Some(0), "not logged in to any provider\n".to_owned(), String::new()));
    output(setup.login());
    let mut second = setup.login();
    second.arg("--account=second");
    output(second);
    let (code, stdout, stderr) = all(&["-o", "json"]);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let sessions = report["sessions"].as_array().unwrap();
    assert_eq!((code, sessions.len()), (Some(0), 2), "{stdout}{stderr}");
    assert!(sessions.iter().all(|session| session["revocation"] == "revoked"), "{stdout}");
    setup.canaries().assert_absent("logout", stdout.as_bytes());
    let (code, _, stderr) = all(&["--account=second"]);
    assert!(code == Some(2) && stderr.contains("--account"), "{stderr}");
}
