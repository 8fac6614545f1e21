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

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

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
}
