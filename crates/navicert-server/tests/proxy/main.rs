//! The authenticating proxy over real sockets: an issuer that signs tokens, a client, and an API server that records
//! requests. The rows PV, B and A are those of structured-authentication.md.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests; a broken set-up should stop the test"
)]

mod constrained_impersonation;
mod denials;
mod identity;
mod impersonation;
mod life;
mod permissions;
mod service_accounts;
mod shapes;
mod stream_ends;
mod streams;
mod upgrades;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use http::Request;
use http::header::HeaderValue;
use navicert_authn::config::{AuthnReloader, BaseProfile, ConfigOrigin, ConfigSources};
use navicert_authn::jwks::JwksContext;
use navicert_client::credential::{Credential, StaticCredential};
use navicert_client::transport::{self, ProxyEnvironment, Timer, TokioTimer, Transport, Trust};
use navicert_server::ServerLimits;
use navicert_server::audit::Reason;
use navicert_server::background_tasks::BackgroundTasks;
use navicert_server::fetch::HttpFetch;
use navicert_server::listener::{self, Security, Socket};
use navicert_server::metrics::ListenerMetrics;
use navicert_server::proxy::service_accounts::TokenReviewer;
use navicert_server::proxy::settings::{ProxySettings, SelfCheck};
use navicert_server::proxy::{Proxy, ProxyParts, RequestObserver, RequestOutcome};
use navicert_testkit::net::http_client::Reply;
use navicert_testkit::net::raw::status;
use navicert_testkit::{ApiServer, Ca, HttpClient, Issuer, RawClient, wait};
use navicert_types::{Clock, SystemClock};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;

/// Credential of the proxy for the API server.
const OWN: &str = "the-proxys-own-token";

/// A running proxy.
struct Front {
    ca: Ca,
    issuer: Issuer,
    api: ApiServer,
    address: SocketAddr,
    proxy: Arc<Proxy>,
    reloader: Arc<AuthnReloader>,
    observer: Arc<Recorded>,
    clock: Arc<dyn Clock>,
    dir: TempDir,
    _tasks: BackgroundTasks,
    stop: watch::Sender<bool>,
}

/// Deviations from the defaults.
struct Plan {
    settings: ProxySettings,
    profile: BaseProfile,
    /// Lines of the `NavicertConfiguration` after its type.
    navicert_config: String,
    anonymous: Option<Value>,
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
    reviewer: Option<Arc<dyn TokenReviewer>>,
    limits: ServerLimits,
    upstream_http2: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            settings: ProxySettings { self_check: SelfCheck::Off, ..ProxySettings::default() },
            profile: BaseProfile::Hardened,
            navicert_config: String::new(),
            anonymous: None,
            clock: Arc::new(SystemClock),
            timer: Arc::new(TokioTimer),
            reviewer: None,
            limits: ServerLimits::for_proxy(),
            upstream_http2: true,
        }
    }
}

/// Records all outcomes.
#[derive(Debug, Default)]
struct Recorded {
    requests: Mutex<Vec<String>>,
    streams: Mutex<Vec<String>>,
    traceparent: Mutex<Option<String>>,
}

impl RequestObserver for Recorded {
    fn observe(&self, seen: &RequestOutcome<'_>) {
        self.requests.lock().unwrap().push(line(seen));
        *self.traceparent.lock().unwrap() = seen.traceparent.map(|parent| parent.as_str().to_owned());
    }

    fn stream_ended(&self, seen: &RequestOutcome<'_>) {
        self.streams.lock().unwrap().push(line(seen));
    }
}

fn line(seen: &RequestOutcome<'_>) -> String {
    assert!(seen.source.is_some(), "every outcome has a source");
    format!(
        "{} {} {} {} {}",
        seen.code,
        seen.user.map_or("-", |who| who.username),
        seen.acting_as.unwrap_or("-"),
        seen.reason.map_or("-", Reason::name),
        seen.uri.path(),
    )
}

impl Recorded {
    fn last(&self) -> String {
        self.requests.lock().unwrap().last().cloned().unwrap_or_default()
    }

    /// The `traceparent` of the last request.
    fn last_traceparent(&self) -> Option<String> {
        self.traceparent.lock().unwrap().clone()
    }

    /// The streams that ended early.
    fn streams(&self) -> Vec<String> {
        self.streams.lock().unwrap().clone()
    }
}

impl Front {
    async fn start() -> Self {
        Front::with(Plan::default()).await
    }

    async fn set(settings: ProxySettings) -> Self {
        let settings = ProxySettings { self_check: SelfCheck::Off, ..settings };
        Front::with(Plan { settings, ..Plan::default() }).await
    }

