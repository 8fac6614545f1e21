//! `auth-provider: name: externalSigner`, from a kubeconfig to a response: handshakes, policy, PINs, and faulty signers
//! (T41–T43). The signer implements the real protocol with a software key, in this process instead of a program.
#![cfg(unix)]
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "test helpers")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use navicert_client::ConfigErrorClass;
use navicert_client::credential::{CredentialError, SignerError};
use navicert_client::kuberc::{self, KubercSource};
use navicert_client::transport::TransportError;
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
async fn every_key_type_authenticates_with_both_tls_and_protocol_versions() {
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
async fn concurrent_first_requests_need_one_certificate_and_one_signature() {
    let ca = Ca::new("root");
    let api = server(&ca, &[&TLS13]);
    let setup = Setup::new(&api, &ca, KeyKind::EcP256, &json!({"pathExec": PROGRAM})).unwrap();
    assert!(setup.signer.kinds().is_empty(), "the signer does not run before the first request");
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
    assert_eq!(setup.signer.concurrent.load(Ordering::SeqCst), 0);
    assert_eq!(setup.signer.max_concurrent.load(Ordering::SeqCst), 1);
}

// C841: clients with equal configurations share one certificate, and so one PIN; each checks its own policy.
#[tokio::test]
async fn clients_in_one_process_share_a_signer_if_their_configurations_are_equal() {
    let ca = Ca::new("root");
    let api = server(&ca, &[&TLS13]);
    let config = json!({"pathExec": PROGRAM, "uri": "pkcs11:token=t"});
    let setup = Setup::new(&api, &ca, KeyKind::EcP256, &config).unwrap();
    assert_eq!(setup.status().await.unwrap(), 200);
    let certificates =
        || setup.signer.kinds().into_iter().filter(|kind| kind == "Certificate").collect::<Vec<_>>().len();
    let alike = setup.another(&api, &ca, &config, allowed(&[]));
    assert_eq!(support::status(&alike).await.unwrap(), 200);
    assert_eq!(certificates(), 1);
    let other = json!({"pathExec": PROGRAM, "uri": "pkcs11:token=u"});
    assert_eq!(support::status(&setup.another(&api, &ca, &other, allowed(&[]))).await.unwrap(), 200);
    assert_eq!(certificates(), 2, "another key");
    let elsewhere = server(&ca, &[&TLS13]);
    assert_eq!(support::status(&setup.another(&elsewhere, &ca, &config, allowed(&[]))).await.unwrap(), 200);
    assert_eq!(certificates(), 3, "another cluster, which a signer may reject (X9)");
    let asked = setup.signer.requests().len();
    let denied = support::status(&setup.another(&api, &ca, &config, Policy::DenyAll)).await.unwrap_err();
    let TransportError::Credentials(denied) = denied else { panic!("{denied:?}") };
    assert!(denied.is_denied(), "another client's policy does not count");
    assert_eq!(setup.signer.requests().len(), asked);
}

// C844: every connection proves possession of the key.
#[tokio::test]
async fn sessions_with_a_signer_are_never_resumed() {
    let ca = Ca::new("root");
    for version in [&TLS12, &TLS13] {
        let api = server(&ca, &[version]);
        let setup = Setup::new(&api, &ca, KeyKind::EcP256, &json!({"pathExec": PROGRAM})).unwrap();
        for _ in 0..2 {
            assert_eq!(setup.status().await.unwrap(), 200);
            api.cut_connections(navicert_testkit::Cut::Clip);
        }
        let connections = api.connections();
        let resumed: Vec<bool> =
            connections.iter().filter_map(|connection| Some(connection.tls.as_ref()?.resumed)).collect();
        assert_eq!(resumed, [false, false], "{version:?}");
        let signatures = setup.signer.kinds().iter().filter(|kind| *kind == "Sign").count();
        assert_eq!(signatures, 2, "{version:?}");
    }
}

// C843, C845: with an HTTP/1.1 server, every concurrent request needs a handshake.
#[tokio::test]
async fn concurrent_handshakes_use_the_signer_one_at_a_time_and_do_not_block_the_runtime() {
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
    // The runtime has one thread and the signer blocks: a request to another server still succeeds.
    let other = server(&ca, &[&TLS13]);
    let elsewhere = Setup::new(&other, &ca, KeyKind::EcP256, &json!({"pathExec": PROGRAM})).unwrap();
    assert_eq!(elsewhere.status().await.unwrap(), 200);
    held.release();
    for task in tasks {
        assert_eq!(task.await.unwrap(), 200);
    }
    assert_eq!(setup.signer.max_concurrent.load(Ordering::SeqCst), 1);
}

// X1, X3, C744, T42
#[tokio::test]
async fn signer_that_is_not_allowed_does_not_run_and_the_error_shows_the_kuberc_to_write() {
    let ca = Ca::new("root");
    let api = server(&ca, &[&TLS13]);
    let config =
        json!({"pathExec": PROGRAM, "pathLib": "/usr/lib/my \"module\".so", "slotId": "0", "objectId": "1"});
    for policy in [Policy::AllowAll, Policy::DenyAll, allowed(&[])] {
        let setup = Setup::with(&api, &ca, KeyKind::EcP256, &config, policy.into(), false).unwrap();
        let error = setup.status().await.unwrap_err();
        let TransportError::Credentials(error) = error else { panic!("{error:?}") };
        assert!(error.is_denied());
        let CredentialError::Signer(SignerError::Denied { lines, .. }) = &error else { panic!("{error:?}") };
        assert!(setup.signer.kinds().is_empty());
        assert!(error.to_string().ends_with(lines.as_str()), "{error}");
        // These lines, pasted verbatim, allow it.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kuberc");
        std::fs::write(&path, lines).unwrap();
        let policy =
            kuberc::load(&KubercSource::Named(path), &navicert_client::kubeconfig::OsFileSystem).unwrap();
        let setup = Setup::with(&api, &ca, KeyKind::EcP256, &config, policy.into(), false).unwrap();
        assert_eq!(setup.status().await.unwrap(), 200);
    }
}

// X3
#[tokio::test]
async fn rejects_a_module_that_the_allowlist_entry_does_not_name() {
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
        let setup = Setup::with(&api, &ca, KeyKind::EcP256, &config, policy(), false).unwrap();
        assert_eq!(setup.status().await.is_ok(), fine, "{config}");
        assert_eq!(setup.signer.kinds().is_empty(), !fine);
    }
}

