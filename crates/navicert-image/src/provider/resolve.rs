//! Resolves one image with one provider: service account, cache, single flight, back-off.
// I109–I131, I259–I262

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use navicert_plugin::{Backoff, BackoffSettings, FlightError, SingleFlight};
use navicert_types::Secret;

use super::cache::{CacheListing, CachedAnswer, ProviderCache};
use super::{AnswerOrigin, CacheEntry, ProviderAnswer, ProviderOutcome, ProviderSettings, Shared};
use crate::cache_key::{CacheKeyType, KeyTooLong, ServiceAccountIdentity, ServiceAccountKey, token_hash};
use crate::config::{ProviderConfig, TokenCacheType, TokenSettings};
use crate::error::ProviderError;
use crate::metrics::{CacheResult, MetricsEvent};
use crate::profile::Profile;
use crate::service_account::{
    PodRef, PullIdentity, ServiceAccountError, Skipped, TokenRequest, select_annotations,
};

/// Minimum time between two forced refreshes of one image.
// I261
const MIN_FORCED_REFRESH_INTERVAL: Duration = Duration::from_secs(10);
/// Back-off after failures.
// I262
const BACKOFF: BackoffSettings =
    BackoffSettings { initial: Duration::from_secs(1), max: Duration::from_secs(60), jitter: 0.2 };
/// Maximum number of failures tracked for back-off.
const MAX_TRACKED_FAILURES: usize = 1_000;

/// A provider with its cache and in-flight runs.
#[derive(Debug)]
pub struct Provider {
    config: ProviderConfig,
    cache: ProviderCache,
    flights: SingleFlight<FlightKey, Arc<CacheEntry>, ProviderError>,
    /// The key type of the last response; 0 before the first.
    // I259
    learned: AtomicU8,
    failures: Mutex<HashMap<FlightKey, (Backoff, ProviderError)>>,
    forced: Mutex<HashMap<String, Duration>>,
    last_stderr: Mutex<String>,
}

/// Requests with equal keys share one plugin run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FlightKey {
    subject: String,
    account: Vec<u8>,
}

/// The identity that a plugin run is for.
#[derive(Clone, Debug, Default)]
pub(super) struct Caller {
    source: Option<ServiceAccountIdentity>,
    pub(super) annotations: BTreeMap<String, String>,
    token: CallerToken,
    key: ServiceAccountKey,
    /// Why the API server could not confirm the account.
    outage: Option<ServiceAccountError>,
}

#[derive(Clone, Debug, Default)]
enum CallerToken {
    #[default]
    None,
    Ready(Secret<String>),
    /// Requested when the plugin is run.
    Deferred(TokenRequest),
}

impl Caller {
    pub(super) fn token(&self, shared: &Shared) -> Result<Secret<String>, ServiceAccountError> {
        match &self.token {
            CallerToken::None => Ok(Secret::default()),
            CallerToken::Ready(token) => Ok(token.clone()),
            CallerToken::Deferred(request) => {
                shared.service_accounts.as_ref().ok_or(ServiceAccountError::NoApiServer)?.token(request)
            }
        }
    }
}

impl Provider {
    pub(super) fn new(config: ProviderConfig, settings: &ProviderSettings) -> Self {
        Provider {
            config,
            cache: ProviderCache::new(settings),
            flights: SingleFlight::new(),
            learned: AtomicU8::new(0),
            failures: Mutex::default(),
            forced: Mutex::default(),
            last_stderr: Mutex::default(),
        }
    }

    /// The provider's name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The provider's configuration.
    pub fn config(&self) -> &ProviderConfig {
        &self.config
    }

    /// The redacted stderr of the last run, also if it succeeded.
    // I244
    pub fn last_stderr(&self) -> String {
        lock(&self.last_stderr).clone()
    }

    /// The cached response for an image. Runs no plugin.
    pub fn peek(&self, image: &str) -> Option<(CacheKeyType, Arc<CacheEntry>)> {
        let cached = self.cache.lookup(image, &ServiceAccountKey::default()).ok()??;
        Some((cached.key_type, cached.entry))
    }

