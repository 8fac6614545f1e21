//! State shared by authenticators of the same plugin: the cached credential, its expiry, and the back-off after failures.
//! Does not run the plugin.
// C410–C414, C441–C443

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use navicert_plugin::{Backoff, SingleFlight};
use navicert_types::time::Time;
use navicert_types::{Clock, Timestamp, error_chain};

use super::error::ExecError;
use super::install_help::HelpRateLimiter;
use super::response::PluginOutput;
use super::settings::ExecSettings;
use crate::context::ClientContext;
use crate::credential::{Credential, Generation, RejectedResponse, RequestOrigin};
use crate::metrics::{AuthenticatorId, Recorder, RefreshReason};

/// Shared by every authenticator with the same key; dropped with the last of them.
#[derive(Debug)]
pub(super) struct SharedCredential {
    id: AuthenticatorId,
    clock: Arc<dyn Clock>,
    recorder: Arc<dyn Recorder>,
    leeway: Duration,
    past_expiry: Duration,
    interactive_wait: Duration,
    cached: ArcSwapOption<CachedCredential>,
    state: Mutex<State>,
    pub(super) flights: SingleFlight<(), Arc<Credential>, ExecError>,
}

/// The credential and its validity, computed when it was obtained.
#[derive(Debug)]
struct CachedCredential {
    credential: Arc<Credential>,
    /// No refresh until then, inclusive.
    fresh_until: Option<Timestamp>,
    /// May be sent until then, inclusive.
    usable_until: Option<Timestamp>,
}

/// Why a new credential is needed.
#[derive(Clone, Debug)]
pub(super) enum RefreshCause {
    /// None is cached, or it is stale.
    Stale(RequestOrigin),
    /// A server rejected this generation.
    Rejected { generation: Generation, by: RefreshReason, response: Option<Arc<RejectedResponse>> },
    /// The caller requested a refresh.
    Manual,
}

/// How far a failed attempt got.
#[derive(Clone, Copy, Debug)]
pub(super) enum Attempt {
    /// No program was started: interactive mode or the policy prevented it. Checking again is cheap.
    NotStarted,
    /// A program was started, or was not found.
    Started {
        /// The program had the terminal.
        had_terminal: bool,
    },
}

/// What to do about a rejected credential.
#[derive(Debug)]
pub(super) enum RejectionAction {
    /// Use this newer credential, which another request has obtained.
    UseRotated(Arc<Credential>),
    /// Do not run the plugin yet.
    Wait,
    /// Run the plugin.
    Run,
}

#[derive(Debug)]
struct State {
    last_generation: Option<Generation>,
    /// Back-off after failed runs.
    // C441
    failures: Option<Backoff>,
    failure: Option<Arc<ExecError>>,
    /// The last failed run had the terminal.
    // C443
    failed_interactively: bool,
    /// Back-off after runs whose credential was rejected again.
    // C442
    rejections: Option<Backoff>,
    /// The last rejected generation.
    last_rejected: Option<Generation>,
    /// The current credential was obtained because its predecessor was rejected.
    obtained_after_rejection: bool,
    /// When it was obtained, on the monotonic clock.
    obtained_at: Duration,
    install_help: HelpRateLimiter,
    warned_expired_on_arrival: bool,
}

impl SharedCredential {
    pub(super) fn new(settings: &ExecSettings, client_context: &ClientContext) -> Self {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let backoff =
            || settings.backoff.map(|backoff| Backoff::new(backoff, Arc::clone(&client_context.clock)));
        SharedCredential {
            id: AuthenticatorId(IDS.fetch_add(1, Ordering::Relaxed)),
            clock: Arc::clone(&client_context.clock),
            recorder: Arc::clone(&client_context.recorder),
            leeway: settings.leeway,
            past_expiry: settings.past_expiry,
            interactive_wait: settings.interactive_backoff,
            cached: ArcSwapOption::empty(),
            state: Mutex::new(State {
                last_generation: None,
                failures: backoff(),
                failure: None,
                failed_interactively: false,
                rejections: backoff(),
                last_rejected: None,
                obtained_after_rejection: false,
                obtained_at: Duration::ZERO,
                install_help: HelpRateLimiter::default(),
                warned_expired_on_arrival: false,
            }),
            flights: SingleFlight::new(),
        }
    }

    /// The credential, if it needs no refresh.
    // C410
    pub(super) fn fresh(&self) -> Option<Arc<Credential>> {
        let published = self.cached.load();
        let published = published.as_ref()?;
        let is_fresh = published.fresh_until.is_none_or(|until| self.clock.now() <= until);
        is_fresh.then(|| Arc::clone(&published.credential))
    }

    /// The credential, unless it has expired.
    // C411
    fn usable(&self) -> Option<Arc<Credential>> {
        let published = self.cached.load_full()?;
        let is_usable = published.usable_until.is_none_or(|until| self.clock.now() <= until);
        is_usable.then(|| Arc::clone(&published.credential))
    }

