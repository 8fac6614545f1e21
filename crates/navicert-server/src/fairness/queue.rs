//! Seats with a queue per flow. Free seats go round-robin to the flows that wait, so a long queue delays only its own
//! flow.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use super::shares::{FlowMap, Shares, lock};
use super::{FlowId, Overloaded};

/// How long a request waits for a seat before it gets a 429.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);

/// Seats of one stage. Without contention, a seat costs one short lock when it is taken and one when it is returned.
#[derive(Debug)]
pub(super) struct FairQueue {
    state: Mutex<QueueState>,
}

#[derive(Debug)]
struct QueueState {
    seats: Shares,
    /// Places in the queues, shared like seats: a flow alone may fill most of them.
    places: Shares,
    /// Waiting requests by flow; no flow has an empty queue.
    queues: FlowMap<VecDeque<Arc<Waiter>>>,
    /// Flows with waiting requests, in the order of their turns.
    turns: VecDeque<FlowId>,
}

/// A waiting request.
#[derive(Debug, Default)]
struct Waiter {
    is_granted: AtomicBool,
    granted: Notify,
}

/// Holds a seat until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat<'q> {
    queue: &'q FairQueue,
    flow: FlowId,
}

impl FairQueue {
    /// `limit` seats, and as many places in queues.
    pub(super) fn new(limit: usize) -> Self {
        FairQueue {
            state: Mutex::new(QueueState {
                seats: Shares::new(limit),
                places: Shares::new(limit),
                queues: FlowMap::default(),
                turns: VecDeque::new(),
            }),
        }
    }

    /// A seat for a request of this flow, now or after waiting for one.
    pub(super) async fn acquire(&self, flow: FlowId) -> Result<Seat<'_>, Overloaded> {
        match self.take_or_wait(flow)? {
            None => Ok(Seat { queue: self, flow }),
            // Boxed: rare, and the future of every request would have space for it.
            Some(waiter) => Box::pin(self.wait(flow, waiter)).await,
        }
    }

    /// Takes a seat, or a place in the flow's queue.
    fn take_or_wait(&self, flow: FlowId) -> Result<Option<Arc<Waiter>>, Overloaded> {
        let mut state = lock(&self.state);
        let has_queue = !state.turns.is_empty() && state.queues.contains_key(&flow);
        if !has_queue && state.seats.try_take(flow, 1) {
            return Ok(None);
        }
        if !state.places.try_take(flow, 1) {
            return Err(Overloaded);
        }
        let waiter = Arc::<Waiter>::default();
        state.queues.entry(flow).or_default().push_back(Arc::clone(&waiter));
        if !has_queue {
            state.turns.push_back(flow);
        }
        Ok(Some(waiter))
    }

    async fn wait(&self, flow: FlowId, waiter: Arc<Waiter>) -> Result<Seat<'_>, Overloaded> {
        let waiting = Waiting { queue: self, flow, waiter };
        let granted = tokio::time::timeout(QUEUE_TIMEOUT, waiting.waiter.granted.notified()).await;
        let seat = granted.map(|()| Seat { queue: self, flow });
        if seat.is_ok() {
            // The seat is this request's now.
            waiting.waiter.is_granted.store(false, Ordering::Release);
        }
        seat.map_err(|_| Overloaded)
    }
}

impl QueueState {
    /// Gives free seats to waiting requests, one flow after another.
    fn grant(&mut self) {
        let mut over_share = 0usize;
        while over_share < self.turns.len() {
            let Some(flow) = self.turns.pop_front() else { return };
            let Some(queue) = self.queues.get_mut(&flow) else { continue };
            if !self.seats.try_take(flow, 1) {
                self.turns.push_back(flow);
                over_share = over_share.saturating_add(1);
                continue;
            }
            over_share = 0;
            if let Some(waiter) = queue.pop_front() {
                waiter.is_granted.store(true, Ordering::Release);
                waiter.granted.notify_one();
                self.places.give_back(flow, 1);
            }
            if queue.is_empty() {
                self.queues.remove(&flow);
            } else {
                self.turns.push_back(flow);
            }
        }
    }

    /// Removes a request that no longer waits.
    fn remove(&mut self, flow: FlowId, waiter: &Arc<Waiter>) {
        let Some(queue) = self.queues.get_mut(&flow) else { return };
        let before = queue.len();
        queue.retain(|other| !Arc::ptr_eq(other, waiter));
        let (after, removed) = (queue.len(), before.saturating_sub(queue.len()));
        if removed > 0 {
            self.places.give_back(flow, removed);
        }
        if after == 0 {
            self.queues.remove(&flow);
            self.turns.retain(|other| *other != flow);
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.queue.state);
        state.seats.give_back(self.flow, 1);
        if !state.turns.is_empty() {
            state.grant();
        }
    }
}

