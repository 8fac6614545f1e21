//! Counts unfinished HTTP/2 header blocks: a `HEADERS` frame without `END_HEADERS`, whose `CONTINUATION` frames may never
//! come. hyper has no time limit and no common memory limit for them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use navicert_io::forward_async_write;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::unfinished_head::UnfinishedHead;

/// Length of a frame header (RFC 9113, section 4.1).
const FRAME_HEADER_BYTES: usize = 9;

/// Length of the client's connection preface.
const PREFACE_BYTES: usize = 24;

const HEADERS: u8 = 0x1;
const CONTINUATION: u8 = 0x9;
const END_HEADERS: u8 = 0x4;

/// An HTTP/2 stream of bytes whose unfinished header blocks are counted.
pub(super) struct Http2Heads<S> {
    stream: S,
    frames: FrameScan,
    unfinished: UnfinishedHead,
}

impl<S> Http2Heads<S> {
    pub(super) fn new(stream: S, unfinished: UnfinishedHead) -> Self {
        Http2Heads { stream, frames: FrameScan::default(), unfinished }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Http2Heads<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Http2Heads { stream, frames, unfinished } = &mut *self;
        let before = buffer.filled().len();
        ready!(Pin::new(stream).poll_read(context, buffer))?;
        frames.scan(buffer.filled().get(before..).unwrap_or_default());
        // Compressed fields take up to the limit once they are decoded, however few bytes have arrived.
        unfinished.record(if frames.is_head_unfinished() { unfinished.limit() } else { 0 });
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Http2Heads<S> {
    forward_async_write!(stream: poll_write, poll_write_vectored, is_write_vectored, poll_flush, poll_shutdown);
}

/// Position in the client's frames.
#[derive(Debug)]
struct FrameScan {
    /// Bytes to skip before the next frame header.
    skip: usize,
    header: [u8; FRAME_HEADER_BYTES],
    /// Bytes of the frame header received so far.
    received: usize,
    /// Whether the frame is part of a header block.
    is_header_frame: bool,
    /// Whether a header block lacks its last frame.
    is_block_open: bool,
}

impl Default for FrameScan {
    fn default() -> Self {
        FrameScan {
            skip: PREFACE_BYTES,
            header: [0; FRAME_HEADER_BYTES],
            received: 0,
            is_header_frame: false,
            is_block_open: false,
        }
    }
}

impl FrameScan {
    /// Whether a header block lacks its last frame, or a part of it.
    fn is_head_unfinished(&self) -> bool {
        self.is_block_open || (self.is_header_frame && self.skip > 0)
    }

    fn scan(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip = self.skip.saturating_sub(skipped);
            bytes = bytes.get(skipped..).unwrap_or_default();
            let missing = self.header.get_mut(self.received..).unwrap_or_default();
            let taken = missing.len().min(bytes.len());
            for (to, from) in missing.iter_mut().zip(bytes) {
                *to = *from;
            }
            bytes = bytes.get(taken..).unwrap_or_default();
            self.received = self.received.saturating_add(taken);
            if self.received == FRAME_HEADER_BYTES {
                self.received = 0;
                let [high, middle, low, kind, flags, ..] = self.header;
                self.skip = u32::from_be_bytes([0, high, middle, low]) as usize;
                self.is_header_frame = matches!(kind, HEADERS | CONTINUATION);
                if self.is_header_frame {
                    self.is_block_open = flags & END_HEADERS == 0;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, length: u8) -> Vec<u8> {
        [&[0, 0, length, kind, flags, 0, 0, 0, 1][..], &vec![kind; usize::from(length)]].concat()
    }

    #[test]
    fn sees_open_header_blocks_in_any_fragmentation() {
        let data =
            [vec![b'P'; PREFACE_BYTES], frame(4, 0, 12), frame(0, 1, 200), frame(1, END_HEADERS, 9)].concat();
        let open = [data.clone(), frame(1, 0, 20), frame(9, 0, 200)].concat();
        let closed = [open.clone(), frame(9, END_HEADERS, 3), frame(8, 0, 4)].concat();
        let cut = [data.clone(), frame(1, END_HEADERS, 20)[..20].to_vec()].concat();
        for (bytes, is_open) in [(data, false), (open, true), (closed, false), (cut, true)] {
            for size in 1..=bytes.len() {
                let mut frames = FrameScan::default();
                bytes.chunks(size).for_each(|part| frames.scan(part));
                assert_eq!(frames.is_head_unfinished(), is_open, "in pieces of {size}");
            }
        }
    }
}
