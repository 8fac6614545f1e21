//! Tokens of the cluster's service accounts: verified offline with the API server's keys, and reviewed by it otherwise.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

#[path = "../examples/axum.rs"]
#[expect(dead_code, reason = "the example has a main function")]
mod example;
#[expect(dead_code, reason = "this test uses a part")]
mod support;

use navicert_client::{Client, ConfigOptions};
use navicert_testkit::{Algorithm, Answer, ApiServer, Ca, Kubeconfig, SigningKey};
use navicert_tower::{AuthnLayer, AuthnLayerBuilder, AuthnLayerError, ServiceAccounts, ServiceAccountsError};
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};
use support::{Server, assert_unauthorized, ready};

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const DISCOVERY: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const NAME: &str = "system:serviceaccount:shop:cart";

/// An API server with a service account issuer, and a client of it.
struct Cluster {
    api: ApiServer,
    key: SigningKey,
    client: Client,
    _dir: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Self {
        let ca = Ca::new("cluster");
        let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
        api.accept_token("own", "system:serviceaccount:shop:gateway", &[]);
        let key = SigningKey::generate(Algorithm::Es256, "sa-1");
        // As an API server does: an address that the layer cannot reach.
        let document = json!({"issuer": ISSUER, "jwks_uri": "https://10.0.0.1:6443/openid/v1/jwks"});
        api.answer(DISCOVERY, Answer::json(&document));
        api.answer(KEYS, Answer::json(&json!({"keys": [key.jwk()]})));
        let path = Kubeconfig::new(api.url()).ca(&ca).token("own").write(dir.path().join("config"));
        let options = ConfigOptions::new([("PATH", "/usr/bin:/bin")].into_iter().collect(), "/");
        let client = Client::new(options.kubeconfig(&path).resolve().unwrap()).unwrap();
        Cluster { api, key, client, _dir: dir }
    }

    fn accounts(&self) -> ServiceAccounts {
        ServiceAccounts::new(self.client.clone(), ISSUER, ["shop"])
    }

    /// A bound token of the account, with other claims.
    fn token(&self, more: Value) -> String {
        self.key.token(&claims(more))
    }

    fn answer_reviews(&self, status: &Value) {
        let review =
            json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "status": status});
        self.api.answer(REVIEWS, Answer::json(&review).with_status(201));
    }

    /// The bodies of reviews, in order.
    fn reviews(&self) -> Vec<Value> {
        let requests = self.api.requests();
        let reviews = requests.iter().filter(|request| request.path() == REVIEWS);
        reviews.map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
    }
}

fn claims(more: Value) -> Value {
    let now = SystemClock.now().as_second();
    let mut claims = json!({
        "iss": ISSUER, "sub": NAME, "aud": ["shop"], "iat": now, "nbf": now, "exp": now + 600, "jti": "j-1",
        "kubernetes.io": {
            "namespace": "shop", "serviceaccount": {"name": "cart", "uid": "u-1"},
            "pod": {"name": "cart-0", "uid": "u-2"},
        },
    });
    let Value::Object(more) = more else { panic!("claims are an object") };
    claims.as_object_mut().unwrap().extend(more);
    claims
}

async fn serve(builder: AuthnLayerBuilder) -> Server {
    let authn = builder.build().unwrap();
    ready(&authn).await;
    Server::start(example::app(authn)).await
}

#[tokio::test]
async fn token_is_verified_offline_and_gives_the_user_of_the_cluster() {
    let cluster = Cluster::start();
    let accounts = ServiceAccounts::discover(cluster.client.clone(), ["shop"]).await.unwrap();
    assert_eq!((accounts.issuer(), accounts.audiences()), (ISSUER, &["shop".to_owned()][..]));
    let server = serve(AuthnLayer::builder().service_accounts(accounts)).await;
    let reply = server.get_with_token(&cluster.token(json!({}))).await;
    let expected = json!({
        "username": NAME, "uid": "u-1", "groups": ["system:serviceaccounts", "system:serviceaccounts:shop"],
        "extra": {"authentication.kubernetes.io/credential-id": ["JTI=j-1"]},
    });
    assert_eq!((reply.status.as_u16(), reply.json()), (200, expected));
    let now = SystemClock.now().as_second();
    let stranger = SigningKey::generate(Algorithm::Es256, "sa-1");
    let other_algorithm = SigningKey::generate(Algorithm::Ps256, "sa-2");
    for (what, token) in [
        ("audience", cluster.token(json!({"aud": ["other"]}))),
        ("expired", cluster.token(json!({"nbf": now - 900, "exp": now - 600}))),
        ("subject", cluster.token(json!({"sub": "system:serviceaccount:shop:other"}))),
        ("no account", cluster.token(json!({"kubernetes.io": {}}))),
        ("signature", stranger.token(&claims(json!({})))),
        ("algorithm", other_algorithm.token(&claims(json!({})))),
        ("issuer", cluster.token(json!({"iss": "https://elsewhere"}))),
    ] {
        assert_unauthorized(&server.get_with_token(&token).await, what);
    }
    // Documents are fetched with the client's credential, and no token leaves the process.
    let requests = cluster.api.requests();
    assert!(requests.iter().all(|request| request.bearer_token() == Some("own")));
    assert!(requests.iter().all(|request| [DISCOVERY, KEYS].contains(&request.path())));
    assert!(requests.iter().any(|request| request.path() == KEYS));
}

