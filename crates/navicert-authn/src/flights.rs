//! One decision at a time about one token: who asks while it is being made waits for it (S149).
//!
//! Nobody is tied to anybody else. Who stops waiting just leaves; if that is the one who was deciding, the next in line
//! decides.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::token_cache::{Grounds, Name};

/// Decisions that are being made.
pub(crate) struct Flights<T>(Mutex<HashMap<Key, Arc<Flight<T>>>>);

/// A token, and what the decision about it rests on: after a change nobody waits for a decision from before it.
type Key = (Name, Grounds);

struct Flight<T> {
    turn: tokio::sync::Mutex<()>,
    landed: OnceLock<T>,
}

impl<T: Clone> Flights<T> {
    pub(crate) fn new() -> Self {
        Flights(Mutex::default())
    }

    /// What `decide` says, or what somebody else's said meanwhile, as far as `still` lets that hold.
    pub(crate) async fn share(
        &self,
        key: Key,
        still: impl Fn(&T) -> Option<T>,
        decide: impl Future<Output = T>,
    ) -> T {
        let seat = self.board(key);
        let _turn = seat.flight.turn.lock().await;
        if let Some(outcome) = seat.flight.landed.get().and_then(still) {
            return outcome;
        }
        let outcome = decide.await;
        // Whoever comes from now on is not one of those who wait.
        self.flights().remove(&key);
        let _ = seat.flight.landed.set(outcome.clone());
        outcome
    }

    fn board(&self, key: Key) -> Seat<'_, T> {
        let new = || Arc::new(Flight { turn: tokio::sync::Mutex::default(), landed: OnceLock::new() });
        let flight = Arc::clone(self.flights().entry(key).or_insert_with(new));
        Seat { flights: self, key, flight }
    }
}

impl<T> Flights<T> {
    fn flights(&self) -> MutexGuard<'_, HashMap<Key, Arc<Flight<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Flights<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Flights").field(&self.flights().len()).finish()
    }
}

/// Somebody who decides or waits. The last one to leave clears up.
struct Seat<'f, T> {
    flights: &'f Flights<T>,
    key: Key,
    flight: Arc<Flight<T>>,
}

impl<T> Drop for Seat<'_, T> {
    fn drop(&mut self) {
        let mut flights = self.flights.flights();
        let is_ours = flights.get(&self.key).is_some_and(|flight| Arc::ptr_eq(flight, &self.flight));
        // The map's and our own; nobody boards while the map is held.
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

    fn key(token: &str, cache: &TokenCache) -> Key {
        (cache.name(token), Grounds { generation: 1, revocations: 1 })
    }

    fn poll(future: std::pin::Pin<&mut impl Future<Output = &'static str>>) -> Option<&'static str> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    fn has_landed(future: std::pin::Pin<&mut impl Future<Output = &'static str>>) -> bool {
        matches!(poll(future), Some("decided"))
    }

    // S149
    #[test]
    fn who_asks_meanwhile_waits_and_nothing_is_decided_twice() {
        let (flights, cache, decisions) = (Flights::new(), TokenCache::new(), Cell::new(0));
        let (tell, told) = tokio::sync::oneshot::channel::<()>();
        let told = Cell::new(Some(told));
        let ask = |token: &'static str| {
            let (key, decisions) = (key(token, &cache), &decisions);
            let told = told.take();
            flights.share(key, |landed| Some(*landed), async move {
                decisions.set(decisions.get() + 1);
                if let Some(told) = told {
                    let _ = told.await;
                }
                "decided"
            })
        };
        let (mut first, mut second, mut other) = (pin!(ask("a")), pin!(ask("a")), pin!(ask("b")));
        assert!(poll(first.as_mut()).is_none() && poll(second.as_mut()).is_none());
        assert!(has_landed(other.as_mut()), "another token waits for nobody");
        assert_eq!(decisions.get(), 2);
        tell.send(()).unwrap();
        assert!(has_landed(first.as_mut()) && has_landed(second.as_mut()));
        assert_eq!(decisions.get(), 2, "the second one was told");
        // It has landed: a later question is a new one.
        assert!(has_landed(pin!(ask("a")).as_mut()));
        assert_eq!((decisions.get(), flights.flights().len()), (3, 0));
    }

    // S149: a caller leaves when its own time is over, and the others go on.
    #[test]
    fn if_the_one_who_decides_leaves_the_next_one_decides() {
        let (flights, cache, decisions) = (Flights::new(), TokenCache::new(), Cell::new(0));
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
        assert!(has_landed(second.as_mut()));
        assert_eq!(decisions.get(), 2);
        drop(second);
        let mut alone = Box::pin(flights.share(key("a", &cache), |_| None, never()));
        assert!(poll(alone.as_mut()).is_none());
        drop(alone);
        assert_eq!(flights.flights().len(), 0, "nothing is left of who has left");
    }

    // S149, S309: what has changed meanwhile is decided again.
    #[test]
    fn nobody_waits_for_a_decision_from_before_a_change() {
        let (flights, cache) = (Flights::new(), TokenCache::new());
        let (name, grounds) = key("a", &cache);
        let mut before = Box::pin(flights.share((name, grounds), |_| None, std::future::pending()));
        assert!(poll(before.as_mut()).is_none());
        let after = Grounds { generation: 2, ..grounds };
        let decide = std::future::ready("decided");
        assert!(has_landed(pin!(flights.share((name, after), |_| None, decide)).as_mut()));
    }
}
