//! A server, a kubeconfig for it, and the check of one page.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use navicert_testkit::cli::tools;
use navicert_testkit::cli::transcript::check_file;
use navicert_testkit::{Answer, ApiServer, Ca, Canaries, HttpServer, Identity, TestContext};
use serde_json::{Value, json};

/// `iss` https://issuer.example, `aud` prod, expired in 2023 and good until 2100.
pub(crate) const EXPIRED: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjpbInByb2QiXSwic3ViIjoiYW5uIiwiZXhwIjoxNzAwMDAwMDAwfQ.c2lnbmF0dXJl";
pub(crate) const GOOD: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjpbInByb2QiXSwic3ViIjoiYW5uIiwiZXhwIjo0MTAyNDQ0ODAwfQ.c2lnbmF0dXJl";
pub(crate) const OPAQUE: &str = "canary-unknown-token";
pub(crate) const KNOWN: &str = "canary-token-of-ann";

/// A server, and a directory with the kubeconfig for it.
pub(crate) struct Setup {
    pub(crate) ca: Ca,
    pub(crate) api: ApiServer,
    pub(crate) cluster: Value,
    pub(crate) user: Value,
}

impl Setup {
    pub(crate) fn new() -> Self {
        let ca = Ca::new("cluster root");
        let api = ApiServer::start(&ca);
        api.accept_token(KNOWN, "ann", &["developers", "system:authenticated"]);
        let cluster = json!({"server": api.url(), "certificate-authority": "ca.crt"});
        Setup { ca, api, cluster, user: json!({"token": KNOWN}) }
    }

    pub(crate) fn user(mut self, user: Value) -> Self {
        self.user = user;
        self
    }

    /// A plugin that lies beside the kubeconfig; the transcript makes it.
    pub(crate) fn plugin(self, version: &str) -> Self {
        self.user(json!({"exec": {
            "apiVersion": format!("client.authentication.k8s.io/{version}"), "interactiveMode": "Never",
            "command": "./login", "installHint": "Get it from https://login.example/install.",
        }}))
    }

    /// The same kubeconfig for another server, given by URL. The API server of this setup stays with it.
    pub(crate) fn at(&self, url: &str) -> Kubeconfig<'_> {
        let mut cluster = self.cluster.clone();
        cluster.as_object_mut().unwrap().insert("server".to_owned(), json!(url));
        Kubeconfig { ca: &self.ca, cluster, user: &self.user }
    }

    /// Another server instead of the API server.
    pub(crate) fn server(self, server: &HttpServer) -> Self {
        self.cluster("server", json!(server.url()))
    }

    /// A client certificate and its key.
    pub(crate) fn certificate(self, identity: &Identity) -> Self {
        let encoded = |text: String| json!(STANDARD.encode(text));
        self.user(json!({
            "client-certificate-data": encoded(identity.chain_pem()), "client-key-data": encoded(identity.key_pem()),
        }))
    }

    /// Lets the API server answer requests without a credential as Kubernetes does: `/version` is public, everything
    /// else is forbidden.
    pub(crate) fn anonymous(self) -> Self {
        self.api.accept_everyone();
        self.api.answer_with(ApiServer::WHO_AM_I, |request| match request.header("authorization") {
            None if request.client.is_none() => anonymous_forbidden(),
            _ => Answer::unauthorized(),
        });
        self
    }

    /// A load balancer removes the `Authorization` header.
    pub(crate) fn stripping(self) -> Self {
        self.api.answer("/version", version());
        self.api.answer("*", anonymous_forbidden());
        self
    }

    pub(crate) fn cluster(mut self, field: &str, value: Value) -> Self {
        self.cluster.as_object_mut().unwrap().insert(field.to_owned(), value);
        self
    }

    /// The sandbox, with a kubectl of this minor version.
    pub(crate) fn context(&self, kubectl: u32) -> TestContext {
        self.context_with(kubectl, &json!({"cluster": "east", "user": "ann"}))
    }

    /// The same with another context entry.
    pub(crate) fn context_with(&self, kubectl: u32, entry: &Value) -> TestContext {
        Kubeconfig { ca: &self.ca, cluster: self.cluster.clone(), user: &self.user }
            .context_with(kubectl, entry)
    }
}

/// The parts of a kubeconfig.
pub(crate) struct Kubeconfig<'a> {
    ca: &'a Ca,
    cluster: Value,
    user: &'a Value,
}

impl Kubeconfig<'_> {
    pub(crate) fn context(&self, kubectl: u32) -> TestContext {
        self.context_with(kubectl, &json!({"cluster": "east", "user": "ann"}))
    }

    fn context_with(&self, kubectl: u32, entry: &Value) -> TestContext {
        let config = json!({
            "current-context": "prod",
            "contexts": [
                {"name": "prod", "context": entry},
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

pub(crate) fn context(kubectl: u32) -> TestContext {
    let context = TestContext::new().program("navicert", env!("CARGO_BIN_EXE_navicert"));
    let program = context.home().join("kubectl");
    let version = json!({"clientVersion": {
        "major": "1", "minor": kubectl.to_string(), "gitVersion": format!("v1.{kubectl}.0"),
    }});
    std::fs::write(&program, format!("#!/bin/sh\necho '{version}'\n")).unwrap();
    make_executable(&program);
    let context = match tools::kubectl() {
        Some(real) => context.program("debian-kubectl", real),
        None => context,
    };
    context.program("kubectl", &program).filter(r"\d+ days", "[N] days")
}

/// The 403 of an API server to a request without a credential.
pub(crate) fn anonymous_forbidden() -> Answer {
    let message = "selfsubjectreviews.authentication.k8s.io is forbidden: User \"system:anonymous\" cannot create resource \"selfsubjectreviews\" in API group \"authentication.k8s.io\" at the cluster scope";
    Answer::failure(403, "Forbidden", message)
}

/// The public version of an API server.
pub(crate) fn version() -> Answer {
    Answer::json(&json!({"major": "1", "minor": "34", "gitVersion": "v1.34.0"}))
}

pub(crate) fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

pub(crate) fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/doctor").join(format!("{name}.md"))
}

/// Checks the page, which says what is printed; it holds no secret, and ends with one line that begins so. What `doctor`
/// calls working works for kubectl too.
pub(crate) fn check(name: &str, ending: &str, context: TestContext) {
    let works = kubectl_works(&context);
    super::symptoms::check_text(name, &context);
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
    if printed.starts_with("$ navicert doctor\n") && last.starts_with("no ") {
        assert_ne!(works, Some(false), "{name}: kubectl fails where doctor reports no error");
    }
}

/// Whether kubectl can send a request; `None` if it is not installed or does not know the plugin's version.
fn kubectl_works(context: &TestContext) -> Option<bool> {
    let config = std::fs::read_to_string(context.directory().join("config")).ok()?;
    if config.contains("client.authentication.k8s.io/v1\"") || tools::kubectl().is_none() {
        return None;
    }
    let outcome = context.run("debian-kubectl get --raw /api --request-timeout 5s");
    Some(outcome.code() == Some(0))
}

/// A broken setup: the last line is the fix.
pub(crate) fn check_broken(name: &str, context: TestContext) {
    check(name, "to do: ", context);
}

/// A broken setup whose last line is exactly this fix.
pub(crate) fn check_fix(name: &str, fix: &str, context: TestContext) {
    check(name, &format!("to do: {fix}"), context);
    let text = std::fs::read_to_string(page(name)).unwrap();
    assert!(text.contains(&format!("\nto do: {fix}\n")), "{name}: the last line is longer than `{fix}`");
}
