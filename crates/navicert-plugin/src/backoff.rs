//! No hot loops: after a failed run the next one has to wait, longer each time (client-credentials.md C441).

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use navicert_types::Clock;

/// How the wait grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffSettings {
    /// After the first failure.
    pub first: Duration,
    /// Never more than this, jitter aside.
    pub longest: Duration,
    /// How far a wait may be off, as a share of itself.
    pub jitter: f64,
}

impl Default for BackoffSettings {
    /// One second, doubling up to thirty, give or take a fifth.
    fn default() -> Self {
        BackoffSettings { first: Duration::from_secs(1), longest: Duration::from_secs(30), jitter: 0.2 }
    }
}

/// Counts failures in a row and says how long the next attempt has to wait, on the monotonic clock (C413).
///
/// It only answers the question. First use and what a user asks for explicitly are never delayed: whoever runs those
/// does not ask.
pub struct Backoff {
    settings: BackoffSettings,
    clock: Arc<dyn Clock>,
    random: Box<dyn FnMut() -> f64 + Send + Sync>,
    failures: u32,
    not_before: Option<Duration>,
}

impl Backoff {
    /// No failure yet.
    pub fn new(settings: BackoffSettings, clock: Arc<dyn Clock>) -> Self {
        Self::with_random(settings, clock, random_share)
    }

    /// With jitter from this source of numbers from 0 to 1, for tests.
    pub fn with_random(
        settings: BackoffSettings,
        clock: Arc<dyn Clock>,
        random: impl FnMut() -> f64 + Send + Sync + 'static,
    ) -> Self {
        Backoff { settings, clock, random: Box::new(random), failures: 0, not_before: None }
    }

    /// A run has just failed. Returns how long the next one has to wait.
    pub fn failed(&mut self) -> Duration {
        self.failed_at_least(Duration::ZERO)
    }

    /// Like [`Backoff::failed`], with a wait of at least `floor`: after a failed interactive run, say (C443).
    pub fn failed_at_least(&mut self, floor: Duration) -> Duration {
        let doubled = self.settings.first.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        let share = (self.random)().clamp(0.0, 1.0);
        let factor = (1.0 + self.settings.jitter * (2.0 * share - 1.0)).max(0.0);
        let wait = doubled.min(self.settings.longest);
        let wait = Duration::try_from_secs_f64(wait.as_secs_f64() * factor).unwrap_or(wait).max(floor);
        self.not_before = Some(self.clock.monotonic().saturating_add(wait));
        wait
    }

    /// A run has succeeded: the count starts again.
    pub fn succeeded(&mut self) {
        self.failures = 0;
        self.not_before = None;
    }

    /// How long until the next attempt may start; `None` is now.
    pub fn remaining(&self) -> Option<Duration> {
        let remaining = self.not_before?.saturating_sub(self.clock.monotonic());
        (!remaining.is_zero()).then_some(remaining)
    }

    /// How many runs have failed in a row.
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

/// A number from 0 to 1 from the standard library's random keys: enough to keep clients apart.
fn random_share() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 32;
    u32::try_from(bits).map_or(0.5, |bits| f64::from(bits) / f64::from(u32::MAX))
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
            backoff.failed();
        }
    }

    #[test]
    fn waits_double_up_to_thirty_seconds() {
        // C441: min(30 s, 1 s · 2^(n−1))
        let mut backoff = backoff(&Arc::new(ManualClock::at(0)), 0.5);
        let waits: Vec<_> = (0..8).map(|_| backoff.failed().as_secs_f64()).collect();
        assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
        for _ in 0..100 {
            assert_eq!(backoff.failed(), Duration::from_secs(30), "the doubling never overflows");
        }
    }

    #[test]
    fn jitter_stays_within_a_fifth() {
        let clock = Arc::new(ManualClock::at(0));
        for (share, first, longest) in [(0.0, 800, 24_000), (1.0, 1_200, 36_000), (7.0, 1_200, 36_000)] {
            let mut backoff = backoff(&clock, share);
            assert_eq!(backoff.failed(), Duration::from_millis(first));
            fail(&mut backoff, 10);
            assert_eq!(backoff.failed(), Duration::from_millis(longest));
        }
        let shares: Vec<_> = (0..1_000).map(|_| random_share()).collect();
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
        assert!(shares.iter().any(|share| *share < 0.2) && shares.iter().any(|share| *share > 0.8));
    }

    #[test]
    fn the_wait_is_measured_from_the_end_of_the_failed_run_on_the_monotonic_clock() {
        // C441, C413
        let clock = Arc::new(ManualClock::at(1_000_000));
        let mut backoff = backoff(&clock, 0.5);
        assert_eq!(backoff.remaining(), None, "first use is never delayed");
        clock.advance(Duration::from_secs(100));
        backoff.failed();
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
        backoff.succeeded();
        assert_eq!((backoff.remaining(), backoff.failures()), (None, 0));
        assert_eq!(backoff.failed(), Duration::from_secs(1));
    }

    #[test]
    fn a_floor_lengthens_a_short_wait_and_leaves_a_long_one() {
        // C443
        let mut backoff = backoff(&Arc::new(ManualClock::at(0)), 0.5);
        assert_eq!(backoff.failed_at_least(Duration::from_secs(10)), Duration::from_secs(10));
        fail(&mut backoff, 5);
        assert_eq!(backoff.failed_at_least(Duration::from_secs(10)), Duration::from_secs(30));
    }
}
