//! Which signers and modules may run, and when a PIN is sent.

use std::path::Path;
use std::sync::Arc;

use navicert_plugin::Policy;
use navicert_signer::remote::wire::sample_message;
use navicert_signer::remote::{ExecSigner, ExecSignerSettings, SignerProtocol};
use navicert_signer::{Input, Scheme, SignError};
use navicert_testkit::KeyKind;
use navicert_types::error_chain;

use crate::support::{FAKE, FakeSigner, V1ALPHA1, allowing, configuration};

#[test]
fn unlisted_signer_does_not_run() {
    // X1, C744, T42
    let fake = FakeSigner::new(KeyKind::EcP256);
    for policy in [Policy::AllowAll, Policy::DenyAll] {
        let settings = ExecSignerSettings { policy: Arc::new(policy), ..fake.settings(V1ALPHA1) };
        let error = ExecSigner::connect(settings).unwrap_err();
        assert!(error.is_denied(), "{error:?}");
    }
    assert!(fake.asked().is_empty(), "it did not run");
}

#[test]
fn unlisted_module_is_rejected() {
    // X3, T42
    let fake = FakeSigner::new(KeyKind::EcP256);
    for pairs in [("pathLib", "/evil.so"), ("uri", "pkcs11:token=t?module-path=/evil.so")] {
        let settings =
            || ExecSignerSettings { configuration: configuration(&[pairs]), ..fake.settings(V1ALPHA1) };
        let error = ExecSigner::connect(settings()).unwrap_err();
        assert!(error.is_denied() && error_chain(&error).contains("/evil.so"), "{}", error_chain(&error));
        let other = ExecSignerSettings { policy: allowing(FAKE, &[Path::new("/good.so")]), ..settings() };
        assert!(ExecSigner::connect(other).unwrap_err().is_denied());
        let listed = ExecSignerSettings { policy: allowing(FAKE, &[Path::new("/evil.so")]), ..settings() };
        assert!(ExecSigner::connect(listed).is_ok());
    }
}

#[test]
fn pin_is_sent_only_if_allowed_and_only_to_sign() {
    // X2, X4, T42
    for (protocol, allow_pin, expected) in
        [(V1ALPHA1, false, 0), (V1ALPHA1, true, 1), (SignerProtocol::V1, true, 0)]
    {
        let fake = FakeSigner::new(KeyKind::EcP256);
        let configuration = configuration(&[("pin", "canary-pin"), ("pathExec", FAKE)]);
        let identity =
            ExecSigner::connect(ExecSignerSettings { configuration, allow_pin, ..fake.settings(protocol) })
                .unwrap();
        identity.sign(Scheme::EcdsaP256Sha256, Input::Message(&sample_message(1))).unwrap();
        let asked = fake.asked();
        assert!(!asked[0].contains("canary"), "never with the certificate request");
        let with_pin = asked.iter().filter(|line| line.contains("canary")).count();
        assert_eq!(with_pin, expected, "{protocol:?} allowed: {allow_pin}");
        assert!(asked.iter().all(|line| line.contains("pathExec")), "C810: every other setting is sent");
        assert_eq!(fake.environment().contains("canary"), expected > 0);
        assert!(!format!("{identity:?}").contains("canary"));
    }
}

#[test]
fn names_invalid_protocol_settings() {
    let of = |pairs: &[(&str, &str)]| SignerProtocol::from_configuration(&configuration(pairs));
    assert_eq!(of(&[]), Ok(V1ALPHA1));
    assert_eq!(
        of(&[("signerApiVersion", "external-signer.authentication.k8s.io/v1")]),
        Ok(SignerProtocol::V1)
    );
    assert_eq!(of(&[("signerApiVersion", "v2")]), Err("signerApiVersion"));
    assert_eq!(of(&[("signerProtocol", "grpc")]), Err("signerProtocol"));
    let denied = SignError::Internal(String::new());
    assert!(!denied.is_denied());
}
