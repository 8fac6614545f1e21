//! `AuthLayer` in kube's own client, against a server over TLS.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests; a broken set-up should stop the test")]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::PostParams;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use navicert_client::Client;
use navicert_client::credential::{
    BoxFuture, Credential, CredentialError, CredentialSource, Generation, Rejection, RequestOrigin,
    StaticCredential,
};
use navicert_client::exec::AuthenticatorRegistry;
use navicert_kube::{AuthLayer, AuthLayerError};
use navicert_testkit::{ApiServer, Ca, FakeExecPlugin};
use serde_json::json;
use support::{exec, kubeconfig, options};

/// `token-1`, then after each rejection the next number, up to a last one.
#[derive(Debug)]
struct NumberedTokens {
    current: AtomicUsize,
    last: usize,
    rejections: AtomicUsize,
}

impl NumberedTokens {
    fn up_to(last: usize) -> Arc<Self> {
        let (current, rejections) = (AtomicUsize::new(1), AtomicUsize::new(0));
        Arc::new(NumberedTokens { current, last, rejections })
    }

    fn rejections(&self) -> usize {
        self.rejections.load(Ordering::Relaxed)
    }

    fn credential(number: usize) -> Arc<Credential> {
        let mut generation = Generation::FIRST;
        (1..number).for_each(|_| generation = generation.next());
        let authorization = Some(HeaderValue::try_from(format!("Bearer token-{number}")).unwrap());
        Arc::new(Credential { generation, authorization, ..Credential::anonymous() })
    }
}

impl CredentialSource for NumberedTokens {
    /// Nothing, so that `get` is used.
    fn cached(&self) -> Option<Arc<Credential>> {
        None
    }

    fn get(&self, _: RequestOrigin) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(async { Ok(NumberedTokens::credential(self.current.load(Ordering::Relaxed))) })
    }

    fn refresh_rejected(
        &self,
        generation: Generation,
        reason: Rejection,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        assert!(matches!(reason, Rejection::Unauthorized(Some(ref head)) if head.status == 401));
        self.rejections.fetch_add(1, Ordering::Relaxed);
        let next = usize::try_from(generation.number()).unwrap() + 1;
        Box::pin(async move {
            if next > self.last {
                return Ok(None);
            }
            self.current.store(next, Ordering::Relaxed);
            Ok(Some(NumberedTokens::credential(next)))
        })
    }
}

/// kube's own transport, without credentials of its own.
async fn client(dir: &Path, api: &ApiServer, ca: &Ca, source: Arc<dyn CredentialSource>) -> kube::Client {
    let path = kubeconfig(dir, api, ca, &[("a", json!({}))]);
    let options = KubeConfigOptions { context: Some("a".into()), ..KubeConfigOptions::default() };
    let read = Kubeconfig::read_from(path).unwrap();
    let config = kube::Config::from_custom_kubeconfig(read, &options).await.unwrap();
    kube::client::ClientBuilder::try_from(config).unwrap().with_layer(&AuthLayer::new(source)).build()
}

async fn user_name(client: &kube::Client) -> Result<String, kube::Error> {
    let review = SelfSubjectReview::default();
    let review = kube::Api::all(client.clone()).create(&PostParams::default(), &review).await?;
    Ok(review.status.unwrap().user_info.unwrap().username.unwrap())
}

fn tokens(api: &ApiServer) -> Vec<String> {
    api.requests().iter().map(|request| request.bearer_token().unwrap().to_owned()).collect()
}

fn version() -> Request<Body> {
    Request::get("/version").body(Body::empty()).unwrap()
}

// C430, C432
#[tokio::test]
async fn rejected_token_is_refreshed_and_the_request_with_its_body_is_sent_once_more() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    api.accept_token("token-2", "ann", &[]);
    let source = NumberedTokens::up_to(2);
    let client = client(dir.path(), &api, &ca, Arc::clone(&source) as _).await;
    assert_eq!(user_name(&client).await.unwrap(), "ann");
    assert_eq!(tokens(&api), ["token-1", "token-2"]);
    let bodies: Vec<_> = api.requests().iter().map(|request| request.body.clone()).collect();
    assert!(bodies[0] == bodies[1] && !bodies[0].is_empty(), "{bodies:?}");
    assert_eq!(user_name(&client).await.unwrap(), "ann");
    assert_eq!((tokens(&api).len(), source.rejections()), (3, 1), "the new token stays");
}

// C442
#[tokio::test]
async fn second_rejection_is_returned_and_reported_to_the_source() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    let source = NumberedTokens::up_to(9);
    let client = client(dir.path(), &api, &ca, Arc::clone(&source) as _).await;
    let error = user_name(&client).await.unwrap_err();
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 401), "{error:?}");
    assert_eq!((tokens(&api), source.rejections()), (vec!["token-1".to_owned(), "token-2".to_owned()], 2));
}

