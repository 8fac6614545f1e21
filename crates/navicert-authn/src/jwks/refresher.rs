//! Keeps one issuer's keys fresh: discovers the issuer, fetches its keys, refreshes them before they expire, and fetches again
//! when a token names an unknown key. Every issuer has its own refresher, so that keys never mix.
//!
//! A refresher spawns no task. The caller runs [`JwksRefresher::run_due`] in a loop:
//!
//! ```
//! # use navicert_authn::jwks::JwksRefresher;
//! # use std::{future::Future, time::Duration};
//! async fn background<F: Future<Output = ()>>(refresher: &JwksRefresher, sleep: impl Fn(Duration) -> F) {
//!     let _driver = refresher.attach_driver();
//!     loop {
//!         let pause = refresher.run_due().await;
//!         tokio::select! {
//!             () = sleep(pause) => {}
//!             () = refresher.schedule_changed() => {}
//!         }
//!     }
//! }
//! ```
//!
//! and, beside that loop, [`JwksRefresher::deadlines`].

mod on_demand;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use navicert_types::backoff::BackoffSettings;
use navicert_types::{Clock, Timestamp, error_chain};
use tokio::sync::{Notify, watch};

use super::discovery::{Discovered, discover_within};
use super::fetch::{BoxFuture, Fetch, FetchRequest};
use super::fetch_demand::FetchDemand;
use super::{KeySet, KeySource, KeysUnavailable, RefreshReason, RefreshResult, freshness};
use crate::config::CompiledIssuer;
use crate::deadlines::Deadlines;
use crate::metrics::{AuthnEvent, AuthnRecorder, RefreshTrigger};
use crate::profile::{AuthnProfile, Hardening};

pub use on_demand::DriverGuard;

/// Minimum, default and maximum lifetime of keys.
// H22
const KEY_LIFETIME_BOUNDS: (Duration, Duration, Duration) =
    (Duration::from_secs(60), Duration::from_secs(600), Duration::from_secs(24 * 3600));
/// How long keys stay trusted after their lifetime if refreshing fails.
// H22
const STALE_KEY_GRACE: Duration = Duration::from_secs(24 * 3600);
/// Interval between discoveries.
// H20
const REDISCOVERY_INTERVAL: Duration = Duration::from_secs(24 * 3600);
/// If fetching keys fails for this long, discovery is repeated: the keys may have moved.
// H20
const REDISCOVER_AFTER_FAILING: Duration = Duration::from_secs(5 * 60);
/// Back-off after a failure.
// H20
const BACKOFF: BackoffSettings =
    BackoffSettings { initial: Duration::from_secs(1), max: Duration::from_secs(60), jitter: 0.2 };
/// Retry interval without [`Hardening::DiscoveryRetry`].
// S161
const UPSTREAM_RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Interval when nothing is due.
const MAX_RUN_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// What a refresher needs from its environment.
#[derive(Clone)]
pub struct JwksContext {
    /// Fetches documents.
    pub fetch: Arc<dyn Fetch>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Random numbers from 0 to 1 for jitter.
    pub random: Arc<dyn Fn() -> f64 + Send + Sync>,
    /// Records events for metrics.
    pub recorder: Arc<dyn AuthnRecorder>,
}

impl fmt::Debug for JwksContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwksContext").field("fetch", &self.fetch).finish_non_exhaustive()
    }
}

/// The health of an issuer.
// S162, S225, S305
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssuerHealth {
    /// Tokens can be verified: the issuer has been discovered and, with [`Hardening::KeyLifetime`], its keys are available.
    pub is_ready: bool,
    /// Discovery has succeeded.
    pub is_discovered: bool,
    /// Number of keys that can verify signatures.
    pub usable_keys: usize,
    /// Number of keys that are unusable or do not parse.
    pub skipped_keys: usize,
    /// When the keys were last fetched.
    pub fetched: Option<Timestamp>,
    /// The last error, if nothing has succeeded since.
    pub last_error: Option<String>,
}

/// Discovers one issuer and keeps its keys fresh.
pub struct JwksRefresher {
    issuer: CompiledIssuer,
    profile: AuthnProfile,
    context: JwksContext,
    time_limit: Option<Duration>,
    published: ArcSwap<PublishedKeys>,
    /// What tokens want. Locked for a moment only, unlike `state`, which is locked during requests to the issuer.
    demand: Mutex<FetchDemand>,
    /// Number of the last fetch that ended.
    finished: watch::Sender<u64>,
    deadlines: Deadlines,
    /// Number of tasks that drive this refresher.
    drivers: AtomicUsize,
    /// A task is about to drive it.
    expects_driver: AtomicBool,
    /// Notified when a token wants a fetch.
    schedule_changed: Notify,
    state: tokio::sync::Mutex<RefreshState>,
}

