//! Streamed bodies, and aborts that must be forwarded.

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use navicert_client::transport::TransportSettings;
use navicert_server::ServerLimits;
use navicert_server::forward::ForwardRules;
use navicert_testkit::net::http_server::BodyState;
use navicert_testkit::{Answer, Cut, Gate, HttpClient, RawClient, Watch};
use serde_json::json;

use super::{GOOD, Proxy, status};

// PV14, S253: an event reaches the client before the next one exists, over both protocols.
#[tokio::test]
async fn forwards_watch_events_immediately() {
    let proxy = Proxy::start();
    let pods = Watch::new();
    proxy.api.answer("/api/v1/pods", pods.answer());
    let mut client = proxy.raw().await;
    client.write(proxy.head("GET /api/v1/pods?watch=true", &[]).as_bytes()).await;
    assert_eq!(status(&client.read_until(b"\r\n\r\n").await), 200);
    for number in 0..5 {
        pods.event(&json!({"type": "ADDED", "number": number}));
        let event = client.read_until(format!("\"number\":{number}").as_bytes()).await;
        assert!(event.ends_with(number.to_string().as_bytes()));
    }
    pods.finish();
    client.read_until(b"0\r\n\r\n").await;
}

// PV15, S253
#[tokio::test]
async fn client_disconnect_closes_the_upstream_stream() {
    for http1 in [false, true] {
        let proxy = Proxy::start_with(ForwardRules::default(), ServerLimits::default(), |settings| {
            TransportSettings { http2: !http1, ..settings }
        });
        let pods = Watch::new();
        proxy.api.answer("/api/v1/pods", pods.answer());
        let mut client = proxy.raw().await;
        client.write(proxy.head("GET /api/v1/pods?watch=true", &[]).as_bytes()).await;
        client.read_until(b"\r\n\r\n").await;
        pods.wait_for_opened(1).await;
        drop(client);
        pods.wait_for_closed(1).await;
    }
}

// S253
#[tokio::test]
async fn client_disconnect_cancels_the_upstream_request() {
    let proxy = Proxy::start();
    let gate = Gate::new();
    proxy.api.answer("/slow", Answer::text("late").after(&gate));
    let mut client = proxy.raw().await;
    client.write(proxy.head("POST /slow", &["Content-Length: 4000000"]).as_bytes()).await;
    client.write(b"the first bytes").await;
    proxy.api.wait_until("the request's head", |log| log.requests.len() == 1).await;
    drop(client);
    let broken = |state: &BodyState| *state == BodyState::Broken;
    proxy.api.wait_until("the request's end", |log| broken(&log.requests[0].body_state)).await;
}

// S254
#[tokio::test]
async fn large_body_streams_and_100_continue_is_honored() {
    let proxy = Proxy::start();
    let mut client = proxy.raw().await;
    let lines = ["Content-Length: 200000", "Expect: 100-continue"];
    client.write(proxy.head("POST /upload", &lines).as_bytes()).await;
    assert_eq!(status(&client.read_until(b"\r\n\r\n").await), 100);
    client.write(&[b'a'; 100_000]).await;
    proxy
        .api
        .wait_until("the first half", |log| {
            log.requests.first().is_some_and(|request| request.body.len() == 100_000)
        })
        .await;
    client.write(&[b'b'; 100_000]).await;
    assert_eq!(status(&client.read_until(b"\r\n\r\n").await), 200);
    let requests = proxy.api.wait_for_requests(1).await;
    assert_eq!(requests[0].body.len(), 200_000);
    assert_eq!(requests[0].header("expect"), None);
}

// S254
#[tokio::test]
async fn chunked_and_small_bodies_arrive_complete() {
    let proxy = Proxy::start();
    let mut client = proxy.raw().await;
    let head = proxy.head("POST /chunked", &["Transfer-Encoding: chunked"]);
    client.write((head + "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n").as_bytes()).await;
    assert_eq!(status(&client.read_until(b"\r\n\r\n").await), 200);
    client.read_until(b"}").await;
    client.write((proxy.head("POST /small", &["Content-Length: 3"]) + "abc").as_bytes()).await;
    let bodies: Vec<Vec<u8>> =
        proxy.api.wait_for_requests(2).await.into_iter().map(|request| request.body).collect();
    assert_eq!(bodies, [b"hello world".to_vec(), b"abc".to_vec()]);
}

