//! Keeps one issuer's keys: discovers it, gets its keys, gets them again before they are old, and once more when a
//! token names a key that nobody knows. Every issuer has a keeper of its own, so that keys never mix.
//!
//! A keeper runs nothing by itself. Whoever has a runtime calls [`Keeper::tend`] and comes back when it says so:
//!
//! ```
//! # use navicert_authn::jwks::Keeper;
//! # use std::{future::Future, time::Duration};
//! async fn background<F: Future<Output = ()>>(keeper: &Keeper, sleep: impl Fn(Duration) -> F) {
//!     loop {
//!         let pause = keeper.tend().await;
//!         tokio::select! {
//!             () = sleep(pause) => {}
//!             () = keeper.asked() => {}
//!         }
//!     }
//! }
//! ```

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use navicert_types::{Clock, Timestamp};
use tokio::sync::Notify;

use super::demand::Demand;
use super::discovery::{Discovered, discover_within};
use super::fetch::{BoxFuture, Fetch, FetchRequest};
use super::{KeySet, Keys, KeysUnavailable, Refreshed, Wanted, freshness};
use crate::config::CompiledIssuer;
use crate::metrics::{Event, Recorder, Trigger};
use crate::profile::{Profile, Rule};

/// The least, the usual and the most that keys live (H22).
const LIFETIME: (Duration, Duration, Duration) =
    (Duration::from_secs(60), Duration::from_secs(600), Duration::from_secs(24 * 3600));
/// How much longer they live if no newer ones can be had (H22).
const GRACE: Duration = Duration::from_secs(24 * 3600);
/// Between two discoveries (H20).
const REDISCOVERY: Duration = Duration::from_secs(24 * 3600);
/// Keys that cannot be had for so long may have moved (H20).
const MAY_HAVE_MOVED: Duration = Duration::from_secs(5 * 60);
/// First and longest pause after a failure (H20).
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How far a pause may be off, as a share of itself.
const JITTER: f64 = 0.2;
/// Without H20: between two attempts (S161).
const UPSTREAM_PAUSE: Duration = Duration::from_secs(10);
/// Without H22: keys that are fresh for so long are not asked for again (S166).
const UPSTREAM_MARGIN: Duration = Duration::from_secs(30);
/// When nothing is due.
const IDLE: Duration = Duration::from_secs(24 * 3600);

/// What a keeper works with.
#[derive(Clone)]
pub struct Around {
    /// Where documents come from.
    pub fetch: Arc<dyn Fetch>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Numbers from 0 to 1, so that many keepers do not all come back at once.
    pub random: Arc<dyn Fn() -> f64 + Send + Sync>,
    /// Told of everything worth counting.
    pub recorder: Arc<dyn Recorder>,
}

impl fmt::Debug for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Around").field("fetch", &self.fetch).finish_non_exhaustive()
    }
}

/// How an issuer is doing (S162, S225, S305).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Its tokens can be judged: it has been discovered and, with H22, its keys are here.
    pub is_ready: bool,
    /// Discovery has worked.
    pub is_discovered: bool,
    /// Keys that can verify something.
    pub usable_keys: usize,
    /// Keys that can verify nothing, or cannot be read.
    pub skipped_keys: usize,
    /// When the keys came.
    pub fetched: Option<Timestamp>,
    /// What went wrong last, if nothing went well since.
    pub last_error: Option<String>,
}

/// One issuer's keys, kept.
pub struct Keeper {
    issuer: CompiledIssuer,
    profile: Profile,
    around: Around,
    time_limit: Option<Duration>,
    published: ArcSwap<Published>,
    demand: Mutex<Demand>,
    /// How many times keys were asked for; tells a waiter that somebody else has asked meanwhile (S169).
    attempts: AtomicU64,
    /// A token made us ask: what is due may have changed.
    asked: Notify,
    work: tokio::sync::Mutex<Work>,
}

/// What everybody sees.
struct Published {
    keys: Result<Arc<KeySet>, KeysUnavailable>,
    version: u64,
    /// Where the keys come from.
    address: Option<String>,
    /// On the monotonic clock: not trusted afterwards.
    trusted_until: Option<Duration>,
    health: Health,
    discovery_error: Option<String>,
    keys_error: Option<String>,
}