#[tokio::test]
async fn streamed_body_is_not_sent_again_but_the_next_request_has_the_new_token() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    api.accept_token("token-1", "ann", &[]);
    api.accept_token("token-2", "ann", &[]);
    let source = NumberedTokens::up_to(2);
    let client = client(dir.path(), &api, &ca, Arc::clone(&source) as _).await;
    // The only streamed bodies that kube's public API makes are those of responses.
    let streamed = client.send(version()).await.unwrap().into_body();
    assert!(streamed.try_clone().is_none());
    api.revoke_token("token-1");
    let response = client.send(Request::post("/api").body(streamed).unwrap()).await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(client.send(version()).await.unwrap().status(), 200);
    assert_eq!(
        (tokens(&api), source.rejections()),
        (["token-1", "token-1", "token-2"].map(str::to_owned).to_vec(), 1)
    );
}

// C471
#[tokio::test]
async fn request_with_its_own_authorization_keeps_it_and_its_401() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    let source = NumberedTokens::up_to(2);
    let client = client(dir.path(), &api, &ca, Arc::clone(&source) as _).await;
    let request = Request::get("/version").header(AUTHORIZATION, "Bearer own").body(Body::empty()).unwrap();
    assert_eq!(client.send(request).await.unwrap().status(), 401);
    assert_eq!((tokens(&api), source.rejections()), (vec!["own".to_owned()], 0));
}

#[tokio::test]
async fn certificate_is_an_error_that_names_the_remedy_and_sends_nothing() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    let ann = ca.client("ann").issue();
    std::fs::write(dir.path().join("ann.crt"), ann.chain_pem()).unwrap();
    std::fs::write(dir.path().join("ann.key"), ann.key_pem()).unwrap();
    let user = json!({"client-certificate": "ann.crt", "client-key": "ann.key"});
    let path = kubeconfig(dir.path(), &api, &ca, &[("a", user)]);
    let config = options(&path).context("a").resolve().unwrap();
    let source = Client::builder(config).credential_source();
    let client = client(dir.path(), &api, &ca, source).await;
    let error = user_name(&client).await.unwrap_err();
    let kube::Error::Service(source) = &error else { panic!("{error:?}") };
    assert!(matches!(source.downcast_ref(), Some(AuthLayerError::ClientCertificate)), "{source:?}");
    assert!(source.to_string().contains("navicert_kube::ClientBuilder"), "{source}");
    assert_eq!(api.requests().len(), 0);
}

#[tokio::test]
async fn anonymous_credential_adds_no_header() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    api.accept_everyone();
    let source = Arc::new(StaticCredential::new(Credential::anonymous()));
    let client = client(dir.path(), &api, &ca, source).await;
    assert_eq!(user_name(&client).await.unwrap(), "system:anonymous");
}

#[tokio::test]
async fn exec_plugin_runs_once_for_concurrent_requests_and_once_more_after_a_401() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    api.accept_token("token-1", "ann", &[]);
    api.accept_token("token-2", "ann", &[]);
    let plugin = FakeExecPlugin::start(|run| json!({"token": format!("token-{run}")}));
    let path = kubeconfig(dir.path(), &api, &ca, &[("a", exec(plugin.write_plugin(dir.path())))]);
    let config = options(&path).context("a").resolve().unwrap();
    let source = Client::builder(config).registry(AuthenticatorRegistry::new()).credential_source();
    let client = client(dir.path(), &api, &ca, source).await;
    for (revoked, runs) in [(None, 1), (Some("token-1"), 2)] {
        if let Some(token) = revoked {
            api.revoke_token(token);
        }
        for name in join_all((0..8).map(|_| user_name(&client))).await {
            assert_eq!(name.unwrap(), "ann");
        }
        assert_eq!(plugin.runs().len(), runs);
    }
}

#[tokio::test]
async fn failing_source_is_an_error_without_the_plugins_output() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    let user = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "/bin/sh", "args": ["-c", "echo canary; exit 1"],
    }});
    let path = kubeconfig(dir.path(), &api, &ca, &[("a", user)]);
    let config = options(&path).context("a").resolve().unwrap();
    let client = client(dir.path(), &api, &ca, Client::builder(config).credential_source()).await;
    let error = user_name(&client).await.unwrap_err();
    let shown = format!("{} {error:?}", navicert_types::error_chain(&error));
    assert!(shown.contains("getting credentials") && shown.contains("exit code 1"), "{shown}");
    assert!(!shown.contains("canary") && api.requests().is_empty(), "{shown}");
}
