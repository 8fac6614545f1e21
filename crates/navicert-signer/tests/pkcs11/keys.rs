//! Key selection, and the contract of SoftHSM keys.

use std::sync::Arc;

use navicert_signer::pkcs11::{self, PinState, Pkcs11Module, inventory};
use navicert_signer::{Input, Key, Scheme, SignError, SigningIdentity, contract};
use navicert_testkit::{Ca, KeyKind, SoftHsm};

use rustls::version::{TLS12, TLS13};

use crate::memory::{HandshakeResult, handshake};
use crate::support::{CountingPin, PIN, TOKEN, with_token};

const KINDS: [KeyKind; 5] =
    [KeyKind::Rsa2048, KeyKind::EcP256, KeyKind::EcP384, KeyKind::EcP521, KeyKind::Ed25519];

fn pin() -> Arc<CountingPin> {
    Arc::new(CountingPin::typed(PIN))
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
fn softhsm_keys_of_every_kind_satisfy_the_contract() {
    with_token("keys::softhsm_keys_of_every_kind_satisfy_the_contract", one_of_each, |process| {
        for number in 1..=5 {
            let pin = pin();
            let uri = format!("pkcs11:token=test%20token;id=%0{number};type=private");
            let (identity, key) = pkcs11::open(&process.select(&uri), Arc::clone(&pin) as _).unwrap();
            assert_eq!(pin.times(), 0, "a certificate needs no PIN");
            contract::check_key(&*key, true);
            assert!(pin.times() <= 1, "one PIN serves every signature");
            let all: Vec<Scheme> = Scheme::for_key(identity.public_key().algorithm()).collect();
            assert_eq!(identity.schemes(), all, "SoftHSM supports all of them");
            for scheme in all {
                identity.sign(scheme, Input::Message(b"message")).unwrap();
            }
        }
    });
}

#[test]
fn finds_key_by_id_label_or_slot_and_rejects_ambiguity() {
    with_token("keys::finds_key_by_id_label_or_slot_and_rejects_ambiguity", one_of_each, |process| {
        let module = Pkcs11Module::load(&process.module).unwrap();
        let tokens = module.tokens().unwrap();
        assert_eq!(tokens.iter().map(|token| token.label.as_str()).collect::<Vec<_>>(), [TOKEN]);
        let slot = tokens[0].slot_id();
        for uri in ["pkcs11:object=key%2002".to_owned(), format!("pkcs11:slot-id={slot};id=%02")] {
            let (identity, _) = pkcs11::open(&process.select(&uri), pin()).unwrap();
            assert_eq!(identity.schemes(), [Scheme::EcdsaP256Sha256], "{uri}");
        }
        let refused = |uri: &str| pkcs11::open(&process.select(uri), pin()).unwrap_err();
        assert!(matches!(refused("pkcs11:token=other;id=%02"), SignError::NoDevice { .. }));
        assert!(matches!(refused("pkcs11:slot-id=99;id=%02"), SignError::NoDevice { .. }));
        assert!(matches!(refused("pkcs11:id=%77"), SignError::NoKey { .. }));
        let several = refused("pkcs11:token=test%20token");
        assert!(matches!(several, SignError::Ambiguous { what: "keys", count: 5 }), "{several:?}");
    });
}

// Several tokens at once, as with two devices in one machine.
#[test]
fn uses_the_selected_token_of_several() {
    let prepare = |hsm: &SoftHsm| {
        let ca = Ca::new("root");
        let other = hsm.another_token("other token", "5813");
        for (token, id) in [(hsm, "01"), (&other, "01"), (&other, "02")] {
            let key = token.generate(KeyKind::EcP256, id, "mine");
            token.import_certificate(&ca.client("ann").issue_for(&key.public_key)[0], id, "mine");
        }
    };
    with_token("keys::uses_the_selected_token_of_several", prepare, |process| {
        let module = Pkcs11Module::load(&process.module).unwrap();
        let tokens = module.tokens().unwrap();
        assert_eq!(tokens.len(), 2);
        let open = |uri: &str| pkcs11::open(&process.select(uri), pin()).map(|(_, key)| key);
        let both = open("pkcs11:id=%01").unwrap_err();
        assert!(matches!(both, SignError::Ambiguous { what: "tokens", count: 2 }), "{both:?}");
        assert_eq!(open("pkcs11:id=%02").unwrap().token(), "other token", "only one token has this key");
        let by_serial = tokens.iter().find(|token| token.label == TOKEN).unwrap();
        for uri in [
            "pkcs11:token=test%20token;id=%01".to_owned(),
            format!("pkcs11:serial={};id=%01", by_serial.serial),
        ] {
            let key = open(&uri).unwrap();
            assert_eq!(key.token(), TOKEN, "{uri}");
            key.sign(Scheme::EcdsaP256Sha256, Input::Message(b"message")).unwrap();
        }
        // Each token has its own PIN, and no login used the PIN of the other.
        assert!(tokens.iter().all(|token| token.pin == PinState::Fine), "{tokens:?}");
        assert!(module.tokens().unwrap().iter().all(|token| token.pin == PinState::Fine));
    });
}

#[test]
fn rejects_certificate_of_another_key() {
    let prepare = |hsm: &SoftHsm| {
        let ca = Ca::new("root");
        hsm.generate(KeyKind::EcP256, "01", "mine");
        hsm.import_certificate(ca.client("bob").issue().leaf(), "01", "mine");
    };
    with_token("keys::rejects_certificate_of_another_key", prepare, |process| {
        let error = pkcs11::open(&process.select("pkcs11:id=%01"), pin()).unwrap_err();
        assert!(error.to_string().contains("does not match the key"), "{error}");
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
    with_token("keys::issuers_on_the_token_complete_the_chain", prepare, |process| {
        let (identity, _) = pkcs11::open(&process.select("pkcs11:id=%01"), pin()).unwrap();
        assert_eq!(identity.chain().len(), 2, "leaf and intermediate; the server has the root");
        let module = Pkcs11Module::load(&process.module).unwrap();
        let listed = inventory(&module, &module.tokens().unwrap()[0]).unwrap();
        assert_eq!(listed.len(), 1, "certificate authorities are not listed as keys: {listed:?}");
        assert_eq!(listed[0].schemes, [Scheme::EcdsaP256Sha256]);
        let again = pkcs11::open(&process.select(&listed[0].uri.to_string()), pin()).unwrap();
        assert_eq!(again.0.chain(), identity.chain());
    });
}

#[test]
fn sixty_four_threads_share_one_session_and_one_pin() {
    with_token("keys::sixty_four_threads_share_one_session_and_one_pin", one_of_each, |process| {
        let pin = pin();
        let (identity, _) = pkcs11::open(&process.select("pkcs11:id=%02"), Arc::clone(&pin) as _).unwrap();
        std::thread::scope(|scope| {
            for number in 0..64_u8 {
                let identity = &identity;
                scope.spawn(move || {
                    identity.sign(Scheme::EcdsaP256Sha256, Input::Message(&[number; 9])).unwrap()
                });
            }
        });
        assert_eq!(pin.times(), 1);
    });
}

#[test]
fn sixty_four_concurrent_handshakes_share_one_session_and_one_pin() {
    let name = "keys::sixty_four_concurrent_handshakes_share_one_session_and_one_pin";
    with_token(name, one_of_each, |process| {
        let pin = pin();
        let (identity, key) = pkcs11::open(&process.select("pkcs11:id=%02"), Arc::clone(&pin) as _).unwrap();
        // The same key with a certificate of an authority that the test servers trust.
        let ca = Ca::new("root");
        let chain = ca.client("ann").issue_for(&identity.public_key().to_der());
        let identity = Arc::new(SigningIdentity::new(chain, key).unwrap());
        std::thread::scope(|scope| {
            for number in 0..64 {
                let (identity, ca) = (Arc::clone(&identity), &ca);
                let version = if number % 2 == 0 { &TLS12 } else { &TLS13 };
                scope.spawn(move || {
                    let result = handshake(ca, identity, version);
                    assert!(
                        matches!(result, HandshakeResult::Both { client_certificate: Some(_) }),
                        "{result:?}"
                    );
                });
            }
        });
        assert_eq!(pin.times(), 1);
    });
}

#[test]
fn rejects_files_that_are_not_modules() {
    let error = Pkcs11Module::load("/bin/sh".as_ref()).unwrap_err();
    assert!(matches!(error, SignError::Module { .. }), "{error}");
    let error = Pkcs11Module::load("relative.so".as_ref()).unwrap_err();
    assert!(error.to_string().ends_with("the path must be absolute"), "{error}");
    assert!(Pkcs11Module::load("/no/such/module.so".as_ref()).is_err());
}

#[test]
fn debug_shows_neither_pin_nor_serial_secrets() {
    with_token("keys::debug_shows_neither_pin_nor_serial_secrets", one_of_each, |process| {
        let (identity, key) = pkcs11::open(&process.select("pkcs11:id=%02"), pin()).unwrap();
        key.log_in().unwrap();
        let shown = format!("{identity:?} {key:?} {:?}", key.public_key());
        assert!(!shown.contains(PIN), "{shown}");
    });
}
