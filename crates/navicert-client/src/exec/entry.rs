//! What authenticators that are alike share: the credential, when it is stale, and how long failures are waited out
//! (client-credentials.md C410–C414, C441–C443). It runs nothing itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use navicert_plugin::{Backoff, SingleFlight};
use navicert_types::time::Time;
use navicert_types::{Clock, Timestamp};

use super::error::ExecError;
use super::install_help::Allowance;
use super::response::Output;
use super::settings::{Settings, Surroundings};
use crate::credential::{Answer, Asking, Credential, Generation};
use crate::metrics::{AuthenticatorId, Recorder, RefreshReason};

/// Shared by every authenticator with the same key; lives as long as the last of them.
#[derive(Debug)]
pub(super) struct Entry {
    id: AuthenticatorId,
    clock: Arc<dyn Clock>,
    recorder: Arc<dyn Recorder>,
    leeway: Duration,
    past_expiry: Duration,
    interactive_wait: Duration,
    published: ArcSwapOption<Published>,
    state: Mutex<State>,
    pub(super) flights: SingleFlight<(), Arc<Credential>, ExecError>,
}

/// The credential with what was decided about it when it came.
#[derive(Debug)]
struct Published {
    credential: Arc<Credential>,
    /// No thought is given to another one until then, inclusive.
    fresh_until: Option<Timestamp>,
    /// It may be sent until then, inclusive.
    usable_until: Option<Timestamp>,
}

/// Why another credential is wanted.
#[derive(Clone, Debug)]
pub(super) enum Why {
    /// There is none, or it is stale.
    Stale(Asking),
    /// A server turned this one down.
    Refused { generation: Generation, by: RefreshReason, answer: Option<Arc<Answer>> },
    /// Somebody asked for another one.
    Manual,
}

/// How far an attempt came that gave no credential.
#[derive(Clone, Copy, Debug)]
pub(super) enum Attempt {
    /// Nothing was started: the user or the policy is in the way, and looking again costs nothing.
    None,
    /// A program was started, or searched for in vain.
    Made {
        /// It had the terminal.
        had_terminal: bool,
    },
}

/// What is to be done about a refusal.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Somebody has got another one already.
    Rotated(Arc<Credential>),
    /// Nothing: another run would be too early.
    Wait,
    /// Run the plugin.
    Run,
}

#[derive(Debug)]
struct State {
    last_generation: Option<Generation>,
    /// Failed runs (C441).
    failures: Option<Backoff>,
    failure: Option<Arc<ExecError>>,
    /// The last failed run had the terminal (C443).
    failed_interactively: bool,
    /// Runs because of refusals that did not help (C442).
    refusals: Option<Backoff>,
    /// The last generation that was turned down.
    refused: Option<Generation>,
    /// The current one was got because its predecessor was turned down.
    got_by_refusal: bool,
    /// When it was got, on the monotonic clock.
    got_at: Duration,
    help: Allowance,
    warned_of_past_expiry: bool,
}

impl Entry {
    pub(super) fn new(settings: &Settings, around: &Surroundings) -> Self {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let backoff = || settings.backoff.map(|backoff| Backoff::new(backoff, Arc::clone(&around.clock)));
        Entry {
            id: AuthenticatorId(IDS.fetch_add(1, Ordering::Relaxed)),
            clock: Arc::clone(&around.clock),
            recorder: Arc::clone(&around.recorder),
            leeway: settings.leeway,
            past_expiry: settings.past_expiry,
            interactive_wait: settings.interactive_wait,
            published: ArcSwapOption::empty(),
            state: Mutex::new(State {
                last_generation: None,
                failures: backoff(),
                failure: None,
                failed_interactively: false,
                refusals: backoff(),
                refused: None,
                got_by_refusal: false,
                got_at: Duration::ZERO,
                help: Allowance::default(),
                warned_of_past_expiry: false,
            }),
            flights: SingleFlight::new(),
        }
    }

    /// The credential, if nothing needs to be done about it (C410).
    pub(super) fn ready(&self) -> Option<Arc<Credential>> {
        let published = self.published.load();
        let published = published.as_ref()?;
        let is_fresh = published.fresh_until.is_none_or(|until| self.clock.now() <= until);
        is_fresh.then(|| Arc::clone(&published.credential))
    }

