//! Metrics about credentials, with the names that client-go uses. The rest of the crate only uses the [`Recorder`]
//! trait; [`Metrics`] is an implementation that renders Prometheus text.

#[cfg(test)]
mod tests;
mod text;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use navicert_types::Timestamp;

/// How a plugin run ended: the label `call_status`.
// C502
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CallStatus {
    /// The process exited with 0, whatever it printed.
    NoError,
    /// The process exited with another code, or was killed by a signal.
    PluginExecutionError,
    /// The program does not exist or could not be started.
    PluginNotFoundError,
    /// Any other failure: timeout, too much output, lost process.
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

/// Why a plugin was run.
// C505
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RefreshReason {
    /// There was no credential yet.
    Initial,
    /// The credential had expired or was about to.
    Expired,
    /// A server responded with 401.
    Unauthorized,
    /// A server ended a handshake because of the certificate.
    TlsAlert,
    /// Requested by the caller.
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

/// The outcome of reloading a certificate authority file.
// C181
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AuthorityReload {
    /// The file is unchanged.
    Unchanged,
    /// The file has changed, and its certificates are now in use.
    Updated,
    /// The file could not be read.
    ReadError,
    /// The file was empty.
    Empty,
    /// The file contained no valid certificate.
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

/// Identifies an authenticator; unique within the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuthenticatorId(pub(crate) u64);

/// Receives metrics. Every method does nothing by default. They are called on the threads that run plugins and must not
/// block.
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

    /// The plugin policy decided: `rest_client_exec_plugin_policy_call_total`.
    // C503
    fn policy(&self, allowed: bool) {
        let _ = allowed;
    }

    /// A run begins: `rest_client_exec_plugin_refresh_total`.
    fn refresh(&self, reason: RefreshReason) {
        let _ = reason;
    }

    /// A certificate of this age was replaced or removed: `rest_client_exec_plugin_certificate_rotation_age`.
    fn rotation(&self, age: Duration) {
        let _ = age;
    }

    /// The authenticator's certificate now expires at this time, or it has none any more:
    /// `rest_client_exec_plugin_ttl_seconds`. Called after every successful run, and when the authenticator is dropped.
    fn certificate(&self, authenticator: AuthenticatorId, not_after: Option<Timestamp>) {
        let _ = (authenticator, not_after);
    }

    /// A certificate authority file was reloaded: `rest_client_transport_ca_reload_total`.
    fn authority_reload(&self, outcome: AuthorityReload) {
        let _ = outcome;
    }

    /// The authenticator started or stopped backing off: `rest_client_exec_plugin_backoff_active`.
    fn backoff(&self, authenticator: AuthenticatorId, active: bool) {
        let _ = (authenticator, active);
    }
}

/// A recorder that discards everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopRecorder;

impl Recorder for NoopRecorder {}

/// Number of buckets of both histograms.
const BUCKETS: usize = 11;

/// Upper bounds of `rest_client_exec_plugin_certificate_rotation_age`, in seconds.
// C501
pub(crate) const ROTATION_AGE_BUCKETS: [f64; BUCKETS] = [
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

/// Upper bounds of `rest_client_exec_plugin_run_seconds`.
// C505
pub(crate) const RUN_BUCKETS: [f64; BUCKETS] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// A recorder that counts everything in memory.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    calls: HashMap<(CallStatus, i32), u64>,
    runs: HashMap<CallStatus, Histogram>,
    policy: [u64; 2],
    refreshes: HashMap<RefreshReason, u64>,
    rotation: Histogram,
    expiries: HashMap<AuthenticatorId, Timestamp>,
    backing_off: HashSet<AuthenticatorId>,
    reloads: HashMap<AuthorityReload, u64>,
}

#[derive(Clone, Debug, Default)]
struct Histogram {
    /// Observations in the bucket of the same index; not cumulative.
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
    /// Creates a recorder with all counts at zero.
    pub fn new() -> Self {
        Metrics::default()
    }

    /// Number of runs that ended this way.
    pub fn calls(&self, status: CallStatus, code: i32) -> u64 {
        self.lock().calls.get(&(status, code)).copied().unwrap_or_default()
    }

    /// Number of runs for this reason.
    pub fn refreshes(&self, reason: RefreshReason) -> u64 {
        self.lock().refreshes.get(&reason).copied().unwrap_or_default()
    }

    /// How often the policy allowed and denied a run.
    pub fn policy_decisions(&self) -> (u64, u64) {
        let [denied, allowed] = self.lock().policy;
        (allowed, denied)
    }

    /// Number of certificate rotations, and the sum of the certificates' ages in seconds.
    pub fn rotations(&self) -> (u64, f64) {
        let counts = self.lock();
        (counts.rotation.count, counts.rotation.sum)
    }

    /// Seconds until the first certificate in use expires: negative if it has expired, infinite if there is none.
    pub fn ttl_seconds(&self, now: Timestamp) -> f64 {
        let first = self.lock().expiries.values().min().copied();
        first.map_or(f64::INFINITY, |end| end.duration_since(now).as_secs_f64())
    }

    /// Number of certificate authority reloads with this outcome.
    pub fn authority_reloads(&self, outcome: AuthorityReload) -> u64 {
        self.lock().reloads.get(&outcome).copied().unwrap_or_default()
    }

    /// Number of authenticators that are backing off.
    pub fn backing_off(&self) -> usize {
        self.lock().backing_off.len()
    }

    /// Renders all metrics as Prometheus text.
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
            Some(end) => drop(counts.expiries.insert(authenticator, end)),
            None => drop(counts.expiries.remove(&authenticator)),
        }
    }

    fn authority_reload(&self, outcome: AuthorityReload) {
        *self.lock().reloads.entry(outcome).or_default() += 1;
    }

    fn backoff(&self, authenticator: AuthenticatorId, active: bool) {
        let mut counts = self.lock();
        if active {
            counts.backing_off.insert(authenticator);
        } else {
            counts.backing_off.remove(&authenticator);
        }
    }
}
