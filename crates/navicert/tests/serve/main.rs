//! `navicert serve webhook` as a process: signals, reloads, output, secrets, and Debian's nginx as a client.
#![cfg(unix)]
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests; a broken set-up should stop the test"
)]

mod confinement;
mod floods;
mod load;
mod nginx;
mod pod_certificates;
mod process;
mod secrets;

use std::fs;
use std::path::PathBuf;

use navicert_testkit::cli::output_schema;
use navicert_testkit::cli::program::Running;
use navicert_testkit::{Ca, HttpClient, Issuer, Program, wait};
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");

/// An issuer, and a directory with everything a webhook needs.
struct Setup {
    ca: Ca,
    issuer: Issuer,
    dir: tempfile::TempDir,
}

/// A running webhook.
struct Serving {
    running: Running,
    listen: String,
    health: String,
}

impl Setup {
    fn new() -> Self {
        let ca = Ca::new("serve");
        let setup = Setup { issuer: Issuer::start(&ca), ca, dir: tempfile::tempdir().unwrap() };
        setup.write("config.yaml", &setup.config("oidc:"));
        setup.write_identity(&setup.ca);
        setup
    }

    fn config(&self, prefix: &str) -> String {
        json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{
                "issuer": {
                    "url": self.issuer.issuer_url(), "audiences": ["aud1"], "certificateAuthority": self.ca.pem(),
                },
                "claimMappings": {
                    "username": {"claim": "sub", "prefix": prefix},
                    "groups": {"claim": "groups", "prefix": ""},
                },
            }],
        })
        .to_string()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn write_identity(&self, ca: &Ca) {
        let identity = ca.server().issue();
        self.write("tls.key", &identity.key_pem());
        self.write("tls.crt", &identity.chain_pem());
    }

    fn token(&self, more: &Value) -> String {
        let mut claims = self.issuer.claims("ann", "aud1", SystemClock.now());
        claims["groups"] = json!(["dev", "ops"]);
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        self.issuer.token(&claims)
    }

    /// Starts a webhook and waits until it is ready.
    async fn serve(&self, arguments: &[&str]) -> Serving {
        self.serve_by(Program::new(NAVICERT), arguments).await
    }

    /// The same by a program that starts it.
    async fn serve_by(&self, program: Program, arguments: &[&str]) -> Serving {
        let running = program
            .arguments(["serve", "webhook", "-o", "json", "--listen", "127.0.0.1:0"])
            .arguments(["--health-listen", "127.0.0.1:0", "--authentication-config", "config.yaml"])
            .arguments(arguments)
            .directory(self.dir.path())
            .own_environment()
            .start_running()
            .unwrap();
        let said = running.wait_for_output("\"server\":\"webhook\"}\n").await;
        let line = said.lines().find(|line| line.starts_with("{\"health\"")).unwrap();
        let told: Value = serde_json::from_str(line).unwrap();
        output_schema::check_value("serve", &told).unwrap();
        let address = |name: &str| told[name].as_str().unwrap().to_owned();
        let serving = Serving { listen: address("listen"), health: address("health"), running };
        let ready = async {
            while serving.inspect("/readyz").await.0 != 200 {
                tokio::task::yield_now().await;
            }
        };
        wait::within("readiness", ready).await;
        serving
    }
}

/// Flags for TLS without client authentication.
const OPEN: &[&str] =
    &["--tls-cert-file", "tls.crt", "--tls-private-key-file", "tls.key", "--allow-any-caller"];

impl Serving {
    async fn inspect(&self, path: &str) -> (u16, String) {
        let any = HttpClient::trusting(&Ca::new("unused"));
        let reply = Box::pin(any.get(&format!("http://{}{path}", self.health))).await.unwrap();
        (reply.status.as_u16(), reply.text().to_owned())
    }

    /// A metric of the webhook's listener.
    async fn figure(&self, name: &str) -> usize {
        let (_, page) = self.inspect("/metrics").await;
        let name = format!("{name}{{server=\"webhook\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
    }

    /// The name the webhook gives a token's user, and empty if none.
    async fn name(&self, ca: &Ca, token: &str) -> Option<String> {
        let review = json!({
            "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token},
        });
        let url = format!("https://{}/authenticate", self.listen);
        let reply = Box::pin(HttpClient::trusting(ca).post_json(&url, &review)).await.ok()?;
        assert_eq!(reply.status, 200, "{}", reply.text());
        Some(reply.json()["status"]["user"]["username"].as_str().unwrap_or_default().to_owned())
    }

    /// Repeats the request until it gets this response.
    async fn until(&self, ca: &Ca, token: &str, expected: &str) {
        let asking = async {
            while self.name(ca, token).await.as_deref() != Some(expected) {
                tokio::task::yield_now().await;
            }
        };
        wait::within(&format!("`{expected}`"), asking).await;
    }
}
