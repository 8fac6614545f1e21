//! Test setup of a proxy: directory with its files, issuer, API server and the running program.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use navicert_testkit::cli::program::Running;
use navicert_testkit::cli::tools;
use navicert_testkit::net::http_client::Reply;
use navicert_testkit::{ApiServer, Ca, HttpClient, Issuer, Kubeconfig, Program, wait};
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};

pub(crate) struct Setup {
    pub(crate) ca: Ca,
    pub(crate) issuer: Issuer,
    pub(crate) api: ApiServer,
    pub(crate) dir: tempfile::TempDir,
}

/// A running proxy.
pub(crate) struct Serving {
    pub(crate) program: Running,
    pub(crate) address: SocketAddr,
    pub(crate) health: SocketAddr,
}

impl Setup {
    pub(crate) fn new() -> Self {
        let ca = Ca::new("serve proxy");
        let (issuer, api) = (Issuer::start(&ca), ApiServer::start(&ca));
        let dir = tempfile::tempdir().unwrap();
        let setup = Setup { ca, issuer, api, dir };
        setup.configure("{selfCheck: off}", &json!({"claim": "sub", "prefix": "corp:"}));
        setup.certify();
        let proxy = setup.ca.client("navicert-proxy").issue().write_to(setup.dir.path(), "proxy");
        let user = json!({"client-certificate": proxy.certificate, "client-key": proxy.key});
        setup.kubeconfig("proxy.kubeconfig", &setup.api.url(), &user);
        setup
    }

