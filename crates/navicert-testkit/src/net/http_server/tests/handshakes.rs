//! TLS: key kinds, versions, client certificates, resumption.

use std::sync::Arc;

use navicert_types::clock::ManualClock;
use navicert_types::{Timestamp, error_chain};
use rustls::ProtocolVersion;
use rustls::version::{TLS12, TLS13};

use super::*;
use crate::pki::ca::KeyKind;

#[tokio::test]
async fn handshakes_succeed_for_every_key_kind_on_both_sides_in_both_versions() {
    // T41, with software keys.
    let ca = Ca::new("root");
    for kind in KeyKind::ALL {
        let identity = ca.server().key(kind).issue();
        let client_identity = ca.client("ann").key(kind).issue();
        for (version, name) in [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)] {
            let builder =
                HttpServer::builder().identity(&identity).client_auth(ClientAuth::Required(ca.clone()));
            let server = builder.start(&ca);
            let client = HttpClient::with_versions(&ca, Some(&client_identity), &[version]);
            client
                .get(&server.url_of("/"))
                .await
                .unwrap_or_else(|error| panic!("{kind:?} {name:?}: {error}"));
            let connection = &server.connections()[0];
            let tls = connection.tls.as_ref().unwrap();
            assert_eq!((tls.version, tls.resumed, tls.protocol.as_deref()), (name, false, Some("http/1.1")));
            assert_eq!(tls.client.as_ref().unwrap().common_name, "ann");
        }
    }
}

#[tokio::test]
async fn unsupported_tls_version_fails_and_is_recorded() {
    let ca = Ca::new("root");
    for (speaks, offered) in [(&TLS12, &TLS13), (&TLS13, &TLS12)] {
        let server = HttpServer::builder().tls_versions(&[speaks]).start(&ca);
        let error =
            HttpClient::with_versions(&ca, None, &[offered]).get(&server.url_of("/")).await.unwrap_err();
        assert!(error_chain(&*error).contains("ProtocolVersion"), "{}", error_chain(&*error));
        let log = server.wait_until("a failed handshake", |log| !log.handshake_failures.is_empty()).await;
        assert!(log.requests.is_empty());
    }
}

#[tokio::test]
async fn client_certificates_are_ignored_requested_optional_or_required() {
    let ca = Ca::new("root");
    let stranger = Ca::new("strangers").client("eve").issue();
    let ann = ca.client("ann").issue();
    let expired = ca.client("old").expired().issue();
    let early = ca.client("early").not_yet_valid().issue();
    let none = ClientAuth::None;
    let requested = ClientAuth::Requested;
    let optional = ClientAuth::Optional(ca.clone());
    let required = ClientAuth::Required(ca.clone());
    // What each sees: `Some(name)` served with that certificate, `None` an alert with that text.
    let alert = |text: &'static str| Err(text);
    for (auth, identity, sees) in [
        (&none, Some(&ann), Ok(None)),
        (&requested, None, Ok(None)),
        (&requested, Some(&stranger), Ok(Some("eve"))),
        (&requested, Some(&expired), Ok(Some("old"))),
        (&optional, None, Ok(None)),
        (&optional, Some(&ann), Ok(Some("ann"))),
        (&optional, Some(&stranger), alert("UnknownCA")),
        (&required, None, alert("CertificateRequired")),
        (&required, Some(&ann), Ok(Some("ann"))),
        (&required, Some(&expired), alert("CertificateExpired")),
        (&required, Some(&early), alert("CertificateExpired")),
    ] {
        let server = HttpServer::builder().client_auth(auth.clone()).start(&ca);
        let reply = HttpClient::with_versions(&ca, identity, &[&TLS13]).get(&server.url_of("/")).await;
        match sees {
            Ok(name) => {
                reply.unwrap_or_else(|error| panic!("{auth:?} {identity:?}: {error}"));
                let seen = server.requests()[0].client.as_ref().map(|client| client.common_name.clone());
                assert_eq!(seen.as_deref(), name, "{auth:?}");
            }
            Err(text) => {
                let error = error_chain(&*reply.unwrap_err());
                assert!(error.contains(text), "{auth:?} {identity:?}: {error}");
                server.wait_until("a failed handshake", |log| log.handshake_failures.len() == 1).await;
            }
        }
    }
}

