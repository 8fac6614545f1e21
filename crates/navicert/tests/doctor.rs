//! `navicert doctor` and `navicert whoami` against real servers: one transcript per broken setup, whose last line is the
//! fix.
#![expect(clippy::unwrap_used, reason = "helpers of tests; a broken set-up should stop the test")]

use std::path::{Path, PathBuf};

use navicert_testkit::transcript::check_file;
use navicert_testkit::{Answer, ApiServer, Ca, Canaries, TestContext};
use serde_json::{Value, json};

/// `iss` https://issuer.example, `aud` prod, expired in 2023 and good until 2100.
const EXPIRED: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjpbInByb2QiXSwic3ViIjoiYW5uIiwiZXhwIjoxNzAwMDAwMDAwfQ.c2lnbmF0dXJl";
const GOOD: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjpbInByb2QiXSwic3ViIjoiYW5uIiwiZXhwIjo0MTAyNDQ0ODAwfQ.c2lnbmF0dXJl";
const OPAQUE: &str = "canary-unknown-token";
const KNOWN: &str = "canary-token-of-ann";

/// A server, and a directory with the kubeconfig for it.
struct Setup {
    ca: Ca,
    api: ApiServer,
    cluster: Value,
    user: Value,
}

impl Setup {
    fn new() -> Self {
        let ca = Ca::new("cluster root");
        let api = ApiServer::start(&ca);
        api.accept_token(KNOWN, "ann", &["developers", "system:authenticated"]);
        let cluster = json!({"server": api.url(), "certificate-authority": "ca.crt"});
        Setup { ca, api, cluster, user: json!({"token": KNOWN}) }
    }

    fn user(mut self, user: Value) -> Self {
        self.user = user;
        self
    }

    /// A plugin that lies beside the kubeconfig; the transcript makes it.
    fn plugin(self, version: &str) -> Self {
        self.user(json!({"exec": {
            "apiVersion": format!("client.authentication.k8s.io/{version}"), "interactiveMode": "Never",
            "command": "./login", "installHint": "Get it from https://login.example/install.",
        }}))
    }

    fn cluster(mut self, field: &str, value: Value) -> Self {
        self.cluster.as_object_mut().unwrap().insert(field.to_owned(), value);
        self
    }

    /// The sandbox, with a kubectl of this minor version.
    fn context(&self, kubectl: u32) -> TestContext {
        let config = json!({
            "current-context": "prod",
            "contexts": [
                {"name": "prod", "context": {"cluster": "east", "user": "ann"}},
                {"name": "stray", "context": {"cluster": "west", "user": "ann"}},
            ],
            "clusters": [{"name": "east", "cluster": self.cluster}],
            "users": [{"name": "ann", "user": self.user}],
        });
        context(kubectl)
            .file("config", &config.to_string())
            .file("ca.crt", &self.ca.pem())
            .variable("KUBECONFIG", "config")
    }
}

fn context(kubectl: u32) -> TestContext {
    let context = TestContext::new().program("navicert", env!("CARGO_BIN_EXE_navicert"));
    let program = context.home().join("kubectl");
    let version = json!({"clientVersion": {
        "major": "1", "minor": kubectl.to_string(), "gitVersion": format!("v1.{kubectl}.0"),
    }});
    std::fs::write(&program, format!("#!/bin/sh\necho '{version}'\n")).unwrap();
    make_executable(&program);
    context.program("kubectl", &program).filter(r"\d+ days", "[N] days")
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/doctor").join(format!("{name}.md"))
}

/// Checks the page, which says what is printed; it holds no secret, and ends with one line that begins so.
fn check(name: &str, ending: &str, context: TestContext) {
    check_file(&page(name), context);
    let text = std::fs::read_to_string(page(name)).unwrap();
    let mut canaries = Canaries::new();
    for (name, secret) in [("expired", EXPIRED), ("good", GOOD), ("opaque", OPAQUE), ("known", KNOWN)] {
        canaries.adopt(name, secret.as_bytes());
    }
    let printed = text.rsplit_once("```console\n").unwrap().1;
    canaries.assert_absent(name, printed.as_bytes());
    let is_mark = |line: &str| line.starts_with("[stderr]") || line.starts_with("[exit") || line == "```";
    let last = printed.lines().take_while(|line| !is_mark(line)).last().unwrap();
    assert!(last.starts_with(ending), "{name} ends with: {last}");
}

/// A broken setup: the last line is the fix.
fn check_broken(name: &str, context: TestContext) {
    check(name, "to do: ", context);
}

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
