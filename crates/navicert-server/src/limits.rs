//! Limits of a server: connections, sizes, timeouts. Long-running streams have no time limit here.

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

/// Limits of one listener.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Maximum number of connections. At the limit, a new connection evicts the one idle longest (at least one
    /// second), or waits.
    pub connections: usize,
    /// Maximum number of complete requests waiting for their response head, shared fairly between users, and as many
    /// waiting in queues; more are rejected with 429. Streaming responses do not count.
    pub requests: usize,
    /// Maximum size of a request head, in bytes.
    pub header_bytes: usize,
    /// The same on a connection whose client has not presented a valid token yet.
    pub unauthenticated_header_bytes: usize,
    /// Maximum size of all unfinished request heads together, and of all buffered request bodies together, in bytes.
    pub unfinished_bytes: usize,
    /// Maximum number of header fields.
    pub header_lines: usize,
    /// Time limit of the TLS handshake.
    pub handshake_timeout: Duration,
    /// Time limit for receiving a request head; also the idle timeout of a connection.
    pub header_timeout: Duration,
    /// Time limit for receiving a request body that is buffered, and between two parts of one that is streamed.
    pub body_timeout: Duration,
    /// Maximum number of concurrent streams of an HTTP/2 connection.
    pub http2_streams: u32,
}

/// Memory per connection: an idle one takes less, one with a watch has a second connection to the API server.
const MEMORY_PER_CONNECTION: usize = 64 * 1024;

/// Memory per request in flight.
const MEMORY_PER_REQUEST: usize = 256 * 1024;

/// The part of the memory that unfinished heads may take, and buffered bodies again.
const UNFINISHED_PART: usize = 8;

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            connections: 10_000,
            requests: 2_000,
            // Go's default is 1 MiB; requests to an API server are far smaller.
            header_bytes: 256 * 1024,
            // nginx's default. A token takes at most a few KiB of it, `Impersonate-*` headers the rest.
            unauthenticated_header_bytes: 32 * 1024,
            unfinished_bytes: 256 * 1024 * 1024,
            // hyper parses this many without allocating.
            header_lines: 100,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(90),
            body_timeout: Duration::from_secs(30),
            http2_streams: 250,
        }
    }
}

impl ServerLimits {
    /// Limits of a proxy: an impersonation request has one header field per group.
    pub fn for_proxy() -> Self {
        ServerLimits { header_lines: 1_100, ..ServerLimits::default() }
    }

    /// Lowers the limits to what fits into this much memory; `None` if it is unknown.
    #[must_use]
    pub fn fit_to_memory(self, memory: Option<u64>) -> Self {
        let Some(memory) = memory.and_then(|bytes| usize::try_from(bytes).ok()) else { return self };
        ServerLimits {
            connections: self.connections.min(memory / MEMORY_PER_CONNECTION).max(1),
            requests: self.requests.min(memory / MEMORY_PER_REQUEST).max(1),
            unfinished_bytes: self.unfinished_bytes.min(memory / UNFINISHED_PART).max(self.header_bytes),
            ..self
        }
    }
}

/// Output of a future, unless it takes longer than `limit`. It is polled twice before a timer is set: most futures of a
/// server are ready then, and a timer costs more.
pub async fn with_timeout<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    match ready_soon(future.as_mut()).await {
        Some(output) => Some(output),
        None => tokio::time::timeout(limit, future).await.ok(),
    }
}

/// Output of a future that is ready within two polls, such as the body of a request that arrived with its head: hyper
/// hands it over between the first and the second.
pub(crate) async fn ready_soon<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut is_first = true;
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if mem::take(&mut is_first) => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_fit_into_memory() {
        let fitted = |memory| {
            let ServerLimits { connections, requests, unfinished_bytes, .. } =
                ServerLimits::default().fit_to_memory(memory);
            (connections, requests, unfinished_bytes >> 20)
        };
        assert_eq!(fitted(Some(256 << 20)), (4_096, 1_024, 32));
        assert_eq!(fitted(Some(640 << 20)), (10_000, 2_000, 80));
        assert_eq!(fitted(Some(1 << 40)), (10_000, 2_000, 256));
        assert_eq!(fitted(Some(1)), (1, 1, 0));
        assert_eq!(fitted(None), (10_000, 2_000, 256));
    }

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
}
