//! The spine: an image comes in, and the credentials to pull it with come out (walk (d) of ARCHITECTURE.md).
//!
//! ```text
//! image ──index──▶ providers that match
//!                    └─▶ service account ──▶ cache ──miss──▶ one flight ──▶ plugin ──▶ response ──▶ cache
//!                  every answer's keyring ──▶ one list of credentials, in the order they are tried
//! ```
//!
//! In profile `kube` every step is the kubelet's. In `hardened` providers are asked at the same time, runs for
//! one registry are shared, failures wait before they are repeated, and an API server that is away does
//! not take cached credentials away.
// I148, I259, I262, I110

mod cache;
mod resolve;
mod run;
mod slots;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use navicert_plugin::{Environment, Policy, Runner};
use navicert_types::Clock;

pub use cache::{CacheEntry, CacheListing};
pub use resolve::Provider;

use crate::cache_key::{CacheKeyType, ServiceAccountIdentity};
use crate::config::{ImageConfig, ProviderConfig};
use crate::credential::Credential;
use crate::error::{ProviderError, StartError};
use crate::index::PatternIndex;
use crate::keyring::{Keyring, lookup_all};
use crate::location::Location;
use crate::metrics::{MetricsEvent, MetricsRecorder, NoMetrics};
use crate::profile::Profile;
use crate::service_account::{PullIdentity, ServiceAccountCache, ServiceAccounts, Skipped};
use slots::RunSlots;

/// Everything providers need from outside.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// Where the executables are.
    pub bin_dir: PathBuf,
    /// The environment plugins inherit.
    // I92
    pub environment: Environment,
    /// Whose behaviour.
    pub profile: Profile,
    /// Which executables may run.
    pub policy: Policy,
    /// Runs them.
    pub runner: Arc<dyn Runner>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Counts what happens.
    pub recorder: Arc<dyn MetricsRecorder>,
    /// The API server, where there is one.
    pub service_accounts: Option<Arc<dyn ServiceAccounts>>,
    /// How much a plugin may take.
    pub limits: ProviderLimits,
    /// Whether answers are refreshed in the background before they expire: for processes that live on.
    // I260
    pub refresh_ahead: bool,
}

/// How much a plugin may take.
// I94, I95, I263
#[derive(Clone, Copy, Debug)]
pub struct ProviderLimits {
    /// How long a run may take.
    pub run: Duration,
    /// How much it may print.
    pub stdout: usize,
    /// How much of what it complains is kept.
    pub stderr: usize,
    /// How many answers of one provider are remembered.
    pub entries: NonZeroUsize,
    /// How many plugins run at once.
    pub concurrent_runs: NonZeroUsize,
}

impl Default for ProviderLimits {
    fn default() -> Self {
        let at_least = NonZeroUsize::new(4).unwrap_or(NonZeroUsize::MIN);
        ProviderLimits {
            run: Duration::from_secs(60),
            stdout: 1 << 20,
            stderr: 64 << 10,
            entries: NonZeroUsize::new(10_000).unwrap_or(NonZeroUsize::MIN),
            concurrent_runs: thread::available_parallelism().unwrap_or(at_least).max(at_least),
        }
    }
}

impl ProviderSettings {
    /// Settings with the defaults: hardened, any executable of the folder, nothing counted, no API server.
    pub fn new(
        bin_dir: &Path,
        environment: Environment,
        runner: Arc<dyn Runner>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        ProviderSettings {
            bin_dir: bin_dir.to_owned(),
            environment,
            profile: Profile::default(),
            policy: Policy::AllowAll,
            runner,
            clock,
            recorder: Arc::new(NoMetrics),
            service_accounts: None,
            limits: ProviderLimits::default(),
            refresh_ahead: false,
        }
    }
}

/// The providers of a configuration, with their caches.
#[derive(Debug)]
pub struct Providers {
    providers: Vec<Arc<Provider>>,
    index: PatternIndex,
    hash: String,
    shared: Arc<Shared>,
}

/// What all providers of a process share.
#[derive(Debug)]
struct Shared {
    settings: ProviderSettings,
    service_accounts: Option<ServiceAccountCache>,
    slots: RunSlots,
}

impl Providers {
    /// Sets providers up. Whether the executables are there is [`Providers::check_executables`]'s question.
    pub fn new(config: &ImageConfig, settings: ProviderSettings) -> Self {
        let clock = Arc::clone(&settings.clock);
        let accounts = settings.service_accounts.clone().map(|api| ServiceAccountCache::new(api, clock));
        let slots = RunSlots::new(settings.limits.concurrent_runs);
        Providers::with_shared(config, Arc::new(Shared { settings, service_accounts: accounts, slots }), &[])
    }

    /// The same for another configuration. A provider that has not changed keeps its cache.
    // I250
    pub fn reconfigured(&self, config: &ImageConfig) -> Self {
        Providers::with_shared(config, Arc::clone(&self.shared), &self.providers)
    }

