//! Those that verify tokens: kube-apiserver, and a webhook of each profile, all with the same issuers.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use navicert_testkit::cli::program::Running;
use navicert_testkit::k8s::cluster::Cluster;
use navicert_testkit::{Ca, HttpClient, Program};
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;

use crate::issuers::Issuer;

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");

/// Interval between two attempts with the same token.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a token may be rejected before the test fails. Longer than keys are cached.
const MAX_REJECTED: Duration = Duration::from_secs(180);

/// When each side accepted a token, from the beginning of a situation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accepted {
    pub(crate) kube_apiserver: Duration,
    pub(crate) kube: Duration,
    pub(crate) hardened: Duration,
}

/// All three; clones are the same.
#[derive(Clone)]
pub(crate) struct Sides(Arc<Inner>);

struct Inner {
    kube_apiserver: Side,
    kube: Side,
    hardened: Side,
    _webhooks: [Running; 2],
    _dir: tempfile::TempDir,
}

/// One that verifies tokens.
#[derive(Clone)]
enum Side {
    ApiServer { client: HttpClient, url: String },
    Webhook { client: HttpClient, url: String },
}

impl Sides {
    /// Adds the issuers to the API server's configuration, starts a webhook of each profile, and waits until every side accepts a
    /// token of every issuer.
    pub(crate) async fn start(cluster: &Cluster, ca: &Ca, issuers: &[&Issuer]) -> Self {
        let authenticators: Vec<Value> = issuers.iter().map(|issuer| issuer.authenticator(ca)).collect();
        configure(cluster.authentication_config(), &authenticators);
        let dir = tempfile::tempdir().unwrap();
        let config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": authenticators,
        });
        fs::write(dir.path().join("config.yaml"), config.to_string()).unwrap();
        let (kube_webhook, kube) = webhook(dir.path(), "kube").await;
        let (hardened_webhook, hardened) = webhook(dir.path(), "hardened").await;
        let client = HttpClient::trusting_pem(&fs::read(cluster.ca()).unwrap()).unwrap();
        let kube_apiserver = Side::ApiServer { client, url: format!("{}/version", cluster.server()) };
        let sides = Sides(Arc::new(Inner {
            kube_apiserver,
            kube,
            hardened,
            _webhooks: [kube_webhook, hardened_webhook],
            _dir: dir,
        }));
        for issuer in issuers {
            sides.accept(&issuer.token().await, SystemClock.monotonic()).await;
        }
        sides
    }

    /// Sends the token to every side until each has accepted it. Times count from `start`, a reading of the monotonic clock.
    pub(crate) async fn accept(&self, token: &str, start: Duration) -> Accepted {
        let (kube_apiserver, kube, hardened) = tokio::join!(
            self.0.kube_apiserver.accept(token, start),
            self.0.kube.accept(token, start),
            self.0.hardened.accept(token, start),
        );
        Accepted { kube_apiserver, kube, hardened }
    }
}

impl Side {
    async fn accept(&self, token: &str, start: Duration) -> Duration {
        let mut interval = tokio::time::interval(POLL_INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let polling = async {
            loop {
                interval.tick().await;
                if Box::pin(self.accepts(token)).await {
                    return SystemClock.monotonic() - start;
                }
            }
        };
        let accepted = tokio::time::timeout(MAX_REJECTED, polling).await;
        accepted.unwrap_or_else(|_| panic!("a token is still rejected by {}", self.url()))
    }

    async fn accepts(&self, token: &str) -> bool {
        match self {
            Side::ApiServer { client, url } => {
                let request = Request::get(url).header("authorization", format!("Bearer {token}"));
                let reply = client.send(request.body(Bytes::new()).unwrap()).await.unwrap();
                assert!(matches!(reply.status.as_u16(), 200 | 401), "{}", reply.text());
                reply.status == 200
            }
            Side::Webhook { client, url } => {
                let review = json!({
                    "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token},
                });
                let reply = client.post_json(url, &review).await.unwrap();
                assert_eq!(reply.status, 200, "{}", reply.text());
                reply.json().pointer("/status/authenticated") == Some(&json!(true))
            }
        }
    }

    fn url(&self) -> &str {
        match self {
            Side::ApiServer { url, .. } | Side::Webhook { url, .. } => url,
        }
    }
}

/// Adds authenticators to the API server's file, which it reads again. The rest stays: it may not change while it runs.
fn configure(path: &Path, authenticators: &[Value]) {
    let before = fs::read_to_string(path).unwrap();
    let (head, tail) = before.split_once("jwt:\n").unwrap();
    let added: String = authenticators.iter().map(|authenticator| format!("- {authenticator}\n")).collect();
    let next = path.with_extension("next");
    fs::write(&next, format!("{head}jwt:\n{added}{tail}")).unwrap();
    fs::rename(next, path).unwrap();
}

async fn webhook(dir: &Path, profile: &str) -> (Running, Side) {
    let running = Program::new(NAVICERT)
        .arguments(["serve", "webhook", "-o", "json", "--authentication-config", "config.yaml"])
        .arguments(["--profile", profile, "--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"])
        .arguments(["--allow-any-caller", "--plain-http"])
        .directory(dir)
        .own_environment()
        .start_running()
        .unwrap();
    let output = running.wait_for_output("\"server\":\"webhook\"}\n").await;
    let line = output.lines().find(|line| line.starts_with("{\"health\"")).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    let listen = line.get("listen").and_then(Value::as_str).unwrap();
    let client = HttpClient::trusting(&Ca::new("unused"));
    (running, Side::Webhook { client, url: format!("http://{listen}/authenticate") })
}
