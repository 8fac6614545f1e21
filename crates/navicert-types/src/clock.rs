//! Where time comes from. Nothing else in the workspace may read the real clock (clippy.toml bans it), so that
//! a test decides what time it is.
//!
//! Pure functions take a [`Timestamp`]; long-lived objects hold an `Arc<dyn Clock>`.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub use jiff::Timestamp;

/// A source of time.
///
/// Two readings, because they answer different questions: expiry is compared with wall time, which may jump, and
/// back-off with monotonic time, which may not (client-credentials.md C413).
pub trait Clock: fmt::Debug + Send + Sync {
    /// The wall time.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment of this process; never goes back.
    fn monotonic(&self) -> Duration;
}

/// The machine's clock: the only reader of the real time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one room that reads the wall clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one room that reads the monotonic clock")]
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

    /// A clock that moves only when told to.
    #[derive(Debug)]
    pub struct ManualClock(Mutex<State>);

    #[derive(Debug)]
    struct State {
        wall: Timestamp,
        monotonic: Duration,
    }

    impl ManualClock {
        /// A clock standing at this many seconds after the Unix epoch.
        ///
        /// # Panics
        /// If the second is outside the range of a [`Timestamp`].
        #[expect(clippy::expect_used, reason = "a test helper; a wrong constant should stop the test")]
        pub fn at(unix_seconds: i64) -> Self {
            let wall = Timestamp::from_second(unix_seconds).expect("second within the range of a timestamp");
            ManualClock(Mutex::new(State { wall, monotonic: Duration::ZERO }))
        }

        /// Lets time pass: both readings move.
        pub fn advance(&self, by: Duration) {
            let mut state = self.state();
            state.wall = state.wall.saturating_add(by).unwrap_or(Timestamp::MAX);
            state.monotonic = state.monotonic.saturating_add(by);
        }

        /// Somebody sets the wall clock: only that reading jumps.
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
    fn a_manual_clock_moves_only_when_told() {
        let clock = ManualClock::at(1_000);
        assert_eq!(clock.now(), clock.now());
        clock.advance(Duration::from_millis(1_500));
        assert_eq!(clock.now(), Timestamp::from_millisecond(1_001_500).unwrap());
        assert_eq!(clock.monotonic(), Duration::from_millis(1_500));
    }

    #[test]
    fn setting_the_wall_clock_leaves_monotonic_time_alone() {
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
