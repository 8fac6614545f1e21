//! Keys that are made in the token, and certificates that are stored beside them.

use std::sync::Arc;

use navicert_signer::certificate_request::{
    CertificateSubject, certificate_request, pem, self_signed_certificate,
};
use navicert_signer::pkcs11::{self, DeviceKey, NewKey};
use navicert_signer::{KeyAlgorithm, SignError};
use navicert_testkit::{Ca, KeyKind, Program, SoftHsm};
use navicert_types::Timestamp;

use crate::support::{CountingPin, PIN, TOKEN, with_token};

fn pin() -> Arc<CountingPin> {
    Arc::new(CountingPin::typed(PIN))
}

fn subject() -> CertificateSubject {
    CertificateSubject::new("ann", &["developers".to_owned(), "on-call".to_owned()]).unwrap()
}

/// What OpenSSL reads in a request, after it has verified the signature.
fn openssl_subject(der: &[u8]) -> String {
    let arguments = ["req", "-verify", "-noout", "-subject", "-nameopt", "RFC2253"];
    let outcome = Program::new("openssl").arguments(arguments).stdin(pem("CERTIFICATE REQUEST", der)).run();
    let outcome = outcome.unwrap();
    assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    String::from_utf8(outcome.stdout).unwrap().trim().to_owned()
}

#[test]
fn makes_a_missing_key_once_and_asks_for_one_pin() {
    with_token(
        "enrollment::makes_a_missing_key_once_and_asks_for_one_pin",
        |_| {},
        |process| {
            for (uri, kind, algorithm) in [
                ("pkcs11:token=test%20token;object=ann", NewKey::EcP256, KeyAlgorithm::P256),
                ("pkcs11:token=test%20token;id=%07", NewKey::Rsa2048, KeyAlgorithm::Rsa),
            ] {
                let missing = DeviceKey::open(&process.select(uri), pin(), None).unwrap_err();
                assert!(matches!(missing, SignError::NoKey { .. }), "{missing:?}");
                let counting = pin();
                let key =
                    DeviceKey::open(&process.select(uri), Arc::clone(&counting) as _, Some(kind)).unwrap();
                assert!(key.is_new());
                assert_eq!((key.token(), key.key().public_key().algorithm()), (TOKEN, algorithm));
                let request = certificate_request(&subject(), key.key()).unwrap();
                assert_eq!(openssl_subject(&request), "subject=CN=ann,O=on-call,O=developers");
                let ca = Ca::new("root");
                let issued = ca.client("ann").issue_for(&key.key().public_key().to_der());
                key.store_certificate(&issued[0]).unwrap();
                assert_eq!(counting.times(), 1, "one PIN for key, signature and certificate");
                let exact = key.uri().to_string();
                drop(key);
                let again = DeviceKey::open(&process.select(uri), pin(), Some(kind)).unwrap();
                assert!(!again.is_new(), "it is there already");
                let (identity, key) = pkcs11::open(&process.select(&exact), pin()).unwrap();
                assert_eq!(identity.chain(), &issued[..1]);
                navicert_signer::contract::check_key(&*key, true);
            }
        },
    );
}

#[test]
fn key_without_a_name_is_not_made() {
    with_token(
        "enrollment::key_without_a_name_is_not_made",
        |_| {},
        |process| {
            let error =
                DeviceKey::open(&process.select("pkcs11:token=test%20token"), pin(), Some(NewKey::EcP256));
            let error = error.unwrap_err().to_string();
            assert!(error.contains("name it in the URI"), "{error}");
        },
    );
}

#[test]
fn renewed_certificate_replaces_the_earlier_one_and_no_other() {
    let prepare = |hsm: &SoftHsm| {
        let ca = Ca::new("root");
        for id in ["01", "02"] {
            let key = hsm.generate(KeyKind::EcP256, id, "work key");
            hsm.import_certificate(&ca.client("ann").issue_for(&key.public_key)[0], id, "work key");
        }
    };
    with_token("enrollment::renewed_certificate_replaces_the_earlier_one_and_no_other", prepare, |process| {
        let key = DeviceKey::open(&process.select("pkcs11:id=%01"), pin(), None).unwrap();
        let validity: (Timestamp, Timestamp) =
            ("2020-01-01T00:00:00Z".parse().unwrap(), "2020-01-02T00:00:00Z".parse().unwrap());
        let certificate = self_signed_certificate(&subject(), key.key(), validity).unwrap();
        assert_eq!(key.certificate_expiry(&certificate).unwrap(), validity.1);
        key.store_certificate(&certificate).unwrap();
        let (identity, _) = pkcs11::open(&process.select("pkcs11:id=%01"), pin()).unwrap();
        assert_eq!(identity.chain(), [certificate], "although the earlier one expires later");
        let (other, _) = pkcs11::open(&process.select("pkcs11:id=%02"), pin()).unwrap();
        let stranger = key.store_certificate(&other.chain()[0]).unwrap_err();
        assert!(stranger.to_string().contains("it is for another key"), "{stranger}");
    });
}

#[test]
fn issuers_are_stored_once_and_sent_with_the_certificate() {
    with_token(
        "enrollment::issuers_are_stored_once_and_sent_with_the_certificate",
        |_| {},
        |process| {
            let uri = "pkcs11:token=test%20token;object=ann";
            let root = Ca::new("root");
            // The authority has got a new key: the earlier certificate of the same name stays in the token.
            for issuing in [root.intermediate("issuing"), root.intermediate("issuing")] {
                let key = DeviceKey::open(&process.select(uri), pin(), Some(NewKey::EcP256)).unwrap();
                let issued = issuing.client("ann").issue_for(&key.key().public_key().to_der());
                let [leaf, issuers @ ..] = issued.as_slice() else { panic!("{issued:?}") };
                let with_root = [issuers, &[root.der().clone()]].concat();
                key.store_certificate(leaf).unwrap();
                assert_eq!(key.store_issuers(&with_root).unwrap(), 1, "the server has the root");
                assert_eq!(key.store_issuers(&with_root).unwrap(), 0, "the token has them");
                let (identity, _) = pkcs11::open(&process.select(uri), pin()).unwrap();
                assert_eq!(identity.chain(), issued);
            }
        },
    );
}
