//! Invalid requests over raw sockets, and unauthorized clients.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use navicert_server::client_auth::{ClientAuth, TokenFile};
use navicert_server::webhook::{AudienceMode, WebhookSettings};
use navicert_testkit::{Ca, Canaries, HttpClient, RawClient};
use serde_json::{Value, json};

use super::{Fixture, Options, review};

async fn raw(fixture: &Fixture) -> RawClient {
    RawClient::connect_tls(fixture.address, &fixture.ca, None, &["http/1.1"]).await
}

/// Status of the first response, and all received data.
async fn answered(mut client: RawClient, request: &[u8]) -> (String, String) {
    let _ = client.try_write(request).await;
    let all = String::from_utf8(client.read_to_end(1 << 20).await).unwrap();
    (all.split(' ').nth(1).unwrap_or_default().to_owned(), all)
}

fn post(headers: &str, body: &str) -> Vec<u8> {
    format!("POST /authenticate HTTP/1.1\r\nhost: h\r\n{headers}\r\n{body}").into_bytes()
}

// S217: limits and invalid bodies; S218: the response names the problem, but does not echo the body.
#[tokio::test]
async fn invalid_body_is_400_and_not_echoed() {
    let fixture = Fixture::start(Options::default()).await;
    let mut canaries = Canaries::new();
    let secret = canaries.plant("token");
    let head = r#""kind":"TokenReview","apiVersion":"authentication.k8s.io/v1""#;
    let deep = format!("{{{head},\"x\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    for body in [
        String::new(),
        secret.clone(),
        format!("{{{head},\"spec\":{{\"token\":\"{secret}\"}}"),
        format!("{{{head},\"spec\":{{\"token\":[\"{secret}\"]}}}}"),
        format!("{{{head},\"spec\":{{\"token\":\"{secret}\",\"token\":\"{secret}\"}}}}"),
        format!("{{{head},\"spec\":{{\"token\":\"\"}}}}"),
        format!("{{{head},\"spec\":{{\"token\":\"\\ud800{secret}\"}}}}"),
        format!(
            "{{\"kind\":\"{secret}\",\"apiVersion\":\"authentication.k8s.io/v1\",\"spec\":{{\"token\":\"t\"}}}}"
        ),
        format!("{{\"kind\":\"TokenReview\",\"apiVersion\":\"{secret}\",\"spec\":{{\"token\":\"t\"}}}}"),
        deep,
        "\u{0}".repeat(1_000),
    ] {
        let headers = format!("content-length: {}\r\n", body.len());
        let (code, all) = answered(raw(&fixture).await, &post(&headers, &body)).await;
        assert_eq!(code, "400", "{body:.80}");
        assert!(all.contains("\"kind\":\"Status\"") && all.contains("connection: close"), "{all}");
        canaries.assert_absent("an answer", all.as_bytes());
    }
    assert_eq!(
        fixture.status(&fixture.ann()).await["authenticated"],
        true,
        "and good ones are still answered"
    );
    fixture
        .until("the last line of the audit log", || fixture.audit().contains("\"decision\":\"allow\""))
        .await;
    canaries.assert_absent("the audit log", fixture.audit().as_bytes());
}

// S217: 413 with or without a declared length, before the whole body is read.
#[tokio::test]
async fn too_large_body_is_413() {
    let settings = WebhookSettings { max_body_bytes: 4_096, ..WebhookSettings::default() };
    let fixture = Fixture::start(Options { settings, ..Options::default() }).await;
    let (code, _) = answered(raw(&fixture).await, &post("content-length: 99999999\r\n", "{")).await;
    assert_eq!(code, "413");
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(4_096)).repeat(2);
    let (code, _) = answered(raw(&fixture).await, &post("transfer-encoding: chunked\r\n", &chunk)).await;
    assert_eq!(code, "413");
    let body = review("v1", &fixture.ann(), &[]).to_string();
    let mut chunks = String::new();
    for piece in body.as_bytes().chunks(7) {
        chunks += &format!("{:x}\r\n{}\r\n", piece.len(), std::str::from_utf8(piece).unwrap());
    }
    let (code, all) = answered(
        raw(&fixture).await,
        &post("transfer-encoding: chunked\r\nconnection: close\r\n", &format!("{chunks}0\r\n\r\n")),
    )
    .await;
    assert_eq!(code, "200", "in many pieces, within the limit");
    assert!(all.contains("oidc:ann"), "{all}");
}

// A75: rejects ambiguous requests.
#[tokio::test]
async fn rejects_ambiguous_requests() {
    let fixture = Fixture::start(Options::default()).await;
    for headers in [
        "content-length: 1\r\ncontent-length: 2\r\n",
        "content-length: 2\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "content-length : 2\r\n",
        "x: a\r\n b\r\ncontent-length: 2\r\n",
        "x: a\nb: c\r\ncontent-length: 2\r\n",
        "content-length: +2\r\n",
    ] {
        let (code, _) = answered(raw(&fixture).await, &post(headers, "{}")).await;
        assert_eq!(code, "400", "{headers:?}");
    }
}

// A body that never arrives does not hold an in-flight slot.
#[tokio::test]
async fn slow_body_times_out() {
    let settings = WebhookSettings { body_timeout: Duration::from_millis(50), ..WebhookSettings::default() };
    let fixture = Fixture::start(Options { settings, ..Options::default() }).await;
    let (code, _) = answered(raw(&fixture).await, &post("content-length: 10\r\n", "{")).await;
    assert_eq!(code, "408");
}

