//! What happens to credentials, counted under upstream's names (client-credentials.md §5). The rest of the crate only
//! knows the [`Recorder`]; [`Metrics`] is one that counts and can be read as Prometheus text.

#[cfg(test)]
mod tests;
mod text;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use navicert_types::Timestamp;

/// How a run ended, as `call_status` says it (C502).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallStatus {
    /// The process exited with 0, whatever it printed.
    NoError,
    /// The process exited with another code, or died by a signal.
    PluginExecutionError,
    /// There is no such program, or it would not start.
    PluginNotFoundError,
    /// Anything else: it ran past its limit, printed too much, was lost.
    ClientInternalError,
}

impl CallStatus {
    /// The value of the label.
    pub fn label(self) -> &'static str {
        match self {
            CallStatus::NoError => "no_error",
            CallStatus::PluginExecutionError => "plugin_execution_error",
            CallStatus::PluginNotFoundError => "plugin_not_found_error",
            CallStatus::ClientInternalError => "client_internal_error",
        }
    }
}

/// Why a plugin was run (C505).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefreshReason {
    /// There was no credential yet.
    Initial,
    /// The credential was about to expire, or had.
    Expired,
    /// A server answered 401.
    Unauthorized,
    /// A server ended a handshake because of the certificate.
    TlsAlert,
    /// Somebody asked for it.
    Manual,
}

impl RefreshReason {
    /// The value of the label.
    pub fn label(self) -> &'static str {
        match self {
            RefreshReason::Initial => "initial",
            RefreshReason::Expired => "expired",
            RefreshReason::Unauthorized => "unauthorized",
            RefreshReason::TlsAlert => "tls_alert",
            RefreshReason::Manual => "manual",
        }
    }
}

/// What came of another look at the file of a certificate authority (C181).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AuthorityReload {
    /// It is as it was.
    Unchanged,
    /// It is another one, and is used from now on.
    Updated,
    /// It could not be read.
    ReadError,
    /// There was nothing in it.
    Empty,
    /// There was no certificate in it.
    ParseError,
}

impl AuthorityReload {
    /// The values of the labels `result` and `reason`.
    pub fn labels(self) -> (&'static str, &'static str) {
        match self {
            AuthorityReload::Unchanged => ("success", "unchanged"),
            AuthorityReload::Updated => ("success", "updated"),
            AuthorityReload::ReadError => ("failure", "read_error"),
            AuthorityReload::Empty => ("failure", "empty"),
            AuthorityReload::ParseError => ("failure", "ca_parse_error"),
        }
    }
}

/// Which authenticator something is about; unique within the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuthenticatorId(pub(crate) u64);

/// Somebody who counts. Every method does nothing unless it is implemented; all are called from wherever a run
/// happens to be and should not block.
///
/// ```
/// use navicert_client::metrics::{CallStatus, Recorder};
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::time::Duration;
///
/// #[derive(Debug, Default)]
/// struct Failures(AtomicU64);
///
/// impl Recorder for Failures {
///     fn call(&self, status: CallStatus, _code: i32, _took: Duration) {
///         if status != CallStatus::NoError {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
/// ```
pub trait Recorder: fmt::Debug + Send + Sync {
    /// A run was started or attempted: `rest_client_exec_plugin_call_total` and `…_run_seconds`.
    fn call(&self, status: CallStatus, code: i32, took: Duration) {
        let _ = (status, code, took);
    }

    /// A policy decided: `rest_client_exec_plugin_policy_call_total` (C503).
    fn policy(&self, allowed: bool) {
        let _ = allowed;
    }

    /// A run begins: `rest_client_exec_plugin_refresh_total`.
    fn refresh(&self, reason: RefreshReason) {
        let _ = reason;
    }

    /// A certificate was replaced by another one, or by none, at this age:
    /// `rest_client_exec_plugin_certificate_rotation_age`.
    fn rotation(&self, age: Duration) {
        let _ = age;
    }

    /// The authenticator's credential now has a certificate that ends then, or has none any more:
    /// `rest_client_exec_plugin_ttl_seconds`. Called after every successful run, and when the authenticator goes away.
    fn certificate(&self, authenticator: AuthenticatorId, not_after: Option<Timestamp>) {
        let _ = (authenticator, not_after);
    }

    /// The file of a certificate authority was looked at again: `rest_client_transport_ca_reload_total`.
    fn authority_reload(&self, outcome: AuthorityReload) {
        let _ = outcome;
    }

    /// The authenticator waits after failures, or no longer does: `rest_client_exec_plugin_backoff_active`.
    fn backoff(&self, authenticator: AuthenticatorId, active: bool) {
        let _ = (authenticator, active);
    }
}

