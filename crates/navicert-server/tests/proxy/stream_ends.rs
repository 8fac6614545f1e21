//! Watches, logs and tunnels that end before the API server ends them: revoked users, expired tokens, shutdown.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use navicert_authn::revocation::RevocationList;
use navicert_client::transport::ManualTimer;
use navicert_server::listener::Handler as _;
use navicert_server::proxy::settings::{ProxySettings, SelfCheck};
use navicert_testkit::{Answer, Gate, RawClient, Tunnel, Watch, wait};
use navicert_types::clock::ManualClock;
use serde_json::json;
use tokio::task::JoinHandle;

use super::{Front, Plan, status};

const PODS: &str = "/api/v1/pods";
const LOG: &str = "/api/v1/namespaces/a/pods/b/log";
const EXEC: &str = "/api/v1/namespaces/a/pods/b/exec";
const NOW: i64 = 1_900_000_000;
const GRACE: Duration = Duration::from_secs(25);

/// Revokes every token of these subjects.
fn revoke(front: &Front, subjects: &[&str]) {
    let issuer = front.issuer.issuer_url();
    let entry = |subject: &&str| json!({"issuer": issuer, "subject": subject, "issuedBefore": "2100-01-01T00:00:00Z"});
    let list = json!({
        "apiVersion": "navicert/v1alpha1", "kind": "RevocationList",
        "subjects": subjects.iter().map(entry).collect::<Vec<_>>(),
    });
    let list = RevocationList::parse(list.to_string().as_bytes()).unwrap();
    front.reloader.authenticator().revocations().replace(list);
}

/// A connection whose request got this status.
async fn open(front: &Front, request: &str, lines: &[&str], expected: u16) -> RawClient {
    let mut client = front.raw().await;
    client.write(front.head(request, lines).as_bytes()).await;
    assert_eq!(status(&client.read_until(b"\r\n\r\n").await), expected, "{request}");
    client
}

async fn exec(front: &Front, token: &str) -> RawClient {
    let lines = [token, "Connection: Upgrade", "Upgrade: SPDY/3.1"];
    open(front, &format!("POST {EXEC}"), &lines, 101).await
}

