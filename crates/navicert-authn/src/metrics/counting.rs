//! Counts events in memory: upstream's metrics under upstream's names, and navicert's own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use navicert_types::exposition::Exposition;
use navicert_types::{Clock, Timestamp};

use super::{AuthnEvent, AuthnRecorder, RefreshTrigger};
use crate::model::outcome::{AuthnOutcome, RefusalClass};

/// Upper bounds of `apiserver_authentication_jwt_authenticator_latency_seconds`.
pub const LATENCY_BUCKETS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Upper bounds of `authentication_token_cache_request_duration_seconds`: the default buckets of Prometheus.
pub(crate) const CACHE_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Upper bounds of `authentication_duration_seconds`: doubling from one millisecond.
pub(crate) const DURATION_BUCKETS: [f64; 15] = [
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
];

/// The users that `authenticated_user_requests` distinguishes.
pub(super) const KNOWN_USERS: [&str; 7] = [
    "admin",
    "client",
    "kube_proxy",
    "kubelet",
    "system:serviceaccount:kube-system:default",
    "email_id",
    "other",
];

/// The results of `authentication_attempts`.
pub(super) const RESULTS: [&str; 3] = ["success", "failure", "error"];

/// Counts events in memory; [`AuthnMetrics::render`] returns the Prometheus text format.
pub struct AuthnMetrics {
    clock: Arc<dyn Clock>,
    /// `apiserver_id_hash`
    pub(super) instance: String,
    // Counted by every request, without a lock.
    pub(super) lookups: [Histogram<11>; 2],
    pub(super) fetches: [AtomicU64; 2],
    pub(super) in_flight: AtomicI64,
    pub(super) blocked: AtomicI64,
    pub(super) entries: AtomicU64,
    pub(super) attempts: [Histogram<15>; 3],
    pub(super) users: [AtomicU64; 7],
    // Counted by verifications and rarer events.
    locked: Mutex<LockedCounts>,
}

#[derive(Default)]
pub(super) struct LockedCounts {
    pub(super) issuers: BTreeMap<String, IssuerCounts>,
    pub(super) reloads: [(u64, Option<Timestamp>); 2],
    /// The hash of the configuration.
    pub(super) configuration: Option<String>,
    pub(super) refreshes: BTreeMap<RefreshTrigger, u64>,
}

/// Counters of one issuer.
#[derive(Default)]
pub(super) struct IssuerCounts {
    /// `jwt_issuer_hash`
    pub(super) hash: String,
    /// Failure, success.
    pub(super) latency: [Histogram<12>; 2],
    pub(super) rejections: BTreeMap<&'static str, u64>,
    pub(super) fetched: [Option<Timestamp>; 2],
    pub(super) key_set: Option<String>,
    /// Usable, skipped.
    pub(super) keys: Option<(usize, usize)>,
    pub(super) is_ready: Option<bool>,
}

impl AuthnMetrics {
    /// Creates empty metrics. `instance` is the name of this process.
    // S196
    pub fn new(instance: &str, clock: Arc<dyn Clock>) -> Self {
        AuthnMetrics {
            clock,
            instance: sha256_label(instance.as_bytes()),
            lookups: Default::default(),
            fetches: Default::default(),
            in_flight: AtomicI64::new(0),
            blocked: AtomicI64::new(0),
            entries: AtomicU64::new(0),
            attempts: Default::default(),
            users: Default::default(),
            locked: Mutex::default(),
        }
    }

    /// Writes all metrics.
    pub fn collect(&self, exposition: &mut Exposition) {
        super::text::collect(self, exposition);
    }

    /// Renders the Prometheus text format.
    pub fn render(&self) -> String {
        let mut exposition = Exposition::default();
        self.collect(&mut exposition);
        exposition.into_text()
    }