/// What the one who works sees. Times are readings of the monotonic clock.
struct Work {
    discovered: Option<Discovered>,
    /// `None`: never again.
    discovery_due: Option<Duration>,
    /// `None`: only when somebody asks.
    keys_due: Option<Duration>,
    /// In a row, for the pause after the next one.
    failures: u32,
    failing_since: Option<Duration>,
    /// Without H22: no request before this (less a margin).
    fresh_until: Duration,
    body: Vec<u8>,
    last: Result<(), String>,
}

impl Keeper {
    /// A keeper that has done nothing yet.
    pub fn new(issuer: CompiledIssuer, profile: Profile, around: Around) -> Self {
        let now = around.clock.monotonic();
        let published = Published {
            keys: Err(KeysUnavailable::NotReady),
            version: 0,
            address: None,
            trusted_until: None,
            health: Health::default(),
            discovery_error: None,
            keys_error: None,
        };
        let work = Work {
            discovered: None,
            discovery_due: Some(now),
            keys_due: None,
            failures: 0,
            failing_since: None,
            fresh_until: Duration::ZERO,
            body: Vec::new(),
            last: Ok(()),
        };
        around.recorder.record(&Event::IssuerReady { issuer: &issuer.url, is_ready: false });
        Keeper {
            issuer,
            profile,
            around,
            time_limit: None,
            published: ArcSwap::from_pointee(published),
            demand: Mutex::default(),
            attempts: AtomicU64::new(0),
            asked: Notify::new(),
            work: tokio::sync::Mutex::new(work),
        }
    }

    /// No request takes longer than this.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Whose keys these are.
    pub fn issuer(&self) -> &CompiledIssuer {
        &self.issuer
    }

    /// Whether these are the keys of this issuer too, got the same way. Audiences make no difference to keys.
    pub(crate) fn keeps(&self, issuer: &CompiledIssuer, profile: &Profile) -> bool {
        let known = CompiledIssuer { audiences: issuer.audiences.clone(), ..self.issuer.clone() };
        known == *issuer && self.profile == *profile
    }

    /// How the issuer is doing.
    pub fn health(&self) -> Health {
        let published = self.published.load();
        let last_error = published.keys_error.as_ref().or(published.discovery_error.as_ref()).cloned();
        Health { last_error, ..published.health.clone() }
    }

    /// Does what is due, and says when to come back. Never fails: what went wrong is in [`Keeper::health`], and is
    /// tried again after a pause that grows.
    pub async fn tend(&self) -> Duration {
        let mut work = self.work.lock().await;
        if work.discovery_due.is_some_and(|due| due <= self.monotonic()) {
            self.discover(&mut work).await;
        }
        if work.keys_due.is_some_and(|due| due <= self.monotonic()) {
            self.load(&mut work, Trigger::Background).await;
        }
        self.drop_what_is_too_old();
        let now = self.monotonic();
        let trusted_until = self.published.load().trusted_until;
        let next = [work.discovery_due, work.keys_due, trusted_until].into_iter().flatten().min();
        next.map_or(IDLE, |due| due.saturating_sub(now)).min(IDLE)
    }

    /// Done when a token has made the keeper ask for keys: whoever waits for the time that [`Keeper::tend`] named comes back
    /// now, since after a failure the next try is due sooner.
    pub async fn asked(&self) {
        self.asked.notified().await;
    }

    async fn discover(&self, work: &mut Work) {
        let found = discover_within(&self.issuer, &*self.around.fetch, &self.profile, self.time_limit).await;
        let now = self.monotonic();
        match found {
            Ok(found) => {
                let moved = work.discovered.as_ref().is_none_or(|known| known.jwks_uri != found.jwks_uri);
                work.failures = 0;
                work.discovery_due = self.profile.has(Rule::H20).then_some(now + REDISCOVERY);
                if moved && self.profile.has(Rule::H22) {
                    work.keys_due = Some(now);
                }
                let address = found.jwks_uri.clone();
                work.discovered = Some(found);
                self.publish(|published| {
                    published.address = Some(address);
                    if matches!(published.keys, Err(KeysUnavailable::NotReady)) {
                        // Upstream asks for keys only when a token needs them (S163).
                        published.keys = if self.profile.has(Rule::H22) {
                            Err(KeysUnavailable::Failed(
                                "the issuer's keys have not been seen yet".to_owned(),
                            ))
                        } else {
                            Ok(Arc::default())
                        };
                    }
                    published.health.is_discovered = true;
                    published.health.is_ready |= !self.profile.has(Rule::H22);
                    published.discovery_error = None;
                });
            }
            Err(error) => {
                work.discovery_due = Some(now + self.pause(work));
                self.publish(|published| published.discovery_error = Some(format!("discovery: {error}")));
            }
        }
    }

