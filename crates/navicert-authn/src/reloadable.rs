//! Authenticators that can be replaced while they are in use, with a cache of recent decisions and the health of every
//! issuer.
//!
//! ```text
//! token ──token_cache──▶ (hit) outcome
//!            │ miss
//!            ▼
//!       Authenticators ──keys, distributed claims──▶ outcome ──▶ token_cache
//!            ▲
//!   config::AuthnReloader replaces
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use navicert_types::Clock;
use navicert_types::authentication_config::AnonymousAuthConfig;
use tokio::sync::{Notify, watch};

use crate::authenticator::{Authenticators, IssuerAuthenticator};
use crate::config::{CompiledConfig, CompiledIssuer, PossibleValues};
use crate::deadlines::Deadlines;
use crate::decision::AuthnDecision;
use crate::decision_flights::DecisionFlights;
use crate::jwks::{IssuerHealth, JwksContext, JwksRefresher, StaticKeys};
use crate::mapping::distributed::DistributedClaimResolver;
use crate::metrics::{AuthnEvent, AuthnRecorder};
use crate::model::AuthnRequest;
use crate::model::CREDENTIAL_ID;
use crate::model::outcome::AuthnOutcome;
use crate::profile::Hardening;
use crate::revocation::Revocations;
use crate::token_cache::{CacheEpoch, TokenCache, TokenDigest};

/// Maximum run time of all expressions of one token.
// H6
const EXPRESSION_TIMEOUT: Duration = Duration::from_secs(1);

/// Authenticators in service. [`AuthnReloader`](crate::config::AuthnReloader) replaces them when the configuration changes.
#[derive(Debug)]
pub struct ReloadableAuthenticator {
    current: ArcSwap<AuthenticatorSet>,
    revocations: Arc<Revocations>,
    cache: TokenCache,
    flights: DecisionFlights<AuthnDecision>,
    clock: Arc<dyn Clock>,
    recorder: Arc<dyn AuthnRecorder>,
    changed: Arc<Notify>,
    /// Refreshers of a configuration that is not in use yet.
    pending: Mutex<Vec<Arc<JwksRefresher>>>,
    /// A task drives all refreshers.
    is_driven: AtomicBool,
}

/// Records an event when it is dropped, also when the future that holds it is cancelled.
struct EventGuard<'r> {
    recorder: &'r Arc<dyn AuthnRecorder>,
    on_drop: AuthnEvent<'static>,
}

impl<'r> EventGuard<'r> {
    fn new(
        recorder: &'r Arc<dyn AuthnRecorder>,
        begun: AuthnEvent<'static>,
        as_what: AuthnEvent<'static>,
    ) -> Self {
        recorder.record(&begun);
        EventGuard { recorder, on_drop: as_what }
    }
}

impl Drop for EventGuard<'_> {
    fn drop(&mut self) {
        self.recorder.record(&self.on_drop);
    }
}

/// The authenticators of one configuration and their key refreshers.
#[derive(Debug)]
pub(crate) struct AuthenticatorSet {
    authenticators: Authenticators,
    refreshers: Vec<Arc<JwksRefresher>>,
    has_deadline: bool,
    generation: u64,
    anonymous: Option<AnonymousAuthConfig>,
    mapped: MappedAttributes,
}

/// Attributes that users of a configuration can have: a client that impersonates them needs permissions for these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedAttributes {
    /// User names of all issuers.
    pub usernames: PossibleValues,
    /// Groups of all issuers.
    pub groups: PossibleValues,
    /// Users of some issuer have a UID.
    pub uid: bool,
    /// All extra attributes by key, including the credential's identifier.
    // S138
    pub extra: BTreeMap<String, PossibleValues>,
}

/// Of a configuration without issuers.
impl Default for MappedAttributes {
    fn default() -> Self {
        MappedAttributes {
            usernames: PossibleValues::none(),
            groups: PossibleValues::none(),
            uid: false,
            extra: BTreeMap::new(),
        }
    }
}

