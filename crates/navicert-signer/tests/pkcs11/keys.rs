//! Which key is found, and that it keeps its word.

use std::sync::Arc;

use navicert_signer::pkcs11::{self, Module, PinState, inventory};
use navicert_signer::{Identity, Input, Key, Scheme, SignError, contract};
use navicert_testkit::{Ca, KeyKind, SoftHsm};

use rustls::version::{TLS12, TLS13};

use crate::memory::{Ended, shake_hands};
use crate::support::{PIN, Person, TOKEN, with_token};

const KINDS: [KeyKind; 5] =
    [KeyKind::Rsa2048, KeyKind::EcP256, KeyKind::EcP384, KeyKind::EcP521, KeyKind::Ed25519];

fn person() -> Arc<Person> {
    Arc::new(Person::typing(PIN))
}

fn one_of_each(hsm: &SoftHsm) {
    let ca = Ca::new("root");
    for (number, kind) in KINDS.into_iter().enumerate() {
        let id = format!("0{}", number + 1);
        let key = hsm.generate(kind, &id, &format!("key {id}"));
        hsm.import_certificate(&ca.client("ann").issue_for(&key.public_key)[0], &id, &key.label);
    }
}

#[test]
fn softhsm_keys_of_every_kind_keep_the_contract() {
    with_token("keys::softhsm_keys_of_every_kind_keep_the_contract", one_of_each, |inside| {
        for number in 1..=5 {
            let person = person();
            let uri = format!("pkcs11:token=test%20token;id=%0{number};type=private");
            let (identity, key) = pkcs11::open(&inside.select(&uri), Arc::clone(&person) as _).unwrap();
            assert_eq!(person.times(), 0, "a certificate needs no PIN");
            contract::holds(&*key, true);
            assert!(person.times() <= 1, "one PIN serves every signature");
            let all: Vec<Scheme> = Scheme::of_key(identity.public_key().algorithm()).collect();
            assert_eq!(identity.schemes(), all, "SoftHSM can do all of them");
            for scheme in all {
                identity.sign(scheme, Input::Message(b"message")).unwrap();
            }
        }
    });
}

#[test]
fn a_key_is_found_by_id_by_label_and_by_slot_and_not_by_guessing() {
    with_token(
        "keys::a_key_is_found_by_id_by_label_and_by_slot_and_not_by_guessing",
        one_of_each,
        |inside| {
            let module = Module::load(&inside.module).unwrap();
            let tokens = module.tokens().unwrap();
            assert_eq!(tokens.iter().map(|token| token.label.as_str()).collect::<Vec<_>>(), [TOKEN]);
            let slot = tokens[0].slot_id();
            for uri in ["pkcs11:object=key%2002".to_owned(), format!("pkcs11:slot-id={slot};id=%02")] {
                let (identity, _) = pkcs11::open(&inside.select(&uri), person()).unwrap();
                assert_eq!(identity.schemes(), [Scheme::EcdsaP256Sha256], "{uri}");
            }
            let refused = |uri: &str| pkcs11::open(&inside.select(uri), person()).unwrap_err();
            assert!(matches!(refused("pkcs11:token=other;id=%02"), SignError::NoDevice { .. }));
            assert!(matches!(refused("pkcs11:slot-id=99;id=%02"), SignError::NoDevice { .. }));
            assert!(matches!(refused("pkcs11:id=%77"), SignError::NoObject { .. }));
            let several = refused("pkcs11:token=test%20token");
            assert!(matches!(several, SignError::Ambiguous { what: "keys", count: 5 }), "{several:?}");
        },
    );
}

// Several tokens at once, as with two devices in one machine.
#[test]
fn of_several_tokens_the_one_that_is_meant_is_used_and_no_other() {
    let prepare = |hsm: &SoftHsm| {
        let ca = Ca::new("root");
        let other = hsm.another_token("other token", "5813");
        for (token, id) in [(hsm, "01"), (&other, "01"), (&other, "02")] {
            let key = token.generate(KeyKind::EcP256, id, "mine");
            token.import_certificate(&ca.client("ann").issue_for(&key.public_key)[0], id, "mine");
        }
    };
    with_token("keys::of_several_tokens_the_one_that_is_meant_is_used_and_no_other", prepare, |inside| {
        let module = Module::load(&inside.module).unwrap();
        let tokens = module.tokens().unwrap();
        assert_eq!(tokens.len(), 2);
        let open = |uri: &str| pkcs11::open(&inside.select(uri), person()).map(|(_, key)| key);
        let both = open("pkcs11:id=%01").unwrap_err();
        assert!(matches!(both, SignError::Ambiguous { what: "tokens", count: 2 }), "{both:?}");
        assert_eq!(open("pkcs11:id=%02").unwrap().token(), "other token", "only one has such a key");
        let by_serial = tokens.iter().find(|token| token.label == TOKEN).unwrap();
        for uri in [
            "pkcs11:token=test%20token;id=%01".to_owned(),
            format!("pkcs11:serial={};id=%01", by_serial.serial),
        ] {
            let key = open(&uri).unwrap();
            assert_eq!(key.token(), TOKEN, "{uri}");
            key.sign(Scheme::EcdsaP256Sha256, Input::Message(b"message")).unwrap();
        }
        // Each has its own PIN: what opens one is wrong for the other, and is not tried on it by mistake.
        assert!(tokens.iter().all(|token| token.pin == PinState::Fine), "{tokens:?}");
        assert!(module.tokens().unwrap().iter().all(|token| token.pin == PinState::Fine));
    });
}