    async fn with(plan: Plan) -> Self {
        let (ca, dir) = (Ca::new("front"), tempfile::tempdir().unwrap());
        let (issuer, api) = (Issuer::start(&ca), ApiServer::start(&ca));
        api.accept_token(OWN, "proxy", &[]);
        let config = dir.path().join("authentication.yaml");
        fs::write(&config, configuration(&[(&issuer.issuer_url(), &ca)], plan.anonymous.as_ref())).unwrap();
        let navicert_config = dir.path().join("navicert.yaml");
        let head = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\n";
        let own = plan.navicert_config.replace("ISSUER", &issuer.issuer_url());
        fs::write(&navicert_config, format!("{head}{own}")).unwrap();
        let sources = ConfigSources {
            config: ConfigOrigin::File(config),
            navicert_config: Some(navicert_config),
            profile: Some(plan.profile),
            kube_version: None,
        };
        let client_context = JwksContext {
            fetch: Arc::new(HttpFetch::new(ProxyEnvironment::default())),
            clock: Arc::clone(&plan.clock),
            random: Arc::new(|| 0.5),
            recorder: Arc::new(()),
        };
        let reloader = Arc::new(AuthnReloader::open(sources, client_context).unwrap());
        let tasks = BackgroundTasks::start(Arc::clone(&reloader), Arc::new(TokioTimer));
        let observer = Arc::new(Recorded::default());
        let parts = ProxyParts {
            authenticator: Arc::clone(reloader.authenticator()),
            upstream: way(&api, &ca, Some(OWN), plan.upstream_http2),
            anonymous_upstream: Some(way(&api, &ca, None, plan.upstream_http2)),
            reviewer: plan.reviewer,
            observer: Arc::clone(&observer) as _,
            clock: Arc::clone(&plan.clock),
            timer: plan.timer,
        };
        let proxy = Arc::new(Proxy::new(plan.settings, parts));
        let (address, stop) = serve(&ca, &proxy, plan.limits);
        let front = Front {
            ca,
            issuer,
            api,
            address,
            proxy,
            reloader,
            observer,
            clock: plan.clock,
            dir,
            _tasks: tasks,
            stop,
        };
        front.ready().await;
        front
    }

    /// Waits for the issuer's keys.
    async fn ready(&self) {
        let ready = async {
            while !self.reloader.authenticator().health().iter().all(|(_, health)| health.is_ready) {
                tokio::task::yield_now().await;
            }
        };
        wait::within("the issuer's keys", ready).await;
    }

    /// A token for this subject with these additional claims.
    fn token(&self, subject: &str, more: &Value) -> String {
        let mut claims = self.issuer.claims(subject, "kubernetes", self.clock.now());
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        self.issuer.token(&claims)
    }

    fn ann(&self) -> String {
        self.token("ann", &json!({"groups": ["dev", "a,b"], "uid": "7", "foo": ["x", "y"], "jti": "4f2a"}))
    }

    /// A fresh HTTP/1.1 connection.
    async fn raw(&self) -> RawClient {
        RawClient::connect_tls(self.address, &self.ca, None, &["http/1.1"]).await
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    fn client(&self) -> HttpClient {
        HttpClient::trusting(&self.ca)
    }

    /// A GET with this token and these headers.
    fn request(&self, path: &str, token: &str, headers: &[(&str, &str)]) -> Request<bytes::Bytes> {
        let request = Request::get(self.url(path)).header("authorization", format!("Bearer {token}"));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(bytes::Bytes::new()).unwrap()
    }

    async fn get(&self, path: &str, token: &str) -> Reply {
        self.client().send(self.request(path, token, &[])).await.unwrap()
    }

    /// A request head with `Host` and these lines.
    fn head(&self, request: &str, lines: &[&str]) -> String {
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        format!("{request} HTTP/1.1\r\nHost: {}\r\n{lines}\r\n", self.address)
    }

    /// Repeats the request until it has this status.
    async fn until(&self, code: u16, token: &str) {
        let asking = async { while Box::pin(self.get("/api", token)).await.status.as_u16() != code {} };
        wait::within(&format!("a {code}"), Box::pin(asking)).await;
    }
}

/// A transport to the API server with this token, or without one.
fn way(api: &ApiServer, ca: &Ca, token: Option<&str>, http2: bool) -> Transport {
    let settings = transport::TransportSettings {
        trust: Trust::Pem(ca.pem().into_bytes()),
        compression: false,
        http2,
        ..transport::TransportSettings::new(api.url())
    };
    let authorization = token.map(|token| {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
        value.set_sensitive(true);
        value
    });
    let credential = Credential { authorization, ..Credential::anonymous() };
    Transport::new(
        settings,
        Arc::new(StaticCredential::new(credential)),
        navicert_client::ClientContext::system(),
    )
    .unwrap()
}

/// Maps `sub` to the user name; everything else is optional.
fn configuration(issuers: &[(&str, &Ca)], anonymous: Option<&Value>) -> String {
    let authenticator = |(url, ca): &(&str, &Ca)| {
        json!({
            "issuer": {"url": url, "audiences": ["kubernetes"], "certificateAuthority": ca.pem()},
            "claimMappings": {
                "username": {"claim": "sub", "prefix": ""},
                "groups": {"claim": "groups", "prefix": ""},
                "uid": {"expression": "claims.?uid.orValue('')"},
                "extra": [{"key": "example.org/foo", "valueExpression": "claims.?foo.orValue([])"}],
            },
        })
    };
    let jwt: Vec<Value> = issuers.iter().map(authenticator).collect();
    let mut config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt});
    if let Some(anonymous) = anonymous {
        config["anonymous"] = anonymous.clone();
    }
    config.to_string()
}

fn serve(ca: &Ca, proxy: &Arc<Proxy>, limits: ServerLimits) -> (SocketAddr, watch::Sender<bool>) {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let security = Security::fixed(ca.server().issue().server_config(&["h2", "http/1.1"]));
    let traffic = ListenerMetrics::new("proxy", Arc::new(SystemClock));
    let socket = Socket { listener: tcp, security, limits, metrics: traffic };
    tokio::spawn(listener::serve(socket, Arc::clone(proxy), stopped));
    (address, stop)
}
