//! The layer in axum, with a real issuer and real files.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

#[path = "../examples/axum.rs"]
#[expect(dead_code, reason = "the example has a main function")]
mod example;
mod support;

use std::convert::Infallible;
use std::future::{Ready, ready as at_once};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::Request as AxumRequest;
use axum::middleware::{self, Next};
use axum::routing::get;
use axum::{Extension, Router};
use http::header::AUTHORIZATION;
use http::{Request, Response};
use navicert_authn::jwks::{BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse};
use navicert_testkit::pki::jws::with_tampered_signature;
use navicert_testkit::{Ca, Issuer, wait};
use navicert_tower::{
    AuthenticatedUser, AuthnLayer, AuthnLayerBuilder, AuthnLayerError, BaseProfile, MissingToken,
};
use navicert_types::{Clock as _, SystemClock, error_chain};
use serde_json::json;
use support::{Server, assert_unauthorized, config, ready, token, write};
use tower_layer::Layer as _;
use tower_service::Service;

struct Fixture {
    ca: Ca,
    issuer: Issuer,
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let ca = Ca::new("tower");
        let (issuer, dir) = (Issuer::start(&ca), tempfile::tempdir().unwrap());
        write(dir.path(), &config(&issuer, &ca, "oidc:"));
        Fixture { ca, issuer, dir }
    }

    fn builder(&self) -> AuthnLayerBuilder {
        AuthnLayer::builder().config(self.dir.path().join("auth.yaml"))
    }

    async fn serve(&self, builder: AuthnLayerBuilder) -> Server {
        let authn = builder.build().unwrap();
        ready(&authn).await;
        Server::start(example::app(authn)).await
    }

    fn ann(&self) -> String {
        token(&self.issuer, "aud1", json!({"groups": ["dev", "ops"], "jti": "j-1"}))
    }
}

#[tokio::test]
async fn one_line_layer_passes_the_user_on_and_rejects_everything_else_alike() {
    let fixture = Fixture::new();
    let authn = AuthnLayer::from_file(fixture.dir.path().join("auth.yaml")).unwrap();
    ready(&authn).await;
    let server = Server::start(example::app(authn)).await;
    let ann = fixture.ann();
    let reply = server.get_with_token(&ann).await;
    let expected = json!({
        "username": "oidc:ann", "uid": "", "groups": ["dev", "ops"],
        "extra": {"authentication.kubernetes.io/credential-id": ["JTI=j-1"]},
    });
    assert_eq!((reply.status.as_u16(), reply.json()), (200, expected));
    let expired = json!({"exp": SystemClock.now().as_second() - 60});
    for (what, token) in [
        ("opaque", "opaque".to_owned()),
        ("signature", with_tampered_signature(&ann)),
        ("expired", token(&fixture.issuer, "aud1", expired)),
        ("audience", token(&fixture.issuer, "other", json!({}))),
        ("another issuer", token(&Issuer::start(&fixture.ca), "aud1", json!({}))),
        // Profile hardened.
        ("system group", token(&fixture.issuer, "aud1", json!({"groups": ["system:masters"]}))),
    ] {
        assert_unauthorized(&server.get_with_token(&token).await, what);
    }
    let bearer = format!("Bearer {ann}");
    let header = ("authorization", bearer.as_bytes());
    assert_unauthorized(&server.get(&[]).await, "no token");
    assert_unauthorized(&server.get(&[("authorization", b"Basic YTpi")]).await, "a password");
    assert_unauthorized(&server.get(&[header, header]).await, "two headers");
    assert_eq!(server.get(&[header]).await.status, 200);
}

#[tokio::test]
async fn token_must_be_for_an_audience_of_the_layer() {
    let fixture = Fixture::new();
    let server = fixture.serve(fixture.builder().audiences(["other", "aud2"])).await;
    assert_eq!(server.get_with_token(&token(&fixture.issuer, "aud2", json!({}))).await.status, 200);
    let reply = server.get_with_token(&token(&fixture.issuer, "aud1", json!({}))).await;
    assert_unauthorized(&reply, "an audience of the configuration, but not of the layer");
}

#[tokio::test]
async fn profile_decides_whether_hardening_applies() {
    let fixture = Fixture::new();
    let system = token(&fixture.issuer, "aud1", json!({"groups": ["system:masters"]}));
    for (profile, status) in [(BaseProfile::Kube, 200), (BaseProfile::Hardened, 401)] {
        let server = fixture.serve(fixture.builder().profile(profile)).await;
        assert_eq!(server.get_with_token(&system).await.status, status, "{profile:?}");
    }
}

/// Answers with the user's name and whether the token is marked as sensitive.
async fn inspect(user: Option<Extension<AuthenticatedUser>>, request: AxumRequest) -> String {
    let name = user.map_or("no user".to_owned(), |Extension(user)| user.username().to_owned());
    let sensitive: Vec<bool> =
        request.headers().get_all(AUTHORIZATION).iter().map(http::HeaderValue::is_sensitive).collect();
    format!("{name} {sensitive:?}")
}

