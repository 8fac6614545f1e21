//! What is forwarded and what is not: headers, paths, ambiguous requests.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Version};
use navicert_server::ServerLimits;
use navicert_server::forward::{ForwardRules, UnauthorizedPolicy};
use navicert_testkit::{Answer, Gate, HttpClient, wait};

use super::{GOOD, OWN, Proxy, status};

// PV1, PV7, S240, S242
#[tokio::test]
async fn forwards_the_identity_and_no_client_credentials() {
    let proxy = Proxy::start();
    let plain = HttpClient::trusting(&proxy.ca);
    for (number, client) in [plain.clone(), plain.http2()].into_iter().enumerate() {
        let request = Request::get(proxy.url("/api/v1/pods?limit=1"))
            .header("authorization", format!("Bearer {GOOD}"))
            .header("accept", "application/json")
            .header("cookie", "a=b")
            .header("x-forwarded-for", "1.2.3.4")
            .body(Bytes::new())
            .unwrap();
        let reply = client.send(request).await.unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
        let requests = proxy.api.wait_for_requests(number + 1).await;
        let seen = &requests[number];
        assert_eq!(seen.version, Version::HTTP_2, "upstream is HTTP/2 whatever the client speaks");
        assert_eq!(seen.target, "/api/v1/pods?limit=1");
        assert_eq!(seen.bearer_token(), Some(OWN));
        assert_eq!(seen.header_values("impersonate-user"), ["ann"]);
        assert_eq!(seen.header_values("impersonate-group"), ["dev", "a,b"]);
        assert_eq!(seen.header("accept"), Some("application/json"));
        for gone in ["cookie", "x-forwarded-for", "accept-encoding"] {
            assert_eq!(seen.header(gone), None, "{gone}");
        }
    }
}

// PV2–PV5, PV9, A75, B1, B2, B17: over raw sockets, to control every byte.
#[tokio::test]
async fn ambiguous_requests_never_reach_the_api_server() {
    let proxy = Proxy::start();
    for (lines, body, expected) in [
        (&["Impersonate-User: admin"][..], "", 403),
        (&["impersonate-group: system:masters"], "", 403),
        (&["Impersonate_User: a"], "", 403),
        (&["Impersonate-Foo: x"], "", 403),
        (&["Connection: Impersonate-User"], "", 400),
        (&["Connection: close, impersonate-group"], "", 400),
        (&["X-Remote-User: admin"], "", 400),
        (&["Authorization: Bearer again"], "", 400),
        (&["Host: other"], "", 400),
        (&["X-Folded: a", " b"], "", 400),
        (&["X-Space : a"], "", 400),
        (&["Content-Length: 5", "Transfer-Encoding: chunked"], "0\r\n\r\n", 400),
        (&["Transfer-Encoding: chunked", "Content-Length: 5"], "0\r\n\r\n", 400),
        (&["Content-Length: 5", "Content-Length: 6"], "hello", 400),
        (&["Content-Length: 5", "Content-Length: 5"], "hello", 400),
        (&["Content-Length: 5x"], "hello", 400),
        (&["Transfer-Encoding: gzip, chunked"], "0\r\n\r\n", 400),
        (&["Transfer-Encoding : chunked"], "0\r\n\r\n", 400),
        (&["X-Bare: a\nX-Other: b"], "", 400),
        (&["X-Bare: a\rX-Other: b"], "", 400),
        (&["Expect: something"], "", 400),
    ] {
        let mut client = proxy.raw().await;
        let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
        client.write((proxy.head("POST /api", lines) + body + smuggled).as_bytes()).await;
        let answer = if expected == 400 {
            client.read_to_end(10_000).await // and the connection is over
        } else {
            client.read_until(b"\r\n\r\n").await
        };
        assert_eq!(status(&answer), expected, "{lines:?}: {}", answer.escape_ascii());
    }
    assert_eq!(proxy.api.requests().len(), 0);
}

