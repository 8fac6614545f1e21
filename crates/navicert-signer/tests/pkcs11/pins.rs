//! Wrong PINs are tried once, and stored ones not even that after somebody was wrong.

use std::sync::Arc;

use navicert_signer::pin::Nobody;
use navicert_signer::pkcs11::{self, Module, PinState};
use navicert_signer::{Input, Key, Scheme, SignError};
use navicert_testkit::{Ca, KeyKind, SoftHsm};

use crate::support::{Inside, PIN, Person, with_token};

const SCHEME: Scheme = Scheme::EcdsaP256Sha256;

fn one_key(hsm: &SoftHsm) {
    let key = hsm.generate(KeyKind::EcP256, "01", "mine");
    hsm.import_certificate(&Ca::new("root").client("ann").issue_for(&key.public_key)[0], "01", "mine");
}

fn sign(inside: &Inside, person: &Arc<Person>) -> (Arc<pkcs11::Pkcs11Key>, Result<Vec<u8>, SignError>) {
    let (_, key) = pkcs11::open(&inside.select("pkcs11:id=%01"), Arc::clone(person) as _).unwrap();
    let signed = key.sign(SCHEME, Input::Message(b"message"));
    (key, signed)
}

#[test]
fn a_wrong_pin_is_tried_once_and_never_again_by_itself() {
    with_token("pins::a_wrong_pin_is_tried_once_and_never_again_by_itself", one_key, |inside| {
        let wrong = Arc::new(Person::typing("canary-wrong"));
        let (key, signed) = sign(inside, &wrong);
        let error = signed.unwrap_err();
        assert!(matches!(error, SignError::PinIncorrect { .. }), "{error:?}");
        for _ in 0..5 {
            let again = key.sign(SCHEME, Input::Message(b"message")).unwrap_err();
            assert!(matches!(again, SignError::PinIncorrect { .. }), "{again:?}");
        }
        assert_eq!(wrong.times(), 1, "asked once, tried once");
        assert!(!format!("{error} {error:?} {key:?}").contains("canary"));
        // A human who knows better is let in by another attempt of theirs.
        assert!(sign(inside, &Arc::new(Person::typing(PIN))).1.is_ok());
    });
}

#[test]
fn a_stored_pin_is_not_tried_after_a_wrong_one() {
    with_token("pins::a_stored_pin_is_not_tried_after_a_wrong_one", one_key, |inside| {
        let stored = Arc::new(Person::storing("wrong"));
        assert!(matches!(sign(inside, &stored).1, Err(SignError::PinIncorrect { .. })));
        let state = Module::load(&inside.module).unwrap().tokens().unwrap()[0].pin;
        assert_eq!(state, PinState::CountLow, "SoftHSM remembers");
        // The next process with the same file would otherwise use up the attempts one by one.
        let next = Arc::new(Person::storing("wrong"));
        assert!(matches!(sign(inside, &next).1, Err(SignError::PinCountLow { .. })));
        assert_eq!(next.times(), 0);
        assert!(sign(inside, &Arc::new(Person::typing(PIN))).1.is_ok());
    });
}

#[test]
fn without_anybody_to_ask_the_error_says_what_to_do() {
    with_token("pins::without_anybody_to_ask_the_error_says_what_to_do", one_key, |inside| {
        let (_, key) = pkcs11::open(&inside.select("pkcs11:id=%01"), Arc::new(Nobody)).unwrap();
        let error = key.sign(SCHEME, Input::Message(b"message")).unwrap_err();
        assert!(matches!(error, SignError::PinNeeded { .. }), "{error:?}");
        assert!(error.with_sources().contains("NAVICERT_PINENTRY"), "{}", error.with_sources());
    });
}
