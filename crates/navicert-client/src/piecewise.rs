//! Small pieces of a stream over TLS, one at a time where they come in, and together where they go out.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

/// Behind a piece of this length there is likely to be another one.
const LARGE: usize = 4 * 1024;

/// A stream that hands on a small piece without looking for more: behind a message that came whole there is nothing, until it
/// has been answered.
///
/// Small pieces that are written together go out as one: encrypting several takes more than putting them together.
pub struct Piecewise<S> {
    stream: S,
    /// Came after a piece that had to be given first.
    error: Option<io::Error>,
    /// Where pieces are put together.
    together: Vec<u8>,
}

impl<S> Piecewise<S> {
    /// This stream.
    pub fn new(stream: S) -> Self {
        Piecewise { stream, error: None, together: Vec::new() }
    }
}

impl<S: AsyncBufRead + Unpin> AsyncRead for Piecewise<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(error) = this.error.take() {
            return Poll::Ready(Err(error));
        }
        let before = buffer.filled().len();
        loop {
            let is_first = buffer.filled().len() == before;
            let length = match Pin::new(&mut this.stream).poll_fill_buf(context) {
                Poll::Ready(Ok(piece)) => {
                    let piece = piece.get(..buffer.remaining()).unwrap_or(piece);
                    buffer.put_slice(piece);
                    piece.len()
                }
                nothing if is_first => return nothing.map_ok(|_| ()),
                nothing => {
                    if let Poll::Ready(Err(error)) = nothing {
                        this.error = Some(error);
                    }
                    return Poll::Ready(Ok(()));
                }
            };
            Pin::new(&mut this.stream).consume(length);
            if length < LARGE || buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Piecewise<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
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
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Piecewise { stream, together, .. } = &mut *self;
        match slices {
            [one] => Pin::new(stream).poll_write(context, one),
            few if few.iter().map(|slice| slice.len()).sum::<usize>() < LARGE => {
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

    /// Takes at most so many bytes at a time, and notes how they came.
    #[derive(Default)]
    struct Sink {
        written: Vec<Vec<u8>>,
        most: usize,
    }

    impl AsyncWrite for Sink {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = bytes[..bytes.len().min(self.most)].to_vec();
            self.written.push(taken);
            Poll::Ready(Ok(bytes.len().min(self.most)))
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
    fn small_pieces_are_written_as_one_and_large_ones_as_they_are() {
        let write = |stream: &mut Piecewise<Sink>, pieces: &[&[u8]]| {
            let slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
            let mut context = Context::from_waker(Waker::noop());
            match Pin::new(stream).poll_write_vectored(&mut context, &slices) {
                Poll::Ready(written) => written.unwrap(),
                Poll::Pending => panic!("it takes everything"),
            }
        };
        let mut stream = Piecewise::new(Sink { most: 7, ..Sink::default() });
        assert_eq!(write(&mut stream, &[b"head", b"body"]), 7, "what was not taken is told");
        assert_eq!(write(&mut stream, &[b"y"]), 1);
        let large = vec![0; LARGE];
        assert_eq!(write(&mut stream, &[b"head", &large]), 4 + LARGE);
        assert_eq!(stream.stream.written, [b"headbod".to_vec(), b"y".to_vec(), b"head".to_vec(), large]);
    }

    /// Gives these pieces one after another, then an error.
    struct Pieces(Vec<Vec<u8>>, usize);

    impl AsyncRead for Pieces {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
        }
    }

    impl AsyncBufRead for Pieces {
        fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
            let pieces = self.get_mut();
            pieces.1 += 1;
            match pieces.0.first() {
                Some(piece) => Poll::Ready(Ok(piece)),
                None => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            }
        }

        fn consume(self: Pin<&mut Self>, length: usize) {
            let pieces = self.get_mut();
            pieces.0[0].drain(..length);
            if pieces.0[0].is_empty() {
                pieces.0.remove(0);
            }
        }
    }

    fn lengths(pieces: Vec<Vec<u8>>, space: usize) -> (Vec<Result<usize, io::ErrorKind>>, usize) {
        let (mut stream, mut read) = (Piecewise::new(Pieces(pieces, 0)), Vec::new());
        while read.last().is_none_or(Result::is_ok) {
            let mut space = vec![0; space];
            let mut buffer = ReadBuf::new(&mut space);
            let mut context = Context::from_waker(Waker::noop());
            let Poll::Ready(outcome) = Pin::new(&mut stream).poll_read(&mut context, &mut buffer) else {
                panic!("it always has something")
            };
            read.push(outcome.map(|()| buffer.filled().len()).map_err(|error| error.kind()));
        }
        (read, stream.stream.1)
    }

    #[test]
    fn a_small_piece_is_given_without_a_second_look_and_a_large_one_with() {
        let reset = Err(io::ErrorKind::ConnectionReset);
        assert_eq!(lengths(vec![vec![0; 100], vec![0; 200]], 9000), (vec![Ok(100), Ok(200), reset], 3));
        assert_eq!(
            lengths(vec![vec![0; LARGE], vec![0; 200], vec![0; 300]], 9000).0,
            [Ok(LARGE + 200), Ok(300), reset]
        );
        // What comes behind a piece that has to be given is not lost, and is not asked for twice.
        assert_eq!(lengths(vec![vec![0; LARGE]], 9000), (vec![Ok(LARGE), reset], 2));
        // A piece larger than there is space for.
        assert_eq!(lengths(vec![vec![0; 10_000]], 6_000).0, [Ok(6_000), Ok(4_000), reset]);
    }
}
