//! Fetches that tokens cause. The task that drives the refresher runs them: a request that is cancelled cancels no fetch. The
//! request that causes a fetch waits for it; every other waits for at most a second, and only so many of them do.
// S169

use std::sync::atomic::Ordering;

use super::JwksRefresher;
use crate::Deadlines;
use crate::jwks::fetch_demand::{FetchRequestOutcome, PendingFetch};
use crate::jwks::{KeySource as _, RefreshReason, RefreshResult};
use crate::profile::{Hardening, Refetch};

/// Keys that stay fresh for at least this long are not fetched again, without [`Hardening::KeyLifetime`].
// S166, V3
const UPSTREAM_FRESHNESS_MARGIN: std::time::Duration = std::time::Duration::from_secs(30);

impl JwksRefresher {
    /// Tells requests that a task runs [`JwksRefresher::run_due`] in a loop until the guard is dropped. Requests then leave
    /// fetches to that task; otherwise they run them themselves.
    pub fn attach_driver(&self) -> DriverGuard<'_> {
        self.drivers.fetch_add(1, Ordering::AcqRel);
        self.expects_driver.store(false, Ordering::Release);
        DriverGuard(self)
    }

    /// Tells requests that a task will attach itself in a moment.
    pub(crate) fn expect_driver(&self) {
        if self.drivers.load(Ordering::Acquire) == 0 {
            self.expects_driver.store(true, Ordering::Release);
        }
    }

    /// Deadlines of the requests that wait for a fetch. The task that drives the refresher has to expire them.
    pub fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    fn is_driven(&self) -> bool {
        self.drivers.load(Ordering::Acquire) > 0 || self.expects_driver.load(Ordering::Acquire)
    }

    /// See [`KeySource::refresh`](crate::jwks::KeySource::refresh).
    pub(super) async fn refresh_on_demand(&self, wanted: RefreshReason<'_>, tried: u64) -> RefreshResult {
        // A concurrent fetch finished between the attempt and this call.
        if self.version() != tried {
            return RefreshResult::AlreadyNewer;
        }
        let fetch = match self.request_fetch(wanted) {
            FetchRequestOutcome::Wait(fetch) => fetch,
            FetchRequestOutcome::Limited => return self.limited(wanted),
            FetchRequestOutcome::Busy => return busy(wanted),
        };
        let waiting = WaitGuard(self);
        self.schedule_changed.notify_one();
        if !self.is_driven() {
            self.run_due().await;
        } else if !self.wait_for(fetch, wanted).await {
            return busy(wanted);
        }
        drop(waiting);
        self.conclude(wanted, tried, fetch.is_own)
    }

    /// Whether a token's reason may cause a fetch under the profile, and within the limits.
    fn request_fetch(&self, wanted: RefreshReason<'_>) -> FetchRequestOutcome {
        let now = self.monotonic();
        let has_lifetime = self.profile.has(Hardening::KeyLifetime);
        let fresh_until = self.published.load().fresh_until;
        let mut demand = self.demand();
        match wanted {
            RefreshReason::NoKeys if has_lifetime => {
                demand.request(now, |limiter| limiter.try_acquire_without_keys(now))
            }
            RefreshReason::Kid(kid) if has_lifetime => {
                if !demand.limiter.may_exist(kid, now) {
                    return FetchRequestOutcome::Limited;
                }
                demand.request(now, |limiter| limiter.try_acquire(kid, now))
            }
            // A bad signature is not a reason to fetch: the key is known (H22).
            RefreshReason::Signature if has_lifetime => FetchRequestOutcome::Limited,
            // Upstream discovers by its schedule only (S161).
            RefreshReason::NoKeys => FetchRequestOutcome::Limited,
            RefreshReason::Kid(_) | RefreshReason::Signature
                if self.profile.facts().refetch == Refetch::OnEveryFailure
                    || now + UPSTREAM_FRESHNESS_MARGIN > fresh_until =>
            {
                demand.request(now, |_| true)
            }
            RefreshReason::Kid(_) | RefreshReason::Signature => FetchRequestOutcome::Limited,
        }
    }

    /// The result if no fetch is allowed now.
    fn limited(&self, wanted: RefreshReason<'_>) -> RefreshResult {
        let demand = self.demand();
        match (wanted, &demand.last_error) {
            (RefreshReason::Kid(_), Some(why)) if self.profile.has(Hardening::KeyLifetime) => {
                RefreshResult::Failed(why.clone())
            }
            _ => RefreshResult::Unchanged,
        }
    }

    /// Waits for the end of a fetch. False if it takes too long.
    async fn wait_for(&self, fetch: PendingFetch, wanted: RefreshReason<'_>) -> bool {
        let mut finished = self.finished.subscribe();
        let ended = async move {
            // The sender is part of this refresher.
            let _ = finished.wait_for(|number| *number >= fetch.number).await;
        };
        // Without any keys the issuer may be down: its users learn that at once.
        if fetch.is_own && wanted != RefreshReason::NoKeys {
            ended.await;
            return true;
        }
        self.deadlines.wait_until(fetch.deadline, ended).await.is_some()
    }

    /// The result after a fetch.
    fn conclude(&self, wanted: RefreshReason<'_>, tried: u64, is_own: bool) -> RefreshResult {
        // Upstream tries whatever a request returned, new or not.
        let keys = self.current();
        let has_key = |kid: &str| keys.as_ref().is_ok_and(|keys| keys.candidates(kid).next().is_some());
        if self.version() != tried {
            if is_own && matches!(wanted, RefreshReason::Kid(kid) if has_key(kid)) {
                self.demand().limiter.refund();
            }
            return if is_own { RefreshResult::Newer } else { RefreshResult::AlreadyNewer };
        }
        let mut demand = self.demand();
        match (wanted, &demand.last_error) {
            (RefreshReason::NoKeys, _) => RefreshResult::Unchanged,
            (_, Some(why)) => RefreshResult::Failed(why.clone()),
            (RefreshReason::Kid(kid), None) if self.profile.has(Hardening::KeyLifetime) => {
                if keys.is_ok() && !has_key(kid) {
                    demand.limiter.insert_miss(kid, self.monotonic());
                }
                RefreshResult::Unchanged
            }
            _ => RefreshResult::Unchanged,
        }
    }

    /// Begins the fetch that a token wants, or a scheduled one.
    pub(super) fn begin_fetch(&self) -> FetchGuard<'_> {
        let (number, by_token) = self.demand().begin(self.monotonic());
        FetchGuard { refresher: self, number, by_token }
    }
}

