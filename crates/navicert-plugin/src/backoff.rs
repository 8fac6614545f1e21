//! Exponential back-off between failed runs.
// C441

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use navicert_types::Clock;
use navicert_types::backoff::{BackoffSettings, random_fraction};

/// Counts consecutive failures and computes the delay before the next attempt, on the monotonic clock.
///
/// It does not wait itself. Callers never delay the first use or an explicit request of the user.
// C413
pub struct Backoff {
    settings: BackoffSettings,
    clock: Arc<dyn Clock>,
    random: Box<dyn FnMut() -> f64 + Send + Sync>,
    failures: u32,
    not_before: Option<Duration>,
}

impl Backoff {
    /// Starts without failures.
    pub fn new(settings: BackoffSettings, clock: Arc<dyn Clock>) -> Self {
        Self::with_random(settings, clock, random_fraction)
    }

    /// Uses this source of random numbers from 0 to 1 for the jitter; for tests.
    pub fn with_random(
        settings: BackoffSettings,
        clock: Arc<dyn Clock>,
        random: impl FnMut() -> f64 + Send + Sync + 'static,
    ) -> Self {
        Backoff { settings, clock, random: Box::new(random), failures: 0, not_before: None }
    }

    /// Records a failed run and returns the delay before the next one.
    pub fn record_failure(&mut self) -> Duration {
        self.record_failure_with_min_delay(Duration::ZERO)
    }

    /// Like [`Backoff::record_failure`], with a delay of at least `floor`: for failed interactive runs.
    // C443
    pub fn record_failure_with_min_delay(&mut self, floor: Duration) -> Duration {
        let wait = self.settings.delay(self.failures, (self.random)()).max(floor);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(self.clock.monotonic().saturating_add(wait));
        wait
    }

    /// Records a successful run and resets the count.
    pub fn record_success(&mut self) {
        self.failures = 0;
        self.not_before = None;
    }

    /// Time until the next attempt may start; `None` means now.
    pub fn remaining(&self) -> Option<Duration> {
        let remaining = self.not_before?.saturating_sub(self.clock.monotonic());
        (!remaining.is_zero()).then_some(remaining)
    }

    /// Number of consecutive failures.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

impl fmt::Debug for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backoff")
            .field("settings", &self.settings)
            .field("failures", &self.failures)
            .field("not_before", &self.not_before)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use navicert_types::clock::ManualClock;

    fn backoff(clock: &Arc<ManualClock>, share: f64) -> Backoff {
        Backoff::with_random(BackoffSettings::default(), Arc::clone(clock) as Arc<dyn Clock>, move || share)
    }

    fn fail(backoff: &mut Backoff, times: usize) {
        for _ in 0..times {
            backoff.record_failure();
        }
    }

    #[test]
    fn delay_doubles_up_to_thirty_seconds() {
        // C441: min(30 s, 1 s · 2^(n−1))
        let mut backoff = backoff(&Arc::new(ManualClock::at(0)), 0.5);
        let waits: Vec<_> = (0..8).map(|_| backoff.record_failure().as_secs_f64()).collect();
        assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
        for _ in 0..100 {
            assert_eq!(backoff.record_failure(), Duration::from_secs(30), "the doubling never overflows");
        }
    }

    #[test]
    fn jitter_stays_within_twenty_percent() {
        let clock = Arc::new(ManualClock::at(0));
        for (share, first, longest) in [(0.0, 800, 24_000), (1.0, 1_200, 36_000), (7.0, 1_200, 36_000)] {
            let mut backoff = backoff(&clock, share);
            assert_eq!(backoff.record_failure(), Duration::from_millis(first));
            fail(&mut backoff, 10);
            assert_eq!(backoff.record_failure(), Duration::from_millis(longest));
        }
    }

    #[test]
    fn delay_starts_at_the_failure_on_the_monotonic_clock() {
        // C441, C413
        let clock = Arc::new(ManualClock::at(1_000_000));
        let mut backoff = backoff(&clock, 0.5);
        assert_eq!(backoff.remaining(), None, "first use is never delayed");
        clock.advance(Duration::from_secs(100));
        backoff.record_failure();
        assert_eq!(backoff.remaining(), Some(Duration::from_secs(1)));
        clock.set_wall(navicert_types::Timestamp::UNIX_EPOCH);
        assert_eq!(backoff.remaining(), Some(Duration::from_secs(1)), "wall time does not matter");
        clock.advance(Duration::from_millis(999));
        assert_eq!(backoff.remaining(), Some(Duration::from_millis(1)));
        clock.advance(Duration::from_millis(1));
        assert_eq!(backoff.remaining(), None);
    }

    #[test]
    fn success_resets_the_count() {
        let mut backoff = backoff(&Arc::new(ManualClock::at(0)), 0.5);
        fail(&mut backoff, 4);
        backoff.record_success();
        assert_eq!((backoff.remaining(), backoff.failures()), (None, 0));
        assert_eq!(backoff.record_failure(), Duration::from_secs(1));
    }

    #[test]
    fn floor_extends_only_shorter_delays() {
        // C443
        let mut backoff = backoff(&Arc::new(ManualClock::at(0)), 0.5);
        assert_eq!(backoff.record_failure_with_min_delay(Duration::from_secs(10)), Duration::from_secs(10));
        fail(&mut backoff, 5);
        assert_eq!(backoff.record_failure_with_min_delay(Duration::from_secs(10)), Duration::from_secs(30));
    }
}
