//! What wakes itself while it is polled is polled again at once. The two ends of a connection do that whenever one of them has
//! something for the other; by way of the runtime's queue they would wait behind others, and another thread might be woken
//! to take them over.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// So often in a row; then others have their turn.
const MOST: usize = 8;

/// Nobody polls: whoever rings wakes the task.
const WAITING: u8 = 0;
/// It is being polled.
const POLLED: u8 = 1;
/// It is being polled, and somebody rang meanwhile.
const RUNG: u8 = 2;

/// What a future gives.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let asks_twice = std::pin::pin!(async { tokio::task::yield_now().await });
/// navicert_client::at_once::at_once(asks_twice).await;
/// # }
/// ```
pub async fn at_once<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    let mut bell = Bell::default();
    poll_fn(|context| bell.poll(context, |context| future.as_mut().poll(context))).await
}

/// Rings at a task's door, or only makes a note while somebody is at it.
pub struct Bell {
    door: Arc<Door>,
    waker: Waker,
}

struct Door {
    state: AtomicU8,
    task: Mutex<Option<Waker>>,
}

impl Bell {
    /// Takes a step, and another one at once for as long as a step rings this bell.
    pub fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        mut step: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.door.is_at(context.waker());
        for _ in 0..MOST {
            self.door.state.store(POLLED, Ordering::Release);
            if let Poll::Ready(given) = step(&mut Context::from_waker(&self.waker)) {
                self.door.state.store(WAITING, Ordering::Release);
                return Poll::Ready(given);
            }
            if self.door.close() {
                return Poll::Pending;
            }
        }
        self.door.state.store(WAITING, Ordering::Release);
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Somebody is about to take a step: whoever rings until then need not wake anybody.
    pub fn attend(&self) {
        self.door.state.store(POLLED, Ordering::Release);
    }

    /// Nobody's door any more, until the next step.
    pub fn forget(&self) {
        *self.door.task() = None;
    }
}

impl Default for Bell {
    fn default() -> Self {
        let door = Arc::new(Door { state: AtomicU8::new(WAITING), task: Mutex::default() });
        Bell { waker: Waker::from(Arc::clone(&door)), door }
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bell")
    }
}

impl Door {
    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_at(&self, waker: &Waker) {
        let mut task = self.task();
        if task.as_ref().is_none_or(|task| !task.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }

    /// Whether nobody rang since the last step began; whoever rings from now on wakes the task.
    fn close(&self) -> bool {
        self.state.compare_exchange(POLLED, WAITING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Wake for Door {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let noted = self.state.compare_exchange(POLLED, RUNG, Ordering::AcqRel, Ordering::Acquire);
        if noted == Err(WAITING) {
            // Not while the door is locked: whoever is woken may come to it at once.
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
    fn what_wakes_itself_is_polled_again_without_the_runtime() {
        let task = Arc::new(Task::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut polls = 0;
        let inner = pin!(poll_fn(|context| {
            polls += 1;
            context.waker().wake_by_ref();
            if polls == 3 { Poll::Ready(polls) } else { Poll::Pending }
        }));
        let mut outer = pin!(at_once(inner));
        assert_eq!(outer.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(3));
        assert_eq!(task.wakes(), 0);
    }

    #[test]
    fn what_never_stops_waking_itself_lets_others_have_their_turn() {
        let task = Arc::new(Task::default());
        let waker = Waker::from(Arc::clone(&task));
        let polls = AtomicUsize::new(0);
        let inner = pin!(poll_fn(|context| {
            polls.fetch_add(1, Ordering::Relaxed);
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        let mut outer = pin!(at_once(inner));
        for turn in 1..=3 {
            assert!(outer.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert_eq!((polls.load(Ordering::Relaxed), task.wakes()), (turn * MOST, turn));
        }
    }

    #[test]
    fn whoever_rings_later_wakes_the_task_that_polled_last_and_nobody_after_that() {
        let kept = Mutex::new(None::<Waker>);
        let mut bell = Bell::default();
        let mut step = |context: &mut Context<'_>| {
            *kept.lock().unwrap() = Some(context.waker().clone());
            Poll::<()>::Pending
        };
        for _ in 0..2 {
            let task = Arc::new(Task::default());
            let waker = Waker::from(Arc::clone(&task));
            assert!(bell.poll(&mut Context::from_waker(&waker), &mut step).is_pending());
            assert_eq!(task.wakes(), 0);
            kept.lock().unwrap().clone().unwrap().wake();
            assert_eq!(task.wakes(), 1);
            bell.forget();
            kept.lock().unwrap().take().unwrap().wake();
            assert_eq!(task.wakes(), 1);
        }
    }
}