    pub(super) fn is_configured_as(&self, config: &ProviderConfig) -> bool {
        let shown = |config: &ProviderConfig| {
            let texts: Vec<String> = config.patterns.iter().map(|(text, _)| text.clone()).collect();
            (
                config.name.clone(),
                texts,
                config.default_cache_duration,
                config.wire_version,
                config.token.clone(),
            )
        };
        shown(&self.config) == shown(config)
            && self.config.args == config.args
            && self.config.env == config.env
    }

    #[cfg(test)]
    pub(super) fn runs_in_flight(&self) -> usize {
        self.flights.in_flight()
    }

    pub(super) fn store_stderr(&self, text: &str) {
        text.clone_into(&mut lock(&self.last_stderr));
    }

    pub(super) fn account_error(&self, source: ServiceAccountError) -> ProviderError {
        ProviderError::ServiceAccount { provider: self.name().to_owned(), source }
    }

    /// The outcome if it is cached or the provider is skipped; `None` if the plugin must be run.
    pub(super) fn cached(
        self: &Arc<Self>,
        image: &str,
        identity: &PullIdentity,
        shared: &Arc<Shared>,
    ) -> Option<ProviderOutcome> {
        // Building the cache key needs the API server here, so leave it to `resolve`.
        let needs_api = self.config.token.is_some() && matches!(identity, PullIdentity::Pod(_));
        if needs_api {
            return None;
        }
        match self.caller(identity, shared) {
            Ok(Ok(caller)) => self.lookup_cache(image, &caller, shared).ok()?.map(ProviderOutcome::Answered),
            Ok(Err(skipped)) => Some(ProviderOutcome::Skipped(skipped)),
            Err(error) => Some(ProviderOutcome::Failed(error)),
        }
    }

    /// The outcome, running the plugin if necessary.
    pub(super) fn resolve(
        self: &Arc<Self>,
        image: &str,
        identity: &PullIdentity,
        shared: &Arc<Shared>,
    ) -> ProviderOutcome {
        match self.caller(identity, shared) {
            Ok(Ok(caller)) => self
                .answer(image, caller, shared)
                .map_or_else(ProviderOutcome::Failed, ProviderOutcome::Answered),
            Ok(Err(skipped)) => ProviderOutcome::Skipped(skipped),
            Err(error) => ProviderOutcome::Failed(error),
        }
    }

    fn answer(
        self: &Arc<Self>,
        image: &str,
        caller: Caller,
        shared: &Arc<Shared>,
    ) -> Result<ProviderAnswer, ProviderError> {
        if let Some(answer) = self.lookup_cache(image, &caller, shared)? {
            return Ok(answer);
        }
        let (provider, result) = (self.name(), CacheResult::Miss);
        shared.settings.recorder.record(&MetricsEvent::CacheLookup { provider, result });
        if let Some(outage) = caller.outage {
            return Err(self.account_error(outage));
        }
        let (source, caller) = (caller.source.clone(), Arc::new(caller));
        let entry = match shared.settings.profile {
            Profile::Kube => {
                self.join_flight(image, self.kubelet_flight_key(image, &caller, shared)?, &caller, shared)?
            }
            Profile::Hardened => self.run_shared(image, &caller, shared)?,
        };
        Ok(ProviderAnswer { entry, origin: AnswerOrigin::Plugin, source })
    }

    fn lookup_cache(
        self: &Arc<Self>,
        image: &str,
        caller: &Caller,
        shared: &Arc<Shared>,
    ) -> Result<Option<ProviderAnswer>, ProviderError> {
        let cached = self.cache.lookup(image, &caller.key).map_err(|source| self.key_error(source))?;
        let Some(CachedAnswer { entry, key_type, refresh }) = cached else { return Ok(None) };
        let result = match entry.keyring().is_empty() {
            true => CacheResult::NegativeHit,
            false => CacheResult::Hit(key_type),
        };
        shared.settings.recorder.record(&MetricsEvent::CacheLookup { provider: self.name(), result });
        if refresh && shared.settings.refresh_ahead && caller.outage.is_none() {
            self.refresh(image, caller, shared);
        }
        Ok(Some(ProviderAnswer {
            entry,
            origin: AnswerOrigin::Cache(key_type),
            source: caller.source.clone(),
        }))
    }