/// An HTTP/2 connection to the proxy.
async fn http2(front: &Front) -> SendRequest<Empty<Bytes>> {
    let stream = RawClient::connect_tls(front.address, &front.ca, None, &["h2"]).await;
    let io = TokioIo::new(stream.into_stream());
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn watch(front: &Front, sender: &mut SendRequest<Empty<Bytes>>, token: &str) -> Incoming {
    let request = front.request(&format!("{PODS}?watch=true"), token, &[]).map(|_| Empty::new());
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body()
}

/// Reads to the end and counts the events; an error if the stream did not end properly.
fn count_events(mut body: Incoming, events: Arc<AtomicUsize>) -> JoinHandle<Result<(), hyper::Error>> {
    tokio::spawn(async move {
        while let Some(frame) = body.frame().await {
            if frame?.is_data() {
                events.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    })
}

// 1,000 watches of 50 users: revoking one user ends exactly its watches, properly, within two seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoking_a_user_ends_exactly_its_watches() {
    const USERS: usize = 50;
    const WATCHES: usize = 20;
    let front = Front::start().await;
    let pods = Watch::new();
    front.api.answer(PODS, pods.answer());
    let events = Arc::new(AtomicUsize::new(0));
    let (mut connections, mut watches) = (Vec::new(), Vec::new());
    for user in 0..USERS {
        let token = front.token(&format!("user-{user}"), &json!({}));
        let mut sender = http2(&front).await;
        for _ in 0..WATCHES {
            let body = watch(&front, &mut sender, &token).await;
            watches.push((user, count_events(body, Arc::clone(&events))));
        }
        connections.push(sender);
    }
    pods.wait_for_opened(USERS * WATCHES).await;
    revoke(&front, &["user-7"]);
    let (theirs, others): (Vec<_>, Vec<_>) = watches.into_iter().partition(|(user, _)| *user == 7);
    let ended = async {
        for (_, watch) in theirs {
            watch.await.unwrap().expect("the stream ends properly");
        }
    };
    tokio::time::timeout(Duration::from_secs(2), ended).await.expect("within two seconds");
    pods.wait_for_closed(WATCHES).await;
    assert_eq!(pods.open_streams(), (USERS - 1) * WATCHES);
    pods.event(&json!({"type": "ADDED"}));
    let arrived = async {
        while events.load(Ordering::Relaxed) < (USERS - 1) * WATCHES {
            tokio::task::yield_now().await;
        }
    };
    wait::within("the event in every other watch", arrived).await;
    assert!(others.iter().all(|(_, watch)| !watch.is_finished()));
    let reports = front.observer.streams();
    assert_eq!(reports.len(), WATCHES);
    assert!(reports.iter().all(|line| *line == format!("200 user-7 - revoked {PODS}")), "{reports:?}");
}

// Each kind of stream ends in its way: followed logs properly, other bodies visibly incomplete, tunnels by a close.
#[tokio::test]
async fn revocation_ends_logs_bodies_and_tunnels() {
    let front = Front::start().await;
    let (log, list, tunnel) = (Watch::new(), Watch::new(), Tunnel::echo());
    front.api.answer(LOG, log.answer());
    front.api.answer(PODS, list.answer());
    front.api.answer(EXEC, tunnel.answer());
    let ann = format!("Authorization: Bearer {}", front.token("ann", &json!({})));
    let bob = format!("Authorization: Bearer {}", front.token("bob", &json!({})));
    let mut following = open(&front, &format!("GET {LOG}?follow=true"), &[&ann], 200).await;
    let mut listing = open(&front, &format!("GET {PODS}"), &[&ann], 200).await;
    let mut anns = exec(&front, &ann).await;
    let mut bobs = exec(&front, &bob).await;
    revoke(&front, &["ann"]);
    following.read_until(b"0\r\n\r\n").await;
    assert!(!listing.read_to_end(1_000).await.ends_with(b"0\r\n\r\n"));
    assert!(anns.read_to_end(1_000).await.is_empty());
    tunnel.wait_for_closed(1).await;
    log.wait_for_closed(1).await;
    list.wait_for_closed(1).await;
    bobs.write(b"still open").await;
    assert_eq!(bobs.read_exactly(10).await, b"still open");
    let mut reports = front.observer.streams();
    reports.sort();
    let expected = [
        format!("101 ann - revoked {EXEC}"),
        format!("200 ann - revoked {PODS}"),
        format!("200 ann - revoked {LOG}"),
    ];
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(reports, expected);
}

// The list changes after the token was verified and before the response begins.
#[tokio::test]
async fn stream_of_a_user_revoked_meanwhile_ends_at_once() {
    let front = Front::start().await;
    let (pods, gate) = (Watch::new(), Gate::new());
    front.api.answer(PODS, pods.answer().after(&gate));
    let token = format!("Authorization: Bearer {}", front.ann());
    let mut client = front.raw().await;
    client.write(front.head(&format!("GET {PODS}?watch=true"), &[&token]).as_bytes()).await;
    gate.wait_for_arrivals(1).await;
    revoke(&front, &["ann"]);
    gate.open();
    client.read_until(b"0\r\n\r\n").await;
    pods.wait_for_closed(1).await;
}

// S255: by default a stream ends with its token; both rules can be switched off.
#[tokio::test]
async fn streams_end_when_their_token_expires() {
    for on in [true, false] {
        let timer = ManualTimer::default();
        let settings = ProxySettings {
            end_streams_on_expiry: on,
            end_streams_on_revocation: on,
            self_check: SelfCheck::Off,
            ..ProxySettings::default()
        };
        let plan = Plan {
            settings,
            clock: Arc::new(ManualClock::at(NOW)),
            timer: Arc::new(timer.clone()),
            ..Plan::default()
        };
        let front = Front::with(plan).await;
        let (pods, tunnel) = (Watch::new(), Tunnel::echo());
        front.api.answer(PODS, pods.answer());
        front.api.answer(EXEC, tunnel.answer());
        let token = front.token("ann", &json!({"exp": NOW + 60}));
        let token = format!("Authorization: Bearer {token}");
        let mut watching = open(&front, &format!("GET {PODS}?watch=true"), &[&token], 200).await;
        let mut tunnelling = exec(&front, &token).await;
        timer.advance(Duration::from_secs(59));
        pods.bytes("an event");
        watching.read_until(b"an event").await;
        timer.advance(Duration::from_secs(1));
        if on {
            watching.read_until(b"0\r\n\r\n").await;
            assert!(tunnelling.read_to_end(1_000).await.is_empty());
            pods.wait_for_closed(1).await;
            tunnel.wait_for_closed(1).await;
            let mut reports = front.observer.streams();
            reports.sort();
            assert_eq!(reports, [format!("101 ann - expired {EXEC}"), format!("200 ann - expired {PODS}")]);
        } else {
            revoke(&front, &["ann"]);
            pods.bytes("another");
            watching.read_until(b"another").await;
            tunnelling.write(b"still open").await;
            assert_eq!(tunnelling.read_exactly(10).await, b"still open");
        }
    }
}

// At shutdown watches end properly and at once, in HTTP/1.1 and HTTP/2; bodies and tunnels have the grace period.
#[tokio::test]
async fn shutdown_ends_watches_and_nothing_else() {
    let front = Front::start().await;
    let (pods, list, tunnel, gate) = (Watch::new(), Watch::new(), Tunnel::echo(), Gate::new());
    front.api.answer(PODS, pods.answer());
    front.api.answer("/list", list.answer());
    front.api.answer("/late", pods.answer().after(&gate));
    front.api.answer("/slow", Answer::text("done").after(&gate));
    front.api.answer(EXEC, tunnel.answer());
    let ann = front.ann();
    let token = format!("Authorization: Bearer {ann}");
    let mut watching = open(&front, &format!("GET {PODS}?watch=true"), &[&token], 200).await;
    let mut listing = open(&front, "GET /list", &[&token], 200).await;
    let mut tunnelling = exec(&front, &token).await;
    let mut sender = http2(&front).await;
    let over_http2 = watch(&front, &mut sender, &ann).await;
    let (mut late, mut slow) = (front.raw().await, front.raw().await);
    late.write(front.head("GET /late?watch=true", &[&token]).as_bytes()).await;
    slow.write(front.head("GET /slow", &[&token]).as_bytes()).await;
    gate.wait_for_arrivals(2).await;
    front.stop.send_replace(true);
    front.proxy.begin_drain(GRACE);
    assert!(watching.read_to_end(1_000).await.ends_with(b"0\r\n\r\n"));
    let events = Arc::new(AtomicUsize::new(0));
    wait::within("the end over HTTP/2", count_events(over_http2, events)).await.unwrap().unwrap();
    gate.open();
    let told = late.read_to_end(10_000).await;
    assert!(told.starts_with(b"HTTP/1.1 200") && told.ends_with(b"0\r\n\r\n"), "{}", told.escape_ascii());
    assert!(slow.read_to_end(10_000).await.ends_with(b"done"));
    list.bytes("the rest");
    listing.read_until(b"the rest").await;
    list.finish();
    assert!(listing.read_to_end(1_000).await.ends_with(b"0\r\n\r\n"));
    tunnelling.write(b"still open").await;
    assert_eq!(tunnelling.read_exactly(10).await, b"still open");
    assert_eq!(front.observer.streams(), Vec::<String>::new(), "no decision about a user");
}
