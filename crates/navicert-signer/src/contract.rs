//! Contract tests for [`Key`]. The tests of every implementation call [`check_key`].

use std::collections::BTreeSet;
use std::thread;

use navicert_types::error_chain;

use crate::error::SignError;
use crate::key::Key;
use crate::remote::wire::sample_message;
use crate::scheme::{Input, Scheme};

/// Checks every guarantee of [`Key`] with real signatures.
///
/// `digests` says whether the key can sign a digest; a key behind signer protocol v1 cannot.
///
/// # Panics
/// If the key violates the contract.
#[expect(clippy::panic, reason = "test support: a panic with a sentence is how it fails a test")]
pub fn check_key(key: &dyn Key, digests: bool) {
    let schemes = key.schemes().to_vec();
    assert!(!schemes.is_empty(), "the key supports no scheme");
    let distinct: BTreeSet<_> = schemes.iter().collect();
    assert_eq!(distinct.len(), schemes.len(), "duplicate scheme: {schemes:?}");
    let algorithm = key.public_key().algorithm();
    let order: Vec<Scheme> = Scheme::for_key(algorithm).filter(|scheme| schemes.contains(scheme)).collect();
    assert_eq!(schemes, order, "schemes of {algorithm} keys only, best first");
    for scheme in &schemes {
        check_signatures(key, *scheme, digests);
    }
    let foreign = Scheme::ALL.into_iter().filter(|scheme| !schemes.contains(scheme));
    for scheme in foreign {
        match key.sign(scheme, Input::Message(b"message")) {
            Err(SignError::UnsupportedScheme { .. }) => {}
            other => panic!("{scheme} is not announced, and signing gave {other:?}"),
        }
    }
    check_parallel_signing(key, &schemes);
}

fn check_signatures(key: &dyn Key, scheme: Scheme, digests: bool) {
    // A signer in another program may sign only TLS client handshakes.
    for message in [sample_message(0), sample_message(1), sample_message(255)] {
        let signature = key.sign(scheme, Input::Message(&message));
        let signature = signature.unwrap_or_else(|error| failed(scheme, &error));
        let input = Input::Message(&message);
        assert!(
            key.public_key().verifies(scheme, input, &signature),
            "{scheme}: not a signature of this key"
        );
        assert!(!key.public_key().verifies(scheme, Input::Message(b"other"), &signature));
    }
    let Some(hash) = scheme.hash().filter(|_| digests) else { return };
    let digest = hash.digest(b"message");
    let signature = key.sign(scheme, Input::Digest(&digest));
    let signature = signature.unwrap_or_else(|error| failed(scheme, &error));
    assert!(
        key.public_key().verifies(scheme, Input::Message(b"message"), &signature),
        "{scheme} of a digest"
    );
    let short = digest.get(1..).unwrap_or_default();
    assert!(key.sign(scheme, Input::Digest(short)).is_err(), "{scheme} takes a digest of the wrong length");
}

fn check_parallel_signing(key: &dyn Key, schemes: &[Scheme]) {
    let Some(scheme) = schemes.first().copied() else { return };
    thread::scope(|scope| {
        for number in 0..8_u8 {
            scope.spawn(move || {
                let message = sample_message(number);
                let signature = key.sign(scheme, Input::Message(&message));
                let signature = signature.unwrap_or_else(|error| failed(scheme, &error));
                assert!(key.public_key().verifies(scheme, Input::Message(&message), &signature));
            });
        }
    });
}

#[expect(clippy::panic, reason = "test support: a panic with a sentence is how it fails a test")]
fn failed(scheme: Scheme, error: &SignError) -> ! {
    panic!("{scheme}: {}", error_chain(&error))
}
