//! `auth-provider: name: externalSigner`, from a kubeconfig to an answered request: handshakes, policy, PINs, and signers
//! that do not do their part (T41–T43). The signer is the real protocol's answering side with a software key, run in
//! this process where a program would be.
#![cfg(unix)]
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use navicert_client::credential::ChooseError;
use navicert_client::credential::{CredentialError, SignerConfigError, SignerError};
use navicert_client::exec;
use navicert_client::kuberc::{self, Source};
use navicert_client::transport::{BuildError, TransportError};
use navicert_plugin::{AllowlistEntry, Policy};
use navicert_signer::SignError;
use navicert_testkit::{ApiServer, Ca, ClientAuth, KeyKind};
use rustls::version::{TLS12, TLS13};
use serde_json::json;
use support::{PROGRAM, Setup, allowed};

fn server(ca: &Ca, versions: &[&'static rustls::SupportedProtocolVersion]) -> ApiServer {
    ApiServer::start_with(ca, |builder| {
        builder.client_auth(ClientAuth::Required(ca.clone())).tls_versions(versions)
    })
}

// T41
#[tokio::test]
async fn every_kind_of_key_authenticates_in_both_versions_of_tls_and_of_the_protocol() {
    let ca = Ca::new("root");
    for kind in [KeyKind::Rsa2048, KeyKind::EcP256, KeyKind::EcP384, KeyKind::EcP521, KeyKind::Ed25519] {
        for version in [&TLS12, &TLS13] {
            for protocol in ["v1alpha1", "v1"] {
                let api = server(&ca, &[version]);
                let config = json!({"pathExec": PROGRAM, "signerApiVersion": protocol});
                let setup = Setup::new(&api, &ca, kind, &config).unwrap();
                assert_eq!(setup.status().await.unwrap(), 200, "{kind:?} {version:?} {protocol}");
                let client = api.requests()[0].client.clone().unwrap();
                assert_eq!(client.common_name, "ann");
                assert_eq!(setup.signer.kinds(), ["Certificate", "Sign"], "C840");
            }
        }
    }
}

// T43, C845
#[tokio::test]
async fn sixty_four_first_requests_are_one_certificate_and_one_signature() {
    let ca = Ca::new("root");
    let api = server(&ca, &[&TLS13]);
    let setup = Setup::new(&api, &ca, KeyKind::EcP256, &json!({"pathExec": PROGRAM})).unwrap();
    assert!(setup.signer.kinds().is_empty(), "nothing is run before a request needs it");
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let transport = setup.transport.clone();
            tokio::spawn(async move { support::status(&transport).await.unwrap() })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), 200);
    }
    assert_eq!(setup.signer.kinds(), ["Certificate", "Sign"], "HTTP/2: one connection serves them all");
    assert_eq!(setup.signer.at_once.load(Ordering::SeqCst), 0);
    assert_eq!(setup.signer.most_at_once.load(Ordering::SeqCst), 1);
}

// C843, C845: also with a server that speaks HTTP/1.1 alone, where every request has a handshake.
#[tokio::test]
async fn sixty_four_handshakes_take_turns_at_the_signer_and_none_blocks_the_runtime() {
    let ca = Ca::new("root");
    let api = ApiServer::start_with(&ca, |builder| {
        builder.client_auth(ClientAuth::Required(ca.clone())).http1_only()
    });
    let setup = Setup::new(&api, &ca, KeyKind::EcP256, &json!({"pathExec": PROGRAM})).unwrap();
    let held = setup.signer.hold();
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let transport = setup.transport.clone();
            tokio::spawn(async move { support::status(&transport).await.unwrap() })
        })
        .collect();
    setup.signer.wait_until_signing().await;
    // One thread drives this runtime, and the signer is waiting: a request elsewhere is answered all the same.
    let other = server(&ca, &[&TLS13]);
    let elsewhere = Setup::new(&other, &ca, KeyKind::EcP256, &json!({"pathExec": PROGRAM})).unwrap();
    assert_eq!(elsewhere.status().await.unwrap(), 200);
    held.release();
    for task in tasks {
        assert_eq!(task.await.unwrap(), 200);
    }
    assert_eq!(setup.signer.most_at_once.load(Ordering::SeqCst), 1);
}