// S258
#[tokio::test]
async fn rejects_targets_other_than_a_path() {
    let proxy = Proxy::start();
    for request in ["GET https://other/api", "CONNECT other:443", "GET /a#b", "OPTIONS *", "GET /a%00b"] {
        let mut client = proxy.raw().await;
        client.write(proxy.head(request, &[]).as_bytes()).await;
        assert_eq!(status(&client.read_to_end(10_000).await), 400, "{request}");
    }
    assert_eq!(proxy.api.requests().len(), 0);
}

// PV17, PV18
#[tokio::test]
async fn forwards_paths_unchanged_without_access_token() {
    let proxy = Proxy::start();
    for (asked, seen) in [
        ("/a%2Fb/../c//d;e=f?q=%20&&x", "/a%2Fb/../c//d;e=f?q=%20&&x"),
        ("/%2e%2E/..;/", "/%2e%2E/..;/"),
        ("/api?access_token=secret&x=1", "/api?x=1"),
    ] {
        let mut client = proxy.raw().await;
        client.write(proxy.head(&format!("GET {asked}"), &["Connection: close"]).as_bytes()).await;
        assert_eq!(status(&client.read_to_end(10_000).await), 200, "{asked}");
        assert_eq!(proxy.api.requests().last().unwrap().target, seen);
    }
    let mut stranger = proxy.raw().await;
    stranger.write(b"GET /api?access_token=the-clients-token HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(status(&stranger.read_to_end(10_000).await), 401, "PV17: a token in the query is never read");
    assert_eq!(proxy.api.requests().len(), 3);
}

// PV16, S246, B6
#[tokio::test]
async fn redirects_to_other_servers_are_not_forwarded() {
    let proxy = Proxy::start();
    proxy.api.answer("/away", Answer::redirect(301, "https://evil.example/"));
    proxy.api.answer("/here", Answer::redirect(301, "/here/"));
    proxy.api.answer("/same", Answer::status(304).header("etag", "\"1\""));
    let client = HttpClient::trusting(&proxy.ca);
    for (path, expected, location) in
        [("/away", 502, None), ("/here", 301, Some("/here/")), ("/same", 304, None)]
    {
        let request = Request::get(proxy.url(path)).header("authorization", format!("Bearer {GOOD}"));
        let reply = client.send(request.body(Bytes::new()).unwrap()).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.header("location")), (expected, location), "{path}");
    }
}

// S246, S273
#[tokio::test]
async fn rejected_proxy_credential_is_a_502() {
    for (rule, expected) in [(UnauthorizedPolicy::BadGateway, 502), (UnauthorizedPolicy::Relayed, 401)] {
        let rules = ForwardRules { unauthorized: rule, ..ForwardRules::default() };
        let proxy = Proxy::start_with(rules, ServerLimits::default(), |settings| settings);
        proxy.api.revoke_token(OWN);
        let request = Request::get(proxy.url("/api")).header("authorization", format!("Bearer {GOOD}"));
        let client = HttpClient::trusting(&proxy.ca).http2();
        let reply = client.send(request.body(Bytes::new()).unwrap()).await.unwrap();
        assert_eq!(reply.status.as_u16(), expected);
        assert_eq!(reply.json()["kind"], "Status");
    }
}

// S273
#[tokio::test]
async fn unreachable_api_server_is_a_502_without_details() {
    let proxy = Proxy::start();
    proxy.api.refuse_connections();
    let request = Request::get(proxy.url("/api")).header("authorization", format!("Bearer {GOOD}"));
    let reply = HttpClient::trusting(&proxy.ca).send(request.body(Bytes::new()).unwrap()).await.unwrap();
    assert_eq!(reply.status, 502);
    assert_eq!(reply.json()["message"], "failed to reach the API server");
}

