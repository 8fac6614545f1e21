//! What happens to an issuer: faults right after a rotation, and rotations of keys that may be cached.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use navicert_testkit::services::fault_proxy::KeysFault;
use navicert_testkit::soak;
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::issuers::Issuer;
use crate::sides::Sides;
use crate::table::Row;

/// Interval between two rotations of cached keys.
const ROTATION_INTERVAL: Duration = Duration::from_secs(60);
/// Interval between two looks at the key that dex signs with.
const KEY_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A fault of the key endpoint that begins with the first token of a new key.
struct Situation {
    name: &'static str,
    fault: KeysFault,
    lasts: Duration,
}

/// Each fault in turn, each with a new key.
pub(crate) async fn faults(issuer: &Issuer, sides: &Sides) -> Vec<Row> {
    let mut rows = Vec::new();
    let names: Vec<&str> = situations(Bytes::new()).iter().map(|situation| situation.name).collect();
    for name in names {
        let before = issuer.keys().await;
        issuer.rotate().await;
        let token = issuer.token().await;
        let situation = situations(before).into_iter().find(|situation| situation.name == name).unwrap();
        let start = SystemClock.monotonic();
        issuer.inject(situation.fault, situation.lasts);
        rows.push(Row::new(name, issuer, sides.accept(&token, start).await));
    }
    rows
}

fn situations(stale: Bytes) -> Vec<Situation> {
    let situation =
        |name, fault, milliseconds| Situation { name, fault, lasts: Duration::from_millis(milliseconds) };
    vec![
        situation("rotation", KeysFault::Delayed, 0),
        situation("key published 3 s late", KeysFault::Stale(stale), 3_000),
        situation("0.3 s of status 500", KeysFault::Status(500), 300),
        situation("12 s of status 500", KeysFault::Status(500), 12_000),
        situation("5 s without an answer, then all are answered", KeysFault::Delayed, 5_000),
        situation("5 s without an answer, lost requests", KeysFault::Unanswered, 5_000),
        situation("2 s with a key of an unknown type", KeysFault::Added(vec![unknown_type()]), 2_000),
        situation("2 s with a key of an unknown curve", KeysFault::Added(vec![unknown_curve()]), 2_000),
        situation("2 s with malformed keys", KeysFault::Added(malformed()), 2_000),
    ]
}

/// A post-quantum key.
fn unknown_type() -> Value {
    json!({"kty": "AKP", "kid": "odd-1", "alg": "ML-DSA-44", "use": "sig", "pub": "AAAA"})
}

/// A key of an algorithm that Kubernetes does not have.
fn unknown_curve() -> Value {
    let coordinate = URL_SAFE_NO_PAD.encode([1; 32]);
    json!({
        "kty": "EC", "crv": "secp256k1", "kid": "odd-2", "alg": "ES256K", "use": "sig",
        "x": coordinate, "y": coordinate,
    })
}

fn malformed() -> Vec<Value> {
    vec![json!({"kty": "RSA", "kid": "odd-3", "n": "not base64!", "e": 65537}), json!("odd-4"), json!([])]
}

/// A new key every minute, with `max-age=120` from the proxy: two, and six in `make soak`.
pub(crate) async fn rotations_by_command(issuer: &Issuer, sides: &Sides) -> Vec<Row> {
    let count = if soak::factor() > 1 { 6 } else { 2 };
    let (mut measuring, mut rotation) = (JoinSet::new(), tokio::time::interval(ROTATION_INTERVAL));
    for _ in 0..count {
        rotation.tick().await;
        issuer.rotate().await;
        measure(&mut measuring, sides, issuer.token().await);
    }
    rows(issuer, "rotation every minute, `max-age=120`", measuring).await
}

/// dex's own rotations, with its own `max-age=120`: one, and four in `make soak`.
pub(crate) async fn rotations_by_schedule(issuer: &Issuer, sides: &Sides) -> Vec<Row> {
    let count = if soak::factor() > 1 { 4 } else { 1 };
    let (mut measuring, mut poll) = (JoinSet::new(), tokio::time::interval(KEY_POLL_INTERVAL));
    let mut known = key_id(&issuer.token().await);
    while measuring.len() < count {
        poll.tick().await;
        let token = issuer.token().await;
        let current = key_id(&token);
        if current != known {
            known = current;
            measure(&mut measuring, sides, token);
        }
    }
    rows(issuer, "its own rotation and `max-age=120`", measuring).await
}

fn measure(measuring: &mut JoinSet<crate::sides::Accepted>, sides: &Sides, token: String) {
    let (sides, start) = (sides.clone(), SystemClock.monotonic());
    measuring.spawn(async move { sides.accept(&token, start).await });
}

async fn rows(issuer: &Issuer, name: &'static str, measuring: JoinSet<crate::sides::Accepted>) -> Vec<Row> {
    measuring.join_all().await.into_iter().map(|accepted| Row::new(name, issuer, accepted)).collect()
}

/// The key ID in a token's header.
fn key_id(token: &str) -> String {
    let header = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    header.get("kid").and_then(Value::as_str).unwrap().to_owned()
}