    fn with_shared(config: &ImageConfig, shared: Arc<Shared>, earlier: &[Arc<Provider>]) -> Self {
        let provider = |config: &ProviderConfig| {
            let same = earlier.iter().find(|earlier| earlier.is_configured_as(config));
            same.cloned().unwrap_or_else(|| Arc::new(Provider::new(config.clone(), &shared.settings)))
        };
        let providers: Vec<_> = config.providers().iter().map(provider).collect();
        let numbered = config.providers().iter().zip(0..);
        let patterns = numbered
            .flat_map(|(config, at)| config.patterns.iter().map(move |(_, pattern)| (pattern.clone(), at)));
        let index = PatternIndex::new(patterns);
        shared.settings.recorder.record(&MetricsEvent::ConfigLoaded { hash: config.hash() });
        Providers { index, hash: config.hash().to_owned(), providers, shared }
    }

    /// Whether every provider has a program to run, as the kubelet looks at its start.
    ///
    /// # Errors
    /// The first one that has none.
    // I4, I5
    pub fn check_executables(&self) -> Result<(), StartError> {
        let path = &self.shared.settings.bin_dir;
        if !path.exists() {
            return Err(StartError::NoBinDirectory { path: path.clone() });
        }
        self.providers.iter().try_for_each(|provider| provider.check_executable(&self.shared.settings))
    }

    /// The credentials for an image, given as its repository name. Blocks while plugins run.
    ///
    /// An error of one provider takes nothing from the others.
    // I100, I147
    pub fn lookup(&self, image: &str, identity: &PullIdentity) -> Lookup {
        let matching = self.matching(image);
        if matching.is_empty() {
            self.shared.settings.recorder.record(&MetricsEvent::NoMatch);
        }
        let mut outcomes: Vec<(usize, Option<ProviderOutcome>)> = match self.shared.settings.profile {
            Profile::Kube => Vec::with_capacity(matching.len()),
            // Most often everything is there already: no thread is needed to find that out.
            Profile::Hardened => matching.iter().map(|&at| (at, self.cached(at, image, identity))).collect(),
        };
        let missing = outcomes.iter_mut().filter(|(_, outcome)| outcome.is_none());
        match self.shared.settings.profile {
            Profile::Kube => {
                outcomes.extend(matching.iter().map(|&at| (at, self.resolve(at, image, identity))))
            }
            Profile::Hardened => self.resolve_concurrently(missing.collect(), image, identity),
        }
        let outcomes = outcomes.into_iter().filter_map(|(at, outcome)| Some((self.provider(at)?, outcome?)));
        Lookup { image: image.to_owned(), outcomes: outcomes.collect() }
    }

    /// Asks one provider, whether or not its patterns match: for whoever has chosen it by other means.
    // I232
    pub fn lookup_in(&self, provider: &Arc<Provider>, image: &str, identity: &PullIdentity) -> Lookup {
        let outcome = provider.resolve(image, identity, &self.shared);
        Lookup { image: image.to_owned(), outcomes: vec![(Arc::clone(provider), outcome)] }
    }

    /// Forgets what is remembered for an image: its own answers, its registry's and the global ones, of every provider
    /// that matches it. Returns how many answers that were.
    // I261
    pub fn invalidate(&self, image: &str) -> usize {
        self.matching(image)
            .into_iter()
            .filter_map(|at| self.provider(at))
            .map(|provider| provider.forget(image))
            .sum()
    }

    /// A registry refused a credential (401 or 403): the answer it came from is forgotten once, and not again within
    /// ten seconds, so that a registry that refuses everybody does not start a plugin for each pull.
    // I261
    pub fn report_rejected(&self, image: &str, credential_hash: &str) -> bool {
        let matching = self.matching(image);
        let providers = matching.into_iter().filter_map(|at| self.provider(at));
        providers.filter(|provider| provider.forget_rejected(image, credential_hash, &self.shared)).count()
            > 0
    }

    /// Drops every expired answer, secrets and all.
    // I130
    pub fn purge(&self) {
        self.providers.iter().for_each(|provider| provider.purge());
    }

    /// What is remembered and has not expired; runs nothing.
    // I238
    pub fn list_cache(&self) -> Vec<CacheListing> {
        self.providers.iter().flat_map(|provider| provider.list_cache()).collect()
    }

    /// All providers in the order they are asked.
    pub fn providers(&self) -> &[Arc<Provider>] {
        &self.providers
    }

    /// The hash of the configuration.
    // I19
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Whose behaviour.
    pub fn profile(&self) -> Profile {
        self.shared.settings.profile
    }

    /// The providers that would be asked for an image, in order.
    pub fn matching_providers(&self, image: &str) -> Vec<Arc<Provider>> {
        self.matching(image).into_iter().filter_map(|at| self.provider(at)).collect()
    }

