//! Running responses and tunnels of the proxy: watches, logs, exec, port-forward. They outlive the request that was
//! authenticated, so they end when their user is revoked, when their token expires, at their maximum age and, if
//! clients can continue them elsewhere, at shutdown.
//!
//! ```text
//! forward ──supervise──▶ entry ──▶ future that completes when the stream has to end
//!                          ▲
//!        revocation list, shutdown: look at every entry; expiry, maximum age: a timer per stream
//! ```
// S255

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use http::StatusCode;
use navicert_authn::jwt::StatedExpiry;
use navicert_authn::metrics::sha256_label;
use navicert_authn::outcome::RefusalClass;
use navicert_authn::{AuthnDecision, ReloadableAuthenticator};
use navicert_client::transport::{BodyEnd, Timer};
use navicert_types::Clock;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

use super::settings::{MaxStreamAge, ProxySettings};
use super::{ObservedRequest, ProxyUser, RequestObserver, RequestOutcome};
use crate::audit::Reason;
use crate::forward::{EarlyEnd, StreamKind};

/// Number of watches that end together at shutdown: their clients reconnect at once, to other replicas.
const DRAIN_BATCH: usize = 100;
/// Pause between batches; shorter if the grace period is.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);

/// All running streams of a proxy.
pub(super) struct ActiveStreams {
    rules: StreamRules,
    authenticator: Arc<ReloadableAuthenticator>,
    observer: Arc<dyn RequestObserver>,
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
    state: Mutex<StreamsState>,
    /// Follows the revocation list; started with the first stream.
    revocation_task: OnceLock<AbortHandle>,
}

/// Which streams end, and when.
#[derive(Clone, Copy, Debug)]
struct StreamRules {
    on_revocation: bool,
    on_expiry: bool,
    max_age: MaxStreamAge,
}

#[derive(Default)]
struct StreamsState {
    streams: HashMap<u64, StreamEntry>,
    next_id: u64,
    is_draining: bool,
}

struct StreamEntry {
    kind: StreamKind,
    decision: Option<AuthnDecision>,
    /// `None` once the stream was told to end.
    end: Option<oneshot::Sender<EndCause>>,
}

impl StreamEntry {
    fn end(&mut self, cause: EndCause) {
        if let Some(end) = self.end.take() {
            // The stream may have ended by itself.
            let _ = end.send(cause);
        }
    }
}

/// Why a stream ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndCause {
    Revoked,
    Expired,
    MaxAge,
    Shutdown,
}

/// What is known about a stream's request.
#[derive(Debug)]
pub(super) struct StreamDetails {
    pub(super) user: ProxyUser,
    /// The decision on the token, if its issuer is configured.
    pub(super) decision: Option<AuthnDecision>,
    pub(super) expiry: StatedExpiry,
    pub(super) acting_as: Option<String>,
    pub(super) source: IpAddr,
    /// The request, if the observer is enabled.
    pub(super) observed: Option<ObservedRequest>,
    pub(super) status: StatusCode,
}

impl ActiveStreams {
    pub(super) fn new(
        settings: &ProxySettings,
        authenticator: Arc<ReloadableAuthenticator>,
        observer: Arc<dyn RequestObserver>,
        clock: Arc<dyn Clock>,
        timer: Arc<dyn Timer>,
    ) -> Self {
        let rules = StreamRules {
            on_revocation: settings.end_streams_on_revocation,
            on_expiry: settings.end_streams_on_expiry || settings.max_stream_age == MaxStreamAge::TokenExpiry,
            max_age: settings.max_stream_age,
        };
        ActiveStreams {
            rules,
            authenticator,
            observer,
            clock,
            timer,
            state: Mutex::default(),
            revocation_task: OnceLock::new(),
        }
    }

    /// Adds a stream until the returned future is dropped. The future completes when the stream has to end.
    pub(super) fn supervise(self: &Arc<Self>, kind: StreamKind, details: StreamDetails) -> EarlyEnd {
        let (end, ended) = oneshot::channel();
        let entry = StreamEntry { kind, decision: details.decision.clone(), end: Some(end) };
        let registration = self.register(entry);
        // Started here, so that it does not depend on when the body is polled.
        let deadline = self.deadline(details.expiry).map(|(limit, cause)| (self.timer.sleep(limit), cause));
        Box::pin(async move {
            let deadline = async {
                match deadline {
                    Some((limit, cause)) => {
                        limit.await;
                        cause
                    }
                    None => std::future::pending().await,
                }
            };
            let cause = tokio::select! {
                biased;
                Ok(cause) = ended => cause,
                cause = deadline => cause,
            };
            registration.streams.report(cause, &details);
            if kind == StreamKind::Watch { BodyEnd::Finish } else { BodyEnd::Abort }
        })
    }

