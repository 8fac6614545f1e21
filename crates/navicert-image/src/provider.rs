//! The lookup path: takes an image, returns the credentials to pull it with (request path (d) of ARCHITECTURE.md).
//!
//! ```text
//! image ──index──▶ providers that match
//!                    └─▶ service account ──▶ cache ──miss──▶ single flight ──▶ plugin ──▶ response ──▶ cache
//!                  keyrings of all answers ──▶ one list of credentials, in the order they are tried
//! ```
//!
//! In profile `kube` every step matches the kubelet. In `hardened` providers run concurrently, plugin runs for one
//! registry are shared, failures back off, and cached credentials stay usable while the API server is unreachable.
// I148, I259, I262, I110

mod builder;
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

pub use builder::{ProvidersBuilder, ProvidersError};
pub use cache::{CacheEntry, CacheListing};
pub use resolve::Provider;

use crate::cache_key::{CacheKeyType, ServiceAccountIdentity};
use crate::config::{ImageConfig, ProviderConfig};
use crate::credential::RegistryCredential;
use crate::error::{ProviderError, StartError};
use crate::index::PatternIndex;
use crate::keyring::{Keyring, lookup_all};
use crate::location::Location;
use crate::metrics::{MetricsEvent, MetricsRecorder, NoMetrics};
use crate::profile::Profile;
use crate::reference::Repository;
use crate::service_account::{PullIdentity, ServiceAccountCache, ServiceAccounts, Skipped};
use slots::RunSlots;

/// The environment and limits of providers.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// The directory of the plugin executables.
    pub bin_dir: PathBuf,
    /// The environment that plugins inherit.
    // I92
    pub environment: Environment,
    /// The behaviour profile.
    pub profile: Profile,
    /// Which executables are allowed to run.
    pub policy: Policy,
    /// Runs the plugins.
    pub runner: Arc<dyn Runner>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Records metrics.
    pub recorder: Arc<dyn MetricsRecorder>,
    /// Access to the API server, if configured.
    pub service_accounts: Option<Arc<dyn ServiceAccounts>>,
    /// Resource limits of plugins.
    pub limits: ProviderLimits,
    /// Whether to refresh responses in the background before they expire; for long-running processes.
    // I260
    pub refresh_ahead: bool,
}

/// Resource limits of plugins.
// I94, I95, I263
#[derive(Clone, Copy, Debug)]
pub struct ProviderLimits {
    /// Maximum duration of a run.
    pub run: Duration,
    /// Maximum number of bytes on stdout.
    pub stdout: usize,
    /// Maximum number of bytes kept of stderr.
    pub stderr: usize,
    /// Maximum number of cached responses per provider.
    pub entries: NonZeroUsize,
    /// Maximum number of concurrent plugin runs.
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
    /// Creates the default settings: hardened profile, any executable allowed, no metrics, no API server.
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

/// The providers of a configuration and their caches.
#[derive(Debug)]
pub struct Providers {
    providers: Vec<Arc<Provider>>,
    index: PatternIndex,
    hash: String,
    shared: Arc<Shared>,
}

/// State shared by all providers of a process.
#[derive(Debug)]
struct Shared {
    settings: ProviderSettings,
    service_accounts: Option<ServiceAccountCache>,
    slots: RunSlots,
}

impl Providers {
    /// Creates the providers. Call [`Providers::check_executables`] to check that their executables exist.
    pub fn new(config: &ImageConfig, settings: ProviderSettings) -> Self {
        let clock = Arc::clone(&settings.clock);
        let accounts = settings.service_accounts.clone().map(|api| ServiceAccountCache::new(api, clock));
        let slots = RunSlots::new(settings.limits.concurrent_runs);
        Providers::with_shared(config, Arc::new(Shared { settings, service_accounts: accounts, slots }), &[])
    }

