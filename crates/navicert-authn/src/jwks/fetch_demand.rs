//! What tokens want from an issuer's keys: decides whether a token starts a fetch, waits for the one in flight, or is answered at
//! once. Fetches run in the refresher's own task; a token that waits for one cannot cancel it.
// S169

use std::time::Duration;

use super::refetch_limiter::JwksRefetchLimiter;
use crate::deadlines::MAX_FETCH_WAIT;

/// Maximum number of requests that wait for the fetch of one issuer.
pub(super) const MAX_FETCH_WAITERS: usize = 256;

/// Fetches that tokens want. Times are readings of the monotonic clock.
#[derive(Debug, Default)]
pub(super) struct FetchDemand {
    pub(super) limiter: JwksRefetchLimiter,
    /// The fetch that is wanted or in flight.
    fetch: Option<WantedFetch>,
    /// Number of the last fetch.
    number: u64,
    waiters: usize,
    /// Why the last fetch failed, if it did.
    pub(super) last_error: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct WantedFetch {
    since: Duration,
    /// No task has begun it yet.
    is_waiting: bool,
    by_token: bool,
}

/// A fetch that a request may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PendingFetch {
    /// The fetch's number.
    pub(super) number: u64,
    /// This request has started it.
    pub(super) is_own: bool,
    /// When to stop waiting.
    pub(super) deadline: Duration,
}

/// What a request does about missing keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FetchRequestOutcome {
    /// Wait for this fetch.
    Wait(PendingFetch),
    /// Do not wait: the fetch takes too long, or too many requests wait for it.
    Busy,
    /// Do not wait: no fetch is allowed now.
    Limited,
}

impl FetchDemand {
    /// Joins the current fetch, or starts one if `may_start` allows it.
    pub(super) fn request(
        &mut self,
        now: Duration,
        may_start: impl FnOnce(&mut JwksRefetchLimiter) -> bool,
    ) -> FetchRequestOutcome {
        let (since, is_own) = match self.fetch {
            Some(fetch) => (fetch.since, false),
            None if may_start(&mut self.limiter) => {
                self.number += 1;
                self.fetch = Some(WantedFetch { since: now, is_waiting: true, by_token: true });
                (now, true)
            }
            None => return FetchRequestOutcome::Limited,
        };
        let deadline = since + MAX_FETCH_WAIT;
        if !is_own && (now >= deadline || self.waiters >= MAX_FETCH_WAITERS) {
            return FetchRequestOutcome::Busy;
        }
        self.waiters += 1;
        FetchRequestOutcome::Wait(PendingFetch { number: self.number, is_own, deadline })
    }

    /// A request has stopped waiting.
    pub(super) fn leave(&mut self) {
        self.waiters = self.waiters.saturating_sub(1);
    }

    /// Whether a token wants a fetch that has not begun.
    pub(super) fn is_wanted(&self) -> bool {
        self.fetch.is_some_and(|fetch| fetch.is_waiting)
    }

    /// Begins the wanted fetch, or another one. Returns its number and whether a token wants it.
    pub(super) fn begin(&mut self, now: Duration) -> (u64, bool) {
        let fetch = match self.fetch {
            Some(fetch) => WantedFetch { is_waiting: false, ..fetch },
            None => {
                self.number += 1;
                WantedFetch { since: now, is_waiting: false, by_token: false }
            }
        };
        self.fetch = Some(fetch);
        (self.number, fetch.by_token)
    }

    /// The fetch has ended, or was cancelled.
    pub(super) fn end(&mut self) {
        self.fetch = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(number: u64, is_own: bool, deadline: Duration) -> FetchRequestOutcome {
        FetchRequestOutcome::Wait(PendingFetch { number, is_own, deadline })
    }

    // S169
    #[test]
    fn requests_join_one_fetch_for_a_second_and_no_more_than_the_maximum() {
        let (mut demand, second) = (FetchDemand::default(), Duration::from_secs);
        assert_eq!(demand.request(second(5), |_| false), FetchRequestOutcome::Limited);
        assert!(!demand.is_wanted());
        assert_eq!(demand.request(second(5), |_| true), wait(1, true, second(6)));
        assert!(demand.is_wanted());
        for _ in 1..MAX_FETCH_WAITERS {
            assert_eq!(demand.request(second(5), |_| true), wait(1, false, second(6)));
        }
        assert_eq!(demand.request(second(5), |_| true), FetchRequestOutcome::Busy, "too many wait");
        demand.leave();
        assert_eq!(demand.begin(second(5)), (1, true));
        assert!(!demand.is_wanted());
        let late = Duration::from_millis(5_999);
        assert_eq!(demand.request(late, |_| true), wait(1, false, second(6)));
        for _ in 0..MAX_FETCH_WAITERS {
            demand.leave();
        }
        assert_eq!(
            demand.request(second(6), |_| true),
            FetchRequestOutcome::Busy,
            "the fetch takes too long"
        );
        demand.end();
        assert_eq!(demand.request(second(6), |_| true), wait(2, true, second(7)));
    }

    #[test]
    fn requests_join_a_scheduled_fetch() {
        let mut demand = FetchDemand::default();
        assert_eq!(demand.begin(Duration::ZERO), (1, false));
        assert_eq!(demand.request(Duration::ZERO, |_| false), wait(1, false, MAX_FETCH_WAIT));
    }
}