// S253: trailers come after the headers were checked, so they are dropped, in both directions and protocols.
#[tokio::test]
async fn trailers_are_dropped() {
    for upstream_http2 in [true, false] {
        let proxy = Proxy::start_with(ForwardRules::default(), ServerLimits::default(), |settings| {
            TransportSettings { http2: upstream_http2, ..settings }
        });
        proxy.api.answer("/sum", Answer::text("data").trailer("x-sum", "42"));
        let client = HttpClient::trusting(&proxy.ca).http2();
        let request = Request::get(proxy.url("/sum")).header("authorization", format!("Bearer {GOOD}"));
        let reply = client.send(request.body(Bytes::new()).unwrap()).await.unwrap();
        assert_eq!((reply.text(), reply.trailers.len()), ("data", 0));
        let mut client = proxy.raw().await;
        let lines = ["TE: trailers", "Transfer-Encoding: chunked", "Trailer: Impersonate-User"];
        let body = "3\r\nabc\r\n0\r\nImpersonate-User: admin\r\n\r\n";
        client.write((proxy.head("POST /sum", &lines) + body).as_bytes()).await;
        let answer = String::from_utf8(client.read_until(b"0\r\n").await).unwrap();
        assert!(answer.contains("data") && !answer.to_lowercase().contains("trailer"), "{answer}");
        assert_eq!(client.read_exactly(2).await, b"\r\n", "no trailer");
        let sender = RawClient::connect_tls(proxy.address, &proxy.ca, None, &["h2"]).await;
        let io = TokioIo::new(sender.into_stream());
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        let trailers = async {
            Some(Ok(HeaderMap::from_iter([(
                HeaderName::from_static("impersonate-user"),
                HeaderValue::from_static("admin"),
            )])))
        };
        let body = Full::new(Bytes::from("abc")).with_trailers(trailers).boxed_unsync();
        let request = Request::post(proxy.url("/sum")).header("authorization", format!("Bearer {GOOD}"));
        assert_eq!(sender.send_request(request.body(body).unwrap()).await.unwrap().status(), 200);
        let requests = proxy.api.wait_for_requests(3).await;
        for request in &requests[1..] {
            assert_eq!((request.text(), request.trailers.len()), ("abc", 0), "{:?}", request.trailers);
            assert_eq!((request.header("te"), request.header("trailer")), (None, None));
        }
    }
}

#[tokio::test]
async fn aborted_response_is_visible_to_the_client() {
    let proxy = Proxy::start();
    let pods = Watch::new();
    proxy.api.answer("/cut", pods.answer());
    let mut client = proxy.raw().await;
    client.write(proxy.head("GET /cut", &[]).as_bytes()).await;
    pods.wait_for_opened(1).await;
    pods.bytes("half");
    client.read_until(b"half").await;
    pods.abort();
    let rest = client.read_to_end(10_000).await;
    assert!(!rest.ends_with(b"0\r\n\r\n"), "a proper end: {}", rest.escape_ascii());
}

// Keep-alive on both sides: many requests, two connections.
#[tokio::test]
async fn connections_are_reused_on_both_sides() {
    let proxy = Proxy::start();
    let mut client = proxy.raw().await;
    for number in 1..=20 {
        client.write(proxy.head("GET /version", &[]).as_bytes()).await;
        assert_eq!(status(&client.read_until(b"\r\n\r\n").await), 200);
        client.read_until(b"}").await;
        assert_eq!(proxy.api.requests().len(), number);
    }
    assert_eq!(proxy.api.connections().len(), 1);
}

// The client does not see an error when the server closed an idle connection.
#[tokio::test]
async fn api_server_restart_is_invisible_to_the_next_read() {
    let proxy = Proxy::start();
    let send = |client: RawClient| async {
        let mut client = client;
        client.write(proxy.head("GET /version", &["Connection: close"]).as_bytes()).await;
        status(&client.read_to_end(10_000).await)
    };
    assert_eq!(send(proxy.raw().await).await, 200);
    proxy.api.refuse_connections();
    proxy.api.cut_connections(Cut::Clip);
    proxy.api.accept_connections();
    assert_eq!(send(proxy.raw().await).await, 200);
}