// C880: a name instead of a path, from the user's kuberc, with digest and settings.
#[tokio::test]
async fn signer_can_be_referenced_by_a_name_from_the_users_allowlist() {
    let ca = Ca::new("root");
    let api = server(&ca, &[&TLS13]);
    let digest = digest_of(PROGRAM);
    let kuberc = |more: &str| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kuberc");
        let text = format!(
            "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ncredentialPluginPolicy: Allowlist\n\
             credentialPluginAllowlist:\n- signer: work\n  command: {PROGRAM}\n{more}"
        );
        std::fs::write(&path, text).unwrap();
        kuberc::load(&KubercSource::Named(path), &navicert_client::kubeconfig::OsFileSystem)
    };
    let uri = "pkcs11:token=t";
    for (more, config, fine) in [
        ("", json!({"pathExec": "work", "uri": uri}), true),
        ("", json!({"pathExec": "home", "uri": uri}), false),
        ("  settings: [uri]\n", json!({"pathExec": "work", "uri": uri, "signerApiVersion": "v1"}), true),
        ("  settings: [uri]\n", json!({"pathExec": "work", "uri": uri, "verbose": "1"}), false),
        ("  settings: []\n", json!({"pathExec": "work"}), true),
        ("  settings: []\n", json!({"pathExec": "work", "uri": uri}), false),
        (&format!("  sha256: '{digest}'\n"), json!({"pathExec": "work"}), true),
        (&format!("  sha256: '{}'\n", "0".repeat(64)), json!({"pathExec": "work"}), false),
        ("", json!({"pathExec": "work", "pathLib": "/evil.so"}), false),
        ("  pathLib: [/good.so]\n", json!({"pathExec": "work", "pathLib": "/good.so"}), true),
    ] {
        let policy = kuberc(more).unwrap().into();
        let setup = Setup::with(&api, &ca, KeyKind::EcP256, &config, policy, false).unwrap();
        assert_eq!(setup.status().await.is_ok(), fine, "{more} {config}");
        assert_eq!(setup.signer.kinds().is_empty(), !fine, "{more} {config}");
    }
    for wrong in ["  signer: a/b\n", "  signer: ''\n", "  settings: uri\n"] {
        assert!(kuberc(wrong).is_err(), "{wrong}");
    }
}

