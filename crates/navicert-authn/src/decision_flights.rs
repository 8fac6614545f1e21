//! Single flight: concurrent requests for one token share one decision.
//!
//! A request that is cancelled leaves the flight. If it was the leader, the next waiting request makes the decision. Requests
//! wait for the leader, which may wait for an issuer, for at most a second; and only so many of them do.
// S149

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use navicert_io::flights::Flights;
use navicert_types::Clock;

use crate::deadlines::{Deadlines, MAX_FETCH_WAIT};
use crate::token_cache::{CacheEpoch, TokenDigest};

/// Maximum number of requests that wait for the decision on one token.
const MAX_FLIGHT_WAITERS: usize = 64;

/// Decisions in progress.
#[derive(Debug)]
pub(crate) struct DecisionFlights<T> {
    flights: Flights<FlightKey, T, FlightState>,
    clock: Arc<dyn Clock>,
    deadlines: Deadlines,
}

/// A token and the cache epoch of its decision: requests after a reload never join a decision from before it.
type FlightKey = (TokenDigest, CacheEpoch);

struct FlightState {
    /// When to stop waiting for the leader.
    deadline: Mutex<Duration>,
    waiters: AtomicUsize,
}

impl<T: Clone> DecisionFlights<T> {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let deadlines = Deadlines::new(Arc::clone(&clock));
        DecisionFlights { flights: Flights::new(), clock, deadlines }
    }

    /// Deadlines of the waiting requests. The caller has to drive them.
    pub(crate) fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    /// Returns what `decide` returns, or the decision of a concurrent request if `revalidate` accepts it, or what
    /// `decide_without_fetch` returns if the concurrent request takes too long or too many wait for it.
    pub(crate) async fn share(
        &self,
        key: FlightKey,
        revalidate: impl Fn(&T) -> Option<T>,
        decide: impl Future<Output = T>,
        decide_without_fetch: impl FnOnce() -> T,
    ) -> T {
        let deadline = || self.clock.monotonic() + MAX_FETCH_WAIT;
        let state = || FlightState { deadline: Mutex::new(deadline()), waiters: AtomicUsize::new(0) };
        let member = self.flights.join(key, state);
        let lead = match member.try_lead() {
            Some(lead) => lead,
            None => {
                let waiting = WaitGuard::new(&member.shared().waiters);
                let until = *member.shared().deadline();
                let lead = match waiting {
                    Some(_) => self.deadlines.wait_until(until, member.lead()).await,
                    None => None,
                };
                let Some(lead) = lead else { return decide_without_fetch() };
                lead
            }
        };
        *member.shared().deadline() = deadline();
        if let Some(outcome) = member.result().and_then(revalidate) {
            return outcome;
        }
        let outcome = decide.await;
        member.finish(lead, outcome.clone());
        outcome
    }
}

impl FlightState {
    fn deadline(&self) -> MutexGuard<'_, Duration> {
        self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that waits for the leader.
struct WaitGuard<'f>(&'f AtomicUsize);

impl<'f> WaitGuard<'f> {
    /// `None` if too many requests wait.
    fn new(waiters: &'f AtomicUsize) -> Option<Self> {
        let guard = WaitGuard(waiters);
        (waiters.fetch_add(1, Ordering::AcqRel) < MAX_FLIGHT_WAITERS).then_some(guard)
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use navicert_types::clock::ManualClock;

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
        let (flights, cache, decisions) =
            (DecisionFlights::new(Arc::new(ManualClock::at(0))), TokenCache::new(), Cell::new(0));
        let (release, released) = tokio::sync::oneshot::channel::<()>();
        let released = Cell::new(Some(released));
        let request = |token: &'static str| {
            let (key, decisions) = (key(token, &cache), &decisions);
            let released = released.take();
            let decide = async move {
                decisions.set(decisions.get() + 1);
                if let Some(released) = released {
                    let _ = released.await;
                }
                "decided"
            };
            flights.share(key, |shared| Some(*shared), decide, || "too late")
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
        assert_eq!((decisions.get(), flights.flights.in_flight()), (3, 0));
    }

    // S149: a request that times out leaves, and the others continue.
    #[test]
    fn next_request_decides_if_the_leader_is_cancelled() {
        let (flights, cache, decisions) =
            (DecisionFlights::new(Arc::new(ManualClock::at(0))), TokenCache::new(), Cell::new(0));
        let never = || async {
            decisions.set(decisions.get() + 1);
            std::future::pending::<&'static str>().await
        };
        let mut first = Box::pin(flights.share(key("a", &cache), |_| None, never(), || "too late"));
        assert!(poll(first.as_mut()).is_none());
        let decide = async {
            decisions.set(decisions.get() + 1);
            "decided"
        };
        let mut second = Box::pin(flights.share(key("a", &cache), |_| None, decide, || "too late"));
        assert!(poll(second.as_mut()).is_none());
        drop(first);
        assert!(is_decided(second.as_mut()));
        assert_eq!(decisions.get(), 2);
        drop(second);
        let mut alone = Box::pin(flights.share(key("a", &cache), |_| None, never(), || "too late"));
        assert!(poll(alone.as_mut()).is_none());
        drop(alone);
        assert_eq!(flights.flights.in_flight(), 0, "a cancelled flight is removed");
    }

    // S149, S309: after a reload the token is decided again.
    #[test]
    fn requests_never_wait_for_a_decision_from_before_a_reload() {
        let (flights, cache) = (DecisionFlights::new(Arc::new(ManualClock::at(0))), TokenCache::new());
        let (name, epoch) = key("a", &cache);
        let mut before =
            Box::pin(flights.share((name, epoch), |_| None, std::future::pending(), || "too late"));
        assert!(poll(before.as_mut()).is_none());
        let after = CacheEpoch { generation: 2, ..epoch };
        let decide = std::future::ready("decided");
        assert!(is_decided(pin!(flights.share((name, after), |_| None, decide, || "too late")).as_mut()));
    }

    // S149: one token whose decision waits for an issuer does not hold up the others that show it.
    #[test]
    fn waiting_for_the_leader_is_bounded_in_number_and_time() {
        let clock = Arc::new(ManualClock::at(0));
        let (flights, cache) = (DecisionFlights::new(Arc::clone(&clock) as _), TokenCache::new());
        let request = || {
            let decide = std::future::pending::<&'static str>();
            Box::pin(flights.share(key("a", &cache), |shared| Some(*shared), decide, || "too late"))
        };
        let mut leader = request();
        assert!(poll(leader.as_mut()).is_none());
        let mut waiting: Vec<_> = (0..MAX_FLIGHT_WAITERS).map(|_| request()).collect();
        for one in &mut waiting {
            assert!(poll(one.as_mut()).is_none());
        }
        assert_eq!(poll(request().as_mut()), Some("too late"), "too many wait");
        drop(waiting.pop());
        let mut late = request();
        assert!(poll(late.as_mut()).is_none(), "one that leaves makes room");
        clock.advance(MAX_FETCH_WAIT);
        assert_eq!(poll(late.as_mut()), Some("too late"));
        assert_eq!(poll(request().as_mut()), Some("too late"), "the leader takes too long");
        assert!(poll(leader.as_mut()).is_none());
    }
}
