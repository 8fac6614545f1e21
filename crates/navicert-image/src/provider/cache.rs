//! The response cache of one provider.
// I120–I130

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use navicert_plugin::{CacheHit, ExpiringCache};
use navicert_types::backoff::random_fraction;
use navicert_types::time::Duration as SignedDuration;
use navicert_types::{Clock, Timestamp};

use super::ProviderSettings;
use crate::cache_key::{CacheKey, CacheKeyType, KeyTooLong, ServiceAccountKey};
use crate::keyring::Keyring;
use crate::profile::Profile;
use crate::response::Response;

/// Interval at which expired entries are removed.
// I130
const SWEEP_INTERVAL: Duration = Duration::from_secs(15 * 60);
/// Maximum cache duration of a response without credentials in profile `hardened`.
// I128
const MAX_NEGATIVE_TTL: Duration = Duration::from_secs(30);
/// A response used in this last fraction of its lifetime is refreshed in the background, minus jitter.
// I260
const REFRESH_FRACTION: f64 = 0.2;
/// Maximum fraction of `REFRESH_FRACTION` that jitter removes.
const REFRESH_JITTER: f64 = 0.25;

/// A response with an indexed keyring.
#[derive(Debug)]
pub struct CacheEntry {
    keyring: Keyring,
    key_type: CacheKeyType,
    image: String,
    lifetime: Option<Duration>,
    obtained: Duration,
    expires: Option<Timestamp>,
    /// Remaining lifetime at which a refresh is due.
    refresh_margin: Duration,
}

/// A cached response as listed.
#[derive(Clone, Debug)]
pub struct CacheListing {
    /// The provider it came from.
    pub provider: String,
    /// The scope of the response.
    pub key_type: CacheKeyType,
    /// The image, the registry, or `<global>`.
    pub base: String,
    /// The response.
    pub entry: Arc<CacheEntry>,
}

impl CacheEntry {
    /// Creates an entry. Its lifetime is the response's cache duration or the configured default; zero or a negative
    /// duration disables caching.
    // I126, I127
    pub(super) fn new(
        response: Response,
        image: &str,
        default: Duration,
        settings: &ProviderSettings,
    ) -> Self {
        let negative = response.auth.is_empty();
        let lifetime = match response.cache_duration {
            None => default,
            Some(given) => positive(given),
        };
        let lifetime = match settings.profile {
            Profile::Hardened if negative => lifetime.min(MAX_NEGATIVE_TTL),
            Profile::Hardened | Profile::Kube => lifetime,
        };
        let lifetime = (!lifetime.is_zero()).then_some(lifetime);
        let fraction = REFRESH_FRACTION * (1.0 - REFRESH_JITTER * random_fraction());
        let until = |lifetime| settings.clock.now().saturating_add(lifetime).unwrap_or(Timestamp::MAX);
        CacheEntry {
            keyring: Keyring::new(response.auth, settings.profile),
            key_type: response.cache_key_type,
            image: image.to_owned(),
            lifetime,
            obtained: settings.clock.monotonic(),
            expires: lifetime.map(until),
            refresh_margin: lifetime.unwrap_or_default().mul_f64(fraction),
        }
    }

    /// The credentials.
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// The scope of the response.
    pub fn key_type(&self) -> CacheKeyType {
        self.key_type
    }

    /// The cache lifetime; `None` if it is not cached.
    pub fn lifetime(&self) -> Option<Duration> {
        self.lifetime
    }

    /// When it expires; `None` if it is not cached.
    pub fn expires(&self) -> Option<Timestamp> {
        self.expires
    }

    /// Whether the response is valid for this image.
    pub(super) fn covers(&self, image: &str) -> bool {
        self.key_type.base(image) == self.key_type.base(&self.image)
    }

    fn is_due_for_refresh(&self, now: Duration) -> bool {
        let Some(lifetime) = self.lifetime else { return false };
        let left = self.obtained.saturating_add(lifetime).saturating_sub(now);
        left < self.refresh_margin
    }
}

fn positive(duration: SignedDuration) -> Duration {
    u64::try_from(duration.nanoseconds()).map_or(Duration::ZERO, Duration::from_nanos)
}

