//! Our own client of TokenReviews, against every answer a server may give (WV1–WV15) and against our own webhook.

use std::sync::Arc;
use std::time::Duration;

use navicert_client::credential::{BoxFuture, Credential, Fixed};
use navicert_client::transport::{self, Timer, Transport, Trust};
use navicert_server::token_review_client::{ReviewError, Reviewed, TokenReviewClient};
use navicert_server::webhook;
use navicert_testkit::{Answer, Ca, HttpServer};
use navicert_types::token_review::{UserInfo, Version};
use serde_json::{Value, json};

use super::{Options, Rig};

/// Pauses take no time; only limits last.
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

fn client(ca: &Ca, url: &str, path: &str, version: Version, implicit: &[&str]) -> TokenReviewClient {
    let trust = Trust::Pem(ca.pem().into_bytes());
    let settings = transport::Settings { trust, ..transport::Settings::new(url) };
    let source = Arc::new(Fixed::new(Credential::anonymous()));
    let transport = Transport::new(settings, source, transport::Around::system()).unwrap();
    let implicit = implicit.iter().map(|&audience| audience.to_owned()).collect();
    TokenReviewClient::new(transport, path, version, implicit, Arc::new(NoPause))
}

fn told(outcome: &Result<Reviewed, ReviewError>) -> String {
    match outcome {
        Ok(Reviewed::Authenticated { user, audiences }) => format!("{} {audiences:?}", user.username),
        Ok(Reviewed::Nobody) => "nobody".to_owned(),
        Err(ReviewError::Unknown(text)) => format!("unknown: {text}"),
        Err(ReviewError::Status(code)) => format!("status {code}"),
        Err(ReviewError::Malformed(_)) => "malformed".to_owned(),
        Err(other) => panic!("{other}"),
    }
}

fn answer(version: &str, status: &Value) -> Value {
    json!({"kind": "TokenReview", "apiVersion": format!("authentication.k8s.io/{version}"), "status": status})
}

// WV1–WV10, S211–S213, S215
#[tokio::test]
async fn every_answer_a_server_may_give_is_read_as_kube_apiserver_reads_it() {
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
        ("WV5", Answer::json(&capital), "nobody", 1),
        ("WV5", with(json!({"Authenticated": true, "user": {"username": "u"}})), "nobody", 1),
        ("WV6", with(json!({"authenticated": false})), "nobody", 1),
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
        let outcome = client(&ca, &server.url(), "/review", Version::V1, &[]).review("t", &[]).await;
        assert_eq!((told(&outcome).as_str(), server.count("/review")), (expected, requests), "{row}");
    }
}

// WV11–WV15, S214
#[tokio::test]
async fn audiences_are_what_the_server_says_of_those_that_were_asked_about() {
    let ca = Ca::new("reviewer");
    for (row, wanted, returned, expected) in [
        ("WV11", &["api"][..], &[][..], "u [\"api\"]"),
        ("WV12", &["other"], &[], "nobody"),
        ("WV13", &["api", "other"], &["other"], "u [\"other\"]"),
        ("WV14", &["api"], &["zzz"], "nobody"),
        ("WV15", &[], &["zzz"], "u []"),
        ("S214", &["a", "b"], &["b", "a", "c"], "u [\"b\", \"a\"]"),
    ] {
        for error in ["", "cold"] {
            let server = HttpServer::start(&ca);
            let status = json!({"authenticated": true, "user": {"username": "u"}, "audiences": returned, "error": error});
            server.answer("/review", Answer::json(&answer("v1beta1", &status)));
            let client = client(&ca, &server.url(), "/review", Version::V1beta1, &["api"]);
            let wanted: Vec<String> = wanted.iter().map(|&audience| audience.to_owned()).collect();
            assert_eq!(told(&client.review("t", &wanted).await), expected, "{row}");
        }
    }
}

// S276: the two ends of ours understand each other, on both paths and in both versions.
#[tokio::test]
async fn our_webhook_answers_our_client() {
    let settings = webhook::Settings { server_audiences: vec!["api".into()], ..Default::default() };
    let rig = Rig::start(Options { settings, ..Options::default() }).await;
    for path in ["/authenticate", "/apis/authentication.k8s.io/v1/tokenreviews"] {
        for version in Version::ALL {
            let client = client(&rig.ca, &rig.url(""), path, version, &["api"]);
            let outcome = client.review(&rig.ann(), &["api".to_owned()]).await.unwrap();
            let Reviewed::Authenticated { user, audiences } = outcome else { panic!("{outcome:?}") };
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
            assert_eq!(client.review("opaque", &[]).await.unwrap(), Reviewed::Nobody);
            assert_eq!(client.review(&rig.ann(), &["other".to_owned()]).await.unwrap(), Reviewed::Nobody);
        }
    }
}
