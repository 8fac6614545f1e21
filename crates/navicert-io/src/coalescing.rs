//! A wrapper for TLS streams: returns a small record as soon as it is read, and writes small buffers as one record.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

use crate::forward_async_write;

/// Reads and writes below this size are treated as a whole message. After a larger read, more data is likely buffered.
const COALESCE_BELOW_BYTES: usize = 4 * 1024;

/// A stream that returns a small read without trying to read more: after a complete message the peer sends nothing until
/// it gets a response.
///
/// A vectored write of small buffers is copied into one buffer first: encrypting several records costs more than copying.
pub struct CoalescingStream<S> {
    stream: S,
    /// An error that followed data; returned by the next read.
    deferred_error: Option<io::Error>,
    /// Where small buffers are joined.
    write_buffer: Vec<u8>,
}

impl<S> CoalescingStream<S> {
    /// Wraps `stream`.
    pub fn new(stream: S) -> Self {
        CoalescingStream { stream, deferred_error: None, write_buffer: Vec::new() }
    }
}

impl<S: AsyncBufRead + Unpin> AsyncRead for CoalescingStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(error) = this.deferred_error.take() {
            return Poll::Ready(Err(error));
        }
        let before = buffer.filled().len();
        loop {
            let is_first = buffer.filled().len() == before;
            let length = match Pin::new(&mut this.stream).poll_fill_buf(context) {
                Poll::Ready(Ok(chunk)) => {
                    let chunk = chunk.get(..buffer.remaining()).unwrap_or(chunk);
                    buffer.put_slice(chunk);
                    chunk.len()
                }
                no_data if is_first => return no_data.map_ok(|_| ()),
                no_data => {
                    if let Poll::Ready(Err(error)) = no_data {
                        this.deferred_error = Some(error);
                    }
                    return Poll::Ready(Ok(()));
                }
            };
            Pin::new(&mut this.stream).consume(length);
            if length < COALESCE_BELOW_BYTES || buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CoalescingStream<S> {
    forward_async_write!(stream: poll_write, is_write_vectored, poll_flush, poll_shutdown);

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let CoalescingStream { stream, write_buffer: together, .. } = &mut *self;
        match slices {
            [one] => Pin::new(stream).poll_write(context, one),
            few if few.iter().map(|slice| slice.len()).sum::<usize>() < COALESCE_BELOW_BYTES => {
                together.clear();
                few.iter().for_each(|slice| together.extend_from_slice(slice));
                Pin::new(stream).poll_write(context, together)
            }
            many => Pin::new(stream).poll_write_vectored(context, many),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Accepts at most `max_bytes` per write, and records each write.
    #[derive(Default)]
    struct Sink {
        written: Vec<Vec<u8>>,
        max_bytes: usize,
    }

    impl AsyncWrite for Sink {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let accepted = bytes[..bytes.len().min(self.max_bytes)].to_vec();
            self.written.push(accepted);
            Poll::Ready(Ok(bytes.len().min(self.max_bytes)))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.written.extend(slices.iter().map(|slice| slice.to_vec()));
            Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()))
        }
    }

    #[test]
    fn small_buffers_are_written_as_one_and_large_ones_unchanged() {
        let write = |stream: &mut CoalescingStream<Sink>, chunks: &[&[u8]]| {
            let slices: Vec<_> = chunks.iter().map(|chunk| IoSlice::new(chunk)).collect();
            let mut context = Context::from_waker(Waker::noop());
            match Pin::new(stream).poll_write_vectored(&mut context, &slices) {
                Poll::Ready(written) => written.unwrap(),
                Poll::Pending => panic!("the sink is always ready"),
            }
        };
        let mut stream = CoalescingStream::new(Sink { max_bytes: 7, ..Sink::default() });
        assert_eq!(write(&mut stream, &[b"head", b"body"]), 7, "a short write is reported");
        assert_eq!(write(&mut stream, &[b"y"]), 1);
        let large = vec![0; COALESCE_BELOW_BYTES];
        assert_eq!(write(&mut stream, &[b"head", &large]), 4 + COALESCE_BELOW_BYTES);
        assert_eq!(stream.stream.written, [b"headbod".to_vec(), b"y".to_vec(), b"head".to_vec(), large]);
    }

    /// Yields these chunks one after another, then an error; counts the polls.
    struct Chunks(Vec<Vec<u8>>, usize);

    impl AsyncRead for Chunks {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
        }
    }

    impl AsyncBufRead for Chunks {
        fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
            let chunks = self.get_mut();
            chunks.1 += 1;
            match chunks.0.first() {
                Some(chunk) => Poll::Ready(Ok(chunk)),
                None => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            }
        }

        fn consume(self: Pin<&mut Self>, length: usize) {
            let chunks = self.get_mut();
            chunks.0[0].drain(..length);
            if chunks.0[0].is_empty() {
                chunks.0.remove(0);
            }
        }
    }

    fn lengths(chunks: Vec<Vec<u8>>, space: usize) -> (Vec<Result<usize, io::ErrorKind>>, usize) {
        let (mut stream, mut read) = (CoalescingStream::new(Chunks(chunks, 0)), Vec::new());
        while read.last().is_none_or(Result::is_ok) {
            let mut space = vec![0; space];
            let mut buffer = ReadBuf::new(&mut space);
            let mut context = Context::from_waker(Waker::noop());
            let Poll::Ready(outcome) = Pin::new(&mut stream).poll_read(&mut context, &mut buffer) else {
                panic!("the stream is always ready")
            };
            read.push(outcome.map(|()| buffer.filled().len()).map_err(|error| error.kind()));
        }
        (read, stream.stream.1)
    }

    #[test]
    fn small_read_returns_at_once_and_large_read_polls_again() {
        let reset = Err(io::ErrorKind::ConnectionReset);
        assert_eq!(lengths(vec![vec![0; 100], vec![0; 200]], 9000), (vec![Ok(100), Ok(200), reset], 3));
        assert_eq!(
            lengths(vec![vec![0; COALESCE_BELOW_BYTES], vec![0; 200], vec![0; 300]], 9000).0,
            [Ok(COALESCE_BELOW_BYTES + 200), Ok(300), reset]
        );
        // An error after data is kept for the next read, and the stream is not polled for it twice.
        assert_eq!(
            lengths(vec![vec![0; COALESCE_BELOW_BYTES]], 9000),
            (vec![Ok(COALESCE_BELOW_BYTES), reset], 2)
        );
        // A chunk larger than the buffer.
        assert_eq!(lengths(vec![vec![0; 10_000]], 6_000).0, [Ok(6_000), Ok(4_000), reset]);
    }
}