    /// The cached credential, stale or not.
    fn latest(&self) -> Option<Arc<Credential>> {
        self.cached.load().as_ref().map(|published| Arc::clone(&published.credential))
    }

    /// The result if no run is needed: another request has already refreshed the credential, or the plugin is in back-off.
    // C441
    pub(super) fn resolve_without_run(
        &self,
        cause: &RefreshCause,
    ) -> Option<Result<Arc<Credential>, ExecError>> {
        match cause {
            RefreshCause::Stale(_) => {
                if let Some(fresh) = self.fresh() {
                    return Some(Ok(fresh));
                }
            }
            RefreshCause::Rejected { generation, .. } => {
                if let Some(other) = self.latest().filter(|latest| latest.generation != *generation) {
                    return Some(Ok(other));
                }
            }
            RefreshCause::Manual => return None,
        }
        let state = self.lock();
        let skip_backoff =
            matches!(cause, RefreshCause::Stale(RequestOrigin::Foreground)) && state.failed_interactively;
        let wait = state.failures.as_ref()?.remaining().filter(|_| !skip_backoff)?;
        let failure = state.failure.clone()?;
        drop(state);
        // The old credential is usable until it expires.
        let old = self.usable().filter(|_| matches!(cause, RefreshCause::Stale(_)));
        Some(old.ok_or(ExecError::BackingOff { failure, wait }))
    }

    /// Decides what to do about a rejected credential: one immediate run per generation; if the new credential is rejected
    /// too, back off as after failures.
    // C430, C434, C442
    pub(super) fn on_rejection(&self, generation: Generation) -> RejectionAction {
        let mut state = self.lock();
        let Some(latest) = self.latest() else { return RejectionAction::Wait };
        if latest.generation != generation {
            return if latest.generation > generation {
                RejectionAction::UseRotated(latest)
            } else {
                RejectionAction::Wait
            };
        }
        let now = self.clock.monotonic();
        let is_first = state.last_rejected.replace(generation) != Some(generation);
        let age = now.saturating_sub(state.obtained_at);
        let got_by_refusal = state.obtained_after_rejection;
        let Some(rejections) = &mut state.rejections else { return RejectionAction::Run };
        if is_first {
            // A credential that was accepted for a while resets the back-off.
            if got_by_refusal && age < MIN_ACCEPTED_LIFETIME {
                rejections.record_failure();
            } else {
                rejections.record_success();
            }
        }
        if rejections.remaining().is_some() { RejectionAction::Wait } else { RejectionAction::Run }
    }

    /// The refresh reason for metrics.
    pub(super) fn reason(&self, cause: &RefreshCause) -> RefreshReason {
        match cause {
            RefreshCause::Manual => RefreshReason::Manual,
            RefreshCause::Rejected { by, .. } => *by,
            RefreshCause::Stale(_) if self.cached.load().is_none() => RefreshReason::Initial,
            RefreshCause::Stale(_) => RefreshReason::Expired,
        }
    }

    /// Replaces the cached credential atomically. An unchanged credential keeps its generation.
    // C414
    pub(super) fn install(&self, output: PluginOutput, cause: &RefreshCause) -> Arc<Credential> {
        let now = self.clock.now();
        let mut state = self.lock();
        let old = self.latest();
        let same = old.as_ref().filter(|old| is_same(old, &output)).map(|old| old.generation);
        let next = state.last_generation.map_or(Generation::FIRST, Generation::next);
        let credential = Arc::new(Credential {
            generation: same.unwrap_or(next),
            authorization: output.authorization,
            identity: output.identity,
            expires: output.expires.map(Time::timestamp),
        });
        let is_rejection = matches!(cause, RefreshCause::Rejected { .. });
        if same.is_none() {
            state.last_generation = Some(next);
            state.obtained_after_rejection = is_rejection;
            state.obtained_at = self.clock.monotonic();
        } else if let Some(rejections) = state.rejections.as_mut().filter(|_| is_rejection) {
            rejections.record_failure();
        }
        let (fresh_until, usable_until) = self.validity(credential.expires, now, &mut state);
        self.clear_failures(&mut state);
        self.cached.store(Some(Arc::new(CachedCredential {
            credential: Arc::clone(&credential),
            fresh_until,
            usable_until,
        })));
        drop(state);
        self.record_certificate(old.as_deref(), &credential, now);
        credential
    }

