//! The webhook with real sockets, a real issuer and real files: what is answered, to whom, and what never is.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

mod abuse;
mod answers;
mod auth;
mod client;
mod flood;
mod over_time;
mod shapes;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_authn::config::{Reloader, Sources};
use navicert_authn::jwks::Around;
use navicert_authn::metrics::Metrics;
use navicert_client::transport::{ProxyEnvironment, TokioTimer};
use navicert_server::Limits;
use navicert_server::audit::{Audit, Target};
use navicert_server::callers::Callers;
use navicert_server::fetch::HttpFetch;
use navicert_server::files::Following;
use navicert_server::health::{AwaitedIssuers, Health, Issuers};
use navicert_server::keeping::Keeping;
use navicert_server::metrics::{Registry, Traffic};
use navicert_server::serving::{Bound, Ending, House, Server};
use navicert_server::tls::{Tls, TlsFiles};
use navicert_server::webhook::{Settings, Webhook};
use navicert_testkit::http_client::Reply;
use navicert_testkit::{Ca, HttpClient, Identity, Issuer, wait};
use navicert_types::{Clock as _, SystemClock, Timestamp};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A webhook in service, with its issuer.
struct Rig {
    ca: Ca,
    issuer: Issuer,
    folder: tempfile::TempDir,
    address: SocketAddr,
    reloader: Arc<Reloader>,
    health: Health,
    figures: Registry,
    following: Following,
    keeping: Keeping,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

/// What differs between webhooks.
struct Options {
    settings: Settings,
    limits: Limits,
    callers: Callers,
    client_authority: Option<Ca>,
    /// Waits until the issuer's tokens can be judged.
    is_ready: bool,
    ending: Ending,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            settings: Settings::default(),
            limits: Limits::default(),
            callers: Callers::anybody(),
            client_authority: None,
            is_ready: true,
            ending: Ending::default(),
        }
    }
}

impl Rig {
    async fn start(options: Options) -> Self {
        let ca = Ca::new("webhook");
        let issuer = Issuer::start(&ca);
        Rig::with(ca, issuer, options).await
    }

    async fn with(ca: Ca, issuer: Issuer, options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("config.yaml"), config(&[(&issuer.issuer_url(), &ca)])).unwrap();
        write_identity(folder.path(), &ca.server().issue());
        let client_authority = options.client_authority.map(|authority| {
            fs::write(at("clients.pem"), authority.pem()).unwrap();
            at("clients.pem")
        });
        let files = TlsFiles { certificate: at("tls.crt"), key: at("tls.key"), client_authority };
        let (clock, timer) = (Arc::new(SystemClock), Arc::new(TokioTimer));
        let tls = Tls::open(files, clock.clone()).unwrap();
        let metrics = Arc::new(Metrics::new("test", clock.clone()));
        let around = Around {
            fetch: Arc::new(HttpFetch::new(ProxyEnvironment::default())),
            clock: clock.clone(),
            random: Arc::new(|| 0.5),
            recorder: Arc::clone(&metrics) as _,
        };
        let sources = Sources { config: at("config.yaml").into(), side_car: None, profile: None };
        let reloader = Arc::new(Reloader::open(sources, around).unwrap());
        let audit = Audit::to(Target::File(at("audit.log")), clock.clone()).unwrap();
        let (health, figures) = (Health::default(), Registry::default());
        health.join(Arc::new(Issuers::new(Arc::clone(reloader.live()), AwaitedIssuers::All)));
        figures.join(metrics);
        figures.join(Arc::clone(&tls) as _);
        let live = Arc::clone(reloader.live());
        let handler = Arc::new(Webhook::new(live, options.callers, options.settings, audit, clock.clone()));
        let bound = Bound::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = bound.address();
        let server = Server {
            bound,
            security: tls.security(),
            limits: options.limits,
            traffic: Traffic::new("webhook", clock),
            handler,
        };
        let keeping = Keeping::start(Arc::clone(&reloader), Arc::clone(&timer) as _);
        let following = Following::start(vec![tls as _], Arc::clone(&timer) as _);
        let house = House { health: health.clone(), figures: figures.clone(), ending: options.ending, timer };
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            house.serve(server, None, stopped).await.unwrap();
        });
        let rig = Rig {
            ca,
            issuer,
            folder,
            address,
            reloader,
            health,
            figures,
            following,
            keeping,
            stop: Some(stop),
            served,
        };
        if options.is_ready {
            rig.until("the issuer is ready", || rig.health.look().0).await;
        }
        rig
    }

    async fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let asking = async {
            while !is_so() {
                tokio::task::yield_now().await;
            }
        };
        wait::within(what, asking).await;
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    fn client(&self) -> HttpClient {
        HttpClient::trusting(&self.ca)
    }

    fn token(&self, change: Value) -> String {
        self.issuer.token(&claims(&self.issuer, change))
    }

    /// A good token of ann's.
    fn ann(&self) -> String {
        self.token(json!({}))
    }

    async fn review(&self, token: &str) -> Reply {
        self.client().post_json(&self.url("/authenticate"), &review("v1", token, &[])).await.unwrap()
    }

    async fn status(&self, token: &str) -> Value {
        let reply = self.review(token).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["status"].clone()
    }

    /// Every decision so far.
    fn audit(&self) -> String {
        fs::read_to_string(self.path("audit.log")).unwrap()
    }
}

/// What a good token of ann's says.
fn claims(issuer: &Issuer, change: Value) -> Value {
    let mut claims = issuer.claims("ann", "aud1", SystemClock.now());
    let more = json!({"jti": "j-1", "groups": ["dev", "ops, all"], "id": "u-1", "team": "a"});
    for changes in [more, change] {
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
    }
    claims
}

fn now() -> Timestamp {
    SystemClock.now()
}

fn config(issuers: &[(&str, &Ca)]) -> String {
    let jwt: Vec<Value> = issuers
        .iter()
        .map(|(url, ca)| {
            json!({
                "issuer": {"url": url, "audiences": ["aud1"], "certificateAuthority": ca.pem()},
                "claimValidationRules": [{"expression": "!has(claims.evil)", "message": "no evil here"}],
                "claimMappings": {
                    "username": {"claim": "sub", "prefix": "oidc:"},
                    "groups": {"claim": "groups", "prefix": ""},
                    "uid": {"claim": "id"},
                    "extra": [{"key": "example.org/team", "valueExpression": "claims.team"}],
                },
            })
        })
        .collect();
    json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt})
        .to_string()
}

fn review(version: &str, token: &str, audiences: &[&str]) -> Value {
    let mut review = json!({
        "kind": "TokenReview", "apiVersion": format!("authentication.k8s.io/{version}"), "metadata": {},
        "spec": {"token": token}, "status": {"user": {}},
    });
    if !audiences.is_empty() {
        review["spec"]["audiences"] = json!(audiences);
    }
    review
}

fn write_identity(folder: &Path, identity: &Identity) {
    // The key first: a pair that does not match is not taken.
    fs::write(folder.join("tls.key"), identity.key_pem()).unwrap();
    fs::write(folder.join("tls.crt"), identity.chain_pem()).unwrap();
}
