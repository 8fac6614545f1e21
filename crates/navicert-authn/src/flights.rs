//! One decision at a time about one token: who asks while it is being made waits for it (S149).
//!
//! Nobody is tied to anybody else. Who stops waiting just leaves; if that is the one who was deciding, the next in line
//! decides.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::outcome::Outcome;
use crate::token_cache::{Grounds, Name};

/// Decisions that are being made.
#[derive(Default)]
pub(crate) struct Flights(Mutex<HashMap<Key, Arc<Flight>>>);

/// A token, and what the decision about it rests on: after a change nobody waits for a decision from before it.
type Key = (Name, Grounds);

#[derive(Default)]
struct Flight {
    turn: tokio::sync::Mutex<()>,
    landed: OnceLock<Outcome>,
}

impl Flights {
    /// What `decide` says, or what somebody else's said meanwhile. Of a token that was accepted meanwhile, `remembered`
    /// tells whether that still holds.
    pub(crate) async fn share(
        &self,
        key: Key,
        remembered: impl Fn() -> Option<Outcome>,
        decide: impl Future<Output = Outcome>,
    ) -> Outcome {
        let seat = self.board(key);
        let _turn = seat.flight.turn.lock().await;
        let known = match seat.flight.landed.get() {
            Some(Outcome::Authenticated(_)) => remembered(),
            landed => landed.cloned(),
        };
        if let Some(outcome) = known {
            return outcome;
        }
        let outcome = decide.await;
        // Whoever comes from now on is not one of those who wait.
        self.flights().remove(&key);
        let _ = seat.flight.landed.set(outcome.clone());
        outcome
    }

    fn board(&self, key: Key) -> Seat<'_> {
        let flight = Arc::clone(self.flights().entry(key).or_default());
        Seat { flights: self, key, flight }
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<Key, Arc<Flight>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Flights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Flights").field(&self.flights().len()).finish()
    }
}

/// Somebody who decides or waits. The last one to leave clears up.
struct Seat<'f> {
    flights: &'f Flights,
    key: Key,
    flight: Arc<Flight>,
}

impl Drop for Seat<'_> {
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
    use crate::outcome::NoOpinion;
    use crate::token_cache::TokenCache;

    fn key(token: &str, cache: &TokenCache) -> Key {
        (cache.name(token), Grounds { generation: 1, revocations: 1 })
    }

    fn poll(future: std::pin::Pin<&mut impl Future<Output = Outcome>>) -> Option<Outcome> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    fn is_nobodys(future: std::pin::Pin<&mut impl Future<Output = Outcome>>) -> bool {
        matches!(poll(future), Some(Outcome::NoOpinion(NoOpinion::UnknownIssuer)))
    }

    // S149
    #[test]
    fn who_asks_meanwhile_waits_and_nothing_is_decided_twice() {
        let (flights, cache, decisions) = (Flights::default(), TokenCache::new(), Cell::new(0));
        let (tell, told) = tokio::sync::oneshot::channel::<()>();
        let told = Cell::new(Some(told));
        let ask = |token: &'static str| {
            let (key, decisions) = (key(token, &cache), &decisions);
            let told = told.take();
            flights.share(key, || None, async move {
                decisions.set(decisions.get() + 1);
                if let Some(told) = told {
                    let _ = told.await;
                }
                Outcome::NoOpinion(NoOpinion::UnknownIssuer)
            })
        };
        let (mut first, mut second, mut other) = (pin!(ask("a")), pin!(ask("a")), pin!(ask("b")));
        assert!(poll(first.as_mut()).is_none() && poll(second.as_mut()).is_none());
        assert!(is_nobodys(other.as_mut()), "another token waits for nobody");
        assert_eq!(decisions.get(), 2);
        tell.send(()).unwrap();
        assert!(is_nobodys(first.as_mut()) && is_nobodys(second.as_mut()));
        assert_eq!(decisions.get(), 2, "the second one was told");
        // It has landed: a later question is a new one.
        assert!(is_nobodys(pin!(ask("a")).as_mut()));
        assert_eq!((decisions.get(), flights.flights().len()), (3, 0));
    }

    // S149: a caller leaves when its own time is over, and the others go on.
    #[test]
    fn if_the_one_who_decides_leaves_the_next_one_decides() {
        let (flights, cache, decisions) = (Flights::default(), TokenCache::new(), Cell::new(0));
        let never = || async {
            decisions.set(decisions.get() + 1);
            std::future::pending::<Outcome>().await
        };
        let mut first = Box::pin(flights.share(key("a", &cache), || None, never()));
        assert!(poll(first.as_mut()).is_none());
        let decide = async {
            decisions.set(decisions.get() + 1);
            Outcome::NoOpinion(NoOpinion::UnknownIssuer)
        };
        let mut second = Box::pin(flights.share(key("a", &cache), || None, decide));
        assert!(poll(second.as_mut()).is_none());
        drop(first);
        assert!(is_nobodys(second.as_mut()));
        assert_eq!(decisions.get(), 2);
        drop(second);
        let mut alone = Box::pin(flights.share(key("a", &cache), || None, never()));
        assert!(poll(alone.as_mut()).is_none());
        drop(alone);
        assert_eq!(flights.flights().len(), 0, "nothing is left of who has left");
    }

    // S149, S309: what has changed meanwhile is decided again.
    #[test]
    fn nobody_waits_for_a_decision_from_before_a_change() {
        let (flights, cache) = (Flights::default(), TokenCache::new());
        let (name, grounds) = key("a", &cache);
        let mut before = Box::pin(flights.share((name, grounds), || None, std::future::pending()));
        assert!(poll(before.as_mut()).is_none());
        let after = Grounds { generation: 2, ..grounds };
        let decide = std::future::ready(Outcome::NoOpinion(NoOpinion::UnknownIssuer));
        assert!(is_nobodys(pin!(flights.share((name, after), || None, decide)).as_mut()));
    }
}