    /// Until when a credential is fresh, and until when it is usable.
    // C410–C412
    fn validity(
        &self,
        expires: Option<Timestamp>,
        now: Timestamp,
        state: &mut State,
    ) -> (Option<Timestamp>, Option<Timestamp>) {
        let Some(end) = expires else { return (None, None) };
        if now > end && !self.past_expiry.is_zero() {
            if !std::mem::replace(&mut state.warned_expired_on_arrival, true) {
                tracing::warn!(
                    event = "exec_credential_expired_on_arrival",
                    expires = %end,
                    "exec plugin returned an expired credential; check for clock skew"
                );
            }
            let until = now.saturating_add(self.past_expiry).unwrap_or(Timestamp::MAX);
            return (Some(until), Some(until));
        }
        (Some(fresh_until(end, now, self.leeway)), Some(end))
    }

    /// Handles a failed attempt. A stale credential that has not expired is still returned.
    // C411
    pub(super) fn handle_failure(
        &self,
        error: ExecError,
        attempt: Attempt,
        cause: &RefreshCause,
    ) -> Result<Arc<Credential>, ExecError> {
        let wait = match attempt {
            Attempt::Started { had_terminal } => self.record_failure(&error, had_terminal),
            // No back-off applies, but do not check again for every request.
            Attempt::NotStarted => Duration::from_secs(1),
        };
        let old = self.usable().filter(|_| matches!(cause, RefreshCause::Stale(_)));
        let Some(old) = old else { return Err(error) };
        tracing::warn!(
            event = "exec_credential_refresh_failed",
            error = error_chain(&error),
            "failed to refresh credential from exec plugin; using the cached one until it expires"
        );
        self.defer_refresh(wait);
        Ok(old)
    }

    /// Counts a failed run and returns the delay before the next one.
    // C441, C443
    fn record_failure(&self, error: &ExecError, had_terminal: bool) -> Duration {
        let mut state = self.lock();
        state.failure = Some(Arc::new(error.clone()));
        state.failed_interactively = had_terminal;
        let floor = if had_terminal { self.interactive_wait } else { Duration::ZERO };
        let Some(failures) = &mut state.failures else { return Duration::ZERO };
        self.recorder.backoff(self.id, true);
        failures.record_failure_with_min_delay(floor)
    }

    /// Treats the cached credential as fresh for `wait` after a failed early refresh.
    fn defer_refresh(&self, wait: Duration) {
        let Some(published) = self.cached.load_full() else { return };
        let until = self.clock.now().saturating_add(wait).unwrap_or(Timestamp::MAX);
        let fresh_until = published.usable_until.map(|end| end.min(until));
        let credential = Arc::clone(&published.credential);
        let usable_until = published.usable_until;
        self.cached.store(Some(Arc::new(CachedCredential { credential, fresh_until, usable_until })));
    }

    fn clear_failures(&self, state: &mut State) {
        if let Some(failures) = &mut state.failures {
            if failures.failures() > 0 {
                self.recorder.backoff(self.id, false);
            }
            failures.record_success();
        }
        state.failure = None;
        state.failed_interactively = false;
    }

    /// Whether installation help may be printed once more.
    // C322
    pub(super) fn take_install_help(&self) -> bool {
        let now = self.clock.monotonic();
        self.lock().install_help.take(now)
    }

    fn record_certificate(&self, old: Option<&Credential>, new: &Credential, now: Timestamp) {
        let end = |credential: &Credential| credential.identity.as_ref().map(|identity| identity.validity());
        self.recorder.certificate(self.id, end(new).map(|validity| validity.not_after));
        let rotated = old.filter(|old| !old.has_same_identity(new)).and_then(end);
        if let Some(validity) = rotated {
            let age = Duration::try_from(now.duration_since(validity.not_before)).unwrap_or_default();
            self.recorder.rotation(age);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until when, inclusive, a credential needs no refresh: the leeway, at most a tenth of its lifetime, before its end.
// C411
pub(super) fn fresh_until(end: Timestamp, now: Timestamp, leeway: Duration) -> Timestamp {
    let lifetime = Duration::try_from(end.duration_since(now)).unwrap_or_default();
    let leeway = leeway.min(lifetime / 10);
    if leeway.is_zero() {
        return end;
    }
    // One nanosecond before the refresh is due.
    end.saturating_sub(leeway.saturating_add(Duration::from_nanos(1))).unwrap_or(Timestamp::MIN)
}

/// A credential accepted for at least this long counts as having worked; a shorter lifetime is indistinguishable from a
/// credential that never worked.
const MIN_ACCEPTED_LIFETIME: Duration = Duration::from_secs(30);

/// Whether both are the same to a server, regardless of expiry.
fn is_same(old: &Credential, output: &PluginOutput) -> bool {
    let same_identity = match (&old.identity, &output.identity) {
        (None, None) => true,
        (Some(one), Some(other)) => one.has_same_chain(other),
        _ => false,
    };
    same_identity && old.authorization == output.authorization
}

/// Removes this authenticator's certificate and back-off from the metrics.
// C504
impl Drop for SharedCredential {
    fn drop(&mut self) {
        self.recorder.certificate(self.id, None);
        self.recorder.backoff(self.id, false);
    }
}