    /// Gets the keys. A failure keeps the old ones.
    async fn load(&self, work: &mut Work, trigger: Trigger) {
        let Some(discovered) = &work.discovered else { return };
        let url = discovered.jwks_uri.clone();
        self.attempts.fetch_add(1, Ordering::AcqRel);
        let outcome = self.ask(&url).await;
        let now = self.monotonic();
        self.around.recorder.record(&Event::KeysRefreshed { trigger });
        self.around.recorder.record(&Event::KeysFetched {
            issuer: &self.issuer.url,
            body: outcome.as_ref().ok().map(|loaded| loaded.body.as_slice()),
        });
        match outcome {
            Ok(loaded) => {
                let kept = self.profile.has(Rule::H22);
                let lifetime = if kept { bounded(loaded.lifetime) } else { loaded.lifetime };
                work.fresh_until = now + lifetime;
                work.keys_due = kept.then(|| now + lifetime / 10 * 9);
                work.failures = 0;
                work.failing_since = None;
                work.last = Ok(());
                let is_new = work.body != loaded.body || self.published.load().keys.is_err();
                work.body = loaded.body;
                self.take_over(loaded.keys, is_new, kept.then(|| now + lifetime + GRACE));
            }
            Err(error) => {
                let since = *work.failing_since.get_or_insert(now);
                let pause = self.pause(work);
                if self.profile.has(Rule::H22) {
                    work.keys_due = Some(now + pause);
                }
                if self.profile.has(Rule::H20) && now.saturating_sub(since) >= MAY_HAVE_MOVED {
                    work.failing_since = Some(now);
                    work.discovery_due = Some(now);
                }
                self.publish(|published| published.keys_error = Some(format!("keys: {error}")));
                work.last = Err(error);
            }
        }
    }

    async fn ask(&self, url: &str) -> Result<Loaded, String> {
        let mut request = FetchRequest::to(&self.issuer, url, &self.profile);
        request.limits.time = self.time_limit.unwrap_or(request.limits.time);
        let answer = self.around.fetch.get(request).await;
        let answer = answer.map_err(|error| error.chain())?;
        if answer.status != 200 {
            return Err(format!("get keys failed: the answer is {}, not 200", answer.status));
        }
        let keys = KeySet::parse(&answer.body, &self.profile).map_err(|error| error.to_string())?;
        let lifetime = freshness::lifetime(&answer, self.around.clock.now());
        Ok(Loaded { keys, lifetime, body: answer.body })
    }

    /// Keys that the new set does not have are gone at once.
    fn take_over(&self, keys: KeySet, is_new: bool, trusted_until: Option<Duration>) {
        let usable = keys.keys().iter().filter(|key| key.is_usable()).count();
        let skipped = keys.skipped() + keys.keys().len() - usable;
        let issuer = &self.issuer.url;
        self.around.recorder.record(&Event::Keys { issuer, usable, skipped });
        if is_new {
            self.demand.lock().unwrap_or_else(PoisonError::into_inner).forget_unknown();
        }
        let keys = Arc::new(keys);
        self.publish(|published| {
            if is_new {
                published.keys = Ok(Arc::clone(&keys));
                published.version += 1;
            }
            published.trusted_until = trusted_until;
            published.health = Health {
                is_ready: true,
                is_discovered: true,
                usable_keys: usable,
                skipped_keys: skipped,
                fetched: Some(self.around.clock.now()),
                last_error: None,
            };
            published.keys_error = None;
        });
    }

    /// H22: an issuer that cannot be reached does not keep its keys for ever.
    fn drop_what_is_too_old(&self) {
        if self.published.load().trusted_until.is_none_or(|until| until > self.monotonic()) {
            return;
        }
        self.publish(|published| {
            published.keys = Err(KeysUnavailable::Failed("the issuer's keys are too old".to_owned()));
            published.version += 1;
            published.trusted_until = None;
            published.health.is_ready = false;
            published.health.usable_keys = 0;
        });
    }

