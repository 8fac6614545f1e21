//! The first connection's socket, opened while a plugin still looks for the credential: when there is one, the server has
//! already answered. Not a byte is sent on it before; which certificate to show is not known yet.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::error::TransportError;
use super::timer::{Timer, within};

/// A server waits for the first byte only so long, and routers forget: what is older is thrown away.
const FRESH: Duration = Duration::from_secs(5);

/// How much longer somebody with a credential waits for a socket that was dialed before it was there.
const PATIENCE: Duration = Duration::from_millis(250);

/// At most one socket that nobody uses yet.
#[derive(Default)]
pub(super) struct HeadStart(Mutex<Option<Opening>>);

struct Opening {
    dialing: JoinHandle<Result<TcpStream, TransportError>>,
    /// On the monotonic clock.
    since: Duration,
}

impl HeadStart {
    /// Begins to dial, unless somebody has. What is not taken until the guard is dropped is closed then.
    pub(super) fn begin(
        &self,
        now: Duration,
        dial: impl Future<Output = Result<TcpStream, TransportError>> + Send + 'static,
    ) -> Option<Untaken<'_>> {
        let mut slot = self.slot();
        if slot.is_some() {
            return None;
        }
        *slot = Some(Opening { dialing: tokio::spawn(dial), since: now });
        Some(Untaken(self))
    }

    /// The socket, if it is young and connected, or will be in a moment. If not, whoever needs a connection dials anew:
    /// the plugin may have been what opened the way (a tunnel, a VPN).
    pub(super) async fn take(&self, now: Duration, timer: &dyn Timer) -> Option<TcpStream> {
        let mut opening = self.slot().take()?;
        if now.saturating_sub(opening.since) > FRESH {
            return None;
        }
        within(timer, PATIENCE, &mut opening.dialing).await?.ok()?.ok()
    }

    fn slot(&self) -> MutexGuard<'_, Option<Opening>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for HeadStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeadStart").field(&self.slot().is_some()).finish()
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.dialing.abort();
    }
}

/// Closes the socket if nobody takes it: there was no credential, or nobody waits for one any more.
pub(super) struct Untaken<'a>(&'a HeadStart);

impl Untaken<'_> {
    /// There is a credential: the next connection takes the socket.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Untaken<'_> {
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

    /// A server, and a way to dial it.
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
    async fn a_connected_socket_is_taken_once() {
        let ((listener, address), head_start) = (server().await, HeadStart::default());
        let timer = ManualTimer::default();
        head_start.begin(NOW, dial(address)).unwrap().keep();
        assert!(head_start.begin(NOW, dial(address)).is_none(), "one is enough");
        let (_accepted, peer) = listener.accept().await.unwrap();
        let socket = head_start.take(NOW, &timer).await.unwrap();
        assert_eq!(socket.local_addr().unwrap(), peer);
        assert!(head_start.take(NOW, &timer).await.is_none());
    }

    #[tokio::test]
    async fn without_a_credential_the_socket_is_closed() {
        let ((listener, address), head_start) = (server().await, HeadStart::default());
        let timer = ManualTimer::default();
        let untaken = head_start.begin(NOW, dial(address)).unwrap();
        let (mut accepted, _) = listener.accept().await.unwrap();
        drop(untaken);
        let read = accepted.read(&mut [0; 1]).await;
        assert!(matches!(read, Ok(0) | Err(_)), "end of file: {read:?}");
        assert!(head_start.take(NOW, &timer).await.is_none());
    }

    #[tokio::test]
    async fn what_is_old_or_failed_or_takes_too_long_is_not_used() {
        let ((_listener, address), head_start) = (server().await, HeadStart::default());
        let (timer, late) = (ManualTimer::default(), NOW + FRESH + Duration::from_nanos(1));
        head_start.begin(NOW, dial(address)).unwrap().keep();
        assert!(head_start.take(late, &timer).await.is_none(), "old");

        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        head_start.begin(NOW, dial(nobody)).unwrap().keep();
        assert!(head_start.take(NOW, &timer).await.is_none(), "failed");

        head_start.begin(NOW, std::future::pending()).unwrap().keep();
        let (taken, ()) = tokio::join!(head_start.take(NOW, &timer), async { timer.advance(PATIENCE) });
        assert!(taken.is_none(), "not there yet");
    }
}
