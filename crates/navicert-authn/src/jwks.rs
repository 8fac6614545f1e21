//! An issuer's public keys: `key` (one JWK) → `set` (the document) → [`Keys`], from which an authenticator takes the
//! set that counts at the moment.

pub(crate) mod key;
mod set;

use std::fmt;
use std::sync::Arc;

pub use key::{Key, KeyError};
pub use set::{KeySet, KeySetError};

/// Where an authenticator finds its issuer's keys.
///
/// It is asked once per token, after everything that can be checked without keys; so an expired token costs
/// nobody a request. An implementation answers at once from what it has, and fetches on its own time: a refusal of
/// class `kid_unknown` tells the caller that asking for newer keys and trying again may help.
pub trait Keys: fmt::Debug + Send + Sync {
    /// The keys that count now.
    ///
    /// # Errors
    /// There are none, and why.
    fn current(&self) -> Result<Arc<KeySet>, KeysUnavailable>;
}

/// Why there are no keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysUnavailable {
    /// The issuer has not been discovered yet.
    #[error("the issuer has not been discovered yet")]
    NotReady,
    /// Its keys cannot be had.
    #[error("{0}")]
    Failed(String),
}

/// Keys that never change (S171): from a file, or from a test.
#[derive(Clone, Debug)]
pub struct FixedKeys(Result<Arc<KeySet>, KeysUnavailable>);

impl FixedKeys {
    /// These keys.
    pub fn new(keys: KeySet) -> Self {
        FixedKeys(Ok(Arc::new(keys)))
    }

    /// No keys.
    pub fn unavailable(why: KeysUnavailable) -> Self {
        FixedKeys(Err(why))
    }
}

impl Keys for FixedKeys {
    fn current(&self) -> Result<Arc<KeySet>, KeysUnavailable> {
        self.0.clone()
    }
}
