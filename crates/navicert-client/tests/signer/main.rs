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

// C841: one certificate, and so one PIN, for clients that are alike; each by leave of its own policy.
#[tokio::test]
async fn clients_of_one_process_share_a_key_if_their_configurations_are_the_same() {
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
    assert_eq!(certificates(), 3, "another cluster, which a signer may refuse (X9)");
    let asked = setup.signer.asked().len();
    let denied = support::status(&setup.another(&api, &ca, &config, Policy::DenyAll)).await.unwrap_err();
    let TransportError::Credentials(denied) = denied else { panic!("{denied:?}") };
    assert!(denied.is_denied(), "what another client may do is no leave");
    assert_eq!(setup.signer.asked().len(), asked);
}

// C844: every connection proves possession of the key anew.
#[tokio::test]
async fn sessions_of_a_signer_are_never_resumed() {
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

// C880: a name instead of a path, from a file of the user's own, with digest and settings.
#[tokio::test]
async fn a_signer_may_be_called_by_a_name_that_the_users_own_list_explains() {
    let ca = Ca::new("root");
    let api = server(&ca, &[&TLS13]);
    let digest = digest_of(PROGRAM);
    let kuberc = |more: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kuberc");
        let text = format!(
            "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ncredentialPluginPolicy: Allowlist\n\
             credentialPluginAllowlist:\n- signer: work\n  command: {PROGRAM}\n{more}"
        );
        std::fs::write(&path, text).unwrap();
        kuberc::load(&Source::Named(path), &navicert_client::kubeconfig::Disk)
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
        let setup =
            Setup::with(&api, &ca, KeyKind::EcP256, &config, policy, &exec::Settings::default()).unwrap();
        assert_eq!(setup.status().await.is_ok(), fine, "{more} {config}");
        assert_eq!(setup.signer.kinds().is_empty(), !fine, "{more} {config}");
    }
    for wrong in ["  signer: a/b\n", "  signer: ''\n", "  settings: uri\n"] {
        assert!(kuberc(wrong).is_err(), "{wrong}");
    }
}

/// Its SHA-256, by somebody else's program.
fn digest_of(path: &str) -> String {
    let program = navicert_testkit::Program::new("sha256sum").arguments([path]);
    // The kit waits for programs with a runtime of its own.
    let outcome = std::thread::spawn(move || program.run().unwrap()).join().unwrap();
    let text = String::from_utf8(outcome.stdout).unwrap();
    text.split(' ').next().unwrap().to_owned()
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