// X1, X3, C744, T42
#[tokio::test]
async fn a_signer_nobody_allowed_does_not_run_and_the_error_says_what_to_write() {
    let ca = Ca::new("root");
    let api = server(&ca, &[&TLS13]);
    let config =
        json!({"pathExec": PROGRAM, "pathLib": "/usr/lib/my \"module\".so", "slotId": "0", "objectId": "1"});
    for policy in [Policy::AllowAll, Policy::DenyAll, allowed(&[])] {
        let setup =
            Setup::with(&api, &ca, KeyKind::EcP256, &config, policy.into(), &exec::Settings::default())
                .unwrap();
        let error = setup.status().await.unwrap_err();
        let TransportError::Credentials(error) = error else { panic!("{error:?}") };
        assert!(error.is_denied());
        let CredentialError::Signer(SignerError::Denied { lines, .. }) = &error else { panic!("{error:?}") };
        assert!(setup.signer.kinds().is_empty());
        assert!(error.to_string().ends_with(lines.as_str()), "{error}");
        // The lines, pasted verbatim, are what allows it.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kuberc");
        std::fs::write(&path, lines).unwrap();
        let policy = kuberc::load(&Source::Named(path), &navicert_client::kubeconfig::Disk).unwrap();
        let setup =
            Setup::with(&api, &ca, KeyKind::EcP256, &config, policy.into(), &exec::Settings::default())
                .unwrap();
        assert_eq!(setup.status().await.unwrap(), 200);
    }
}

// X3
#[tokio::test]
async fn a_module_that_the_entry_does_not_name_is_refused() {
    let ca = Ca::new("root");
    let api = server(&ca, &[&TLS13]);
    let policy = || {
        let entry = AllowlistEntry::new(PROGRAM).setting("pathLib", "/good.so");
        Policy::from_parts("Allowlist", Some(vec![entry])).unwrap().into()
    };
    for (config, fine) in [
        (json!({"pathExec": PROGRAM, "pathLib": "/good.so"}), true),
        (json!({"pathExec": PROGRAM}), true),
        (json!({"pathExec": PROGRAM, "pathLib": "/evil.so"}), false),
        (json!({"pathExec": PROGRAM, "uri": "pkcs11:token=t?module-path=/evil.so"}), false),
    ] {
        let setup =
            Setup::with(&api, &ca, KeyKind::EcP256, &config, policy(), &exec::Settings::default()).unwrap();
        assert_eq!(setup.status().await.is_ok(), fine, "{config}");
        assert_eq!(setup.signer.kinds().is_empty(), !fine);
    }
}

// X2, C810, C812, C820
#[tokio::test]
async fn what_a_user_with_a_signer_may_not_have_is_said_before_anything_runs() {
    let ca = Ca::new("root");
    let api = server(&ca, &[&TLS13]);
    let cases = [
        (json!({}), json!({}), "Must provide pathExec"),
        (json!({"pathExec": PROGRAM, "pin": "canary"}), json!({}), "a `pin` in a kubeconfig is refused"),
        (
            json!({"pathExec": PROGRAM, "signerApiVersion": "v9"}),
            json!({}),
            "`signerApiVersion` is not understood",
        ),
        (
            json!({"pathExec": PROGRAM, "signerProtocol": "grpc"}),
            json!({}),
            "`signerProtocol` is not understood",
        ),
        (json!({"pathExec": PROGRAM}), json!({"token": "canary"}), "cannot be combined with a token"),
        (json!({"pathExec": PROGRAM}), json!({"username": "a", "password": "canary"}), "with a password"),
    ];
    for (config, user, message) in cases {
        let settings = exec::Settings::default();
        let error =
            Setup::with_user(&api, &ca, KeyKind::EcP256, &config, user, allowed(&[]).into(), &settings)
                .unwrap_err();
        assert!(matches!(error, BuildError::Credentials(ChooseError::Signer(_))), "{error:?}");
        assert!(error.to_string().contains(message), "{error}");
        assert!(!format!("{error:?} {error}").contains("canary"));
    }
    assert!(SignerConfigError::Pin.to_string().contains("pin-source"));
}

