//! A bounded cache with expiry by an injected clock. Entries have generations, so that a caller can remove the entry it
//! used without removing a newer one.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use navicert_types::{Clock, Timestamp};

/// Identifies an insertion. Later insertions have larger numbers; numbers are never reused within a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

/// A value found in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheHit<V> {
    /// The value.
    pub value: V,
    /// The insertion it came from.
    pub generation: Generation,
    /// When it expires; `None` means never.
    pub expires: Option<Timestamp>,
}

/// Values by key, each with an expiry.
///
/// An entry expires when the time is *strictly after* its expiry. A full cache evicts expired entries first, then the
/// least recently used one.
// C410, I126, I263
pub struct ExpiringCache<K, V> {
    clock: Arc<dyn Clock>,
    capacity: NonZeroUsize,
    state: Mutex<CacheState<K, V>>,
}

struct CacheState<K, V> {
    entries: HashMap<K, CacheEntry<V>>,
    last_generation: u64,
    /// Counts lookups and insertions, to find the least recently used entry.
    tick: u64,
}

struct CacheEntry<V> {
    value: V,
    generation: Generation,
    expiry: Expiry,
    used: u64,
}

#[derive(Clone, Copy)]
struct Expiry {
    wall: Option<Timestamp>,
    monotonic: Option<Duration>,
}

impl<K: Eq + Hash, V: Clone> ExpiringCache<K, V> {
    /// Creates an empty cache with this capacity.
    pub fn new(clock: Arc<dyn Clock>, capacity: NonZeroUsize) -> Self {
        let state = CacheState { entries: HashMap::new(), last_generation: 0, tick: 0 };
        ExpiringCache { clock, capacity, state: Mutex::new(state) }
    }

    /// Inserts a value that expires at this wall-clock time, or never: a credential with its own expiry.
    // C413
    pub fn insert_until(&self, key: K, value: V, expires: Option<Timestamp>) -> Generation {
        self.insert(key, value, Expiry { wall: expires, monotonic: None })
    }

    /// Inserts a value that expires after `lifetime` on the wall clock or the monotonic clock, whichever is first: the wall
    /// clock advances while the machine is suspended, and the monotonic clock is not affected by clock changes.
    // I131b
    pub fn insert_for(&self, key: K, value: V, lifetime: Duration) -> Generation {
        let wall = self.clock.now().saturating_add(lifetime).unwrap_or(Timestamp::MAX);
        let monotonic = self.clock.monotonic().saturating_add(lifetime);
        self.insert(key, value, Expiry { wall: Some(wall), monotonic: Some(monotonic) })
    }

    /// Returns the value unless it has expired; removes an expired one.
    // I130
    pub fn lookup<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<CacheHit<V>>
    where
        K: Borrow<Q>,
    {
        let now = self.now();
        let mut state = self.lock();
        let tick = state.next_tick();
        let entry = state.entries.get_mut(key)?;
        if now.is_past(entry.expiry) {
            state.entries.remove(key);
            return None;
        }
        entry.used = tick;
        Some(CacheHit {
            value: entry.value.clone(),
            generation: entry.generation,
            expires: entry.expiry.wall,
        })
    }

    /// Removes the entry of a key.
    pub fn remove<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.lock().entries.remove(key).is_some()
    }

    /// Removes the entry only if it has this generation: ten 401 responses for one credential remove it once and keep its
    /// successor.
    pub fn remove_generation<Q: Eq + Hash + ?Sized>(&self, key: &Q, generation: Generation) -> bool
    where
        K: Borrow<Q>,
    {
        let mut state = self.lock();
        let current = state.entries.get(key).is_some_and(|entry| entry.generation == generation);
        current && state.entries.remove(key).is_some()
    }

    /// Removes expired entries and returns their number.
    pub fn purge(&self) -> usize {
        let now = self.now();
        self.lock().purge(now)
    }

    /// Removes all entries.
    pub fn clear(&self) {
        self.lock().entries.clear();
    }

    /// Number of entries, including expired ones that are not yet removed.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn insert(&self, key: K, value: V, expiry: Expiry) -> Generation {
        let now = self.now();
        let mut state = self.lock();
        if state.entries.len() >= self.capacity.get() && !state.entries.contains_key(&key) {
            state.evict(now);
        }
        let used = state.next_tick();
        state.last_generation = state.last_generation.wrapping_add(1);
        let generation = Generation(state.last_generation);
        state.entries.insert(key, CacheEntry { value, generation, expiry, used });
        generation
    }

    fn now(&self) -> Now {
        Now { wall: self.clock.now(), monotonic: self.clock.monotonic() }
    }

    fn lock(&self) -> MutexGuard<'_, CacheState<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash, V> CacheState<K, V> {
    fn next_tick(&mut self) -> u64 {
        self.tick = self.tick.wrapping_add(1);
        self.tick
    }

    fn purge(&mut self, now: Now) -> usize {
        let before = self.entries.len();
        self.entries.retain(|_, entry| !now.is_past(entry.expiry));
        before.saturating_sub(self.entries.len())
    }

    fn evict(&mut self, now: Now) {
        if self.purge(now) > 0 {
            return;
        }
        let oldest = self.entries.values().map(|entry| entry.used).min();
        self.entries.retain(|_, entry| Some(entry.used) != oldest);
    }
}

