//! What a signer may get wrong, and what its client makes of it.

use std::time::Duration;

use navicert_signer::error::Reason;
use navicert_signer::remote::wire::sample_message;
use navicert_signer::remote::{ExecSigner, Limits, Protocol, Settings};
use navicert_signer::{Input, Scheme, SignError};
use navicert_testkit::{KeyKind, Program};

use crate::support::{Fake, V1ALPHA1};

const SCHEME: Scheme = Scheme::EcdsaP256Sha256;
const BOTH: [Protocol; 2] = [V1ALPHA1, Protocol::V1];

fn sign(fake: &Fake, protocol: Protocol) -> SignError {
    let identity = fake.connect(protocol).unwrap();
    identity.sign(SCHEME, Input::Message(&sample_message(1))).unwrap_err()
}

#[test]
fn a_signer_with_the_wrong_key_is_caught_here() {
    // C834
    for protocol in BOTH {
        let error = sign(&Fake::new(KeyKind::EcP256).mode("wrong-key"), protocol);
        assert!(matches!(error, SignError::WrongSignature { .. }), "{error:?}");
    }
}

#[test]
fn a_signer_that_answers_garbage_is_quoted_nowhere() {
    for protocol in BOTH {
        let error = sign(&Fake::new(KeyKind::EcP256).mode("garbage"), protocol);
        assert!(matches!(error, SignError::Garbage { .. }), "{error:?}");
        assert!(!error.with_sources().contains("segmentation") && !error.with_sources().contains('\u{1b}'));
    }
}

#[test]
fn a_signer_that_fails_is_not_believed() {
    // C821: stdout is ignored.
    for protocol in BOTH {
        let error = sign(&Fake::new(KeyKind::EcP256).mode("fail"), protocol);
        assert!(matches!(error, SignError::Run { .. }), "{error:?}");
    }
}

#[test]
fn a_signer_that_hangs_is_ended_and_explained() {
    // T43
    for protocol in BOTH {
        let fake = Fake::new(KeyKind::EcP256).mode("hang");
        assert!(
            Program::new("mkfifo")
                .arguments([fake.folder.path().join("pipe")])
                .run()
                .unwrap()
                .status
                .success()
        );
        let limits = Limits { sign: Duration::from_millis(300), ..Limits::default() };
        let identity = ExecSigner::connect(Settings { limits, ..fake.settings(protocol) }).unwrap();
        let error = identity.sign(SCHEME, Input::Message(&sample_message(1))).unwrap_err();
        assert!(matches!(error, SignError::Slow { .. }), "{error:?}");
        assert!(error.to_string().contains("navicert signer serve"), "{error}");
    }
}

#[test]
fn a_locked_device_is_not_asked_again_at_once() {
    // C884
    let fake = Fake::new(KeyKind::EcP256).mode("locked");
    let identity = fake.connect(Protocol::V1).unwrap();
    for _ in 0..5 {
        let error = identity.sign(SCHEME, Input::Message(&sample_message(1))).unwrap_err();
        assert_eq!(error.reason(), Reason::PinLocked, "{error:?}");
        assert!(error.to_string().ends_with("says PinLocked: locked U+0007"), "{error}");
    }
    assert_eq!(fake.asked().len(), 2, "the certificate, and one attempt to sign");
}

#[test]
fn prompts_are_cleaned_and_shown_with_the_signers_name() {
    // C851, T43
    let fake = Fake::new(KeyKind::EcP256).mode("prompt");
    let identity = fake.connect(Protocol::V1).unwrap();
    identity.sign(SCHEME, Input::Message(&sample_message(1))).unwrap();
    let shown = fake.shown.lock().unwrap().clone();
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown[0].ends_with("navicert-fake-signer: touch U+001B[31mme now"), "{shown:?}");
}

#[test]
fn many_signatures_at_once_are_one_process_at_a_time() {
    // C821
    let fake = Fake::new(KeyKind::EcP256);
    let identity = fake.connect(V1ALPHA1).unwrap();
    std::thread::scope(|scope| {
        for number in 0..16 {
            let identity = &identity;
            scope.spawn(move || identity.sign(SCHEME, Input::Message(&sample_message(number))).unwrap());
        }
    });
    assert_eq!(fake.asked().len(), 17);
}
