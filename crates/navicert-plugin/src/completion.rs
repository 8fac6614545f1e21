//! Delivers one value to any number of waiters, both blocking threads and futures. The work continues when a waiter is
//! dropped.

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use thiserror::Error;

use crate::workers;

/// Why detached work returned no result.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// It panicked. The panic message is dropped: it may contain secrets.
    #[error("worker thread panicked")]
    Panicked,
    /// No thread could be started.
    #[error("failed to start a worker thread")]
    NoThread {
        /// I/O error reported by the operating system.
        source: Arc<io::Error>,
    },
}

/// Runs `work` on a worker thread. It continues if the waiter is dropped, and always completes the waiter.
pub fn detach<T>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Waiter<Result<T, JoinError>>
where
    T: Clone + Send + 'static,
{
    let completion = Completion::new();
    let waiter = completion.waiter();
    spawn_catching(name, work, move |answer| completion.complete(answer));
    waiter
}

/// Runs `work` on a worker thread and passes the result to `complete`: on that thread, or on this one if none could be
/// started.
pub(crate) fn spawn_catching<T: 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
    complete: impl FnOnce(Result<T, JoinError>) + Clone + Send + 'static,
) {
    let complete_here = complete.clone();
    let body = move || complete(catch_unwind(AssertUnwindSafe(work)).map_err(|_| JoinError::Panicked));
    if let Err(source) = workers::run(name, body) {
        complete_here(Err(JoinError::NoThread { source: Arc::new(source) }));
    }
}

/// A value that is set once and then kept for all waiters.
pub(crate) struct Completion<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<CompletionState<T>>,
    completed: Condvar,
}

struct CompletionState<T> {
    value: Option<T>,
    next_waiter_id: u64,
    wakers: Vec<(u64, Waker)>,
}

impl<T> Completion<T> {
    pub(crate) fn new() -> Self {
        let state = CompletionState { value: None, next_waiter_id: 0, wakers: Vec::new() };
        Completion(Arc::new(Shared { state: Mutex::new(state), completed: Condvar::new() }))
    }

    /// Sets the value and wakes all waiters. Later values are dropped.
    pub(crate) fn complete(&self, value: T) {
        let mut state = self.0.lock();
        state.value.get_or_insert(value);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.0.completed.notify_all();
        wakers.into_iter().for_each(|(_, waker)| waker.wake());
    }

    pub(crate) fn waiter(&self) -> Waiter<T> {
        let mut state = self.0.lock();
        state.next_waiter_id = state.next_waiter_id.wrapping_add(1);
        Waiter { shared: Arc::clone(&self.0), id: state.next_waiter_id }
    }
}

impl<T> Clone for Completion<T> {
    fn clone(&self) -> Self {
        Completion(Arc::clone(&self.0))
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, CompletionState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a result: `.await` it, or block on [`Waiter::wait`]. Dropping it does not stop the work.
#[must_use = "the result is lost unless it is waited for"]
pub struct Waiter<T> {
    shared: Arc<Shared<T>>,
    id: u64,
}

impl<T: Clone> Waiter<T> {
    /// Blocks until the result is available.
    pub fn wait(self) -> T {
        let mut state = self.shared.lock();
        loop {
            if let Some(value) = &state.value {
                return value.clone();
            }
            state = self.shared.completed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Blocks until the result is available or the timeout expires.
    pub fn wait_at_most(&self, limit: Duration) -> Option<T> {
        let absent = |state: &mut CompletionState<T>| state.value.is_none();
        let waited = self.shared.completed.wait_timeout_while(self.shared.lock(), limit, absent);
        waited.unwrap_or_else(PoisonError::into_inner).0.value.clone()
    }
}

impl<T: Clone> Future for Waiter<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.shared.lock();
        if let Some(value) = &state.value {
            return Poll::Ready(value.clone());
        }
        match state.wakers.iter_mut().find(|(ticket, _)| *ticket == self.id) {
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => state.wakers.push((self.id, context.waker().clone())),
        }
        Poll::Pending
    }
}

impl<T> Drop for Waiter<T> {
    fn drop(&mut self) {
        self.shared.lock().wakers.retain(|(ticket, _)| *ticket != self.id);
    }
}

impl<T> fmt::Debug for Waiter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let completed = self.shared.lock().value.is_some();
        f.debug_struct("Waiter").field("completed", &completed).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::task::Wake;
    use std::thread;

    const TEST_TIMEOUT: Duration = Duration::from_secs(30);

    /// Sends a message for each wake-up.
    struct ChannelWaker(Mutex<mpsc::Sender<()>>);

    impl Wake for ChannelWaker {
        fn wake(self: Arc<Self>) {
            let _ = self.0.lock().unwrap().send(());
        }
    }

    fn channel_waker() -> (Waker, mpsc::Receiver<()>) {
        let (sender, receiver) = mpsc::channel();
        (Waker::from(Arc::new(ChannelWaker(Mutex::new(sender)))), receiver)
    }

    #[test]
    fn every_waiter_gets_the_value() {
        let completion = Completion::new();
        let (early, (waker, woken)) = (completion.waiter(), channel_waker());
        let mut future = completion.waiter();
        assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending());
        let blocked = thread::spawn(move || early.wait());
        completion.complete("here");
        woken.recv_timeout(TEST_TIMEOUT).unwrap();
        assert_eq!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)), Poll::Ready("here"));
        assert_eq!(blocked.join().unwrap(), "here");
        assert_eq!(completion.waiter().wait(), "here");
    }

    #[test]
    fn keeps_the_first_value() {
        let completion = Completion::new();
        completion.complete(1);
        completion.complete(2);
        assert_eq!(completion.waiter().wait(), 1);
    }

    #[test]
    fn dropped_waiter_unregisters_its_waker() {
        // C422
        let completion = Completion::new();
        let (waker, woken) = channel_waker();
        for _ in 0..3 {
            let mut future = completion.waiter();
            for _ in 0..2 {
                assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending());
            }
            assert_eq!(completion.0.lock().wakers.len(), 1, "a second poll does not register a second time");
        }
        assert!(completion.0.lock().wakers.is_empty());
        completion.complete(());
        assert!(woken.try_recv().is_err());
    }

    #[test]
    fn wait_at_most_times_out_without_a_value() {
        let completion = Completion::<u8>::new();
        assert_eq!(completion.waiter().wait_at_most(Duration::ZERO), None);
        completion.complete(7);
        assert_eq!(completion.waiter().wait_at_most(Duration::ZERO), Some(7));
    }

    #[test]
    fn panic_completes_the_waiter() {
        let waiter = detach::<()>("test", || panic!("canary"));
        let lost = waiter.wait().unwrap_err();
        assert!(matches!(lost, JoinError::Panicked));
        assert!(!format!("{lost:?} {lost}").contains("canary"));
    }

    #[test]
    fn work_continues_after_the_waiter_is_dropped() {
        // C306
        let (release, held) = mpsc::channel::<()>();
        let (finished, done) = mpsc::channel();
        drop(detach("test", move || {
            held.recv().unwrap();
            finished.send("done").unwrap();
        }));
        release.send(()).unwrap();
        assert_eq!(done.recv_timeout(TEST_TIMEOUT), Ok("done"));
    }
}
