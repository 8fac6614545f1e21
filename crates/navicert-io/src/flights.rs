//! Single flight of asynchronous work: concurrent tasks with the same key share one result.
//!
//! One member of a flight leads and does the work in its own task; the others wait. If the leader is cancelled, the next
//! member leads. `navicert_plugin::SingleFlight` is for blocking work instead, which has a thread of its own and ends
//! whether or not a caller still waits.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Work in progress by key, with shared data `S` for each flight.
///
/// ```
/// use navicert_io::flights::Flights;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let flights: Flights<&str, u32> = Flights::new();
/// let member = flights.join("key", || ());
/// let lead = member.lead().await;
/// if member.result().is_none() {
///     member.finish(lead, 42);
/// }
/// assert_eq!(member.result(), Some(&42));
/// # }
/// ```
pub struct Flights<K: Eq + Hash, T, S = ()> {
    flights: Mutex<HashMap<K, Arc<Flight<T, S>>>>,
}

struct Flight<T, S> {
    leader: tokio::sync::Mutex<()>,
    result: OnceLock<T>,
    shared: S,
}

impl<K: Copy + Eq + Hash, T, S> Flights<K, T, S> {
    /// No flights.
    pub fn new() -> Self {
        Flights { flights: Mutex::default() }
    }

    /// Joins the flight of this key, or starts one with new shared data.
    pub fn join(&self, key: K, shared: impl FnOnce() -> S) -> FlightMember<'_, K, T, S> {
        let new = || {
            let (leader, result) = (tokio::sync::Mutex::default(), OnceLock::new());
            Arc::new(Flight { leader, result, shared: shared() })
        };
        let flight = Arc::clone(lock(&self.flights).entry(key).or_insert_with(new));
        FlightMember { flights: self, key, flight }
    }
}

impl<K: Eq + Hash, T, S> Flights<K, T, S> {
    /// Number of flights.
    pub fn in_flight(&self) -> usize {
        lock(&self.flights).len()
    }
}

impl<K: Copy + Eq + Hash, T, S> Default for Flights<K, T, S> {
    fn default() -> Self {
        Flights::new()
    }
}

impl<K: Eq + Hash, T, S> fmt::Debug for Flights<K, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Flights").field(&self.in_flight()).finish()
    }
}

/// Membership in a flight. The last member to leave removes it.
pub struct FlightMember<'f, K: Eq + Hash, T, S> {
    flights: &'f Flights<K, T, S>,
    key: K,
    flight: Arc<Flight<T, S>>,
}

impl<K: Eq + Hash, T, S> FlightMember<'_, K, T, S> {
    /// The flight's shared data.
    pub fn shared(&self) -> &S {
        &self.flight.shared
    }

    /// Leads the flight, unless another member does.
    pub fn try_lead(&self) -> Option<Lead<'_>> {
        self.flight.leader.try_lock().ok().map(Lead)
    }

    /// Waits until no other member leads the flight, and leads it.
    pub async fn lead(&self) -> Lead<'_> {
        Lead(self.flight.leader.lock().await)
    }

    /// The result of a leader before. A member that leads looks for it first.
    pub fn result(&self) -> Option<&T> {
        self.flight.result.get()
    }

    /// Ends the flight with a result. Tasks that join from now on start a new one.
    pub fn finish(&self, lead: Lead<'_>, result: T) {
        self.remove(|_| true);
        let _ = self.flight.result.set(result);
        drop(lead);
    }

    fn remove(&self, is_due: impl FnOnce(&Arc<Flight<T, S>>) -> bool) {
        let mut flights = lock(&self.flights.flights);
        let is_ours = |flight: &&Arc<Flight<T, S>>| Arc::ptr_eq(flight, &self.flight);
        if flights.get(&self.key).filter(is_ours).is_some_and(is_due) {
            flights.remove(&self.key);
        }
    }
}

impl<K: Eq + Hash, T, S> Drop for FlightMember<'_, K, T, S> {
    fn drop(&mut self) {
        // One reference is the map's, one is our own; `join` cannot run while the map is locked.
        self.remove(|flight| Arc::strong_count(flight) == 2);
    }
}

impl<K: Eq + Hash, T, S> fmt::Debug for FlightMember<'_, K, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlightMember").finish_non_exhaustive()
    }
}

/// The right to do a flight's work. Dropped without a result, it passes to the next member.
#[derive(Debug)]
pub struct Lead<'f>(
    #[expect(dead_code, reason = "held until it is dropped")] tokio::sync::MutexGuard<'f, ()>,
);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn members_share_the_leaders_result() {
        let flights: Flights<u8, &str, Mutex<u32>> = Flights::new();
        let (first, second, other) = (
            flights.join(1, || Mutex::new(7)),
            flights.join(1, || Mutex::new(8)),
            flights.join(2, || Mutex::new(9)),
        );
        assert_eq!(*second.shared().lock().unwrap(), 7, "shared by the members of a flight");
        let lead = first.try_lead().unwrap();
        assert!(second.try_lead().is_none() && other.try_lead().is_some());
        first.finish(lead, "done");
        assert_eq!(flights.in_flight(), 1, "later tasks start a new flight");
        let lead = second.lead().await;
        assert_eq!(second.result(), Some(&"done"));
        let later = flights.join(1, Mutex::default);
        assert_eq!(later.result(), None);
        drop(lead);
        drop((first, second));
        assert_eq!(flights.in_flight(), 2, "members of an ended flight do not remove the new one");
        drop((later, other));
        assert_eq!(flights.in_flight(), 0);
    }

    #[tokio::test]
    async fn next_member_leads_if_the_leader_is_cancelled() {
        let flights: Flights<u8, u8> = Flights::new();
        let (first, second) = (flights.join(1, || ()), flights.join(1, || ()));
        let lead = first.lead().await;
        drop(lead);
        drop(first);
        assert_eq!(flights.in_flight(), 1);
        let lead = second.lead().await;
        assert!(second.result().is_none());
        drop(lead);
        drop(second);
        assert_eq!(flights.in_flight(), 0, "the last member removes the flight");
    }
}
