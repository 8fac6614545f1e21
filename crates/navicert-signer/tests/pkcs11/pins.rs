//! Incorrect PINs are tried once, and stored PINs are not tried after a failed login.

use std::sync::Arc;

use navicert_signer::pin::{NoPin, PinError, PinPrompt, PinProvider};
use navicert_signer::pkcs11::{self, PinState, Pkcs11Module};
use navicert_signer::{Input, Key, Scheme, SignError};
use navicert_testkit::{Ca, KeyKind, SoftHsm};
use navicert_types::{Secret, error_chain};

use crate::support::{CountingPin, PIN, TokenProcess, with_token};

const SCHEME: Scheme = Scheme::EcdsaP256Sha256;

fn one_key(hsm: &SoftHsm) {
    let key = hsm.generate(KeyKind::EcP256, "01", "mine");
    hsm.import_certificate(&Ca::new("root").client("ann").issue_for(&key.public_key)[0], "01", "mine");
}

fn sign(
    process: &TokenProcess,
    pin: &Arc<CountingPin>,
) -> (Arc<pkcs11::Pkcs11Key>, Result<Vec<u8>, SignError>) {
    let (_, key) = pkcs11::open(&process.select("pkcs11:id=%01"), Arc::clone(pin) as _).unwrap();
    let signed = key.sign(SCHEME, Input::Message(b"message"));
    (key, signed)
}

#[test]
fn incorrect_pin_is_tried_only_once() {
    with_token("pins::incorrect_pin_is_tried_only_once", one_key, |process| {
        let wrong = Arc::new(CountingPin::typed("canary-wrong"));
        let (key, signed) = sign(process, &wrong);
        let error = signed.unwrap_err();
        assert!(matches!(error, SignError::PinIncorrect { .. }), "{error:?}");
        for _ in 0..5 {
            let again = key.sign(SCHEME, Input::Message(b"message")).unwrap_err();
            assert!(matches!(again, SignError::PinIncorrect { .. }), "{again:?}");
        }
        assert_eq!(wrong.times(), 1, "asked once, tried once");
        assert!(!format!("{error} {error:?} {key:?}").contains("canary"));
        // A correct PIN in a new session works.
        assert!(sign(process, &Arc::new(CountingPin::typed(PIN))).1.is_ok());
    });
}

#[test]
fn stored_pin_is_not_tried_after_a_failed_login() {
    with_token("pins::stored_pin_is_not_tried_after_a_failed_login", one_key, |process| {
        let stored = Arc::new(CountingPin::stored("wrong"));
        assert!(matches!(sign(process, &stored).1, Err(SignError::PinIncorrect { .. })));
        let state = Pkcs11Module::load(&process.module).unwrap().tokens().unwrap()[0].pin;
        assert_eq!(state, PinState::CountLow, "SoftHSM remembers");
        // Otherwise every process with the same PIN file would use up one attempt.
        let next = Arc::new(CountingPin::stored("wrong"));
        assert!(matches!(sign(process, &next).1, Err(SignError::PinCountLow { .. })));
        assert_eq!(next.times(), 0);
        assert!(sign(process, &Arc::new(CountingPin::typed(PIN))).1.is_ok());
    });
}

#[test]
fn missing_pin_error_names_the_remedies() {
    with_token("pins::missing_pin_error_names_the_remedies", one_key, |process| {
        let (_, key) = pkcs11::open(&process.select("pkcs11:id=%01"), Arc::new(NoPin)).unwrap();
        let error = key.sign(SCHEME, Input::Message(b"message")).unwrap_err();
        assert!(matches!(error, SignError::PinNeeded { .. }), "{error:?}");
        assert!(error_chain(&error).contains("NAVICERT_PINENTRY"), "{}", error_chain(&error));
    });
}

// Keys with CKA_ALWAYS_AUTHENTICATE, such as PIV slot 9c.
#[test]
fn always_authenticating_key_gets_its_pin_for_every_signature() {
    let prepare = |hsm: &SoftHsm| {
        let key = hsm.generate_always_authenticating(KeyKind::Rsa2048, "01", "mine");
        hsm.import_certificate(&Ca::new("root").client("ann").issue_for(&key.public_key)[0], "01", "mine");
    };
    with_token("pins::always_authenticating_key_gets_its_pin_for_every_signature", prepare, |process| {
        let pin = Arc::new(CountingPin::typed(PIN));
        let (identity, key) = pkcs11::open(&process.select("pkcs11:id=%01"), Arc::clone(&pin) as _).unwrap();
        for count in 1..=3 {
            identity.sign(Scheme::RsaPssSha256, Input::Message(b"message")).unwrap();
            assert_eq!(pin.times(), 1 + count, "once for the session, and once for each signature");
        }
        for scheme in identity.schemes().to_vec() {
            identity.sign(scheme, Input::Message(b"message")).unwrap();
        }
        drop((identity, key));
        // An incorrect PIN for a signature is not tried again either.
        let second_wrong =
            Arc::new(SecondPinWrong(CountingPin::typed(PIN), CountingPin::typed("canary-wrong")));
        let (_, key) =
            pkcs11::open(&process.select("pkcs11:id=%01"), Arc::clone(&second_wrong) as _).unwrap();
        for _ in 0..3 {
            let error = key.sign(Scheme::RsaPssSha256, Input::Message(b"message")).unwrap_err();
            assert!(matches!(error, SignError::PinIncorrect { .. }), "{error:?}");
        }
        assert_eq!(second_wrong.1.times(), 1);
    });
}

// SoftHSM supports ECDSA only as a single-part operation, which has no place for a login.
#[test]
fn always_authenticating_key_fails_if_the_module_cannot_log_in_per_signature() {
    let prepare = |hsm: &SoftHsm| {
        let key = hsm.generate_always_authenticating(KeyKind::EcP256, "01", "mine");
        hsm.import_certificate(&Ca::new("root").client("ann").issue_for(&key.public_key)[0], "01", "mine");
    };
    let name = "pins::always_authenticating_key_fails_if_the_module_cannot_log_in_per_signature";
    with_token(name, prepare, |process| {
        let (_, signed) = sign(process, &Arc::new(CountingPin::typed(PIN)));
        let error = signed.unwrap_err();
        assert!(matches!(error, SignError::AlwaysAuthenticates { .. }), "{error:?}");
        assert!(error.to_string().ends_with("use another key, for example in slot 9a"), "{error}");
    });
}

/// Provides the correct PIN the first time and an incorrect one afterwards.
#[derive(Debug)]
struct SecondPinWrong(CountingPin, CountingPin);

impl PinProvider for SecondPinWrong {
    fn request_pin(&self, request: &PinPrompt) -> Result<Secret<String>, PinError> {
        if self.0.times() == 0 { self.0.request_pin(request) } else { self.1.request_pin(request) }
    }

    fn is_stored(&self) -> bool {
        false
    }
}
