//! Connection slots of a listener. At the connection limit, a new connection evicts the longest-idle one, so idle
//! connections cannot lock out clients. A connection idle for less than `MIN_IDLE` is never evicted, so every
//! accepted client has time to send a request.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::unfinished_head::UnfinishedHead;
use crate::fairness::FlowId;
use crate::limits::ServerLimits;
use crate::metrics::ListenerMetrics;

/// A connection idle for less than this is never evicted.
pub(super) const MIN_IDLE: Duration = Duration::from_secs(1);

/// How long a new connection waits for a slot before it tries to evict again.
const EVICTION_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// One eviction in this many is logged.
const LOG_EVERY_EVICTIONS: u64 = 1_000;

/// All connection slots of one listener.
pub(super) struct ConnectionSlots {
    permits: Arc<Semaphore>,
    limit: usize,
    occupied: Mutex<HashMap<u64, Arc<SlotState>>>,
    /// Identifier of the next slot.
    next_id: AtomicU64,
    /// Start of the listener; idle times are measured from here.
    start: Instant,
    min_idle: Duration,
    metrics: Arc<ListenerMetrics>,
    /// Bytes of all unfinished request heads.
    unfinished: AtomicUsize,
    max_unfinished: usize,
}

impl ConnectionSlots {
    /// Creates the slots.
    pub(super) fn new(
        limit: usize,
        max_unfinished: usize,
        min_idle: Duration,
        metrics: Arc<ListenerMetrics>,
    ) -> Arc<Self> {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        Arc::new(ConnectionSlots {
            permits: Arc::new(Semaphore::new(limit)),
            limit,
            occupied: Mutex::default(),
            next_id: AtomicU64::new(0),
            start: Instant::now(),
            min_idle,
            metrics,
            unfinished: AtomicUsize::new(0),
            max_unfinished,
        })
    }

    /// Acquires a slot for a new connection. Waits while all other connections have active requests.
    pub(super) async fn acquire(self: &Arc<Self>) -> SlotGuard {
        loop {
            let permits = Arc::clone(&self.permits);
            let permit = match Arc::clone(&permits).try_acquire_owned() {
                Ok(permit) => Ok(Ok(permit)),
                Err(_) => {
                    self.evict_longest_idle();
                    tokio::time::timeout(EVICTION_POLL_INTERVAL, permits.acquire_owned()).await
                }
            };
            if let Ok(Ok(permit)) = permit {
                let state = Arc::new(SlotState::new(self.start));
                let id = self.next_id.fetch_add(1, Ordering::Relaxed);
                self.occupied().insert(id, Arc::clone(&state));
                return SlotGuard { state, id, slots: Arc::clone(self), _permit: permit };
            }
        }
    }

    /// Evicts an idle connection when another resource, such as file descriptors, is exhausted and many connections
    /// are open.
    pub(super) fn evict_if_crowded(&self) {
        if self.occupied().len() >= self.limit / 4 {
            self.evict_longest_idle();
        }
    }

    /// Evicts the longest-idle connection, if one has been idle for at least `min_idle`.
    fn evict_longest_idle(&self) {
        let latest = nanoseconds(self.start.elapsed().saturating_sub(self.min_idle));
        let occupied = self.occupied();
        let idle = occupied.values().filter(|state| state.is_idle());
        let idle = idle.filter(|state| state.idle_since.load(Ordering::Relaxed) <= latest);
        let Some(state) = idle.min_by_key(|state| state.idle_since.load(Ordering::Relaxed)) else { return };
        state.evict.notify_one();
        drop(occupied);
        self.count_evictions(1, "connection limit reached, evicting idle connections (`limits.connections`)");
    }

    /// Counts evictions, and logs some of them.
    fn count_evictions(&self, count: u64, reason: &'static str) {
        for _ in 0..count {
            if self.metrics.count_eviction().is_multiple_of(LOG_EVERY_EVICTIONS) {
                tracing::warn!(event = "connections_evicted", connections = self.limit, "{reason}");
            }
        }
    }

