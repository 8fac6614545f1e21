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

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use navicert_types::Clock;
use navicert_types::authentication_config::AnonymousAuthConfig;
use tokio::sync::Notify;

use crate::authenticator::{Authenticator, Authenticators};
use crate::config::{CompiledConfig, CompiledIssuer};
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

/// Attributes that users of a configuration can have besides a name: a client that impersonates them may need permissions for these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedAttributes {
    /// Users of some issuer have groups.
    pub groups: bool,
    /// Users of some issuer have a UID.
    pub uid: bool,
    /// Keys of all extra attributes, including that of the credential's identifier.
    // S138
    pub extra: BTreeSet<String>,
}

impl MappedAttributes {
    fn from_compiled(compiled: &CompiledConfig) -> Self {
        let extra = compiled.authenticators.iter().flat_map(|one| &one.extra).map(|extra| extra.key.clone());
        let mut extra: BTreeSet<String> = extra.collect();
        if !compiled.authenticators.is_empty() {
            extra.insert(CREDENTIAL_ID.to_owned());
        }
        let groups = compiled.authenticators.iter().any(|one| one.groups.is_some());
        MappedAttributes { groups, uid: compiled.authenticators.iter().any(|one| one.uid.is_some()), extra }
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
            flights: DecisionFlights::new(),
            clock: Arc::clone(&context.clock),
            recorder: Arc::clone(&context.recorder),
            changed,
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
            Box::pin(self.flights.share((digest, epoch), revalidate, self.decide_uncached(token, &digest)))
                .await
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

    fn record_evaluation(&self, authenticator: &Authenticator, outcome: &AuthnOutcome, started: Duration) {
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

    /// Every key refresher. The caller has to drive each of them with [`JwksRefresher::run_due`].
    pub fn refreshers(&self) -> Vec<Arc<JwksRefresher>> {
        let set = self.current.load();
        let mut refreshers = set.refreshers.clone();
        for distributed in set.authenticators.iter().filter_map(|one| one.distributed()) {
            refreshers.extend(distributed.refreshers());
        }
        refreshers
    }

    /// Completes when [`ReloadableAuthenticator::refreshers`] may have changed since this was last awaited.
    pub async fn refreshers_changed(&self) {
        self.changed.notified().await;
    }

    /// The health of every issuer, by its URL. An issuer with keys from a file is always ready.
    // S225
    pub fn health(&self) -> Vec<(String, IssuerHealth)> {
        let set = self.current.load();
        let health = |one: &Arc<Authenticator>| {
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
        self.changed.notify_one();
        for issuer in &gone {
            self.recorder.record(&AuthnEvent::IssuerRemoved { issuer });
        }
    }

    pub(crate) fn changed(&self) -> &Arc<Notify> {
        &self.changed
    }
}
