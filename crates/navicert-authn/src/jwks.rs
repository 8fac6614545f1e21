//! An issuer's public keys: `key` (one JWK) → `set` (the key set) → [`KeySource`], which hands an authenticator the current
//! set. `fetch` (one GET, implemented by the caller) → `discovery` → `refresher` fetch keys and keep them fresh.

mod discovery;
mod ed25519;
mod fetch;
mod fetch_demand;
mod freshness;
pub(crate) mod key;
mod probe;
mod refetch_limiter;
mod refresher;
#[cfg(any(test, feature = "test-util"))]
mod scripted;
pub(crate) mod set;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use discovery::{Discovered, DiscoveryError, discover, well_known};
pub use fetch::{BoxFuture, Fetch, FetchError, FetchLimits, FetchRequest, FetchResponse, FetchStage};
pub use key::{Jwk, JwkError};
pub use probe::{IssuerProbe, Probe, ProbeResult, probe_issuer};
pub use refresher::{DriverGuard, IssuerHealth, JwksContext, JwksRefresher};
#[cfg(any(test, feature = "test-util"))]
pub use scripted::ScriptedFetch;
pub use set::{KeySet, KeySetError};

/// The source of an issuer's keys.
///
/// An authenticator reads it once per token, after every check that needs no key; an expired token therefore causes no
/// request. Implementations return the keys they have without waiting, and fetch in the background. After a refusal of
/// class `kid_unknown` the caller may request newer keys and try again.
pub trait KeySource: fmt::Debug + Send + Sync {
    /// The current keys.
    ///
    /// # Errors
    /// No keys are available, and why.
    fn current(&self) -> Result<Arc<KeySet>, KeysUnavailable>;

    /// Changes whenever the keys do; a decision made with another version has to be made again.
    fn version(&self) -> u64 {
        0
    }

    /// How long the current keys may be trusted if no refresh succeeds; `None`: without limit.
    fn trusted_for(&self) -> Option<Duration> {
        None
    }

    /// The URL that the keys come from, if known.
    fn address(&self) -> Option<String> {
        None
    }

    /// Fetches keys newer than version `tried`, unless a recent fetch makes that pointless. Waits at most a second for a fetch that
    /// another request has caused.
    fn refresh<'f>(&'f self, wanted: RefreshReason<'f>, tried: u64) -> BoxFuture<'f, RefreshResult> {
        let _ = (wanted, tried);
        Box::pin(std::future::ready(RefreshResult::Unchanged))
    }
}

/// Why newer keys are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshReason<'w> {
    /// A token names a key that is not in the set.
    Kid(&'w str),
    /// No key verifies a token's signature.
    Signature,
    /// The issuer has no keys: it has not been discovered, or its keys could not be fetched.
    NoKeys,
}

/// The result of requesting newer keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefreshResult {
    /// The keys are unchanged, or no request was made.
    Unchanged,
    /// The keys are newer: try again.
    Newer,
    /// A concurrent request had already fetched newer keys: try again, then request a refresh if that is not enough.
    AlreadyNewer,
    /// The request to the issuer failed, and why.
    Failed(String),
}

/// Why no keys are available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeysUnavailable {
    /// The issuer has not been discovered yet.
    #[error("the issuer has not been discovered yet")]
    NotReady,
    /// The keys could not be fetched.
    #[error("{0}")]
    Failed(String),
}

/// Keys that never change: from a file, or from a test.
// S171
#[derive(Clone, Debug)]
pub struct StaticKeys {
    keys: Result<Arc<KeySet>, KeysUnavailable>,
    address: Option<String>,
}

impl StaticKeys {
    /// These keys.
    pub fn new(keys: KeySet) -> Self {
        StaticKeys { keys: Ok(Arc::new(keys)), address: None }
    }

    /// No keys, for this reason.
    pub fn unavailable(why: KeysUnavailable) -> Self {
        StaticKeys { keys: Err(why), address: None }
    }

    /// Sets the URL that the keys come from.
    #[must_use]
    pub(crate) fn with_address(mut self, url: &str) -> Self {
        self.address = Some(url.to_owned());
        self
    }
}

impl KeySource for StaticKeys {
    fn current(&self) -> Result<Arc<KeySet>, KeysUnavailable> {
        self.keys.clone()
    }

    fn address(&self) -> Option<String> {
        self.address.clone()
    }
}
