//! What a server holds: authenticators that can be replaced while they are in use, a memory of recent decisions, and the
//! health of every issuer.
//!
//! ```text
//! token ──token_cache──▶ (hit) outcome
//!            │ miss
//!            ▼
//!       Authenticators ──keys, distributed claims──▶ outcome ──▶ token_cache
//!            ▲
//!   config::Reloader swaps
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use navicert_types::Clock;
use navicert_types::authentication_config::AnonymousAuthConfig;
use tokio::sync::Notify;

use crate::authenticator::{Authenticator, Authenticators, Question};
use crate::config::{Compiled, CompiledIssuer};
use crate::flights::Flights;
use crate::jwks::{Around, FixedKeys, Health, Keeper};
use crate::mapping::CREDENTIAL_ID;
use crate::mapping::distributed::Distributed;
use crate::metrics::{Event, Recorder};
use crate::outcome::Outcome;
use crate::profile::Rule;
use crate::revocation::Revocations;
use crate::token_cache::{Grounds, TokenCache};

/// How long the expressions of one token may run (H6).
const EXPRESSIONS: Duration = Duration::from_secs(1);

/// Authenticators in service.
#[derive(Debug)]
pub struct Live {
    current: ArcSwap<Set>,
    revocations: Arc<Revocations>,
    cache: TokenCache,
    flights: Flights<Judgement>,
    clock: Arc<dyn Clock>,
    recorder: Arc<dyn Recorder>,
    changed: Arc<Notify>,
}

/// Something that was begun and is told of when it ends, also if nobody waits for that.
struct Ended<'r> {
    recorder: &'r Arc<dyn Recorder>,
    as_what: Event<'static>,
}

impl<'r> Ended<'r> {
    fn new(recorder: &'r Arc<dyn Recorder>, begun: Event<'static>, as_what: Event<'static>) -> Self {
        recorder.record(&begun);
        Ended { recorder, as_what }
    }
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.recorder.record(&self.as_what);
    }
}

/// What was decided about a token, and whose authenticator decided it.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// How it ended.
    pub outcome: Outcome,
    pub(crate) authenticator: Option<Arc<Authenticator>>,
}

impl Judgement {
    /// The URL of the token's issuer, if it is one of ours.
    pub fn issuer(&self) -> Option<&str> {
        self.authenticator.as_ref().map(|one| one.configuration.issuer.url.as_str())
    }
}

/// The authenticators of one configuration, and the keepers behind them.
#[derive(Debug)]
pub(crate) struct Set {
    authenticators: Authenticators,
    keepers: Vec<Arc<Keeper>>,
    has_deadline: bool,
    generation: u64,
    anonymous: Option<AnonymousAuthConfig>,
    mapped: Mapped,
}

/// What users of a configuration can have besides a name: whoever passes it on may need permissions for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Some issuer's users have groups.
    pub groups: bool,
    /// Some issuer's users have a UID.
    pub uid: bool,
    /// The keys of all further attributes, the credential's own identifier among them (S138).
    pub extra: BTreeSet<String>,
}

impl Mapped {
    fn of(compiled: &Compiled) -> Self {
        let extra = compiled.authenticators.iter().flat_map(|one| &one.extra).map(|extra| extra.key.clone());
        let mut extra: BTreeSet<String> = extra.collect();
        if !compiled.authenticators.is_empty() {
            extra.insert(CREDENTIAL_ID.to_owned());
        }
        let groups = compiled.authenticators.iter().any(|one| one.groups.is_some());
        Mapped { groups, uid: compiled.authenticators.iter().any(|one| one.uid.is_some()), extra }
    }
}

