//! An issuer's public keys: `key` (one JWK) → `set` (the document) → [`Keys`], from which an authenticator takes the
//! set that counts at the moment. `fetch` (one GET, by somebody else) → `discovery` → `keeper` get them and keep them.

mod demand;
mod discovery;
mod fetch;
mod freshness;
mod keeper;
pub(crate) mod key;
mod online;
#[cfg(any(test, feature = "test-util"))]
mod scripted;
mod set;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use discovery::{Discovered, DiscoveryError, discover, well_known};
pub use fetch::{BoxFuture, Fetch, FetchError, FetchLimits, FetchRequest, Fetched, Stage};
pub use keeper::{Around, Health, Keeper};
pub use key::{Key, KeyError};
pub use online::{Look, Probe, Seen, look};
#[cfg(any(test, feature = "test-util"))]
pub use scripted::ScriptedFetch;
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

    /// Changes whenever the keys do: what was decided with the keys of another version is to be decided again.
    fn version(&self) -> u64 {
        0
    }

    /// How long the keys that count now may still be relied on, whatever happens; `None`: for ever.
    fn trusted_for(&self) -> Option<Duration> {
        None
    }

    /// Where the keys come from, if that is known.
    fn address(&self) -> Option<String> {
        None
    }

    /// Gets keys newer than the version that was tried, if there may be any and nobody has just asked.
    fn refresh<'f>(&'f self, wanted: Wanted<'f>, tried: u64) -> BoxFuture<'f, Refreshed> {
        let _ = (wanted, tried);
        Box::pin(std::future::ready(Refreshed::Same))
    }
}

/// What newer keys are wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'w> {
    /// A token names this key, and nobody has it.
    Kid(&'w str),
    /// No key verifies a token's signature.
    Signature,
}

/// What came of asking for newer keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// There are none, or nobody was asked.
    Same,
    /// There are: try again.
    Newer,
    /// There are, and somebody else had asked: try again, and if that is not enough, ask.
    Meanwhile,
    /// The issuer was asked, and why that brought nothing.
    Failed(String),
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
