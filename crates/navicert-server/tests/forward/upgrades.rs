//! exec, attach and port-forward: protocol upgrades and their known vulnerabilities.

use navicert_testkit::{Answer, Tunnel};

use super::{OWN, Proxy, status};

const EXEC: &str = "/api/v1/namespaces/a/pods/b/exec";
const SPDY: [&str; 3] =
    ["Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io"];

// S249–S251, B10, B15
#[tokio::test]
async fn upgrade_carries_the_identity_and_copies_bytes_both_ways() {
    let proxy = Proxy::start();
    let tunnel = Tunnel::echo_after("hello");
    proxy.api.answer(EXEC, tunnel.answer().header("x-stream-protocol-version", "v4.channel.k8s.io"));
    let mut client = proxy.raw().await;
    client.write(proxy.head(&format!("POST {EXEC}?command=sh"), &SPDY).as_bytes()).await;
    let head = String::from_utf8(client.read_until(b"\r\n\r\n").await).unwrap().to_lowercase();
    for line in ["http/1.1 101 ", "connection: upgrade", "upgrade: spdy/3.1", "x-stream-protocol-version: v4"]
    {
        assert!(head.contains(line), "{line} in {head}");
    }
    assert_eq!(client.read_exactly(5).await, b"hello");
    client.write(b"\x00\xff GET / HTTP/1.1\n\n").await;
    assert_eq!(client.read_exactly(18).await, b"\x00\xff GET / HTTP/1.1\n");
    let seen = &proxy.api.requests()[0];
    assert_eq!(seen.version, http::Version::HTTP_11, "upgrades go over HTTP/1.1");
    assert_eq!(seen.bearer_token(), Some(OWN));
    assert_eq!(seen.header_values("impersonate-user"), ["ann"]);
    assert_eq!(seen.header_values("impersonate-group"), ["dev", "a,b"]);
    assert_eq!(seen.header("upgrade"), Some("SPDY/3.1"));
}

// S250
#[tokio::test]
async fn half_close_is_forwarded() {
    let proxy = Proxy::start();
    let tunnel = Tunnel::echo();
    proxy.api.answer(EXEC, tunnel.answer());
    let mut client = proxy.raw().await;
    client.write(proxy.head(&format!("POST {EXEC}"), &SPDY).as_bytes()).await;
    client.read_until(b"\r\n\r\n").await;
    client.write(b"the last words").await;
    client.finish_writing().await;
    assert_eq!(client.read_to_end(100).await, b"the last words");
    tunnel.wait_for_closed(1).await;
}

#[tokio::test]
async fn client_disconnect_closes_the_tunnel() {
    let proxy = Proxy::start();
    let tunnel = Tunnel::echo();
    proxy.api.answer(EXEC, tunnel.answer());
    let mut client = proxy.raw().await;
    client.write(proxy.head(&format!("POST {EXEC}"), &SPDY).as_bytes()).await;
    client.read_until(b"\r\n\r\n").await;
    tunnel.wait_for_opened(1).await;
    drop(client);
    tunnel.wait_for_closed(1).await;
}

// PV10, A72
#[tokio::test]
async fn websocket_subprotocol_token_is_not_forwarded() {
    let proxy = Proxy::start();
    proxy.api.answer(EXEC, Tunnel::echo().answer().header("sec-websocket-accept", "accepted"));
    let mut client = proxy.raw().await;
    let lines = [
        "Connection: keep-alive, Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: key",
        "Sec-WebSocket-Protocol: v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0",
    ];
    client.write(proxy.head(&format!("GET {EXEC}"), &lines).as_bytes()).await;
    let head = String::from_utf8(client.read_until(b"\r\n\r\n").await).unwrap();
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("sec-websocket-accept: accepted"), "{head}");
    let seen = &proxy.api.requests()[0];
    assert_eq!(seen.header("sec-websocket-protocol"), Some("v5.channel.k8s.io"));
    assert_eq!(seen.header("sec-websocket-key"), Some("key"));
    assert_eq!(seen.header_values("impersonate-user"), ["ann"]);
}

// PV11, PV13, S252, B4: in CVE-2018-1002105 the connection of a rejected upgrade served further requests.
#[tokio::test]
async fn rejected_upgrade_is_relayed_and_both_connections_close() {
    let proxy = Proxy::start();
    proxy.api.answer(EXEC, Answer::failure(403, "Forbidden", "pods is forbidden"));
    let mut client = proxy.raw().await;
    let second = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    client.write((proxy.head(&format!("POST {EXEC}"), &SPDY) + second).as_bytes()).await;
    let answer = String::from_utf8(client.read_to_end(10_000).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("pods is forbidden"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    // The next upgrade gets a new connection.
    let mut client = proxy.raw().await;
    client.write(proxy.head(&format!("POST {EXEC}"), &SPDY).as_bytes()).await;
    client.read_to_end(10_000).await;
    let requests = proxy.api.requests();
    let connections: Vec<usize> = requests.iter().map(|request| request.connection).collect();
    assert_eq!((requests.len(), connections), (2, vec![0, 1]));
}

// PV12, B5: CVE-2020-8559 was a redirect during an upgrade.
#[tokio::test]
async fn unexpected_upgrade_response_is_a_502() {
    let proxy = Proxy::start();
    for answer in [
        Answer::text("no protocol"),
        Answer::redirect(302, "https://evil.example/"),
        Answer::redirect(302, "/elsewhere"),
        Answer::status(204),
    ] {
        proxy.api.answer(EXEC, answer.clone());
        let mut client = proxy.raw().await;
        client.write(proxy.head(&format!("POST {EXEC}"), &SPDY).as_bytes()).await;
        let told = client.read_to_end(10_000).await;
        assert_eq!(status(&told), 502, "{answer:?}");
        assert!(!String::from_utf8_lossy(&told).to_lowercase().contains("location"));
    }
}

#[tokio::test]
async fn unknown_upgrade_protocols_are_not_forwarded() {
    let proxy = Proxy::start();
    let mut client = proxy.raw().await;
    let lines = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAA"];
    let second = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    client.write((proxy.head("GET /version", &lines) + second).as_bytes()).await;
    let answer = String::from_utf8(client.read_to_end(10_000).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.matches("HTTP/1.1 ").count() == 1, "{answer}");
    let requests = proxy.api.requests();
    assert_eq!(requests.len(), 1);
    for gone in ["upgrade", "connection", "http2-settings"] {
        assert_eq!(requests[0].header(gone), None, "{gone}");
    }
}

#[tokio::test]
async fn upgrade_request_with_a_body_is_rejected() {
    let proxy = Proxy::start();
    proxy.api.answer(EXEC, Tunnel::echo().answer());
    let mut client = proxy.raw().await;
    let lines = [&SPDY[..], &["Content-Length: 5"]].concat();
    client.write((proxy.head(&format!("POST {EXEC}"), &lines) + "hello").as_bytes()).await;
    assert_eq!(status(&client.read_to_end(10_000).await), 400);
    assert_eq!(proxy.api.requests().len(), 0);
}