impl MappedAttributes {
    fn from_compiled(compiled: &CompiledConfig) -> Self {
        let mut mapped = MappedAttributes::default();
        for one in &compiled.authenticators {
            mapped.usernames = mapped.usernames.or(PossibleValues::from_mapping(&one.username));
            if let Some(groups) = &one.groups {
                mapped.groups = mapped.groups.or(PossibleValues::from_mapping(groups));
            }
            mapped.uid |= one.uid.is_some();
            for extra in &one.extra {
                let known = mapped.extra.remove(&extra.key).unwrap_or_else(PossibleValues::none);
                let values = known.or(PossibleValues::from_expression(&extra.value));
                mapped.extra.insert(extra.key.clone(), values);
            }
            // Every token can have an identifier of its own, whatever else is mapped to the key.
            mapped.extra.insert(CREDENTIAL_ID.to_owned(), PossibleValues::Any);
        }
        mapped
    }
}

impl AuthenticatorSet {
    /// Creates authenticators for a configuration. Refreshers of `earlier` are reused for unchanged issuers; `fixed` returns
    /// keys that come from files, by issuer.
    // H24
    pub(crate) fn new(
        compiled: CompiledConfig,
        fixed: impl Fn(&CompiledIssuer) -> Option<StaticKeys>,
        context: &JwksContext,
        changed: &Arc<Notify>,
        earlier: Option<&AuthenticatorSet>,
    ) -> Self {
        let profile = compiled.profile;
        let (anonymous, mapped) = (compiled.anonymous.clone(), MappedAttributes::from_compiled(&compiled));
        let refreshers = std::cell::RefCell::new(Vec::new());
        let authenticators = Authenticators::with_distributed(compiled, |configuration| {
            let distributed = Arc::new(DistributedClaimResolver::new(context.clone(), Arc::clone(changed)));
            if let Some(keys) = fixed(&configuration.issuer) {
                return (Arc::new(keys), Some(distributed));
            }
            let earlier = earlier.filter(|_| profile.has(Hardening::IncrementalReload)).and_then(|earlier| {
                earlier.refreshers.iter().find(|refresher| refresher.serves(&configuration.issuer, &profile))
            });
            let refresher = earlier.cloned().unwrap_or_else(|| {
                Arc::new(JwksRefresher::new(configuration.issuer.clone(), profile, context.clone()))
            });
            refreshers.borrow_mut().push(Arc::clone(&refresher));
            (refresher, Some(distributed))
        });
        let generation = earlier.map_or(0, |earlier| earlier.generation + 1);
        let refreshers = refreshers.into_inner();
        let has_deadline = profile.has(Hardening::ExpressionDeadline);
        AuthenticatorSet { authenticators, refreshers, has_deadline, generation, anonymous, mapped }
    }

    pub(crate) fn with_revocations(mut self, revocations: &Arc<Revocations>) -> Self {
        self.authenticators = self.authenticators.with_revocations(Arc::clone(revocations));
        self
    }

    pub(crate) fn refreshers(&self) -> &[Arc<JwksRefresher>] {
        &self.refreshers
    }

    pub(crate) fn issuers(&self) -> impl Iterator<Item = &str> {
        self.authenticators.iter().map(|one| one.configuration.issuer.url.as_str())
    }
}

impl ReloadableAuthenticator {
    pub(crate) fn new(
        set: AuthenticatorSet,
        revocations: Arc<Revocations>,
        context: &JwksContext,
        changed: Arc<Notify>,
    ) -> Self {
        ReloadableAuthenticator {
            current: ArcSwap::from_pointee(set),
            revocations,
            cache: TokenCache::new(),
            flights: DecisionFlights::new(Arc::clone(&context.clock)),
            clock: Arc::clone(&context.clock),
            recorder: Arc::clone(&context.recorder),
            changed,
            pending: Mutex::default(),
            is_driven: AtomicBool::new(false),
        }
    }

    /// Authenticates a token.
    pub async fn authenticate(&self, token: &str) -> AuthnOutcome {
        self.decide(token).await.outcome
    }

    /// Authenticates a token; the decision carries what the verifier read from it.
    pub async fn decide(&self, token: &str) -> AuthnDecision {
        let started = self.clock.monotonic();
        let digest = self.cache.digest(token);
        let now = self.clock.now();
        let epoch = self.cache_epoch(&self.current.load());
        let found = self.cache.find(&digest, epoch, now);
        let took = self.clock.monotonic().saturating_sub(started);
        self.recorder.record(&AuthnEvent::CacheLookup { is_hit: found.is_some(), took });
        if let Some(decision) = found {
            self.recorder.record(&AuthnEvent::Attempt { outcome: &decision.outcome, took });
            return decision;
        }
        let decision = {
            // An accepted token is looked up again: the cache knows whether the decision is still valid.
            let revalidate = |shared: &AuthnDecision| match shared.outcome {
                AuthnOutcome::Authenticated(_) => self.cache.find(&digest, epoch, self.clock.now()),
                _ => Some(shared.clone()),
            };
            let _waiting = EventGuard::new(&self.recorder, AuthnEvent::WaitStarted, AuthnEvent::WaitEnded);
            // Boxed: verification is the larger part of the future, and rarely needed.
            let decide = self.decide_uncached(token, &digest);
            let without_fetch = || self.decide_without_fetch(token);
            Box::pin(self.flights.share((digest, epoch), revalidate, decide, without_fetch)).await
        };
        let took = self.clock.monotonic().saturating_sub(started);
        self.recorder.record(&AuthnEvent::Attempt { outcome: &decision.outcome, took });
        decision
    }

