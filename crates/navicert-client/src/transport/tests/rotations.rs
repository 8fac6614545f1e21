//! Client certificates that are replaced while requests are in flight (T29, C460–C465).

use std::time::Duration;

use http_body_util::BodyExt;
use navicert_testkit::{Answer, ApiServer, Ca, Gate, Watch, wait};
use serde_json::json;

use super::support::{ScriptedSource, bearer, certificate, fixture, request, rig_with, settings, text};
use crate::credential::{Credential, CredentialSource};
use crate::transport::{TransportError, TransportSettings};

fn starts(ca: &Ca, http1_only: bool) -> ApiServer {
    ApiServer::start_with(ca, |server| if http1_only { server.http1_only() } else { server })
}

async fn closed(api: &ApiServer, connection: usize) {
    let what = format!("connection {connection} to close");
    api.wait_until(&what, |log| log.connections[connection].closed).await;
}

// T29, C462
#[tokio::test]
async fn idle_connections_close_at_once_and_the_next_request_uses_the_new_identity() {
    let ca = Ca::new("root");
    for http1_only in [true, false] {
        let api = starts(&ca, http1_only);
        let source = ScriptedSource::new([certificate(&ca.client("ann").issue())]);
        let fixture = fixture(&api, &ca, source.clone());
        assert_eq!(fixture.read("/version").await.0, 200);
        source.replace(certificate(&ca.client("bob").issue()));
        assert_eq!(fixture.read("/version").await.0, 200);
        let users: Vec<_> =
            api.requests().iter().map(|r| r.client.as_ref().unwrap().common_name.clone()).collect();
        assert_eq!(users, ["ann", "bob"]);
        closed(&api, 0).await;
        assert!(!api.connections()[1].closed);
    }
}

// T29, C461
#[tokio::test]
async fn sessions_are_resumed_within_a_generation_and_never_across() {
    let ca = Ca::new("root");
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let api = ApiServer::start_with(&ca, |server| server.http1_only().tls_versions(&[version]));
        let source = ScriptedSource::new([certificate(&ca.client("ann").issue())]);
        let fixture = fixture(&api, &ca, source.clone());
        for user in ["ann", "bob", "ann"] {
            if user == "bob" || source.lookups() > 2 {
                source.replace(certificate(&ca.client(user).issue()));
            }
            for _ in 0..2 {
                assert_eq!(fixture.read("/version").await.0, 200);
                api.cut_connections(navicert_testkit::Cut::Clip); // so that the next request needs a handshake
            }
        }
        let handshakes: Vec<_> = api
            .connections()
            .iter()
            .filter_map(|connection| connection.tls.clone())
            .map(|tls| (tls.client.unwrap().common_name, tls.resumed))
            .collect();
        let resumed = |user: &str| [(user.to_owned(), false), (user.to_owned(), true)];
        let expected = [resumed("ann"), resumed("bob"), resumed("ann")].concat();
        assert_eq!(handshakes, expected, "{version:?}");
    }
}

// T29, C462, C463
#[tokio::test]
async fn requests_in_flight_finish_and_a_watch_fails_with_a_retriable_error_at_the_limit() {
    let ca = Ca::new("root");
    for http1_only in [true, false] {
        let api = starts(&ca, http1_only);
        let (gate, pods) = (Gate::new(), Watch::new());
        api.answer("/download", Answer::text("first second").stalled_at(6, &gate));
        api.answer("/watch", pods.answer());
        let source = ScriptedSource::new([certificate(&ca.client("ann").issue())]);
        let fixture = fixture(&api, &ca, source.clone());
        let download = fixture.get("/download").await.unwrap();
        let mut watch = fixture.get("/watch").await.unwrap().into_body();
        pods.event(&json!({"type": "ADDED"}));
        wait::within("an event", watch.frame()).await.unwrap().unwrap();

        source.replace(certificate(&ca.client("bob").issue()));
        assert_eq!(fixture.read("/version").await.0, 200);
        gate.open();
        assert_eq!(text(download).await, "first second", "http1_only: {http1_only}");
        pods.event(&json!({"type": "MODIFIED"}));
        wait::within("an event", watch.frame()).await.unwrap().unwrap();

        fixture.timer.advance(Duration::from_secs(599));
        pods.event(&json!({"type": "MODIFIED"}));
        wait::within("an event", watch.frame()).await.unwrap().unwrap();
        fixture.timer.advance(Duration::from_secs(1));
        let end = wait::within("the end", watch.frame()).await.unwrap().unwrap_err();
        assert!(matches!(end, TransportError::Retired), "{end:?}");
        assert!(end.is_retriable());
        pods.wait_for_closed(1).await;
        assert_eq!(fixture.read("/version").await.0, 200, "the new connection stays open");
        let log = api.log();
        let bob = |connection: &navicert_testkit::net::http_server::Connection| {
            connection.tls.as_ref().is_some_and(|tls| tls.client.as_ref().unwrap().common_name == "bob")
        };
        assert_eq!(log.connections.iter().filter(|connection| bob(connection)).count(), 1);
    }
}

