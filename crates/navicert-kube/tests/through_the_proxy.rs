//! kube-rs as it comes through navicert's proxy: a list and a watch, as the mapped user.
#![cfg(unix)]

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use navicert_authn::config::{Origin, Reloader, Sources};
use navicert_authn::jwks::Around;
use navicert_client::credential::{Credential, Fixed};
use navicert_client::transport::{self, ProxyEnvironment, TokioTimer, Transport, Trust};
use navicert_server::Limits;
use navicert_server::audit::Audit;
use navicert_server::fetch::HttpFetch;
use navicert_server::keeping::Keeping;
use navicert_server::listener::{self, Security, Socket};
use navicert_server::metrics::Traffic;
use navicert_server::proxy::settings::{SelfCheck, Settings};
use navicert_server::proxy::{Parts, Proxy};
use navicert_testkit::{ApiServer, Ca, Issuer, wait};
use navicert_types::{Clock as _, SystemClock};
use serde_json::json;
use tokio::sync::watch;

#[tokio::test(flavor = "multi_thread")]
async fn kube_rs_lists_and_watches_as_the_mapped_user() {
    let (ca, folder) = (Ca::new("kube-rs"), tempfile::tempdir().unwrap());
    let (issuer, api) = (Issuer::start(&ca), ApiServer::start(&ca));
    api.accept_everyone();
    let pod = api.add_pod("web", false);
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {"url": issuer.issuer_url(), "audiences": ["kubernetes"], "certificateAuthority": ca.pem()},
            "claimMappings": {"username": {"claim": "sub", "prefix": "corp:"}},
        }],
    });
    fs::write(folder.path().join("authentication.yaml"), config.to_string()).unwrap();
    let origin = Origin::File(folder.path().join("authentication.yaml"));
    let around = Around {
        fetch: Arc::new(HttpFetch::new(ProxyEnvironment::default())),
        clock: Arc::new(SystemClock),
        random: Arc::new(|| 0.5),
        recorder: Arc::new(()),
    };
    let sources = Sources { config: origin, side_car: None, profile: None };
    let reloader = Arc::new(Reloader::open(sources, around).unwrap());
    let _keeping = Keeping::start(Arc::clone(&reloader), Arc::new(TokioTimer));
    let upstream = transport::Settings {
        trust: Trust::Pem(ca.pem().into_bytes()),
        compression: false,
        ..transport::Settings::new(api.url())
    };
    let nobody = Arc::new(Fixed::new(Credential::anonymous()));
    let parts = Parts {
        live: Arc::clone(reloader.live()),
        upstream: Transport::new(upstream, nobody, transport::Around::system()).unwrap(),
        bare: None,
        reviewer: None,
        witness: Arc::new(Audit::off()),
        clock: Arc::new(SystemClock),
        timer: Arc::new(TokioTimer),
    };
    let proxy = Proxy::new(Settings { self_check: SelfCheck::Off, ..Settings::default() }, parts);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (_stop, stopped) = watch::channel(false);
    let traffic = Traffic::new("proxy", Arc::new(SystemClock));
    let security = Security::fixed(ca.server().issue().server_config(&["h2", "http/1.1"]));
    let socket = Socket { listener, security, limits: Limits::default(), traffic };
    tokio::spawn(listener::serve(socket, Arc::new(proxy), stopped));
    let known = async {
        while !reloader.live().health().iter().all(|(_, health)| health.is_ready) {
            tokio::task::yield_now().await;
        }
    };
    wait::within("the issuer's keys", known).await;

    fs::write(folder.path().join("ca.crt"), ca.pem()).unwrap();
    let token = issuer.token(&issuer.claims("ann", "kubernetes", SystemClock.now()));
    let kubeconfig = json!({
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {
            "server": format!("https://{address}"), "certificate-authority": folder.path().join("ca.crt"),
        }}],
        "users": [{"name": "u", "user": {"token": token}}],
    });
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig.to_string()).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(kube::Client::try_from(config).unwrap());
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
    for seen in api.requests() {
        assert_eq!(seen.header_values("impersonate-user"), ["corp:ann"]);
        assert_eq!(seen.header("authorization"), None);
    }
}
