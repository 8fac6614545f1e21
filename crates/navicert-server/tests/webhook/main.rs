//! The webhook with real sockets, a real issuer and real files.

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

use navicert_authn::KubeVersion;
use navicert_authn::config::{AuthnReloader, BaseProfile, ConfigSources};
use navicert_authn::jwks::JwksContext;
use navicert_authn::metrics::AuthnMetrics;
use navicert_client::transport::{ProxyEnvironment, TokioTimer};
use navicert_server::ServerLimits;
use navicert_server::audit::{AuditLog, AuditTarget};
use navicert_server::background_tasks::BackgroundTasks;
use navicert_server::client_auth::ClientAuth;
use navicert_server::fetch::HttpFetch;
use navicert_server::health::{Health, IssuersCheck, RequiredIssuers};
use navicert_server::metrics::{ListenerMetrics, Registry};
use navicert_server::reload::ReloadTask;
use navicert_server::serving::{BoundListener, Server, ServerRuntime, ShutdownTiming};
use navicert_server::tls::{ServerTls, TlsFiles};
use navicert_server::webhook::{Webhook, WebhookSettings};
use navicert_testkit::net::http_client::Reply;
use navicert_testkit::{Ca, HttpClient, Identity, Issuer, wait};
use navicert_types::{Clock as _, SystemClock, Timestamp};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A running webhook, with its issuer.
struct Fixture {
    ca: Ca,
    issuer: Issuer,
    dir: tempfile::TempDir,
    address: SocketAddr,
    reloader: Arc<AuthnReloader>,
    health: Health,
    metrics: Registry,
    reload_task: ReloadTask,
    tasks: BackgroundTasks,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

/// Deviations from the defaults.
struct Options {
    settings: WebhookSettings,
    limits: ServerLimits,
    client_auth: ClientAuth,
    client_authority: Option<Ca>,
    profile: Option<BaseProfile>,
    kube_version: Option<KubeVersion>,
    /// Waits until the issuer's tokens can be verified.
    is_ready: bool,
    shutdown: ShutdownTiming,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            settings: WebhookSettings::default(),
            limits: ServerLimits::default(),
            client_auth: ClientAuth::allow_all(),
            client_authority: None,
            profile: None,
            kube_version: None,
            is_ready: true,
            shutdown: ShutdownTiming::default(),
        }
    }
}

impl Fixture {
    async fn start(options: Options) -> Self {
        let ca = Ca::new("webhook");
        let issuer = Issuer::start(&ca);
        Fixture::with(ca, issuer, options).await
    }

    async fn with(ca: Ca, issuer: Issuer, options: Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("config.yaml"), config(&[(&issuer.issuer_url(), &ca)])).unwrap();
        write_identity(dir.path(), &ca.server().issue());
        let client_authority = options.client_authority.map(|authority| {
            fs::write(at("clients.pem"), authority.pem()).unwrap();
            at("clients.pem")
        });
        let files = TlsFiles { certificate: at("tls.crt"), key: at("tls.key"), client_authority };
        let (clock, timer) = (Arc::new(SystemClock), Arc::new(TokioTimer));
        let tls = ServerTls::open(files, clock.clone()).unwrap();
        let authn_metrics = Arc::new(AuthnMetrics::new("test", clock.clone()));
        let around = JwksContext {
            fetch: Arc::new(HttpFetch::new(ProxyEnvironment::default())),
            clock: clock.clone(),
            random: Arc::new(|| 0.5),
            recorder: Arc::clone(&authn_metrics) as _,
        };
        let sources = ConfigSources {
            config: at("config.yaml").into(),
            navicert_config: None,
            profile: options.profile,
            kube_version: options.kube_version,
        };
        let reloader = Arc::new(AuthnReloader::open(sources, around).unwrap());
        let audit = AuditLog::open(AuditTarget::File(at("audit.log")), clock.clone()).unwrap();
        audit.start().unwrap();
        let (health, metrics) = (Health::default(), Registry::default());
        health.register(Arc::new(IssuersCheck::new(
            Arc::clone(reloader.authenticator()),
            RequiredIssuers::All,
        )));
        metrics.register(authn_metrics);
        metrics.register(Arc::clone(&tls) as _);
        let authenticator = Arc::clone(reloader.authenticator());
        let handler = Arc::new(Webhook::new(
            authenticator,
            options.client_auth,
            options.settings,
            audit,
            clock.clone(),
        ));
        let bound = BoundListener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = bound.address();
        let server = Server {
            bound,
            security: tls.security(),
            limits: options.limits,
            metrics: ListenerMetrics::new("webhook", clock),
            handler,
        };
        let tasks = BackgroundTasks::start(Arc::clone(&reloader), Arc::clone(&timer) as _);
        let reload_task = ReloadTask::start(vec![tls as _], Arc::clone(&timer) as _);
        let runtime = ServerRuntime {
            health: health.clone(),
            metrics: metrics.clone(),
            shutdown: options.shutdown,
            timer,
        };
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            runtime.serve(server, None, stopped).await.unwrap();
        });
        let fixture = Fixture {
            ca,
            issuer,
            dir,
            address,
            reloader,
            health,
            metrics,
            reload_task,
            tasks,
            stop: Some(stop),
            served,
        };
        if options.is_ready {
            fixture.until("the issuer is ready", || fixture.health.report().0).await;
        }
        fixture
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
        self.dir.path().join(name)
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

    /// A valid token of user ann.
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

    /// All decisions in the audit log.
    fn audit(&self) -> String {
        fs::read_to_string(self.path("audit.log")).unwrap()
    }
}

/// Claims of a valid token of user ann.
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

fn write_identity(dir: &Path, identity: &Identity) {
    // The key first: a mismatched pair is not loaded.
    fs::write(dir.join("tls.key"), identity.key_pem()).unwrap();
    fs::write(dir.join("tls.crt"), identity.chain_pem()).unwrap();
}
