//! exec, attach and port-forward through the proxy.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use navicert_testkit::{Answer, Tunnel};

use super::{Front, OWN, status};

const EXEC: &str = "/api/v1/namespaces/a/pods/b/exec";

fn lines<'l>(token: &'l str, more: &[&'l str]) -> Vec<&'l str> {
    let mut lines = vec![token, "Connection: Upgrade"];
    lines.extend(more);
    lines
}

const SPDY: [&str; 2] = ["Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io"];

// S249–S251, B10, B15: the upgrade carries the identity and uses HTTP/1.1.
#[tokio::test]
async fn upgrade_carries_the_identity_and_then_bytes() {
    let front = Front::start().await;
    front.api.answer(EXEC, Tunnel::echo().answer());
    let token = format!("Authorization: Bearer {}", front.ann());
    let mut client = front.raw().await;
    client.write(front.head(&format!("POST {EXEC}"), &lines(&token, &SPDY)).as_bytes()).await;
    assert_eq!(status(&client.read_until(b"\r\n\r\n").await), 101);
    client.write(b"\x00 bytes of any kind").await;
    assert_eq!(client.read_exactly(19).await, b"\x00 bytes of any kind");
    let seen = &front.api.requests()[0];
    assert_eq!(seen.version, http::Version::HTTP_11);
    assert_eq!(seen.bearer_token(), Some(OWN));
    assert_eq!(seen.header_values("impersonate-user"), ["ann"]);
    assert_eq!(seen.header_values("impersonate-group"), ["dev", "a,b"]);
    assert_eq!(front.observer.last(), format!("101 ann - - {EXEC}"));
}

// PV10, A72, S98
#[tokio::test]
async fn browser_token_is_read_from_subprotocols_and_not_forwarded() {
    let front = Front::start().await;
    front.api.answer(EXEC, Tunnel::echo().answer());
    let encoded = URL_SAFE_NO_PAD.encode(front.ann());
    let protocols = format!(
        "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{encoded}, v5.channel.k8s.io, v4.channel.k8s.io"
    );
    let socket = ["Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: key"];
    let mut client = front.raw().await;
    client.write(front.head(&format!("GET {EXEC}"), &lines(&protocols, &socket)).as_bytes()).await;
    assert_eq!(status(&client.read_until(b"\r\n\r\n").await), 101);
    let seen = &front.api.requests()[0];
    assert_eq!(seen.header_values("sec-websocket-protocol"), ["v5.channel.k8s.io, v4.channel.k8s.io"]);
    assert_eq!(seen.header_values("impersonate-user"), ["ann"]);
    assert!(!format!("{:?}", seen.headers).contains(&encoded));
    // A rejected token is not forwarded either, nor one without the handshake.
    for (protocols, upgrade) in [
        ("base64url.bearer.authorization.k8s.io.YmFk, v5.channel.k8s.io".to_owned(), "Upgrade: websocket"),
        (format!("base64url.bearer.authorization.k8s.io.{encoded}"), "Upgrade: websocket"),
        (
            format!(
                "base64url.bearer.authorization.k8s.io.{encoded}, base64url.bearer.authorization.k8s.io.{encoded}, a"
            ),
            "Upgrade: websocket",
        ),
        (format!("base64url.bearer.authorization.k8s.io.{encoded}, v5.channel.k8s.io"), "Upgrade: SPDY/3.1"),
    ] {
        let mut client = front.raw().await;
        let protocols = format!("Sec-WebSocket-Protocol: {protocols}");
        client.write(front.head(&format!("GET {EXEC}"), &lines(&protocols, &[upgrade])).as_bytes()).await;
        assert_eq!(status(&client.read_to_end(10_000).await), 401, "{upgrade}");
    }
    assert_eq!(front.api.requests().len(), 1);
}

// PV11, PV13, S252, B4
#[tokio::test]
async fn rejected_upgrade_is_relayed_and_trailing_bytes_are_no_request() {
    let front = Front::start().await;
    front.api.answer(EXEC, Answer::failure(403, "Forbidden", "pods is forbidden"));
    let token = format!("Authorization: Bearer {}", front.ann());
    for number in 1..=2 {
        let mut client = front.raw().await;
        let head = front.head(&format!("POST {EXEC}"), &lines(&token, &SPDY));
        let second = format!("GET /smuggled HTTP/1.1\r\nHost: a\r\n{token}\r\n\r\n");
        client.write((head + &second).as_bytes()).await;
        let answer = String::from_utf8(client.read_to_end(10_000).await).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("pods is forbidden"), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        let requests = front.api.requests();
        assert_eq!(requests.len(), number);
        assert_eq!(requests[number - 1].connection, number - 1, "no connection is used twice");
    }
}

// PV12, S252, B5
#[tokio::test]
async fn invalid_upgrade_response_is_a_502() {
    let front = Front::start().await;
    let token = format!("Authorization: Bearer {}", front.ann());
    for answer in [Answer::text("no protocol"), Answer::redirect(302, "https://evil.example/")] {
        front.api.answer(EXEC, answer);
        let mut client = front.raw().await;
        client.write(front.head(&format!("POST {EXEC}"), &lines(&token, &SPDY)).as_bytes()).await;
        let told = client.read_to_end(10_000).await;
        assert_eq!(status(&told), 502);
        assert!(!String::from_utf8_lossy(&told).contains("evil"));
    }
}
