//! Attacks of one user or one client, while a user of another issuer sends fifty requests per second: each of these
//! succeeds, and hardly later than on a quiet server. A few seconds each here, a minute in `make soak`.

use std::fs;
use std::net::SocketAddr;

use bytes::Bytes;
use http::Request;
use navicert_testkit::cli::process::Process;
use navicert_testkit::net::raw::http2;
use navicert_testkit::{Answer, Gate, HttpClient, Issuer, RawClient, Victim, Watch, soak};
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::setup::{Serving, Setup};

/// Limit of requests in flight in these tests: an attack exceeds it with few connections.
const REQUESTS: usize = 100;

/// A proxy with two issuers; the attacker has a token of the first.
struct Target {
    setup: Setup,
    serving: Serving,
    victim: Victim,
    _other: Issuer,
}

impl Target {
    async fn start(limits: &str) -> Self {
        let setup = Setup::new();
        let other = Issuer::start(&setup.ca);
        setup.configure(
            &format!("{{selfCheck: off}}, limits: {limits}"),
            &json!({"claim": "sub", "prefix": "corp:"}),
        );
        let issuer = |issuer: &Issuer, prefix: &str| -> Value {
            json!({
                "issuer": {
                    "url": issuer.issuer_url(), "audiences": ["kubernetes"], "certificateAuthority": setup.ca.pem(),
                },
                "claimMappings": {"username": {"claim": "sub", "prefix": prefix}},
            })
        };
        let config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [issuer(&setup.issuer, "corp:"), issuer(&other, "other:")],
        });
        fs::write(setup.dir.path().join("authentication.yaml"), config.to_string()).unwrap();
        let serving = setup.start(&[]).await;
        let token = other.token(&other.claims("bob", "kubernetes", SystemClock.now()));
        let (client, url) =
            (HttpClient::trusting(&setup.ca), format!("https://{}/api/v1/pods", serving.address));
        let victim = Victim::new(move |_| {
            let request = Request::get(&url).header("authorization", format!("Bearer {token}"));
            let (client, request) = (client.clone(), request.body(Bytes::new()).unwrap());
            async move {
                match Box::pin(client.send(request)).await {
                    Ok(reply) if reply.status == 200 => Ok(()),
                    Ok(reply) => Err(format!("{}: {}", reply.status, reply.text())),
                    Err(error) => Err(error.to_string()),
                }
            }
        });
        Target { setup, serving, victim, _other: other }
    }

    fn address(&self) -> SocketAddr {
        self.serving.address
    }

    fn resident_kib(&self) -> u64 {
        Process(self.serving.program.pid()).resident().unwrap()
    }

    /// Opens `count` connections of the attacker, each of which sends these bytes and no more.
    async fn send_and_hold(&self, count: usize, protocol: &str, bytes: &[u8]) -> Vec<RawClient> {
        let mut held = Vec::new();
        for _ in 0..count {
            let mut client = RawClient::connect_tls(self.address(), &self.setup.ca, None, &[protocol]).await;
            // The server may close the connection before all is written.
            let _ = client.try_write(bytes).await;
            held.push(client);
        }
        held
    }

    /// Head of an attacker's request, without its end.
    fn head(&self, request: &str) -> String {
        let token = self.setup.token(&json!({}));
        format!("{request} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n", self.address())
    }
}