// S223, A71: unauthenticated clients learn nothing about a token.
#[tokio::test]
async fn requires_an_allowed_certificate_or_token() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    std::fs::write(&path, "a-long-enough-secret\n").unwrap();
    let clients = Ca::new("clients");
    let options = |names: &[&str], token: Option<Arc<TokenFile>>| Options {
        client_auth: ClientAuth::require(Some(names.iter().map(|&name| name.to_owned()).collect()), token),
        client_authority: Some(clients.clone()),
        ..Options::default()
    };
    let apiserver = clients.client("kube-apiserver").issue();
    let other = clients.client("other-client").issue();
    let stranger = Ca::new("strangers").client("kube-apiserver").issue();
    let fixture = Fixture::start(options(&["kube-apiserver"], None)).await;
    let asked = async |fixture: &Fixture, client: HttpClient| {
        let body = review("v1", &fixture.ann(), &[]);
        client.post_json(&fixture.url("/authenticate"), &body).await.map(|reply| reply.status.as_u16())
    };
    assert_eq!(asked(&fixture, HttpClient::with_identity(&fixture.ca, &apiserver)).await.unwrap(), 200);
    assert_eq!(asked(&fixture, HttpClient::with_identity(&fixture.ca, &other)).await.unwrap(), 403);
    assert_eq!(asked(&fixture, fixture.client()).await.unwrap(), 401);
    assert!(
        asked(&fixture, HttpClient::with_identity(&fixture.ca, &stranger)).await.is_err(),
        "not even TLS"
    );
    let who = "\"caller\":\"kube-apiserver\"";
    fixture.until("who asked is in the audit log", || fixture.audit().contains(who)).await;

    let token = TokenFile::open(&path).unwrap();
    let fixture = Fixture::start(options(&["kube-apiserver"], Some(Arc::clone(&token)))).await;
    for (authorization, code) in [
        ("Bearer a-long-enough-secret", 200),
        ("bearer a-long-enough-secret", 200),
        ("Bearer a-long-enough-secret2", 401),
        ("Bearer a-long-enough-secre", 401),
        ("Bearer ", 401),
        ("Basic a-long-enough-secret", 401),
        ("", 401),
    ] {
        let body = bytes::Bytes::from(review("v1", &fixture.ann(), &[]).to_string());
        let request = Request::post(fixture.url("/authenticate")).header("authorization", authorization);
        let reply = fixture.client().send(request.body(body).unwrap()).await.unwrap();
        assert_eq!(reply.status, code, "{authorization}");
    }
    assert!(!format!("{token:?}").contains("long-enough"));
    for unusable in ["", "short", "with white space in it"] {
        std::fs::write(&path, unusable).unwrap();
        assert!(TokenFile::open(&path).is_err(), "{unusable:?}");
    }
}

// S252: a request for another protocol ends the connection, whatever the response is; what follows is not a request,
// so its framing need not be checked.
#[tokio::test]
async fn bytes_after_a_refused_upgrade_are_not_a_request() {
    let fixture = Fixture::start(Options::default()).await;
    let body = review("v1", &fixture.ann(), &[]).to_string();
    for line in ["Upgrade: websocket", "upgrade: h2c", "Upgrade:"] {
        let mut client = RawClient::connect_tls(fixture.address, &fixture.ca, None, &["http/1.1"]).await;
        let request = |line: &str| {
            let length = body.len();
            format!("POST /authenticate HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\n{line}\r\n{body}")
        };
        // The second one is ambiguous.
        let both = request(&format!("{line}\r\n")) + &request("Transfer-Encoding: chunked\r\n");
        client.write(both.as_bytes()).await;
        let told = String::from_utf8(client.read_to_end(1 << 16).await).unwrap();
        assert_eq!(told.matches("HTTP/1.1 ").count(), 1, "{line}: {told}");
        assert!(told.contains("connection: close"), "{line}: {told}");
    }
}

// Every decision has a line, with source and reason; the user too where the token was verified.
#[tokio::test]
async fn audit_log_has_every_rejection() {
    let settings = WebhookSettings { audience_mode: AudienceMode::Token, ..WebhookSettings::default() };
    let fixture = Fixture::start(Options { settings, ..Options::default() }).await;
    let token = fixture.ann();
    let asked = review("v1", &token, &["b"]);
    let other = fixture.client().post_json(&fixture.url("/authenticate"), &asked).await.unwrap();
    assert_eq!(other.json()["status"]["authenticated"], false);
    assert_eq!(fixture.client().get(&fixture.url("/nowhere?access_token=x")).await.unwrap().status, 404);
    let limits = navicert_server::ServerLimits { requests: 0, ..Default::default() };
    let full = Fixture::start(Options { limits, ..Options::default() }).await;
    assert_eq!(full.review(&token).await.status, 429);
    for (fixture, event, reason, user, code) in [
        (&fixture, "tokenreview", "audience", Some("oidc:ann"), 200),
        (&fixture, "request", "path", None, 404),
        (&full, "tokenreview", "too_many_requests", None, 429),
    ] {
        let find = || {
            let lines = fixture.audit();
            let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            lines.find(|line| line["reason"] == reason)
        };
        fixture.until(reason, || find().is_some()).await;
        let line = find().unwrap();
        assert_eq!((&line["event"], &line["source"]), (&json!(event), &json!("127.0.0.1")), "{line}");
        assert_eq!((&line["user"]["username"], &line["code"]), (&json!(user), &json!(code)), "{line}");
        let decision = if code == 429 { "error" } else { "deny" };
        assert_eq!(line["decision"], decision, "{line}");
    }
}