    /// The two configuration files.
    pub(crate) fn configure(&self, proxy: &str, username: &Value) {
        let config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{
                "issuer": {
                    "url": self.issuer.issuer_url(), "audiences": ["kubernetes"],
                    "certificateAuthority": self.ca.pem(),
                },
                "claimMappings": {"username": username, "groups": {"claim": "groups", "prefix": "corp:"}},
            }],
        });
        self.replace("authentication.yaml", &config.to_string());
        let head =
            "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nrevocationList: revoked.yaml\n";
        self.replace("navicert.yaml", &format!("{head}servers: {{proxy: {proxy}}}\n"));
        self.revoke(&[]);
    }

    pub(crate) fn revoke(&self, names: &[&str]) {
        let token = |jti: &&str| json!({"issuer": self.issuer.issuer_url(), "jti": jti});
        let tokens: Vec<Value> = names.iter().map(token).collect();
        let list = json!({"apiVersion": "navicert/v1alpha1", "kind": "RevocationList", "tokens": tokens});
        self.replace("revoked.yaml", &list.to_string());
    }

    /// A new certificate for the proxy.
    pub(crate) fn certify(&self) {
        self.ca.server().issue().write_to(self.dir.path(), "server");
    }

    /// Replaces a file atomically, as editors and ConfigMaps do.
    fn replace(&self, name: &str, text: &str) {
        let (path, new) = (self.dir.path().join(name), self.dir.path().join(format!("{name}.new")));
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// A kubeconfig in the dir.
    pub(crate) fn kubeconfig(&self, name: &str, server: &str, user: &Value) -> PathBuf {
        let ca_file = self.dir.path().join("ca.crt");
        fs::write(&ca_file, self.ca.pem()).unwrap();
        Kubeconfig::new(server)
            .namespace("default")
            .ca_file(ca_file)
            .user(user.clone())
            .write(self.dir.path().join(name))
    }

    /// `navicert serve proxy` with everything it needs, and these flags besides.
    pub(crate) fn navicert(&self, flags: &[&str]) -> Program {
        self.navicert_by(Program::new(env!("CARGO_BIN_EXE_navicert")), flags)
    }

    /// The same, run by another program, which gets the arguments.
    pub(crate) fn navicert_by(&self, program: Program, flags: &[&str]) -> Program {
        program
            .arguments(["serve", "proxy", "--authentication-config", "authentication.yaml"])
            .arguments(["--navicert-config", "navicert.yaml", "--kubeconfig", "proxy.kubeconfig"])
            .arguments(["--tls-cert-file", "server.crt", "--tls-private-key-file", "server.key"])
            .arguments(["--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"])
            .arguments(flags)
            .own_environment()
            .variable("PATH", "/usr/bin:/bin")
            .variable("HOME", self.dir.path())
            .directory(self.dir.path())
    }

    /// Starts the proxy and waits until it has the issuer's keys.
    pub(crate) async fn start(&self, flags: &[&str]) -> Serving {
        self.start_program(&self.navicert(flags)).await
    }

    /// The same with a program that starts the proxy.
    pub(crate) async fn start_program(&self, program: &Program) -> Serving {
        let program = program.start_running().unwrap();
        let told = program.wait_for_output("listening on ").await;
        let told = told.lines().find(|line| line.contains("listening on ")).unwrap().to_owned();
        let addresses: Vec<SocketAddr> =
            told.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
        let serving = Serving { program, address: addresses[0], health: addresses[1] };
        let ready = async {
            while serving.inspect("/readyz?verbose").await.text().contains("[-]issuers") {
                tokio::task::yield_now().await;
            }
        };
        wait::within("the issuer's keys", Box::pin(ready)).await;
        serving
    }

    pub(crate) fn token(&self, more: &Value) -> String {
        let mut claims = self.issuer.claims("ann", "kubernetes", SystemClock.now());
        claims["groups"] = json!(["dev", "ops"]);
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        self.issuer.token(&claims)
    }

    /// What a client of the proxy uses.
    pub(crate) fn client_kubeconfig(&self, serving: &Serving) -> PathBuf {
        let token = json!({"token": self.token(&json!({}))});
        self.kubeconfig("client.kubeconfig", &format!("https://{}", serving.address), &token)
    }

    pub(crate) fn kubectl(&self, serving: &Serving, arguments: &[&str]) -> Program {
        let kubectl = tools::kubectl().unwrap();
        Program::new(kubectl)
            .arguments(arguments)
            .own_environment()
            .variable("PATH", "/usr/bin:/bin")
            .variable("HOME", self.dir.path())
            .variable("KUBECONFIG", self.client_kubeconfig(serving))
            .directory(self.dir.path())
    }

    pub(crate) async fn get(&self, serving: &Serving, path: &str, token: &str) -> Reply {
        let request = http::Request::get(format!("https://{}{path}", serving.address))
            .header("authorization", format!("Bearer {token}"))
            .body(bytes::Bytes::new())
            .unwrap();
        Box::pin(HttpClient::trusting(&self.ca).send(request)).await.unwrap()
    }

    /// Every request came with the proxy's own certificate, as ann and her groups, and with no token.
    pub(crate) fn assert_all_as_ann(&self) {
        let requests = self.api.requests();
        assert!(!requests.is_empty());
        for request in requests {
            let client = request.client.as_ref().map(|client| client.common_name.as_str());
            assert_eq!(client, Some("navicert-proxy"), "{}", request.target);
            assert_eq!(request.header("authorization"), None, "{}", request.target);
            assert_eq!(request.header_values("impersonate-user"), ["corp:ann"], "{}", request.target);
            assert_eq!(
                request.header_values("impersonate-group"),
                ["corp:dev", "corp:ops"],
                "{}",
                request.target
            );
        }
    }
}

impl Serving {
    /// Sends a request to the health listener.
    pub(crate) async fn inspect(&self, path: &str) -> Reply {
        let request =
            http::Request::get(format!("http://{}{path}", self.health)).body(bytes::Bytes::new()).unwrap();
        Box::pin(HttpClient::trusting(&Ca::new("unused")).send(request)).await.unwrap()
    }

    pub(crate) async fn end(self) {
        self.program.signal("TERM");
        let outcome = self.program.wait().await;
        assert_eq!(outcome.code(), Some(0), "{}", text(&outcome.stdout));
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