    async fn decide_uncached(&self, token: &str, digest: &TokenDigest) -> AuthnDecision {
        let set = self.current.load_full();
        let epoch = self.cache_epoch(&set);
        let (started, now) = (self.clock.monotonic(), self.clock.now());
        let is_late = || self.clock.monotonic().saturating_sub(started) > EXPRESSION_TIMEOUT;
        let interrupt: Option<&(dyn Fn() -> bool + Sync)> =
            if set.has_deadline { Some(&is_late) } else { None };
        let failed = AuthnEvent::FetchEnded { is_error: true };
        let mut fetching = EventGuard::new(&self.recorder, AuthnEvent::FetchStarted, failed);
        let request = AuthnRequest { interrupt, ..AuthnRequest::new(token, now) };
        let fresh = set.authenticators.decide(&request).await;
        let decision = fresh.decision;
        let is_error = matches!(decision.outcome, AuthnOutcome::Rejected(_));
        fetching.on_drop = AuthnEvent::FetchEnded { is_error };
        drop(fetching);
        if let Some(authenticator) = decision.authenticator() {
            self.record_evaluation(authenticator, &decision.outcome, started);
        }
        self.cache.insert(*digest, epoch, now, &decision, fresh.validity);
        self.recorder.record(&AuthnEvent::CacheEntries(self.cache.len()));
        decision
    }

    /// Decides with the keys at hand, for a request that does not wait for them.
    fn decide_without_fetch(&self, token: &str) -> AuthnDecision {
        let set = self.current.load_full();
        let started = self.clock.monotonic();
        let is_late = || self.clock.monotonic().saturating_sub(started) > EXPRESSION_TIMEOUT;
        let interrupt: Option<&(dyn Fn() -> bool + Sync)> =
            if set.has_deadline { Some(&is_late) } else { None };
        let request = AuthnRequest { interrupt, ..AuthnRequest::new(token, self.clock.now()) };
        let decision = set.authenticators.decide_without_fetch(&request);
        if let Some(authenticator) = decision.authenticator() {
            self.record_evaluation(authenticator, &decision.outcome, started);
        }
        decision
    }

    fn record_evaluation(
        &self,
        authenticator: &IssuerAuthenticator,
        outcome: &AuthnOutcome,
        started: Duration,
    ) {
        let issuer = &authenticator.configuration.issuer.url;
        let took = self.clock.monotonic().saturating_sub(started);
        let refusal = match outcome {
            AuthnOutcome::Rejected(rejection) => Some(rejection.refusal.class()),
            _ => None,
        };
        self.recorder.record(&AuthnEvent::TokenEvaluated { issuer, refusal, took });
    }

    fn cache_epoch(&self, set: &AuthenticatorSet) -> CacheEpoch {
        CacheEpoch { generation: set.generation, revocations: self.revocations.version() }
    }

    /// Every key refresher, also those of a configuration that waits for its issuers. The caller has to drive each of them with
    /// [`JwksRefresher::run_due`].
    pub fn refreshers(&self) -> Vec<Arc<JwksRefresher>> {
        let set = self.current.load();
        let mut refreshers = set.refreshers.clone();
        for distributed in set.authenticators.iter().filter_map(|one| one.distributed()) {
            refreshers.extend(distributed.refreshers());
        }
        let pending = self.pending().clone();
        refreshers.extend(
            pending.into_iter().filter(|one| !set.refreshers.iter().any(|known| Arc::ptr_eq(known, one))),
        );
        refreshers
    }

    /// Tells [`AuthnReloader`](crate::config::AuthnReloader) that a task drives all [`ReloadableAuthenticator::refreshers`]. A reload
    /// then leaves requests to new issuers to that task.
    pub fn set_driven(&self) {
        self.is_driven.store(true, Ordering::Release);
        self.expect_drivers();
    }