// T29, C452
#[tokio::test]
async fn without_drain_timeout_requests_in_flight_are_aborted() {
    let ca = Ca::new("root");
    for http1_only in [true, false] {
        let api = starts(&ca, http1_only);
        let gate = Gate::new();
        api.answer("/download", Answer::text("first second").stalled_at(6, &gate));
        let source = ScriptedSource::new([certificate(&ca.client("ann").issue())]);
        let fixture = rig_with(
            TransportSettings { drain_timeout: Duration::ZERO, ..settings(&api, &ca) },
            source.clone(),
        );
        let download = fixture.get("/download").await.unwrap();
        source.replace(certificate(&ca.client("bob").issue()));
        assert_eq!(fixture.read("/version").await.0, 200);
        let end = wait::within("the end", download.into_body().collect()).await.unwrap_err();
        assert!(matches!(end, TransportError::Retired), "{end:?}");
        closed(&api, 0).await;
    }
}

// C462, last sentence
#[tokio::test]
async fn body_of_a_401_that_causes_a_rotation_is_delivered_before_its_connection_closes() {
    let ca = Ca::new("root");
    for http1_only in [true, false] {
        let api = starts(&ca, http1_only);
        let gate = Gate::new();
        let refused = Answer::text("who are you?").with_status(401).stalled_at(4, &gate);
        api.answer_with("/x", move |request| match request.client.as_ref().unwrap().common_name.as_str() {
            "ann" => refused.clone(),
            _ => Answer::text("hello"),
        });
        let source = ScriptedSource::new([
            certificate(&ca.client("ann").issue()),
            certificate(&ca.client("bob").issue()),
        ]);
        let settings = TransportSettings {
            drain_timeout: Duration::ZERO,
            retry_unauthorized: false,
            ..settings(&api, &ca)
        };
        let fixture = rig_with(settings, source);
        let refusal = fixture.get("/x").await.unwrap();
        assert_eq!(fixture.read("/x").await, (200, "hello".to_owned()), "bob's connection is open by now");
        gate.open();
        assert_eq!(text(refusal).await, "who are you?");
        closed(&api, 0).await;
    }
}

// C465
#[tokio::test]
async fn removing_the_certificate_is_a_rotation() {
    let ca = Ca::new("root");
    let api = starts(&ca, true);
    api.accept_token("t", "ann", &[]);
    let source = ScriptedSource::new([certificate(&ca.client("ann").issue())]);
    let fixture = fixture(&api, &ca, source.clone());
    assert_eq!(fixture.read("/version").await.0, 200);
    source.replace(bearer("t"));
    assert_eq!(fixture.read("/version").await.0, 200);
    assert!(api.requests()[1].client.is_none());
    closed(&api, 0).await;
}

// C452, C464
#[tokio::test]
async fn new_token_or_unchanged_certificate_closes_no_connection() {
    let ca = Ca::new("root");
    let api = starts(&ca, true);
    let ann = ca.client("ann").issue();
    for token in ["one", "two", "three"] {
        api.accept_token(token, "ann", &[]);
    }
    let with = |token| Credential { identity: certificate(&ann).identity, ..bearer(token) };
    let source = ScriptedSource::new([with("one")]);
    let fixture = fixture(&api, &ca, source.clone());
    for token in ["one", "two", "three"] {
        source.replace(with(token));
        assert_eq!(fixture.read("/version").await.0, 200);
    }
    let (requests, connections) = (api.requests(), api.connections());
    assert_eq!((requests.len(), connections.len()), (3, 1));
    assert_eq!(requests[2].bearer_token(), Some("three"));
}