/// What readers see.
struct PublishedKeys {
    keys: Result<Arc<KeySet>, KeysUnavailable>,
    version: u64,
    /// URL of the key set.
    address: Option<String>,
    /// Reading of the monotonic clock after which the keys are no longer trusted.
    trusted_until: Option<Duration>,
    /// No fetch before this time less a margin, without [`Hardening::KeyLifetime`].
    fresh_until: Duration,
    health: IssuerHealth,
    discovery_error: Option<String>,
    keys_error: Option<String>,
}

/// The refresher's own state. Times are readings of the monotonic clock.
struct RefreshState {
    discovered: Option<Discovered>,
    /// `None`: never again.
    discovery_due: Option<Duration>,
    /// `None`: only on demand.
    keys_due: Option<Duration>,
    /// Consecutive failures, for the back-off.
    failures: u32,
    failing_since: Option<Duration>,
    body: Vec<u8>,
}

impl JwksRefresher {
    /// A refresher that has not fetched anything yet.
    pub fn new(issuer: CompiledIssuer, profile: AuthnProfile, context: JwksContext) -> Self {
        let now = context.clock.monotonic();
        let published = PublishedKeys {
            keys: Err(KeysUnavailable::NotReady),
            version: 0,
            address: None,
            trusted_until: None,
            fresh_until: Duration::ZERO,
            health: IssuerHealth::default(),
            discovery_error: None,
            keys_error: None,
        };
        let state = RefreshState {
            discovered: None,
            discovery_due: Some(now),
            keys_due: None,
            failures: 0,
            failing_since: None,
            body: Vec::new(),
        };
        let deadlines = Deadlines::new(Arc::clone(&context.clock));
        context.recorder.record(&AuthnEvent::IssuerReady { issuer: &issuer.url, is_ready: false });
        JwksRefresher {
            issuer,
            profile,
            context,
            time_limit: None,
            published: ArcSwap::from_pointee(published),
            demand: Mutex::default(),
            finished: watch::Sender::default(),
            deadlines,
            drivers: AtomicUsize::new(0),
            expects_driver: AtomicBool::new(false),
            schedule_changed: Notify::new(),
            state: tokio::sync::Mutex::new(state),
        }
    }

    /// Limits the duration of every request.
    #[must_use]
    pub(crate) fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// The issuer.
    pub fn issuer(&self) -> &CompiledIssuer {
        &self.issuer
    }

    /// Whether this refresher also serves another configuration of the issuer. Audiences do not affect keys.
    pub(crate) fn serves(&self, issuer: &CompiledIssuer, profile: &AuthnProfile) -> bool {
        let known = CompiledIssuer { audiences: issuer.audiences.clone(), ..self.issuer.clone() };
        known == *issuer && self.profile == *profile
    }

    /// The issuer's health.
    pub fn health(&self) -> IssuerHealth {
        let published = self.published.load();
        let last_error = published.keys_error.as_ref().or(published.discovery_error.as_ref()).cloned();
        IssuerHealth { last_error, ..published.health.clone() }
    }

    /// Does what is due and returns when to run next. Never fails: errors are in [`JwksRefresher::health`] and are
    /// retried with back-off.
    pub async fn run_due(&self) -> Duration {
        let mut state = self.state.lock().await;
        let is_due = |due: Option<Duration>| due.is_some_and(|due| due <= self.monotonic());
        let is_wanted = self.demand().is_wanted();
        if is_wanted || is_due(state.discovery_due) || is_due(state.keys_due) {
            let fetch = self.begin_fetch();
            if is_due(state.discovery_due) || state.discovered.is_none() {
                self.discover(&mut state).await;
            }
            if fetch.by_token {
                self.refresh_keys(&mut state, RefreshTrigger::Token).await;
            } else if is_due(state.keys_due) {
                self.refresh_keys(&mut state, RefreshTrigger::Background).await;
            }
        }
        self.expire_keys();
        let now = self.monotonic();
        let trusted_until = self.published.load().trusted_until;
        let next = [state.discovery_due, state.keys_due, trusted_until].into_iter().flatten().min();
        next.map_or(MAX_RUN_INTERVAL, |due| due.saturating_sub(now)).min(MAX_RUN_INTERVAL)
    }

