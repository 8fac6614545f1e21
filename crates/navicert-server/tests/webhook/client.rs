//! The TokenReview client against every response a server may give (WV1–WV15), and against the webhook.

use std::sync::Arc;
use std::time::Duration;

use navicert_client::credential::{BoxFuture, Credential, StaticCredential};
use navicert_client::transport::{self, Timer, Transport, Trust};
use navicert_server::token_review_client::{ReviewOutcome, TokenReviewClient, TokenReviewError};
use navicert_server::webhook;
use navicert_testkit::{Answer, Ca, HttpServer};
use navicert_types::token_review::{TokenReviewVersion, UserInfo};
use serde_json::{Value, json};

use super::{Fixture, Options};

/// A timer whose short sleeps take no time.
#[derive(Debug)]
struct NoPause;

impl Timer for NoPause {
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        if duration < Duration::from_secs(20) {
            Box::pin(std::future::ready(()))
        } else {
            Box::pin(std::future::pending())
        }
    }
}

fn client(
    ca: &Ca,
    url: &str,
    path: &str,
    version: TokenReviewVersion,
    implicit: &[&str],
) -> TokenReviewClient {
    let trust = Trust::Pem(ca.pem().into_bytes());
    let settings = transport::TransportSettings { trust, ..transport::TransportSettings::new(url) };
    let source = Arc::new(StaticCredential::new(Credential::anonymous()));
    let transport = Transport::new(settings, source, navicert_client::ClientContext::system()).unwrap();
    let implicit = implicit.iter().map(|&audience| audience.to_owned()).collect();
    TokenReviewClient::new(transport, path, version, implicit, Arc::new(NoPause))
}

fn told(outcome: &Result<ReviewOutcome, TokenReviewError>) -> String {
    match outcome {
        Ok(ReviewOutcome::Authenticated { user, audiences }) => format!("{} {audiences:?}", user.username),
        Ok(ReviewOutcome::Unauthenticated) => "unauthenticated".to_owned(),
        Err(TokenReviewError::Unknown(text)) => format!("unknown: {text}"),
        Err(TokenReviewError::Status(code)) => format!("status {code}"),
        Err(TokenReviewError::Malformed(_)) => "malformed".to_owned(),
        Err(other) => panic!("{other}"),
    }
}

fn answer(version: &str, status: &Value) -> Value {
    json!({"kind": "TokenReview", "apiVersion": format!("authentication.k8s.io/{version}"), "status": status})
}

// WV1–WV10, S211–S213, S215
#[tokio::test]
async fn interprets_every_response_as_kube_apiserver_does() {
    let (ca, status) = (Ca::new("reviewer"), json!({"authenticated": true, "user": {"username": "u"}}));
    let good = answer("v1", &status);
    let with = |status: Value| Answer::json(&answer("v1", &status));
    let html = || Answer::bytes("text/html", "<html>ok</html>");
    let capital = json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "Status": status});
    let bare = json!({"status": status, "more": {"x": [1]}});
    let failure = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 401});
    for (row, answer, expected, requests) in [
        ("WV1", Answer::json(&good), "u []", 1),
        ("WV1", Answer::json(&good).with_status(201), "u []", 1),
        ("WV1", Answer::bytes("text/plain", good.to_string()).with_status(202), "u []", 1),
        ("WV2", Answer::status(204), "malformed", 1),
        ("WV2", Answer::status(200), "malformed", 1),
        ("WV3", Answer::json(&answer("v1beta1", &status)), "malformed", 1),
        ("WV3", Answer::json(&failure), "malformed", 1),
        ("WV3", html(), "malformed", 1),
        ("WV4", Answer::json(&bare), "u []", 1),
        ("WV5", Answer::json(&capital), "unauthenticated", 1),
        ("WV5", with(json!({"Authenticated": true, "user": {"username": "u"}})), "unauthenticated", 1),
        ("WV6", with(json!({"authenticated": false})), "unauthenticated", 1),
        ("WV6", with(json!({"authenticated": false, "error": "cold"})), "unknown: cold", 1),
        ("WV7", with(json!({"authenticated": true, "error": "cold", "user": {"username": "u"}})), "u []", 1),
        ("WV7", with(json!({"authenticated": true})), " []", 1),
        ("WV8", Answer::json(&good).with_status(401), "status 401", 1),
        ("WV8", Answer::json(&good).with_status(403), "status 403", 1),
        ("WV9", Answer::json(&good).with_status(500), "status 500", 5),
        ("WV9", Answer::json(&good).with_status(504), "status 504", 5),
        ("WV9", Answer::json(&good).with_status(429), "status 429", 5),
        ("WV10", Answer::json(&good).with_status(503), "status 503", 1),
        ("WV10", Answer::json(&good).with_status(503).header("retry-after", "0"), "status 503", 11),
    ] {
        let server = HttpServer::start(&ca);
        server.answer("/review", answer);
        let outcome =
            client(&ca, &server.url(), "/review", TokenReviewVersion::V1, &[]).review("t", &[]).await;
        assert_eq!((told(&outcome).as_str(), server.count("/review")), (expected, requests), "{row}");
    }
}

