//! What every [`Key`] has to pass, wherever it lives. A new implementation is handed to [`holds`] in its own tests.

use std::collections::BTreeSet;
use std::thread;

use crate::error::SignError;
use crate::key::Key;
use crate::remote::wire::sample_message;
use crate::scheme::{Input, Scheme};

/// Checks every promise of [`Key`], with real signatures.
///
/// `digests` says whether the key can also sign a digest alone; one behind the protocol's second version cannot.
///
/// # Panics
/// If the key breaks its word.
#[expect(clippy::panic, reason = "test support: a panic with a sentence is how it fails a test")]
pub fn holds(key: &dyn Key, digests: bool) {
    let schemes = key.schemes().to_vec();
    assert!(!schemes.is_empty(), "a key that can do nothing");
    let distinct: BTreeSet<_> = schemes.iter().collect();
    assert_eq!(distinct.len(), schemes.len(), "a scheme is named twice: {schemes:?}");
    let algorithm = key.public_key().algorithm();
    let order: Vec<Scheme> = Scheme::of_key(algorithm).filter(|scheme| schemes.contains(scheme)).collect();
    assert_eq!(schemes, order, "schemes of {algorithm} keys only, best first");
    for scheme in &schemes {
        signs(key, *scheme, digests);
    }
    let foreign = Scheme::ALL.into_iter().filter(|scheme| !schemes.contains(scheme));
    for scheme in foreign {
        match key.sign(scheme, Input::Message(b"message")) {
            Err(SignError::UnsupportedScheme { .. }) => {}
            other => panic!("{scheme} is not announced, and signing gave {other:?}"),
        }
    }
    in_parallel(key, &schemes);
}

fn signs(key: &dyn Key, scheme: Scheme, digests: bool) {
    // What a signer in another program may insist on: a client's handshake.
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
    let digest = hash.of(b"message");
    let signature = key.sign(scheme, Input::Digest(&digest));
    let signature = signature.unwrap_or_else(|error| failed(scheme, &error));
    assert!(
        key.public_key().verifies(scheme, Input::Message(b"message"), &signature),
        "{scheme} of a digest"
    );
    let short = digest.get(1..).unwrap_or_default();
    assert!(key.sign(scheme, Input::Digest(short)).is_err(), "{scheme} takes a digest of the wrong length");
}

fn in_parallel(key: &dyn Key, schemes: &[Scheme]) {
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
    panic!("{scheme}: {}", error.with_sources())
}
