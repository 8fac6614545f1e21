//! Confinement of the proxy: files of the upstream credential, and credential plugins.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::setup::{Setup, text};

/// An exec plugin that prints this token.
fn plugin(setup: &Setup, token: &str) -> serde_json::Value {
    let path = setup.dir.path().join("plugin");
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token},
    });
    // Another program: it inherits the confinement too.
    fs::write(&path, format!("#!/bin/sh\n/bin/cat <<'EOF'\n{credential}\nEOF\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": path, "interactiveMode": "Never",
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_of_the_kubeconfig_can_be_started_and_the_log_says_so() {
    let setup = Setup::new();
    setup.api.accept_token("from-the-plugin", "navicert-proxy", &[]);
    setup.kubeconfig("proxy.kubeconfig", &setup.api.url(), &plugin(&setup, "from-the-plugin"));
    let serving = setup.start(&[]).await;
    assert_eq!(setup.get(&serving, "/api", &setup.token(&json!({}))).await.status, 200);
    assert_eq!(setup.api.requests()[0].header_values("authorization"), ["Bearer from-the-plugin"]);
    let output = serving.program.output();
    let line = output.lines().find(|line| line.contains("confinement_applied")).unwrap();
    let plugin = format!("credential plugin `{}`", setup.dir.path().join("plugin").display());
    assert!(line.contains(&format!("landlock=off: {plugin} would be confined too")), "{line}");
    assert!(line.contains(&format!("seccomp=enforced, except for starting programs: {plugin}")), "{line}");
    let status = fs::read_to_string(format!("/proc/{}/status", serving.program.pid())).unwrap();
    assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
    serving.end().await;
}

#[test]
fn required_landlock_and_a_plugin_exclude_each_other() {
    let setup = Setup::new();
    setup.kubeconfig("proxy.kubeconfig", &setup.api.url(), &plugin(&setup, "t"));
    setup.configure(
        "{selfCheck: off}, confinement: {landlock: required}",
        &json!({"claim": "sub", "prefix": "corp:"}),
    );
    let outcome = setup.navicert(&[]).run().unwrap();
    assert_eq!(outcome.code(), Some(1));
    let told = text(&outcome.stderr);
    assert!(
        told.contains(
            "failed to confine the server: `confinement.landlock` is required, but off: credential plugin"
        ),
        "{told}"
    );
}

// A projected service account token is replaced about every hour, its certificate authority with it.
#[tokio::test(flavor = "multi_thread")]
async fn rotated_token_file_is_followed() {
    let setup = Setup::new();
    let token = setup.dir.path().join("account").join("token");
    fs::create_dir(token.parent().unwrap()).unwrap();
    fs::write(&token, "first-token").unwrap();
    setup.api.accept_token("first-token", "navicert-proxy", &[]);
    setup.kubeconfig("proxy.kubeconfig", &setup.api.url(), &json!({"tokenFile": token}));
    let serving = setup.start(&[]).await;
    let sent = || setup.api.requests().last().unwrap().header_values("authorization")[0].to_owned();
    assert_eq!(setup.get(&serving, "/api", &setup.token(&json!({}))).await.status, 200);
    assert_eq!(sent(), "Bearer first-token");
    fs::write(token.with_extension("new"), "second-token").unwrap();
    fs::rename(token.with_extension("new"), &token).unwrap();
    // A rejected token is read again at once, instead of after a minute.
    setup.api.revoke_token("first-token");
    setup.api.accept_token("second-token", "navicert-proxy", &[]);
    assert_eq!(setup.get(&serving, "/api", &setup.token(&json!({}))).await.status, 200);
    assert_eq!(sent(), "Bearer second-token");
    serving.end().await;
}
