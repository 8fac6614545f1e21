//! Single flight: concurrent requests for one token share one decision.
//!
//! A request that is cancelled leaves the flight. If it was the leader, the next waiting request makes the decision.
// S149

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::token_cache::{CacheEpoch, TokenDigest};

/// Decisions in progress.
pub(crate) struct DecisionFlights<T>(Mutex<HashMap<FlightKey, Arc<Flight<T>>>>);

/// A token and the cache epoch of its decision: requests after a reload never join a decision from before it.
type FlightKey = (TokenDigest, CacheEpoch);

struct Flight<T> {
    leader: tokio::sync::Mutex<()>,
    decision: OnceLock<T>,
}

impl<T: Clone> DecisionFlights<T> {
    pub(crate) fn new() -> Self {
        DecisionFlights(Mutex::default())
    }

    /// Returns what `decide` returns, or the decision of a concurrent request if `revalidate` accepts it.
    pub(crate) async fn share(
        &self,
        key: FlightKey,
        revalidate: impl Fn(&T) -> Option<T>,
        decide: impl Future<Output = T>,
    ) -> T {
        let guard = self.join(key);
        let _leader = guard.flight.leader.lock().await;
        if let Some(outcome) = guard.flight.decision.get().and_then(revalidate) {
            return outcome;
        }
        let outcome = decide.await;
        // Requests that arrive from now on start a new flight.
        self.flights().remove(&key);
        let _ = guard.flight.decision.set(outcome.clone());
        outcome
    }

    fn join(&self, key: FlightKey) -> FlightGuard<'_, T> {
        let new = || Arc::new(Flight { leader: tokio::sync::Mutex::default(), decision: OnceLock::new() });
        let flight = Arc::clone(self.flights().entry(key).or_insert_with(new));
        FlightGuard { flights: self, key, flight }
    }
}

impl<T> DecisionFlights<T> {
    fn flights(&self) -> MutexGuard<'_, HashMap<FlightKey, Arc<Flight<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for DecisionFlights<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DecisionFlights").field(&self.flights().len()).finish()
    }
}

/// Membership in a flight. The last member to leave removes it.
struct FlightGuard<'f, T> {
    flights: &'f DecisionFlights<T>,
    key: FlightKey,
    flight: Arc<Flight<T>>,
}

impl<T> Drop for FlightGuard<'_, T> {
    fn drop(&mut self) {
        let mut flights = self.flights.flights();
        let is_ours = flights.get(&self.key).is_some_and(|flight| Arc::ptr_eq(flight, &self.flight));
        // One reference is the map's, one is our own; `join` cannot run while the map is locked.
        if is_ours && Arc::strong_count(&self.flight) == 2 {
            flights.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::token_cache::TokenCache;

    fn key(token: &str, cache: &TokenCache) -> FlightKey {
        (cache.digest(token), CacheEpoch { generation: 1, revocations: 1 })
    }

    fn poll(future: std::pin::Pin<&mut impl Future<Output = &'static str>>) -> Option<&'static str> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    fn is_decided(future: std::pin::Pin<&mut impl Future<Output = &'static str>>) -> bool {
        matches!(poll(future), Some("decided"))
    }

    // S149
    #[test]
    fn concurrent_requests_for_one_token_share_one_decision() {
        let (flights, cache, decisions) = (DecisionFlights::new(), TokenCache::new(), Cell::new(0));
        let (release, released) = tokio::sync::oneshot::channel::<()>();
        let released = Cell::new(Some(released));
        let request = |token: &'static str| {
            let (key, decisions) = (key(token, &cache), &decisions);
            let released = released.take();
            flights.share(key, |shared| Some(*shared), async move {
                decisions.set(decisions.get() + 1);
                if let Some(released) = released {
                    let _ = released.await;
                }
                "decided"
            })
        };
        let (mut first, mut second, mut other) = (pin!(request("a")), pin!(request("a")), pin!(request("b")));
        assert!(poll(first.as_mut()).is_none() && poll(second.as_mut()).is_none());
        assert!(is_decided(other.as_mut()), "another token does not wait");
        assert_eq!(decisions.get(), 2);
        release.send(()).unwrap();
        assert!(is_decided(first.as_mut()) && is_decided(second.as_mut()));
        assert_eq!(decisions.get(), 2, "the second request got the first decision");
        // The flight has ended: a later request starts a new one.
        assert!(is_decided(pin!(request("a")).as_mut()));
        assert_eq!((decisions.get(), flights.flights().len()), (3, 0));
    }

    // S149: a request that times out leaves, and the others continue.
    #[test]
    fn next_request_decides_if_the_leader_is_cancelled() {
        let (flights, cache, decisions) = (DecisionFlights::new(), TokenCache::new(), Cell::new(0));
        let never = || async {
            decisions.set(decisions.get() + 1);
            std::future::pending::<&'static str>().await
        };
        let mut first = Box::pin(flights.share(key("a", &cache), |_| None, never()));
        assert!(poll(first.as_mut()).is_none());
        let decide = async {
            decisions.set(decisions.get() + 1);
            "decided"
        };
        let mut second = Box::pin(flights.share(key("a", &cache), |_| None, decide));
        assert!(poll(second.as_mut()).is_none());
        drop(first);
        assert!(is_decided(second.as_mut()));
        assert_eq!(decisions.get(), 2);
        drop(second);
        let mut alone = Box::pin(flights.share(key("a", &cache), |_| None, never()));
        assert!(poll(alone.as_mut()).is_none());
        drop(alone);
        assert_eq!(flights.flights().len(), 0, "a cancelled flight is removed");
    }

    // S149, S309: after a reload the token is decided again.
    #[test]
    fn requests_never_wait_for_a_decision_from_before_a_reload() {
        let (flights, cache) = (DecisionFlights::new(), TokenCache::new());
        let (name, epoch) = key("a", &cache);
        let mut before = Box::pin(flights.share((name, epoch), |_| None, std::future::pending()));
        assert!(poll(before.as_mut()).is_none());
        let after = CacheEpoch { generation: 2, ..epoch };
        let decide = std::future::ready("decided");
        assert!(is_decided(pin!(flights.share((name, after), |_| None, decide)).as_mut()));
    }
}
