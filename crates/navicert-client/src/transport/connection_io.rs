//! The byte stream of one connection, and the state shared with the pool: whether it is being closed by a certificate
//! rotation, and the fatal TLS alert the server sent.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use navicert_io::forward_async_write;
use navicert_io::wake_gate::{PollGate, WakeFlag};
use rustls::AlertDescription;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A bidirectional byte stream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// State of a connection, shared between its stream and the requests on it.
pub(super) struct ConnectionState {
    /// The connection closes as soon as no response holds it.
    closing: AtomicBool,
    /// Responses that are still delivered although the connection is closing.
    // C462, last sentence
    held_responses: AtomicUsize,
    /// After a 101 response the caller owns the stream, and a rotation does not close it, as in client-go.
    // C454
    upgraded: AtomicBool,
    alert: OnceLock<AlertDescription>,
    /// Makes the reading task poll the stream again.
    read_wake: Arc<WakeFlag>,
}

impl ConnectionState {
    /// Closes the connection, immediately or after the held responses. Reads then return an error.
    pub(super) fn close_after_response(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.read_wake.notify();
    }

    /// Keeps the connection open until [`ConnectionState::release`], even if it is closing.
    pub(super) fn hold(&self) {
        self.held_responses.fetch_add(1, Ordering::SeqCst);
    }

    /// Releases a hold taken with [`ConnectionState::hold`].
    pub(super) fn release(&self) {
        self.held_responses.fetch_sub(1, Ordering::SeqCst);
        self.read_wake.notify();
    }

    /// Hands the stream over to the caller.
    pub(super) fn upgrade(&self) {
        self.upgraded.store(true, Ordering::SeqCst);
    }

    /// Whether the caller owns the stream.
    pub(super) fn is_upgraded(&self) -> bool {
        self.upgraded.load(Ordering::SeqCst)
    }

    /// Whether the connection was closed by a certificate rotation.
    pub(super) fn is_closed_by_rotation(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
            && self.held_responses.load(Ordering::SeqCst) == 0
            && !self.is_upgraded()
    }

    /// The fatal TLS alert that the server sent, if any.
    pub(super) fn alert(&self) -> Option<AlertDescription> {
        self.alert.get().copied()
    }

    fn record_alert(&self, error: &io::Error) {
        if let Some(alert) = alert_in(error) {
            let _ = self.alert.set(alert);
        }
    }
}

/// The TLS alert that caused an I/O error, if any.
pub(super) fn alert_in(error: &io::Error) -> Option<AlertDescription> {
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::AlertReceived(alert) => Some(*alert),
        _ => None,
    }
}

/// A stream that fails with an error once its connection is closed by a rotation.
pub(super) struct ConnectionIo {
    stream: Box<dyn Stream>,
    /// Opens when there may be data to read.
    read_gate: PollGate,
    state: Arc<ConnectionState>,
}

impl ConnectionIo {
    pub(super) fn new(stream: Box<dyn Stream>) -> (Self, Arc<ConnectionState>) {
        let read_gate = PollGate::default();
        let state = Arc::new(ConnectionState {
            closing: AtomicBool::new(false),
            held_responses: AtomicUsize::new(0),
            upgraded: AtomicBool::new(false),
            alert: OnceLock::new(),
            read_wake: Arc::clone(read_gate.wake_flag()),
        });
        (ConnectionIo { stream, read_gate, state: Arc::clone(&state) }, state)
    }

    /// Reads until the alert is found. In TLS 1.3 the server verifies the client certificate after the client has begun to
    /// write; if it then closes the connection, the write may fail before the alert is read.
    fn read_pending_alert(&mut self, context: &mut Context<'_>) {
        // The stream wakes the task that polled it last; the next reader has to poll it to register itself.
        self.state.read_wake.notify();
        let mut buffer = [0; 1024];
        for _ in 0..64 {
            let mut read = ReadBuf::new(&mut buffer);
            match Pin::new(&mut self.stream).poll_read(context, &mut read) {
                Poll::Ready(Ok(())) if !read.filled().is_empty() => {}
                Poll::Ready(Err(error)) => return self.state.record_alert(&error),
                Poll::Ready(Ok(())) | Poll::Pending => return,
            }
        }
    }

    fn record_write_error<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &written {
            self.state.record_alert(error);
            if self.state.alert().is_none() {
                self.read_pending_alert(context);
            }
        }
        written
    }
}

impl fmt::Debug for ConnectionIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionIo")
    }
}

fn rotated() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the client certificate has been replaced")
}

impl AsyncRead for ConnectionIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.state.is_closed_by_rotation() {
            return Poll::Ready(Err(rotated()));
        }
        let ConnectionIo { stream, read_gate, .. } = &mut *self;
        match read_gate.poll_if_woken(context, |context| Pin::new(stream).poll_read(context, buffer)) {
            // Closed between the first check and this one: no further wake-up would come.
            Poll::Pending if self.state.is_closed_by_rotation() => Poll::Ready(Err(rotated())),
            Poll::Ready(Err(error)) => {
                self.state.record_alert(&error);
                Poll::Ready(Err(error))
            }
            ready => ready,
        }
    }
}

impl AsyncWrite for ConnectionIo {
    forward_async_write!(stream => record_write_error: poll_write, poll_write_vectored, poll_flush);
    forward_async_write!(stream: is_write_vectored, poll_shutdown);
}