    fn register(self: &Arc<Self>, entry: StreamEntry) -> Registration {
        let is_revocable = self.rules.on_revocation && entry.decision.is_some();
        if is_revocable {
            self.revocation_task.get_or_init(|| {
                // Subscribed before the entry is checked, so that no change is missed.
                let changes = self.authenticator.subscribe_revocations();
                tokio::spawn(follow_revocations(Arc::downgrade(self), changes)).abort_handle()
            });
        }
        let mut state = self.state();
        let id = state.next_id;
        state.next_id += 1;
        let is_draining = state.is_draining;
        let entry = state.streams.entry(id).insert_entry(entry).into_mut();
        if is_draining && entry.kind == StreamKind::Watch {
            entry.end(EndCause::Shutdown);
        }
        // The list may have changed since the token was verified.
        if is_revocable && self.is_revoked(entry) {
            entry.end(EndCause::Revoked);
        }
        drop(state);
        Registration { streams: Arc::clone(self), id }
    }

    /// Ends the streams of tokens that the revocation list contains.
    fn end_revoked(&self) {
        for entry in self.state().streams.values_mut() {
            if entry.end.is_some() && self.is_revoked(entry) {
                entry.end(EndCause::Revoked);
            }
        }
    }

    fn is_revoked(&self, entry: &StreamEntry) -> bool {
        entry.decision.as_ref().is_some_and(|decision| self.authenticator.is_revoked(decision))
    }

    /// Ends all watches, now and in the future, in batches that need at most half of `grace`.
    pub(super) fn end_watches(self: &Arc<Self>, grace: Duration) {
        let mut state = self.state();
        state.is_draining = true;
        let watches = state.streams.iter().filter(|(_, entry)| entry.kind == StreamKind::Watch);
        let watches: Vec<u64> = watches.map(|(id, _)| *id).collect();
        drop(state);
        let batches = u32::try_from(watches.len().div_ceil(DRAIN_BATCH)).unwrap_or(u32::MAX);
        let Some(pause) = (grace / 2).checked_div(batches) else { return };
        let (streams, pause) = (Arc::clone(self), pause.min(DRAIN_INTERVAL));
        tokio::spawn(async move {
            for batch in watches.chunks(DRAIN_BATCH) {
                streams.end(batch);
                streams.timer.sleep(pause).await;
            }
        });
    }

    fn end(&self, watches: &[u64]) {
        let mut state = self.state();
        for id in watches {
            if let Some(entry) = state.streams.get_mut(id) {
                entry.end(EndCause::Shutdown);
            }
        }
    }

    /// Time until a stream has to end, and why.
    fn deadline(&self, expiry: StatedExpiry) -> Option<(Duration, EndCause)> {
        let until_expiry = match expiry {
            _ if !self.rules.on_expiry => None,
            StatedExpiry::Never => None,
            // A stream that could outlive its token is not allowed.
            StatedExpiry::Unknown => Some(Duration::ZERO),
            StatedExpiry::At(expires) => {
                let left = expires.saturating_sub(self.clock.now().as_second());
                Some(Duration::from_secs(u64::try_from(left).unwrap_or(0)))
            }
        };
        let max_age = match self.rules.max_age {
            MaxStreamAge::After(limit) => Some((limit, EndCause::MaxAge)),
            MaxStreamAge::Off | MaxStreamAge::TokenExpiry => None,
        };
        let until_expiry = until_expiry.map(|limit| (limit, EndCause::Expired));
        until_expiry.into_iter().chain(max_age).min_by_key(|(limit, _)| *limit)
    }

    fn report(&self, cause: EndCause, details: &StreamDetails) {
        let reason = match cause {
            EndCause::Revoked => Reason::Refused(RefusalClass::Revoked),
            EndCause::Expired => Reason::Refused(RefusalClass::Expired),
            EndCause::MaxAge => Reason::MaxStreamAge,
            // Not a decision about the user.
            EndCause::Shutdown => return,
        };
        tracing::info!(event = "stream_ended", reason = reason.name(), "ended a running response or tunnel");
        let Some(observed) = &details.observed else { return };
        let user = details.user.user_ref();
        let decision = details.decision.as_ref();
        let jti = decision.and_then(AuthnDecision::jti).or_else(|| user.jti());
        self.observer.stream_ended(&RequestOutcome {
            user: Some(user),
            acting_as: details.acting_as.as_deref(),
            issuer: decision.and_then(AuthnDecision::issuer),
            jti_hash: jti.map(|jti| sha256_label(jti.as_bytes())).as_deref(),
            reason: Some(reason),
            source: Some(details.source),
            method: &observed.method,
            uri: &observed.uri,
            audit_id: None,
            traceparent: observed.traceparent,
            code: details.status.as_u16(),
            took: self.clock.monotonic().saturating_sub(observed.started),
        });
    }

    fn state(&self) -> MutexGuard<'_, StreamsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ActiveStreams {
    fn drop(&mut self) {
        if let Some(task) = self.revocation_task.get() {
            task.abort();
        }
    }
}

impl fmt::Debug for ActiveStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveStreams")
            .field("rules", &self.rules)
            .field("streams", &self.state().streams.len())
            .finish_non_exhaustive()
    }
}

async fn follow_revocations(streams: Weak<ActiveStreams>, mut changes: watch::Receiver<u64>) {
    while changes.changed().await.is_ok() {
        let Some(streams) = streams.upgrade() else { return };
        streams.end_revoked();
    }
}

/// Removes a stream when it is dropped.
struct Registration {
    streams: Arc<ActiveStreams>,
    id: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.streams.state().streams.remove(&self.id);
    }
}
