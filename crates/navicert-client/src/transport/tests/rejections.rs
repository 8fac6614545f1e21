//! Rejected credentials: 401 responses and TLS alerts, once, twice and concurrently (T24, T25, T28).

use std::sync::Arc;

use http::{Request, StatusCode};
use http_body_util::Full;
use navicert_testkit::{Answer, ApiServer, Ca, ClientAuth, Gate, wait};
use rustls::CertificateError;

use super::support::{ScriptedSource, bearer, certificate, fixture, request, rig_with, settings, text};
use crate::credential::{Credential, Rejection};
use crate::transport::{Body, TransportError, TransportSettings};

fn server(ca: &Ca) -> ApiServer {
    let api = ApiServer::start(ca);
    api.accept_token("token2", "ann", &[]);
    api
}

// T28, C432
#[tokio::test]
async fn revoked_token_is_refreshed_and_the_request_retried_once() {
    let ca = Ca::new("root");
    let api = server(&ca);
    let source = ScriptedSource::new([bearer("token1"), bearer("token2")]);
    let fixture = fixture(&api, &ca, source.clone());
    assert_eq!(fixture.read("/version").await.0, 200);
    assert_eq!(source.refreshes(), 1);
    let tokens: Vec<_> = api.requests().iter().map(|r| r.bearer_token().unwrap().to_owned()).collect();
    assert_eq!(tokens, ["token1", "token2"]);
    assert_eq!(api.connections().len(), 1, "a new token needs no new connection (C452)");
    assert!(
        matches!(source.rejections()[0], Rejection::Unauthorized(Some(ref response)) if response.status == 401)
    );
}

// T28, C430
#[tokio::test]
async fn without_retry_the_401_is_returned_and_the_next_request_succeeds() {
    let ca = Ca::new("root");
    let api = server(&ca);
    let source = ScriptedSource::new([bearer("token1"), bearer("token2")]);
    let settings = TransportSettings { retry_unauthorized: false, ..settings(&api, &ca) };
    let fixture = rig_with(settings, source.clone());
    let rejected = fixture.get("/version").await.unwrap();
    assert_eq!(rejected.status(), 401);
    assert!(text(rejected).await.contains("Unauthorized"), "with its body");
    assert_eq!(fixture.read("/version").await.0, 200);
    assert_eq!(source.refreshes(), 1);
}

// T28, C432
#[tokio::test]
async fn streamed_body_is_not_retried_and_a_buffered_one_is() {
    let ca = Ca::new("root");
    for (body, expected, seen) in
        [(Body::stream(Full::new(bytes::Bytes::from_static(b"once"))), 401, 1), (Body::from("twice"), 200, 2)]
    {
        let api = server(&ca);
        let source = ScriptedSource::new([bearer("token1"), bearer("token2")]);
        let fixture = fixture(&api, &ca, source.clone());
        let response = fixture.send(Request::post("/x").body(body).unwrap()).await.unwrap();
        assert_eq!((response.status().as_u16(), api.count("/x")), (expected, seen));
        assert_eq!(source.refreshes(), 1, "the credential is refreshed either way");
    }
}

// T28, C430
#[tokio::test]
async fn concurrent_401s_refresh_once() {
    let ca = Ca::new("root");
    let api = server(&ca);
    let gate = Gate::new();
    let closed = gate.clone();
    api.answer_with("/slow", move |request| match request.bearer_token() {
        Some("token1") => Answer::unauthorized().after(&closed),
        _ => Answer::text("in"),
    });
    let source = ScriptedSource::new([bearer("token1"), bearer("token2")]);
    let fixture = fixture(&api, &ca, source.clone());
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let transport = fixture.transport.clone();
            tokio::spawn(async move { transport.send(request("/slow")).await.unwrap().status() })
        })
        .collect();
    gate.wait_for_arrivals(16).await;
    gate.open();
    for task in tasks {
        assert_eq!(wait::within("an answer", task).await.unwrap(), StatusCode::OK);
    }
    assert_eq!((source.refreshes(), source.rejections().len()), (1, 16));
}

// T28, C432, C442
#[tokio::test]
async fn second_401_is_returned_and_reported_to_the_source() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    let source = ScriptedSource::new([bearer("token1"), bearer("token2")]);
    let fixture = fixture(&api, &ca, source.clone());
    assert_eq!(fixture.get("/version").await.unwrap().status(), 401);
    assert_eq!(api.count("/version"), 2, "never a third time");
    assert_eq!(source.rejections().len(), 2);
}

// C430
#[tokio::test]
async fn failed_refresh_returns_the_401() {
    let ca = Ca::new("root");
    let api = server(&ca);
    let source = ScriptedSource::new([bearer("token1")]);
    source.fail_refreshes();
    let fixture = fixture(&api, &ca, source.clone());
    assert_eq!(fixture.get("/version").await.unwrap().status(), 401);
    assert_eq!((source.refreshes(), api.count("/version")), (1, 1));
}

