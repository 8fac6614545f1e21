//! Users who log in: what the step `login` says about their session, and the command to run.

use navicert_testkit::services::login_provider::CLIENT;
use navicert_testkit::{LoginProvider, TestContext};
use serde_json::{Value, json};

use super::setup::{Setup, check, check_fix};

/// A provider, and a cluster whose user logs in there.
struct Login {
    setup: Setup,
    provider: LoginProvider,
    _dir: tempfile::TempDir,
    arguments: Vec<String>,
}

impl Login {
    fn new(command: &str, words: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let provider = LoginProvider::start(dir.path());
        let mut arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        arguments.extend([
            format!("--oidc-issuer-url={}", provider.issuer.issuer_url()),
            format!("--oidc-client-id={CLIENT}"),
            "--certificate-authority=provider.crt".to_owned(),
            "--token-cache-dir=cache".to_owned(),
            "--username=ann".to_owned(),
            "--trust-server=any".to_owned(),
        ]);
        let exec = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "provideClusterInfo": true,
            "command": command, "args": arguments,
        });
        let setup = Setup::new().user(json!({"exec": exec}));
        Login { setup, provider, _dir: dir, arguments }
    }

    fn navicert() -> Self {
        Login::new("./navicert", &["login"])
    }

    fn context(&self) -> TestContext {
        let root = std::fs::read_to_string(&self.provider.ca_file).unwrap();
        let context =
            self.setup.context(34).file("provider.crt", &root).file("password", "canary-password\n");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_navicert"), context.directory().join("navicert"))
            .unwrap();
        context.filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[TIME]")
    }

    /// Logs in, and lets the API server accept the token.
    fn log_in(&self, context: &TestContext) {
        let line = format!("navicert {} --password-file=password", self.arguments.join(" "));
        let outcome = context.run(&line);
        assert_eq!(outcome.code(), Some(0), "{outcome:?}");
        let token = self.entry(context).get("idToken").and_then(Value::as_str).unwrap().to_owned();
        self.setup.api.accept_token(&token, "ann", &["developers"]);
    }

    fn entry_path(context: &TestContext) -> std::path::PathBuf {
        let files =
            std::fs::read_dir(context.directory().join("cache")).unwrap().map(|file| file.unwrap().path());
        let is_entry = |path: &std::path::PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.len() == 64 + ".json".len() && name.ends_with(".json")
        };
        files.into_iter().find(is_entry).unwrap()
    }

    fn entry(&self, context: &TestContext) -> Value {
        serde_json::from_slice(&std::fs::read(Self::entry_path(context)).unwrap()).unwrap()
    }

    fn change(&self, context: &TestContext, members: &[(&str, Value)]) {
        let mut entry = self.entry(context);
        for (name, value) in members {
            entry.as_object_mut().unwrap().insert((*name).to_owned(), value.clone());
        }
        std::fs::write(Self::entry_path(context), entry.to_string()).unwrap();
    }
}

const COMMAND: &str = "log in: navicert login --oidc-issuer-url=https://127.0.0.1:[PORT] --oidc-client-id=kubernetes \
                       --username=ann --certificate-authority=provider.crt --token-cache-dir=cache";

// L1114
#[test]
fn session_is_shown_without_a_token() {
    let login = Login::navicert();
    let context = login.context();
    login.log_in(&context);
    check("login-session", "no problems found", context);
}

// L1114
#[test]
fn missing_session_names_the_command() {
    let login = Login::navicert();
    check_fix("login-missing", COMMAND, login.context());
}

// L1114
#[test]
fn expired_session_without_a_refresh_token_says_why() {
    let login = Login::navicert();
    let context = login.context();
    login.log_in(&context);
    let expired = [
        ("refreshToken", Value::Null),
        ("receivedAt", json!("2020-01-01T00:00:00Z")),
        ("localExpiry", json!("2020-01-01T01:00:00Z")),
    ];
    login.change(&context, &expired);
    check_fix("login-expired", COMMAND, context);
}

// L311, L1114
#[test]
fn clock_that_differs_from_the_providers_is_reported() {
    let login = Login::navicert();
    let context = login.context();
    login.log_in(&context);
    login.change(&context, &[("skewSeconds", json!(-600))]);
    check("login-clock", "no errors; recommended: correct the local clock", context);
}

// L1114
#[test]
fn provider_that_is_down_is_reported() {
    let login = Login::navicert();
    let context = login.context();
    login.log_in(&context);
    login.provider.issuer.refuse_connections();
    let ending = "no errors; recommended: make the provider `https://127.0.0.1:[PORT]` reachable";
    check("login-provider-down", ending, context);
}

// L1114: kubelogin's own sessions are not read.
#[test]
fn kubelogin_is_recognised() {
    let login = Login::new("kubelogin", &["get-token"]);
    let fix = "install the plugin `kubelogin`, or add its directory to PATH";
    check_fix("login-kubelogin", fix, login.context());
}

// L1114
#[test]
fn wrong_argument_of_the_plugin_is_reported() {
    let login = Login::new("./navicert", &["login", "--no-such-flag"]);
    let fix = "correct what the text names, then log in again";
    check_fix("login-unknown-flag", fix, login.context());
}
