//! One value on its way to any number of waiters, blocked threads and futures alike; and work that goes on whoever
//! stops waiting for it.

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

/// Why detached work gave no answer at all.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Lost {
    /// It panicked. The message is not kept: it may quote what the work was handling.
    #[error("the work ended in a panic")]
    Panicked,
    /// There was no thread for it.
    #[error("no thread could be started")]
    NoThread {
        /// The operating system's word.
        source: Arc<io::Error>,
    },
}

/// Does the work on a thread that has nothing else to do. It goes on whether or not anybody waits, and always answers.
pub fn detach<T>(name: &'static str, work: impl FnOnce() -> T + Send + 'static) -> Waiter<Result<T, Lost>>
where
    T: Clone + Send + 'static,
{
    let completion = Completion::new();
    let waiter = completion.waiter();
    spawn_catching(name, work, move |answer| completion.complete(answer));
    waiter
}

/// Does the work on another thread and hands the answer to `land`: on that thread, or here if there is none.
pub(crate) fn spawn_catching<T: 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
    land: impl FnOnce(Result<T, Lost>) + Clone + Send + 'static,
) {
    let land_here = land.clone();
    let body = move || land(catch_unwind(AssertUnwindSafe(work)).map_err(|_| Lost::Panicked));
    if let Err(source) = workers::run(name, body) {
        land_here(Err(Lost::NoThread { source: Arc::new(source) }));
    }
}

/// A value that comes once and is then there for good.
pub(crate) struct Completion<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

struct State<T> {
    value: Option<T>,
    next_ticket: u64,
    wakers: Vec<(u64, Waker)>,
}

impl<T> Completion<T> {
    pub(crate) fn new() -> Self {
        let state = State { value: None, next_ticket: 0, wakers: Vec::new() };
        Completion(Arc::new(Shared { state: Mutex::new(state), arrived: Condvar::new() }))
    }

    /// Delivers the value. A second one is dropped.
    pub(crate) fn complete(&self, value: T) {
        let mut state = self.0.lock();
        state.value.get_or_insert(value);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.0.arrived.notify_all();
        wakers.into_iter().for_each(|(_, waker)| waker.wake());
    }

    pub(crate) fn waiter(&self) -> Waiter<T> {
        let mut state = self.0.lock();
        state.next_ticket = state.next_ticket.wrapping_add(1);
        Waiter { shared: Arc::clone(&self.0), ticket: state.next_ticket }
    }
}

impl<T> Clone for Completion<T> {
    fn clone(&self) -> Self {
        Completion(Arc::clone(&self.0))
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who waits: await it, or block on [`Waiter::wait`]. Dropping it stops the waiting and nothing else.
#[must_use = "without waiting there is no answer"]
pub struct Waiter<T> {
    shared: Arc<Shared<T>>,
    ticket: u64,
}

impl<T: Clone> Waiter<T> {
    /// Blocks until the answer is there.
    pub fn wait(self) -> T {
        let mut state = self.shared.lock();
        loop {
            if let Some(value) = &state.value {
                return value.clone();
            }
            state = self.shared.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Blocks until the answer is there or the time is up.
    pub fn wait_at_most(&self, limit: Duration) -> Option<T> {
        let absent = |state: &mut State<T>| state.value.is_none();
        let waited = self.shared.arrived.wait_timeout_while(self.shared.lock(), limit, absent);
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
        match state.wakers.iter_mut().find(|(ticket, _)| *ticket == self.ticket) {
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => state.wakers.push((self.ticket, context.waker().clone())),
        }
        Poll::Pending
    }
}

impl<T> Drop for Waiter<T> {
    fn drop(&mut self) {
        self.shared.lock().wakers.retain(|(ticket, _)| *ticket != self.ticket);
    }
}

impl<T> fmt::Debug for Waiter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrived = self.shared.lock().value.is_some();
        f.debug_struct("Waiter").field("arrived", &arrived).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::task::Wake;
    use std::thread;

    const SOON: Duration = Duration::from_secs(30);

    /// Counts wake-ups and announces each.
    struct Bell(Mutex<mpsc::Sender<()>>);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            let _ = self.0.lock().unwrap().send(());
        }
    }

    fn bell() -> (Waker, mpsc::Receiver<()>) {
        let (ring, rung) = mpsc::channel();
        (Waker::from(Arc::new(Bell(Mutex::new(ring)))), rung)
    }

    #[test]
    fn every_waiter_gets_the_value_whenever_it_came() {
        let completion = Completion::new();
        let (early, (waker, rung)) = (completion.waiter(), bell());
        let mut future = completion.waiter();
        assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending());
        let blocked = thread::spawn(move || early.wait());
        completion.complete("here");
        rung.recv_timeout(SOON).unwrap();
        assert_eq!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)), Poll::Ready("here"));
        assert_eq!(blocked.join().unwrap(), "here");
        assert_eq!(completion.waiter().wait(), "here");
    }

    #[test]
    fn the_first_value_stays() {
        let completion = Completion::new();
        completion.complete(1);
        completion.complete(2);
        assert_eq!(completion.waiter().wait(), 1);
    }

    #[test]
    fn a_waiter_that_goes_away_leaves_nothing_behind_and_wakes_nobody() {
        // C422
        let completion = Completion::new();
        let (waker, rung) = bell();
        for _ in 0..3 {
            let mut future = completion.waiter();
            for _ in 0..2 {
                assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending());
            }
            assert_eq!(completion.0.lock().wakers.len(), 1, "a second poll does not register a second time");
        }
        assert!(completion.0.lock().wakers.is_empty());
        completion.complete(());
        assert!(rung.try_recv().is_err());
    }

    #[test]
    fn waiting_with_a_limit_ends_without_the_value() {
        let completion = Completion::<u8>::new();
        assert_eq!(completion.waiter().wait_at_most(Duration::ZERO), None);
        completion.complete(7);
        assert_eq!(completion.waiter().wait_at_most(Duration::ZERO), Some(7));
    }

    #[test]
    fn a_panic_is_an_answer() {
        let waiter = detach::<()>("test", || panic!("canary"));
        let lost = waiter.wait().unwrap_err();
        assert!(matches!(lost, Lost::Panicked));
        assert!(!format!("{lost:?} {lost}").contains("canary"));
    }

    #[test]
    fn work_goes_on_when_nobody_waits_any_more() {
        // C306
        let (release, held) = mpsc::channel::<()>();
        let (finished, done) = mpsc::channel();
        drop(detach("test", move || {
            held.recv().unwrap();
            finished.send("done").unwrap();
        }));
        release.send(()).unwrap();
        assert_eq!(done.recv_timeout(SOON), Ok("done"));
    }
}
