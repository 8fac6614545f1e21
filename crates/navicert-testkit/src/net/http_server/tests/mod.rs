//! Tests of the server with real clients: records, answers and aborted connections.

mod answers;
mod faults;
mod handshakes;
mod streams;

use bytes::Bytes;
use http::{Method, Version};

use super::*;
use crate::net::http_client::HttpClient;
use crate::net::raw::RawClient;

fn started() -> (Ca, HttpServer, HttpClient) {
    let ca = Ca::new("root");
    let server = HttpServer::start(&ca);
    let client = HttpClient::trusting(&ca);
    (ca, server, client)
}

#[tokio::test]
async fn records_requests_as_received_over_both_protocols() {
    let (_ca, server, client) = started();
    for (client, version) in [(client.clone(), Version::HTTP_11), (client.http2(), Version::HTTP_2)] {
        let request = http::Request::builder()
            .method(Method::PATCH)
            .uri(server.url_of("/api/%7Ex//y?watch=true&a=b%20c"))
            .header("x-twice", "1")
            .header("x-twice", "2")
            .header("authorization", "Bearer abc")
            .body(Bytes::from_static(b"{\"a\":1}"))
            .unwrap();
        let reply = client.send(request).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.version), (404, version));
        let recorded = server.requests().pop().unwrap();
        assert_eq!((&recorded.method, recorded.version), (&Method::PATCH, version));
        assert_eq!(recorded.target, "/api/%7Ex//y?watch=true&a=b%20c");
        assert_eq!((recorded.path(), recorded.query()), ("/api/%7Ex//y", Some("watch=true&a=b%20c")));
        assert_eq!(recorded.header_values("X-Twice"), ["1", "2"]);
        assert_eq!((recorded.bearer_token(), recorded.header("absent")), (Some("abc"), None));
        assert_eq!((recorded.json()["a"].as_i64(), recorded.body_state), (Some(1), BodyState::Complete));
    }
    assert_eq!(server.connections().len(), 2);
    assert_eq!(server.count("/api/%7Ex//y"), 2);
}

#[tokio::test]
async fn spelling_order_and_framing_are_kept_as_bytes() {
    let (ca, server, _client) = started();
    let sent = b"GET /a HTTP/1.1\r\nhOsT: x\r\nX-B: 1\r\nx-a:  2\r\nX-b: 3\r\nConnection: close\r\n\r\n";
    let mut client = RawClient::connect_tls(server.address(), &ca, None, &["http/1.1"]).await;
    client.write(sent).await;
    client.read_to_end(10_000).await;
    assert_eq!(server.connections()[0].received(), sent);
    assert_eq!(server.requests()[0].header_values("x-b"), ["1", "3"]);
}

#[tokio::test]
async fn a_server_without_tls_records_the_same() {
    let server = HttpServer::start_plain();
    server.answer("/", Answer::text("plain"));
    let client = HttpClient::trusting(&Ca::new("unused"));
    assert_eq!(client.get(&server.url_of("/")).await.unwrap().text(), "plain");
    assert!(server.url().starts_with("http://127.0.0.1:"));
    assert!(server.connections()[0].tls.is_none());
}

#[tokio::test]
async fn records_a_body_while_it_arrives_and_marks_it_incomplete_on_disconnect() {
    let server = HttpServer::start_plain();
    let mut client = RawClient::connect(server.address()).await;
    client.write(b"POST /upload HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhalf").await;
    let half = |log: &Log| log.requests.first().is_some_and(|request| request.body == b"half");
    let log = server.wait_until("half a body", half).await;
    assert_eq!(log.requests[0].body_state, BodyState::Arriving);
    drop(client);
    let broken = |log: &Log| log.requests[0].body_state == BodyState::Broken;
    server.wait_until("a broken body", broken).await;
}

#[tokio::test]
async fn trailers_of_a_request_are_recorded() {
    let server = HttpServer::start_plain();
    let mut client = RawClient::connect(server.address()).await;
    client.write(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n").await;
    client.write(b"3\r\nabc\r\n0\r\nx-sum: 6\r\n\r\n").await;
    let requests = server.wait_for_requests(1).await;
    assert_eq!((requests[0].text(), requests[0].trailers["x-sum"].to_str().unwrap()), ("abc", "6"));
}

#[tokio::test]
async fn waits_count_requests_of_one_path_or_all() {
    let (_ca, server, client) = started();
    let urls = [server.url_of("/a"), server.url_of("/b"), server.url_of("/a?x")];
    let sender = tokio::spawn(async move {
        for url in urls {
            client.get(&url).await.unwrap();
        }
    });
    assert_eq!(server.wait_for_requests_to("/a", 2).await.len(), 2);
    assert_eq!(server.wait_for_requests(3).await.len(), 3);
    sender.await.unwrap();
}

#[test]
fn works_in_synchronous_tests() {
    let (_ca, server, client) = started();
    let url = server.url_of("/blocking");
    let thread = std::thread::spawn(move || wait::blocking(client.get(&url)).unwrap().status.as_u16());
    let requests = wait::blocking(server.wait_for_requests(1));
    assert_eq!(requests[0].path(), "/blocking");
    assert_eq!(thread.join().unwrap(), 404);
}

#[test]
#[should_panic(expected = "`x` came 2 times")]
fn asking_for_the_only_value_of_a_repeated_header_fails_the_test() {
    let (_ca, server, client) = started();
    let request =
        http::Request::get(server.url_of("/")).header("x", "1").header("x", "2").body(Bytes::new()).unwrap();
    wait::blocking(client.send(request)).unwrap();
    let _ = server.requests()[0].header("x");
}
