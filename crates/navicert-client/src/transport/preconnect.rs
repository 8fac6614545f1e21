//! Opens the first connection's socket while the credential source is still working, so that the TCP handshake is done when
//! the credential arrives. No byte is sent on it before: the client certificate to present is not known yet.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::error::TransportError;
use super::timer::{Timer, with_timeout};

/// An older socket is discarded: servers time out waiting for the first byte, and NAT entries expire.
const MAX_SOCKET_AGE: Duration = Duration::from_secs(5);

/// How long a request that has its credential waits for a preconnect dial still in progress.
const DIAL_GRACE: Duration = Duration::from_millis(250);

/// At most one unused socket.
#[derive(Default)]
pub(super) struct Preconnect(Mutex<Option<PendingDial>>);

struct PendingDial {
    dialing: JoinHandle<Result<TcpStream, TransportError>>,
    /// On the monotonic clock.
    since: Duration,
}

impl Preconnect {
    /// Starts to dial, unless a dial is already pending. Dropping the guard closes the socket if it is still unused.
    pub(super) fn begin(
        &self,
        now: Duration,
        dial: impl Future<Output = Result<TcpStream, TransportError>> + Send + 'static,
    ) -> Option<PreconnectGuard<'_>> {
        let mut slot = self.slot();
        if slot.is_some() {
            return None;
        }
        *slot = Some(PendingDial { dialing: tokio::spawn(dial), since: now });
        Some(PreconnectGuard(self))
    }

    /// The socket, if it is recent and connects within the grace period. Otherwise the caller dials again: the plugin may
    /// have set up the route (a tunnel, a VPN).
    pub(super) async fn take(&self, now: Duration, timer: &dyn Timer) -> Option<TcpStream> {
        let mut pending = self.slot().take()?;
        if now.saturating_sub(pending.since) > MAX_SOCKET_AGE {
            return None;
        }
        with_timeout(timer, DIAL_GRACE, &mut pending.dialing).await?.ok()?.ok()
    }

    fn slot(&self) -> MutexGuard<'_, Option<PendingDial>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Preconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Preconnect").field(&self.slot().is_some()).finish()
    }
}

impl Drop for PendingDial {
    fn drop(&mut self) {
        self.dialing.abort();
    }
}

/// Closes an unused socket when dropped: getting the credential failed, or the request was cancelled.
pub(super) struct PreconnectGuard<'a>(&'a Preconnect);

impl PreconnectGuard<'_> {
    /// Keeps the socket for the next connection: the credential has arrived.
    pub(super) fn disarm(self) {
        std::mem::forget(self);
    }
}

impl Drop for PreconnectGuard<'_> {
    fn drop(&mut self) {
        self.0.slot().take();
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;
    use crate::transport::ManualTimer;

    const NOW: Duration = Duration::from_secs(100);

    /// A listening server and its address.
    async fn server() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    async fn dial(address: SocketAddr) -> Result<TcpStream, TransportError> {
        let failed = |source| TransportError::Connect { address: address.to_string(), source };
        TcpStream::connect(address).await.map_err(failed)
    }

    #[tokio::test]
    async fn connected_socket_is_taken_once() {
        let ((listener, address), preconnect) = (server().await, Preconnect::default());
        let timer = ManualTimer::default();
        preconnect.begin(NOW, dial(address)).unwrap().disarm();
        assert!(preconnect.begin(NOW, dial(address)).is_none(), "a dial is already pending");
        let (_accepted, peer) = listener.accept().await.unwrap();
        let socket = preconnect.take(NOW, &timer).await.unwrap();
        assert_eq!(socket.local_addr().unwrap(), peer);
        assert!(preconnect.take(NOW, &timer).await.is_none());
    }

    #[tokio::test]
    async fn without_a_credential_the_socket_is_closed() {
        let ((listener, address), preconnect) = (server().await, Preconnect::default());
        let timer = ManualTimer::default();
        let guard = preconnect.begin(NOW, dial(address)).unwrap();
        let (mut accepted, _) = listener.accept().await.unwrap();
        drop(guard);
        let read = accepted.read(&mut [0; 1]).await;
        assert!(matches!(read, Ok(0) | Err(_)), "end of file: {read:?}");
        assert!(preconnect.take(NOW, &timer).await.is_none());
    }

    #[tokio::test]
    async fn old_failed_and_slow_sockets_are_not_used() {
        let ((_listener, address), preconnect) = (server().await, Preconnect::default());
        let (timer, late) = (ManualTimer::default(), NOW + MAX_SOCKET_AGE + Duration::from_nanos(1));
        preconnect.begin(NOW, dial(address)).unwrap().disarm();
        assert!(preconnect.take(late, &timer).await.is_none(), "old");

        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        preconnect.begin(NOW, dial(closed)).unwrap().disarm();
        assert!(preconnect.take(NOW, &timer).await.is_none(), "failed");

        preconnect.begin(NOW, std::future::pending()).unwrap().disarm();
        let (taken, ()) = tokio::join!(preconnect.take(NOW, &timer), async { timer.advance(DIAL_GRACE) });
        assert!(taken.is_none(), "still connecting");
    }
}
