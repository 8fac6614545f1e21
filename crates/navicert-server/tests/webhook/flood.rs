//! Floods: invalid tokens, unknown keys, silent connections. Valid requests are still answered, and the issuer gets
//! no extra load.

use std::sync::Arc;
use std::time::Duration;

use navicert_server::ServerLimits;
use navicert_testkit::{Algorithm, RawClient, SigningKey, wait};
use serde_json::json;
use tokio::task::JoinSet;

use super::{Fixture, Options, claims, review};

/// Sends requests on one connection; returns how many were authenticated.
async fn ask_all(mut client: RawClient, tokens: Vec<String>) -> usize {
    let mut accepted = 0;
    for token in tokens {
        let body = review("v1", &token, &[]).to_string();
        let head =
            format!("POST /authenticate HTTP/1.1\r\nhost: h\r\ncontent-length: {}\r\n\r\n", body.len());
        client.write(format!("{head}{body}").as_bytes()).await;
        let head = String::from_utf8(client.read_until(b"\r\n\r\n").await).unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let answer = client.read_exactly(length.parse().unwrap()).await;
        accepted += usize::from(String::from_utf8_lossy(&answer).contains("\"username\":\"oidc:ann\""));
    }
    accepted
}

// A64, H22, S148, S309
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_key_ids_do_not_load_the_issuer_or_block_valid_tokens() {
    let fixture = Fixture::start(Options::default()).await;
    let stranger = SigningKey::generate(Algorithm::Es256, "stranger");
    let claims = claims(&fixture.issuer, json!({}));
    let before = fixture.issuer.count(fixture.issuer.jwks_path());
    let mut flood = JoinSet::new();
    for line in 0..8 {
        let client = RawClient::connect_tls(fixture.address, &fixture.ca, None, &["http/1.1"]).await;
        let tokens: Vec<String> = (0..150)
            .map(|number| match number % 3 {
                0 => stranger.renamed(&format!("k-{line}-{number}")).token(&claims),
                1 => format!("garbage-{line}-{number}"),
                _ => format!("{}.{}.{}", "a".repeat(number), "b".repeat(200), "c".repeat(40)),
            })
            .collect();
        flood.spawn(ask_all(client, tokens));
    }
    let client = RawClient::connect_tls(fixture.address, &fixture.ca, None, &["http/1.1"]).await;
    let good: Vec<String> =
        (0..150).map(|number| fixture.token(json!({"jti": number.to_string()}))).collect();
    assert_eq!(ask_all(client, good).await, 150);
    while let Some(accepted) = flood.join_next().await {
        assert_eq!(accepted.unwrap(), 0);
    }
    let asked = fixture.issuer.count(fixture.issuer.jwks_path()) - before;
    assert!(asked <= 3, "the issuer was asked {asked} times");
    let entries = fixture.metrics.render();
    let entries =
        entries.lines().find_map(|line| line.strip_prefix("navicert_token_cache_entries ")).unwrap();
    assert!(entries.parse::<usize>().unwrap() <= 700, "nonsense is hardly remembered: {entries}");
}

// Silent and slow connections are closed while others are served.
#[tokio::test]
async fn closes_slow_and_silent_connections_and_serves_others() {
    let limits = ServerLimits {
        handshake_timeout: Duration::from_millis(300),
        header_timeout: Duration::from_millis(300),
        ..ServerLimits::default()
    };
    let fixture = Arc::new(Fixture::start(Options { limits, ..Options::default() }).await);
    let mut slow = JoinSet::new();
    for number in 0..40 {
        let fixture = Arc::clone(&fixture);
        slow.spawn(async move {
            if number % 2 == 0 {
                // Not even a TLS handshake.
                let mut client = RawClient::connect(fixture.address).await;
                return client.read_to_end(1 << 10).await.len();
            }
            let mut client = RawClient::connect_tls(fixture.address, &fixture.ca, None, &["http/1.1"]).await;
            client.write(b"POST /authenticate HTTP/1.1\r\nhost: h\r\nx-slow: ").await;
            client.read_to_end(1 << 16).await.len()
        });
    }
    for _ in 0..10 {
        assert_eq!(fixture.status(&fixture.ann()).await["authenticated"], true);
    }
    let ended = async {
        while let Some(ended) = slow.join_next().await {
            ended.unwrap();
        }
    };
    wait::within("all of them are ended", ended).await;
    fixture
        .until("no connection is left", || {
            fixture.metrics.render().contains("navicert_connections{server=\"webhook\"} 0")
        })
        .await;
}

/// An idle connection, in one of several states.
async fn idle_connection(fixture: &Fixture, way: usize) -> RawClient {
    let protocol = if way == 4 { "h2" } else { "http/1.1" };
    if way == 0 {
        return RawClient::connect(fixture.address).await;
    }
    let mut client = RawClient::connect_tls(fixture.address, &fixture.ca, None, &[protocol]).await;
    match way {
        1 => client.write(b"POST /authenticate HTTP/1.1\r\nhost: h\r\nx-slow: ").await,
        2 => {
            client.write(b"GET /nowhere HTTP/1.1\r\nhost: h\r\n\r\n").await;
            assert!(client.read_until(b"\r\n\r\n").await.starts_with(b"HTTP/1.1 404"));
        }
        _ => {}
    }
    client
}

fn metric(fixture: &Fixture, name: &str) -> usize {
    let page = fixture.metrics.render();
    let name = format!("{name}{{server=\"webhook\"}} ");
    page.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
}

// All slots are occupied by idle connections that have not timed out: a new connection is served at once.
#[tokio::test]
async fn evicts_idle_connections_for_new_ones() {
    let limits = ServerLimits { connections: 10, ..ServerLimits::default() };
    let fixture = Fixture::start(Options { limits, ..Options::default() }).await;
    let mut all = Vec::new();
    for number in 0..10 {
        all.push(idle_connection(&fixture, number % 5).await);
    }
    fixture.until("all places are taken", || metric(&fixture, "navicert_connections") == 10).await;
    for number in 0..20 {
        assert_eq!(fixture.status(&fixture.ann()).await["authenticated"], true, "{number}");
        all.push(idle_connection(&fixture, number % 5).await);
    }
    assert!(metric(&fixture, "navicert_connections") <= 10);
    assert!(metric(&fixture, "navicert_connections_pushed_out_total") >= 20);
    // The oldest connections have been evicted.
    for client in &mut all[..10] {
        client.read_to_end(1 << 16).await;
    }
}

// HTTP/2 connections time out too, even before the first request.
#[tokio::test]
async fn evicts_idle_http2_connections() {
    let limits = ServerLimits {
        header_timeout: Duration::from_millis(300),
        handshake_timeout: Duration::from_millis(300),
        ..ServerLimits::default()
    };
    let fixture = Fixture::start(Options { limits, ..Options::default() }).await;
    let mut silent = idle_connection(&fixture, 4).await;
    let mut polite = idle_connection(&fixture, 4).await;
    polite.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    silent.read_to_end(1 << 16).await;
    let told = polite.read_to_end(1 << 16).await;
    assert!(told.windows(4).any(|bytes| bytes == [8, 7, 0, 0]), "a GOAWAY in {told:02x?}");
    fixture.until("no connection is left", || metric(&fixture, "navicert_connections") == 0).await;
}