impl Set {
    /// Puts a configuration to work. A keeper of `earlier` goes on where its issuer is the same (H24); keys from files
    /// are in `fixed`, by issuer.
    pub(crate) fn new(
        compiled: Compiled,
        fixed: impl Fn(&CompiledIssuer) -> Option<FixedKeys>,
        around: &Around,
        changed: &Arc<Notify>,
        earlier: Option<&Set>,
    ) -> Self {
        let profile = compiled.profile;
        let (anonymous, mapped) = (compiled.anonymous.clone(), Mapped::of(&compiled));
        let keepers = std::cell::RefCell::new(Vec::new());
        let authenticators = Authenticators::with_distributed(compiled, |configuration| {
            let distributed = Arc::new(Distributed::new(around.clone(), Arc::clone(changed)));
            if let Some(keys) = fixed(&configuration.issuer) {
                return (Arc::new(keys), Some(distributed));
            }
            let earlier = earlier.filter(|_| profile.has(Rule::H24)).and_then(|earlier| {
                earlier.keepers.iter().find(|keeper| keeper.keeps(&configuration.issuer, &profile))
            });
            let keeper = earlier.cloned().unwrap_or_else(|| {
                Arc::new(Keeper::new(configuration.issuer.clone(), profile, around.clone()))
            });
            keepers.borrow_mut().push(Arc::clone(&keeper));
            (keeper, Some(distributed))
        });
        let generation = earlier.map_or(0, |earlier| earlier.generation + 1);
        let keepers = keepers.into_inner();
        let has_deadline = profile.has(Rule::H6);
        Set { authenticators, keepers, has_deadline, generation, anonymous, mapped }
    }

    pub(crate) fn with_revocations(mut self, revocations: &Arc<Revocations>) -> Self {
        self.authenticators = self.authenticators.with_revocations(Arc::clone(revocations));
        self
    }

    pub(crate) fn keepers(&self) -> &[Arc<Keeper>] {
        &self.keepers
    }

    pub(crate) fn issuers(&self) -> impl Iterator<Item = &str> {
        self.authenticators.iter().map(|one| one.configuration.issuer.url.as_str())
    }
}

impl Live {
    pub(crate) fn new(
        set: Set,
        revocations: Arc<Revocations>,
        around: &Around,
        changed: Arc<Notify>,
    ) -> Self {
        Live {
            current: ArcSwap::from_pointee(set),
            revocations,
            cache: TokenCache::new(),
            flights: Flights::new(),
            clock: Arc::clone(&around.clock),
            recorder: Arc::clone(&around.recorder),
            changed,
        }
    }

    /// Whose token is this?
    pub async fn authenticate(&self, token: &str) -> Outcome {
        self.judge(token).await.outcome
    }

    /// Whose token is this, and who says so?
    pub async fn judge(&self, token: &str) -> Judgement {
        let started = self.clock.monotonic();
        let name = self.cache.name(token);
        let now = self.clock.now();
        let grounds = self.grounds(&self.current.load());
        let found = self.cache.find(&name, grounds, now);
        let took = self.clock.monotonic().saturating_sub(started);
        self.recorder.record(&Event::CacheLookup { is_hit: found.is_some(), took });
        if let Some(judgement) = found {
            self.recorder.record(&Event::Attempt { outcome: &judgement.outcome, took });
            return judgement;
        }
        let judgement = {
            // Of a token that was accepted meanwhile, the memory knows whether that still holds.
            let still = |landed: &Judgement| match landed.outcome {
                Outcome::Authenticated(_) => self.cache.find(&name, grounds, self.clock.now()),
                _ => Some(landed.clone()),
            };
            let _waiting = Ended::new(&self.recorder, Event::WaitStarted, Event::WaitEnded);
            // Verifying is the larger part of the future, and seldom needed.
            Box::pin(self.flights.share((name, grounds), still, self.decide(token, &name))).await
        };
        let took = self.clock.monotonic().saturating_sub(started);
        self.recorder.record(&Event::Attempt { outcome: &judgement.outcome, took });
        judgement
    }

