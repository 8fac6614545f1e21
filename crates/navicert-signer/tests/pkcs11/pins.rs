//! Wrong PINs are tried once, and stored ones not even that after somebody was wrong.

use std::sync::Arc;

use navicert_signer::pin::{AskPin, Nobody, PinError, Question};
use navicert_signer::pkcs11::{self, Module, PinState};
use navicert_signer::{Input, Key, Scheme, SignError};
use navicert_testkit::{Ca, KeyKind, SoftHsm};
use navicert_types::Secret;

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

// Issue 8: PIV slot 9c and its like.
#[test]
fn a_key_that_wants_its_pin_for_every_signature_gets_it() {
    let prepare = |hsm: &SoftHsm| {
        let key = hsm.generate_always_authenticating(KeyKind::Rsa2048, "01", "mine");
        hsm.import_certificate(&Ca::new("root").client("ann").issue_for(&key.public_key)[0], "01", "mine");
    };
    with_token("pins::a_key_that_wants_its_pin_for_every_signature_gets_it", prepare, |inside| {
        let person = Arc::new(Person::typing(PIN));
        let (identity, key) =
            pkcs11::open(&inside.select("pkcs11:id=%01"), Arc::clone(&person) as _).unwrap();
        for count in 1..=3 {
            identity.sign(Scheme::RsaPssSha256, Input::Message(b"message")).unwrap();
            assert_eq!(person.times(), 1 + count, "once for the session, and once for each signature");
        }
        for scheme in identity.schemes().to_vec() {
            identity.sign(scheme, Input::Message(b"message")).unwrap();
        }
        drop((identity, key));
        // A wrong PIN in the middle is no more tried again than one at the beginning.
        let changing = Arc::new(Changing(Person::typing(PIN), Person::typing("canary-wrong")));
        let (_, key) = pkcs11::open(&inside.select("pkcs11:id=%01"), Arc::clone(&changing) as _).unwrap();
        for _ in 0..3 {
            let error = key.sign(Scheme::RsaPssSha256, Input::Message(b"message")).unwrap_err();
            assert!(matches!(error, SignError::PinIncorrect { .. }), "{error:?}");
        }
        assert_eq!(changing.1.times(), 1);
    });
}

// Where the module has no gap for a PIN (SoftHSM takes ECDSA in one piece only), that is said.
#[test]
fn a_key_that_wants_its_pin_for_every_signature_and_cannot_get_it_is_explained() {
    let prepare = |hsm: &SoftHsm| {
        let key = hsm.generate_always_authenticating(KeyKind::EcP256, "01", "mine");
        hsm.import_certificate(&Ca::new("root").client("ann").issue_for(&key.public_key)[0], "01", "mine");
    };
    let name = "pins::a_key_that_wants_its_pin_for_every_signature_and_cannot_get_it_is_explained";
    with_token(name, prepare, |inside| {
        let (_, signed) = sign(inside, &Arc::new(Person::typing(PIN)));
        let error = signed.unwrap_err();
        assert!(matches!(error, SignError::AlwaysAuthenticates { .. }), "{error:?}");
        assert!(error.to_string().ends_with("use another key, such as slot 9a's"), "{error}");
    });
}

/// Somebody who is right the first time and wrong from then on.
#[derive(Debug)]
struct Changing(Person, Person);

impl AskPin for Changing {
    fn ask(&self, question: &Question) -> Result<Secret<String>, PinError> {
        if self.0.times() == 0 { self.0.ask(question) } else { self.1.ask(question) }
    }

    fn is_stored(&self) -> bool {
        false
    }
}