#[tokio::test]
async fn certificate_validity_is_checked_against_the_test_clock() {
    let ca = Ca::new("root");
    let second = |second| Timestamp::from_second(second).unwrap();
    let brief = ca.client("ann").valid(second(2_000_000_000), second(2_000_000_060)).issue();
    let clock = Arc::new(ManualClock::at(2_000_000_000));
    let auth = ClientAuth::Required(ca.clone());
    let server = HttpServer::builder().client_auth(auth).without_resumption().clock(clock.clone()).start(&ca);
    let client = HttpClient::with_identity(&ca, &brief);
    client.get(&server.url_of("/")).await.unwrap();
    clock.advance(std::time::Duration::from_secs(61));
    assert!(error_chain(&*client.get(&server.url_of("/")).await.unwrap_err()).contains("CertificateExpired"));
}

#[tokio::test]
async fn resumed_session_is_recorded_with_the_original_client_certificate() {
    // T29 needs the server to tell the two apart.
    let ca = Ca::new("root");
    for version in [&TLS12, &TLS13] {
        let server = HttpServer::builder().client_auth(ClientAuth::Requested).start(&ca);
        let client = HttpClient::with_versions(&ca, Some(&ca.client("ann").issue()), &[version]);
        for _ in 0..2 {
            client.get(&server.url_of("/")).await.unwrap();
        }
        let connections = server.connections();
        let resumed: Vec<bool> =
            connections.iter().map(|connection| connection.tls.as_ref().unwrap().resumed).collect();
        assert_eq!(resumed, [false, true], "{version:?}");
        assert_eq!(server.requests()[1].client.as_ref().unwrap().common_name, "ann");
    }
    let server = HttpServer::builder().without_resumption().start(&ca);
    let client = HttpClient::trusting(&ca);
    for _ in 0..2 {
        client.get(&server.url_of("/")).await.unwrap();
    }
    assert!(server.connections().iter().all(|connection| !connection.tls.as_ref().unwrap().resumed));
}

#[tokio::test]
async fn a_chain_with_intermediates_is_trusted_by_its_root_alone() {
    let root = Ca::new("root");
    let intermediate = root.intermediate("one").intermediate("two");
    let auth = ClientAuth::Required(root.clone());
    let server = HttpServer::builder().client_auth(auth).start(&intermediate);
    let client = HttpClient::with_identity(&root, &intermediate.client("ann").issue());
    client.get(&server.url_of("/")).await.unwrap();
    assert_eq!(server.requests()[0].client.as_ref().unwrap().chain.len(), 3);
}

#[tokio::test]
async fn another_certificate_is_presented_from_the_next_handshake_on() {
    let (ca, server, client) = started();
    let new = Ca::new("new root");
    client.get(&server.url_of("/")).await.unwrap();
    server.present(&new.server().issue());
    assert!(
        error_chain(&*HttpClient::trusting(&ca).get(&server.url_of("/")).await.unwrap_err())
            .contains("UnknownIssuer")
    );
    HttpClient::trusting(&new).get(&server.url_of("/")).await.unwrap();
    server.present(&new.server_without_names().name("elsewhere.test").issue());
    let error = HttpClient::trusting(&new).get(&server.url_of("/")).await.unwrap_err();
    assert!(error_chain(&*error).contains("not valid for name"), "{}", error_chain(&*error));
}

#[tokio::test]
async fn records_negotiated_server_name_and_protocol() {
    let ca = Ca::new("root");
    let server = HttpServer::builder().http1_only().start(&ca);
    let url = format!("https://localhost:{}/", server.address().port());
    HttpClient::trusting(&ca).get(&url).await.unwrap();
    let tls = server.connections()[0].tls.clone().unwrap();
    assert_eq!((tls.server_name.as_deref(), tls.protocol.as_deref()), (Some("localhost"), Some("http/1.1")));
    let error = HttpClient::trusting(&ca).http2().get(&url).await.unwrap_err();
    assert!(error_chain(&*error).contains("NoApplicationProtocol"), "{}", error_chain(&*error));
}
