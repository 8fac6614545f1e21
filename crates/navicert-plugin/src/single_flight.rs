//! Runs at most one operation per key at a time. All concurrent callers get its result, success or failure.
// C420–C422

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use crate::completion::{Completion, JoinError, Waiter, spawn_catching};

/// The result of a shared run.
pub type FlightResult<V, E> = Result<V, FlightError<E>>;

/// Runs in flight, by key.
///
/// A run has its own thread and continues when waiters are dropped. Its key is free again when it ends, so a run should
/// check the cache first, in case another run has just finished, and store its result before it returns.
///
/// ```
/// use navicert_plugin::SingleFlight;
///
/// let flights: SingleFlight<&str, u32, String> = SingleFlight::new();
/// let answer = flights.join("key", || Ok(42)).wait();
/// assert_eq!(answer.ok(), Some(42));
/// ```
// C306
pub struct SingleFlight<K, V, E> {
    flights: FlightMap<K, V, E>,
}

type FlightMap<K, V, E> = Arc<Mutex<HashMap<K, Completion<FlightResult<V, E>>>>>;

impl<K, V, E> SingleFlight<K, V, E>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    /// Creates an empty set of runs.
    pub fn new() -> Self {
        SingleFlight { flights: Arc::default() }
    }

    /// Joins the run in flight for this key, or starts this one.
    pub fn join(
        &self,
        key: K,
        run: impl FnOnce() -> Result<V, E> + Send + 'static,
    ) -> Waiter<FlightResult<V, E>> {
        let mut flights = lock(&self.flights);
        if let Some(flight) = flights.get(&key) {
            return flight.waiter();
        }
        let flight = Completion::new();
        let waiter = flight.waiter();
        flights.insert(key.clone(), flight.clone());
        drop(flights);
        let flights = Arc::clone(&self.flights);
        spawn_catching("plugin-flight", run, move |result: Result<Result<V, E>, JoinError>| {
            // Free the key before completing: a call made because of the result must start a new run.
            lock(&flights).remove(&key);
            flight.complete(match result {
                Ok(answer) => answer.map_err(FlightError::Failed),
                Err(error) => Err(FlightError::Join(error)),
            });
        });
        waiter
    }

    /// Number of runs in flight.
    pub fn in_flight(&self) -> usize {
        lock(&self.flights).len()
    }
}

impl<K, V, E> Default for SingleFlight<K, V, E>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    fn default() -> Self {
        SingleFlight::new()
    }
}

impl<K, V, E> fmt::Debug for SingleFlight<K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight").field("in_flight", &lock(&self.flights).len()).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a run failed; the same for every waiter.
// C421
#[derive(Clone, Debug, Error)]
pub enum FlightError<E> {
    /// The run returned an error.
    #[error(transparent)]
    Failed(E),
    /// The run panicked or did not start.
    #[error(transparent)]
    Join(JoinError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, mpsc};
    use std::task::{Context, Poll, Waker};
    use std::thread;
    use std::time::Duration;

    const TEST_TIMEOUT: Duration = Duration::from_secs(30);

    /// Sixty-four threads join while the run is blocked; then it ends with `answer`.
    fn join_from_64_threads(
        answer: Result<u32, &'static str>,
    ) -> (usize, Vec<FlightResult<u32, &'static str>>) {
        let flights = Arc::new(SingleFlight::<&str, u32, &'static str>::new());
        let (runs, all_joined) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(65)));
        let waiting: Vec<_> = (0..64)
            .map(|_| {
                let (flights, runs) = (Arc::clone(&flights), Arc::clone(&runs));
                let asked = Arc::clone(&all_joined);
                thread::spawn(move || {
                    let held = Arc::clone(&asked);
                    let waiter = flights.join("key", move || {
                        runs.fetch_add(1, Ordering::SeqCst);
                        held.wait();
                        answer
                    });
                    asked.wait();
                    waiter.wait()
                })
            })
            .collect();
        let answers = waiting.into_iter().map(|thread| thread.join().unwrap()).collect();
        (runs.load(Ordering::SeqCst), answers)
    }

    #[test]
    fn sixty_four_waiters_get_one_run() {
        // C420, T05
        let (runs, answers) = join_from_64_threads(Ok(42));
        assert_eq!((runs, answers.len()), (1, 64));
        assert!(answers.into_iter().all(|answer| answer.ok() == Some(42)));
    }

    #[test]
    fn failure_is_delivered_to_every_waiter_and_not_retried() {
        // C421, T05
        let (runs, answers) = join_from_64_threads(Err("no"));
        assert_eq!((runs, answers.len()), (1, 64));
        assert!(answers.iter().all(|answer| matches!(answer, Err(FlightError::Failed("no")))));
    }

    #[test]
    fn join_after_completion_starts_a_new_run() {
        let flights = SingleFlight::<&str, u32, ()>::new();
        for round in 0..3 {
            assert_eq!(flights.join("key", move || Ok(round)).wait().ok(), Some(round));
            assert_eq!(flights.in_flight(), 0, "the key is free before the result is delivered");
        }
    }

    #[test]
    fn different_keys_do_not_wait_for_each_other() {
        let flights = SingleFlight::<&str, u32, ()>::new();
        let (release, held) = mpsc::channel::<()>();
        let slow = flights.join("slow", move || held.recv().map(|()| 1).map_err(|_| ()));
        assert_eq!(flights.join("fast", || Ok(2)).wait().ok(), Some(2));
        assert_eq!(flights.in_flight(), 1);
        release.send(()).unwrap();
        assert_eq!(slow.wait().ok(), Some(1));
    }

    #[test]
    fn panic_reaches_every_waiter_and_frees_the_key() {
        let flights = SingleFlight::<&str, u32, ()>::new();
        let (release, held) = mpsc::channel::<()>();
        let first = flights.join("key", move || {
            held.recv().unwrap();
            panic!("canary")
        });
        let second = flights.join("key", || Ok(1));
        release.send(()).unwrap();
        for waiter in [first, second] {
            assert!(matches!(waiter.wait(), Err(FlightError::Join(JoinError::Panicked))));
        }
        assert_eq!(flights.join("key", || Ok(3)).wait().ok(), Some(3));
    }

    #[test]
    fn dropping_a_waiter_does_not_stop_the_run() {
        // C306, C422: the caller that started the run may cancel; the others still get the result.
        let flights = SingleFlight::<&str, u32, ()>::new();
        let (release, held) = mpsc::channel::<()>();
        let mut starter = flights.join("key", move || held.recv().map(|()| 7).map_err(|_| ()));
        let polled = std::pin::Pin::new(&mut starter).poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Pending));
        let other = flights.join("key", || Ok(0));
        drop(starter);
        release.send(()).unwrap();
        assert_eq!(other.wait_at_most(TEST_TIMEOUT).and_then(Result::ok), Some(7));
    }
}