    /// Completes when a token wants a fetch: the time that [`JwksRefresher::run_due`] returned is outdated.
    pub async fn schedule_changed(&self) {
        self.schedule_changed.notified().await;
    }

    async fn discover(&self, state: &mut RefreshState) {
        let found = discover_within(&self.issuer, &*self.context.fetch, &self.profile, self.time_limit).await;
        let now = self.monotonic();
        match found {
            Ok(found) => {
                let moved = state.discovered.as_ref().is_none_or(|known| known.jwks_uri != found.jwks_uri);
                state.failures = 0;
                state.discovery_due =
                    self.profile.has(Hardening::DiscoveryRetry).then_some(now + REDISCOVERY_INTERVAL);
                if moved && self.profile.has(Hardening::KeyLifetime) {
                    state.keys_due = Some(now);
                }
                let address = found.jwks_uri.clone();
                state.discovered = Some(found);
                self.publish(|published| {
                    published.address = Some(address);
                    if matches!(published.keys, Err(KeysUnavailable::NotReady)) {
                        // Upstream fetches keys only when a token needs them (S163).
                        published.keys = if self.profile.has(Hardening::KeyLifetime) {
                            Err(KeysUnavailable::Failed(
                                "the issuer's keys have not been fetched yet".to_owned(),
                            ))
                        } else {
                            Ok(Arc::default())
                        };
                    }
                    published.health.is_discovered = true;
                    published.health.is_ready |= !self.profile.has(Hardening::KeyLifetime);
                    published.discovery_error = None;
                });
            }
            Err(error) => {
                state.discovery_due = Some(now + self.next_backoff(state));
                // Keys that are at hand do not depend on it.
                if state.discovered.is_none() {
                    let mut demand = self.demand();
                    demand.limiter.fetched(false, now);
                    demand.last_error = Some(format!("discovery failed: {error}"));
                }
                self.publish(|published| {
                    published.discovery_error = Some(format!("discovery failed: {error}"));
                });
            }
        }
    }

    /// Fetches the keys. After a failure the old ones stay.
    async fn refresh_keys(&self, state: &mut RefreshState, trigger: RefreshTrigger) {
        let Some(discovered) = &state.discovered else { return };
        let url = discovered.jwks_uri.clone();
        let outcome = self.fetch_keys(&url).await;
        let now = self.monotonic();
        self.context.recorder.record(&AuthnEvent::KeysRefreshed { trigger });
        self.context.recorder.record(&AuthnEvent::KeysFetched {
            issuer: &self.issuer.url,
            body: outcome.as_ref().ok().map(|fetched| fetched.body.as_slice()),
        });
        match outcome {
            Ok(fetched) => {
                let has_lifetime = self.profile.has(Hardening::KeyLifetime);
                let lifetime = if has_lifetime { clamp_lifetime(fetched.lifetime) } else { fetched.lifetime };
                state.keys_due = has_lifetime.then(|| now + lifetime / 10 * 9);
                state.failures = 0;
                state.failing_since = None;
                {
                    let mut demand = self.demand();
                    demand.limiter.fetched(true, now);
                    demand.last_error = None;
                }
                let is_new = state.body != fetched.body || self.published.load().keys.is_err();
                state.body = fetched.body;
                let trusted_until = has_lifetime.then(|| now + lifetime + STALE_KEY_GRACE);
                self.publish_keys(fetched.keys, is_new, (now + lifetime, trusted_until));
            }
            Err(error) => {
                let since = *state.failing_since.get_or_insert(now);
                let pause = self.next_backoff(state);
                if self.profile.has(Hardening::KeyLifetime) {
                    state.keys_due = Some(now + pause);
                }
                if self.profile.has(Hardening::DiscoveryRetry)
                    && now.saturating_sub(since) >= REDISCOVER_AFTER_FAILING
                {
                    state.failing_since = Some(now);
                    state.discovery_due = Some(now);
                }
                self.publish(|published| {
                    published.keys_error = Some(format!("failed to fetch keys: {error}"));
                });
                let mut demand = self.demand();
                demand.limiter.fetched(false, now);
                demand.last_error = Some(error);
            }
        }
    }

    async fn fetch_keys(&self, url: &str) -> Result<FetchedKeys, String> {
        let mut request = FetchRequest::for_issuer(&self.issuer, url, &self.profile);
        request.limits.time = self.time_limit.unwrap_or(request.limits.time);
        let answer = self.context.fetch.get(request).await;
        let answer = answer.map_err(|error| error_chain(&error))?;
        if answer.status != 200 {
            return Err(format!("key endpoint returned status {}, expected 200", answer.status));
        }
        let keys = KeySet::parse(&answer.body, &self.profile).map_err(|error| error.to_string())?;
        let lifetime = freshness::lifetime(&answer, self.context.clock.now());
        Ok(FetchedKeys { keys, lifetime, body: answer.body })
    }