// A valid token without rights took every in-flight place with request bodies that never end.
#[tokio::test(flavor = "multi_thread")]
async fn unfinished_bodies_of_one_user_do_not_affect_others() {
    let target = Target::start(&format!("{{requests: {REQUESTS}}}")).await;
    let quiet = target.victim.observe().await;
    let body = format!("{}Content-Length: 60000\r\n\r\n{{", target.head("POST /api/v1/namespaces"));
    let held = target.send_and_hold(REQUESTS + 20, "http/1.1", body.as_bytes()).await;
    target.victim.observe().await.assert_unharmed(&quiet, "unfinished bodies of one user");
    drop(held);
    target.serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_requests_of_one_user_do_not_affect_others() {
    let target = Target::start(&format!("{{requests: {REQUESTS}}}")).await;
    let gate = Gate::new();
    target.setup.api.answer("/slow", Answer::text("done").after(&gate));
    let quiet = target.victim.observe().await;
    let request = format!("{}\r\n", target.head("GET /slow"));
    let held = target.send_and_hold(2 * REQUESTS, "http/1.1", request.as_bytes()).await;
    gate.wait_for_arrivals(REQUESTS * 8 / 9).await;
    target.victim.observe().await.assert_unharmed(&quiet, "slow requests of one user");
    gate.open();
    drop(held);
    target.serving.end().await;
}

// One connection has as many requests as the server permits, two of them more than its limit of requests.
#[tokio::test(flavor = "multi_thread")]
async fn streams_of_two_http2_connections_do_not_affect_others() {
    let target = Target::start(&format!("{{requests: {REQUESTS}}}")).await;
    let gate = Gate::new();
    target.setup.api.answer("/slow", Answer::text("done").after(&gate));
    let quiet = target.victim.observe().await;
    let (authority, token) = (target.address().to_string(), target.setup.token(&json!({})));
    let requests = (0..250).flat_map(|number| http2::get(2 * number + 1, &authority, "/slow", &token));
    let bytes: Vec<u8> = http2::preface().into_iter().chain(requests).collect();
    let held = target.send_and_hold(2, "h2", &bytes).await;
    gate.wait_for_arrivals(REQUESTS * 8 / 9).await;
    target.victim.observe().await.assert_unharmed(&quiet, "streams of two HTTP/2 connections");
    gate.open();
    drop(held);
    target.serving.end().await;
}

// Watches hold no seat, but each holds a connection.
#[tokio::test(flavor = "multi_thread")]
async fn watches_of_one_user_leave_connections_for_others() {
    let target = Target::start("{connections: 300}").await;
    let watch = Watch::new();
    target.setup.api.answer("/watch", watch.answer());
    let quiet = target.victim.observe().await;
    let request = format!("{}\r\n", target.head("GET /watch"));
    let held = target.send_and_hold(360, "http/1.1", request.as_bytes()).await;
    watch.wait_for_opened(240).await;
    target.victim.observe().await.assert_unharmed(&quiet, "watches of one user");
    watch.finish();
    drop(held);
    target.serving.end().await;
}

// 500 connections with 248 kB of an unfinished head each took 250 MB, and the shipped deployment has 256 MiB.
#[tokio::test(flavor = "multi_thread")]
async fn unfinished_heads_without_a_token_take_little_memory() {
    let target = Target::start("{}").await;
    let quiet = target.victim.observe().await;
    let before = target.resident_kib();
    let head = format!("GET /api HTTP/1.1\r\nHost: a\r\nX: {}", "a".repeat(248_000));
    let count = (200 * soak::factor()).min(2_000);
    let held = target.send_and_hold(count, "http/1.1", head.as_bytes()).await;
    target.victim.observe().await.assert_unharmed(&quiet, "unfinished heads");
    let more = target.resident_kib().saturating_sub(before);
    let allowed = 64 * count as u64 + 24 * 1024;
    assert!(more < allowed, "{more} KiB for {count} unfinished heads, {before} KiB before");
    drop(held);
    target.serving.end().await;
}

// Heads just below the limit of one connection: all of them together have a limit too.
#[tokio::test(flavor = "multi_thread")]
async fn unfinished_heads_have_a_common_limit() {
    let target = Target::start("{unfinishedBytes: 1000000}").await;
    let quiet = target.victim.observe().await;
    let head = format!("GET /api HTTP/1.1\r\nHost: a\r\nX: {}", "a".repeat(30_000));
    let mut held = target.send_and_hold(100, "http/1.1", head.as_bytes()).await;
    target.victim.observe().await.assert_unharmed(&quiet, "many unfinished heads");
    let page = target.serving.inspect("/metrics").await.text().to_owned();
    let open = page.lines().find_map(|line| line.strip_prefix("navicert_connections{server=\"proxy\"} "));
    let open: usize = open.unwrap().parse().unwrap();
    assert!((20..=34).contains(&open), "{open} connections with 30 kB each");
    target.serving.program.wait_for_output("limit of unfinished request heads reached").await;
    held.clear();
    target.serving.end().await;
}
