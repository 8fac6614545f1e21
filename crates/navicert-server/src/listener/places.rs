//! Who has a place at a listener. When all places are taken and somebody new comes, whoever has asked nothing for the longest
//! time has to go: connections that only stand there keep nobody out. Nobody has to who came or was answered a moment ago:
//! however many come, each of them has time to ask.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::metrics::Traffic;

/// Nobody has to go who has rested for less.
pub(super) const LEAST_REST: Duration = Duration::from_secs(1);

/// How long a newcomer waits before it looks again whether somebody can go.
const PATIENCE: Duration = Duration::from_millis(100);

/// Of so many connections that had to go, one is worth a line in the log.
const TOLD: u64 = 1_000;

/// All places of a listener.
pub(super) struct Places {
    free: Arc<Semaphore>,
    most: usize,
    taken: Mutex<HashMap<u64, Arc<Seat>>>,
    /// How many there have been.
    numbers: AtomicU64,
    /// When it began; times of rest are counted from here.
    start: Instant,
    least_rest: Duration,
    traffic: Arc<Traffic>,
}

impl Places {
    /// So many.
    pub(super) fn new(most: usize, least_rest: Duration, traffic: Arc<Traffic>) -> Arc<Self> {
        let most = most.min(Semaphore::MAX_PERMITS);
        Arc::new(Places {
            free: Arc::new(Semaphore::new(most)),
            most,
            taken: Mutex::default(),
            numbers: AtomicU64::new(0),
            start: Instant::now(),
            least_rest,
            traffic,
        })
    }

    /// A place for one more connection. Waits while every one of the others is being answered.
    pub(super) async fn take(self: &Arc<Self>) -> Place {
        loop {
            let free = Arc::clone(&self.free);
            let permit = match Arc::clone(&free).try_acquire_owned() {
                Ok(permit) => Ok(Ok(permit)),
                Err(_) => {
                    self.make_room();
                    tokio::time::timeout(PATIENCE, free.acquire_owned()).await
                }
            };
            if let Ok(Ok(permit)) = permit {
                let seat = Arc::new(Seat::new(self.start));
                let number = self.numbers.fetch_add(1, Ordering::Relaxed);
                self.taken().insert(number, Arc::clone(&seat));
                return Place { seat, number, places: Arc::clone(self), _permit: permit };
            }
        }
    }

    /// Something else than places is short, descriptors say: somebody goes if there are many here, since then they have them.
    pub(super) fn make_room_if_crowded(&self) {
        if self.taken().len() >= self.most / 4 {
            self.make_room();
        }
    }

    /// Asks whoever has rested longest to go, if anybody has rested long enough.
    fn make_room(&self) {
        let latest = nanoseconds(self.start.elapsed().saturating_sub(self.least_rest));
        let taken = self.taken();
        let resting = taken.values().filter(|seat| seat.is_resting());
        let resting = resting.filter(|seat| seat.since.load(Ordering::Relaxed) <= latest);
        let Some(seat) = resting.min_by_key(|seat| seat.since.load(Ordering::Relaxed)) else { return };
        seat.go.notify_one();
        drop(taken);
        if self.traffic.pushed_out().is_multiple_of(TOLD) {
            tracing::warn!(
                connections = self.most,
                "no place is free: idle connections are ended to make room for new ones (`limits.connections`)"
            );
        }
    }

    /// Waits until nobody has a place any more.
    pub(super) async fn empty(&self) {
        let all = u32::try_from(self.most).unwrap_or(u32::MAX);
        let _ = self.free.acquire_many(all).await;
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<u64, Arc<Seat>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place until it is dropped.
pub(super) struct Place {
    seat: Arc<Seat>,
    number: u64,
    places: Arc<Places>,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    pub(super) fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().remove(&self.number);
    }
}

/// What a connection does: whether it is being answered or rests, and since when. A head that is not complete is rest.
pub(super) struct Seat {
    requests: AtomicUsize,
    /// In nanoseconds from the start of the listener.
    since: AtomicU64,
    start: Instant,
    go: Notify,
}

impl Seat {
    fn new(start: Instant) -> Self {
        let since = AtomicU64::new(nanoseconds(start.elapsed()));
        Seat { requests: AtomicUsize::new(0), since, start, go: Notify::new() }
    }

    /// One more request, until the last byte of its answer has been taken.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.requests.fetch_add(1, Ordering::AcqRel);
        Busy(Arc::clone(self))
    }

    pub(super) fn is_resting(&self) -> bool {
        self.requests.load(Ordering::Acquire) == 0
    }