/// A request in a queue. Leaves it when dropped, with the seat that it may have been granted.
struct Waiting<'q> {
    queue: &'q FairQueue,
    flow: FlowId,
    waiter: Arc<Waiter>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.queue.state);
        state.remove(self.flow, &self.waiter);
        if self.waiter.is_granted.load(Ordering::Acquire) {
            // Granted, but the client has disconnected or the time was over.
            state.seats.give_back(self.flow, 1);
            state.grant();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    async fn seats(queue: &FairQueue, flow: u64, count: usize) -> Vec<Seat<'_>> {
        let mut seats = Vec::new();
        for _ in 0..count {
            seats.push(queue.acquire(FlowId(flow)).await.unwrap());
        }
        seats
    }

    fn is_empty(queue: &FairQueue) -> bool {
        let state = lock(&queue.state);
        state.queues.is_empty() && state.turns.is_empty()
    }

    #[tokio::test(start_paused = true)]
    async fn flooding_flow_leaves_a_seat_for_another() {
        let queue = FairQueue::new(90);
        let held = seats(&queue, 1, 80).await;
        let mut own = pin!(queue.acquire(FlowId(1)));
        assert!(poll(own.as_mut()).is_pending(), "above its share");
        let other = seats(&queue, 2, 8).await;
        drop((held, other));
        assert!(poll(own).is_ready());
        assert!(is_empty(&queue));
    }

    #[tokio::test(start_paused = true)]
    async fn free_seats_go_round_robin_to_waiting_flows() {
        let queue = FairQueue::new(4);
        let mut held = seats(&queue, 1, 4).await;
        let mut flood = Vec::new();
        for _ in 0..2 {
            flood.push(Box::pin(queue.acquire(FlowId(1))));
            assert!(poll(flood.last_mut().unwrap().as_mut()).is_pending());
        }
        let mut other = pin!(queue.acquire(FlowId(2)));
        assert!(poll(other.as_mut()).is_pending(), "no seat is free");
        held.pop();
        assert!(poll(flood[0].as_mut()).keep_if_ready(&mut held));
        held.pop();
        assert!(poll(other.as_mut()).is_ready(), "before the second request of the flood");
        assert!(poll(flood[1].as_mut()).keep_if_ready(&mut held), "the seat was returned at once");
    }

    trait Kept<'q> {
        fn keep_if_ready(self, held: &mut Vec<Seat<'q>>) -> bool;
    }

    impl<'q> Kept<'q> for Poll<Result<Seat<'q>, Overloaded>> {
        fn keep_if_ready(self, held: &mut Vec<Seat<'q>>) -> bool {
            let Poll::Ready(Ok(seat)) = self else { return false };
            held.push(seat);
            true
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rejects_a_request_of_a_flow_whose_queue_is_full() {
        let queue = FairQueue::new(1);
        let held = seats(&queue, 1, 1).await;
        let mut waiting = pin!(queue.acquire(FlowId(1)));
        assert!(poll(waiting.as_mut()).is_pending());
        assert_eq!(queue.acquire(FlowId(1)).await.unwrap_err(), Overloaded);
        drop(held);
        assert!(poll(waiting).is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn rejects_a_request_that_waited_too_long() {
        let queue = FairQueue::new(1);
        let held = seats(&queue, 1, 1).await;
        let started = tokio::time::Instant::now();
        assert_eq!(queue.acquire(FlowId(2)).await.unwrap_err(), Overloaded);
        assert_eq!(started.elapsed(), QUEUE_TIMEOUT);
        assert!(is_empty(&queue));
        drop(held);
        assert_eq!(seats(&queue, 2, 1).await.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn cancelled_request_returns_the_seat_it_was_granted() {
        let queue = FairQueue::new(1);
        let held = seats(&queue, 1, 1).await;
        let mut cancelled = Box::pin(queue.acquire(FlowId(2)));
        assert!(poll(cancelled.as_mut()).is_pending());
        drop(held);
        assert!(is_empty(&queue), "granted, not yet polled");
        drop(cancelled);
        assert_eq!(seats(&queue, 3, 1).await.len(), 1);
        let held = seats(&queue, 1, 1).await;
        let mut cancelled = Box::pin(queue.acquire(FlowId(2)));
        assert!(poll(cancelled.as_mut()).is_pending());
        drop(cancelled);
        assert!(is_empty(&queue));
        drop(held);
    }
}
