//! Deadlines of requests that wait for a fetch of another request. This crate has a clock but no timer, so the caller runs
//! [`Deadlines::expire`]; without that, waiting has no deadline.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use navicert_types::Clock;
use tokio::sync::Notify;

/// How long a request waits for a fetch that it did not start, counted from the start of the fetch.
pub(crate) const MAX_FETCH_WAIT: Duration = Duration::from_secs(1);

/// Deadlines of waiting requests. The caller has to drive them:
///
/// ```
/// # use navicert_authn::Deadlines;
/// # use std::{future::Future, time::Duration};
/// async fn background<F: Future<Output = ()>>(deadlines: &Deadlines, sleep: impl Fn(Duration) -> F) {
///     loop {
///         match deadlines.expire() {
///             Some(next) => tokio::select! {
///                 () = sleep(next) => {}
///                 () = deadlines.changed() => {}
///             },
///             None => deadlines.changed().await,
///         }
///     }
/// }
/// ```
pub struct Deadlines {
    clock: Arc<dyn Clock>,
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Default)]
struct Waiting {
    /// By deadline, a reading of the monotonic clock, and a number that makes it unique.
    wakers: BTreeMap<(Duration, u64), Waker>,
    next: u64,
}

impl Deadlines {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Deadlines { clock, waiting: Mutex::default(), changed: Notify::new() }
    }

    /// The output of the future; `None` if the deadline passes first.
    pub(crate) async fn wait_until<T>(
        &self,
        deadline: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let mut future = pin!(future);
        let mut registration = None;
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            if self.clock.monotonic() >= deadline {
                return Poll::Ready(None);
            }
            registration.get_or_insert_with(|| self.register(deadline)).set(context.waker());
            Poll::Pending
        })
        .await
    }

    /// Wakes the tasks whose deadline has passed. Returns the time until the next deadline.
    pub fn expire(&self) -> Option<Duration> {
        let now = self.clock.monotonic();
        let mut waiting = self.waiting();
        while let Some(first) = waiting.wakers.first_entry() {
            let (deadline, _) = *first.key();
            if deadline > now {
                return Some(deadline.saturating_sub(now));
            }
            first.remove().wake();
        }
        None
    }

    /// Completes when a task has begun to wait: the next deadline may be earlier than [`Deadlines::expire`] returned.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    fn register(&self, deadline: Duration) -> Registration<'_> {
        let mut waiting = self.waiting();
        waiting.next += 1;
        Registration { deadlines: self, key: (deadline, waiting.next) }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Deadlines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Deadlines").field(&self.waiting().wakers.len()).finish()
    }
}

/// A waiting task; removed when dropped.
struct Registration<'d> {
    deadlines: &'d Deadlines,
    key: (Duration, u64),
}

impl Registration<'_> {
    fn set(&self, waker: &Waker) {
        let is_earliest = {
            let mut waiting = self.deadlines.waiting();
            let is_earliest = waiting.wakers.first_key_value().is_none_or(|(first, _)| self.key < *first);
            waiting.wakers.insert(self.key, waker.clone());
            is_earliest
        };
        if is_earliest {
            self.deadlines.changed.notify_one();
        }
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.deadlines.waiting().wakers.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use navicert_types::clock::ManualClock;

    use super::*;

    #[tokio::test]
    async fn waiting_ends_with_the_future_or_at_the_deadline() {
        let clock = Arc::new(ManualClock::at(0));
        let deadlines = Arc::new(Deadlines::new(Arc::clone(&clock) as _));
        assert_eq!(deadlines.expire(), None);
        let start = clock.monotonic();
        let wait = |seconds| {
            let (deadlines, deadline) = (Arc::clone(&deadlines), start + Duration::from_secs(seconds));
            tokio::spawn(async move { deadlines.wait_until(deadline, std::future::pending::<()>()).await })
        };
        let (second, first) = (wait(2), wait(1));
        deadlines.changed().await;
        tokio::task::yield_now().await;
        assert_eq!(deadlines.expire(), Some(Duration::from_secs(1)));
        clock.advance(Duration::from_secs(1));
        assert_eq!(deadlines.expire(), Some(Duration::from_secs(1)));
        assert_eq!(first.await.unwrap(), None);
        second.abort();
        assert!(second.await.is_err());
        assert_eq!(deadlines.expire(), None, "a cancelled task is removed");
        let ready = deadlines.wait_until(start, std::future::ready(5)).await;
        assert_eq!(ready, Some(5), "a result at hand needs no time");
        assert_eq!(deadlines.wait_until(start, std::future::pending::<()>()).await, None);
    }
}
