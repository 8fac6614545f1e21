//! Skips polling a stream or future until its waker has fired since the last `Pending`.
//!
//! A task that drives a connection polls both directions, and everything else it waits for, several times per request.
//! Most of these polls return `Pending`, and each one goes through TLS down to the socket.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Polls only what has been woken. Keep one per stream or future that is polled repeatedly.
pub struct PollGate {
    wake_flag: Arc<WakeFlag>,
    /// Notifies `wake_flag`.
    waker: Waker,
    /// A copy of the waker in `wake_flag`, compared without taking its lock.
    registered: Option<Waker>,
}

impl PollGate {
    /// The flag that opens the gate; other code may set it too.
    #[inline]
    pub fn wake_flag(&self) -> &Arc<WakeFlag> {
        &self.wake_flag
    }

    /// Calls `poll` if the waker has fired since `poll` last returned `Pending`; returns `Pending` otherwise.
    pub fn poll_if_woken<T>(
        &mut self,
        context: &Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        // Registered first, so that a concurrent `notify` wakes the current task.
        self.register(context.waker());
        // Cleared before polling: an event that arrives during the poll sets the flag again.
        let woken = &self.wake_flag.woken;
        if !woken.load(Ordering::Acquire) || !woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let polled = poll(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            woken.store(true, Ordering::Release);
        }
        polled
    }

    #[inline]
    fn register(&mut self, waker: &Waker) {
        if self.registered.as_ref().is_none_or(|registered| !registered.will_wake(waker)) {
            self.registered = Some(waker.clone());
            *self.wake_flag.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        }
    }
}

impl Default for PollGate {
    /// Starts woken, so that the first poll always happens.
    fn default() -> Self {
        let wake_flag = Arc::new(WakeFlag { woken: AtomicBool::new(true), task: Mutex::default() });
        PollGate { waker: Waker::from(Arc::clone(&wake_flag)), wake_flag, registered: None }
    }
}

impl fmt::Debug for PollGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PollGate")
    }
}

/// Records that something was woken, and wakes the registered task.
pub struct WakeFlag {
    woken: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl WakeFlag {
    /// Sets the flag and wakes the registered task, which then polls again.
    #[inline]
    pub fn notify(&self) {
        self.woken.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.notify();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.notify();
    }
}

impl fmt::Debug for WakeFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WakeFlag")
    }
}

/// A future that is polled only when its own waker has fired, not whenever its task runs.
pub struct PollOnWake<F> {
    future: Pin<Box<F>>,
    gate: PollGate,
}

impl<F> PollOnWake<F> {
    /// Wraps `future`; its first poll always happens.
    pub fn new(future: F) -> Self {
        PollOnWake { future: Box::pin(future), gate: PollGate::default() }
    }
}

impl<F: Future> Future for PollOnWake<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let PollOnWake { future, gate } = &mut *self;
        gate.poll_if_woken(context, |context| future.as_mut().poll(context))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Ready once per item; counts how often it is polled.
    #[derive(Default)]
    struct Source {
        items: usize,
        polls: usize,
        last_waker: Option<Waker>,
        gate: PollGate,
    }

    impl Source {
        /// Takes one item; whether there was one.
        fn take(&mut self, waker: &Waker) -> bool {
            let Source { items, polls, last_waker, gate } = self;
            let poll = |context: &mut Context<'_>| {
                *polls += 1;
                match items.checked_sub(1) {
                    Some(left) => {
                        *items = left;
                        Poll::Ready(())
                    }
                    None => {
                        *last_waker = Some(context.waker().clone());
                        Poll::Pending
                    }
                }
            };
            gate.poll_if_woken(&Context::from_waker(waker), poll).is_ready()
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

    #[test]
    fn pending_source_is_polled_once_until_it_is_woken() {
        let (task, waker) = task();
        let mut source = Source::default();
        for _ in 0..5 {
            assert!(!source.take(&waker));
        }
        assert_eq!(source.polls, 1);
        source.items = 2;
        source.last_waker.take().unwrap().wake();
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
        assert!(source.take(&waker) && source.take(&waker) && !source.take(&waker));
        assert_eq!(source.polls, 4);
    }

    #[test]
    fn wakes_the_last_polling_task_even_if_its_poll_was_skipped() {
        let ((first, one), (second, two)) = (task(), task());
        let mut source = Source::default();
        assert!(!source.take(&one) && !source.take(&two));
        assert_eq!(source.polls, 1);
        source.last_waker.take().unwrap().wake();
        assert_eq!((first.0.load(Ordering::Relaxed), second.0.load(Ordering::Relaxed)), (0, 1));
    }

    #[test]
    fn notify_makes_the_waiting_task_poll_again() {
        let (task, waker) = task();
        let mut source = Source::default();
        assert!(!source.take(&waker));
        source.gate.wake_flag().notify();
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
        assert!(!source.take(&waker));
        assert_eq!(source.polls, 2);
    }

    #[test]
    fn poll_on_wake_polls_once_until_it_is_woken() {
        let (task, waker) = task();
        let (mut polls, saved) = (0, Mutex::new(None::<Waker>));
        {
            let mut future = PollOnWake::new(std::future::poll_fn(|context: &mut Context<'_>| {
                polls += 1;
                *saved.lock().unwrap() = Some(context.waker().clone());
                if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
            }));
            for _ in 0..5 {
                assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending());
            }
            saved.lock().unwrap().take().unwrap().wake();
            assert_eq!(task.0.load(Ordering::Relaxed), 1);
            assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_ready());
        }
        assert_eq!(polls, 2);
    }
}