    pub(super) fn locked(&self) -> MutexGuard<'_, LockedCounts> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update_issuer(&self, issuer: &str, change: impl FnOnce(&mut IssuerCounts)) {
        let mut rest = self.locked();
        if let Some(counts) = rest.issuers.get_mut(issuer) {
            return change(counts);
        }
        let mut counts = IssuerCounts { hash: sha256_label(issuer.as_bytes()), ..IssuerCounts::default() };
        change(&mut counts);
        rest.issuers.insert(issuer.to_owned(), counts);
    }

    fn record_attempt(&self, outcome: &AuthnOutcome, took: Duration) {
        let [success, failure, error] = &self.attempts;
        let result = match outcome {
            AuthnOutcome::Authenticated(user) => {
                self.record_user(user.username());
                success
            }
            AuthnOutcome::NoOpinion(_) => failure,
            AuthnOutcome::Rejected(_) => error,
        };
        result.observe(took, &DURATION_BUCKETS);
    }

    /// Usernames are not used as labels: there are too many.
    fn record_user(&self, name: &str) {
        let [known @ .., email, other] = &self.users;
        let found = KNOWN_USERS.iter().zip(known).find(|(user, _)| **user == name);
        let counter = match found {
            Some((_, counter)) => counter,
            None if name.contains('@') => email,
            None => other,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn record_evaluation(&self, issuer: &str, refusal: Option<RefusalClass>, took: Duration) {
        self.update_issuer(issuer, |counts| {
            let [failure, success] = &counts.latency;
            let result = if refusal.is_some() { failure } else { success };
            result.observe(took, &LATENCY_BUCKETS);
            if let Some(class) = refusal {
                *counts.rejections.entry(class.name()).or_default() += 1;
            }
        });
    }
}

impl AuthnRecorder for AuthnMetrics {
    fn record(&self, event: &AuthnEvent<'_>) {
        match *event {
            AuthnEvent::Attempt { outcome, took } => self.record_attempt(outcome, took),
            AuthnEvent::CacheLookup { is_hit, took } => {
                let [miss, hit] = &self.lookups;
                // Upstream counts whole milliseconds.
                let took = Duration::from_millis(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
                (if is_hit { hit } else { miss }).observe(took, &CACHE_BUCKETS);
            }
            AuthnEvent::WaitStarted => {
                self.blocked.fetch_add(1, Ordering::Relaxed);
            }
            AuthnEvent::WaitEnded => {
                self.blocked.fetch_sub(1, Ordering::Relaxed);
            }
            AuthnEvent::FetchStarted => {
                self.in_flight.fetch_add(1, Ordering::Relaxed);
            }
            AuthnEvent::FetchEnded { is_error } => {
                self.in_flight.fetch_sub(1, Ordering::Relaxed);
                let [ok, error] = &self.fetches;
                (if is_error { error } else { ok }).fetch_add(1, Ordering::Relaxed);
            }
            AuthnEvent::CacheEntries(entries) => self.entries.store(entries as u64, Ordering::Relaxed),
            AuthnEvent::TokenEvaluated { issuer, refusal, took } => {
                self.record_evaluation(issuer, refusal, took);
            }
            AuthnEvent::Reloaded { is_success } => {
                let now = self.clock.now();
                let [failure, success] = &mut self.locked().reloads;
                let (count, last) = if is_success { success } else { failure };
                *count += 1;
                *last = Some(now);
            }
            AuthnEvent::Configuration { text } => self.locked().configuration = Some(sha256_label(text)),
            // Latencies and rejections are cumulative and stay.
            AuthnEvent::IssuerRemoved { issuer } => self.update_issuer(issuer, |counts| {
                (counts.fetched, counts.key_set, counts.keys, counts.is_ready) = Default::default();
            }),
            AuthnEvent::IssuerReady { issuer, is_ready } => {
                self.update_issuer(issuer, |counts| counts.is_ready = Some(is_ready));
            }
            AuthnEvent::KeysRefreshed { trigger } => {
                *self.locked().refreshes.entry(trigger).or_default() += 1;
            }
            AuthnEvent::KeysFetched { issuer, body } => {
                let (now, hash) = (self.clock.now(), body.map(sha256_label));
                self.update_issuer(issuer, |counts| {
                    let [failure, success] = &mut counts.fetched;
                    *(if hash.is_some() { success } else { failure }) = Some(now);
                    counts.key_set = hash.or(counts.key_set.take());
                });
            }
            AuthnEvent::Keys { issuer, usable, skipped } => {
                self.update_issuer(issuer, |counts| counts.keys = Some((usable, skipped)));
            }
        }
    }
}

impl fmt::Debug for AuthnMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthnMetrics").field("instance", &self.instance).finish_non_exhaustive()
    }
}

/// A histogram of durations.
pub(super) struct Histogram<const N: usize> {
    /// Number of observations between the previous bound and this one.
    pub(super) buckets: [AtomicU64; N],
    pub(super) count: AtomicU64,
    pub(super) nanoseconds: AtomicU64,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        let zero = |_| AtomicU64::new(0);
        let (count, nanoseconds) = (AtomicU64::new(0), AtomicU64::new(0));
        Histogram { buckets: std::array::from_fn(zero), count, nanoseconds }
    }
}

impl<const N: usize> Histogram<N> {
    fn observe(&self, took: Duration, bounds: &[f64; N]) {
        let seconds = took.as_secs_f64();
        if let Some((bucket, _)) = self.buckets.iter().zip(bounds).find(|(_, bound)| seconds <= **bound) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

/// A hash for labels and logs: `sha256:` and the digest in hexadecimal; empty for an empty input.
pub fn sha256_label(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    if bytes.is_empty() {
        return String::new();
    }
    let mut text = "sha256:".to_owned();
    for byte in digest(&SHA256, bytes).as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