#[tokio::test]
async fn request_without_a_token_is_anonymous_if_allowed_and_a_bad_token_never_is() {
    let fixture = Fixture::new();
    let authn = fixture.builder().missing_token(MissingToken::Anonymous).build().unwrap();
    ready(&authn).await;
    // An outer layer that claims a user: the one of an earlier request.
    let earlier = Arc::new(Mutex::new(None::<AuthenticatedUser>));
    let remembered = Arc::clone(&earlier);
    let remember = move |Extension(user): Extension<AuthenticatedUser>| async move {
        *remembered.lock().unwrap() = Some(user);
    };
    let claim = middleware::from_fn(move |mut request: AxumRequest, next: Next| {
        if let Some(user) = earlier.lock().unwrap().clone() {
            request.extensions_mut().insert(user);
        }
        next.run(request)
    });
    let app = Router::new().route("/user", get(inspect)).route("/remember", get(remember));
    let server = Server::start(app.layer(authn).layer(claim)).await;
    let ann = fixture.ann();
    assert_eq!(server.get_with_token(&ann).await.text(), "oidc:ann [true]");
    assert_eq!(server.get(&[]).await.text(), "no user []");
    assert_eq!(server.get_path_with_token("/remember", &ann).await.status, 200);
    assert_eq!(server.get(&[]).await.text(), "no user []", "the user of the outer layer is removed");
    assert_eq!(server.get(&[("authorization", b"Basic YTpi")]).await.text(), "no user [true]");
    assert_unauthorized(&server.get_with_token("opaque").await, "an invalid token");
    assert_unauthorized(&server.get_with_token(&with_tampered_signature(&ann)).await, "a wrong signature");
    let header = ("authorization", b"Bearer x".as_slice());
    assert_unauthorized(&server.get(&[header, header]).await, "two headers");
}

#[tokio::test]
async fn changed_file_is_reloaded_while_the_layer_is_in_use() {
    let fixture = Fixture::new();
    let server = fixture.serve(fixture.builder()).await;
    let ann = fixture.ann();
    assert_eq!(server.get_with_token(&ann).await.json()["username"], "oidc:ann");
    write(fixture.dir.path(), &config(&fixture.issuer, &fixture.ca, "new:"));
    let reloaded = Box::pin(async {
        while server.get_with_token(&ann).await.json()["username"] != "new:ann" {
            tokio::task::yield_now().await;
        }
    });
    wait::within("the new configuration", reloaded).await;
}

#[tokio::test]
async fn invalid_set_up_is_an_error_that_names_the_cause() {
    let fixture = Fixture::new();
    let error = AuthnLayer::builder().build().unwrap_err();
    assert!(matches!(error, AuthnLayerError::NoSource), "{error}");
    let error = AuthnLayer::from_file(fixture.dir.path().join("missing.yaml")).unwrap_err();
    let text = error_chain(&error);
    assert!(matches!(error, AuthnLayerError::Config { .. }) && text.contains("missing.yaml"), "{text}");
    write(
        fixture.dir.path(),
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: 5\n",
    );
    let text = error_chain(&fixture.builder().build().unwrap_err());
    assert!(text.contains("auth.yaml") && text.contains("jwt"), "{text}");
}

#[test]
fn building_outside_of_a_runtime_is_an_error() {
    let error = AuthnLayer::from_file("auth.yaml").unwrap_err();
    assert!(matches!(error, AuthnLayerError::NoRuntime), "{error}");
}

/// A fetcher that never gets an answer.
#[derive(Debug)]
struct HangingFetch;

impl Fetch for HangingFetch {
    fn get<'f>(&'f self, _: FetchRequest<'f>) -> BoxFuture<'f, Result<FetchResponse, FetchError>> {
        Box::pin(std::future::pending())
    }
}

/// Counts its requests in the response's extensions; never reached in the test.
#[derive(Clone)]
struct Unreachable;

impl Service<Request<()>> for Unreachable {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        at_once(Ok(Response::new("reached".to_owned())))
    }
}

#[tokio::test(start_paused = true)]
async fn issuer_that_never_answers_rejects_within_the_timeout_and_debug_shows_no_token() {
    let fixture = Fixture::new();
    let limit = Duration::from_millis(700);
    let authn = fixture.builder().fetch(Arc::new(HangingFetch)).timeout(limit).build().unwrap();
    assert!(!authn.is_ready() && authn.health().len() == 1);
    let mut service = authn.layer(Unreachable);
    let ann = fixture.ann();
    let request = Request::get("/").header(AUTHORIZATION, format!("Bearer {ann}")).body(()).unwrap();
    let started = tokio::time::Instant::now();
    let response = service.call(request).await.unwrap();
    assert!(started.elapsed() <= limit, "{:?}", started.elapsed());
    assert_eq!((response.status().as_u16(), response.body().as_str()), (401, ""));
    let shown = format!("{authn:?} {service:?} {:?}", fixture.builder());
    assert!(shown.contains("auth.yaml") && !shown.contains(&ann), "{shown}");
}
