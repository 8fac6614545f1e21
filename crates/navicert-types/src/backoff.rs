//! Exponential back-off with jitter: how long to wait before another attempt. Waiting is the caller's.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

/// Parameters of the back-off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffSettings {
    /// Delay after the first failure; each further one doubles it.
    pub initial: Duration,
    /// Longest delay, before jitter.
    pub max: Duration,
    /// Jitter as a fraction of the delay, so that processes that failed at the same time do not retry at the same time.
    pub jitter: f64,
}

impl Default for BackoffSettings {
    /// One second, doubling up to 30 seconds, ±20 %.
    fn default() -> Self {
        BackoffSettings { initial: Duration::from_secs(1), max: Duration::from_secs(30), jitter: 0.2 }
    }
}

impl BackoffSettings {
    /// The delay before the next attempt after `failures` failures before the last one. `random` is a number from 0 to 1,
    /// such as [`random_fraction`].
    pub fn delay(&self, failures: u32, random: f64) -> Duration {
        let delay = self.initial.saturating_mul(2_u32.saturating_pow(failures)).min(self.max);
        let factor = (1.0 + self.jitter * (2.0 * random.clamp(0.0, 1.0) - 1.0)).max(0.0);
        Duration::try_from_secs_f64(delay.as_secs_f64() * factor).unwrap_or(delay)
    }
}

/// A number from 0 to 1 from the standard library's random hash keys: enough for jitter, not for secrets.
pub fn random_fraction() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 32;
    u32::try_from(bits).map_or(0.5, |bits| f64::from(bits) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_up_to_the_maximum_and_jitter_stays_within_its_fraction() {
        let settings = BackoffSettings::default();
        for (failures, random, millis) in [
            (0, 0.5, 1_000),
            (0, 0.0, 800),
            (0, 1.0, 1_200),
            (0, 7.0, 1_200),
            (1, 0.5, 2_000),
            (4, 0.5, 16_000),
            (5, 0.5, 30_000),
            (5, 1.0, 36_000),
            (u32::MAX, 0.0, 24_000),
        ] {
            assert_eq!(
                settings.delay(failures, random),
                Duration::from_millis(millis),
                "{failures} {random}"
            );
        }
    }

    #[test]
    fn random_fractions_differ_and_stay_within_bounds() {
        let fractions: Vec<f64> = (0..1_000).map(|_| random_fraction()).collect();
        assert!(fractions.iter().all(|fraction| (0.0..=1.0).contains(fraction)));
        assert!(fractions.iter().any(|fraction| *fraction < 0.2));
        assert!(fractions.iter().any(|fraction| *fraction > 0.8));
    }
}