    /// Records that the unfinished head of a connection changed from `before` to `now` bytes. Above the limit of all
    /// heads, closes connections of the address that holds the most.
    pub(super) fn record_unfinished(&self, slot: &SlotState, before: usize, now: usize) {
        slot.unfinished.store(now, Ordering::Relaxed);
        let total = match now.checked_sub(before) {
            Some(more) => self.unfinished.fetch_add(more, Ordering::Relaxed).saturating_add(more),
            None => self.unfinished.fetch_sub(before.saturating_sub(now), Ordering::Relaxed),
        };
        if total > self.max_unfinished && now > before {
            self.evict_unfinished();
        }
    }

    /// Closes the connections with the largest unfinished heads, of the address with the most bytes first, until an
    /// eighth of the limit is free: the next connections do not search again.
    fn evict_unfinished(&self) {
        let mut peers: HashMap<Option<FlowId>, PeerHeads> = HashMap::new();
        let mut total = 0usize;
        for state in self.occupied().values().filter(|state| !state.is_evicted.load(Ordering::Relaxed)) {
            let bytes = state.unfinished.load(Ordering::Relaxed);
            if bytes > 0 && state.is_idle() {
                let PeerHeads { held, heads } = peers.entry(state.peer.get().copied()).or_default();
                *held = held.saturating_add(bytes);
                heads.push((bytes, Arc::clone(state)));
                total = total.saturating_add(bytes);
            }
        }
        for PeerHeads { heads, .. } in peers.values_mut() {
            heads.sort_unstable_by_key(|(bytes, _)| *bytes);
        }
        let allowed = self.max_unfinished.saturating_sub(self.max_unfinished / 8);
        let mut evicted = 0u64;
        while total > allowed {
            let Some(PeerHeads { held, heads }) = peers.values_mut().max_by_key(|peer| peer.held) else {
                break;
            };
            let Some((bytes, state)) = heads.pop() else { break };
            *held = held.saturating_sub(bytes);
            total = total.saturating_sub(bytes);
            state.is_evicted.store(true, Ordering::Relaxed);
            state.evict.notify_one();
            evicted = evicted.saturating_add(1);
        }
        self.count_evictions(
            evicted,
            "limit of unfinished request heads reached, closing the largest \
                                       (`limits.unfinishedBytes`)",
        );
    }

    /// Waits until all slots are free.
    pub(super) async fn wait_until_empty(&self) {
        let all = u32::try_from(self.limit).unwrap_or(u32::MAX);
        let _ = self.permits.acquire_many(all).await;
    }

    fn occupied(&self) -> MutexGuard<'_, HashMap<u64, Arc<SlotState>>> {
        self.occupied.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Unfinished request heads of one client address.
#[derive(Default)]
struct PeerHeads {
    /// Bytes of all of them.
    held: usize,
    /// Bytes of each, and its connection.
    heads: Vec<(usize, Arc<SlotState>)>,
}

/// Holds a slot until it is dropped.
pub(super) struct SlotGuard {
    state: Arc<SlotState>,
    id: u64,
    slots: Arc<ConnectionSlots>,
    _permit: OwnedSemaphorePermit,
}

impl SlotGuard {
    pub(super) fn state(&self) -> &Arc<SlotState> {
        &self.state
    }

