//! Devices that are taken out and put back.

use std::sync::Arc;

use navicert_signer::pin::{AskPin, PinError, Question};
use navicert_signer::pkcs11;
use navicert_signer::{Input, Key, Scheme, SignError};
use navicert_testkit::{Ca, KeyKind, SoftHsm};
use navicert_types::Secret;

use crate::support::{PIN, Person, with_token};

const SCHEME: Scheme = Scheme::EcdsaP256Sha256;
const MESSAGE: Input<'static> = Input::Message(b"message");

fn one_key(hsm: &SoftHsm) {
    let key = hsm.generate(KeyKind::EcP256, "01", "mine");
    hsm.import_certificate(&Ca::new("root").client("ann").issue_for(&key.public_key)[0], "01", "mine");
}

#[test]
fn a_token_removed_in_the_middle_says_so_and_works_again_when_it_is_back() {
    let name = "devices::a_token_removed_in_the_middle_says_so_and_works_again_when_it_is_back";
    with_token(name, one_key, |inside| {
        let person = Arc::new(Person::typing(PIN));
        let (identity, key) =
            pkcs11::open(&inside.select("pkcs11:id=%01"), Arc::clone(&person) as _).unwrap();
        identity.sign(SCHEME, MESSAGE).unwrap();
        let away = inside.away();
        for time in 1..=3 {
            let error = key.sign(SCHEME, MESSAGE).expect_err("there is no key to sign with");
            assert!(matches!(error, SignError::Removed { .. }), "time {time}: {error:?}");
        }
        assert_eq!(person.times(), 1, "nobody is asked for the PIN of a device that is not there");
        away.put_back();
        identity.sign(SCHEME, MESSAGE).unwrap();
        assert_eq!(person.times(), 2, "the PIN is not kept: a device that was away asks for it again");
    });
}

#[test]
fn a_reinserted_token_that_nobody_can_unlock_has_an_error_of_its_own() {
    let name = "devices::a_reinserted_token_that_nobody_can_unlock_has_an_error_of_its_own";
    with_token(name, one_key, |inside| {
        let person = Arc::new(Once(Person::typing(PIN)));
        let (_, key) = pkcs11::open(&inside.select("pkcs11:id=%01"), person).unwrap();
        key.sign(SCHEME, MESSAGE).unwrap();
        let away = inside.away();
        assert!(matches!(key.sign(SCHEME, MESSAGE), Err(SignError::Removed { .. })));
        away.put_back();
        let error = key.sign(SCHEME, MESSAGE).unwrap_err();
        assert!(matches!(error, SignError::Reinserted { .. }), "{error:?}");
    });
}

/// Somebody who leaves after the first question.
#[derive(Debug)]
struct Once(Person);

impl AskPin for Once {
    fn ask(&self, question: &Question) -> Result<Secret<String>, PinError> {
        if self.0.times() > 0 { Err(PinError::NobodyToAsk) } else { self.0.ask(question) }
    }

    fn is_stored(&self) -> bool {
        false
    }
}
