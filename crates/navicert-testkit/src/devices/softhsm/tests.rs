//! Keys in the token sign through OpenSC's tool, and their signatures verify by the public key we report.

use aws_lc_rs::digest;
use aws_lc_rs::signature::{self, UnparsedPublicKey, VerificationAlgorithm};

use super::*;
use crate::pki::ca::Ca;

fn verification(kind: KeyKind) -> &'static dyn VerificationAlgorithm {
    match kind {
        KeyKind::Rsa2048 => &signature::RSA_PKCS1_2048_8192_SHA256,
        KeyKind::EcP256 => &signature::ECDSA_P256_SHA256_FIXED,
        KeyKind::EcP384 => &signature::ECDSA_P384_SHA384_FIXED,
        KeyKind::EcP521 => &signature::ECDSA_P521_SHA512_FIXED,
        KeyKind::Ed25519 => &signature::ED25519,
    }
}

/// SoftHSM's ECDSA takes a digest; the other two mechanisms hash for themselves.
fn sign(hsm: &SoftHsm, key: &HsmKey, message: &[u8]) -> Vec<u8> {
    let hashed = |algorithm| hsm.sign(key, "ECDSA", digest::digest(algorithm, message).as_ref());
    match key.kind {
        KeyKind::Rsa2048 => hsm.sign(key, "SHA256-RSA-PKCS", message),
        KeyKind::EcP256 => hashed(&digest::SHA256),
        KeyKind::EcP384 => hashed(&digest::SHA384),
        KeyKind::EcP521 => hashed(&digest::SHA512),
        KeyKind::Ed25519 => hsm.sign(key, "EDDSA", message),
    }
}

#[test]
fn generated_keys_of_every_kind_sign_and_verify_by_their_public_half() {
    let Some(hsm) = SoftHsm::start("generated", "1234") else { return };
    for (index, kind) in KeyKind::ALL.into_iter().enumerate() {
        let key = hsm.generate(kind, &format!("0{index}"), &format!("key {index}"));
        let message = b"a message";
        let signature = sign(&hsm, &key, message);
        let public = UnparsedPublicKey::new(verification(kind), &key.public_key);
        assert!(public.verify(message, &signature).is_ok(), "{kind:?}");
        assert!(public.verify(b"another", &signature).is_err(), "{kind:?}");
    }
}

#[test]
fn imported_identities_of_every_kind_sign_and_show_their_certificate() {
    let Some(hsm) = SoftHsm::start("imported", "1234") else { return };
    let ca = Ca::new("root");
    for (index, kind) in KeyKind::ALL.into_iter().enumerate() {
        let identity = ca.client("ann").key(kind).issue();
        let key = hsm.import(&identity, &format!("a{index}"), &format!("identity {index}"));
        let signature = sign(&hsm, &key, b"a message");
        let public = UnparsedPublicKey::new(verification(kind), &key.public_key);
        assert!(public.verify(b"a message", &signature).is_ok(), "{kind:?}");
    }
    let objects = hsm.objects();
    assert_eq!(objects.matches("Certificate Object").count(), KeyKind::ALL.len(), "{objects}");
    assert_eq!(objects.matches("Private Key Object").count(), KeyKind::ALL.len(), "{objects}");
}

#[test]
fn two_tokens_know_nothing_of_each_other() {
    let Some(one) = SoftHsm::start("one", "1111") else { return };
    let two = SoftHsm::new("two", "2222");
    one.generate(KeyKind::EcP256, "01", "only in one");
    assert!(one.objects().contains("only in one"));
    assert!(!two.objects().contains("only in one"));
    assert_ne!(one.variables(), two.variables());
}

#[test]
fn a_certificate_for_a_key_in_the_token_is_stored_beside_it() {
    let Some(hsm) = SoftHsm::start("certified", "1234") else { return };
    let key = hsm.generate(KeyKind::EcP384, "07", "mine");
    let chain = Ca::new("root").client("ann").issue_for(&key.public_key);
    hsm.import_certificate(&chain[0], "07", "mine");
    assert!(hsm.objects().contains("Certificate Object"));
    assert!(key.public_key_pem().starts_with("-----BEGIN PUBLIC KEY-----"));
}

/// What a panic said.
fn panicked(action: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(action)).unwrap_err();
    panic.downcast_ref::<String>().unwrap().clone()
}

#[test]
fn a_missing_tool_is_named_with_the_packages_to_install() {
    let Some(hsm) = SoftHsm::start("missing", "1234") else { return };
    let message = panicked(|| drop(hsm.run("no-such-tool", [])));
    assert!(message.contains("install Debian's packages `softhsm2` and `opensc`"), "{message}");
}

#[test]
fn a_tool_that_fails_stops_the_test_with_its_stderr() {
    let Some(hsm) = SoftHsm::start("failing", "1234") else { return };
    let message = panicked(|| hsm.import_certificate(b"no certificate", "01", "x"));
    assert!(message.contains("pkcs11-tool failed with exit status"), "{message}");
}
