//! `navicert doctor` and `navicert whoami` against real servers: one transcript per broken setup, whose last line is the
//! fix.
#![expect(clippy::unwrap_used, reason = "helpers of tests; a broken set-up should stop the test")]

mod credentials;
mod front_proxies;
mod handshakes;
mod logins;
mod nginx;
mod plugins;
mod proxies;
mod pulls;
mod servers;
mod setup;
mod symptoms;
mod terminal;

use navicert_testkit::cli::transcript::check_file;
use navicert_testkit::{Answer, ApiServer, Ca};
use serde_json::json;

use setup::{EXPIRED, GOOD, KNOWN, OPAQUE, Setup, check, check_broken, context, make_executable, page};

#[test]
fn working_context_has_no_problems() {
    check("healthy", "no problems found", Setup::new().context(34));
    check("plugin", "no problems found", Setup::new().plugin("v1").context(34));
    check("json", "}", Setup::new().context(34));
}

#[test]
fn the_plugin_is_run_once() {
    let context = Setup::new().plugin("v1").context(34);
    let response = json!({
        "kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {"token": KNOWN},
    });
    let context = context.file("login", &format!("#!/bin/sh\necho run >> runs\necho '{response}'\n"));
    make_executable(&context.directory().join("login"));
    assert_eq!(context.run("navicert doctor").code(), Some(4), "the server of this kubeconfig is gone");
    assert!(!context.directory().join("runs").exists(), "the plugin is not run if the server is unreachable");
    let setup = Setup::new().plugin("v1");
    let context =
        setup.context(34).file("login", &format!("#!/bin/sh\necho run >> runs\necho '{response}'\n"));
    make_executable(&context.directory().join("login"));
    for runs in 1..=2 {
        assert_eq!(context.run("navicert doctor").code(), Some(0));
        let lines = std::fs::read_to_string(context.directory().join("runs")).unwrap();
        assert_eq!(lines.lines().count(), runs);
    }
}

#[test]
fn old_kubectl_is_a_recommendation() {
    check("old-kubectl", "no errors; recommended", Setup::new().plugin("v1").context(20));
}

#[test]
fn invalid_files_are_reported_with_the_line() {
    check_broken("no-file", context(34));
    check_broken("not-yaml", context(34).file("config", "clusters:\n- name: east\n  cluster: {server: 7}\n"));
}

#[test]
fn missing_context_cluster_or_authority_is_named() {
    check_broken("no-context", Setup::new().context(34));
    check_broken("no-cluster", Setup::new().context(34));
    let setup = Setup::new().cluster("certificate-authority", json!("gone.crt"));
    check_broken("no-authority-file", setup.context(34));
}

#[test]
fn unreachable_servers_are_distinguished_by_cause() {
    // No resolver is asked for a label of 64 characters: there can be none.
    let name = format!("https://{}.example", "n".repeat(64));
    let setup = Setup::new().cluster("server", json!(name)).cluster("tls-server-name", json!("kubernetes"));
    check_broken("no-address", setup.context(34));
    let setup = Setup::new();
    setup.api.refuse_connections();
    check_broken("connection-refused", setup.context(34));
    let setup = Setup::new();
    let plain = navicert_testkit::HttpServer::start_plain();
    let url = plain.url().replace("http://", "https://");
    check_broken("no-tls", setup.cluster("server", json!(url)).context(34));
}

#[test]
fn untrusted_servers_are_distinguished_by_cause() {
    let setup = Setup::new();
    let other = Ca::new("another root");
    setup.api.present(&other.server().issue());
    check_broken("other-authority", setup.context(34));
    let setup = Setup::new();
    setup.api.present(&setup.ca.server_without_names().name("kubernetes").issue());
    check_broken("other-name", setup.context(34));
    let setup = Setup::new();
    setup.api.present(&setup.ca.server().expired().issue());
    check_broken("expired-server", setup.context(34));
    let setup = Setup::new();
    setup.api.present(&setup.ca.server().not_yet_valid().issue());
    setup.api.answer("/version", Answer::json(&json!({})).header("date", "Fri, 01 Jan 2100 00:00:00 GMT"));
    check_broken("future-server", setup.context(34));
}

