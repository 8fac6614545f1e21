//! A gate a handler waits at until the test opens it: how the kit makes slow answers without sleeping.

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

use crate::wait;

/// A gate, closed at first. Clones are the same gate.
///
/// ```
/// use navicert_testkit::{Answer, Ca, Gate, HttpClient, HttpServer};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let ca = Ca::new("gate example");
/// let server = HttpServer::start(&ca);
/// let gate = Gate::new();
/// server.answer("/slow", Answer::text("at last").after(&gate));
///
/// let client = HttpClient::trusting(&ca);
/// let url = server.url_of("/slow");
/// let request = tokio::spawn(async move { client.get(&url).await });
/// gate.wait_for_arrivals(1).await; // the request is in the handler, and stays there
/// assert!(!request.is_finished());
/// gate.open();
/// assert_eq!(request.await.unwrap().unwrap().text(), "at last");
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Gate(Arc<State>);

#[derive(Debug)]
struct State {
    passes: Semaphore,
    arrivals: watch::Sender<usize>,
}

impl Gate {
    /// A closed gate.
    #[expect(
        clippy::new_without_default,
        reason = "`Gate::new()` says in a test what `default()` would hide"
    )]
    pub fn new() -> Self {
        Gate(Arc::new(State { passes: Semaphore::new(0), arrivals: watch::Sender::new(0) }))
    }

    /// Opens the gate for good.
    pub fn open(&self) {
        self.0.passes.close();
    }

    /// Lets one waiting handler, or the next to arrive, through.
    pub fn let_one_through(&self) {
        self.0.passes.add_permits(1);
    }

    /// How many have come to the gate so far, passed or not.
    pub fn arrivals(&self) -> usize {
        *self.0.arrivals.borrow()
    }

    /// Waits until `count` have come to the gate since it was made.
    ///
    /// # Panics
    /// If they do not come within [`wait::LIMIT`].
    pub async fn wait_for_arrivals(&self, count: usize) {
        let what = format!("{count} arrivals at the gate");
        let state = |seen: &usize| format!("{seen} arrived");
        wait::until(&what, self.0.arrivals.subscribe(), |seen| *seen >= count, state).await;
    }

    /// Waits at the gate. For handlers written in a test; [`Answer::after`](crate::Answer::after) calls it.
    pub async fn pass(&self) {
        self.0.arrivals.send_modify(|seen| *seen += 1);
        if let Ok(permit) = self.0.passes.acquire().await {
            permit.forget(); // one permit, one passage; an open (closed) semaphore lets everyone through
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_permit_lets_exactly_one_through_and_opening_lets_the_rest() {
        let gate = Gate::new();
        let walkers: Vec<_> = (0..3)
            .map(|_| {
                let gate = gate.clone();
                tokio::spawn(async move { gate.pass().await })
            })
            .collect();
        gate.wait_for_arrivals(3).await;
        let passed = || walkers.iter().filter(|walker| walker.is_finished()).count();
        assert_eq!(passed(), 0);
        gate.let_one_through();
        while passed() == 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(passed(), 1);
        gate.open();
        for walker in walkers {
            wait::within("the others", walker).await.unwrap();
        }
    }
}