/// The cached responses of one provider.
#[derive(Debug)]
pub(super) struct ProviderCache {
    entries: ExpiringCache<CacheKey, Arc<CacheEntry>>,
    /// Keys in use by key type and base, across service accounts; for removing and listing entries.
    bases: Mutex<KeysByBase>,
    clock: Arc<dyn Clock>,
    swept: Mutex<Duration>,
    capacity: usize,
}

type KeysByBase = HashMap<(CacheKeyType, String), Vec<CacheKey>>;

/// A cache hit.
pub(super) struct CachedAnswer {
    pub(super) entry: Arc<CacheEntry>,
    pub(super) key_type: CacheKeyType,
    pub(super) refresh: bool,
}

impl ProviderCache {
    pub(super) fn new(settings: &ProviderSettings) -> Self {
        let clock = Arc::clone(&settings.clock);
        ProviderCache {
            entries: ExpiringCache::new(Arc::clone(&clock), settings.limits.entries),
            bases: Mutex::default(),
            swept: Mutex::new(clock.monotonic()),
            clock,
            capacity: settings.limits.entries.get(),
        }
    }

    /// Looks up the response for an image: per image, per registry, then global.
    // I125
    pub(super) fn lookup(
        &self,
        image: &str,
        account: &ServiceAccountKey,
    ) -> Result<Option<CachedAnswer>, KeyTooLong> {
        let now = self.clock.monotonic();
        self.sweep_if_due(now);
        for key_type in CacheKeyType::LOOKUP_ORDER {
            let key = CacheKey::new(key_type, image, account)?;
            if let Some(CacheHit { value: entry, .. }) = self.entries.lookup(&key) {
                let refresh = entry.is_due_for_refresh(now);
                return Ok(Some(CachedAnswer { entry, key_type, refresh }));
            }
        }
        Ok(None)
    }

    pub(super) fn store(
        &self,
        entry: &Arc<CacheEntry>,
        account: &ServiceAccountKey,
    ) -> Result<(), KeyTooLong> {
        let Some(lifetime) = entry.lifetime else { return Ok(()) };
        let key = CacheKey::new(entry.key_type, &entry.image, account)?;
        let base = (entry.key_type, entry.key_type.base(&entry.image).to_owned());
        let mut bases = self.bases();
        if bases.len() > self.capacity {
            bases.retain(|_, keys| keys.iter().any(|key| self.entries.lookup(key).is_some()));
        }
        let keys = bases.entry(base).or_default();
        if !keys.contains(&key) {
            if keys.len() == keys.capacity() {
                // Before the vector grows, remove keys of expired entries.
                keys.retain(|key| self.entries.lookup(key).is_some());
            }
            keys.push(key.clone());
        }
        drop(bases);
        self.entries.insert_for(key, Arc::clone(entry), lifetime);
        Ok(())
    }

    /// Removes the responses for an image that `which` selects and returns their number.
    pub(super) fn forget(&self, image: &str, which: impl Fn(&CacheEntry) -> bool) -> usize {
        let mut forgotten = 0;
        let bases = self.bases();
        for key_type in CacheKeyType::LOOKUP_ORDER {
            let keys = bases.get(&(key_type, key_type.base(image).to_owned()));
            for key in keys.into_iter().flatten() {
                if let Some(hit) = self.entries.lookup(key)
                    && which(&hit.value)
                {
                    forgotten += usize::from(self.entries.remove_generation(key, hit.generation));
                }
            }
        }
        forgotten
    }

    pub(super) fn purge(&self) {
        self.entries.purge();
    }

    pub(super) fn list(&self, provider: &str) -> Vec<CacheListing> {
        let bases = self.bases();
        let listed = bases.iter().flat_map(|((key_type, base), keys)| {
            keys.iter().filter_map(|key| self.entries.lookup(key)).map(|hit| CacheListing {
                provider: provider.to_owned(),
                key_type: *key_type,
                base: base.clone(),
                entry: hit.value,
            })
        });
        let mut listed: Vec<CacheListing> = listed.collect();
        listed.sort_by(|one, other| (one.key_type, &one.base).cmp(&(other.key_type, &other.base)));
        listed
    }

    fn sweep_if_due(&self, now: Duration) {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_sub(*swept) > SWEEP_INTERVAL {
            *swept = now;
            self.entries.purge();
        }
    }

    fn bases(&self) -> MutexGuard<'_, KeysByBase> {
        self.bases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