    /// Requests that arrive before the tasks of new refreshers have started leave fetches to them.
    fn expect_drivers(&self) {
        if self.is_driven() {
            let set = self.current.load();
            set.refreshers.iter().for_each(|refresher| refresher.expect_driver());
        }
    }

    pub(crate) fn is_driven(&self) -> bool {
        self.is_driven.load(Ordering::Acquire)
    }

    /// Sets the refreshers of the configuration that is not in use yet.
    pub(crate) fn set_pending(&self, refreshers: Vec<Arc<JwksRefresher>>) {
        let was_empty = std::mem::replace(&mut *self.pending(), refreshers).is_empty();
        if !was_empty || !self.pending().is_empty() {
            self.changed.notify_one();
        }
    }

    fn pending(&self) -> MutexGuard<'_, Vec<Arc<JwksRefresher>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deadlines of requests that wait for the decision on the same token. The caller has to drive them.
    pub fn deadlines(&self) -> &Deadlines {
        self.flights.deadlines()
    }

    /// Completes when [`ReloadableAuthenticator::refreshers`] may have changed since this was last awaited.
    pub async fn refreshers_changed(&self) {
        self.changed.notified().await;
    }

    /// The health of every issuer, by its URL. An issuer with keys from a file is always ready.
    // S225
    pub fn health(&self) -> Vec<(String, IssuerHealth)> {
        let set = self.current.load();
        let health = |one: &Arc<IssuerAuthenticator>| {
            let issuer = &one.configuration.issuer;
            let refresher = set.refreshers.iter().find(|refresher| refresher.issuer().url == issuer.url);
            let fixed = || IssuerHealth { is_ready: true, is_discovered: true, ..IssuerHealth::default() };
            (issuer.url.clone(), refresher.map_or_else(fixed, |refresher| refresher.health()))
        };
        let mut all: Vec<_> = set.authenticators.iter().map(health).collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }

    /// The `anonymous` section of the configuration; it never changes while the process runs.
    // S185
    pub fn anonymous(&self) -> Option<AnonymousAuthConfig> {
        self.current.load().anonymous.clone()
    }

    /// Attributes that users of the current configuration can have.
    pub fn mapped_attributes(&self) -> MappedAttributes {
        self.current.load().mapped.clone()
    }

    /// Settings of the current configuration that have no effect under its profile, one clause each.
    pub fn ignored_settings(&self) -> Vec<String> {
        let set = self.current.load();
        let profile = set.authenticators.profile();
        let mut ignored: Vec<_> = set
            .authenticators
            .iter()
            .filter_map(|one| one.configuration.settings.ignored_under(profile))
            .collect();
        ignored.sort();
        ignored
    }

    /// The revocation list in use.
    pub fn revocations(&self) -> &Arc<Revocations> {
        &self.revocations
    }

    /// Follows the version of the revocation list. After a change, ask [`ReloadableAuthenticator::is_revoked`] about the
    /// decisions that still matter, such as those of open streams.
    pub fn subscribe_revocations(&self) -> watch::Receiver<u64> {
        self.revocations.subscribe()
    }

    /// Whether the current revocation list revokes the token of an earlier decision. Costs a few hash lookups; false for
    /// tokens that were not accepted.
    pub fn is_revoked(&self, decision: &AuthnDecision) -> bool {
        decision.revocable().is_some_and(|(issuer, token)| self.revocations.revokes(issuer, &token))
    }

    pub(crate) fn current_set(&self) -> Arc<AuthenticatorSet> {
        self.current.load_full()
    }

    /// Replaces the authenticators. Requests in progress finish with the earlier ones; cached decisions of the earlier
    /// configuration are not used again.
    pub(crate) fn replace(&self, set: AuthenticatorSet) {
        let gone: Vec<String> = {
            let old = self.current.load();
            let stays = |issuer: &str| set.issuers().any(|kept| kept == issuer);
            old.issuers().filter(|issuer| !stays(issuer)).map(str::to_owned).collect()
        };
        self.current.store(Arc::new(set));
        self.expect_drivers();
        self.changed.notify_one();
        for issuer in &gone {
            self.recorder.record(&AuthnEvent::IssuerRemoved { issuer });
        }
    }

    pub(crate) fn changed(&self) -> &Arc<Notify> {
        &self.changed
    }
}
