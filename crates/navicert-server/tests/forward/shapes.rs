//! What crosses and what does not: headers, paths, and requests that could be read in two ways.

use bytes::Bytes;
use http::{Request, Version};
use navicert_server::Limits;
use navicert_server::forward::{Rules, Unauthorized};
use navicert_testkit::{Answer, Gate, HttpClient, wait};

use super::{GOOD, OWN, Proxy, status};

// PV1, PV7, S240, S242
#[tokio::test]
async fn a_request_arrives_with_our_identity_and_nothing_of_the_clients_own() {
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

// PV2–PV5, PV9, A75, B1, B2, B17: over raw sockets, so that every byte is as written.
#[tokio::test]
async fn requests_that_could_be_read_in_two_ways_never_reach_the_api_server() {
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
async fn only_a_path_is_a_target() {
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
async fn a_path_crosses_byte_for_byte_but_a_token_in_it_does_not() {
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
async fn redirections_that_leave_the_server_are_not_passed_on() {
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
async fn a_credential_of_ours_that_is_turned_down_is_not_the_clients_fault() {
    for (rule, expected) in [(Unauthorized::BadGateway, 502), (Unauthorized::Relayed, 401)] {
        let rules = Rules { unauthorized: rule, ..Rules::default() };
        let proxy = Proxy::start_with(rules, Limits::default(), |settings| settings);
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
async fn an_api_server_that_is_away_is_a_502_without_details() {
    let proxy = Proxy::start();
    proxy.api.refuse_connections();
    let request = Request::get(proxy.url("/api")).header("authorization", format!("Bearer {GOOD}"));
    let reply = HttpClient::trusting(&proxy.ca).send(request.body(Bytes::new()).unwrap()).await.unwrap();
    assert_eq!(reply.status, 502);
    assert_eq!(reply.json()["message"], "the API server cannot be reached");
}

// S271, S274
#[tokio::test]
async fn whoever_is_unknown_gets_a_status_and_no_second_chance_on_that_connection() {
    let proxy = Proxy::start();
    let mut stranger = proxy.raw().await;
    stranger.write(b"GET /api HTTP/1.1\r\nHost: a\r\n\r\nGET /api HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let answer = String::from_utf8(stranger.read_to_end(10_000).await).unwrap();
    assert!(
        answer.contains("\"reason\":\"Unauthorized\"") && answer.contains("connection: close"),
        "{answer}"
    );
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1);
    // HTTP/2: the answer, then GOAWAY, then the end of the connection.
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
async fn one_request_too_many_is_a_429_and_not_a_collapse() {
    let limits = Limits { requests: 1, ..Limits::default() };
    let proxy = Proxy::start_with(Rules::default(), limits, |settings| settings);
    let gate = Gate::new();
    proxy.api.answer("/slow", Answer::text("done").after(&gate));
    let send = |path: &str| {
        let request = Request::get(proxy.url(path)).header("authorization", format!("Bearer {GOOD}"));
        let (client, request) = (HttpClient::trusting(&proxy.ca), request.body(Bytes::new()).unwrap());
        async move { client.send(request).await.unwrap() }
    };
    let slow = tokio::spawn(send("/slow"));
    gate.wait_for_arrivals(1).await;
    let refused = send("/api").await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (429, Some("1")));
    gate.open();
    assert_eq!(slow.await.unwrap().text(), "done");
    assert_eq!(send("/api").await.status, 200);
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let limits = Limits { head: 16 * 1024, ..Limits::default() };
    let proxy = Proxy::start_with(Rules::default(), limits, |settings| settings);
    let mut client = proxy.raw().await;
    let large = format!("X-Large: {}", "x".repeat(20_000));
    let _ = client.try_write(proxy.head("GET /api", &[&large]).as_bytes()).await;
    assert_eq!(status(&client.read_to_end(10_000).await), 431);
    assert_eq!(proxy.api.requests().len(), 0);
}
