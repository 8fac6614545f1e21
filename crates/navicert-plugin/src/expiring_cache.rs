//! What plugins answered, until it expires: bounded, by the injected clock, and numbered so that a caller can say
//! "forget this one" without forgetting its successor.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use navicert_types::{Clock, Timestamp};

/// Which insertion a value came from. Later is larger; no number is given twice within a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

/// A value found in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit<V> {
    /// The value.
    pub value: V,
    /// Which insertion it is from.
    pub generation: Generation,
    /// When it expires; `None` is never.
    pub expires: Option<Timestamp>,
}

/// Values by key, each with an expiry.
///
/// An entry is gone when the time is *strictly after* its expiry (C410, I126). When the cache is full, expired entries
/// go first, then whatever was not asked for the longest (I263).
pub struct ExpiringCache<K, V> {
    clock: Arc<dyn Clock>,
    capacity: NonZeroUsize,
    state: Mutex<State<K, V>>,
}

struct State<K, V> {
    entries: HashMap<K, Entry<V>>,
    last_generation: u64,
    /// Counts look-ups and insertions, to tell which entry was used last.
    tick: u64,
}

struct Entry<V> {
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
    /// An empty cache for at most so many entries.
    pub fn new(clock: Arc<dyn Clock>, capacity: NonZeroUsize) -> Self {
        let state = State { entries: HashMap::new(), last_generation: 0, tick: 0 };
        ExpiringCache { clock, capacity, state: Mutex::new(state) }
    }

    /// Keeps a value until this wall time, or for good: a credential that says itself when it expires (C413).
    pub fn insert_until(&self, key: K, value: V, expires: Option<Timestamp>) -> Generation {
        self.insert(key, value, Expiry { wall: expires, monotonic: None })
    }

    /// Keeps a value for this long by whichever clock gets there first: wall time goes on while a machine sleeps, and
    /// monotonic time does not care when somebody sets the clock back (I131b).
    pub fn insert_for(&self, key: K, value: V, lifetime: Duration) -> Generation {
        let wall = self.clock.now().saturating_add(lifetime).unwrap_or(Timestamp::MAX);
        let monotonic = self.clock.monotonic().saturating_add(lifetime);
        self.insert(key, value, Expiry { wall: Some(wall), monotonic: Some(monotonic) })
    }

    /// The value for a key, unless it has expired; an expired one is dropped on the way (I130).
    pub fn lookup<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<Hit<V>>
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
        Some(Hit { value: entry.value.clone(), generation: entry.generation, expires: entry.expiry.wall })
    }

    /// Forgets whatever is there for the key.
    pub fn remove<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.lock().entries.remove(key).is_some()
    }

    /// Forgets the value of this generation, unless a later one has taken its place: ten answers of 401 for one
    /// credential forget it once.
    pub fn remove_generation<Q: Eq + Hash + ?Sized>(&self, key: &Q, generation: Generation) -> bool
    where
        K: Borrow<Q>,
    {
        let mut state = self.lock();
        let current = state.entries.get(key).is_some_and(|entry| entry.generation == generation);
        current && state.entries.remove(key).is_some()
    }

    /// Drops what has expired; returns how many there were.
    pub fn purge(&self) -> usize {
        let now = self.now();
        self.lock().purge(now)
    }

    /// Drops everything.
    pub fn clear(&self) {
        self.lock().entries.clear();
    }

    /// How many entries there are, expired ones not yet dropped included.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn insert(&self, key: K, value: V, expiry: Expiry) -> Generation {
        let now = self.now();
        let mut state = self.lock();
        if state.entries.len() >= self.capacity.get() && !state.entries.contains_key(&key) {
            state.make_room(now);
        }
        let used = state.next_tick();
        state.last_generation = state.last_generation.wrapping_add(1);
        let generation = Generation(state.last_generation);
        state.entries.insert(key, Entry { value, generation, expiry, used });
        generation
    }

    fn now(&self) -> Now {
        Now { wall: self.clock.now(), monotonic: self.clock.monotonic() }
    }

    fn lock(&self) -> MutexGuard<'_, State<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash, V> State<K, V> {
    fn next_tick(&mut self) -> u64 {
        self.tick = self.tick.wrapping_add(1);
        self.tick
    }

    fn purge(&mut self, now: Now) -> usize {
        let before = self.entries.len();
        self.entries.retain(|_, entry| !now.is_past(entry.expiry));
        before.saturating_sub(self.entries.len())
    }

    fn make_room(&mut self, now: Now) {
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

/// Shows neither keys nor values: an image key may name a tenant, a value is a credential.
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
    fn an_entry_is_good_at_its_expiry_and_gone_right_after() {
        // C410, I126: strictly later
        let (clock, cache) = cache(9);
        cache.insert_until("until".into(), "a", Some(Timestamp::from_second(1_060).unwrap()));
        cache.insert_for("for".into(), "b", Duration::from_secs(60));
        cache.insert_until("never".into(), "c", None);
        clock.advance(Duration::from_secs(60));
        assert_eq!((value(&cache, "until"), value(&cache, "for")), (Some("a"), Some("b")));
        clock.advance(Duration::from_nanos(1));
        assert_eq!((value(&cache, "until"), value(&cache, "for")), (None, None));
        assert_eq!(cache.len(), 1, "found expired means dropped");
        clock.advance(Duration::from_secs(1_000_000_000));
        assert_eq!(value(&cache, "never"), Some("c"));
    }

    #[test]
    fn a_lifetime_ends_by_whichever_clock_gets_there_first() {
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
    fn forgetting_a_generation_spares_its_successor() {
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
        assert!(cache.insert_until("key".into(), "newer", None) > second, "a number is never used again");
    }

    #[test]
    fn a_full_cache_drops_the_expired_first_and_then_the_least_used() {
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
        assert_eq!((cache.len(), value(&cache, "b")), (3, None), "b was used the longest ago");
        cache.insert_until("d".into(), "again", None);
        assert_eq!((cache.len(), value(&cache, "c")), (3, Some("c")), "replacing pushes nobody out");
    }

    #[test]
    fn purging_drops_what_expired_and_says_how_much() {
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