    /// Publishes a new key set. Keys that it omits are no longer trusted.
    fn publish_keys(
        &self,
        keys: KeySet,
        is_new: bool,
        (fresh_until, trusted_until): (Duration, Option<Duration>),
    ) {
        let usable = keys.keys().iter().filter(|key| key.is_usable()).count();
        let skipped = keys.skipped() + keys.keys().len() - usable;
        let issuer = &self.issuer.url;
        self.context.recorder.record(&AuthnEvent::Keys { issuer, usable, skipped });
        if is_new {
            self.demand().limiter.clear_misses();
        }
        let keys = Arc::new(keys);
        self.publish(|published| {
            if is_new {
                published.keys = Ok(Arc::clone(&keys));
                published.version += 1;
            }
            published.fresh_until = fresh_until;
            published.trusted_until = trusted_until;
            published.health = IssuerHealth {
                is_ready: true,
                is_discovered: true,
                usable_keys: usable,
                skipped_keys: skipped,
                fetched: Some(self.context.clock.now()),
                last_error: None,
            };
            published.keys_error = None;
        });
    }

    /// Drops keys that could not be refreshed for too long.
    // H22
    fn expire_keys(&self) {
        if self.published.load().trusted_until.is_none_or(|until| until > self.monotonic()) {
            return;
        }
        self.publish(|published| {
            published.keys = Err(KeysUnavailable::Failed("the issuer's keys have expired".to_owned()));
            published.version += 1;
            published.trusted_until = None;
            published.health.is_ready = false;
            published.health.usable_keys = 0;
        });
    }

    fn publish(&self, change: impl FnOnce(&mut PublishedKeys)) {
        let old = self.published.load_full();
        let mut new = PublishedKeys {
            keys: old.keys.clone(),
            version: old.version,
            address: old.address.clone(),
            trusted_until: old.trusted_until,
            fresh_until: old.fresh_until,
            health: old.health.clone(),
            discovery_error: old.discovery_error.clone(),
            keys_error: old.keys_error.clone(),
        };
        change(&mut new);
        let (was, is) = (old.health.is_ready, new.health.is_ready);
        self.published.store(Arc::new(new));
        if was != is {
            let issuer = &self.issuer.url;
            self.context.recorder.record(&AuthnEvent::IssuerReady { issuer, is_ready: is });
        }
    }

    /// Back-off after one more failure.
    fn next_backoff(&self, state: &mut RefreshState) -> Duration {
        if !self.profile.has(Hardening::DiscoveryRetry) {
            return UPSTREAM_RETRY_INTERVAL;
        }
        let pause = BACKOFF.delay(state.failures, (self.context.random)());
        state.failures = state.failures.saturating_add(1);
        pause
    }

    fn monotonic(&self) -> Duration {
        self.context.clock.monotonic()
    }

    fn demand(&self) -> MutexGuard<'_, FetchDemand> {
        self.demand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeySource for JwksRefresher {
    fn current(&self) -> Result<Arc<KeySet>, KeysUnavailable> {
        self.published.load().keys.clone()
    }

    fn version(&self) -> u64 {
        self.published.load().version
    }

    fn trusted_for(&self) -> Option<Duration> {
        let until = self.published.load().trusted_until?;
        Some(until.saturating_sub(self.monotonic()))
    }

    fn address(&self) -> Option<String> {
        self.published.load().address.clone()
    }

    fn refresh<'f>(&'f self, wanted: RefreshReason<'f>, tried: u64) -> BoxFuture<'f, RefreshResult> {
        Box::pin(self.refresh_on_demand(wanted, tried))
    }
}

impl fmt::Debug for JwksRefresher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let health = self.health();
        f.debug_struct("JwksRefresher")
            .field("issuer", &self.issuer.url)
            .field("health", &health)
            .finish_non_exhaustive()
    }
}

/// The result of one fetch of the key set.
struct FetchedKeys {
    keys: KeySet,
    lifetime: Duration,
    body: Vec<u8>,
}

/// Clamps the lifetime; the default applies if the response has none.
fn clamp_lifetime(lifetime: Duration) -> Duration {
    let (least, usual, most) = KEY_LIFETIME_BOUNDS;
    if lifetime.is_zero() { usual } else { lifetime.clamp(least, most) }
}

#[cfg(test)]
mod tests;
