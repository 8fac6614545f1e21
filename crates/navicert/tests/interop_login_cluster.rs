//! From `navicert login setup` to a cluster that knows the user (`make interop`): the printed configuration in a real kube-apiserver and
//! in `navicert serve proxy`, the printed kubeconfig in kubectl, a login in a browser, and a logout.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    dead_code,
    reason = "helpers of tests, of which other tests use the rest"
)]

#[path = "serve_proxy/control_plane.rs"]
mod control_plane;
mod login_support;
#[path = "serve_proxy/setup.rs"]
mod setup;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use control_plane::{admin, prepare, readiness};
use login_support::{LoginUser, NAVICERT, ProviderFacts, link_into, run};
use navicert_testkit::cli::pseudo_terminal::PseudoTerminal;
use navicert_testkit::k8s::cluster::Cluster;
use navicert_testkit::services::browser::Browser;
use navicert_testkit::services::openid_provider::{Keycloak, NpmProvider};
use navicert_testkit::{Ca, Program, wait};
use serde_json::{Value, json};

/// kubectl with a kubeconfig, and a folder in `PATH` that has navicert.
struct Client<'a> {
    cluster: &'a Cluster,
    user: &'a LoginUser,
    path: String,
}

impl Client<'_> {
    fn whoami(&self, kubeconfig: &Path) -> Program {
        let kubectl = self.cluster.kubectl(kubeconfig).arguments(["auth", "whoami", "-o", "json"]);
        kubectl.variable("PATH", &self.path).variable("HOME", &self.user.dir)
    }

    /// The same on a terminal, where a person can be asked.
    fn whoami_on_terminal(&self, kubeconfig: &Path, terminal: &PseudoTerminal) -> Child {
        let mut kubectl = Command::new(self.cluster.kubectl_program());
        kubectl
            .args(["auth", "whoami", "-o", "json"])
            .env_clear()
            .env("HOME", &self.user.dir)
            .env("PATH", &self.path)
            .env("KUBECONFIG", kubeconfig)
            .env("BROWSER", self.user.browser.opener());
        kubectl.stdin(terminal.stream()).stderr(terminal.stream()).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// A new server gets no token in the background, and one after the person has said yes on a terminal.
    // L1233, L1306
    fn confirm_server(&self, kubeconfig: &Path, server: &str) {
        let (code, _, stderr) = run(&self.whoami(kubeconfig));
        assert!(
            code != Some(0) && stderr.contains(&format!("{server} has not been given a token")),
            "{stderr}"
        );
        let mut terminal = PseudoTerminal::new();
        let kubectl = self.whoami_on_terminal(kubeconfig, &terminal);
        let shown = terminal.wait_for("[y/N] ");
        assert!(shown.contains(server) && shown.contains(self.user.provider.display), "{shown}");
        terminal.enter("y\r");
        // Whether the server knows the user yet does not matter.
        kubectl.wait_with_output().unwrap();
    }

    /// A kubeconfig for a server with the user that `setup` printed.
    fn kubeconfig(&self, name: &str, server: &str, ca: &Path, printed: &Value) -> PathBuf {
        let mut config = printed.clone();
        for (field, value) in [
            ("apiVersion", json!("v1")),
            ("kind", json!("Config")),
            ("clusters", json!([{"name": "c", "cluster": {"server": server, "certificate-authority": ca}}])),
            (
                "contexts",
                json!([{"name": "c", "context": {"cluster": "c", "user": printed["users"][0]["name"]}}]),
            ),
            ("current-context", json!("c")),
        ] {
            config[field] = value;
        }
        let path = self.user.dir.join(name);
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }
}