    /// Creates the providers of another configuration. Unchanged providers keep their caches.
    // I250
    pub(crate) fn reconfigured(&self, config: &ImageConfig) -> Self {
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

    /// Checks that every provider's executable exists, as the kubelet does at startup.
    ///
    /// # Errors
    /// The first provider without an executable.
    // I4, I5
    pub fn check_executables(&self) -> Result<(), StartError> {
        let path = &self.shared.settings.bin_dir;
        if !path.exists() {
            return Err(StartError::NoBinDirectory { path: path.clone() });
        }
        self.providers.iter().try_for_each(|provider| provider.check_executable(&self.shared.settings))
    }

    /// Looks up the credentials for an image, given by its repository name. Blocks while plugins run.
    ///
    /// An error of one provider does not affect the others.
    // I100, I147
    pub fn lookup(&self, image: &str, identity: &PullIdentity) -> Lookup {
        let matching = self.matching(image);
        if matching.is_empty() {
            self.shared.settings.recorder.record(&MetricsEvent::NoMatch);
        }
        let mut outcomes: Vec<(usize, Option<ProviderOutcome>)> = match self.shared.settings.profile {
            Profile::Kube => Vec::with_capacity(matching.len()),
            // Usually everything is cached, and no thread is needed.
            Profile::Hardened => matching.iter().map(|&at| (at, self.cached(at, image, identity))).collect(),
        };
        let missing = outcomes.iter_mut().filter(|(_, outcome)| outcome.is_none());
        match self.shared.settings.profile {
            Profile::Kube => {
                outcomes.extend(matching.iter().map(|&at| (at, self.resolve(at, image, identity))));
            }
            Profile::Hardened => self.resolve_concurrently(missing.collect(), image, identity),
        }
        let outcomes = outcomes.into_iter().filter_map(|(at, outcome)| Some((self.provider(at)?, outcome?)));
        Lookup { image: image.to_owned(), outcomes: outcomes.collect() }
    }

    /// The credentials for an image, in the order to try them. If there is none, pull anonymously. Blocks while plugins run;
    /// [`Providers::lookup`] also tells where each credential comes from.
    ///
    /// # Errors
    /// The first [`ProviderError`], if a provider failed and no other had a credential.
    pub fn credentials(
        &self,
        image: &Repository,
        identity: &PullIdentity,
    ) -> Result<Vec<RegistryCredential>, ProviderError> {
        let lookup = self.lookup(image.as_str(), identity);
        let credentials: Vec<_> =
            lookup.attempts().into_iter().map(|attempt| attempt.credential.clone()).collect();
        match lookup.errors().next() {
            Some(error) if credentials.is_empty() => Err(error.clone()),
            _ => Ok(credentials),
        }
    }

    /// Looks up an image in one provider, even if its patterns do not match; for callers that selected it otherwise.
    // I232
    pub(crate) fn lookup_in(&self, provider: &Arc<Provider>, image: &str, identity: &PullIdentity) -> Lookup {
        let outcome = provider.resolve(image, identity, &self.shared);
        Lookup { image: image.to_owned(), outcomes: vec![(Arc::clone(provider), outcome)] }
    }

    /// Removes the cached responses for an image (per image, per registry and global) of every matching provider. Returns
    /// their number.
    // I261
    pub fn invalidate(&self, image: &str) -> usize {
        self.matching(image)
            .into_iter()
            .filter_map(|at| self.provider(at))
            .map(|provider| provider.forget(image))
            .sum()
    }

    /// Reports that a registry rejected a credential (401 or 403). Removes the cached response it came from, at most once
    /// every ten seconds, so that a registry that rejects all credentials does not cause a plugin run per pull.
    // I261
    pub fn report_rejected(&self, image: &str, credential_hash: &str) -> bool {
        let matching = self.matching(image);
        let providers = matching.into_iter().filter_map(|at| self.provider(at));
        providers.filter(|provider| provider.forget_rejected(image, credential_hash, &self.shared)).count()
            > 0
    }

    /// Removes all expired responses and their secrets.
    // I130
    pub fn purge(&self) {
        self.providers.iter().for_each(|provider| provider.purge());
    }

    /// Lists the unexpired cached responses. Runs no plugin.
    // I238
    pub(crate) fn list_cache(&self) -> Vec<CacheListing> {
        self.providers.iter().flat_map(|provider| provider.list_cache()).collect()
    }

    /// All providers in configuration order.
    pub fn providers(&self) -> &[Arc<Provider>] {
        &self.providers
    }

    /// The configuration hash.
    // I19
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The behaviour profile.
    pub fn profile(&self) -> Profile {
        self.shared.settings.profile
    }

    /// The providers that match an image, in order.
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

    /// Runs several providers concurrently; the results keep configuration order.
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

/// The result of looking up one image.
#[derive(Debug)]
pub struct Lookup {
    image: String,
    outcomes: Vec<(Arc<Provider>, ProviderOutcome)>,
}

/// The outcome of one provider.
#[derive(Clone, Debug)]
pub enum ProviderOutcome {
    /// It responded, possibly without credentials.
    Answered(ProviderAnswer),
    /// It was skipped, which is not an error.
    Skipped(Skipped),
    /// It failed.
    Failed(ProviderError),
}

/// A provider's response and its origin.
#[derive(Clone, Debug)]
pub struct ProviderAnswer {
    /// The cached response.
    pub entry: Arc<CacheEntry>,
    /// Whether it came from the cache or a plugin run.
    pub origin: AnswerOrigin,
    /// The service account it belongs to; if `None`, every pod may use it.
    // I118
    pub source: Option<ServiceAccountIdentity>,
}

/// The origin of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerOrigin {
    /// The cache, under a key of this type.
    Cache(CacheKeyType),
    /// A plugin run.
    Plugin,
}

/// One credential to try for a pull.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The provider it came from.
    pub provider: &'a str,
    /// The matching key.
    pub key: &'a [u8],
    /// The credential.
    pub credential: &'a RegistryCredential,
    /// The service account it belongs to.
    pub source: Option<&'a ServiceAccountIdentity>,
}

impl Lookup {
    /// The image that was looked up.
    pub fn image(&self) -> &str {
        &self.image
    }

    /// The outcome of each matching provider, in order.
    pub fn outcomes(&self) -> impl Iterator<Item = (&str, &ProviderOutcome)> {
        self.outcomes.iter().map(|(provider, outcome)| (provider.name(), outcome))
    }

    /// The errors of failed providers. Include them in the message of a failed pull.
    // I248
    pub fn errors(&self) -> impl Iterator<Item = &ProviderError> {
        self.outcomes.iter().filter_map(|(_, outcome)| match outcome {
            ProviderOutcome::Failed(error) => Some(error),
            ProviderOutcome::Answered(_) | ProviderOutcome::Skipped(_) => None,
        })
    }

    /// The credentials in the order to try them. If empty, the pull is anonymous.
    // I138, I147, I151
    pub fn attempts(&self) -> Vec<Attempt<'_>> {
        self.attempts_for(&self.image)
    }

    /// The credentials for another spelling of the image.
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

    /// The answers of providers that responded.
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
