//! Tests of regular, slow and malformed answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::Empty;
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::*;

#[tokio::test]
async fn computed_answer_receives_the_whole_request() {
    let (_ca, server, client) = started();
    server.answer_with("/review", |request| match request.json()["spec"]["token"].as_str() {
        Some("good") => Answer::json(&serde_json::json!({"authenticated": true})),
        _ => Answer::unauthorized(),
    });
    let good = serde_json::json!({"spec": {"token": "good"}});
    assert_eq!(client.post_json(&server.url_of("/review"), &good).await.unwrap().status, 200);
    let bad = serde_json::json!({"spec": {}});
    assert_eq!(client.post_json(&server.url_of("/review"), &bad).await.unwrap().status, 401);
    server.forget_answers();
    assert_eq!(client.post_json(&server.url_of("/review"), &good).await.unwrap().status, 404);
}

#[tokio::test]
async fn a_slow_answer_waits_before_its_head_or_in_its_body() {
    let server = HttpServer::start_plain();
    let (head, body) = (Gate::new(), Gate::new());
    server.answer("/", Answer::text("onetwo").after(&head).stalled_at(3, &body));
    let mut client = RawClient::connect(server.address()).await;
    client.write(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    head.wait_for_arrivals(1).await;
    assert_eq!(body.arrivals(), 0);
    head.open();
    let start = client.read_until(b"one").await;
    assert!(start.windows(17).any(|window| window == b"content-length: 6"), "{}", start.escape_ascii());
    body.wait_for_arrivals(1).await;
    body.open();
    assert_eq!(client.read_to_end(100).await, b"two");
}

#[tokio::test]
async fn a_truncated_answer_announces_more_than_it_sends() {
    let (_ca, server, client) = started();
    server.answer("/", Answer::text("0123456789").truncated_at(4));
    assert!(client.get(&server.url_of("/")).await.is_err());
    assert!(client.http2().get(&server.url_of("/")).await.is_err());
    let plain = HttpServer::start_plain();
    plain.answer("/", Answer::text("0123456789").truncated_at(4));
    let mut raw = RawClient::connect(plain.address()).await;
    raw.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let all = raw.read_to_end(1_000).await;
    assert!(all.ends_with(b"\r\n\r\n0123"), "{}", all.escape_ascii());
    assert!(all.windows(18).any(|window| window == b"content-length: 10"));
}

#[tokio::test]
async fn a_giant_answer_is_as_long_as_announced_and_an_endless_one_is_not_announced() {
    let (_ca, server, client) = started();
    server.answer("/giant", Answer::filler("application/json", 5_000_000));
    for client in [&client, &client.http2()] {
        let reply = client.get(&server.url_of("/giant")).await.unwrap();
        assert_eq!((reply.body.len(), reply.header("content-length")), (5_000_000, Some("5000000")));
    }
    let plain = HttpServer::start_plain();
    plain.answer("/", Answer::endless("application/json"));
    let mut raw = RawClient::connect(plain.address()).await;
    raw.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let head = raw.read_until(b"\r\n\r\n").await;
    assert!(
        head.windows(26).any(|window| window == b"transfer-encoding: chunked"),
        "{}",
        head.escape_ascii()
    );
    assert_eq!(raw.read_exactly(1_000_000).await.len(), 1_000_000);
}

#[tokio::test]
async fn redirects_headers_and_trailers_are_sent_as_told() {
    let (_ca, server, client) = started();
    server.answer("/away", Answer::redirect(302, "https://elsewhere.test/x"));
    let reply = client.get(&server.url_of("/away")).await.unwrap();
    assert_eq!((reply.status.as_u16(), reply.header("location")), (302, Some("https://elsewhere.test/x")));
    server.answer("/t", Answer::text("body").header("x-a", "1").header("x-a", "2").trailer("x-sum", "4"));
    let reply = client.http2().get(&server.url_of("/t")).await.unwrap();
    assert_eq!(reply.headers.get_all("x-a").iter().count(), 2);
    assert_eq!(reply.trailers["x-sum"], "4");
}

#[tokio::test]
async fn an_answer_before_the_body_does_not_wait_for_it() {
    let server = HttpServer::start_plain();
    server.answer("/", Answer::status(413).before_body());
    let mut client = RawClient::connect(server.address()).await;
    client.write(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n").await;
    assert!(client.read_until(b"\r\n\r\n").await.starts_with(b"HTTP/1.1 413"));
    assert_eq!(server.requests()[0].body_state, BodyState::Unread);
}

#[tokio::test]
async fn a_client_that_expects_100_continue_gets_it() {
    let server = HttpServer::start_plain();
    let mut client = RawClient::connect(server.address()).await;
    client.write(b"POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 2\r\nconnection: close\r\n\r\n").await;
    assert!(client.read_until(b"\r\n\r\n").await.starts_with(b"HTTP/1.1 100"));
    client.write(b"ok").await;
    assert!(client.read_to_end(1_000).await.starts_with(b"HTTP/1.1 404"));
    assert_eq!(server.requests()[0].text(), "ok");
}

#[tokio::test]
async fn many_requests_at_once_are_all_seen_on_many_connections() {
    let (_ca, server, client) = started();
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&seen);
    server.answer_with("*", move |_| Answer::text(&counter.fetch_add(1, Ordering::SeqCst).to_string()));
    let requests: Vec<_> = (0..64)
        .map(|index| {
            let (client, url) = (client.clone(), server.url_of(&format!("/{index}")));
            tokio::spawn(async move { client.get(&url).await.unwrap().status })
        })
        .collect();
    for request in requests {
        assert_eq!(request.await.unwrap(), 200);
    }
    assert_eq!((server.requests().len(), seen.load(Ordering::SeqCst)), (64, 64));
    assert_eq!(server.connections().len(), 64);
}

#[tokio::test]
async fn requests_of_one_http2_connection_wait_side_by_side() {
    let (ca, server, _client) = started();
    let gate = Gate::new();
    server.answer("/", Answer::text("all").after(&gate));
    let stream = RawClient::connect_tls(server.address(), &ca, None, &["h2"]).await.into_stream();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let requests: Vec<_> = (0..64)
        .map(|_| {
            let mut sender = sender.clone();
            let request = http::Request::get(server.url_of("/")).body(Empty::<Bytes>::new()).unwrap();
            tokio::spawn(async move { sender.send_request(request).await.unwrap().status() })
        })
        .collect();
    gate.wait_for_arrivals(64).await;
    gate.open();
    for request in requests {
        assert_eq!(request.await.unwrap(), 200);
    }
    assert_eq!((server.connections().len(), server.count("/")), (1, 64));
}

#[test]
#[should_panic(expected = "cannot be split at 9")]
fn truncating_beyond_the_end_of_an_answer_fails_the_test() {
    let _ = Answer::text("short").truncated_at(9);
}
