//! What had nothing to give is not asked again before it has rung. Whoever moves a connection looks at both its ends, and at
//! what else it waits for, several times for every request; and a look through TLS down to the socket is dear for what it
//! mostly finds.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

/// Asks when it has rung.
struct Ring {
    rope: Arc<Rope>,
    /// Pulls the rope.
    waker: Waker,
    /// Whom the rope wakes, to be compared without a lock.
    tied_to: Option<Waker>,
}

impl Ring {
    /// The first question is asked in any case.
    fn new() -> Self {
        let rope = Arc::new(Rope { is_rung: AtomicBool::new(true), task: Mutex::default() });
        Ring { waker: Waker::from(Arc::clone(&rope)), rope, tied_to: None }
    }

    fn when_rung<T>(
        &mut self,
        context: &Context<'_>,
        ask: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        // Tied first: whoever pulls from here on wakes the right task.
        self.tie(context.waker());
        // Taken before the look, which so sees what was there when it rang; what comes later rings once more.
        let is_rung = &self.rope.is_rung;
        if !is_rung.load(Ordering::Acquire) || !is_rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let given = ask(&mut Context::from_waker(&self.waker));
        if given.is_ready() {
            is_rung.store(true, Ordering::Release);
        }
        given
    }

    fn tie(&mut self, waker: &Waker) {
        if self.tied_to.as_ref().is_none_or(|tied| !tied.will_wake(waker)) {
            self.tied_to = Some(waker.clone());
            *self.rope.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        }
    }
}

/// A stream, read only when there may be something.
pub struct WhenRung<S> {
    stream: S,
    ring: Ring,
}

/// What a stream rings with when there may be something to read; others may pull it too.
pub struct Rope {
    is_rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Rope {
    /// Whoever waits for something to read looks again.
    pub fn pull(&self) {
        self.is_rung.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl Wake for Rope {
    fn wake(self: Arc<Self>) {
        self.pull();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.pull();
    }
}

impl fmt::Debug for Rope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rope")
    }
}

impl<S> WhenRung<S> {
    /// This stream, which is looked at a first time in any case.
    pub fn new(stream: S) -> Self {
        WhenRung { stream, ring: Ring::new() }
    }

    /// Its rope.
    pub fn rope(&self) -> &Arc<Rope> {
        &self.ring.rope
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WhenRung<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let WhenRung { stream, ring } = &mut *self;
        ring.when_rung(context, |context| Pin::new(stream).poll_read(context, buffer))
    }
}

/// A future that is polled when it has rung, not whenever its neighbours in a task have.
pub struct Dozing<F> {
    future: Pin<Box<F>>,
    ring: Ring,
}

impl<F> Dozing<F> {
    /// This future, which is polled a first time in any case.
    pub fn new(future: F) -> Self {
        Dozing { future: Box::pin(future), ring: Ring::new() }
    }
}

impl<F: Future> Future for Dozing<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Dozing { future, ring } = &mut *self;
        ring.when_rung(context, |context| future.as_mut().poll(context))
    }
}

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

impl<S: AsyncWrite + Unpin> AsyncWrite for WhenRung<S> {
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
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Gives a byte at a time for as long as it has any, and counts how often it is asked.
    #[derive(Default)]
    struct Source {
        bytes: Vec<u8>,
        asked: usize,
        reader: Option<Waker>,
    }

    impl AsyncRead for Source {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.asked += 1;
            match self.bytes.pop() {
                Some(byte) => {
                    buffer.put_slice(&[byte]);
                    Poll::Ready(Ok(()))
                }
                None => {
                    self.reader = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        }
    }

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn task() -> (Arc<Task>, Waker) {
        let task = Arc::new(Task::default());
        (Arc::clone(&task), Waker::from(task))
    }

    /// Whether a byte was read.
    fn reads(stream: &mut WhenRung<Source>, waker: &Waker) -> bool {
        let mut space = [0; 8];
        let mut buffer = ReadBuf::new(&mut space);
        Pin::new(stream).poll_read(&mut Context::from_waker(waker), &mut buffer).is_ready()
    }

    #[test]
    fn a_stream_without_anything_is_asked_once_until_it_rings() {
        let (task, waker) = task();
        let mut stream = WhenRung::new(Source::default());
        for _ in 0..5 {
            assert!(!reads(&mut stream, &waker));
        }
        assert_eq!(stream.stream.asked, 1);
        stream.stream.bytes = vec![1, 2];
        stream.stream.reader.take().unwrap().wake();
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
        assert!(reads(&mut stream, &waker) && reads(&mut stream, &waker) && !reads(&mut stream, &waker));
        assert_eq!(stream.stream.asked, 4);
    }

    #[test]
    fn whoever_asked_last_is_woken_even_if_the_stream_was_not_asked_for_them() {
        let ((first, one), (second, two)) = (task(), task());
        let mut stream = WhenRung::new(Source::default());
        assert!(!reads(&mut stream, &one) && !reads(&mut stream, &two));
        assert_eq!(stream.stream.asked, 1);
        stream.stream.reader.take().unwrap().wake();
        assert_eq!((first.0.load(Ordering::Relaxed), second.0.load(Ordering::Relaxed)), (0, 1));
    }

    #[test]
    fn somebody_else_can_make_the_reader_look_again() {
        let (task, waker) = task();
        let mut stream = WhenRung::new(Source::default());
        assert!(!reads(&mut stream, &waker));
        stream.rope().pull();
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
        assert!(!reads(&mut stream, &waker));
        assert_eq!(stream.stream.asked, 2);
    }

    #[test]
    fn a_dozing_future_is_polled_once_until_it_rings() {
        let (task, waker) = task();
        let (mut polls, kept) = (0, Mutex::new(None::<Waker>));
        {
            let mut dozing = Dozing::new(std::future::poll_fn(|context: &mut Context<'_>| {
                polls += 1;
                *kept.lock().unwrap() = Some(context.waker().clone());
                if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
            }));
            for _ in 0..5 {
                assert!(Pin::new(&mut dozing).poll(&mut Context::from_waker(&waker)).is_pending());
            }
            kept.lock().unwrap().take().unwrap().wake();
            assert_eq!(task.0.load(Ordering::Relaxed), 1);
            assert!(Pin::new(&mut dozing).poll(&mut Context::from_waker(&waker)).is_ready());
        }
        assert_eq!(polls, 2);
    }

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