// S271, S274
#[tokio::test]
async fn unauthenticated_client_gets_a_status_and_the_connection_closes() {
    let proxy = Proxy::start();
    let mut stranger = proxy.raw().await;
    stranger.write(b"GET /api HTTP/1.1\r\nHost: a\r\n\r\nGET /api HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let answer = String::from_utf8(stranger.read_to_end(10_000).await).unwrap();
    assert!(
        answer.contains("\"reason\":\"Unauthorized\"") && answer.contains("connection: close"),
        "{answer}"
    );
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1);
    // HTTP/2: the response, then GOAWAY, then the connection closes.
    let stream = navicert_testkit::RawClient::connect_tls(proxy.address, &proxy.ca, None, &["h2"]).await;
    let io = hyper_util::rt::TokioIo::new(stream.into_stream());
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::get(proxy.url("/api")).body(http_body_util::Empty::<Bytes>::new()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 401);
    wait::within("the end of the connection", connection).await.unwrap().unwrap();
}

#[tokio::test]
async fn returns_429_above_the_in_flight_limit_and_its_queue() {
    let limits = ServerLimits { requests: 1, ..ServerLimits::default() };
    let proxy = Proxy::start_with(ForwardRules::default(), limits, |settings| settings);
    let gate = Gate::new();
    proxy.api.answer("/slow", Answer::text("done").after(&gate));
    let send = |path: &str| {
        let request = Request::get(proxy.url(path)).header("authorization", format!("Bearer {GOOD}"));
        let (client, request) = (HttpClient::trusting(&proxy.ca), request.body(Bytes::new()).unwrap());
        async move { client.send(request).await.unwrap() }
    };
    let slow = tokio::spawn(send("/slow"));
    gate.wait_for_arrivals(1).await;
    // One of the two waits, the other finds the queue full.
    let (mut one, mut two) = (tokio::spawn(send("/api")), tokio::spawn(send("/api")));
    let (refused, queued) = tokio::select! {
        refused = &mut one => (refused, two),
        refused = &mut two => (refused, one),
    };
    let refused = refused.unwrap();
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (429, Some("1")));
    gate.open();
    assert_eq!(slow.await.unwrap().text(), "done");
    assert_eq!(queued.await.unwrap().status, 200);
    assert_eq!(send("/api").await.status, 200);
}

// An idle connection gives its buffers back after half a second, and serves the next request as the first.
#[tokio::test]
async fn idle_connection_serves_again_after_its_buffers_were_freed() {
    let proxy = Proxy::start();
    let mut client = proxy.raw().await;
    let request = proxy.head("GET /api", &[]);
    for pieces in [1, 3, request.len()] {
        for piece in request.as_bytes().chunks(request.len().div_ceil(pieces)) {
            client.write(piece).await;
        }
        let head = client.read_until(b"\r\n\r\n").await;
        assert_eq!(status(&head), 200);
        let length = String::from_utf8_lossy(&head).to_lowercase();
        let length = length.split_once("content-length: ").unwrap().1.split_once('\r').unwrap().0;
        client.read_exactly(length.parse().unwrap()).await;
        let idle = tokio::time::timeout(Duration::from_millis(800), client.read_exactly(1)).await;
        assert!(idle.is_err(), "the connection stays open");
    }
    client.write(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n").await;
    assert_eq!(status(&client.read_to_end(10_000).await), 400, "framing is checked as before");
}

#[tokio::test]
async fn rejects_too_large_headers() {
    let limits = ServerLimits { header_bytes: 16 * 1024, ..ServerLimits::default() };
    let proxy = Proxy::start_with(ForwardRules::default(), limits, |settings| settings);
    let mut client = proxy.raw().await;
    let large = format!("X-Large: {}", "x".repeat(20_000));
    let _ = client.try_write(proxy.head("GET /api", &[&large]).as_bytes()).await;
    assert_eq!(status(&client.read_to_end(10_000).await), 431);
    assert_eq!(proxy.api.requests().len(), 0);
}
