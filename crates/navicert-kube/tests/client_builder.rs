//! `ClientBuilder`: context, plugin policy and layers, against a server over TLS.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests; a broken set-up should stop the test")]

mod support;

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::{HeaderValue, Request};
use kube::client::Body;
use navicert_client::transport::TransportError;
use navicert_kube::{ClientBuilder, ClientError, Config};
use navicert_plugin::Policy;
use navicert_testkit::{ApiServer, Ca, FakeExecPlugin};
use serde_json::json;
use support::{exec, kubeconfig, options};
use tower_layer::Layer;
use tower_service::Service;

#[tokio::test]
async fn selects_a_context_although_none_is_current() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    api.accept_token("token-b", "ben", &[]);
    let users = [("a", json!({"token": "token-a"})), ("b", json!({"token": "token-b"}))];
    let path = kubeconfig(dir.path(), &api, &ca, &users);
    let error = ClientBuilder::new(options(&path)).build().err().unwrap();
    assert!(matches!(error, ClientError::Config(_)), "{error}");
    let client = ClientBuilder::new(options(&path)).context("b").build().unwrap();
    assert_eq!(client.default_namespace(), "ns-b");
    client.apiserver_version().await.unwrap();
    assert_eq!(api.requests().last().unwrap().bearer_token(), Some("token-b"));
}

#[tokio::test]
async fn every_constructor_reads_its_own_source() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    let path = kubeconfig(dir.path(), &api, &ca, &[("a", json!({"token": "t"}))]);
    let from_file = ClientBuilder::from_kubeconfig(&path).context("a").build().unwrap();
    assert_eq!(from_file.default_namespace(), "ns-a");
    let missing = ClientBuilder::from_kubeconfig(dir.path().join("missing")).build().err().unwrap();
    assert!(missing.to_string().contains("missing"), "{missing}");
    let resolved = options(&path).context("a").resolve().unwrap();
    for client in [
        ClientBuilder::new(resolved.clone()).build().unwrap(),
        navicert_kube::from_config(resolved.clone()).unwrap(),
    ] {
        assert_eq!(client.default_namespace(), "ns-a");
    }
    // Whether this process runs in a pod or has a kubeconfig is not up to the test: both forms have to agree.
    let text = |error: Option<ClientError>| error.map(|error| error.to_string());
    let expected = Config::in_cluster().err().map(|errors| errors.to_string());
    assert_eq!(text(ClientBuilder::in_cluster().build().err()), expected);
    let expected = Config::options().kuberc_policy(None).resolve().err().map(|errors| errors.to_string());
    assert_eq!(text(navicert_kube::try_default().err()), expected);
    assert_eq!(text(ClientBuilder::infer().build().err()), expected);
}

#[tokio::test]
async fn plugin_policy_of_the_builder_replaces_that_of_the_configuration() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    api.accept_token("t", "ann", &[]);
    let plugin = FakeExecPlugin::start(|_| json!({"token": "t"}));
    let path = kubeconfig(dir.path(), &api, &ca, &[("a", exec(plugin.write_plugin(dir.path())))]);
    let options = options(&path).context("a");
    let error = ClientBuilder::new(options.clone()).plugin_policy(Policy::DenyAll).build().err().unwrap();
    assert!(matches!(error, ClientError::Config(_)), "{error}");
    // A configuration that was resolved under another policy: the plugin is denied when it is to run.
    let resolved = options.resolve().unwrap();
    let denied = ClientBuilder::new(resolved).plugin_policy(Policy::DenyAll).build().unwrap();
    let error = denied.apiserver_version().await.unwrap_err();
    let kube::Error::Service(source) = &error else { panic!("{error:?}") };
    let transport = source.downcast_ref::<TransportError>().unwrap();
    assert!(matches!(transport, TransportError::Credentials(error) if error.is_denied()), "{transport:?}");
    assert_eq!(plugin.runs().len(), 0);
    // The other way round: the configuration permits nothing, the builder everything.
    let closed = options.plugin_policy(Policy::DenyAll);
    assert!(closed.resolve().is_err());
    let allowed = ClientBuilder::new(closed).plugin_policy(Policy::AllowAll).build().unwrap();
    allowed.apiserver_version().await.unwrap();
    assert_eq!(plugin.runs().len(), 1);
}

/// Appends its name to the header `x-order` and counts requests.
#[derive(Clone)]
struct OrderLayer(&'static str, Arc<AtomicUsize>);

#[derive(Clone)]
struct OrderService<S>(OrderLayer, S);

impl<S> Layer<S> for OrderLayer {
    type Service = OrderService<S>;

    fn layer(&self, service: S) -> OrderService<S> {
        OrderService(self.clone(), service)
    }
}

impl<S: Service<Request<Body>>> Service<Request<Body>> for OrderService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.1.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> S::Future {
        self.0.1.fetch_add(1, Ordering::Relaxed);
        request.headers_mut().append("x-order", HeaderValue::from_static(self.0.0));
        self.1.call(request)
    }
}

#[tokio::test]
async fn layers_see_a_retried_request_once_and_the_last_layer_sees_it_first() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    api.accept_token("token-2", "ann", &[]);
    let plugin = FakeExecPlugin::start(|run| json!({"token": format!("token-{run}")}));
    let path = kubeconfig(dir.path(), &api, &ca, &[("a", exec(plugin.write_plugin(dir.path())))]);
    let count = Arc::new(AtomicUsize::new(0));
    let layer = |name| OrderLayer(name, Arc::clone(&count));
    let builder = ClientBuilder::new(options(&path)).layer(layer("inner")).context("a");
    let client = builder.layer(layer("outer")).build().unwrap();
    client.apiserver_version().await.unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 2, "each layer once");
    let requests = api.requests();
    let tokens: Vec<_> = requests.iter().map(|request| request.bearer_token().unwrap()).collect();
    assert_eq!(tokens, ["token-1", "token-2"], "the transport retried");
    for request in &requests {
        assert_eq!(request.header_values("x-order"), ["outer", "inner"]);
    }
}

#[tokio::test]
async fn errors_and_debug_output_show_no_secret() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    let path = kubeconfig(dir.path(), &api, &ca, &[("a", json!({"token": "canary\n"}))]);
    let builder = ClientBuilder::new(options(&path)).context("a");
    let shown = format!("{builder:?}");
    let error = builder.build().err().unwrap();
    let shown = format!("{shown} {error} {error:?} {:?}", error.source());
    assert!(shown.contains("token") && !shown.contains("canary"), "{shown}");
}
