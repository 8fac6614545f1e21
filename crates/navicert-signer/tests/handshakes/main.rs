//! Whole handshakes in memory: every kind of key, both versions of TLS, and what happens when a key does not do its part.

#![expect(clippy::unwrap_used, reason = "tests")]

mod memory;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memory::{Ended, shake_hands};
use navicert_signer::tls::sign_error;
use navicert_signer::{Identity, Input, Key, PublicKey, Scheme, SignError, SoftwareKey};
use navicert_testkit::{Ca, KeyKind};
use rustls::version::{TLS12, TLS13};

const KINDS: [KeyKind; 5] =
    [KeyKind::Rsa2048, KeyKind::EcP256, KeyKind::EcP384, KeyKind::EcP521, KeyKind::Ed25519];

fn software(identity: &navicert_testkit::Identity) -> SoftwareKey {
    SoftwareKey::from_der(identity.key_der()).unwrap()
}

/// A key with a will of its own.
#[derive(Debug)]
struct Odd {
    shown: SoftwareKey,
    used: SoftwareKey,
    schemes: Vec<Scheme>,
    signed: AtomicUsize,
    fails: bool,
}

impl Odd {
    fn like(identity: &navicert_testkit::Identity) -> Self {
        let (shown, used) = (software(identity), software(identity));
        Odd { schemes: shown.schemes().to_vec(), shown, used, signed: AtomicUsize::new(0), fails: false }
    }
}

impl Key for Odd {
    fn public_key(&self) -> &PublicKey {
        self.shown.public_key()
    }

    fn schemes(&self) -> &[Scheme] {
        &self.schemes
    }

    fn sign(&self, scheme: Scheme, input: Input<'_>) -> Result<Vec<u8>, SignError> {
        self.signed.fetch_add(1, Ordering::SeqCst);
        if self.fails {
            return Err(SignError::Removed { token: "test".to_owned() });
        }
        self.used.sign(scheme, input)
    }
}

fn identity(issued: &navicert_testkit::Identity, key: Arc<dyn Key>) -> Arc<Identity> {
    Arc::new(Identity::new(issued.chain().to_vec(), key).unwrap())
}

#[test]
fn every_kind_of_key_shakes_hands_in_both_versions() {
    // T41
    let ca = Ca::new("root");
    for kind in KINDS {
        for version in [&TLS12, &TLS13] {
            let ann = ca.client("ann").key(kind).issue();
            let ended = shake_hands(&ca, identity(&ann, Arc::new(software(&ann))), version);
            let Ended::Both { client_certificate } = ended else { panic!("{kind:?} {version:?}: {ended:?}") };
            assert_eq!(client_certificate.as_deref(), Some(ann.leaf().as_ref()), "{kind:?} {version:?}");
        }
    }
}

#[test]
fn a_signature_by_the_wrong_key_ends_the_handshake_here_and_nothing_more_is_sent() {
    // T41, C834
    let ca = Ca::new("root");
    for kind in KINDS {
        for version in [&TLS12, &TLS13] {
            let (ann, bob) = (ca.client("ann").key(kind).issue(), ca.client("bob").key(kind).issue());
            let key = Odd { used: software(&bob), ..Odd::like(&ann) };
            let ended = shake_hands(&ca, identity(&ann, Arc::new(key)), version);
            let Ended::Client { error, proves_something } = ended else { panic!("{kind:?}: {ended:?}") };
            assert!(matches!(sign_error(&error), Some(SignError::WrongSignature { .. })), "{error}");
            assert!(!proves_something, "{kind:?} {version:?}: the client went on after the error");
        }
    }
}

#[test]
fn the_reason_of_a_device_survives_the_tls_library() {
    let ca = Ca::new("root");
    let ann = ca.client("ann").issue();
    let key = Odd { fails: true, ..Odd::like(&ann) };
    let Ended::Client { error, .. } = shake_hands(&ca, identity(&ann, Arc::new(key)), &TLS13) else {
        panic!()
    };
    assert!(matches!(sign_error(&error), Some(SignError::Removed { .. })), "{error}");
    let as_io = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
    assert!(sign_error(&as_io).is_some(), "also behind what an async TLS stream makes of it");
}

#[test]
fn a_key_without_pss_works_in_tls_1_2_and_says_why_not_in_1_3() {
    // C833: never silently without a certificate.
    let ca = Ca::new("root");
    let ann = ca.client("ann").key(KeyKind::Rsa2048).issue();
    let key = || Odd { schemes: vec![Scheme::RsaPkcs1Sha256], ..Odd::like(&ann) };
    let ended = shake_hands(&ca, identity(&ann, Arc::new(key())), &TLS12);
    assert!(matches!(ended, Ended::Both { client_certificate: Some(_) }), "{ended:?}");
    let key = Arc::new(key());
    let ended = shake_hands(&ca, identity(&ann, Arc::clone(&key) as _), &TLS13);
    let Ended::Client { error, .. } = ended else { panic!("{ended:?}") };
    assert!(matches!(sign_error(&error), Some(SignError::NoCommonScheme { .. })), "{error}");
    assert!(error.to_string().contains("rsa_pkcs1_sha256"), "{error}");
    assert_eq!(key.signed.load(Ordering::SeqCst), 0, "the device was not bothered");
}

#[test]
fn one_handshake_is_one_signature() {
    // C840
    let ca = Ca::new("root");
    let ann = ca.client("ann").issue();
    let key = Arc::new(Odd::like(&ann));
    let identity = identity(&ann, Arc::clone(&key) as _);
    for count in 1..=3 {
        let _ = shake_hands(&ca, Arc::clone(&identity), &TLS13);
        assert_eq!(key.signed.load(Ordering::SeqCst), count);
    }
}