    /// Counts the unfinished request heads of this connection.
    pub(super) fn unfinished_head(&self, limits: &ServerLimits) -> UnfinishedHead {
        UnfinishedHead::new(Arc::clone(&self.slots), Arc::clone(&self.state), limits)
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        self.slots.occupied().remove(&self.id);
    }
}

/// Keeps the slot of a connection after HTTP has ended on it, until the tunnel through it ends. It is the tunnel's
/// connection that counts towards the limit, and that a shutdown waits for.
#[derive(Clone)]
pub(crate) struct TunnelSlot {
    _held: Arc<(ActiveRequest, Arc<SlotGuard>)>,
}

impl TunnelSlot {
    pub(super) fn new(slot: Arc<SlotGuard>) -> Self {
        TunnelSlot { _held: Arc::new((slot.state.begin_request(), slot)) }
    }
}

/// Activity of one connection: number of active requests, or since when it is idle. A connection with an incomplete
/// request head is idle.
#[derive(Debug)]
pub(super) struct SlotState {
    active_requests: AtomicUsize,
    /// Nanoseconds since the start of the listener.
    idle_since: AtomicU64,
    start: Instant,
    evict: Notify,
    has_accepted_token: AtomicBool,
    /// Bytes of the unfinished request head.
    unfinished: AtomicUsize,
    /// Part of a response waits for the client.
    has_unsent_data: AtomicBool,
    /// Chosen for eviction because of its unfinished head.
    is_evicted: AtomicBool,
    /// The client address, once it is known.
    peer: OnceLock<FlowId>,
}

impl SlotState {
    fn new(start: Instant) -> Self {
        let since = AtomicU64::new(nanoseconds(start.elapsed()));
        SlotState {
            active_requests: AtomicUsize::new(0),
            idle_since: since,
            start,
            evict: Notify::new(),
            has_accepted_token: AtomicBool::new(false),
            unfinished: AtomicUsize::new(0),
            has_unsent_data: AtomicBool::new(false),
            is_evicted: AtomicBool::new(false),
            peer: OnceLock::new(),
        }
    }

    /// Records whether part of a response waits for the client.
    pub(super) fn set_unsent_data(&self, has_unsent_data: bool) {
        self.has_unsent_data.store(has_unsent_data, Ordering::Relaxed);
    }

    /// Whether part of a request or of a response is in a buffer.
    pub(super) fn has_buffered_data(&self) -> bool {
        self.unfinished.load(Ordering::Relaxed) > 0 || self.has_unsent_data.load(Ordering::Relaxed)
    }

    pub(super) fn set_peer(&self, flow: FlowId) {
        let _ = self.peer.set(flow);
    }

    pub(super) fn has_accepted_token(&self) -> bool {
        self.has_accepted_token.load(Ordering::Relaxed)
    }

    pub(super) fn token_accepted(&self) {
        self.has_accepted_token.store(true, Ordering::Relaxed);
    }

    /// Registers a request that is active until its response body has been consumed.
    pub(super) fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        self.active_requests.fetch_add(1, Ordering::AcqRel);
        ActiveRequest(Arc::clone(self))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.active_requests.load(Ordering::Acquire) == 0
    }

    /// Completes when this connection is idle and has been chosen for eviction.
    pub(super) async fn evicted(&self) {
        loop {
            self.evict.notified().await;
            if self.is_idle() {
                return;
            }
        }
    }

    /// Completes when this connection has been idle for the given time.
    pub(super) async fn idle_for(&self, limit: Duration) {
        let mut check_at = Instant::now();
        loop {
            let until = self.start + Duration::from_nanos(self.idle_since.load(Ordering::Relaxed)) + limit;
            if self.is_idle() && until <= check_at {
                return;
            }
            // A connection that is active now cannot have been idle for that long before then.
            check_at = if self.is_idle() { until } else { check_at + limit };
            tokio::time::sleep_until(check_at).await;
            check_at = Instant::now();
        }
    }
}

