//! What happened, for whoever counts it.

use std::fmt;

/// Something worth counting.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'e> {
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
