//! Cache of recent decisions: an accepted token is not verified again for a short time, and a token with an invalid
//! signature or format is not parsed again. The cache stores keyed digests, never tokens.
// S147, S148, S309

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use navicert_types::Timestamp;

use crate::decision::AuthnDecision;
use crate::jwks::KeySource;
use crate::model::outcome::{AuthnOutcome, Refusal};

/// How long an accepted token is cached.
const ACCEPTED_TTL: Duration = Duration::from_secs(10);
/// How long a rejection of an invalid token is cached.
const REJECTED_TTL: Duration = Duration::from_secs(1);
/// Maximum number of entries of each kind.
const MAX_ACCEPTED_ENTRIES: usize = 32 << 10;
const MAX_REJECTED_ENTRIES: usize = 10_000;
/// Number of shards, to keep lock contention low.
const SHARDS: usize = 32;

type Digest = [u8; 32];

/// What every cached decision depends on. When it changes, all cached decisions are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheEpoch {
    /// Generation of the configuration.
    pub(crate) generation: u64,
    /// Version of the revocation list.
    pub(crate) revocations: u64,
}

/// What else an accepted token's cache entry depends on.
#[derive(Clone, Debug)]
pub(crate) struct CacheValidity {
    /// The issuer's keys, and the version that verified the token.
    pub(crate) keys: Arc<dyn KeySource>,
    pub(crate) version: u64,
}

/// A bounded cache of decisions.
pub(crate) struct TokenCache {
    key: hmac::Key,
    accepted: Shards<AcceptedEntry>,
    rejected: Shards<RejectedEntry>,
}

struct AcceptedEntry {
    decision: AuthnDecision,
    epoch: CacheEpoch,
    validity: CacheValidity,
    /// The entry is also invalid if the clock is set back before this.
    since: Timestamp,
    until: Timestamp,
}

struct RejectedEntry {
    decision: AuthnDecision,
    epoch: CacheEpoch,
    since: Timestamp,
    until: Timestamp,
}

/// Keyed digest of a token, the cache's key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TokenDigest(Digest);

impl TokenCache {
    /// An empty cache with a random HMAC key.
    pub(crate) fn new() -> Self {
        // Without a random source the HMAC key is empty: digests are still unique per token.
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.unwrap_or_else(|_| hmac::Key::new(hmac::HMAC_SHA256, &[]));
        TokenCache {
            key,
            accepted: Shards::new(MAX_ACCEPTED_ENTRIES),
            rejected: Shards::new(MAX_REJECTED_ENTRIES),
        }
    }

    /// Number of cached decisions.
    pub(crate) fn len(&self) -> usize {
        self.accepted.len() + self.rejected.len()
    }

    /// HMAC of a token with the cache's own random key.
    pub(crate) fn digest(&self, token: &str) -> TokenDigest {
        let mut digest = Digest::default();
        // Always 32 bytes.
        for (to, from) in digest.iter_mut().zip(hmac::sign(&self.key, token.as_bytes()).as_ref()) {
            *to = *from;
        }
        TokenDigest(digest)
    }

    /// A cached decision that is still valid.
    pub(crate) fn find(
        &self,
        name: &TokenDigest,
        epoch: CacheEpoch,
        now: Timestamp,
    ) -> Option<AuthnDecision> {
        let accepted = self.accepted.find(&name.0, |entry| {
            let holds = entry.epoch == epoch
                && (entry.since..entry.until).contains(&now)
                && entry.validity.keys.version() == entry.validity.version;
            holds.then(|| entry.decision.clone())
        });
        accepted.or_else(|| {
            self.rejected.find(&name.0, |entry| {
                let holds = entry.epoch == epoch && (entry.since..entry.until).contains(&now);
                holds.then(|| entry.decision.clone())
            })
        })
    }