/// The result for a request that does not wait. Without keys the refusal says enough.
fn busy(wanted: RefreshReason<'_>) -> RefreshResult {
    match wanted {
        RefreshReason::NoKeys => RefreshResult::Unchanged,
        RefreshReason::Kid(_) | RefreshReason::Signature => {
            RefreshResult::Failed("the issuer has not answered yet, try again".to_owned())
        }
    }
}

/// See [`JwksRefresher::attach_driver`].
#[derive(Debug)]
pub struct DriverGuard<'r>(&'r JwksRefresher);

impl Drop for DriverGuard<'_> {
    fn drop(&mut self) {
        self.0.drivers.fetch_sub(1, Ordering::AcqRel);
        // Requests do not wait for a fetch that no task will begin.
        if self.0.demand().is_wanted() {
            drop(self.0.begin_fetch());
        }
    }
}

/// A request that waits for a fetch.
struct WaitGuard<'r>(&'r JwksRefresher);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.demand().leave();
    }
}

/// A fetch in flight. It ends when this is dropped, also if its task is cancelled.
pub(super) struct FetchGuard<'r> {
    refresher: &'r JwksRefresher,
    number: u64,
    /// A token wants it.
    pub(super) by_token: bool,
}

impl Drop for FetchGuard<'_> {
    fn drop(&mut self) {
        self.refresher.demand().end();
        self.refresher.finished.send_replace(self.number);
    }
}
