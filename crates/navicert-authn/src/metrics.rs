//! What happened, for whoever counts it: [`Event`] → [`Recorder`]; [`Metrics`] counts it as kube-apiserver does.

mod counting;
mod text;

use std::fmt;
use std::time::Duration;

use crate::outcome::{Class, Outcome};

pub use counting::{CACHE_BUCKETS, DURATION_BUCKETS, LATENCY_BUCKETS, Metrics, hashed};

/// Something worth counting.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// A token was asked about, whatever came of it.
    Attempt {
        /// What came of it.
        outcome: &'e Outcome,
        /// How long it took.
        took: Duration,
    },
    /// The memory of recent decisions was asked.
    CacheLookup {
        /// It knew.
        is_hit: bool,
        /// How long it took.
        took: Duration,
    },
    /// It did not know: a decision begins.
    FetchStarted,
    /// Somebody waits for a decision, the own or somebody else's about the same token.
    WaitStarted,
    /// Nobody waits for it any more.
    WaitEnded,
    /// The decision is made.
    FetchEnded {
        /// The token is refused.
        is_error: bool,
    },
    /// So many decisions are remembered.
    CacheEntries(usize),
    /// An authenticator judged a token of its own.
    Judged {
        /// Its issuer's URL.
        issuer: &'e str,
        /// Why the token was refused; `None`: it was not.
        refusal: Option<Class>,
        /// How long it took.
        took: Duration,
    },
    /// A configuration was looked at and took over, or did not.
    Reloaded {
        /// It took over.
        is_success: bool,
    },
    /// This configuration is in use.
    Configuration {
        /// The file's bytes.
        text: &'e [u8],
    },
    /// An issuer is no longer configured.
    IssuerGone {
        /// Its URL.
        issuer: &'e str,
    },
    /// An issuer became ready, or is not any more.
    IssuerReady {
        /// Its URL.
        issuer: &'e str,
        /// Whether its tokens can be judged.
        is_ready: bool,
    },
    /// Keys were asked for.
    KeysRefreshed {
        /// Why.
        trigger: Trigger,
    },
    /// An issuer answered a request for its keys (S193).
    KeysFetched {
        /// Its URL.
        issuer: &'e str,
        /// The document, if it is one.
        body: Option<&'e [u8]>,
    },
    /// An issuer's keys are in use.
    Keys {
        /// Its URL.
        issuer: &'e str,
        /// How many can verify something.
        usable: usize,
        /// How many cannot.
        skipped: usize,
    },
}

/// Why keys were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trigger {
    /// It was time.
    Background,
    /// A token needs a key that is not there.
    Token,
}

/// Counts.
pub trait Recorder: fmt::Debug + Send + Sync {
    /// This has happened.
    fn record(&self, event: &Event<'_>);
}

/// Counts nothing.
impl Recorder for () {
    fn record(&self, _: &Event<'_>) {}
}