#[derive(Clone, Copy)]
struct Now {
    wall: Timestamp,
    monotonic: Duration,
}

impl Now {
    fn is_past(self, expiry: Expiry) -> bool {
        expiry.wall.is_some_and(|at| self.wall > at) || expiry.monotonic.is_some_and(|at| self.monotonic > at)
    }
}

/// Shows neither keys nor values: an image key may name a tenant, and a value is a credential.
impl<K, V> fmt::Debug for ExpiringCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.state.lock().unwrap_or_else(PoisonError::into_inner).entries.len();
        f.debug_struct("ExpiringCache")
            .field("entries", &entries)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use navicert_types::clock::ManualClock;

    fn cache(capacity: usize) -> (Arc<ManualClock>, ExpiringCache<String, &'static str>) {
        let clock = Arc::new(ManualClock::at(1_000));
        let capacity = NonZeroUsize::new(capacity).unwrap();
        (Arc::clone(&clock), ExpiringCache::new(clock, capacity))
    }

    fn value(cache: &ExpiringCache<String, &'static str>, key: &str) -> Option<&'static str> {
        cache.lookup(key).map(|hit| hit.value)
    }

    #[test]
    fn entry_is_valid_until_and_including_its_expiry() {
        // C410, I126: strictly later
        let (clock, cache) = cache(9);
        cache.insert_until("until".into(), "a", Some(Timestamp::from_second(1_060).unwrap()));
        cache.insert_for("for".into(), "b", Duration::from_secs(60));
        cache.insert_until("never".into(), "c", None);
        clock.advance(Duration::from_secs(60));
        assert_eq!((value(&cache, "until"), value(&cache, "for")), (Some("a"), Some("b")));
        clock.advance(Duration::from_nanos(1));
        assert_eq!((value(&cache, "until"), value(&cache, "for")), (None, None));
        assert_eq!(cache.len(), 1, "lookup removes an expired entry");
        clock.advance(Duration::from_secs(1_000_000_000));
        assert_eq!(value(&cache, "never"), Some("c"));
    }

    #[test]
    fn lifetime_ends_on_the_first_of_both_clocks() {
        // I131b: a machine that slept, and a wall clock that was set back.
        let (clock, cache) = cache(9);
        cache.insert_for("slept".into(), "a", Duration::from_secs(60));
        clock.set_wall(Timestamp::from_second(2_000).unwrap());
        assert_eq!(value(&cache, "slept"), None);
        cache.insert_for("set back".into(), "b", Duration::from_secs(60));
        clock.set_wall(Timestamp::from_second(0).unwrap());
        assert_eq!(value(&cache, "set back"), Some("b"));
        clock.advance(Duration::from_secs(61));
        assert_eq!(value(&cache, "set back"), None);
    }

    #[test]
    fn removing_a_generation_keeps_its_successor() {
        let (_, cache) = cache(9);
        let first = cache.insert_until("key".into(), "old", None);
        assert_eq!(cache.lookup("key").unwrap().generation, first);
        let second = cache.insert_until("key".into(), "new", None);
        assert!(second > first);
        assert!(!cache.remove_generation("key", first));
        assert_eq!(value(&cache, "key"), Some("new"));
        assert!(cache.remove_generation("key", second));
        assert!(!cache.remove_generation("key", second));
        assert_eq!(value(&cache, "key"), None);
        assert!(cache.insert_until("key".into(), "newer", None) > second, "generations are never reused");
    }

    #[test]
    fn evicts_expired_entries_first_then_the_least_recently_used() {
        // I263
        let (clock, cache) = cache(3);
        cache.insert_for("short".into(), "s", Duration::from_secs(1));
        cache.insert_until("a".into(), "a", None);
        cache.insert_until("b".into(), "b", None);
        clock.advance(Duration::from_secs(2));
        cache.insert_until("c".into(), "c", None);
        assert_eq!(cache.len(), 3);
        assert_eq!(
            (value(&cache, "b"), value(&cache, "c"), value(&cache, "a")),
            (Some("b"), Some("c"), Some("a"))
        );
        cache.insert_until("d".into(), "d", None);
        assert_eq!((cache.len(), value(&cache, "b")), (3, None), "b was least recently used");
        cache.insert_until("d".into(), "again", None);
        assert_eq!((cache.len(), value(&cache, "c")), (3, Some("c")), "replacing an entry evicts no other");
    }

    #[test]
    fn purge_removes_expired_entries_and_counts_them() {
        // I130
        let (clock, cache) = cache(9);
        for key in ["a", "b"] {
            cache.insert_for(key.into(), "x", Duration::from_secs(1));
        }
        cache.insert_for("c".into(), "x", Duration::from_secs(100));
        assert_eq!(cache.purge(), 0);
        clock.advance(Duration::from_secs(2));
        assert_eq!((cache.purge(), cache.len()), (2, 1));
        cache.clear();
        assert!(cache.is_empty());
    }

    #[test]
    fn debug_shows_neither_keys_nor_values() {
        let (_, cache) = cache(9);
        cache.insert_until("canary-key".into(), "canary-value", None);
        let shown = format!("{cache:?}");
        assert!(!shown.contains("canary") && shown.contains("entries: 1"), "{shown}");
    }
}