/// Counts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unrecorded;

impl Recorder for Unrecorded {}

/// How many buckets both histograms have.
const BUCKETS: usize = 11;

/// Upper bounds of `rest_client_exec_plugin_certificate_rotation_age`, in seconds (C501).
pub const ROTATION_AGE_BUCKETS: [f64; BUCKETS] = [
    600.0,
    1_800.0,
    3_600.0,
    14_400.0,
    86_400.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
    124_416_000.0,
];

/// Upper bounds of `rest_client_exec_plugin_run_seconds` (C505).
pub const RUN_BUCKETS: [f64; BUCKETS] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// Counts everything, in memory.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    calls: HashMap<(CallStatus, i32), u64>,
    runs: HashMap<CallStatus, Histogram>,
    policy: [u64; 2],
    refreshes: HashMap<RefreshReason, u64>,
    rotation: Histogram,
    ends: HashMap<AuthenticatorId, Timestamp>,
    waiting: HashSet<AuthenticatorId>,
    reloads: HashMap<AuthorityReload, u64>,
}

#[derive(Clone, Debug, Default)]
struct Histogram {
    /// How many were at most the bound of the same index; not cumulative.
    buckets: [u64; BUCKETS],
    count: u64,
    sum: f64,
}

impl Histogram {
    fn observe(&mut self, value: f64, bounds: &[f64; BUCKETS]) {
        self.count += 1;
        self.sum += value;
        if let Some((bucket, _)) = self.buckets.iter_mut().zip(bounds).find(|(_, bound)| value <= **bound) {
            *bucket += 1;
        }
    }
}

impl Metrics {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Metrics::default()
    }

    /// How many runs ended this way.
    pub fn calls(&self, status: CallStatus, code: i32) -> u64 {
        self.lock().calls.get(&(status, code)).copied().unwrap_or_default()
    }

    /// How many runs there were for this reason.
    pub fn refreshes(&self, reason: RefreshReason) -> u64 {
        self.lock().refreshes.get(&reason).copied().unwrap_or_default()
    }

    /// How often a policy said yes, and no.
    pub fn policy_decisions(&self) -> (u64, u64) {
        let [denied, allowed] = self.lock().policy;
        (allowed, denied)
    }

    /// How often a certificate was replaced, and the sum of their ages in seconds.
    pub fn rotations(&self) -> (u64, f64) {
        let counts = self.lock();
        (counts.rotation.count, counts.rotation.sum)
    }

    /// Seconds until the first certificate in use ends: negative if it has, infinite if there is none.
    pub fn ttl_seconds(&self, now: Timestamp) -> f64 {
        let first = self.lock().ends.values().min().copied();
        first.map_or(f64::INFINITY, |end| end.duration_since(now).as_secs_f64())
    }

    /// How often a look at the file of a certificate authority ended so.
    pub fn authority_reloads(&self, outcome: AuthorityReload) -> u64 {
        self.lock().reloads.get(&outcome).copied().unwrap_or_default()
    }

    /// How many authenticators wait after failures.
    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Everything as Prometheus text.
    pub fn render(&self, now: Timestamp) -> String {
        let ttl = self.ttl_seconds(now);
        text::render(&self.lock(), ttl)
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder for Metrics {
    fn call(&self, status: CallStatus, code: i32, took: Duration) {
        let mut counts = self.lock();
        *counts.calls.entry((status, code)).or_default() += 1;
        counts.runs.entry(status).or_default().observe(took.as_secs_f64(), &RUN_BUCKETS);
    }

    fn policy(&self, allowed: bool) {
        let [denied, permitted] = &mut self.lock().policy;
        *if allowed { permitted } else { denied } += 1;
    }

    fn refresh(&self, reason: RefreshReason) {
        *self.lock().refreshes.entry(reason).or_default() += 1;
    }

    fn rotation(&self, age: Duration) {
        self.lock().rotation.observe(age.as_secs_f64(), &ROTATION_AGE_BUCKETS);
    }

    fn certificate(&self, authenticator: AuthenticatorId, not_after: Option<Timestamp>) {
        let mut counts = self.lock();
        match not_after {
            Some(end) => drop(counts.ends.insert(authenticator, end)),
            None => drop(counts.ends.remove(&authenticator)),
        }
    }

    fn authority_reload(&self, outcome: AuthorityReload) {
        *self.lock().reloads.entry(outcome).or_default() += 1;
    }

    fn backoff(&self, authenticator: AuthenticatorId, active: bool) {
        let mut counts = self.lock();
        if active {
            counts.waiting.insert(authenticator);
        } else {
            counts.waiting.remove(&authenticator);
        }
    }
}
