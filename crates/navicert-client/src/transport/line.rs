//! One connection's bytes, and what both its ends should know about it: whether it is to be closed, and whether the
//! server said in TLS that it does not like our certificate.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use rustls::AlertDescription;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::when_rung::{Ring, Rope};

/// Anything bytes go through.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// What is known about a connection, shared between its stream and those who send on it.
pub(super) struct LineState {
    /// To be closed as soon as nothing holds it.
    condemned: AtomicBool,
    /// How many answers are still to be delivered although the line is condemned (C462, last sentence).
    holds: AtomicUsize,
    /// After a 101 the stream belongs to the caller, and a rotation leaves it alone, as upstream's does (C454).
    upgraded: AtomicBool,
    alert: OnceLock<AlertDescription>,
    /// Makes whoever reads look again.
    rope: Arc<Rope>,
}

impl LineState {
    /// Closes the connection, at once unless somebody holds it. Whoever reads from it gets an error.
    pub(super) fn condemn(&self) {
        self.condemned.store(true, Ordering::SeqCst);
        self.rope.pull();
    }

    /// Keeps the connection open until [`LineState::release`], also if it is condemned.
    pub(super) fn hold(&self) {
        self.holds.fetch_add(1, Ordering::SeqCst);
    }

    /// The opposite of [`LineState::hold`].
    pub(super) fn release(&self) {
        self.holds.fetch_sub(1, Ordering::SeqCst);
        self.rope.pull();
    }

    /// From now on the stream is the caller's.
    pub(super) fn upgrade(&self) {
        self.upgraded.store(true, Ordering::SeqCst);
    }

    /// Whether the stream is the caller's.
    pub(super) fn is_upgraded(&self) -> bool {
        self.upgraded.load(Ordering::SeqCst)
    }

    /// Whether the connection was closed because of a rotation.
    pub(super) fn is_closed_by_us(&self) -> bool {
        self.condemned.load(Ordering::SeqCst) && self.holds.load(Ordering::SeqCst) == 0 && !self.is_upgraded()
    }

    /// The fatal alert the server sent, if it did.
    pub(super) fn alert(&self) -> Option<AlertDescription> {
        self.alert.get().copied()
    }

    fn notice(&self, error: &io::Error) {
        if let Some(alert) = alert_in(error) {
            let _ = self.alert.set(alert);
        }
    }
}

/// The alert behind an error of a TLS stream.
pub(super) fn alert_in(error: &io::Error) -> Option<AlertDescription> {
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::AlertReceived(alert) => Some(*alert),
        _ => None,
    }
}

/// A stream that ends when its line is condemned.
pub(super) struct Line {
    stream: Box<dyn Stream>,
    /// Rings when there may be something to read.
    ring: Ring,
    state: Arc<LineState>,
}

impl Line {
    pub(super) fn new(stream: Box<dyn Stream>) -> (Self, Arc<LineState>) {
        let ring = Ring::default();
        let state = Arc::new(LineState {
            condemned: AtomicBool::new(false),
            holds: AtomicUsize::new(0),
            upgraded: AtomicBool::new(false),
            alert: OnceLock::new(),
            rope: Arc::clone(ring.rope()),
        });
        (Line { stream, ring, state: Arc::clone(&state) }, state)
    }

    /// In TLS 1.3 the server judges our certificate after we have begun to write. If it then closes, the write may fail
    /// before the alert is read; so it is looked for.
    fn look_for_alert(&mut self, context: &mut Context<'_>) {
        // The stream wakes whoever asked it last; the next reader has to ask for itself.
        self.state.rope.pull();
        let mut buffer = [0; 1024];
        for _ in 0..64 {
            let mut read = ReadBuf::new(&mut buffer);
            match Pin::new(&mut self.stream).poll_read(context, &mut read) {
                Poll::Ready(Ok(())) if !read.filled().is_empty() => {}
                Poll::Ready(Err(error)) => return self.state.notice(&error),
                Poll::Ready(Ok(())) | Poll::Pending => return,
            }
        }
    }

    fn noticing<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &written {
            self.state.notice(error);
            if self.state.alert().is_none() {
                self.look_for_alert(context);
            }
        }
        written
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line")
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the client certificate has been replaced")
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.state.is_closed_by_us() {
            return Poll::Ready(Err(closed()));
        }
        let Line { stream, ring, .. } = &mut *self;
        match ring.when_rung(context, |context| Pin::new(stream).poll_read(context, buffer)) {
            // Condemned between the first look and this one: nobody would wake us.
            Poll::Pending if self.state.is_closed_by_us() => Poll::Ready(Err(closed())),
            Poll::Ready(Err(error)) => {
                self.state.notice(&error);
                Poll::Ready(Err(error))
            }
            ready => ready,
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noticing(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.noticing(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.noticing(context, written)
    }
}