#[test]
fn a_certificate_for_another_key_is_no_identity() {
    let prepare = |hsm: &SoftHsm| {
        let ca = Ca::new("root");
        hsm.generate(KeyKind::EcP256, "01", "mine");
        hsm.import_certificate(ca.client("bob").issue().leaf(), "01", "mine");
    };
    with_token("keys::a_certificate_for_another_key_is_no_identity", prepare, |inside| {
        let error = pkcs11::open(&inside.select("pkcs11:id=%01"), person()).unwrap_err();
        assert!(error.to_string().contains("for another key"), "{error}");
    });
}

#[test]
fn issuers_on_the_token_complete_the_chain() {
    let prepare = |hsm: &SoftHsm| {
        let root = Ca::new("root");
        let middle = root.intermediate("middle");
        let key = hsm.generate(KeyKind::EcP256, "01", "mine");
        let chain = middle.client("ann").issue_for(&key.public_key);
        hsm.import_certificate(&chain[0], "01", "mine");
        hsm.import_certificate(middle.der(), "02", "middle");
        hsm.import_certificate(root.der(), "03", "root");
    };
    with_token("keys::issuers_on_the_token_complete_the_chain", prepare, |inside| {
        let (identity, _) = pkcs11::open(&inside.select("pkcs11:id=%01"), person()).unwrap();
        assert_eq!(identity.chain().len(), 2, "leaf and intermediate; a root is the server's own");
        let module = Module::load(&inside.module).unwrap();
        let listed = inventory(&module, &module.tokens().unwrap()[0]).unwrap();
        assert_eq!(listed.len(), 1, "certificate authorities are not listed as keys: {listed:?}");
        assert_eq!(listed[0].schemes, [Scheme::EcdsaP256Sha256]);
        let again = pkcs11::open(&inside.select(&listed[0].uri.to_string()), person()).unwrap();
        assert_eq!(again.0.chain(), identity.chain());
    });
}

#[test]
fn sixty_four_threads_share_one_session_and_one_pin() {
    with_token("keys::sixty_four_threads_share_one_session_and_one_pin", one_of_each, |inside| {
        let person = person();
        let (identity, _) = pkcs11::open(&inside.select("pkcs11:id=%02"), Arc::clone(&person) as _).unwrap();
        std::thread::scope(|scope| {
            for number in 0..64_u8 {
                let identity = &identity;
                scope.spawn(move || {
                    identity.sign(Scheme::EcdsaP256Sha256, Input::Message(&[number; 9])).unwrap()
                });
            }
        });
        assert_eq!(person.times(), 1);
    });
}

// Issue 8: 64 parallel handshakes on one session.
#[test]
fn sixty_four_handshakes_at_once_share_one_session_and_one_pin() {
    let name = "keys::sixty_four_handshakes_at_once_share_one_session_and_one_pin";
    with_token(name, one_of_each, |inside| {
        let person = person();
        let (identity, key) =
            pkcs11::open(&inside.select("pkcs11:id=%02"), Arc::clone(&person) as _).unwrap();
        // The same key, with a certificate of an authority that the servers here know.
        let ca = Ca::new("root");
        let chain = ca.client("ann").issue_for(&identity.public_key().to_der());
        let identity = Arc::new(Identity::new(chain, key).unwrap());
        std::thread::scope(|scope| {
            for number in 0..64 {
                let (identity, ca) = (Arc::clone(&identity), &ca);
                let version = if number % 2 == 0 { &TLS12 } else { &TLS13 };
                scope.spawn(move || {
                    let ended = shake_hands(ca, identity, version);
                    assert!(matches!(ended, Ended::Both { client_certificate: Some(_) }), "{ended:?}");
                });
            }
        });
        assert_eq!(person.times(), 1);
    });
}

#[test]
fn what_is_no_module_is_said_plainly() {
    let error = Module::load("/bin/sh".as_ref()).unwrap_err();
    assert!(matches!(error, SignError::Module { .. }), "{error}");
    let error = Module::load("relative.so".as_ref()).unwrap_err();
    assert!(error.to_string().ends_with("its path must be absolute"), "{error}");
    assert!(Module::load("/no/such/module.so".as_ref()).is_err());
}

#[test]
fn debug_shows_neither_pin_nor_serial_secrets() {
    with_token("keys::debug_shows_neither_pin_nor_serial_secrets", one_of_each, |inside| {
        let (identity, key) = pkcs11::open(&inside.select("pkcs11:id=%02"), person()).unwrap();
        key.log_in().unwrap();
        let shown = format!("{identity:?} {key:?} {:?}", key.public_key());
        assert!(!shown.contains(PIN), "{shown}");
    });
}
