//! A connection that wakes itself while it is polled is polled again at once. hyper does that whenever a handler asks for a
//! body that has come together with its head; by way of the runtime's queue it would wait behind others, and another
//! thread might be woken to take it over.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// So often in a row; then others have their turn.
const MOST: usize = 8;

/// Nobody polls: whoever rings wakes the task.
const WAITING: u8 = 0;
/// It is being polled.
const POLLED: u8 = 1;
/// It is being polled, and somebody rang meanwhile.
const RUNG: u8 = 2;

/// What the future gives.
pub(super) async fn at_once<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    let mut bell: Option<(Arc<Bell>, Waker)> = None;
    poll_fn(|context| {
        let same = bell.take().filter(|(bell, _)| bell.task.will_wake(context.waker()));
        let (bell, waker) = bell.insert(same.unwrap_or_else(|| Bell::of(context.waker())));
        for _ in 0..MOST {
            bell.state.store(POLLED, Ordering::Release);
            if let Poll::Ready(given) = future.as_mut().poll(&mut Context::from_waker(waker)) {
                return Poll::Ready(given);
            }
            if bell.state.compare_exchange(POLLED, WAITING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return Poll::Pending;
            }
        }
        bell.state.store(WAITING, Ordering::Release);
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Rings at the task's door, or only makes a note if somebody is at it already.
struct Bell {
    state: AtomicU8,
    task: Waker,
}

impl Bell {
    fn of(task: &Waker) -> (Arc<Self>, Waker) {
        let bell = Arc::new(Bell { state: AtomicU8::new(WAITING), task: task.clone() });
        (Arc::clone(&bell), Waker::from(bell))
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let noted = self.state.compare_exchange(POLLED, RUNG, Ordering::AcqRel, Ordering::Acquire);
        if noted == Err(WAITING) {
            self.task.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Mutex;
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
    fn whoever_rings_later_or_at_another_task_wakes_that_task() {
        let kept = Mutex::new(None::<Waker>);
        let inner = pin!(poll_fn(|context| {
            *kept.lock().unwrap() = Some(context.waker().clone());
            Poll::<()>::Pending
        }));
        let mut outer = pin!(at_once(inner));
        for _ in 0..2 {
            let task = Arc::new(Task::default());
            let waker = Waker::from(Arc::clone(&task));
            assert!(outer.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert_eq!(task.wakes(), 0);
            kept.lock().unwrap().take().unwrap().wake();
            assert_eq!(task.wakes(), 1);
        }
    }
}
