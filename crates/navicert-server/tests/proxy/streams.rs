//! Watches and logs through the proxy: forwarded immediately, to the end, and no longer than allowed.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use navicert_authn::config::BaseProfile;
use navicert_client::transport::ManualTimer;
use navicert_server::ServerLimits;
use navicert_server::proxy::settings::{MaxStreamAge, ProxySettings, SelfCheck};
use navicert_testkit::{Answer, RawClient, Tunnel, Watch};
use navicert_types::clock::ManualClock;
use serde_json::json;

use super::{Front, Plan, status};

const PODS: &str = "/api/v1/pods";

/// User ann watches pods through a proxy.
async fn watching() -> (Front, Watch, RawClient) {
    watching_at(Front::start().await).await
}

async fn watching_at(front: Front) -> (Front, Watch, RawClient) {
    let pods = Watch::new();
    front.api.answer(PODS, pods.answer());
    let token = format!("Authorization: Bearer {}", front.ann());
    let mut client = front.raw().await;
    client.write(front.head(&format!("GET {PODS}?watch=true"), &[&token]).as_bytes()).await;
    pods.wait_for_opened(1).await;
    (front, pods, client)
}

// PV14, S253: each event reaches the client before the next one exists.
#[tokio::test]
async fn forwards_each_event_immediately() {
    let (_front, pods, mut client) = watching().await;
    for number in 0..5 {
        pods.event(&json!({"type": "ADDED", "object": {"number": number}}));
        client.read_until(format!("\"number\":{number}").as_bytes()).await;
    }
}

// A connection with a watch is not idle, however quiet the watch is: other connections are evicted.
#[tokio::test]
async fn quiet_watch_is_not_evicted() {
    let limits = ServerLimits { connections: 3, ..ServerLimits::default() };
    let (front, pods, mut client) = watching_at(Front::with(Plan { limits, ..Plan::default() }).await).await;
    let mut idle = Vec::new();
    for _ in 0..10 {
        idle.push(front.raw().await);
    }
    pods.event(&json!({"type": "ADDED", "object": {"number": 1}}));
    client.read_until(b"\"number\":1").await;
    for client in &mut idle[..7] {
        client.read_to_end(0).await;
    }
}

// PV15, S253
#[tokio::test]
async fn client_disconnect_ends_the_upstream_watch() {
    let (_front, pods, client) = watching().await;
    drop(client);
    pods.wait_for_closed(1).await;
}

// PV16, B6, S246
#[tokio::test]
async fn redirect_to_another_host_is_a_502() {
    let front = Front::start().await;
    front.api.answer("/away", Answer::redirect(301, "https://evil.example/"));
    let reply = front.get("/away", &front.ann()).await;
    assert_eq!((reply.status.as_u16(), reply.header("location")), (502, None));
    front.api.answer(
        "/headers",
        Answer::text("x")
            .header("audit-id", "a-b-c")
            .header("warning", "299 - \"old\"")
            .header("x-kubernetes-pf-flowschema-uid", "u")
            .header("access-control-allow-origin", "*"),
    );
    let reply = front.get("/headers", &front.ann()).await;
    assert_eq!(reply.header("audit-id"), Some("a-b-c"));
    assert_eq!(reply.header("warning"), Some("299 - \"old\""));
    assert_eq!(reply.header("x-kubernetes-pf-flowschema-uid"), Some("u"));
    assert_eq!(reply.header("access-control-allow-origin"), None, "S257");
}

// S255
#[tokio::test]
async fn streams_end_at_their_maximum_duration() {
    for (age, passes) in [
        (MaxStreamAge::After(Duration::from_secs(60)), Duration::from_secs(61)),
        (MaxStreamAge::TokenExpiry, Duration::from_secs(301)),
    ] {
        let timer = ManualTimer::default();
        let settings =
            ProxySettings { max_stream_age: age, self_check: SelfCheck::Off, ..ProxySettings::default() };
        let front = Front::with(Plan { settings, timer: Arc::new(timer.clone()), ..Plan::default() }).await;
        let (pods, tunnel) = (Watch::new(), Tunnel::echo());
        front.api.answer(PODS, pods.answer());
        front.api.answer("/exec", tunnel.answer());
        let token = format!("Authorization: Bearer {}", front.ann());
        let mut watching = front.raw().await;
        watching.write(front.head(&format!("GET {PODS}?watch=true"), &[&token]).as_bytes()).await;
        pods.wait_for_opened(1).await;
        pods.bytes("an event");
        watching.read_until(b"an event").await;
        let mut exec = front.raw().await;
        let lines = [token.as_str(), "Connection: Upgrade", "Upgrade: SPDY/3.1"];
        exec.write(front.head("POST /exec", &lines).as_bytes()).await;
        assert_eq!(status(&exec.read_until(b"\r\n\r\n").await), 101);
        timer.advance(passes);
        // A watch may end after any event, and does so properly.
        watching.read_until(b"0\r\n\r\n").await;
        assert!(exec.read_to_end(1_000).await.is_empty());
        pods.wait_for_closed(1).await;
        tunnel.wait_for_closed(1).await;
    }
}

/// A proxy with profile `kube` whose streams end with their token.
async fn until_token_expiry(timer: &ManualTimer) -> Front {
    let settings = ProxySettings {
        max_stream_age: MaxStreamAge::TokenExpiry,
        self_check: SelfCheck::Off,
        ..ProxySettings::default()
    };
    let (clock, timer) = (Arc::new(ManualClock::at(NOW)), Arc::new(timer.clone()));
    Front::with(Plan { settings, profile: BaseProfile::Kube, clock, timer, ..Plan::default() }).await
}

const NOW: i64 = 1_900_000_000;

// S255, S102, S124, S130: every token that kube-apiserver's rules accept has the expiry that was verified.
#[tokio::test]
async fn stream_ends_with_its_token_however_the_expiry_is_written() {
    for (expiry, is_broken) in [
        (format!("\"exp\":\"{}\"", NOW + 300), false),
        (format!("\"exp\":{},\"EXP\":{}", NOW + 9_000, NOW + 300), false),
        (format!("\"exp\":{}.5", NOW + 300), false),
        (format!("\"exp\":{}", NOW + 300), true),
    ] {
        let timer = ManualTimer::default();
        let front = until_token_expiry(&timer).await;
        let tunnel = Tunnel::echo();
        front.api.answer("/exec", tunnel.answer());
        let claims =
            format!(r#"{{"iss":"{}","aud":"kubernetes","sub":"ann",{expiry}}}"#, front.issuer.issuer_url());
        let key = front.issuer.key();
        let mut token = key.token_of_bytes(key.header().to_string().as_bytes(), claims.as_bytes());
        if is_broken {
            token.insert(token.find('.').unwrap() + 9, '\n');
        }
        let protocols = format!(
            "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{}, v5.channel.k8s.io",
            URL_SAFE_NO_PAD.encode(&token)
        );
        let lines = [protocols.as_str(), "Connection: Upgrade", "Upgrade: websocket"];
        let mut exec = front.raw().await;
        exec.write(front.head("GET /exec", &lines).as_bytes()).await;
        assert_eq!(status(&exec.read_until(b"\r\n\r\n").await), 101, "{expiry}");
        timer.advance(Duration::from_secs(299));
        exec.write(b"still open").await;
        assert_eq!(exec.read_exactly(10).await, b"still open", "{expiry}");
        timer.advance(Duration::from_secs(1));
        assert!(exec.read_to_end(1_000).await.is_empty(), "{expiry}");
        tunnel.wait_for_closed(1).await;
    }
}