    /// The credential, as long as it has not expired (C411).
    fn usable(&self) -> Option<Arc<Credential>> {
        let published = self.published.load_full()?;
        let is_usable = published.usable_until.is_none_or(|until| self.clock.now() <= until);
        is_usable.then(|| Arc::clone(&published.credential))
    }

    /// What there is, stale or not.
    fn latest(&self) -> Option<Arc<Credential>> {
        self.published.load().as_ref().map(|published| Arc::clone(&published.credential))
    }

    /// Whether somebody has just done what is wanted, or it is too early to do it (C441).
    pub(super) fn settled(&self, why: &Why) -> Option<Result<Arc<Credential>, ExecError>> {
        match why {
            Why::Stale(_) => {
                if let Some(fresh) = self.ready() {
                    return Some(Ok(fresh));
                }
            }
            Why::Refused { generation, .. } => {
                if let Some(other) = self.latest().filter(|latest| latest.generation != *generation) {
                    return Some(Ok(other));
                }
            }
            Why::Manual => return None,
        }
        let state = self.lock();
        let at_once = matches!(why, Why::Stale(Asking::Foreground)) && state.failed_interactively;
        let wait = state.failures.as_ref()?.remaining().filter(|_| !at_once)?;
        let failure = state.failure.clone()?;
        drop(state);
        // Until it has expired, the old one will do.
        let old = self.usable().filter(|_| matches!(why, Why::Stale(_)));
        Some(old.ok_or(ExecError::Waiting { failure, wait }))
    }

    /// What to do about a refusal: at most one run per generation at once; if that did not help, as after failures
    /// (C430, C434, C442).
    pub(super) fn on_refusal(&self, generation: Generation) -> Verdict {
        let mut state = self.lock();
        let Some(latest) = self.latest() else { return Verdict::Wait };
        if latest.generation != generation {
            return if latest.generation > generation { Verdict::Rotated(latest) } else { Verdict::Wait };
        }
        let now = self.clock.monotonic();
        let is_first = state.refused.replace(generation) != Some(generation);
        let age = now.saturating_sub(state.got_at);
        let got_by_refusal = state.got_by_refusal;
        let Some(refusals) = &mut state.refusals else { return Verdict::Run };
        if is_first {
            // One that was good for a while and no longer is begins a new story.
            if got_by_refusal && age < GOOD_FOR_A_WHILE {
                refusals.failed();
            } else {
                refusals.succeeded();
            }
        }
        if refusals.remaining().is_some() { Verdict::Wait } else { Verdict::Run }
    }

    /// Why the run is counted.
    pub(super) fn reason(&self, why: &Why) -> RefreshReason {
        match why {
            Why::Manual => RefreshReason::Manual,
            Why::Refused { by, .. } => *by,
            Why::Stale(_) if self.published.load().is_none() => RefreshReason::Initial,
            Why::Stale(_) => RefreshReason::Expired,
        }
    }

    /// Puts a new credential in place, all of it at once (C414). One that is the same keeps its generation.
    pub(super) fn install(&self, output: Output, why: &Why) -> Arc<Credential> {
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
        let is_refusal = matches!(why, Why::Refused { .. });
        if same.is_none() {
            state.last_generation = Some(next);
            state.got_by_refusal = is_refusal;
            state.got_at = self.clock.monotonic();
        } else if let Some(refusals) = state.refusals.as_mut().filter(|_| is_refusal) {
            refusals.failed();
        }
        let (fresh_until, usable_until) = self.terms(credential.expires, now, &mut state);
        self.succeeded(&mut state);
        self.published.store(Some(Arc::new(Published {
            credential: Arc::clone(&credential),
            fresh_until,
            usable_until,
        })));
        drop(state);
        self.count_certificate(old.as_deref(), &credential, now);
        credential
    }

