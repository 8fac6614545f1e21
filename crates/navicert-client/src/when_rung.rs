//! What had nothing to give is not asked again before it has rung. Whoever moves a connection looks at both its ends, and at
//! what else it waits for, several times for every request; and a look through TLS down to the socket is dear for what it
//! mostly finds.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Asks whoever has rung, and nobody else. What asks a stream or a future again and again keeps one for it.
pub struct Ring {
    rope: Arc<Rope>,
    /// Pulls the rope.
    waker: Waker,
    /// Whom the rope wakes, to be compared without a lock.
    tied_to: Option<Waker>,
}

impl Ring {
    /// Its rope; others may pull it too.
    pub fn rope(&self) -> &Arc<Rope> {
        &self.rope
    }

    /// What the question gives, if it has rung since it gave nothing.
    pub fn when_rung<T>(
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

impl Default for Ring {
    /// The first question is asked in any case.
    fn default() -> Self {
        let rope = Arc::new(Rope { is_rung: AtomicBool::new(true), task: Mutex::default() });
        Ring { waker: Waker::from(Arc::clone(&rope)), rope, tied_to: None }
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ring")
    }
}

/// What rings when there may be something.
pub struct Rope {
    is_rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Rope {
    /// Whoever waits looks again.
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

/// A future that is polled when it has rung, not whenever its neighbours in a task have.
pub struct Dozing<F> {
    future: Pin<Box<F>>,
    ring: Ring,
}

impl<F> Dozing<F> {
    /// This future, which is polled a first time in any case.
    pub fn new(future: F) -> Self {
        Dozing { future: Box::pin(future), ring: Ring::default() }
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

    /// Gives a thing at a time for as long as it has any, and counts how often it is asked.
    #[derive(Default)]
    struct Source {
        things: usize,
        asked: usize,
        asker: Option<Waker>,
        ring: Ring,
    }

    impl Source {
        /// Whether there was one.
        fn gives(&mut self, waker: &Waker) -> bool {
            let Source { things, asked, asker, ring } = self;
            let ask = |context: &mut Context<'_>| {
                *asked += 1;
                match things.checked_sub(1) {
                    Some(less) => {
                        *things = less;
                        Poll::Ready(())
                    }
                    None => {
                        *asker = Some(context.waker().clone());
                        Poll::Pending
                    }
                }
            };
            ring.when_rung(&Context::from_waker(waker), ask).is_ready()
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
    fn what_has_nothing_is_asked_once_until_it_rings() {
        let (task, waker) = task();
        let mut source = Source::default();
        for _ in 0..5 {
            assert!(!source.gives(&waker));
        }
        assert_eq!(source.asked, 1);
        source.things = 2;
        source.asker.take().unwrap().wake();
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
        assert!(source.gives(&waker) && source.gives(&waker) && !source.gives(&waker));
        assert_eq!(source.asked, 4);
    }

    #[test]
    fn whoever_asked_last_is_woken_even_if_nothing_was_asked_for_them() {
        let ((first, one), (second, two)) = (task(), task());
        let mut source = Source::default();
        assert!(!source.gives(&one) && !source.gives(&two));
        assert_eq!(source.asked, 1);
        source.asker.take().unwrap().wake();
        assert_eq!((first.0.load(Ordering::Relaxed), second.0.load(Ordering::Relaxed)), (0, 1));
    }

    #[test]
    fn somebody_else_can_make_whoever_waits_look_again() {
        let (task, waker) = task();
        let mut source = Source::default();
        assert!(!source.gives(&waker));
        source.ring.rope().pull();
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
        assert!(!source.gives(&waker));
        assert_eq!(source.asked, 2);
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