    /// Refreshes a cached response in the background. The cached response stays in use until then, and if the refresh
    /// fails. Failures back off, otherwise a failing plugin would be run for every lookup.
    // I260, I262
    fn refresh(self: &Arc<Self>, image: &str, caller: &Caller, shared: &Arc<Shared>) {
        let key = FlightKey { subject: format!("refresh {image}"), account: caller.key.as_bytes().to_vec() };
        if self.check_backoff(&key, shared.settings.profile).is_err() {
            return;
        }
        let (provider, shared, image, caller) =
            (Arc::clone(self), Arc::clone(shared), image.to_owned(), Arc::new(caller.clone()));
        let flight_key = key.clone();
        let waiter = self.flights.join(key, move || {
            let result = provider.run_and_store(&image, &caller, &shared);
            provider.record_result(&flight_key, &result, &shared);
            result
        });
        drop(waiter);
    }

    /// Shares one plugin run between requests. Until the plugin has responded once, its responses are assumed to be valid
    /// for the registry; requests that the response does not cover start their own run.
    // I259
    fn run_shared(
        self: &Arc<Self>,
        image: &str,
        caller: &Arc<Caller>,
        shared: &Arc<Shared>,
    ) -> Result<Arc<CacheEntry>, ProviderError> {
        let learned = self.learned_key_type();
        let flight = |key_type: CacheKeyType| FlightKey {
            subject: format!("{} {}", key_type.as_str(), key_type.base(image)),
            account: caller.key.as_bytes().to_vec(),
        };
        let shared_run =
            self.join_flight(image, flight(learned.unwrap_or(CacheKeyType::Registry)), caller, shared);
        match shared_run {
            Ok(entry) if entry.covers(image) => Ok(entry),
            Err(error) if learned.is_some() || self.concerns_image(&error, image) => Err(error),
            Ok(_) | Err(_) => self.join_flight(image, flight(CacheKeyType::Image), caller, shared),
        }
    }

    /// Whether a failure comes from a run for this image.
    fn concerns_image(&self, error: &ProviderError, image: &str) -> bool {
        match error {
            ProviderError::Permit { image: failed, .. }
            | ProviderError::Run { image: failed, .. }
            | ProviderError::Response { image: failed, .. } => failed == image,
            _ => true,
        }
    }

    /// The kubelet's single-flight key: the image, and in service-account mode the token.
    // I131
    fn kubelet_flight_key(
        &self,
        image: &str,
        caller: &Caller,
        shared: &Shared,
    ) -> Result<FlightKey, ProviderError> {
        let token = caller.token(shared).map_err(|source| self.account_error(source))?;
        let account = format!("{} {:?}", token_hash(&token), caller.annotations).into_bytes();
        Ok(FlightKey { subject: image.to_owned(), account })
    }

    /// Waits for the in-flight run with this key, or starts one.
    fn join_flight(
        self: &Arc<Self>,
        image: &str,
        key: FlightKey,
        caller: &Arc<Caller>,
        shared: &Arc<Shared>,
    ) -> Result<Arc<CacheEntry>, ProviderError> {
        self.check_backoff(&key, shared.settings.profile)?;
        let (provider, shared, caller) = (Arc::clone(self), Arc::clone(shared), Arc::clone(caller));
        let (flight_key, image) = (key.clone(), image.to_owned());
        let flight = self.flights.join(key, move || {
            // Another run may have filled the cache since the lookup.
            if shared.settings.profile == Profile::Hardened
                && let Ok(Some(cached)) = provider.cache.lookup(&image, &caller.key)
            {
                return Ok(cached.entry);
            }
            let result = provider.run_and_store(&image, &caller, &shared);
            provider.record_result(&flight_key, &result, &shared);
            result
        });
        flight.wait().map_err(|error| match error {
            FlightError::Failed(error) => error,
            FlightError::Join(source) => ProviderError::RunLost { provider: self.name().to_owned(), source },
        })
    }