    async fn decide(&self, token: &str, name: &crate::token_cache::Name) -> Judgement {
        let set = self.current.load_full();
        let grounds = self.grounds(&set);
        let (started, now) = (self.clock.monotonic(), self.clock.now());
        let is_late = || self.clock.monotonic().saturating_sub(started) > EXPRESSIONS;
        let interrupt: Option<&(dyn Fn() -> bool + Sync)> =
            if set.has_deadline { Some(&is_late) } else { None };
        let failed = Event::FetchEnded { is_error: true };
        let mut fetching = Ended::new(&self.recorder, Event::FetchStarted, failed);
        let question = Question { interrupt, ..Question::new(token, now) };
        let decision = set.authenticators.decide(&question).await;
        fetching.as_what = Event::FetchEnded { is_error: matches!(decision.outcome, Outcome::Rejected(_)) };
        drop(fetching);
        if let Some(authenticator) = &decision.authenticator {
            self.count(authenticator, &decision.outcome, started);
        }
        let judgement = Judgement { outcome: decision.outcome, authenticator: decision.authenticator };
        self.cache.keep(*name, grounds, now, &judgement, decision.evidence);
        self.recorder.record(&Event::CacheEntries(self.cache.len()));
        judgement
    }

    fn count(&self, authenticator: &Authenticator, outcome: &Outcome, started: Duration) {
        let issuer = &authenticator.configuration.issuer.url;
        let took = self.clock.monotonic().saturating_sub(started);
        let refusal = match outcome {
            Outcome::Rejected(rejection) => Some(rejection.refusal.class()),
            _ => None,
        };
        self.recorder.record(&Event::Judged { issuer, refusal, took });
    }

    fn grounds(&self, set: &Set) -> Grounds {
        Grounds { generation: set.generation, revocations: self.revocations.version() }
    }

    /// Every keeper there is; somebody with a runtime has to tend each of them.
    pub fn keepers(&self) -> Vec<Arc<Keeper>> {
        let set = self.current.load();
        let mut keepers = set.keepers.clone();
        for distributed in set.authenticators.iter().filter_map(|one| one.distributed()) {
            keepers.extend(distributed.keepers());
        }
        keepers
    }

    /// Done when [`Live::keepers`] may have changed since this was last awaited.
    pub async fn keepers_changed(&self) {
        self.changed.notified().await;
    }

    /// How every issuer is doing, by its URL (S225). One whose keys are in a file is always well.
    pub fn health(&self) -> Vec<(String, Health)> {
        let set = self.current.load();
        let health = |one: &Arc<Authenticator>| {
            let issuer = &one.configuration.issuer;
            let keeper = set.keepers.iter().find(|keeper| keeper.issuer().url == issuer.url);
            let fixed = || Health { is_ready: true, is_discovered: true, ..Health::default() };
            (issuer.url.clone(), keeper.map_or_else(fixed, |keeper| keeper.health()))
        };
        let mut all: Vec<_> = set.authenticators.iter().map(health).collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }

    /// Who may come without a credential, and for what; it never changes while the process runs (S185).
    pub fn anonymous(&self) -> Option<AnonymousAuthConfig> {
        self.current.load().anonymous.clone()
    }

    /// What users can have just now besides a name.
    pub fn mapped(&self) -> Mapped {
        self.current.load().mapped.clone()
    }

    /// What is revoked.
    pub fn revocations(&self) -> &Arc<Revocations> {
        &self.revocations
    }

    pub(crate) fn set(&self) -> Arc<Set> {
        self.current.load_full()
    }

    /// From now on these authenticators count. Whoever is being judged is judged by the earlier ones to the end, and
    /// no earlier decision is repeated.
    pub(crate) fn swap(&self, set: Set) {
        let gone: Vec<String> = {
            let old = self.current.load();
            let stays = |issuer: &str| set.issuers().any(|kept| kept == issuer);
            old.issuers().filter(|issuer| !stays(issuer)).map(str::to_owned).collect()
        };
        self.current.store(Arc::new(set));
        self.changed.notify_one();
        for issuer in &gone {
            self.recorder.record(&Event::IssuerGone { issuer });
        }
    }

    pub(crate) fn changed(&self) -> &Arc<Notify> {
        &self.changed
    }
}
