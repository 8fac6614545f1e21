//! What may run, what it may load, and what it may not be told.

use std::path::Path;
use std::sync::Arc;

use navicert_plugin::Policy;
use navicert_signer::remote::wire::sample_message;
use navicert_signer::remote::{ExecSigner, Protocol, Settings};
use navicert_signer::{Input, Scheme, SignError};
use navicert_testkit::KeyKind;

use crate::support::{FAKE, Fake, V1ALPHA1, allowing, configuration};

#[test]
fn a_signer_nobody_listed_does_not_run() {
    // X1, C744, T42
    let fake = Fake::new(KeyKind::EcP256);
    for policy in [Policy::AllowAll, Policy::DenyAll] {
        let settings = Settings { policy: Arc::new(policy), ..fake.settings(V1ALPHA1) };
        let error = ExecSigner::connect(settings).unwrap_err();
        assert!(error.is_denied(), "{error:?}");
    }
    assert!(fake.asked().is_empty(), "it did not run");
}

#[test]
fn a_module_nobody_listed_is_not_handed_on() {
    // X3, T42
    let fake = Fake::new(KeyKind::EcP256);
    for pairs in [("pathLib", "/evil.so"), ("uri", "pkcs11:token=t?module-path=/evil.so")] {
        let settings = || Settings { configuration: configuration(&[pairs]), ..fake.settings(V1ALPHA1) };
        let error = ExecSigner::connect(settings()).unwrap_err();
        assert!(error.is_denied() && error.with_sources().contains("/evil.so"), "{}", error.with_sources());
        let other = Settings { policy: allowing(FAKE, &[Path::new("/good.so")]), ..settings() };
        assert!(ExecSigner::connect(other).unwrap_err().is_denied());
        let listed = Settings { policy: allowing(FAKE, &[Path::new("/evil.so")]), ..settings() };
        assert!(ExecSigner::connect(listed).is_ok());
    }
}

#[test]
fn a_pin_reaches_a_signer_only_where_it_was_allowed_and_only_to_sign() {
    // X2, X4, T42
    for (protocol, allow_pin, expected) in
        [(V1ALPHA1, false, 0), (V1ALPHA1, true, 1), (Protocol::V1, true, 0)]
    {
        let fake = Fake::new(KeyKind::EcP256);
        let configuration = configuration(&[("pin", "canary-pin"), ("pathExec", FAKE)]);
        let identity =
            ExecSigner::connect(Settings { configuration, allow_pin, ..fake.settings(protocol) }).unwrap();
        identity.sign(Scheme::EcdsaP256Sha256, Input::Message(&sample_message(1))).unwrap();
        let asked = fake.asked();
        assert!(!asked[0].contains("canary"), "never with the certificate request");
        let told = asked.iter().filter(|line| line.contains("canary")).count();
        assert_eq!(told, expected, "{protocol:?} allowed: {allow_pin}");
        assert!(asked.iter().all(|line| line.contains("pathExec")), "C810: everything else is handed on");
        assert_eq!(fake.environment().contains("canary"), expected > 0);
        assert!(!format!("{identity:?}").contains("canary"));
    }
}

#[test]
fn settings_that_are_not_understood_are_named() {
    let of = |pairs: &[(&str, &str)]| Protocol::of(&configuration(pairs));
    assert_eq!(of(&[]), Ok(V1ALPHA1));
    assert_eq!(of(&[("signerApiVersion", "external-signer.authentication.k8s.io/v1")]), Ok(Protocol::V1));
    assert_eq!(of(&[("signerApiVersion", "v2")]), Err("signerApiVersion"));
    assert_eq!(of(&[("signerProtocol", "grpc")]), Err("signerProtocol"));
    let denied = SignError::Internal(String::new());
    assert!(!denied.is_denied());
}