// WV11–WV15, S214
#[tokio::test]
async fn returns_the_requested_audiences_that_the_server_confirms() {
    let ca = Ca::new("reviewer");
    for (row, wanted, returned, expected) in [
        ("WV11", &["api"][..], &[][..], "u [\"api\"]"),
        ("WV12", &["other"], &[], "unauthenticated"),
        ("WV13", &["api", "other"], &["other"], "u [\"other\"]"),
        ("WV14", &["api"], &["zzz"], "unauthenticated"),
        ("WV15", &[], &["zzz"], "u []"),
        ("S214", &["a", "b"], &["b", "a", "c"], "u [\"b\", \"a\"]"),
    ] {
        for error in ["", "cold"] {
            let server = HttpServer::start(&ca);
            let status = json!({"authenticated": true, "user": {"username": "u"}, "audiences": returned, "error": error});
            server.answer("/review", Answer::json(&answer("v1beta1", &status)));
            let client = client(&ca, &server.url(), "/review", TokenReviewVersion::V1beta1, &["api"]);
            let wanted: Vec<String> = wanted.iter().map(|&audience| audience.to_owned()).collect();
            assert_eq!(told(&client.review("t", &wanted).await), expected, "{row}");
        }
    }
}

// S276: client and webhook interoperate, on both paths and in both versions.
#[tokio::test]
async fn webhook_and_client_interoperate() {
    let settings = webhook::WebhookSettings { server_audiences: vec!["api".into()], ..Default::default() };
    let fixture = Fixture::start(Options { settings, ..Options::default() }).await;
    for path in ["/authenticate", "/apis/authentication.k8s.io/v1/tokenreviews"] {
        for version in TokenReviewVersion::ALL {
            let client = client(&fixture.ca, &fixture.url(""), path, version, &["api"]);
            let outcome = client.review(&fixture.ann(), &["api".to_owned()]).await.unwrap();
            let ReviewOutcome::Authenticated { user, audiences } = outcome else { panic!("{outcome:?}") };
            let expected = UserInfo {
                username: "oidc:ann".into(),
                uid: "u-1".into(),
                groups: vec!["dev".into(), "ops, all".into()],
                extra: [
                    ("authentication.kubernetes.io/credential-id".into(), vec!["JTI=j-1".into()]),
                    ("example.org/team".into(), vec!["a".into()]),
                ]
                .into(),
            };
            assert_eq!((user, audiences), (expected, vec!["api".to_owned()]), "{path}");
            assert_eq!(client.review("opaque", &[]).await.unwrap(), ReviewOutcome::Unauthenticated);
            assert_eq!(
                client.review(&fixture.ann(), &["other".to_owned()]).await.unwrap(),
                ReviewOutcome::Unauthenticated
            );
        }
    }
}
