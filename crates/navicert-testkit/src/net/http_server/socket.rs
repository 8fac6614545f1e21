//! Two layers around a connection: `Socket` under TLS decides how it is closed, `Spy` above TLS keeps what came in.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use navicert_io::forward_async_write;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How much of a connection's input is kept.
const MAX_RECORDED_BYTES: usize = 1024 * 1024;

/// A TCP stream that can be reset instead of closed, and that reports when it is dropped.
pub(super) struct Socket {
    /// `None` only while it is being dropped.
    stream: Option<TcpStream>,
    reset: Arc<AtomicBool>,
    on_close: Box<dyn Fn() + Send + Sync>,
}

impl Socket {
    pub(super) fn new(
        stream: TcpStream,
        reset: Arc<AtomicBool>,
        on_close: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Socket { stream: Some(stream), reset, on_close: Box::new(on_close) }
    }

    fn inner(self: Pin<&mut Self>) -> Pin<&mut TcpStream> {
        Pin::new(self.get_mut().stream.as_mut().expect("a socket in use is not dropped"))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take()
            && self.reset.load(Ordering::SeqCst)
        {
            let _ = stream.set_zero_linger();
        }
        (self.on_close)();
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner().poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.inner().poll_write(context, bytes)
    }

    // rustls writes the last alert once; only a vectored write also sends the records queued before it.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_shutdown(context)
    }
}

/// Keeps a copy of what is read.
pub(super) struct Spy<S> {
    stream: S,
    received: Arc<Mutex<Vec<u8>>>,
}

impl<S> Spy<S> {
    pub(super) fn new(stream: S, received: Arc<Mutex<Vec<u8>>>) -> Self {
        Spy { stream, received }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Spy<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_RECORDED_BYTES - received.len();
        received.extend(buffer.filled()[before..].iter().take(room));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Spy<S> {
    forward_async_write!(stream: poll_write, poll_flush, poll_shutdown);
}
