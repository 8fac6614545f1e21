//! Devices that are removed and reinserted.

use std::sync::Arc;

use navicert_signer::pin::{PinError, PinPrompt, PinProvider};
use navicert_signer::pkcs11;
use navicert_signer::{Input, Key, Scheme, SignError};
use navicert_testkit::{Ca, KeyKind, SoftHsm};
use navicert_types::Secret;

use crate::support::{CountingPin, PIN, with_token};

const SCHEME: Scheme = Scheme::EcdsaP256Sha256;
const MESSAGE: Input<'static> = Input::Message(b"message");

fn one_key(hsm: &SoftHsm) {
    let key = hsm.generate(KeyKind::EcP256, "01", "mine");
    hsm.import_certificate(&Ca::new("root").client("ann").issue_for(&key.public_key)[0], "01", "mine");
}

#[test]
fn removed_token_fails_until_reinserted() {
    let name = "devices::removed_token_fails_until_reinserted";
    with_token(name, one_key, |process| {
        let pin = Arc::new(CountingPin::typed(PIN));
        let (identity, key) = pkcs11::open(&process.select("pkcs11:id=%01"), Arc::clone(&pin) as _).unwrap();
        identity.sign(SCHEME, MESSAGE).unwrap();
        let removed = process.remove_token();
        for time in 1..=3 {
            let error = key.sign(SCHEME, MESSAGE).expect_err("the token was removed");
            assert!(matches!(error, SignError::Removed { .. }), "time {time}: {error:?}");
        }
        assert_eq!(pin.times(), 1, "no PIN is requested for a removed device");
        removed.reinsert();
        identity.sign(SCHEME, MESSAGE).unwrap();
        assert_eq!(pin.times(), 2, "the PIN is not stored: a reinserted device requires it again");
    });
}

#[test]
fn reinserted_token_without_pin_has_its_own_error() {
    let name = "devices::reinserted_token_without_pin_has_its_own_error";
    with_token(name, one_key, |process| {
        let pin = Arc::new(OneTimePin(CountingPin::typed(PIN)));
        let (_, key) = pkcs11::open(&process.select("pkcs11:id=%01"), pin).unwrap();
        key.sign(SCHEME, MESSAGE).unwrap();
        let removed = process.remove_token();
        assert!(matches!(key.sign(SCHEME, MESSAGE), Err(SignError::Removed { .. })));
        removed.reinsert();
        let error = key.sign(SCHEME, MESSAGE).unwrap_err();
        assert!(matches!(error, SignError::Reinserted { .. }), "{error:?}");
    });
}

/// Provides the PIN once.
#[derive(Debug)]
struct OneTimePin(CountingPin);

impl PinProvider for OneTimePin {
    fn request_pin(&self, request: &PinPrompt) -> Result<Secret<String>, PinError> {
        if self.0.times() > 0 { Err(PinError::NoProvider) } else { self.0.request_pin(request) }
    }

    fn is_stored(&self) -> bool {
        false
    }
}
