//! Sources of time. No other code in the workspace reads the real clock (clippy.toml forbids it), so tests control time.
//!
//! Pure functions take a [`Timestamp`]; long-lived objects hold an `Arc<dyn Clock>`.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub use jiff::Timestamp;

/// A source of time.
///
/// Expiry is compared with wall time, which may jump; back-off uses monotonic time, which may not.
// C413
pub trait Clock: fmt::Debug + Send + Sync {
    /// The wall time.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment of this process; never goes back.
    fn monotonic(&self) -> Duration;
}

/// The system clock: the only code that reads real time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the only code that reads the wall clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the only code that reads the monotonic clock")]
    fn monotonic(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

#[cfg(any(test, feature = "test-util"))]
pub use manual::ManualClock;

#[cfg(any(test, feature = "test-util"))]
mod manual {
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    use super::{Clock, Timestamp};

    /// A clock that only the test moves.
    #[derive(Debug)]
    pub struct ManualClock(Mutex<State>);

    #[derive(Debug)]
    struct State {
        wall: Timestamp,
        monotonic: Duration,
    }

    impl ManualClock {
        /// A clock at this many seconds after the Unix epoch.
        ///
        /// # Panics
        /// If the second is outside the range of a [`Timestamp`].
        #[expect(clippy::expect_used, reason = "a test helper; a wrong constant should stop the test")]
        pub fn at(unix_seconds: i64) -> Self {
            let wall = Timestamp::from_second(unix_seconds).expect("second within the range of a timestamp");
            ManualClock(Mutex::new(State { wall, monotonic: Duration::ZERO }))
        }

        /// Advances both readings.
        pub fn advance(&self, by: Duration) {
            let mut state = self.state();
            state.wall = state.wall.saturating_add(by).unwrap_or(Timestamp::MAX);
            state.monotonic = state.monotonic.saturating_add(by);
        }

        /// Sets the wall clock; monotonic time does not change.
        pub fn set_wall(&self, to: Timestamp) {
            self.state().wall = to;
        }

        fn state(&self) -> MutexGuard<'_, State> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl Clock for ManualClock {
        fn now(&self) -> Timestamp {
            self.state().wall
        }

        fn monotonic(&self) -> Duration {
            self.state().monotonic
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_clock_moves_only_when_advanced() {
        let clock = ManualClock::at(1_000);
        assert_eq!(clock.now(), clock.now());
        clock.advance(Duration::from_millis(1_500));
        assert_eq!(clock.now(), Timestamp::from_millisecond(1_001_500).unwrap());
        assert_eq!(clock.monotonic(), Duration::from_millis(1_500));
    }

    #[test]
    fn setting_the_wall_clock_does_not_change_monotonic_time() {
        let clock = ManualClock::at(1_000);
        clock.advance(Duration::from_secs(5));
        clock.set_wall(Timestamp::UNIX_EPOCH);
        assert_eq!(clock.now(), Timestamp::UNIX_EPOCH);
        assert_eq!(clock.monotonic(), Duration::from_secs(5));
    }

    #[test]
    fn the_system_clock_goes_forward() {
        let first = SystemClock.monotonic();
        assert!(SystemClock.monotonic() >= first);
        assert!(SystemClock.now() > Timestamp::UNIX_EPOCH);
    }
}