/// An active request of a connection.
pub(super) struct ActiveRequest(Arc<SlotState>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let state = &self.0;
        state.idle_since.store(nanoseconds(state.start.elapsed()), Ordering::Relaxed);
        state.active_requests.fetch_sub(1, Ordering::AcqRel);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use navicert_testkit::wait;
    use navicert_types::SystemClock;

    use super::*;

    fn slots(limit: usize) -> Arc<ConnectionSlots> {
        ConnectionSlots::new(
            limit,
            1_000,
            Duration::ZERO,
            ListenerMetrics::new("test", Arc::new(SystemClock)),
        )
    }

    /// Whether the future is ready without further events.
    async fn is_done(future: impl Future<Output = ()>) -> bool {
        tokio::time::timeout(Duration::ZERO, future).await.is_ok()
    }

    #[tokio::test]
    async fn evicts_longest_idle_connection_first_and_never_an_active_one() {
        let slots = slots(3);
        let (first, second, third) = (slots.acquire().await, slots.acquire().await, slots.acquire().await);
        let active_second = second.state().begin_request();
        // The first connection had a request since the third was accepted, so the third is idle longest.
        drop(first.state().begin_request());
        slots.evict_longest_idle();
        assert!(is_done(third.state().evicted()).await);
        drop(third);
        let third = slots.acquire().await;
        slots.evict_longest_idle();
        assert!(is_done(first.state().evicted()).await);
        drop(first);
        let active = third.state().begin_request();
        let _last = slots.acquire().await;
        // Only the last connection is idle.
        slots.evict_longest_idle();
        assert!(!is_done(second.state().evicted()).await);
        assert!(!is_done(third.state().evicted()).await);
        drop((active_second, active));
    }

    #[tokio::test(start_paused = true)]
    async fn new_connection_waits_until_an_active_one_becomes_idle() {
        let slots = slots(1);
        let only = slots.acquire().await;
        let active = only.state().begin_request();
        let waiting = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.acquire().await }
        });
        assert!(tokio::time::timeout(2 * EVICTION_POLL_INTERVAL, only.state().evicted()).await.is_err());
        assert!(!waiting.is_finished());
        drop(active);
        only.state().evicted().await;
        drop(only);
        wait::within("a place", waiting).await.unwrap();
    }

    #[tokio::test]
    async fn keeps_connections_that_were_active_recently() {
        let metrics = ListenerMetrics::new("test", Arc::new(SystemClock));
        let slots = ConnectionSlots::new(1, 1_000, Duration::from_secs(3600), metrics);
        let slot = slots.acquire().await;
        slots.evict_longest_idle();
        drop(slot.state().begin_request());
        slots.evict_longest_idle();
        assert!(!is_done(slot.state().evicted()).await);
    }

    #[tokio::test]
    async fn closes_the_largest_unfinished_heads_of_the_peer_that_holds_the_most() {
        let admission = crate::fairness::Admission::default();
        let flow = |address: &str| admission.peer_flow(address.parse().unwrap());
        let slots = slots(20);
        let mut flood = Vec::new();
        for number in 0..10 {
            let slot = slots.acquire().await;
            slot.state().set_peer(flow("10.0.0.1"));
            slots.record_unfinished(slot.state(), 0, 50 + number);
            flood.push(slot);
        }
        let other = slots.acquire().await;
        other.state().set_peer(flow("10.0.0.2"));
        slots.record_unfinished(other.state(), 0, 400);
        assert!(!is_done(flood[9].state().evicted()).await, "945 bytes are allowed");
        slots.record_unfinished(flood[0].state(), 50, 110);
        assert!(is_done(flood[0].state().evicted()).await, "the largest of the peer with the most");
        assert!(is_done(flood[9].state().evicted()).await, "an eighth is free again");
        assert!(!is_done(flood[8].state().evicted()).await);
        assert!(!is_done(other.state().evicted()).await, "the largest head, of a peer with less");
        slots.record_unfinished(flood[0].state(), 110, 0);
        slots.record_unfinished(flood[9].state(), 59, 0);
        assert_eq!(slots.unfinished.load(Ordering::Relaxed), 836);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_with_a_streaming_response_is_not_idle() {
        let slots = slots(1);
        let slot = slots.acquire().await;
        let (state, limit) = (slot.state(), Duration::from_millis(20));
        let active = state.begin_request();
        assert!(tokio::time::timeout(5 * limit, state.idle_for(limit)).await.is_err());
        drop(active);
        let done = Instant::now();
        wait::within("rest", state.idle_for(limit)).await;
        assert_eq!(done.elapsed(), limit);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_time_starts_at_the_end_of_the_last_response() {
        let slots = slots(1);
        let slot = slots.acquire().await;
        let (state, limit) = (Arc::clone(slot.state()), Duration::from_secs(10));
        let start = Instant::now();
        let idle = tokio::spawn({
            let state = Arc::clone(&state);
            async move { state.idle_for(limit).await }
        });
        for _ in 0..3 {
            let active = state.begin_request();
            tokio::time::advance(Duration::from_secs(4)).await;
            drop(active);
            tokio::time::advance(Duration::from_secs(3)).await;
        }
        idle.await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 3 * 7 - 3 + 10);
    }
}
