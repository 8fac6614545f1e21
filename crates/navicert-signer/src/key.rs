//! The one trait every key implements, wherever it lives.

use std::fmt;

use crate::error::SignError;
use crate::public_key::PublicKey;
use crate::scheme::{Input, Scheme};

/// A private key that can be used and not read.
///
/// What every implementation promises, and the contract suite (`navicert_signer::contract`, feature `test-util`) checks:
///
/// - [`schemes`](Key::schemes) is what it can really do, best first, and all of one kind of key. What is not in it is
///   refused with [`SignError::UnsupportedScheme`], and nothing happens to the device.
/// - A signature has the encoding TLS wants: RSA as long as the modulus, ECDSA as DER, Ed25519 64 octets (C831).
/// - [`public_key`](Key::public_key) never changes.
/// - It may be called from many threads at once; a device that does one thing at a time makes them wait.
/// - `sign` blocks, for a human's touch if need be. On a runtime it is called from a thread that may block (C843).
/// - Neither `Debug` nor an error shows a PIN, a key, or what was signed.
///
/// ```
/// use navicert_signer::{Input, Key, Scheme, SoftwareKey};
///
/// let key = SoftwareKey::generate_p256()?;
/// let signature = key.sign(Scheme::EcdsaP256Sha256, Input::Message(b"hello"))?;
/// assert!(key.public_key().verifies(Scheme::EcdsaP256Sha256, Input::Message(b"hello"), &signature));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Key: fmt::Debug + Send + Sync {
    /// The public half.
    fn public_key(&self) -> &PublicKey;

    /// What it can do, best first.
    fn schemes(&self) -> &[Scheme];

    /// Signs, and blocks while it does. Callers use [`Identity::sign`](crate::Identity::sign), which checks the answer.
    ///
    /// # Errors
    /// [`SignError`].
    fn sign(&self, scheme: Scheme, input: Input<'_>) -> Result<Vec<u8>, SignError>;
}

impl<K: Key + ?Sized> Key for std::sync::Arc<K> {
    fn public_key(&self) -> &PublicKey {
        (**self).public_key()
    }

    fn schemes(&self) -> &[Scheme] {
        (**self).schemes()
    }

    fn sign(&self, scheme: Scheme, input: Input<'_>) -> Result<Vec<u8>, SignError> {
        (**self).sign(scheme, input)
    }
}