// C326
#[tokio::test]
async fn no_request_is_sent_without_a_credential() {
    let ca = Ca::new("root");
    let api = server(&ca);
    let error = fixture(&api, &ca, ScriptedSource::new([])).get("/version").await.unwrap_err();
    let text = navicert_types::error_chain(&error);
    assert!(text.starts_with("getting credentials: "), "{text}");
    assert!(api.connections().is_empty());
}

// C435: other statuses are returned as they are
#[tokio::test]
async fn only_a_401_refreshes() {
    let ca = Ca::new("root");
    let api = server(&ca);
    let source = ScriptedSource::new([bearer("token1"), bearer("token2")]);
    let fixture = fixture(&api, &ca, source.clone());
    for status in [403, 407, 429, 500, 503] {
        api.answer("/x", Answer::status(status));
        assert_eq!(fixture.get("/x").await.unwrap().status(), status);
    }
    assert!(source.rejections().is_empty());
}

// C435
#[tokio::test]
async fn certificate_alert_refreshes_once_and_the_request_succeeds() {
    let ca = Ca::new("root");
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for http1_only in [true, false] {
            let api = ApiServer::start_with(&ca, |server| {
                let server = server.client_auth(ClientAuth::Optional(ca.clone())).tls_versions(&[version]);
                if http1_only { server.http1_only() } else { server }
            });
            let old = ca.client("ann").expired().issue();
            let new = ca.client("ann").issue();
            let source = ScriptedSource::new([certificate(&old), certificate(&new)]);
            let fixture = fixture(&api, &ca, source.clone());
            let body = Body::stream(Full::new(bytes::Bytes::from_static(b"x")));
            let sent = fixture.send(Request::post("/x").body(body).unwrap()).await;
            let shown = format!("{version:?}, http1_only {http1_only}: {sent:?}");
            assert!(matches!(source.rejections()[0], Rejection::TlsAlert), "{shown}");
            assert_eq!(source.refreshes(), 1, "{shown}");
            // A streamed body may have been sent in part with TLS 1.3; a buffered one is always retried.
            assert_eq!(fixture.read("/x").await.0, 200, "{shown}");
        }
    }
}

// C435
#[tokio::test]
async fn rejected_certificate_is_an_error_with_the_alerts_name() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.refuse_client_certificates(Some(CertificateError::Revoked));
    let ann = ca.client("ann").issue();
    let source = ScriptedSource::new([certificate(&ann), certificate(&ca.client("ann").renew(&ann))]);
    let fixture = fixture(&api, &ca, source.clone());
    let error = fixture.get("/version").await.unwrap_err();
    assert!(
        matches!(&error, TransportError::CertificateRejected { alert } if alert == "CertificateRevoked"),
        "{error:?}"
    );
    assert_eq!(source.rejections().len(), 2, "two attempts, no third");
}

// T25, C330 and C167: both identities are presented
#[tokio::test]
async fn token_and_certificate_are_sent_together_in_every_combination() {
    let ca = Ca::new("root");
    let stranger = Ca::new("stranger");
    let good = ca.client("ann").issue();
    let bad = stranger.client("eve").issue();
    let with = |token: &str, identity| Credential { identity, ..bearer(token) };
    let identity = |identity| certificate(identity).identity;
    for (what, credential, expected) in [
        ("good token, good certificate", with("token2", identity(&good)), Some(200)),
        ("bad token, good certificate", with("wrong", identity(&good)), Some(401)),
        ("good token, bad certificate", with("token2", identity(&bad)), None),
        ("good token alone", with("token2", None), Some(200)),
        ("bad token alone", with("wrong", None), Some(401)),
        ("good certificate alone", certificate(&good), Some(200)),
    ] {
        let api = ApiServer::start_with(&ca, |server| server.client_auth(ClientAuth::Optional(ca.clone())));
        api.accept_token("token2", "ann", &[]);
        let answer = fixture(&api, &ca, ScriptedSource::new([credential.clone()])).get("/version").await;
        let status = answer.ok().map(|answer| answer.status().as_u16());
        assert_eq!(status, expected, "{what}");
        if let [seen] = api.requests().as_slice() {
            assert_eq!(seen.client.is_some(), credential.identity.is_some(), "{what}");
            assert_eq!(seen.bearer_token().is_some(), credential.authorization.is_some(), "{what}");
        }
    }
}

// T24, C470: a static credential
#[tokio::test]
async fn rejection_is_reported_and_not_retried_without_a_new_credential() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    let source = ScriptedSource::new([bearer("expired")]);
    let fixture = fixture(&api, &ca, Arc::clone(&source) as Arc<_>);
    assert_eq!(fixture.get("/version").await.unwrap().status(), 401);
    assert_eq!((source.refreshes(), api.count("/version")), (0, 1));
}