    fn run_and_store(
        &self,
        image: &str,
        caller: &Caller,
        shared: &Shared,
    ) -> Result<Arc<CacheEntry>, ProviderError> {
        let entry = self.run(image, caller, shared)?;
        self.learned.store(key_type_code(entry.key_type()), Ordering::Relaxed);
        let (at, expires) = (shared.settings.clock.now(), entry.expires());
        shared.settings.recorder.record(&MetricsEvent::Answered { provider: self.name(), at, expires });
        self.cache.store(&entry, &caller.key).map_err(|source| self.key_error(source))?;
        Ok(entry)
    }

    fn check_backoff(&self, key: &FlightKey, profile: Profile) -> Result<(), ProviderError> {
        if profile == Profile::Kube {
            return Ok(());
        }
        let failures = lock(&self.failures);
        let Some((backoff, error)) = failures.get(key) else { return Ok(()) };
        backoff.remaining().map_or(Ok(()), |remaining| {
            let source = Arc::new(error.clone());
            Err(ProviderError::BackingOff { provider: self.name().to_owned(), remaining, source })
        })
    }

    fn record_result(
        &self,
        key: &FlightKey,
        result: &Result<Arc<CacheEntry>, ProviderError>,
        shared: &Shared,
    ) {
        let mut failures = lock(&self.failures);
        match result {
            Ok(_) => {
                failures.remove(key);
            }
            Err(error) => {
                if failures.len() >= MAX_TRACKED_FAILURES {
                    failures.retain(|_, (backoff, _)| backoff.remaining().is_some());
                }
                let fresh = || (Backoff::new(BACKOFF, Arc::clone(&shared.settings.clock)), error.clone());
                let (backoff, last) = failures.entry(key.clone()).or_insert_with(fresh);
                backoff.record_failure();
                *last = error.clone();
            }
        }
    }

    /// Removes the cached responses for an image, and all failures.
    pub(super) fn forget(&self, image: &str) -> usize {
        lock(&self.failures).clear();
        self.cache.forget(image, |_| true)
    }

    /// Removes the response that a rejected credential came from, unless this happened recently.
    pub(super) fn forget_rejected(&self, image: &str, hash: &str, shared: &Shared) -> bool {
        let now = shared.settings.clock.monotonic();
        let mut forced = lock(&self.forced);
        if forced.get(image).is_some_and(|&last| now.saturating_sub(last) < MIN_FORCED_REFRESH_INTERVAL) {
            return false;
        }
        let has_credential = |entry: &CacheEntry| {
            entry
                .keyring()
                .entries()
                .any(|(_, credentials)| credentials.iter().any(|found| found.hash() == hash))
        };
        let forgotten = self.cache.forget(image, has_credential) > 0;
        if forgotten {
            forced.retain(|_, last| now.saturating_sub(*last) < MIN_FORCED_REFRESH_INTERVAL);
            forced.insert(image.to_owned(), now);
        }
        forgotten
    }

    pub(super) fn purge(&self) {
        self.cache.purge();
    }

    pub(super) fn list_cache(&self) -> Vec<CacheListing> {
        self.cache.list(self.name())
    }

    fn learned_key_type(&self) -> Option<CacheKeyType> {
        let code = self.learned.load(Ordering::Relaxed);
        CacheKeyType::LOOKUP_ORDER.into_iter().find(|key_type| key_type_code(*key_type) == code)
    }

    fn key_error(&self, source: KeyTooLong) -> ProviderError {
        ProviderError::CacheKey { provider: self.name().to_owned(), source }
    }

