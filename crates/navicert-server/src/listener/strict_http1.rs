//! Strict HTTP/1.1 framing. hyper accepts some ambiguous messages (`Content-Length` beside `Transfer-Encoding`, bare
//! line feeds). A proxy must not: another proxy or server in the chain may parse them differently, which enables
//! request smuggling. This module checks the framing and replaces the bytes of a violation with NULs; hyper then
//! responds 400 and closes the connection.
//!
//! It also bounds request heads: a head above the limit gets a 431, and an unfinished head is counted towards the
//! listener's limit of all unfinished heads.
// structured-authentication.md A75, S244

pub(super) mod framing;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use navicert_io::forward_async_write;
use navicert_io::wake_gate::PollGate;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::unfinished_head::UnfinishedHead;
use framing::{Inspection, RequestFraming};

/// Response to a request head above the limit.
const HEAD_TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Bytes read of the next request of an idle connection, before it has a buffer.
const FIRST_READ_BYTES: usize = 256;

/// A stream that lets only unambiguously framed requests through.
pub(super) struct StrictHttp1<S> {
    stream: S,
    /// Skips reads until the stream has signalled readiness.
    read_gate: PollGate,
    framing: RequestFraming,
    unfinished: UnfinishedHead,
    /// Inspected bytes to return before more is read.
    unread: Vec<u8>,
    /// Rest of the response to write before the connection ends.
    rejection: Option<&'static [u8]>,
}

impl<S> StrictHttp1<S> {
    pub(super) fn new(stream: S, unfinished: UnfinishedHead) -> Self {
        StrictHttp1 {
            stream,
            read_gate: PollGate::default(),
            framing: RequestFraming::default(),
            unfinished,
            unread: Vec::new(),
            rejection: None,
        }
    }

    /// Takes back bytes that were read but not used.
    pub(super) fn unread(&mut self, bytes: &[u8]) {
        self.unread = bytes.to_vec();
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> StrictHttp1<S> {
    /// Waits until the client has sent something, without a buffer of its own. Returns whether it has; `false` at the end
    /// of the stream.
    pub(super) async fn wait_for_data(&mut self) -> bool {
        let received = poll_fn(|context| {
            if !self.unread.is_empty() {
                return Poll::Ready(Vec::new());
            }
            let mut bytes = [0; FIRST_READ_BYTES];
            let mut buffer = ReadBuf::new(&mut bytes);
            match ready!(Pin::new(&mut *self).poll_read(context, &mut buffer)) {
                Ok(()) => Poll::Ready(buffer.filled().to_vec()),
                Err(_) => Poll::Ready(Vec::new()),
            }
        })
        .await;
        self.unread.extend_from_slice(&received);
        !self.unread.is_empty()
    }

    /// Records whether the client has taken everything.
    fn track<T>(&mut self, _: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.unfinished.set_unsent_data(progress.is_pending());
        progress
    }

    /// Writes the response to a request head above the limit; the reader sees the end of the stream after it.
    fn poll_reject(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.rejection.filter(|rest| !rest.is_empty()) {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
            self.rejection = rest.get(written.max(1)..);
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for StrictHttp1<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rejection.is_some() {
            return self.poll_reject(context);
        }
        if !self.unread.is_empty() {
            let taken = self.unread.len().min(buffer.remaining());
            buffer.put_slice(self.unread.get(..taken).unwrap_or_default());
            self.unread.drain(..taken);
            if self.unread.is_empty() {
                self.unread = Vec::new();
            }
            return Poll::Ready(Ok(()));
        }
        let StrictHttp1 { stream, read_gate, framing, unfinished, rejection, .. } = &mut *self;
        let before = buffer.filled().len();
        ready!(read_gate.poll_if_woken(context, |context| Pin::new(stream).poll_read(context, buffer)))?;
        let Some(new) = buffer.filled_mut().get_mut(before..) else { return Poll::Ready(Ok(())) };
        match framing.inspect(new, unfinished.limit()) {
            Inspection::Passed => {
                unfinished.record(framing.unfinished_bytes());
                Poll::Ready(Ok(()))
            }
            Inspection::HeadTooLarge => {
                buffer.set_filled(before);
                // A response in progress must not be interrupted by another.
                *rejection = Some(if unfinished.is_between_requests() { HEAD_TOO_LARGE } else { b"" });
                self.poll_reject(context)
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for StrictHttp1<S> {
    forward_async_write!(stream => track: poll_write, poll_write_vectored, poll_flush);
    forward_async_write!(stream: is_write_vectored, poll_shutdown);
}
