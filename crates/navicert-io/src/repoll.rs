//! Immediately re-polls a future that woke itself, at most `MAX_REPOLLS` times in a row.
//!
//! The two halves of a connection wake each other whenever one has data for the other. Through the runtime's queue, the
//! task would wait behind other tasks, and another worker thread might be woken to run it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// How often a self-waking future is polled before the task yields to the runtime.
const MAX_REPOLLS: usize = 8;

/// No poll is in progress: a wake-up wakes the task.
const PARKED: u8 = 0;
/// A poll is in progress.
const POLLING: u8 = 1;
/// A poll is in progress, and the waker has fired since it began.
const WOKEN: u8 = 2;

/// Drives a future to completion, re-polling it immediately when it wakes itself.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let yields_once = std::pin::pin!(async { tokio::task::yield_now().await });
/// navicert_io::repoll::poll_until_parked(yields_once).await;
/// # }
/// ```
pub async fn poll_until_parked<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    let mut poller = SelfWakePoller::default();
    poll_fn(|context| poller.poll(context, |context| future.as_mut().poll(context))).await
}

/// Polls with a waker of its own: a wake-up during a poll only causes another poll, a later one wakes the task.
pub struct SelfWakePoller {
    state: Arc<SelfWakeState>,
    waker: Waker,
}

struct SelfWakeState {
    phase: AtomicU8,
    task: Mutex<Option<Waker>>,
}

impl SelfWakePoller {
    /// Calls `poll_inner`, and calls it again while it wakes itself.
    pub fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        mut poll_inner: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.state.register(context.waker());
        for _ in 0..MAX_REPOLLS {
            self.state.phase.store(POLLING, Ordering::Release);
            if let Poll::Ready(output) = poll_inner(&mut Context::from_waker(&self.waker)) {
                self.state.phase.store(PARKED, Ordering::Release);
                return Poll::Ready(output);
            }
            if self.state.finish_poll() {
                return Poll::Pending;
            }
        }
        self.state.phase.store(PARKED, Ordering::Release);
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Announces that the caller is about to poll: wake-ups until then need not wake the task.
    #[inline]
    pub fn mark_polling(&self) {
        self.state.phase.store(POLLING, Ordering::Release);
    }

    /// Forgets the registered task; the next poll registers one again.
    #[inline]
    pub fn clear_task(&self) {
        *self.state.task() = None;
    }
}

impl Default for SelfWakePoller {
    fn default() -> Self {
        let state = Arc::new(SelfWakeState { phase: AtomicU8::new(PARKED), task: Mutex::default() });
        SelfWakePoller { waker: Waker::from(Arc::clone(&state)), state }
    }
}

impl fmt::Debug for SelfWakePoller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SelfWakePoller")
    }
}

impl SelfWakeState {
    #[inline]
    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn register(&self, waker: &Waker) {
        let mut task = self.task();
        if task.as_ref().is_none_or(|task| !task.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }

    /// Parks unless the waker has fired since the poll began; whether it parked. Later wake-ups wake the task.
    #[inline]
    fn finish_poll(&self) -> bool {
        self.phase.compare_exchange(POLLING, PARKED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Wake for SelfWakeState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let noted = self.phase.compare_exchange(POLLING, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if noted == Err(PARKED) {
            // The lock is released before waking: the woken task may register at once.
            let task = self.task().clone();
            if let Some(task) = task {
                task.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Task {
        fn wakes(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn self_waking_future_is_polled_again_without_the_runtime() {
        let task = Arc::new(Task::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut polls = 0;
        let inner = pin!(poll_fn(|context| {
            polls += 1;
            context.waker().wake_by_ref();
            if polls == 3 { Poll::Ready(polls) } else { Poll::Pending }
        }));
        let mut outer = pin!(poll_until_parked(inner));
        assert_eq!(outer.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(3));
        assert_eq!(task.wakes(), 0);
    }

    #[test]
    fn future_that_always_wakes_itself_yields_after_the_limit() {
        let task = Arc::new(Task::default());
        let waker = Waker::from(Arc::clone(&task));
        let polls = AtomicUsize::new(0);
        let inner = pin!(poll_fn(|context| {
            polls.fetch_add(1, Ordering::Relaxed);
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        let mut outer = pin!(poll_until_parked(inner));
        for turn in 1..=3 {
            assert!(outer.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert_eq!((polls.load(Ordering::Relaxed), task.wakes()), (turn * MAX_REPOLLS, turn));
        }
    }

    #[test]
    fn late_wake_up_wakes_the_last_polling_task_until_it_is_cleared() {
        let saved = Mutex::new(None::<Waker>);
        let mut poller = SelfWakePoller::default();
        let mut poll_inner = |context: &mut Context<'_>| {
            *saved.lock().unwrap() = Some(context.waker().clone());
            Poll::<()>::Pending
        };
        for _ in 0..2 {
            let task = Arc::new(Task::default());
            let waker = Waker::from(Arc::clone(&task));
            assert!(poller.poll(&mut Context::from_waker(&waker), &mut poll_inner).is_pending());
            assert_eq!(task.wakes(), 0);
            saved.lock().unwrap().clone().unwrap().wake();
            assert_eq!(task.wakes(), 1);
            poller.clear_task();
            saved.lock().unwrap().take().unwrap().wake();
            assert_eq!(task.wakes(), 1);
        }
    }
}