fn username(stdout: &str) -> String {
    let start = stdout.find('{').unwrap_or_else(|| panic!("{stdout}"));
    let end = stdout.rfind('}').unwrap_or_else(|| panic!("{stdout}"));
    let review: Value = serde_json::from_str(stdout.get(start..=end).unwrap()).unwrap();
    review.pointer("/status/userInfo/username").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Adds the printed authenticator to the API server's configuration, of which the rest may not change while it runs.
fn add_authenticator(path: &Path, authenticator: &Value) {
    let before = std::fs::read_to_string(path).unwrap();
    let (head, tail) = before.split_once("jwt:\n").unwrap();
    let next = path.with_extension("next");
    std::fs::write(&next, format!("{head}jwt:\n- {authenticator}\n{tail}")).unwrap();
    std::fs::rename(next, path).unwrap();
}

/// The whole way with a provider.
async fn from_setup_to_logout(facts: ProviderFacts, dir: &Path, expected: &str) {
    let Some(browser) = Browser::start(dir).await else { return };
    let user = LoginUser { provider: facts, browser, dir: dir.to_owned() };
    let setup = user
        .navicert(&["login", "setup", "-o", "json"])
        .arguments(user.selection())
        .arguments([user.browser_flag()]);
    let (code, stdout, stderr) = run(&setup);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert!(stdout.contains(expected), "setup shows the user that the API server will see: {stdout}");
    let documents = &report["documents"];
    let configuration = documents["authenticationConfiguration"].to_string();

    let cluster = Cluster::start();
    let programs = [("navicert", Path::new(NAVICERT)), ("kubectl", cluster.kubectl_program())];
    let client = Client { cluster: &cluster, user: &user, path: link_into(&dir.join("bin"), &programs) };
    let direct = client.kubeconfig("direct", cluster.server(), cluster.ca(), &documents["kubeconfig"]);
    client.confirm_server(&direct, cluster.server());

    // LA13, L1110: kube-apiserver takes the token as the printed user.
    add_authenticator(cluster.authentication_config(), &documents["authenticationConfiguration"]["jwt"][0]);
    let known = async {
        loop {
            let (code, stdout, _) = run(&client.whoami(&direct));
            if code == Some(0) {
                return username(&stdout);
            }
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(wait::within("kube-apiserver to read its configuration", Box::pin(known)).await, expected);
    // The API server takes the bindings; the role `view` itself is filled by a controller that this control plane does not run.
    for binding in documents["clusterRoleBindings"].as_array().unwrap() {
        admin(&cluster, &["apply", "-f", "-"], &binding.to_string());
    }

    // The same configuration in the proxy.
    let (certificate, key) = cluster.front_proxy();
    let proxy = prepare(
        &cluster,
        "{mode: requestHeader}",
        &json!({"client-certificate": certificate, "client-key": key}),
    );
    std::fs::write(proxy.dir.path().join("authentication.yaml"), &configuration).unwrap();
    let serving = proxy.start(&[]).await;
    readiness(&serving, 200, "[-]").await;
    let server = format!("https://{}", serving.address);
    let through_proxy =
        client.kubeconfig("proxied", &server, &proxy.dir.path().join("ca.crt"), &documents["kubeconfig"]);
    client.confirm_server(&through_proxy, &server);
    let (code, stdout, stderr) = run(&client.whoami(&through_proxy));
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(username(&stdout), expected);

    // After a logout both refuse, until the person logs in again.
    let (code, stdout, stderr) = run(&user.navicert(&["logout"]).arguments(user.selection()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    for kubeconfig in [&direct, &through_proxy] {
        let (code, _, stderr) = run(&client.whoami(kubeconfig));
        assert!(code != Some(0) && stderr.contains("run in a terminal: navicert login"), "{stderr}");
    }
    let tabs = user.browser.tabs().await.len();
    for kubeconfig in [&direct, &through_proxy] {
        let mut terminal = PseudoTerminal::new();
        let ended = client.whoami_on_terminal(kubeconfig, &terminal).wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{}", terminal.shown());
        assert_eq!(username(&String::from_utf8_lossy(&ended.stdout)), expected);
    }
    assert_eq!(user.browser.tabs().await.len(), tabs + 1, "one login for both servers");
    serving.end().await;
}

// L1110, L1111, L1104
#[tokio::test(flavor = "multi_thread")]
async fn setup_to_logout_with_oidc_provider() {
    let dir = tempfile::tempdir().unwrap();
    let Some(provider) = NpmProvider::start(&Ca::new("provider"), dir.path(), None).await else { return };
    let facts = ProviderFacts {
        issuer: provider.issuer().to_owned(),
        ca_file: provider.ca_file().to_owned(),
        flags: vec!["--prompt=consent".to_owned(), "--oidc-extra-scope=email".to_owned()],
        display: "ann@example.com",
        ends_sessions: true,
        detects_reuse: true,
        can_be_refused: true,
    };
    from_setup_to_logout(facts, dir.path(), "oidc:ann@example.com").await;
}

// L1110, L1111, L1104
#[tokio::test(flavor = "multi_thread")]
async fn setup_to_logout_with_keycloak() {
    let dir = tempfile::tempdir().unwrap();
    let Some(keycloak) = Keycloak::start(&Ca::new("keycloak"), dir.path()).await else { return };
    let facts = ProviderFacts {
        issuer: keycloak.issuer().to_owned(),
        ca_file: keycloak.ca_file().to_owned(),
        flags: vec!["--oidc-extra-scope=email".to_owned()],
        display: "ann@example.com",
        ends_sessions: true,
        detects_reuse: true,
        can_be_refused: false,
    };
    from_setup_to_logout(facts, dir.path(), "oidc:ann@example.com").await;
}
