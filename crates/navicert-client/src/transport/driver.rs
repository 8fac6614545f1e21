//! What makes a connection of HTTP/1.1 move: it is polled by whoever has the exchange on it. A task of its own would be woken
//! for every piece in either direction, and mostly on another thread.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::body::Body;
use super::line::Line;
use crate::at_once::Bell;
use crate::credential::BoxFuture;

type Connection = BoxFuture<'static, hyper::Result<()>>;

/// A connection, until it has ended. Nobody polls one that waits in the pool: whether it still stands is seen when it is taken
/// out. What goes wrong is told to whoever has a request on it.
pub(super) struct Driver {
    /// Never locked: it makes the whole shareable, as bodies of answers have to be.
    running: Mutex<Option<Connection>>,
    /// Both ends wake each other; only what comes from outside should wake anybody else.
    bell: Bell,
}

impl Driver {
    pub(super) fn new(connection: http1::Connection<TokioIo<Line>, Body>) -> Self {
        Driver { running: Mutex::new(Some(Box::pin(connection.with_upgrades()))), bell: Bell::default() }
    }

    /// From now on it moves by itself, and the caller need not care: for connections that become something else.
    pub(super) fn set_free(mut self) {
        self.leave();
    }

    /// Moves on as far as it can for now, beside whoever waits for something from it.
    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        mut waiting: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.bell.poll(context, |context| {
            // It does no more than it is asked for, so the asking comes first.
            if let Poll::Ready(given) = waiting(context) {
                return Poll::Ready(given);
            }
            if running.as_mut().is_some_and(|connection| connection.as_mut().poll(context).is_ready()) {
                *running = None;
            }
            waiting(context)
        })
    }

    /// Moves on until what is asked of it has its answer.
    pub(super) async fn along<F: Future>(&mut self, ask: impl FnOnce() -> F) -> F::Output {
        self.bell.attend();
        let mut asked = pin!(ask());
        poll_fn(|context| self.poll(context, |context| asked.as_mut().poll(context))).await
    }

    /// Nobody waits for anything.
    pub(super) fn rest(&self) {
        self.bell.forget();
    }

    /// Whether it takes a request without further ado. If it has been closed meanwhile, the request comes back unsent.
    pub(super) async fn takes(&mut self, sender: &mut http1::SendRequest<Body>) -> bool {
        if sender.is_ready() {
            return true;
        }
        poll_fn(|context| {
            let ready = self.poll(context, |context| sender.poll_ready(context));
            Poll::Ready(matches!(ready, Poll::Ready(Ok(()))))
        })
        .await
    }

    fn leave(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(connection), Ok(runtime)) = (running, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                let _ = connection.await;
            });
        }
    }
}

/// Whoever drops it has dropped its sender too: the rest is an orderly end, which need not be waited for.
impl Drop for Driver {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}