#[tokio::test]
async fn several_audiences_are_alternatives() {
    let cluster = Cluster::start();
    let accounts = ServiceAccounts::new(cluster.client.clone(), ISSUER, ["a", "b"]);
    let server = serve(AuthnLayer::builder().service_accounts(accounts)).await;
    for (audience, status) in [("a", 200), ("b", 200), ("c", 401)] {
        let token = cluster.token(json!({"aud": [audience]}));
        assert_eq!(server.get_with_token(&token).await.status, status, "{audience}");
    }
}

#[tokio::test]
async fn token_of_an_unknown_issuer_is_reviewed_for_the_audiences_and_the_answer_cached() {
    let cluster = Cluster::start();
    let builder =
        AuthnLayer::builder().service_accounts(cluster.accounts()).token_review(cluster.client.clone());
    let server = serve(builder).await;
    let user = json!({"username": "ann", "uid": "u", "groups": ["dev", "system:authenticated"]});
    cluster.answer_reviews(&json!({"authenticated": true, "user": user, "audiences": ["shop"]}));
    for _ in 0..3 {
        let reply = server.get_with_token("opaque").await;
        let expected = json!({"username": "ann", "uid": "u", "groups": ["dev"], "extra": {}});
        assert_eq!((reply.status.as_u16(), reply.json()), (200, expected));
    }
    assert_eq!(cluster.reviews().len(), 1, "the answer is cached");
    let spec = json!({"token": "opaque", "audiences": ["shop"]});
    assert_eq!(cluster.reviews().first().unwrap()["spec"], spec);
    // The API server ignored the audiences, or the token is for others.
    cluster.answer_reviews(&json!({"authenticated": true, "user": user}));
    assert_unauthorized(&server.get_with_token("no-audience").await, "no audience");
    cluster.answer_reviews(&json!({"authenticated": false}));
    assert_unauthorized(&server.get_with_token("invalid").await, "invalid");
    cluster.api.answer(REVIEWS, Answer::status(403));
    assert_unauthorized(&server.get_with_token("failed").await, "not reviewed");
    assert_eq!(cluster.reviews().len(), 4);
    // A verified token is not reviewed.
    assert_eq!(server.get_with_token(&cluster.token(json!({}))).await.status, 200);
    assert_unauthorized(&server.get_with_token(&cluster.token(json!({"aud": "x"}))).await, "audience");
    assert_eq!(cluster.reviews().len(), 4);
}

#[tokio::test]
async fn token_is_reviewed_while_the_keys_of_the_cluster_are_missing() {
    let cluster = Cluster::start();
    cluster.api.answer(KEYS, Answer::status(500));
    cluster
        .answer_reviews(&json!({"authenticated": true, "user": {"username": NAME}, "audiences": ["shop"]}));
    let builder =
        AuthnLayer::builder().service_accounts(cluster.accounts()).token_review(cluster.client.clone());
    let server = Server::start(example::app(builder.build().unwrap())).await;
    let reply = server.get_with_token(&cluster.token(json!({}))).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["username"]), (200, &json!(NAME)));
    assert_eq!(cluster.reviews().len(), 1);
}

#[tokio::test]
async fn review_alone_asks_for_the_audiences_of_the_layer() {
    let cluster = Cluster::start();
    let builder = AuthnLayer::builder().token_review(cluster.client.clone()).audiences(["mine"]);
    let server = serve(builder).await;
    cluster
        .answer_reviews(&json!({"authenticated": true, "user": {"username": "ann"}, "audiences": ["mine"]}));
    assert_eq!(server.get_with_token("opaque").await.json()["username"], "ann");
    assert_eq!(cluster.reviews().first().unwrap()["spec"]["audiences"], json!(["mine"]));
}

#[tokio::test]
async fn invalid_issuers_and_denied_discovery_are_errors() {
    let cluster = Cluster::start();
    for (issuer, audiences) in [(ISSUER, &[][..]), ("http://plain", &["a"])] {
        let accounts = ServiceAccounts::new(cluster.client.clone(), issuer, audiences.iter().copied());
        let error = AuthnLayer::builder().service_accounts(accounts).build().unwrap_err();
        assert!(matches!(&error, AuthnLayerError::ServiceAccounts { issuer: named, .. } if named == issuer));
    }
    cluster.api.answer(DISCOVERY, Answer::status(403));
    let error = ServiceAccounts::discover(cluster.client.clone(), ["a"]).await.unwrap_err();
    assert!(matches!(error, ServiceAccountsError::Status { status: 403 }), "{error}");
    assert!(error.to_string().contains("system:service-account-issuer-discovery"), "{error}");
    cluster.api.answer(DISCOVERY, Answer::json(&json!({})));
    let error = ServiceAccounts::discover(cluster.client.clone(), ["a"]).await.unwrap_err();
    assert!(matches!(error, ServiceAccountsError::Document), "{error}");
}
