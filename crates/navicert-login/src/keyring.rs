//! The key that seals cached sessions: one item of the desktop's keyring, made once. Only `--token-cache-storage=keyring` and
//! files that it sealed ask for it.

#[cfg(all(feature = "keyring", target_os = "linux"))]
mod secret_service;

use std::fmt;

use navicert_plugin::Environment;
use zeroize::Zeroizing;

use crate::error::LoginError;

/// Bytes of the key.
const KEY_BYTES: usize = 32;

/// The key. Cleared from memory when dropped; `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct SealKey(Zeroizing<[u8; KEY_BYTES]>);

impl SealKey {
    /// A new key; `None` without random numbers.
    pub fn generate() -> Option<Self> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        aws_lc_rs::rand::fill(key.as_mut_slice()).ok()?;
        Some(SealKey(key))
    }

    /// The key of a keyring's item; `None` if the item is something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(|key: [u8; KEY_BYTES]| SealKey(Zeroizing::new(key)))
    }

    /// The bytes.
    pub fn expose(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey(…)")
    }
}

/// Whether the keyring may ask the person to unlock it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlock {
    /// It may.
    MayAsk,
    /// A locked keyring is an error.
    Never,
}

/// Where the key is kept.
pub trait Keyring: fmt::Debug + Send + Sync {
    /// The key, made if `is_made` and there is none.
    ///
    /// # Errors
    /// The keyring cannot be used.
    fn key(
        &self,
        environment: &Environment,
        unlock: Unlock,
        is_made: bool,
    ) -> Result<Option<SealKey>, LoginError>;

    /// Removes the key: what it sealed can no longer be read.
    ///
    /// # Errors
    /// The keyring cannot be used.
    fn remove_key(&self, environment: &Environment) -> Result<(), LoginError>;

    /// Stores, reads and deletes an item of its own within a few seconds, without asking the person.
    ///
    /// # Errors
    /// Why the keyring cannot be used.
    fn probe(&self, environment: &Environment) -> Result<(), String>;
}

/// The keyring of the desktop session: the Secret Service on Linux.
#[derive(Clone, Copy, Debug, Default)]
pub struct DesktopKeyring;

#[cfg(all(feature = "keyring", target_os = "linux"))]
impl Keyring for DesktopKeyring {
    fn key(
        &self,
        environment: &Environment,
        unlock: Unlock,
        is_made: bool,
    ) -> Result<Option<SealKey>, LoginError> {
        secret_service::key(environment, unlock, is_made).map_err(|why| unusable(&why))
    }

    fn remove_key(&self, environment: &Environment) -> Result<(), LoginError> {
        secret_service::remove_key(environment).map_err(|why| unusable(&why))
    }

    fn probe(&self, environment: &Environment) -> Result<(), String> {
        secret_service::probe(environment)
    }
}

#[cfg(not(all(feature = "keyring", target_os = "linux")))]
const NOT_BUILT: &str = "this program was built without it";

#[cfg(not(all(feature = "keyring", target_os = "linux")))]
impl Keyring for DesktopKeyring {
    fn key(&self, _: &Environment, _: Unlock, _: bool) -> Result<Option<SealKey>, LoginError> {
        Err(unusable(NOT_BUILT))
    }

    fn remove_key(&self, _: &Environment) -> Result<(), LoginError> {
        Err(unusable(NOT_BUILT))
    }

    fn probe(&self, _: &Environment) -> Result<(), String> {
        Err(NOT_BUILT.to_owned())
    }
}

/// Tokens are never written in plain text instead: the person decides.
// L423
fn unusable(why: &str) -> LoginError {
    LoginError::Keyring(format!(
        "failed to use the keyring: {why}; unlock it, or use --token-cache-storage=disk"
    ))
}
