//! Drives an HTTP/1.1 connection from the task that sends the request. A task of its own would be woken for every read and
//! write, usually on another thread.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use navicert_io::repoll::SelfWakePoller;

use super::body::Body;
use super::connection_io::ConnectionIo;
use crate::credential::BoxFuture;

type Connection = BoxFuture<'static, hyper::Result<()>>;

/// A connection, until it has ended. An idle connection in the pool is not polled: whether it is still open is checked when
/// it is reused. Errors surface through the request on it.
pub(super) struct Driver {
    /// Never locked: the mutex makes the driver `Sync`, which response bodies must be.
    connection: Mutex<Option<Connection>>,
    /// The connection and the request future wake each other; only outside events should wake the task.
    poller: SelfWakePoller,
}

impl Driver {
    pub(super) fn new(connection: http1::Connection<TokioIo<ConnectionIo>, Body>) -> Self {
        Driver {
            connection: Mutex::new(Some(Box::pin(connection.with_upgrades()))),
            poller: SelfWakePoller::default(),
        }
    }

    /// Drives the connection in a background task from now on: for upgraded connections.
    pub(super) fn detach(mut self) {
        self.spawn_connection();
    }

    /// Polls the connection and a future that waits for it.
    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        mut poll_caller: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let connection = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.poller.poll(context, |context| {
            // The connection only does work that was requested, so the request future is polled first.
            if let Poll::Ready(output) = poll_caller(context) {
                return Poll::Ready(output);
            }
            if connection.as_mut().is_some_and(|running| running.as_mut().poll(context).is_ready()) {
                *connection = None;
            }
            poll_caller(context)
        })
    }

    /// Drives the connection until the future made by `start` is ready.
    pub(super) async fn drive_until<F: Future>(&mut self, start: impl FnOnce() -> F) -> F::Output {
        self.poller.mark_polling();
        let mut future = pin!(start());
        poll_fn(|context| self.poll(context, |context| future.as_mut().poll(context))).await
    }

    /// Drops the registered waker: no task waits for this connection.
    pub(super) fn clear_waker(&self) {
        self.poller.clear_task();
    }

    /// Whether the connection accepts a request now. If the server closes it later, the request comes back unsent.
    pub(super) async fn is_ready(&mut self, sender: &mut http1::SendRequest<Body>) -> bool {
        if sender.is_ready() {
            return true;
        }
        poll_fn(|context| {
            let ready = self.poll(context, |context| sender.poll_ready(context));
            Poll::Ready(matches!(ready, Poll::Ready(Ok(()))))
        })
        .await
    }

    fn spawn_connection(&mut self) {
        let connection = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(connection), Ok(runtime)) = (connection, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                let _ = connection.await;
            });
        }
    }
}

/// The sender has been dropped by then: what remains is an orderly shutdown, which a background task completes.
impl Drop for Driver {
    fn drop(&mut self) {
        self.spawn_connection();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}
