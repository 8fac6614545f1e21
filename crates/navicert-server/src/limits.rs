//! How much anybody may ask of a server: connections, sizes, times. Long-running streams are not limited in time.

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

/// The limits of one listener.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time. When there are that many, a new one ends whichever has been idle longest, and for a second
    /// at least; otherwise it waits.
    pub connections: usize,
    /// Requests at a time whose answer has not begun; more get a 429. A watch that streams does not count.
    pub requests: usize,
    /// Bytes of a request's head.
    pub head: usize,
    /// Lines of a request's head.
    pub header_lines: usize,
    /// Until TLS is agreed on.
    pub handshake: Duration,
    /// From the first byte of a head to its last; also how long an unused connection is kept.
    pub head_time: Duration,
    /// Requests at a time on one HTTP/2 connection.
    pub http2_streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 10_000,
            requests: 2_000,
            // Go's server takes a mebibyte; nothing that works with an API server comes near it.
            head: 256 * 1024,
            // What hyper has room for without asking for memory.
            header_lines: 100,
            handshake: Duration::from_secs(10),
            head_time: Duration::from_secs(90),
            http2_streams: 250,
        }
    }
}

impl Limits {
    /// For a proxy: whoever acts as somebody else names each of their groups in a line of its own.
    pub fn of_proxy() -> Self {
        Limits { header_lines: 1_100, ..Limits::default() }
    }
}

/// How many requests are waiting for their answer.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    count: Arc<AtomicUsize>,
    most: usize,
}

impl InFlight {
    pub(crate) fn new(most: usize) -> Self {
        InFlight { count: Arc::default(), most }
    }

    /// A place for one more request, if there is one.
    pub(crate) fn enter(&self) -> Option<Place<'_>> {
        let place = Place(&self.count);
        (self.count.fetch_add(1, Ordering::AcqRel) < self.most).then_some(place)
    }
}

/// A request's place until its answer begins.
#[derive(Debug)]
pub(crate) struct Place<'p>(&'p AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a future gives, if it does so within a time. Most have it ready at the first look, or one turn later, as the body of
/// a request whose bytes have come with its head; a timer is dearer than both looks, and set only then.
pub(crate) async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut is_first = true;
    let early = poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(given) => Poll::Ready(Some(given)),
        Poll::Pending if mem::take(&mut is_first) => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
        Poll::Pending => Poll::Ready(None),
    })
    .await;
    match early {
        Some(given) => Some(given),
        None => tokio::time::timeout(limit, future).await.ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_ready_now_or_a_turn_later_sets_no_timer_and_what_never_comes_is_given_up() {
        let limit = Duration::from_secs(10);
        assert_eq!(within(Duration::ZERO, std::future::ready(1)).await, Some(1));
        assert_eq!(within(Duration::ZERO, async { tokio::task::yield_now().await }).await, Some(()));
        let started = tokio::time::Instant::now();
        assert_eq!(within(limit, std::future::pending::<()>()).await, None);
        assert_eq!(started.elapsed(), limit);
        let later = tokio::time::timeout(limit / 2, std::future::pending::<()>());
        assert!(within(limit, later).await.is_some());
    }

    #[test]
    fn a_place_is_free_again_when_its_holder_is_done_and_a_refusal_takes_none() {
        let in_flight = InFlight::new(2);
        let (one, two) = (in_flight.enter(), in_flight.enter());
        assert!(one.is_some() && two.is_some());
        for _ in 0..3 {
            assert!(in_flight.enter().is_none());
        }
        drop(one);
        assert!(in_flight.enter().is_some());
    }
}
