//! Limits of a server: connections, sizes, timeouts. Long-running streams have no time limit here.

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

/// Limits of one listener.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Maximum number of connections. At the limit, a new connection evicts the one idle longest (at least one
    /// second), or waits.
    pub connections: usize,
    /// Maximum number of requests waiting for their response head; more are rejected with 429. Streaming responses do
    /// not count.
    pub requests: usize,
    /// Maximum size of a request head, in bytes.
    pub header_bytes: usize,
    /// Maximum number of header fields.
    pub header_lines: usize,
    /// Time limit of the TLS handshake.
    pub handshake_timeout: Duration,
    /// Time limit for receiving a request head; also the idle timeout of a connection.
    pub header_timeout: Duration,
    /// Maximum number of concurrent streams of an HTTP/2 connection.
    pub http2_streams: u32,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            connections: 10_000,
            requests: 2_000,
            // Go's default is 1 MiB; requests to an API server are far smaller.
            header_bytes: 256 * 1024,
            // hyper parses this many without allocating.
            header_lines: 100,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(90),
            http2_streams: 250,
        }
    }
}

impl ServerLimits {
    /// Limits of a proxy: an impersonation request has one header field per group.
    pub fn for_proxy() -> Self {
        ServerLimits { header_lines: 1_100, ..ServerLimits::default() }
    }
}

/// Counts requests that wait for their response head.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    count: Arc<AtomicUsize>,
    limit: usize,
}

impl InFlight {
    pub(crate) fn new(limit: usize) -> Self {
        InFlight { count: Arc::default(), limit }
    }

    /// Enters, unless the limit is reached.
    pub(crate) fn try_enter(&self) -> Option<InFlightGuard<'_>> {
        let guard = InFlightGuard(&self.count);
        (self.count.fetch_add(1, Ordering::AcqRel) < self.limit).then_some(guard)
    }
}

/// Counts one request until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlightGuard<'p>(&'p AtomicUsize);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Output of a future, unless it takes longer than `limit`. Polls twice before it sets a timer: most futures here are
/// ready by then (for example the body of a request that arrived with its head), and a timer costs more than two
/// polls.
pub(crate) async fn with_timeout<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut is_first = true;
    let early = poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if mem::take(&mut is_first) => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
        Poll::Pending => Poll::Ready(None),
    })
    .await;
    match early {
        Some(output) => Some(output),
        None => tokio::time::timeout(limit, future).await.ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn with_timeout_polls_twice_before_setting_a_timer() {
        let limit = Duration::from_secs(10);
        assert_eq!(with_timeout(Duration::ZERO, std::future::ready(1)).await, Some(1));
        assert_eq!(with_timeout(Duration::ZERO, async { tokio::task::yield_now().await }).await, Some(()));
        let started = tokio::time::Instant::now();
        assert_eq!(with_timeout(limit, std::future::pending::<()>()).await, None);
        assert_eq!(started.elapsed(), limit);
        let later = tokio::time::timeout(limit / 2, std::future::pending::<()>());
        assert!(with_timeout(limit, later).await.is_some());
    }

    #[test]
    fn in_flight_count_drops_with_the_guard() {
        let in_flight = InFlight::new(2);
        let (one, two) = (in_flight.try_enter(), in_flight.try_enter());
        assert!(one.is_some() && two.is_some());
        for _ in 0..3 {
            assert!(in_flight.try_enter().is_none());
        }
        drop(one);
        assert!(in_flight.try_enter().is_some());
    }
}