// T29, C412
#[tokio::test]
async fn expired_credential_does_not_close_its_connection() {
    let ca = Ca::new("root");
    let api = starts(&ca, true);
    let past = navicert_types::Timestamp::from_second(1_000).unwrap();
    let ann = Credential { expires: Some(past), ..certificate(&ca.client("ann").issue()) };
    let fixture = fixture(&api, &ca, ScriptedSource::new([ann]));
    for _ in 0..3 {
        assert_eq!(fixture.read("/version").await.0, 200);
    }
    assert_eq!(api.connections().len(), 1);
}

// C460: a request with the old certificate does not bring it back
#[tokio::test]
async fn requests_during_many_rotations_succeed_and_never_use_an_older_certificate() {
    let ca = Ca::new("root");
    let api = starts(&ca, false);
    let source = ScriptedSource::new([certificate(&ca.client("user-00").issue())]);
    let fixture = fixture(&api, &ca, source.clone());
    for number in 1..12 {
        let before: Vec<_> = (0..8)
            .map(|_| {
                let transport = fixture.transport.clone();
                tokio::spawn(async move { transport.send(request("/version")).await.unwrap().status() })
            })
            .collect();
        tokio::task::yield_now().await;
        source.replace(certificate(&ca.client(&format!("user-{number:02}")).issue()));
        for task in before {
            assert_eq!(wait::within("an answer", task).await.unwrap(), 200);
        }
    }
    let opened: Vec<_> = api
        .connections()
        .iter()
        .map(|connection| connection.tls.clone().unwrap().client.unwrap().common_name)
        .collect();
    assert!(opened.is_sorted(), "{opened:?}");
    assert!(opened.len() > 2, "{opened:?}");
}

// C460, C462, C433: the connection was opened for the old certificate, but nothing had been sent on it
#[tokio::test]
async fn request_uses_the_new_identity_and_token_after_a_rotation_during_connect() {
    let ca = Ca::new("root");
    for http1_only in [true, false] {
        let api = starts(&ca, http1_only);
        for token in ["one", "two"] {
            api.accept_token(token, "ann", &[]);
        }
        let with = |name, token| Credential {
            identity: certificate(&ca.client(name).issue()).identity,
            ..bearer(token)
        };
        let source = ScriptedSource::new([with("ann", "one")]);
        let fixture = fixture(&api, &ca, source.clone());
        let gate = Gate::new();
        api.stall_connections(&gate);
        let transport = fixture.transport.clone();
        let overtaken = tokio::spawn(async move { transport.send(request("/overtaken")).await.unwrap() });
        gate.wait_for_arrivals(1).await;
        source.replace(with("bob", "two"));
        api.accept_connections();
        assert_eq!(fixture.read("/version").await.0, 200);
        gate.open();
        assert_eq!(wait::within("an answer", overtaken).await.unwrap().status(), 200);
        let seen = api.wait_for_requests_to("/overtaken", 1).await;
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].client.as_ref().unwrap().common_name, "bob", "http1_only: {http1_only}");
        assert_eq!(seen[0].bearer_token(), Some("two"));
    }
}

// C460
#[tokio::test]
async fn older_credential_gets_no_connection_after_a_newer_one() {
    let ca = Ca::new("root");
    let api = starts(&ca, true);
    let source = ScriptedSource::new([certificate(&ca.client("ann").issue())]);
    let fixture = fixture(&api, &ca, source.clone());
    let old = source.cached().unwrap();
    source.replace(certificate(&ca.client("bob").issue()));
    let new = source.cached().unwrap();
    let pools = &fixture.transport.0.pools;
    assert!(pools.pool_for(&old).unwrap().is_some());
    assert!(pools.pool_for(&new).unwrap().is_some());
    assert!(pools.pool_for(&old).unwrap().is_none());
}
