//! Events for metrics: [`AuthnEvent`] → [`AuthnRecorder`]; [`AuthnMetrics`] counts them under kube-apiserver's metric names.

mod counting;
mod text;

use std::fmt;
use std::time::Duration;

use crate::model::outcome::{AuthnOutcome, RefusalClass};

pub use counting::{AuthnMetrics, LATENCY_BUCKETS, sha256_label};

/// An event to count.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum AuthnEvent<'e> {
    /// A token was authenticated.
    Attempt {
        /// The outcome.
        outcome: &'e AuthnOutcome,
        /// How long it took.
        took: Duration,
    },
    /// The cache of decisions was looked up.
    CacheLookup {
        /// Whether it was a hit.
        is_hit: bool,
        /// How long it took.
        took: Duration,
    },
    /// A decision after a cache miss has started.
    FetchStarted,
    /// A request waits for a decision, its own or that of a concurrent request for the same token.
    WaitStarted,
    /// The wait has ended.
    WaitEnded,
    /// The decision has been made.
    FetchEnded {
        /// Whether the token was rejected.
        is_error: bool,
    },
    /// Number of cached decisions.
    CacheEntries(usize),
    /// An authenticator evaluated a token of its issuer.
    TokenEvaluated {
        /// The issuer's URL.
        issuer: &'e str,
        /// The class of the refusal; `None`: accepted.
        refusal: Option<RefusalClass>,
        /// How long it took.
        took: Duration,
    },
    /// A reload was attempted.
    Reloaded {
        /// Whether the configuration was applied.
        is_success: bool,
    },
    /// A configuration is in use.
    Configuration {
        /// Contents of the file.
        text: &'e [u8],
    },
    /// An issuer is no longer configured.
    IssuerRemoved {
        /// Its URL.
        issuer: &'e str,
    },
    /// An issuer became ready, or is no longer ready.
    IssuerReady {
        /// Its URL.
        issuer: &'e str,
        /// Whether its tokens can be verified.
        is_ready: bool,
    },
    /// Keys were requested.
    KeysRefreshed {
        /// The trigger.
        trigger: RefreshTrigger,
    },
    /// A request for an issuer's keys has ended.
    // S193
    KeysFetched {
        /// Its URL.
        issuer: &'e str,
        /// The response body, if it is a valid key set.
        body: Option<&'e [u8]>,
    },
    /// An issuer's keys are in use.
    Keys {
        /// Its URL.
        issuer: &'e str,
        /// Number of usable keys.
        usable: usize,
        /// Number of unusable keys.
        skipped: usize,
    },
}

/// Why keys were requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefreshTrigger {
    /// A scheduled refresh.
    Background,
    /// A token needs an unknown key.
    Token,
}

/// Records events.
pub trait AuthnRecorder: fmt::Debug + Send + Sync {
    /// Records an event.
    fn record(&self, event: &AuthnEvent<'_>);
}

/// Records nothing.
impl AuthnRecorder for () {
    fn record(&self, _: &AuthnEvent<'_>) {}
}
