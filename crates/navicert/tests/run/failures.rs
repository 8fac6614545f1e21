//! Why a command fails: navicert prints each cause once, however often the command asks.

use std::fs;
use std::path::{Path, PathBuf};

use navicert_testkit::cli::tools;
use navicert_testkit::{Ca, ClientAuth, wait};
use serde_json::{Value, json};

use super::setup::{Setup, kubectl, set_mode, text};

/// Debian's kubectl, and a current one where it is installed.
fn kubectls() -> Vec<PathBuf> {
    let Some(debian) = tools::kubectl() else { return Vec::new() };
    let installed = ["/usr/local/bin/kubectl", "/usr/bin/kubectl"].map(PathBuf::from);
    let current = installed.into_iter().find(|path| path.exists());
    std::iter::once(debian).chain(current).collect()
}

/// Runs both kubectls with a request that is made once and with one that is repeated, and checks that each of these texts
/// is printed once.
fn prints_once(setup: &Setup, texts: &[&str]) {
    for kubectl in kubectls() {
        for arguments in [&["get", "pods"][..], &["get", "--raw", "/version"]] {
            let command = [&["run", "--", kubectl.to_str().unwrap()], arguments].concat();
            let outcome = setup.navicert(&command).run().unwrap();
            let printed = text(&outcome.stderr);
            assert_eq!(outcome.code(), Some(1), "{printed}");
            for expected in texts {
                assert_eq!(printed.matches(expected).count(), 1, "`{expected}` in {arguments:?}: {printed}");
            }
        }
    }
    assert!(setup.left_behind().is_empty());
}

fn exec_user(command: &str) -> Value {
    json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": command, "interactiveMode": "Never",
        "installHint": "Install it with: corp-package-manager get corp-login",
    }})
}

fn failing_plugin(dir: &Path) -> PathBuf {
    let path = dir.join("corp-login");
    fs::write(&path, "#!/bin/sh\necho 'corp-login: session expired, log in again' >&2\nexit 7\n").unwrap();
    set_mode(&path, 0o755);
    path
}

#[test]
fn missing_plugin_is_reported_once_with_its_install_hint() {
    let setup = Setup::new();
    setup.edit(|config| config["users"][0]["user"] = exec_user("corp-login"));
    prints_once(
        &setup,
        &[
            "error: failed to get credentials: exec: executable corp-login not found\n",
            "corp-package-manager get corp-login",
        ],
    );
}

#[test]
fn failing_plugin_is_reported_once_with_its_own_standard_error() {
    let setup = Setup::new();
    let plugin = failing_plugin(setup.dir.path());
    setup.edit(|config| config["users"][0]["user"] = exec_user(plugin.to_str().unwrap()));
    prints_once(
        &setup,
        &[
            "corp-login: session expired, log in again\n",
            "corp-login failed with exit code 7",
            "error: failed",
        ],
    );
}

#[test]
fn plugin_that_the_policy_denies_is_reported_once() {
    let setup = Setup::new();
    let plugin = failing_plugin(setup.dir.path());
    setup.edit(|config| config["users"][0]["user"] = exec_user(plugin.to_str().unwrap()));
    fs::create_dir(setup.dir.path().join(".kube")).unwrap();
    let kuberc =
        "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ncredentialPluginPolicy: DenyAll\n";
    fs::write(setup.dir.path().join(".kube/kuberc"), kuberc).unwrap();
    let outcome = setup.navicert(&["run", "--", "true"]).run().unwrap();
    let printed = text(&outcome.stderr);
    assert_eq!((outcome.code(), printed.matches("not allowed").count()), (Some(5), 1), "{printed}");
}

#[test]
fn unreachable_server_is_reported_once() {
    let setup = Setup::new();
    setup.edit(|config| config["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:1"));
    prints_once(&setup, &["error: failed to connect to `127.0.0.1:1`: "]);
}

#[test]
fn rejected_certificate_is_reported_once() {
    let setup = Setup::with_client_auth(ClientAuth::Required(Ca::new("another")));
    prints_once(&setup, &["error: server rejected the client certificate: "]);
}

#[test]
fn rejected_token_is_reported_once() {
    let setup = Setup::new();
    setup.edit(|config| config["users"][0]["user"] = json!({"token": "canary-unknown"}));
    prints_once(&setup, &["error: the API server rejected the credential (401 Unauthorized)"]);
}

// Commands may run on another terminal than the gateway, so both show the cause.
#[test]
fn gateway_reports_a_cause_once_and_commands_receive_it() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    let plugin = failing_plugin(setup.dir.path());
    setup.edit(|config| config["users"][0]["user"] = exec_user(plugin.to_str().unwrap()));
    let gateway = setup.navicert(&["gateway"]).start_running().unwrap();
    let kubeconfig = wait::blocking(gateway.wait_for_output("kubeconfig\n"));
    for _ in 0..3 {
        let get = navicert_testkit::Program::new(kubectl()).arguments(["get", "--raw", "/version"]);
        let outcome = get.variable("KUBECONFIG", kubeconfig.trim()).run().unwrap();
        assert!(text(&outcome.stderr).contains("failed with exit code 7"), "{}", text(&outcome.stderr));
    }
    gateway.signal("TERM");
    let ended = wait::blocking(gateway.wait());
    let printed = text(&ended.stdout);
    assert_eq!(ended.code(), Some(0), "{printed}");
    for expected in ["session expired", "error: failed to get credentials: "] {
        assert_eq!(printed.matches(expected).count(), 1, "`{expected}` in {printed}");
    }
}
