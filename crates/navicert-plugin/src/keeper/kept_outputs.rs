//! What the keeper holds: outputs until they expire, and the runs that are under way. Knows no socket.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use navicert_types::{Clock, Secret, Timestamp};

use super::command_key::CommandKey;
use super::wire::{KeeperRequest, RunResult};

/// The most outputs that are kept; the one that expires first is removed for another.
const MAX_ENTRIES: usize = 64;
/// The most processes that are remembered per output.
const MAX_CLIENTS: usize = 4096;
/// The most connections at a time. More are closed, and those processes run the program themselves.
const MAX_CONNECTIONS: usize = 512;
/// How long a keeper without an output waits for the next request.
const EMPTY_GRACE: Duration = Duration::from_secs(10);
/// How long a keeper that is not asked keeps its outputs.
const MAX_IDLE: Duration = Duration::from_secs(30 * 60);
/// The longest wait before the state is looked at again: wall time may have jumped.
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The outputs and the runs.
#[derive(Debug)]
pub(super) struct KeptOutputs {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<CommandKey, Entry>,
    flights: HashMap<CommandKey, Arc<Flight>>,
    connections: usize,
    /// The time of the last request, on the monotonic clock.
    last_used: Duration,
    is_stopped: bool,
}

struct Entry {
    output: Arc<Secret<Vec<u8>>>,
    fresh_until: Timestamp,
    /// The same on the monotonic clock: a wall clock that is set back does not make an output last longer.
    expires_at: Duration,
    obtained_at: Duration,
    /// The processes that have it.
    given_to: BTreeSet<u32>,
}

/// What a request leads to.
#[derive(Debug)]
pub(super) enum Joined {
    Kept(Arc<Secret<Vec<u8>>>),
    /// The caller runs the program.
    Lead(Arc<Flight>),
    /// Another process does.
    Follow(Arc<Flight>),
}

/// One run of a program, by the process that asked first.
#[derive(Debug, Default)]
pub(super) struct Flight {
    outcome: Mutex<Option<Outcome>>,
    ended: Condvar,
}

/// How a run ended.
#[derive(Clone)]
pub(super) enum Outcome {
    Output(Arc<Secret<Vec<u8>>>),
    Failure(i32),
    /// The process has gone without a result: another one runs the program.
    Abandoned,
}