    /// Caches a decision, if its kind is cacheable.
    pub(crate) fn insert(
        &self,
        name: TokenDigest,
        epoch: CacheEpoch,
        now: Timestamp,
        decision: &AuthnDecision,
        validity: Option<CacheValidity>,
    ) {
        match (&decision.outcome, validity) {
            (AuthnOutcome::Authenticated(_), Some(validity)) => {
                let Some(expires) = decision.expires() else { return };
                let left = u64::try_from(expires.saturating_sub(now.as_second())).unwrap_or(0);
                let trusted = validity.keys.trusted_for().unwrap_or(ACCEPTED_TTL);
                let keep = ACCEPTED_TTL.min(Duration::from_secs(left)).min(trusted);
                let Ok(mut until) = now.checked_add(keep) else { return };
                // `exp` counts whole seconds: the entry ends at that second.
                if let Ok(expires) = Timestamp::from_second(expires) {
                    until = until.min(expires);
                }
                let decision = decision.clone();
                let entry = AcceptedEntry { decision, epoch, validity, since: now, until };
                self.accepted.insert(name.0, entry, now);
            }
            (AuthnOutcome::Rejected(rejection), _) if is_worth_caching(&rejection.refusal) => {
                let Ok(until) = now.checked_add(REJECTED_TTL) else { return };
                let entry = RejectedEntry { decision: decision.clone(), epoch, since: now, until };
                self.rejected.insert(name.0, entry, now);
            }
            _ => {}
        }
    }
}

impl Default for TokenCache {
    fn default() -> Self {
        TokenCache::new()
    }
}

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCache").field("entries", &self.len()).finish_non_exhaustive()
    }
}

/// Whether a refusal is permanent and expensive to compute.
// S309
fn is_worth_caching(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Malformed(_) | Refusal::Algorithm { .. } | Refusal::Signature)
}

/// An entry with an expiry.
trait Expiring {
    fn until(&self) -> Timestamp;
}

impl Expiring for AcceptedEntry {
    fn until(&self) -> Timestamp {
        self.until
    }
}

impl Expiring for RejectedEntry {
    fn until(&self) -> Timestamp {
        self.until
    }
}

/// A sharded, bounded map. Entries are evicted in insertion order, which is nearly the order of expiry.
struct Shards<E> {
    shards: Vec<Mutex<Shard<E>>>,
    max_entries_per_shard: usize,
}

struct Shard<E> {
    entries: HashMap<Digest, E, BuildHasherDefault<DigestHasher>>,
    order: VecDeque<Digest>,
}

impl<E: Expiring> Shards<E> {
    fn new(most: usize) -> Self {
        let shard = || Mutex::new(Shard { entries: HashMap::default(), order: VecDeque::new() });
        Shards { shards: (0..SHARDS).map(|_| shard()).collect(), max_entries_per_shard: most / SHARDS }
    }

    fn shard(&self, digest: &Digest) -> Option<MutexGuard<'_, Shard<E>>> {
        let number = usize::from(digest.last().copied().unwrap_or_default()) % SHARDS;
        Some(self.shards.get(number)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn find<T>(&self, digest: &Digest, read: impl FnOnce(&E) -> Option<T>) -> Option<T> {
        self.shard(digest)?.entries.get(digest).and_then(read)
    }

    fn insert(&self, digest: Digest, entry: E, now: Timestamp) {
        let Some(mut shard) = self.shard(&digest) else { return };
        let shard = &mut *shard;
        // Evicts expired entries, then the oldest until there is space.
        while let Some(first) = shard.order.front() {
            let has_ended = shard.entries.get(first).is_none_or(|entry| entry.until() <= now);
            if !has_ended && shard.order.len() < self.max_entries_per_shard {
                break;
            }
            shard.entries.remove(first);
            shard.order.pop_front();
        }
        if shard.entries.insert(digest, entry).is_none() {
            shard.order.push_back(digest);
        }
    }

    fn len(&self) -> usize {
        let lock =
            |shard: &Mutex<Shard<E>>| shard.lock().unwrap_or_else(PoisonError::into_inner).entries.len();
        self.shards.iter().map(lock).sum()
    }
}

/// Uses the digest's first bytes as the hash: a digest is uniformly distributed already.
#[derive(Default)]
struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk::<8>() {
            // An array's length is hashed separately and is the same for all digests.
            if bytes.len() > 8 {
                self.0 = u64::from_ne_bytes(*first);
            }
        }
    }
}

#[cfg(test)]
mod tests;