    /// Until when a credential is fresh, and until when it may be used (C410–C412).
    fn terms(
        &self,
        expires: Option<Timestamp>,
        now: Timestamp,
        state: &mut State,
    ) -> (Option<Timestamp>, Option<Timestamp>) {
        let Some(end) = expires else { return (None, None) };
        if now > end && !self.past_expiry.is_zero() {
            if !std::mem::replace(&mut state.warned_of_past_expiry, true) {
                tracing::warn!(%end, "the plugin's credential had expired when it came; do the clocks differ?");
            }
            let until = now.saturating_add(self.past_expiry).unwrap_or(Timestamp::MAX);
            return (Some(until), Some(until));
        }
        let lifetime = Duration::try_from(end.duration_since(now)).unwrap_or_default();
        let leeway = self.leeway.min(lifetime / 10);
        if leeway.is_zero() {
            return (Some(end), Some(end));
        }
        // From that moment on is one moment later than until then.
        let fresh = end.saturating_sub(leeway.saturating_add(Duration::from_nanos(1)));
        (Some(fresh.unwrap_or(Timestamp::MIN)), Some(end))
    }

    /// There is no new credential. Whoever needs one and has one that has not expired yet can go on with it (C411).
    pub(super) fn failed(
        &self,
        error: ExecError,
        attempt: Attempt,
        why: &Why,
    ) -> Result<Arc<Credential>, ExecError> {
        let wait = match attempt {
            Attempt::Made { had_terminal } => self.note_failure(&error, had_terminal),
            // Nothing to wait out, but no reason to look again for every request either.
            Attempt::None => Duration::from_secs(1),
        };
        let old = self.usable().filter(|_| matches!(why, Why::Stale(_)));
        let Some(old) = old else { return Err(error) };
        tracing::warn!(%error, "no new credential from the plugin; the old one is used until it expires");
        self.leave_alone_for(wait);
        Ok(old)
    }

    /// Counts a failed run; returns how long the next one has to wait (C441, C443).
    fn note_failure(&self, error: &ExecError, had_terminal: bool) -> Duration {
        let mut state = self.lock();
        state.failure = Some(Arc::new(error.clone()));
        state.failed_interactively = had_terminal;
        let floor = if had_terminal { self.interactive_wait } else { Duration::ZERO };
        let Some(failures) = &mut state.failures else { return Duration::ZERO };
        self.recorder.backoff(self.id, true);
        failures.failed_at_least(floor)
    }

    /// After a failed attempt to be early, the next one has to wait: until then the old credential counts as fresh.
    fn leave_alone_for(&self, wait: Duration) {
        let Some(published) = self.published.load_full() else { return };
        let until = self.clock.now().saturating_add(wait).unwrap_or(Timestamp::MAX);
        let fresh_until = published.usable_until.map(|end| end.min(until));
        let credential = Arc::clone(&published.credential);
        let usable_until = published.usable_until;
        self.published.store(Some(Arc::new(Published { credential, fresh_until, usable_until })));
    }

    fn succeeded(&self, state: &mut State) {
        if let Some(failures) = &mut state.failures {
            if failures.failures() > 0 {
                self.recorder.backoff(self.id, false);
            }
            failures.succeeded();
        }
        state.failure = None;
        state.failed_interactively = false;
    }

    /// Whether help with the installation may be given once more (C322).
    pub(super) fn may_help(&self) -> bool {
        let now = self.clock.monotonic();
        self.lock().help.take(now)
    }

    fn count_certificate(&self, old: Option<&Credential>, new: &Credential, now: Timestamp) {
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

/// A credential that was accepted for so long was good; shorter ones cannot be told from those that never were.
const GOOD_FOR_A_WHILE: Duration = Duration::from_secs(30);

/// The same to a server, whatever they say about their expiry.
fn is_same(old: &Credential, output: &Output) -> bool {
    let same_identity = match (&old.identity, &output.identity) {
        (None, None) => true,
        (Some(one), Some(other)) => one.is_same(other),
        _ => false,
    };
    same_identity && old.authorization == output.authorization
}

/// An authenticator that is gone has no certificate and waits for nothing (C504).
impl Drop for Entry {
    fn drop(&mut self) {
        self.recorder.certificate(self.id, None);
        self.recorder.backoff(self.id, false);
    }
}
