//! kube-rs through navicert's proxy, with a token and with an exec plugin: a list and a watch, as the mapped user.
#![cfg(unix)]
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "test helpers; a failed setup stops the test"
)]

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::config::KubeConfigOptions;
use navicert_authn::config::{AuthnReloader, ConfigOrigin, ConfigSources};
use navicert_authn::jwks::JwksContext;
use navicert_client::credential::{Credential, StaticCredential};
use navicert_client::exec::AuthenticatorRegistry;
use navicert_client::transport::{self, ProxyEnvironment, TokioTimer, Transport, Trust};
use navicert_client::{Client, ConfigOptions};
use navicert_server::ServerLimits;
use navicert_server::audit::AuditLog;
use navicert_server::background_tasks::BackgroundTasks;
use navicert_server::fetch::HttpFetch;
use navicert_server::listener::{self, Security, Socket};
use navicert_server::metrics::ListenerMetrics;
use navicert_server::proxy::settings::{ProxySettings, SelfCheck};
use navicert_server::proxy::{Proxy, ProxyParts};
use navicert_testkit::{ApiServer, Ca, FakeExecPlugin, Issuer, Kubeconfig, wait};
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};
use tokio::sync::watch;

/// An issuer, an API server, and a proxy that authenticates the issuer's tokens and impersonates their users.
struct ProxyFixture {
    ca: Ca,
    issuer: Arc<Issuer>,
    api: ApiServer,
    address: SocketAddr,
    dir: tempfile::TempDir,
    _keeping: BackgroundTasks,
    _stop: watch::Sender<bool>,
}

impl ProxyFixture {
    async fn start() -> Self {
        let (ca, dir) = (Ca::new("kube-rs"), tempfile::tempdir().unwrap());
        let (issuer, api) = (Arc::new(Issuer::start(&ca)), ApiServer::start(&ca));
        api.accept_everyone();
        let reloader = reloader(&issuer, &ca, dir.path());
        let keeping = BackgroundTasks::start(Arc::clone(&reloader), Arc::new(TokioTimer));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let traffic = ListenerMetrics::new("proxy", Arc::new(SystemClock));
        let security = Security::fixed(ca.server().issue().server_config(&["h2", "http/1.1"]));
        let socket = Socket { listener, security, limits: ServerLimits::default(), metrics: traffic };
        tokio::spawn(listener::serve(socket, Arc::new(proxy(&reloader, &api, &ca)), stopped));
        let known = async {
            while !reloader.authenticator().health().iter().all(|(_, health)| health.is_ready) {
                tokio::task::yield_now().await;
            }
        };
        wait::within("the issuer's keys", known).await;
        ProxyFixture { ca, issuer, api, address, dir, _keeping: keeping, _stop: stop }
    }

    fn kubeconfig(&self, user: &Value) -> String {
        Kubeconfig::new(format!("https://{}", self.address)).ca(&self.ca).user(user.clone()).to_string()
    }

    /// Unmodified kube-rs.
    async fn stock(&self, user: &Value) -> kube::Client {
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&self.kubeconfig(user)).unwrap();
        let options = KubeConfigOptions::default();
        kube::Client::try_from(kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap())
            .unwrap()
    }

    /// kube-rs with navicert's transport.
    fn ours(&self, user: &Value) -> kube::Client {
        let path = self.dir.path().join("config");
        fs::write(&path, self.kubeconfig(user)).unwrap();
        let environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
        let config = ConfigOptions::new(environment, "/").kubeconfig(&path).resolve().unwrap();
        let builder = Client::builder(config).registry(AuthenticatorRegistry::new());
        navicert_kube::client(builder.build().unwrap(), "default")
    }

    /// Lists and watches; every request reaches the API server as ann, without her token.
    async fn list_and_watch(&self, client: kube::Client) {
        let pod = self.api.add_pod("web", false);
        let pods: Api<Pod> = Api::default_namespaced(client);
        let listed = pods.list(&ListParams::default()).await.unwrap();
        assert_eq!(
            listed.items.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect::<Vec<_>>(),
            ["web"]
        );
        let mut events = pods.watch(&WatchParams::default(), "1").await.unwrap().boxed();
        pod.events.wait_for_opened(1).await;
        let metadata = json!({"name": "new", "namespace": "default", "resourceVersion": "2"});
        pod.events.event(
            &json!({"type": "ADDED", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}}),
        );
        let event = wait::within("an event", events.try_next()).await.unwrap();
        assert!(matches!(event, Some(WatchEvent::Added(pod)) if pod.metadata.name.as_deref() == Some("new")));
        for seen in self.api.requests() {
            assert_eq!(seen.header_values("impersonate-user"), ["corp:ann"]);
            assert_eq!(seen.header("authorization"), None);
        }
    }
}

