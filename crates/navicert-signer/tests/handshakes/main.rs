//! In-memory handshakes: every key kind, TLS 1.2 and 1.3, and failing keys.

#![expect(clippy::unwrap_used, reason = "tests")]

mod memory;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memory::{HandshakeResult, handshake};
use navicert_signer::tls::sign_error;
use navicert_signer::{Input, Key, PublicKey, Scheme, SignError, SigningIdentity, SoftwareKey};
use navicert_testkit::{Ca, KeyKind};
use rustls::version::{TLS12, TLS13};

const KINDS: [KeyKind; 5] =
    [KeyKind::Rsa2048, KeyKind::EcP256, KeyKind::EcP384, KeyKind::EcP521, KeyKind::Ed25519];

fn software(identity: &navicert_testkit::Identity) -> SoftwareKey {
    SoftwareKey::from_der(identity.key_der()).unwrap()
}

/// A key with selectable faults.
#[derive(Debug)]
struct FaultyKey {
    shown: SoftwareKey,
    used: SoftwareKey,
    schemes: Vec<Scheme>,
    signed: AtomicUsize,
    fails: bool,
}

impl FaultyKey {
    fn like(identity: &navicert_testkit::Identity) -> Self {
        let (shown, used) = (software(identity), software(identity));
        FaultyKey {
            schemes: shown.schemes().to_vec(),
            shown,
            used,
            signed: AtomicUsize::new(0),
            fails: false,
        }
    }
}

impl Key for FaultyKey {
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

fn identity(issued: &navicert_testkit::Identity, key: Arc<dyn Key>) -> Arc<SigningIdentity> {
    Arc::new(SigningIdentity::new(issued.chain().to_vec(), key).unwrap())
}

#[test]
fn every_key_kind_completes_tls_1_2_and_1_3_handshakes() {
    // T41
    let ca = Ca::new("root");
    for kind in KINDS {
        for version in [&TLS12, &TLS13] {
            let ann = ca.client("ann").key(kind).issue();
            let result = handshake(&ca, identity(&ann, Arc::new(software(&ann))), version);
            let HandshakeResult::Both { client_certificate } = result else {
                panic!("{kind:?} {version:?}: {result:?}")
            };
            assert_eq!(client_certificate.as_deref(), Some(ann.leaf().as_ref()), "{kind:?} {version:?}");
        }
    }
}

#[test]
fn wrong_signature_aborts_the_handshake_before_anything_is_sent() {
    // T41, C834
    let ca = Ca::new("root");
    for kind in KINDS {
        for version in [&TLS12, &TLS13] {
            let (ann, bob) = (ca.client("ann").key(kind).issue(), ca.client("bob").key(kind).issue());
            let key = FaultyKey { used: software(&bob), ..FaultyKey::like(&ann) };
            let result = handshake(&ca, identity(&ann, Arc::new(key)), version);
            let HandshakeResult::Client { error, sent_proof } = result else {
                panic!("{kind:?}: {result:?}")
            };
            assert!(matches!(sign_error(&error), Some(SignError::WrongSignature { .. })), "{error}");
            assert!(!sent_proof, "{kind:?} {version:?}: the client continued after the error");
        }
    }
}

#[test]
fn sign_error_is_recovered_from_tls_errors() {
    let ca = Ca::new("root");
    let ann = ca.client("ann").issue();
    let key = FaultyKey { fails: true, ..FaultyKey::like(&ann) };
    let HandshakeResult::Client { error, .. } = handshake(&ca, identity(&ann, Arc::new(key)), &TLS13) else {
        panic!()
    };
    assert!(matches!(sign_error(&error), Some(SignError::Removed { .. })), "{error}");
    let as_io = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
    assert!(sign_error(&as_io).is_some(), "also within the io::Error of an async TLS stream");
}

#[test]
fn key_without_pss_works_in_tls_1_2_and_fails_in_1_3() {
    // C833: never silently without a certificate.
    let ca = Ca::new("root");
    let ann = ca.client("ann").key(KeyKind::Rsa2048).issue();
    let key = || FaultyKey { schemes: vec![Scheme::RsaPkcs1Sha256], ..FaultyKey::like(&ann) };
    let result = handshake(&ca, identity(&ann, Arc::new(key())), &TLS12);
    assert!(matches!(result, HandshakeResult::Both { client_certificate: Some(_) }), "{result:?}");
    let key = Arc::new(key());
    let result = handshake(&ca, identity(&ann, Arc::clone(&key) as _), &TLS13);
    let HandshakeResult::Client { error, .. } = result else { panic!("{result:?}") };
    assert!(matches!(sign_error(&error), Some(SignError::NoCommonScheme { .. })), "{error}");
    assert!(error.to_string().contains("rsa_pkcs1_sha256"), "{error}");
    assert_eq!(key.signed.load(Ordering::SeqCst), 0, "the device was not used");
}

#[test]
fn one_handshake_needs_one_signature() {
    // C840
    let ca = Ca::new("root");
    let ann = ca.client("ann").issue();
    let key = Arc::new(FaultyKey::like(&ann));
    let identity = identity(&ann, Arc::clone(&key) as _);
    for count in 1..=3 {
        let _ = handshake(&ca, Arc::clone(&identity), &TLS13);
        assert_eq!(key.signed.load(Ordering::SeqCst), count);
    }
}