#[test]
fn missing_denied_and_failing_plugins_are_distinguished() {
    check_broken("no-plugin", Setup::new().plugin("v1").context(34));
    check_broken("denied-plugin", Setup::new().plugin("v1").context(34));
    check_broken("broken-kuberc", Setup::new().plugin("v1").context(34));
    check_broken("failing-plugin", Setup::new().plugin("v1").context(34));
    check_broken("other-version", Setup::new().plugin("v1").context(34));
    check_broken("plugin-alpha-version", Setup::new().plugin("v1alpha1").context(34));
    check_broken("expired-plugin", Setup::new().plugin("v1").context(34));
}

#[test]
fn rejection_is_explained_by_the_credential_sent() {
    check_broken("expired-token", Setup::new().user(json!({"token": EXPIRED})).context(34));
    check_broken("unknown-token", Setup::new().user(json!({"token": OPAQUE})).context(34));
    check_broken("other-issuer", Setup::new().user(json!({"token": GOOD})).context(34));
    check_broken("no-credential", Setup::new().user(json!({})).context(34));
    let mut beside = Setup::new().plugin("v1");
    beside.user.as_object_mut().unwrap().insert("token".to_owned(), json!(OPAQUE));
    check_broken("unused-plugin", beside.context(34));
    let setup = Setup::new().user(json!({"token": OPAQUE}));
    let late = Answer::unauthorized().header("date", "Fri, 01 Jan 2100 00:00:00 GMT");
    setup.api.answer("/version", late);
    check_broken("clock", setup.context(34));
    let plain = navicert_testkit::HttpServer::builder().otherwise(|_| Answer::unauthorized()).start_plain();
    check_broken("plain-http", Setup::new().cluster("server", json!(plain.url())).context(34));
}

#[test]
fn whoami_prints_the_user_or_the_error_with_its_exit_code() {
    let setup = Setup::new();
    check_file(&page("whoami"), setup.context(34));
    let setup = Setup::new().user(json!({"token": OPAQUE}));
    check_file(&page("whoami-refused"), setup.context(34));
    check_file(&page("whoami-denied"), Setup::new().plugin("v1").context(34));
    let setup = Setup::new();
    setup.api.refuse_connections();
    check_file(&page("whoami-unreachable"), setup.context(34));
}

// A server cannot forge lines, hide text or reorder it, in text or in JSON.
#[test]
fn hostile_server_cannot_forge_output() {
    let forged = "ann\ngroups    system:masters\r\u{2028}\u{2029}\u{1b}[2J\u{9b}2J\u{85}\u{202e}\u{2066}\u{200f}\u{61c}\u{7f}";
    let user = json!({
        "username": forged, "uid": forged, "groups": [forged], "extra": {(forged): [forged]},
    });
    let accepted = Answer::json(&json!({"kind": "SelfSubjectReview", "status": {"userInfo": user}}));
    let rejected = Answer::failure(403, "Forbidden", forged);
    for (answer, is_accepted) in [(accepted, true), (rejected, false)] {
        let setup = Setup::new();
        setup.api.answer(ApiServer::WHO_AM_I, answer);
        setup.api.answer("/version", Answer::json(&json!({"gitVersion": forged, "major": forged})));
        let context = setup.context(34);
        for command in
            ["navicert whoami", "navicert whoami -o json", "navicert doctor", "navicert doctor -o json"]
        {
            let outcome = context.run(command);
            for (stream, bytes) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
                let text = std::str::from_utf8(bytes).unwrap();
                let is_dangerous = |symbol: char| {
                    (symbol.is_control() && symbol != '\n')
                        || matches!(symbol, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
                };
                assert!(!text.contains(is_dangerous), "{command} {stream}: {text:?}");
                assert!(
                    !text.lines().any(|line| line.trim_start().starts_with("groups    system:masters")),
                    "{text}"
                );
            }
            if is_accepted && command == "navicert whoami -o json" {
                let told: serde_json::Value = serde_json::from_slice(&outcome.stdout).unwrap();
                assert!(told.to_string().contains("system:masters"));
            }
        }
    }
}
