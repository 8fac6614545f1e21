//! Exec plugins and external signers that fail, and how often a plugin is run.

use navicert_testkit::{Answer, TestContext};
use serde_json::json;

use super::setup::{OPAQUE, Setup, check_fix, make_executable};

/// The setup with a plugin of this script.
fn plugin(script: &str) -> (Setup, TestContext) {
    let setup = Setup::new().plugin("v1beta1");
    let context = with_script(&setup, script);
    (setup, context)
}

pub(super) fn with_script(setup: &Setup, script: &str) -> TestContext {
    let context = setup.context(34).file("login", script);
    make_executable(&context.directory().join("login"));
    context
}

pub(super) fn response(token: &str) -> String {
    let response = json!({
        "kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": token},
    });
    format!("#!/bin/sh\necho run >> runs\necho '{response}'\n")
}

#[test]
fn plugin_runs_once_even_if_its_credential_is_rejected() {
    let (_setup, context) = plugin(&response(OPAQUE));
    assert_eq!(context.run("navicert doctor").code(), Some(1));
    let runs = std::fs::read_to_string(context.directory().join("runs")).unwrap();
    assert_eq!(runs, "run\n");
    let (_setup, context) = plugin(&response(OPAQUE));
    let fix = "log in again with `[DIRECTORY]/login` as a user this cluster accepts";
    check_fix("plugin-token-unauthorized", fix, context);
}

#[test]
fn plugins_that_fail_are_explained() {
    let update = "update `[DIRECTORY]/login`; `navicert exec-plugin check` names the rule it breaks";
    for (name, fix, script) in [
        ("plugin-prints-nothing", "update the plugin: its output has no apiVersion", "#!/bin/sh\n"),
        ("plugin-prints-text", update, "#!/bin/sh\necho please log in first\n"),
        (
            "plugin-prints-no-token",
            update,
            "#!/bin/sh\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\"status\":{}}'\n",
        ),
        (
            "plugin-exit-code",
            "log in again with `[DIRECTORY]/login`, or follow its message on standard error",
            "#!/bin/sh\necho 'session expired: run corp-login' >&2\nexit 7\n",
        ),
        (
            "plugin-killed",
            "log in again with `[DIRECTORY]/login`, or follow its message on standard error",
            "#!/bin/sh\nkill -9 $$\n",
        ),
        (
            "plugin-without-interpreter",
            "fix `[DIRECTORY]/login`: it cannot be run",
            "#!/no/such/interpreter\n",
        ),
    ] {
        let (_setup, context) = plugin(script);
        check_fix(name, fix, context);
    }
    let setup = Setup::new().plugin("v1beta1");
    let context = setup.context(34).file("login", "#!/bin/sh\n");
    check_fix("plugin-not-executable", "make `[DIRECTORY]/login` executable", context);
    let exec = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1beta1", "interactiveMode": "Always", "command": "./login",
    }});
    let setup = Setup::new().user(exec);
    let context = with_script(&setup, &response(OPAQUE));
    check_fix("plugin-needs-terminal", "run this in a terminal: the plugin must prompt the user", context);
    let setup = Setup::new().user(json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "interactiveMode": "Never", "command": "no-such-login"}}));
    let fix = "install the plugin `no-such-login`, or add its directory to PATH";
    check_fix("plugin-not-in-path", fix, setup.context(34));
}

#[test]
fn external_signers_are_checked_against_the_kuberc() {
    let signer = json!({"auth-provider": {"name": "externalSigner", "config": {"pathExec": "./signer"}}});
    let setup = Setup::new().user(signer);
    let context = setup.context(34).file("signer", "#!/bin/sh\nexit 1\n");
    make_executable(&context.directory().join("signer"));
    let fix = "permit the external signer `[DIRECTORY]/signer`: add the lines above to the kuberc";
    check_fix("signer-denied", fix, context);
    let fix = "install the external signer `[DIRECTORY]/signer`, or correct `pathExec`";
    check_fix("signer-missing", fix, setup.context(34));
    let context = setup.context(34).file("signer", "#!/bin/sh\nexit 1\n").file("~/.kube/kuberc", "kind: [\n");
    make_executable(&context.directory().join("signer"));
    let fix = "fix line 1 of `[HOME]/.kube/kuberc`; no plugin may run until then";
    check_fix("signer-and-broken-kuberc", fix, context);
}

#[test]
fn identity_providers_that_fail_are_reported() {
    let provider = json!({"auth-provider": {"name": "oidc", "config": {
        "idp-issuer-url": "https://127.0.0.1:9", "client-id": "navicert", "id-token": super::EXPIRED,
    }}});
    // L1114
    let fix = "replace the tokens of user `ann` by a login: navicert login setup --oidc-issuer-url=https://127.0.0.1:9 --oidc-client-id=navicert";
    check_fix("oidc-expired-without-refresh-token", fix, Setup::new().user(provider).context(34));
    let removed = json!({"auth-provider": {"name": "gcp"}});
    let fix = "give user `ann` an exec plugin (`gke-gcloud-auth-plugin`) instead of the auth-provider";
    check_fix("auth-provider-removed", fix, Setup::new().user(removed).context(34));
    let setup = Setup::new();
    setup.api.answer("/api*", Answer::unauthorized());
    check_fix("token-revoked", "give user `ann` a token that this cluster accepts", setup.context(34));
}