    fn publish(&self, change: impl FnOnce(&mut Published)) {
        let old = self.published.load_full();
        let mut new = Published {
            keys: old.keys.clone(),
            version: old.version,
            address: old.address.clone(),
            trusted_until: old.trusted_until,
            health: old.health.clone(),
            discovery_error: old.discovery_error.clone(),
            keys_error: old.keys_error.clone(),
        };
        change(&mut new);
        let (was, is) = (old.health.is_ready, new.health.is_ready);
        self.published.store(Arc::new(new));
        if was != is {
            let issuer = &self.issuer.url;
            self.around.recorder.record(&Event::IssuerReady { issuer, is_ready: is });
        }
    }

    /// How long to wait after one more failure.
    fn pause(&self, work: &mut Work) -> Duration {
        if !self.profile.has(Rule::H20) {
            return UPSTREAM_PAUSE;
        }
        let (first, longest) = BACK_OFF;
        let pause = first.saturating_mul(2_u32.saturating_pow(work.failures)).min(longest);
        work.failures = work.failures.saturating_add(1);
        pause.mul_f64(1.0 + JITTER * (2.0 * (self.around.random)().clamp(0.0, 1.0) - 1.0))
    }

    fn monotonic(&self) -> Duration {
        self.around.clock.monotonic()
    }

    /// See [`Keys::refresh`].
    async fn renew(&self, wanted: Wanted<'_>, tried: u64) -> Refreshed {
        let attempts = self.attempts.load(Ordering::Acquire);
        // Somebody else's request came back between the attempt and this question.
        if self.version() != tried {
            return Refreshed::Meanwhile;
        }
        let bounded_by = match wanted {
            _ if !self.profile.has(Rule::H22) => None,
            // A signature that does not hold is not a reason to ask: the key is known (H22).
            Wanted::Signature => return Refreshed::Same,
            Wanted::Kid(kid) => Some(kid),
        };
        if bounded_by.is_some_and(|kid| !self.demand().is_worth_it(kid, self.monotonic())) {
            return Refreshed::Same;
        }
        let mut work = self.work.lock().await;
        // Or while this one waited: then there is something to try before anybody is asked again.
        if self.version() != tried {
            return Refreshed::Meanwhile;
        }
        let is_done = self.attempts.load(Ordering::Acquire) != attempts;
        if !is_done {
            let may = match bounded_by {
                Some(_) => self.demand().take(self.monotonic()),
                None => self.monotonic() + UPSTREAM_MARGIN > work.fresh_until,
            };
            if !may || work.discovered.is_none() {
                return Refreshed::Same;
            }
            self.load(&mut work, Trigger::Token).await;
            self.asked.notify_one();
        }
        if let Err(why) = &work.last {
            return Refreshed::Failed(why.clone());
        }
        if let Some(kid) = bounded_by
            && self.current().is_ok_and(|keys| keys.candidates(kid).next().is_none())
        {
            self.demand().remember_unknown(kid, self.monotonic());
        }
        // Upstream tries whatever a request brought, new or not.
        if self.version() != tried { Refreshed::Newer } else { Refreshed::Same }
    }

    fn demand(&self) -> std::sync::MutexGuard<'_, Demand> {
        self.demand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keys for Keeper {
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

    fn refresh<'f>(&'f self, wanted: Wanted<'f>, tried: u64) -> BoxFuture<'f, Refreshed> {
        Box::pin(self.renew(wanted, tried))
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let health = self.health();
        f.debug_struct("Keeper")
            .field("issuer", &self.issuer.url)
            .field("health", &health)
            .finish_non_exhaustive()
    }
}

/// What one request for keys brought.
struct Loaded {
    keys: KeySet,
    lifetime: Duration,
    body: Vec<u8>,
}

/// H22; an answer without a word about it is good for ten minutes.
fn bounded(lifetime: Duration) -> Duration {
    let (least, usual, most) = LIFETIME;
    if lifetime.is_zero() { usual } else { lifetime.clamp(least, most) }
}

#[cfg(test)]
mod tests;
