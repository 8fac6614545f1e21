//! Limits key fetches caused by tokens with unknown key IDs: a token bucket, and a cache of key IDs known not to exist.
// H22

use std::collections::HashMap;
use std::time::Duration;

/// How long a key ID is cached as unknown.
const UNKNOWN_KID_TTL: Duration = Duration::from_secs(30);
/// Maximum number of cached unknown key IDs.
const MAX_UNKNOWN_KIDS: usize = 1_000;
/// Longer key IDs never cause a request.
// A9
const MAX_KID_BYTES: usize = 1 << 10;
/// One request is allowed per interval…
const REFILL_INTERVAL: Duration = Duration::from_secs(10);
/// … with this many at once.
const MAX_BURST: u32 = 3;

/// Token bucket and negative cache. Times are readings of the monotonic clock.
#[derive(Debug, Default)]
pub(super) struct JwksRefetchLimiter {
    unknown: HashMap<String, Duration>,
    spent: u32,
    refilled: Duration,
}

impl JwksRefetchLimiter {
    /// Whether the key ID may exist: it is not cached as unknown.
    pub(super) fn may_exist(&mut self, kid: &str, now: Duration) -> bool {
        kid.len() <= MAX_KID_BYTES && self.unknown.get(kid).is_none_or(|until| *until <= now)
    }

    /// Takes one request from the bucket, if one is left.
    pub(super) fn try_acquire(&mut self, now: Duration) -> bool {
        while self.spent > 0 && now.saturating_sub(self.refilled) >= REFILL_INTERVAL {
            self.spent -= 1;
            self.refilled += REFILL_INTERVAL;
        }
        if self.spent == 0 {
            self.refilled = now;
        }
        let may = self.spent < MAX_BURST;
        self.spent += u32::from(may);
        may
    }

    /// Caches a key ID that the issuer does not have.
    pub(super) fn insert_unknown(&mut self, kid: &str, now: Duration) {
        self.unknown.retain(|_, until| *until > now);
        if self.unknown.len() < MAX_UNKNOWN_KIDS {
            self.unknown.insert(kid.to_owned(), now + UNKNOWN_KID_TTL);
        }
    }

    /// Clears the unknown key IDs, after new keys arrived.
    pub(super) fn clear_unknown(&mut self) {
        self.unknown.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S170, A64
    #[test]
    fn allows_a_burst_of_three_and_one_per_ten_seconds() {
        let mut demand = JwksRefetchLimiter::default();
        let second = Duration::from_secs;
        let taken = |demand: &mut JwksRefetchLimiter, at: u64| {
            (0..10).filter(|_| demand.try_acquire(second(at))).count()
        };
        for (at, expected) in [(5, 3), (14, 0), (15, 1), (16, 0), (24, 0), (25, 1), (1000, 3)] {
            assert_eq!(taken(&mut demand, at), expected, "at {at}");
        }
    }

    // S170, A9
    #[test]
    fn unknown_key_ids_expire_after_thirty_seconds_and_are_bounded() {
        let mut demand = JwksRefetchLimiter::default();
        let second = Duration::from_secs;
        demand.insert_unknown("k", second(1));
        assert!(!demand.may_exist("k", second(30)));
        assert!(demand.may_exist("k", second(31)));
        assert!(demand.may_exist("other", second(2)));
        assert!(!demand.may_exist(&"k".repeat(MAX_KID_BYTES + 1), second(2)));
        for number in 0..2 * MAX_UNKNOWN_KIDS {
            demand.insert_unknown(&number.to_string(), second(2));
        }
        assert_eq!(demand.unknown.len(), MAX_UNKNOWN_KIDS);
        demand.clear_unknown();
        assert!(demand.may_exist("k", second(2)));
    }
}