    fn matching(&self, image: &str) -> Vec<usize> {
        let Ok(location) = Location::parse(image.as_bytes()) else { return Vec::new() };
        self.index.matching(&location).into_iter().filter_map(|at| usize::try_from(at).ok()).collect()
    }

    fn provider(&self, at: usize) -> Option<Arc<Provider>> {
        self.providers.get(at).cloned()
    }

    fn cached(&self, at: usize, image: &str, identity: &PullIdentity) -> Option<ProviderOutcome> {
        self.provider(at)?.cached(image, identity, &self.shared)
    }

    fn resolve(&self, at: usize, image: &str, identity: &PullIdentity) -> Option<ProviderOutcome> {
        Some(self.provider(at)?.resolve(image, identity, &self.shared))
    }

    /// Asks several providers at the same time; the order of the answers stays that of the configuration.
    // I148
    fn resolve_concurrently(
        &self,
        mut missing: Vec<&mut (usize, Option<ProviderOutcome>)>,
        image: &str,
        identity: &PullIdentity,
    ) {
        let Some(first) = missing.pop() else { return };
        thread::scope(|scope| {
            for slot in missing {
                scope.spawn(move || slot.1 = self.resolve(slot.0, image, identity));
            }
            first.1 = self.resolve(first.0, image, identity);
        });
    }
}

/// What came of asking the providers for one image.
#[derive(Debug)]
pub struct Lookup {
    image: String,
    outcomes: Vec<(Arc<Provider>, ProviderOutcome)>,
}

/// What came of asking one provider.
#[derive(Clone, Debug)]
pub enum ProviderOutcome {
    /// It answered, possibly with no credentials.
    Answered(ProviderAnswer),
    /// It was not asked, and that is no error.
    Skipped(Skipped),
    /// It could not answer.
    Failed(ProviderError),
}

/// A provider's answer.
#[derive(Clone, Debug)]
pub struct ProviderAnswer {
    /// The answer as it is remembered.
    pub entry: Arc<CacheEntry>,
    /// Where it came from.
    pub origin: AnswerOrigin,
    /// The service account it belongs to; none: every pod may use it.
    // I118
    pub source: Option<ServiceAccountIdentity>,
}

/// Where an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerOrigin {
    /// Remembered, under a key of this type.
    Cache(CacheKeyType),
    /// A run of the plugin.
    Plugin,
}

/// One credential to try.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The provider it came from.
    pub provider: &'a str,
    /// The key it stood under.
    pub key: &'a [u8],
    /// The credential.
    pub credential: &'a Credential,
    /// Whose it is.
    pub source: Option<&'a ServiceAccountIdentity>,
}

impl Lookup {
    /// The image that was looked up.
    pub fn image(&self) -> &str {
        &self.image
    }

    /// What each provider that matched had to say, in order.
    pub fn outcomes(&self) -> impl Iterator<Item = (&str, &ProviderOutcome)> {
        self.outcomes.iter().map(|(provider, outcome)| (provider.name(), outcome))
    }

    /// What went wrong. A pull that fails later should say so too.
    // I248
    pub fn errors(&self) -> impl Iterator<Item = &ProviderError> {
        self.outcomes.iter().filter_map(|(_, outcome)| match outcome {
            ProviderOutcome::Failed(error) => Some(error),
            ProviderOutcome::Answered(_) | ProviderOutcome::Skipped(_) => None,
        })
    }

    /// The credentials in the order they are tried. None: the pull is anonymous.
    // I138, I147, I151
    pub fn attempts(&self) -> Vec<Attempt<'_>> {
        self.attempts_for(&self.image)
    }

    /// The same for another spelling of the image.
    pub(crate) fn attempts_for(&self, image: &str) -> Vec<Attempt<'_>> {
        let answers: Vec<(&str, &ProviderAnswer)> = self.answers().collect();
        let keyrings: Vec<&Keyring> = answers.iter().map(|(_, answer)| answer.entry.keyring()).collect();
        let found = lookup_all(&keyrings, image).into_iter();
        let attempts = found.filter_map(|found| {
            let (provider, answer) = answers.get(found.keyring)?;
            Some(found.credentials.iter().map(move |credential| Attempt {
                provider,
                key: found.key,
                credential,
                source: answer.source.as_ref(),
            }))
        });
        attempts.flatten().collect()
    }

    /// The answers there are.
    pub fn answers(&self) -> impl Iterator<Item = (&str, &ProviderAnswer)> {
        self.outcomes().filter_map(|(provider, outcome)| match outcome {
            ProviderOutcome::Answered(answer) => Some((provider, answer)),
            ProviderOutcome::Skipped(_) | ProviderOutcome::Failed(_) => None,
        })
    }
}

impl fmt::Display for AnswerOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnswerOrigin::Cache(key_type) => write!(f, "cache ({})", key_type.as_str()),
            AnswerOrigin::Plugin => f.write_str("plugin"),
        }
    }
}

#[cfg(test)]
mod tests;