    /// Done when this connection rests and has been asked to go.
    pub(super) async fn asked_to_go(&self) {
        loop {
            self.go.notified().await;
            if self.is_resting() {
                return;
            }
        }
    }

    /// Done when this connection has rested for so long.
    pub(super) async fn has_rested(&self, long: Duration) {
        let mut look = Instant::now();
        loop {
            let until = self.start + Duration::from_nanos(self.since.load(Ordering::Relaxed)) + long;
            if self.is_resting() && until <= look {
                return;
            }
            // Whoever is being answered now has rested, at the earliest, so long from now.
            look = if self.is_resting() { until } else { look + long };
            tokio::time::sleep_until(look).await;
            look = Instant::now();
        }
    }
}

/// A request that is being answered.
pub(super) struct Busy(Arc<Seat>);

impl Drop for Busy {
    fn drop(&mut self) {
        let seat = &self.0;
        seat.since.store(nanoseconds(seat.start.elapsed()), Ordering::Relaxed);
        seat.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use navicert_testkit::wait;
    use navicert_types::SystemClock;

    use super::*;

    fn places(most: usize) -> Arc<Places> {
        Places::new(most, Duration::ZERO, Traffic::new("test", Arc::new(SystemClock)))
    }

    /// Whether it is done without anything else happening.
    async fn is_done(future: impl Future<Output = ()>) -> bool {
        tokio::time::timeout(Duration::ZERO, future).await.is_ok()
    }

    #[tokio::test]
    async fn whoever_has_rested_longest_goes_first_and_nobody_goes_who_is_being_answered() {
        let places = places(3);
        let (first, second, third) = (places.take().await, places.take().await, places.take().await);
        let answered = second.seat().busy();
        // It asked something since the third one came: now it is the third who has rested longest.
        drop(first.seat().busy());
        places.make_room();
        assert!(is_done(third.seat().asked_to_go()).await);
        drop(third);
        let third = places.take().await;
        places.make_room();
        assert!(is_done(first.seat().asked_to_go()).await);
        drop(first);
        let busy = third.seat().busy();
        let _last = places.take().await;
        // The one that came last is the only one at rest.
        places.make_room();
        assert!(!is_done(second.seat().asked_to_go()).await);
        assert!(!is_done(third.seat().asked_to_go()).await);
        drop((answered, busy));
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_waits_while_all_are_being_answered_and_gets_the_first_place_that_rests() {
        let places = places(1);
        let only = places.take().await;
        let busy = only.seat().busy();
        let newcomer = tokio::spawn({
            let places = Arc::clone(&places);
            async move { places.take().await }
        });
        assert!(tokio::time::timeout(2 * PATIENCE, only.seat().asked_to_go()).await.is_err());
        assert!(!newcomer.is_finished());
        drop(busy);
        only.seat().asked_to_go().await;
        drop(only);
        wait::within("a place", newcomer).await.unwrap();
    }

    #[tokio::test]
    async fn nobody_goes_who_came_or_was_answered_a_moment_ago() {
        let traffic = Traffic::new("test", Arc::new(SystemClock));
        let places = Places::new(1, Duration::from_secs(3600), traffic);
        let place = places.take().await;
        places.make_room();
        drop(place.seat().busy());
        places.make_room();
        assert!(!is_done(place.seat().asked_to_go()).await);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_goes_on_is_no_rest_however_long_it_takes() {
        let places = places(1);
        let place = places.take().await;
        let (seat, limit) = (place.seat(), Duration::from_millis(20));
        let busy = seat.busy();
        assert!(tokio::time::timeout(5 * limit, seat.has_rested(limit)).await.is_err());
        drop(busy);
        let done = Instant::now();
        wait::within("rest", seat.has_rested(limit)).await;
        assert_eq!(done.elapsed(), limit);
    }

    #[tokio::test(start_paused = true)]
    async fn rest_is_counted_from_the_end_of_the_last_answer() {
        let places = places(1);
        let place = places.take().await;
        let (seat, limit) = (Arc::clone(place.seat()), Duration::from_secs(10));
        let start = Instant::now();
        let rested = tokio::spawn({
            let seat = Arc::clone(&seat);
            async move { seat.has_rested(limit).await }
        });
        for _ in 0..3 {
            let busy = seat.busy();
            tokio::time::advance(Duration::from_secs(4)).await;
            drop(busy);
            tokio::time::advance(Duration::from_secs(3)).await;
        }
        rested.await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 3 * 7 - 3 + 10);
    }
}