    /// Determines the service account, annotations, token and cache key of a request.
    // I109–I114
    fn caller(
        &self,
        identity: &PullIdentity,
        shared: &Shared,
    ) -> Result<Result<Caller, Skipped>, ProviderError> {
        let Some(settings) = &self.config.token else { return Ok(Ok(Caller::default())) };
        match identity {
            PullIdentity::Bearer { token, annotations } if !token.is_empty() => {
                self.bearer(settings, token, annotations)
            }
            PullIdentity::Pod(pod) if !pod.service_account_name.is_empty() => self.pod(settings, pod, shared),
            _ if settings.require_service_account => Ok(Err(Skipped::NoServiceAccount)),
            _ => Ok(Ok(Caller::default())),
        }
    }

    /// The caller for a bearer token. Its service account is unknown, so responses are cached per token.
    fn bearer(
        &self,
        settings: &TokenSettings,
        token: &Secret<String>,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Result<Caller, Skipped>, ProviderError> {
        let annotations = match select_annotations(settings, annotations) {
            Ok(annotations) => annotations,
            Err(skipped) => return Ok(Err(skipped)),
        };
        let unknown =
            ServiceAccountIdentity { namespace: String::new(), name: String::new(), uid: String::new() };
        let key = ServiceAccountKey::new(&unknown, &annotations, Some(token))
            .map_err(|source| self.key_error(source))?;
        Ok(Ok(Caller { annotations, token: CallerToken::Ready(token.clone()), key, ..Caller::default() }))
    }

    fn pod(
        &self,
        settings: &TokenSettings,
        pod: &PodRef,
        shared: &Shared,
    ) -> Result<Result<Caller, Skipped>, ProviderError> {
        let accounts = shared.service_accounts.as_ref().ok_or(ServiceAccountError::NoApiServer);
        let known = accounts.and_then(|accounts| accounts.account(&pod.namespace, &pod.service_account_name));
        let known = known.map_err(|source| self.account_error(source))?;
        if let (Some(outage), Profile::Kube) = (&known.outage, shared.settings.profile) {
            return Err(self.account_error(outage.clone()));
        }
        let account = ServiceAccountIdentity {
            namespace: pod.namespace.clone(),
            name: pod.service_account_name.clone(),
            uid: known.account.uid.clone(),
        };
        match select_annotations(settings, &known.account.annotations) {
            Err(skipped) => Ok(Err(skipped)),
            Ok(annotations) => {
                let caller = self.pod_caller(settings, pod, account, annotations, shared)?;
                Ok(Ok(Caller { outage: known.outage, ..caller }))
            }
        }
    }

    fn pod_caller(
        &self,
        settings: &TokenSettings,
        pod: &PodRef,
        account: ServiceAccountIdentity,
        annotations: BTreeMap<String, String>,
        shared: &Shared,
    ) -> Result<Caller, ProviderError> {
        let request = TokenRequest {
            account: account.clone(),
            audience: settings.audience.clone(),
            pod: (pod.name.clone(), pod.uid.clone()),
        };
        let mut token = CallerToken::Deferred(request);
        let keyed_by_token = settings.cache_type == TokenCacheType::Token;
        if keyed_by_token || shared.settings.profile == Profile::Kube {
            // The kubelet requests a token before its cache lookup (I110).
            let probe = Caller { token: token.clone(), ..Caller::default() };
            token = CallerToken::Ready(probe.token(shared).map_err(|source| self.account_error(source))?);
        }
        let in_key = match &token {
            CallerToken::Ready(token) if keyed_by_token => Some(token),
            _ => None,
        };
        let key = ServiceAccountKey::new(&account, &annotations, in_key)
            .map_err(|source| self.key_error(source))?;
        Ok(Caller { source: Some(account), annotations, token, key, outage: None })
    }
}

fn key_type_code(key_type: CacheKeyType) -> u8 {
    match key_type {
        CacheKeyType::Image => 1,
        CacheKeyType::Registry => 2,
        CacheKeyType::Global => 3,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
