//! The trait that every private key implements.

use std::fmt;

use crate::error::SignError;
use crate::public_key::PublicKey;
use crate::scheme::{Input, Scheme};

/// A private key that can sign and cannot be read.
///
/// Every implementation guarantees, and the contract tests (`navicert_signer::contract`, feature `test-util`) check:
///
/// - [`schemes`](Key::schemes) lists the supported schemes, best first, all for one key algorithm. Any other scheme
///   fails with [`SignError::UnsupportedScheme`] before the device is used.
/// - A signature has the encoding that TLS uses: RSA as long as the modulus, ECDSA as DER, Ed25519 64 octets.
/// - [`public_key`](Key::public_key) never changes.
/// - It may be called from many threads at once; calls to a device that does one operation at a time are serialized.
/// - `sign` blocks, possibly until the user touches the device. Call it from a thread that may block.
/// - Neither `Debug` nor an error shows a PIN, a private key or the signed message.
///
/// ```
/// use navicert_signer::{Input, Key, Scheme, SoftwareKey};
///
/// let key = SoftwareKey::generate_p256()?;
/// let signature = key.sign(Scheme::EcdsaP256Sha256, Input::Message(b"hello"))?;
/// assert!(key.public_key().verifies(Scheme::EcdsaP256Sha256, Input::Message(b"hello"), &signature));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// C831, C843
pub trait Key: fmt::Debug + Send + Sync {
    /// The public key.
    fn public_key(&self) -> &PublicKey;

    /// The supported schemes, best first.
    fn schemes(&self) -> &[Scheme];

    /// Signs; blocks meanwhile. Callers use [`SigningIdentity::sign`](crate::SigningIdentity::sign), which verifies the
    /// signature.
    ///
    /// # Errors
    /// [`SignError`].
    fn sign(&self, scheme: Scheme, input: Input<'_>) -> Result<Vec<u8>, SignError>;

    /// Logs in to the device now rather than for the first signature; blocks meanwhile. Nothing by default.
    ///
    /// # Errors
    /// [`SignError`], as for a signature.
    // C842
    fn log_in(&self) -> Result<(), SignError> {
        Ok(())
    }
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

    fn log_in(&self) -> Result<(), SignError> {
        (**self).log_in()
    }
}