// X2: only where the application says so, and only in the request that needs it.
#[tokio::test]
async fn a_pin_in_a_kubeconfig_is_handed_on_only_where_the_application_allows_it() {
    let ca = Ca::new("root");
    let api = server(&ca, &[&TLS13]);
    let settings = exec::Settings { allow_pin_in_kubeconfig: true, ..exec::Settings::default() };
    let config = json!({"pathExec": PROGRAM, "pin": "canary"});
    let setup = Setup::with(&api, &ca, KeyKind::EcP256, &config, allowed(&[]).into(), &settings).unwrap();
    assert_eq!(setup.status().await.unwrap(), 200);
    let asked = setup.signer.asked();
    assert!(!asked[0].contains("canary") && asked[1].contains("canary"), "{asked:?}");
    assert!(!format!("{:?}", setup.transport).contains("canary"));
}

// C834, T41
#[tokio::test]
async fn a_signer_with_another_key_is_an_error_of_its_own_and_the_server_sees_no_request() {
    let ca = Ca::new("root");
    for version in [&TLS12, &TLS13] {
        let api = server(&ca, &[version]);
        let setup = Setup::new(&api, &ca, KeyKind::EcP256, &json!({"pathExec": PROGRAM})).unwrap();
        setup.signer.sign_with_another_key();
        let error = setup.status().await.unwrap_err();
        assert!(matches!(error, TransportError::Signer(SignError::WrongSignature { .. })), "{error:?}");
        assert!(!error.is_retriable());
        assert!(api.requests().is_empty());
    }
}

// C842a, C842d, T43: the limit is a minute; a handshake that took longer than 25 s is tried once more, and then explained.
#[tokio::test]
async fn a_signer_that_outlasts_the_server_is_tried_twice_and_then_explained() {
    let slow = |seconds| async move {
        let ca = Ca::new("root");
        // In TLS 1.2 the client waits for the server's last word, so a server that has gone is seen in the handshake.
        let api = Arc::new(server(&ca, &[&TLS12]));
        let setup = Setup::new(&api, &ca, KeyKind::EcP256, &json!({"pathExec": PROGRAM})).unwrap();
        setup.signer.take(Duration::from_secs(seconds), &setup.clock, &api, 32);
        (setup.status().await, setup.signer.kinds().len())
    };
    let (answered, asked) = slow(12).await;
    assert_eq!((answered.unwrap(), asked), (200, 2), "twelve seconds are within every limit");
    let (answered, asked) = slow(40).await;
    let error = answered.unwrap_err();
    assert!(matches!(error, TransportError::SlowSigner { .. }), "{error:?}");
    assert!(error.to_string().contains("signing took 40 s"), "{error}");
    assert_eq!(asked, 3, "the certificate and two attempts");
}

// C821
#[tokio::test]
async fn a_certificate_is_asked_for_again_when_it_has_expired() {
    let ca = Ca::new("root");
    let api = server(&ca, &[&TLS13]);
    let setup = Setup::new(&api, &ca, KeyKind::EcP256, &json!({"pathExec": PROGRAM})).unwrap();
    assert_eq!(setup.status().await.unwrap(), 200);
    setup.clock.set_wall(navicert_types::Timestamp::MAX);
    let _ = setup.status().await;
    let certificates = setup.signer.kinds().iter().filter(|kind| *kind == "Certificate").count();
    assert_eq!(certificates, 2);
    assert!(Arc::strong_count(&setup.clock) > 1);
}
