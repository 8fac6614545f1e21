//! Watch streams and upgraded connections.

use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use serde_json::json;

use super::*;
use crate::net::tunnel::Tunnel;
use crate::net::watch::Watch;

const UPGRADE: &[u8] = b"GET /exec HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n";

#[tokio::test]
async fn events_arrive_one_by_one_as_they_are_pushed() {
    let server = HttpServer::start_plain();
    let watch = Watch::new();
    server.answer("/watch", watch.answer());
    let stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request =
        http::Request::get("/watch").header("host", "a").body(http_body_util::Empty::<Bytes>::new()).unwrap();
    let mut response = sender.send_request(request).await.unwrap();
    watch.wait_for_opened(1).await;
    for number in 0..3 {
        watch.event(&json!({"type": "ADDED", "object": number}));
        let frame = wait::within("an event", response.frame()).await.unwrap().unwrap();
        let line = frame.into_data().unwrap();
        assert!(line.ends_with(b"\n"));
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&line).unwrap()["object"], number);
    }
    watch.finish();
    assert!(wait::within("the end", response.frame()).await.is_none());
    watch.wait_for_closed(1).await;
}

#[tokio::test]
async fn detects_a_disconnected_watcher_over_both_protocols() {
    let (_ca, server, client) = started();
    let watch = Watch::new();
    server.answer("/watch", watch.answer());
    for (number, client) in [client.clone(), client.http2()].into_iter().enumerate() {
        let url = server.url_of("/watch");
        let watcher = tokio::spawn(async move { client.get(&url).await.is_ok() });
        watch.wait_for_opened(number + 1).await;
        assert_eq!(watch.open_streams(), 1);
        watcher.abort();
        watch.wait_for_closed(number + 1).await;
        assert_eq!(watch.open_streams(), 0);
    }
}

#[tokio::test]
async fn aborted_stream_has_no_regular_end() {
    let (_ca, server, client) = started();
    let watch = Watch::new();
    server.answer("/watch", watch.answer());
    for (number, client) in [client.clone(), client.http2()].into_iter().enumerate() {
        let url = server.url_of("/watch");
        let watcher = tokio::spawn(async move { client.get(&url).await.is_err() });
        watch.wait_for_opened(number + 1).await;
        watch.abort();
        assert!(wait::within("an error", watcher).await.unwrap());
    }
}

#[test]
#[should_panic(expected = "no watch stream is open")]
fn event_without_a_watcher_fails_the_test() {
    Watch::new().event(&json!({}));
}

#[tokio::test]
async fn an_upgraded_connection_greets_echoes_and_closes_after_its_peer() {
    let (ca, server, _client) = started();
    let tunnel = Tunnel::echo_after("hello ");
    server.answer("/exec", tunnel.answer().header("x-stream-protocol-version", "v5.channel.k8s.io"));
    let mut client = RawClient::connect_tls(server.address(), &ca, None, &["http/1.1"]).await;
    client.write(UPGRADE).await;
    let head = String::from_utf8(client.read_until(b"\r\n\r\n").await).unwrap();
    assert!(
        head.starts_with("HTTP/1.1 101") && head.contains("SPDY/3.1") && head.contains("v5.channel"),
        "{head}"
    );
    assert_eq!(client.read_exactly(6).await, b"hello ");
    client.write(b"not HTTP at all\0").await;
    assert_eq!(client.read_exactly(16).await, b"not HTTP at all\0");
    client.finish_writing().await;
    assert!(client.read_to_end(100).await.is_empty());
    tunnel.wait_for_closed(1).await;
    assert_eq!(tunnel.received(), b"not HTTP at all\0");
    assert_eq!(server.requests()[0].header("upgrade"), Some("SPDY/3.1"));
}

#[tokio::test]
async fn bytes_sent_ahead_of_the_101_reach_the_tunnel() {
    let server = HttpServer::start_plain();
    let tunnel = Tunnel::echo();
    server.answer("/exec", tunnel.answer());
    let mut client = RawClient::connect(server.address()).await;
    client.write(&[UPGRADE, b"early"].concat()).await;
    client.read_until(b"\r\n\r\n").await;
    assert_eq!(client.read_exactly(5).await, b"early");
    tunnel.wait_for_bytes(5).await;
}

#[tokio::test]
async fn a_refused_upgrade_stays_http_and_a_second_request_behind_it_is_seen() {
    // S252: what a proxy lets through behind a refused upgrade must show here as a request of its own.
    for refusal in
        [Answer::status(403), Answer::status(200), Answer::redirect(302, "https://elsewhere.test/")]
    {
        let server = HttpServer::start_plain();
        let status = refusal.status;
        server.answer("/exec", refusal);
        let mut client = RawClient::connect(server.address()).await;
        client
            .write(&[UPGRADE, b"GET /smuggled HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"].concat())
            .await;
        let replies = String::from_utf8(client.read_to_end(10_000).await).unwrap();
        assert!(replies.starts_with(&format!("HTTP/1.1 {}", status.as_u16())), "{replies}");
        assert_eq!((server.count("/exec"), server.count("/smuggled")), (1, 1));
    }
}

#[tokio::test]
async fn an_upgraded_connection_can_be_cut() {
    let server = HttpServer::start_plain();
    let tunnel = Tunnel::echo();
    server.answer("/exec", tunnel.answer());
    for (number, how) in [Cut::Clip, Cut::Reset].into_iter().enumerate() {
        let mut client = RawClient::connect(server.address()).await;
        client.write(UPGRADE).await;
        client.read_until(b"\r\n\r\n").await;
        tunnel.wait_for_opened(number + 1).await;
        server.cut_connections(how);
        assert!(client.read_to_end(100).await.is_empty());
        tunnel.wait_for_closed(number + 1).await;
    }
}
