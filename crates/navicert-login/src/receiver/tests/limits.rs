//! Floods, slow clients and bytes that are not HTTP.

use super::*;

#[tokio::test]
async fn browser_gets_through_two_hundred_idle_connections() {
    // L901, L1310
    survives(bind(), async |site| {
        let mut idle = Vec::new();
        for _ in 0..200 {
            idle.push(RawClient::connect(site.address).await);
        }
        let mut slow = RawClient::connect(site.address).await;
        slow.write(b"GET / HT").await;
        assert_eq!(site.get(&site.start_path).await.status, 303);
        // The oldest were closed to make room.
        assert_eq!(idle[0].read_to_end(0).await, b"");
        drop(idle);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn unfinished_requests_are_closed_after_ten_seconds() {
    survives(bind(), async |site| {
        let begin = tokio::time::Instant::now();
        let host = format!("Host: {}\r\n", site.address);
        let starts = [String::new(), format!("GET / HTTP/1.1\r\n{host}"), "GET /callback".to_owned()];
        let mut clients = Vec::new();
        for start in starts {
            let mut client = RawClient::connect(site.address).await;
            client.write(start.as_bytes()).await;
            clients.push(client);
        }
        for client in &mut clients {
            let reply = client.read_to_end(10_000).await;
            assert!(!reply.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&reply));
        }
        let elapsed = begin.elapsed();
        assert!((9..=11).contains(&elapsed.as_secs()), "{elapsed:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn unfinished_form_is_closed_after_ten_seconds() {
    let receiver = bind();
    let site = Site::of(&receiver);
    let login = PendingLogin { response_mode: ResponseMode::FormPost, ..pending_login() };
    let (outcome, ()) = serve_login_while(receiver, login, async {
        let begin = tokio::time::Instant::now();
        let mut client = RawClient::connect(site.address).await;
        let host = site.address;
        let form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 50";
        client
            .write(format!("POST /callback HTTP/1.1\r\nHost: {host}\r\n{form}\r\n\r\nstate=").as_bytes())
            .await;
        client.read_to_end(10_000).await;
        assert!((9..=11).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
        finish(&site).await;
    })
    .await;
    assert_eq!(outcome, Ok("abc".to_owned()));
}

#[tokio::test]
async fn large_requests_are_rejected() {
    survives(bind(), async |site| {
        let long = "x".repeat(17 << 10);
        let line = site.get(&format!("/callback?state=right&code={long}")).await;
        assert!(matches!(line.status, 414 | 431), "{line:?}");
        let header = site.get_with("/", &[("X", &long)]).await;
        assert_eq!(header.status, 431, "{header:?}");
    })
    .await;
    let receiver = bind();
    let site = Site::of(&receiver);
    let login = PendingLogin { response_mode: ResponseMode::FormPost, ..pending_login() };
    let (outcome, ()) = serve_login_while(receiver, login, async {
        let body = format!("state=right&code=abc&iss=https://login.example&x={}", "x".repeat(65 << 10));
        let reply = site.post("/callback", "application/x-www-form-urlencoded", &body).await;
        assert!(matches!(reply.status, 413 | 0), "{reply:?}");
        finish(&site).await;
    })
    .await;
    assert_eq!(outcome, Ok("abc".to_owned()));
}

#[tokio::test]
async fn bytes_that_are_not_http_have_no_effect() {
    survives(bind(), async |site| {
        let host = format!("Host: {}\r\n", site.address);
        let cases: [Vec<u8>; 12] = [
            b"\x00\x01\x02\x03\r\n\r\n".to_vec(),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".repeat(8),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            b"GET\r\n\r\n".to_vec(),
            format!("GET {CALLBACK} HTTP/1.0\r\n\r\n").into_bytes(),
            format!("GET {CALLBACK} HTTP/0.9\r\n{host}\r\n").into_bytes(),
            format!("GET {CALLBACK} HTTP/1.1\r\n{host}{host}\r\n").into_bytes(),
            format!("GET http://evil.example{CALLBACK} HTTP/1.1\r\n{host}\r\n").into_bytes(),
            format!("CONNECT {} HTTP/1.1\r\n{host}\r\n", site.address).into_bytes(),
            format!("GET {CALLBACK}\u{0} HTTP/1.1\r\n{host}\r\n").into_bytes(),
            format!("GET /callback/../callback?code=abc&state=right HTTP/1.1\r\n{host}\r\n").into_bytes(),
            format!("GET //callback?code=abc&state=right HTTP/1.1\r\n{host}\r\n").into_bytes(),
        ];
        for bytes in cases {
            let mut client = RawClient::connect(site.address).await;
            let _ = client.try_write(&bytes).await;
            client.finish_writing().await;
            let reply = client.read_to_end(10_000).await;
            let text = String::from_utf8_lossy(&reply);
            assert!(!text.starts_with("HTTP/1.1 2") && !text.starts_with("HTTP/1.1 3"), "{bytes:?}: {text}");
        }
        for method in ["HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "post", "X"] {
            let request = format!("{method} {CALLBACK} HTTP/1.1\r\n{host}\r\n");
            assert_eq!(site.send(request.as_bytes()).await.status, 405, "{method}");
            let request = format!("{method} {} HTTP/1.1\r\n{host}\r\n", site.start_path);
            assert_eq!(site.send(request.as_bytes()).await.status, 405, "{method}");
        }
    })
    .await;
}

#[tokio::test]
async fn one_request_per_connection() {
    survives(bind(), async |site| {
        let host = format!("Host: {}\r\n\r\n", site.address);
        let two = format!("GET / HTTP/1.1\r\n{host}GET {CALLBACK} HTTP/1.1\r\n{host}");
        let mut client = RawClient::connect(site.address).await;
        client.write(two.as_bytes()).await;
        let replies = client.read_to_end(10_000).await;
        assert_eq!(String::from_utf8_lossy(&replies).matches("HTTP/1.1 ").count(), 1);
    })
    .await;
}