fn reloader(issuer: &Issuer, ca: &Ca, dir: &Path) -> Arc<AuthnReloader> {
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {"url": issuer.issuer_url(), "audiences": ["kubernetes"], "certificateAuthority": ca.pem()},
            "claimMappings": {"username": {"claim": "sub", "prefix": "corp:"}},
        }],
    });
    let path = dir.join("authentication.yaml");
    fs::write(&path, config.to_string()).unwrap();
    let client_context = JwksContext {
        fetch: Arc::new(HttpFetch::new(ProxyEnvironment::default())),
        clock: Arc::new(SystemClock),
        random: Arc::new(|| 0.5),
        recorder: Arc::new(()),
    };
    let sources = ConfigSources {
        config: ConfigOrigin::File(path),
        navicert_config: None,
        profile: None,
        kube_version: None,
    };
    Arc::new(AuthnReloader::open(sources, client_context).unwrap())
}

fn proxy(reloader: &AuthnReloader, api: &ApiServer, ca: &Ca) -> Proxy {
    let upstream = transport::TransportSettings {
        trust: Trust::Pem(ca.pem().into_bytes()),
        compression: false,
        ..transport::TransportSettings::new(api.url())
    };
    let anonymous = Arc::new(StaticCredential::new(Credential::anonymous()));
    let parts = ProxyParts {
        authenticator: Arc::clone(reloader.authenticator()),
        upstream: Transport::new(upstream, anonymous, navicert_client::ClientContext::system()).unwrap(),
        anonymous_upstream: None,
        reviewer: None,
        observer: Arc::new(AuditLog::disabled()),
        clock: Arc::new(SystemClock),
        timer: Arc::new(TokioTimer),
    };
    Proxy::new(ProxySettings { self_check: SelfCheck::Off, ..ProxySettings::default() }, parts)
}

fn token(issuer: &Issuer, change: &Value) -> String {
    let mut claims = issuer.claims("ann", "kubernetes", SystemClock.now());
    for (name, value) in change.as_object().unwrap() {
        claims[name] = value.clone();
    }
    issuer.token(&claims)
}

fn exec(plugin: &FakeExecPlugin, dir: &Path) -> Value {
    json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": plugin.write_plugin(dir),
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_rs_lists_and_watches_as_the_mapped_user() {
    let proxy = ProxyFixture::start().await;
    let client = proxy.stock(&json!({"token": token(&proxy.issuer, &json!({}))})).await;
    proxy.list_and_watch(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_rs_with_an_exec_plugin_lists_and_watches_as_the_mapped_user() {
    let proxy = ProxyFixture::start().await;
    let issuer = Arc::clone(&proxy.issuer);
    let plugin = FakeExecPlugin::start(move |_| json!({"token": token(&issuer, &json!({}))}));
    let client = proxy.stock(&exec(&plugin, proxy.dir.path())).await;
    proxy.list_and_watch(client).await;
    assert!(!plugin.runs().is_empty());
}

// C432, S271: a 401 from the proxy runs the plugin again, and the retried request succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn navicert_runs_its_plugin_again_when_the_proxy_rejects_a_token() {
    let proxy = ProxyFixture::start().await;
    let issuer = Arc::clone(&proxy.issuer);
    let plugin = FakeExecPlugin::start(move |run| {
        let change = if run == 1 { json!({"exp": 1_000_000_000}) } else { json!({}) };
        json!({"token": token(&issuer, &change)})
    });
    let client = proxy.ours(&exec(&plugin, proxy.dir.path()));
    proxy.list_and_watch(client).await;
    assert_eq!(plugin.runs().len(), 2, "one expired token, and one for all further requests");
}