/// The SHA-256 of a file, computed by `sha256sum`.
fn digest_of(path: &str) -> String {
    let program = navicert_testkit::Program::new("sha256sum").arguments([path]);
    // The test kit runs programs on its own runtime, which must not be nested.
    let outcome = std::thread::spawn(move || program.run().unwrap()).join().unwrap();
    let text = String::from_utf8(outcome.stdout).unwrap();
    text.split(' ').next().unwrap().to_owned()
}

// X2, C810, C812, C820
#[tokio::test]
async fn invalid_signer_configurations_are_rejected_before_anything_runs() {
    let ca = Ca::new("root");
    let api = server(&ca, &[&TLS13]);
    let cases = [
        (json!({}), json!({}), "Must provide pathExec"),
        (
            json!({"pathExec": PROGRAM, "pin": "canary"}),
            json!({}),
            "a `pin` in the kubeconfig is not allowed",
        ),
        (
            json!({"pathExec": PROGRAM, "signerApiVersion": "v9"}),
            json!({}),
            "invalid value of `signerApiVersion`",
        ),
        (
            json!({"pathExec": PROGRAM, "signerProtocol": "grpc"}),
            json!({}),
            "invalid value of `signerProtocol`",
        ),
        (json!({"pathExec": PROGRAM}), json!({"token": "canary"}), "cannot be combined with a token"),
        (json!({"pathExec": PROGRAM}), json!({"username": "a", "password": "canary"}), "with a password"),
    ];
    for (config, user, message) in cases {
        let error = Setup::with_user(&api, &ca, KeyKind::EcP256, &config, user, allowed(&[]).into(), false)
            .unwrap_err();
        assert_eq!(error.class(), ConfigErrorClass::ExternalSigner, "{error:?}");
        assert!(error.to_string().contains(message), "{error}");
        assert!(!format!("{error:?} {error}").contains("canary"));
    }
}

// X2: only if the application allows it, and only in the request that needs it.
#[tokio::test]
async fn pin_in_the_kubeconfig_is_passed_on_only_if_the_application_allows_it() {
    let ca = Ca::new("root");
    let api = server(&ca, &[&TLS13]);
    let config = json!({"pathExec": PROGRAM, "pin": "canary"});
    let setup = Setup::with(&api, &ca, KeyKind::EcP256, &config, allowed(&[]).into(), true).unwrap();
    assert_eq!(setup.status().await.unwrap(), 200);
    let asked = setup.signer.requests();
    assert!(!asked[0].contains("canary") && asked[1].contains("canary"), "{asked:?}");
    assert!(!format!("{:?}", setup.transport).contains("canary"));
}

// C834, T41
#[tokio::test]
async fn signature_by_another_key_is_a_distinct_error_and_no_request_is_sent() {
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

// C842a, C842d, T43: the timeout is a minute; a failed handshake that took longer than 25 s is retried once, then
// reported.
#[tokio::test]
async fn signer_slower_than_the_servers_timeout_is_retried_once_and_then_reported() {
    let slow = |seconds| async move {
        let ca = Ca::new("root");
        // In TLS 1.2 the client waits for the server's Finished message, so a closed connection fails the handshake.
        let api = Arc::new(server(&ca, &[&TLS12]));
        let setup = Setup::new(&api, &ca, KeyKind::EcP256, &json!({"pathExec": PROGRAM})).unwrap();
        setup.signer.sign_slowly_for(Duration::from_secs(seconds), &setup.clock, &api, 32);
        (setup.status().await, setup.signer.kinds().len())
    };
    let (answered, asked) = slow(12).await;
    assert_eq!((answered.unwrap(), asked), (200, 2), "twelve seconds are within every timeout");
    let (answered, asked) = slow(40).await;
    let error = answered.unwrap_err();
    assert!(matches!(error, TransportError::SlowSigner { .. }), "{error:?}");
    assert!(error.to_string().contains("signing took 40 s"), "{error}");
    assert_eq!(asked, 3, "the certificate and two attempts");
}

// C821
#[tokio::test]
async fn certificate_is_fetched_again_when_it_has_expired() {
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
