//! At most one run per key at a time; everybody who asks meanwhile gets that run's answer, good or bad
//! (client-credentials.md C420–C422).

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use crate::completion::{Completion, Lost, Waiter, spawn_catching};

/// One answer: the run's value, its error, or what happened to it.
pub type Landed<V, E> = Result<V, FlightError<E>>;

/// Runs under way, by key.
///
/// A run belongs to nobody: it has its own thread and ends when it ends, whoever stops waiting (C306). When it is over
/// its key is free again, so a run should itself look whether somebody else has just been there, and store its result
/// before it returns.
///
/// ```
/// use navicert_plugin::SingleFlight;
///
/// let flights: SingleFlight<&str, u32, String> = SingleFlight::new();
/// let answer = flights.join("key", || Ok(42)).wait();
/// assert_eq!(answer.ok(), Some(42));
/// ```
pub struct SingleFlight<K, V, E> {
    flights: Flights<K, V, E>,
}

type Flights<K, V, E> = Arc<Mutex<HashMap<K, Completion<Landed<V, E>>>>>;

impl<K, V, E> SingleFlight<K, V, E>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + 'static,
    E: Clone + Send + 'static,
{
    /// No run under way.
    pub fn new() -> Self {
        SingleFlight { flights: Arc::default() }
    }

    /// Waits for the run under way for this key, or starts this one.
    pub fn join(&self, key: K, run: impl FnOnce() -> Result<V, E> + Send + 'static) -> Waiter<Landed<V, E>> {
        let mut flights = lock(&self.flights);
        if let Some(flight) = flights.get(&key) {
            return flight.waiter();
        }
        let flight = Completion::new();
        let waiter = flight.waiter();
        flights.insert(key.clone(), flight.clone());
        drop(flights);
        let flights = Arc::clone(&self.flights);
        spawn_catching("plugin-flight", run, move |landed: Result<Result<V, E>, Lost>| {
            // The key is free before anybody hears: whoever asks because of the answer starts a new run.
            lock(&flights).remove(&key);
            flight.complete(match landed {
                Ok(answer) => answer.map_err(FlightError::Failed),
                Err(lost) => Err(FlightError::Lost(lost)),
            });
        });
        waiter
    }

    /// How many runs are under way.
    pub fn under_way(&self) -> usize {
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
        f.debug_struct("SingleFlight").field("under_way", &lock(&self.flights).len()).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a run brought no value; the same for everybody who waited (C421).
#[derive(Clone, Debug, Error)]
pub enum FlightError<E> {
    /// It said so itself.
    #[error(transparent)]
    Failed(E),
    /// It never came to an answer.
    #[error(transparent)]
    Lost(Lost),
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, mpsc};
    use std::task::{Context, Poll, Waker};
    use std::thread;
    use std::time::Duration;

    const SOON: Duration = Duration::from_secs(30);

    /// Sixty-four threads ask at once while the one run is held; then it ends with `answer`.
    fn sixty_four(answer: Result<u32, &'static str>) -> (usize, Vec<Landed<u32, &'static str>>) {
        let flights = Arc::new(SingleFlight::<&str, u32, &'static str>::new());
        let (runs, everyone_asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(65)));
        let waiting: Vec<_> = (0..64)
            .map(|_| {
                let (flights, runs) = (Arc::clone(&flights), Arc::clone(&runs));
                let asked = Arc::clone(&everyone_asked);
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
        let (runs, answers) = sixty_four(Ok(42));
        assert_eq!((runs, answers.len()), (1, 64));
        assert!(answers.into_iter().all(|answer| answer.ok() == Some(42)));
    }

    #[test]
    fn a_failed_run_is_delivered_to_everyone_and_not_repeated() {
        // C421, T05
        let (runs, answers) = sixty_four(Err("no"));
        assert_eq!((runs, answers.len()), (1, 64));
        assert!(answers.iter().all(|answer| matches!(answer, Err(FlightError::Failed("no")))));
    }

    #[test]
    fn after_a_run_the_next_one_to_ask_starts_another() {
        let flights = SingleFlight::<&str, u32, ()>::new();
        for round in 0..3 {
            assert_eq!(flights.join("key", move || Ok(round)).wait().ok(), Some(round));
            assert_eq!(flights.under_way(), 0, "the key is free before the answer is out");
        }
    }

    #[test]
    fn different_keys_do_not_wait_for_each_other() {
        let flights = SingleFlight::<&str, u32, ()>::new();
        let (release, held) = mpsc::channel::<()>();
        let slow = flights.join("slow", move || held.recv().map(|()| 1).map_err(|_| ()));
        assert_eq!(flights.join("fast", || Ok(2)).wait().ok(), Some(2));
        assert_eq!(flights.under_way(), 1);
        release.send(()).unwrap();
        assert_eq!(slow.wait().ok(), Some(1));
    }

    #[test]
    fn a_panic_reaches_every_waiter_and_frees_the_key() {
        let flights = SingleFlight::<&str, u32, ()>::new();
        let (release, held) = mpsc::channel::<()>();
        let first = flights.join("key", move || {
            held.recv().unwrap();
            panic!("canary")
        });
        let second = flights.join("key", || Ok(1));
        release.send(()).unwrap();
        for waiter in [first, second] {
            assert!(matches!(waiter.wait(), Err(FlightError::Lost(Lost::Panicked))));
        }
        assert_eq!(flights.join("key", || Ok(3)).wait().ok(), Some(3));
    }

    #[test]
    fn a_cancelled_waiter_does_not_stop_the_run() {
        // C306, C422: whoever started it may go; the others still get the answer.
        let flights = SingleFlight::<&str, u32, ()>::new();
        let (release, held) = mpsc::channel::<()>();
        let mut starter = flights.join("key", move || held.recv().map(|()| 7).map_err(|_| ()));
        let polled = std::pin::Pin::new(&mut starter).poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Pending));
        let other = flights.join("key", || Ok(0));
        drop(starter);
        release.send(()).unwrap();
        assert_eq!(other.wait_at_most(SOON).and_then(Result::ok), Some(7));
    }
}