impl KeptOutputs {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let state = State { last_used: clock.monotonic(), ..State::default() };
        KeptOutputs { clock, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Counts a connection until the guard is dropped; `None` if there are too many.
    pub(super) fn connected(self: &Arc<Self>) -> Option<ConnectionGuard> {
        let mut state = self.lock();
        if state.is_stopped || state.connections >= MAX_CONNECTIONS {
            return None;
        }
        state.connections = state.connections.saturating_add(1);
        Some(ConnectionGuard(Arc::clone(self)))
    }

    /// The kept output, or the run that will give it.
    pub(super) fn join(&self, request: &KeeperRequest) -> Joined {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        state.last_used = now;
        self.remove_expired(&mut state);
        if let Some(entry) = state.entries.get_mut(&request.key) {
            let was_given = request.client.is_some_and(|client| entry.given_to.contains(&client));
            let is_young = now.saturating_sub(entry.obtained_at) < request.max_age;
            if !was_given && is_young {
                entry.give_to(request.client);
                return Joined::Kept(Arc::clone(&entry.output));
            }
            // Its client was refused with it: it is of no use to others either.
            if was_given {
                state.entries.remove(&request.key);
            }
        }
        if let Some(flight) = state.flights.get(&request.key) {
            return Joined::Follow(Arc::clone(flight));
        }
        let flight = Arc::new(Flight::default());
        state.flights.insert(request.key, Arc::clone(&flight));
        Joined::Lead(flight)
    }

    /// Ends a run: keeps its output, and tells the waiting processes. `None`: the process has gone.
    pub(super) fn end(&self, request: &KeeperRequest, flight: &Arc<Flight>, result: Option<RunResult>) {
        let mut state = self.lock();
        state.flights.remove(&request.key);
        let outcome = match result {
            Some(RunResult::Output { fresh_until, output }) => {
                let output = Arc::new(output);
                self.keep(&mut state, request, fresh_until, &output);
                Outcome::Output(output)
            }
            Some(RunResult::Failure(code)) => Outcome::Failure(code),
            None => Outcome::Abandoned,
        };
        drop(state);
        flight.end(outcome);
        self.changed.notify_all();
    }

    /// Remembers that a waiting process got the output of a run.
    pub(super) fn record_given(&self, request: &KeeperRequest) {
        if let Some(entry) = self.lock().entries.get_mut(&request.key) {
            entry.give_to(request.client);
        }
    }

    fn keep(
        &self,
        state: &mut State,
        request: &KeeperRequest,
        fresh_until: Timestamp,
        output: &Arc<Secret<Vec<u8>>>,
    ) {
        let (now, wall) = (self.clock.monotonic(), self.clock.now());
        let Ok(left) = Duration::try_from(fresh_until.duration_since(wall)) else { return };
        if left.is_zero() {
            return;
        }
        if state.entries.len() >= MAX_ENTRIES {
            let first = state.entries.iter().min_by_key(|(_, entry)| entry.expires_at).map(|(key, _)| *key);
            first.and_then(|key| state.entries.remove(&key));
        }
        let mut entry = Entry {
            output: Arc::clone(output),
            fresh_until,
            expires_at: now.saturating_add(left),
            obtained_at: now,
            given_to: BTreeSet::new(),
        };
        entry.give_to(request.client);
        state.entries.insert(request.key, entry);
    }

    fn remove_expired(&self, state: &mut State) {
        let (now, wall) = (self.clock.monotonic(), self.clock.now());
        state.entries.retain(|_, entry| now < entry.expires_at && wall <= entry.fresh_until);
    }

    /// Removes every output and returns how many there were.
    pub(super) fn clear(&self) -> u32 {
        let mut state = self.lock();
        let count = u32::try_from(state.entries.len()).unwrap_or(u32::MAX);
        state.entries.clear();
        count
    }

    /// Ends the keeper.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// Waits until there is nothing to keep and no request for a while, or until the keeper is stopped.
    pub(super) fn wait_until_idle(&self) {
        let mut state = self.lock();
        while let Some(wait) = self.next_check(&mut state) {
            let waited = self.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_stopped = true;
        state.entries.clear();
    }

    /// How long to wait; `None` to end. Removes what has expired.
    fn next_check(&self, state: &mut State) -> Option<Duration> {
        self.remove_expired(state);
        if state.is_stopped {
            return None;
        }
        let now = self.clock.monotonic();
        let limit = if state.entries.is_empty() { EMPTY_GRACE } else { MAX_IDLE };
        let idle_at = state.last_used.saturating_add(limit);
        if now >= idle_at && state.connections == 0 {
            return None;
        }
        let expiry = state.entries.values().map(|entry| entry.expires_at).min();
        let next = expiry.map_or(idle_at, |expiry| expiry.min(idle_at)).saturating_sub(now);
        // A connection that is still open after the limit is looked at again.
        Some(next.clamp(Duration::from_millis(100), MAX_CHECK_INTERVAL))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn give_to(&mut self, client: Option<u32>) {
        if self.given_to.len() >= MAX_CLIENTS {
            self.given_to.clear();
        }
        self.given_to.extend(client);
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("fresh_until", &self.fresh_until).finish_non_exhaustive()
    }
}

impl Flight {
    fn end(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        self.ended.notify_all();
    }

    /// Waits at most this long for the end.
    pub(super) fn wait(&self, at_most: Duration) -> Option<Outcome> {
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended.wait_timeout_while(outcome, at_most, |outcome| outcome.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Output(_) => f.write_str("Output(…)"),
            Outcome::Failure(code) => write!(f, "Failure({code})"),
            Outcome::Abandoned => f.write_str("Abandoned"),
        }
    }
}

/// Counts one connection.
#[derive(Debug)]
pub(super) struct ConnectionGuard(Arc<KeptOutputs>);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.connections = state.connections.saturating_sub(1);
        drop(state);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
