//! Limits key fetches caused by tokens: a token bucket for unknown key IDs, a cache of key IDs that the issuer did not have, and a
//! back-off after failed fetches.
// H22

use std::collections::HashMap;
use std::time::Duration;

/// A key ID that the issuer did not have is looked for again after this fraction of the time since it was first missed: a key that
/// is published late is found late by a tenth of that.
const MISS_RETRY_DIVISOR: u32 = 10;
/// Shortest and longest time until then.
const MISS_RETRY_BOUNDS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));
/// How long a miss is remembered after it may be retried.
const MISS_TTL: Duration = Duration::from_secs(60);
/// Maximum number of remembered misses.
const MAX_MISSES: usize = 1_000;
/// Longer key IDs never cause a request.
// A9
const MAX_KID_BYTES: usize = 1 << 10;
/// One request is allowed per interval…
const REFILL_INTERVAL: Duration = Duration::from_secs(10);
/// … with this many at once…
const MAX_BURST: u32 = 3;
/// … and this many more that only retries may use: random key IDs cannot use up what a rotation needs, nor can retries use up
/// what the next rotation needs.
const RETRY_RESERVE: u32 = 40;
/// A fetch that failed is repeated, if tokens ask for it, after this fraction of the time since the first failure.
const FAILURE_RETRY_DIVISOR: u32 = 60;
/// Shortest and longest time until then.
const FAILURE_RETRY_BOUNDS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Token bucket, negative cache and back-off. Times are readings of the monotonic clock.
#[derive(Debug, Default)]
pub(super) struct JwksRefetchLimiter {
    misses: HashMap<String, Miss>,
    budget: FetchBudget,
    /// When fetches began to fail, if the last one did.
    failing_since: Option<Duration>,
    /// When the next fetch is allowed after a failed one.
    retry_at: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Miss {
    since: Duration,
    retry_at: Duration,
}

impl JwksRefetchLimiter {
    /// Whether a token with an unknown key ID may cause a fetch now. Takes it from the bucket if so.
    pub(super) fn try_acquire(&mut self, kid: &str, now: Duration) -> bool {
        if !self.may_exist(kid, now) {
            return false;
        }
        // While fetches fail, nothing is known about the key ID.
        if self.failing_since.is_some() {
            return self.try_acquire_without_keys(now);
        }
        self.budget.try_spend(self.misses.contains_key(kid), now)
    }

    /// Whether a token may cause a fetch now because no keys are available, or the last fetch failed.
    pub(super) fn try_acquire_without_keys(&mut self, now: Duration) -> bool {
        now >= self.retry_at
    }

    /// Whether the key ID may exist: it is short enough, and was not missing a moment ago.
    pub(super) fn may_exist(&self, kid: &str, now: Duration) -> bool {
        kid.len() <= MAX_KID_BYTES && self.misses.get(kid).is_none_or(|miss| miss.retry_at <= now)
    }

    /// Remembers a key ID that the issuer does not have.
    pub(super) fn insert_miss(&mut self, kid: &str, now: Duration) {
        let since = match self.misses.get(kid) {
            // Requests that waited for one fetch count once.
            Some(miss) if miss.retry_at > now => return,
            Some(miss) => miss.since,
            None => now,
        };
        self.misses.retain(|_, miss| miss.retry_at + MISS_TTL > now);
        if self.misses.len() < MAX_MISSES || self.misses.contains_key(kid) {
            let pause = pause_after(now.saturating_sub(since), MISS_RETRY_DIVISOR, MISS_RETRY_BOUNDS);
            self.misses.insert(kid.to_owned(), Miss { since, retry_at: now + pause });
        }
    }

    /// A fetch found the key ID that it was for: a rotation, which no client can cause, costs nothing.
    pub(super) fn refund(&mut self) {
        self.budget.spent = self.budget.spent.saturating_sub(1);
    }

    /// Forgets the misses, after new keys arrived.
    pub(super) fn clear_misses(&mut self) {
        self.misses.clear();
    }

    /// Notes how a fetch ended.
    pub(super) fn fetched(&mut self, is_success: bool, now: Duration) {
        if is_success {
            (self.failing_since, self.retry_at) = (None, Duration::ZERO);
        } else {
            let since = *self.failing_since.get_or_insert(now);
            let elapsed = now.saturating_sub(since);
            self.retry_at = now + pause_after(elapsed, FAILURE_RETRY_DIVISOR, FAILURE_RETRY_BOUNDS);
        }
    }
}

/// A pause that grows with the time since something went wrong, so that its end is noticed late by a fraction of its length.
fn pause_after(elapsed: Duration, divisor: u32, (shortest, longest): (Duration, Duration)) -> Duration {
    (elapsed / divisor).clamp(shortest, longest)
}

/// Token bucket with a reserve for retries. Both are refilled at one rate, the reserve last.
#[derive(Debug, Default)]
struct FetchBudget {
    spent: u32,
    spent_reserve: u32,
    refilled: Duration,
}

impl FetchBudget {
    fn try_spend(&mut self, is_retry: bool, now: Duration) -> bool {
        self.refill(now);
        let (spent, limit) =
            if is_retry { (&mut self.spent_reserve, RETRY_RESERVE) } else { (&mut self.spent, MAX_BURST) };
        let may = *spent < limit;
        *spent += u32::from(may);
        may
    }

    fn refill(&mut self, now: Duration) {
        while now.saturating_sub(self.refilled) >= REFILL_INTERVAL {
            match (self.spent, self.spent_reserve) {
                (0, 0) => {
                    self.refilled = now;
                    return;
                }
                (0, _) => self.spent_reserve -= 1,
                _ => self.spent -= 1,
            }
            self.refilled += REFILL_INTERVAL;
        }
        if (self.spent, self.spent_reserve) == (0, 0) {
            self.refilled = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    // S170, A64
    #[test]
    fn allows_a_burst_of_three_and_one_per_ten_seconds() {
        let mut limiter = JwksRefetchLimiter::default();
        let mut number = 0;
        for (at, expected) in [(5, 3), (14, 0), (15, 1), (16, 0), (24, 0), (25, 1), (1000, 3)] {
            let acquired = (0..10).filter(|_| {
                number += 1;
                limiter.try_acquire(&number.to_string(), seconds(at))
            });
            assert_eq!(acquired.count(), expected, "at {at}");
        }
    }

    /// When a token with an unknown key ID that asks every 50 ms causes fetches, in milliseconds, while `flood` asks as well.
    fn attempts(seconds: u64, mut flood: impl FnMut(&mut JwksRefetchLimiter, Duration)) -> Vec<u64> {
        let mut limiter = JwksRefetchLimiter::default();
        let mut attempts = Vec::new();
        for at in (0..seconds * 1_000).step_by(50) {
            let now = Duration::from_millis(at);
            if limiter.try_acquire("late", now) {
                limiter.insert_miss("late", now);
                attempts.push(at);
            }
            flood(&mut limiter, now);
        }
        attempts
    }

    /// The longest time from a publication in this second until the next attempt, in milliseconds.
    fn latest(attempts: &[u64], second: u64) -> u64 {
        let gap = |pair: &[u64]| pair[1] - pair[0];
        let covers = |pair: &&[u64]| (pair[0] / 1_000..=pair[1] / 1_000).contains(&second);
        attempts.windows(2).filter(covers).map(gap).max().unwrap()
    }

    // S170: a key that is published late is found late by a tenth of its delay, or a fifth of a second.
    #[test]
    fn missing_key_id_is_looked_for_again_after_growing_pauses() {
        let attempts = attempts(600, |_, _| {});
        assert_eq!(attempts.get(..4), Some(&[0, 200, 400, 600][..]));
        for (second, most) in [(1, 200), (3, 400), (10, 1_100), (30, 3_300), (500, 30_050)] {
            assert!(latest(&attempts, second) <= most, "in second {second}: {}", latest(&attempts, second));
        }
    }

    // S170: also while random key IDs use up the bucket.
    #[test]
    fn random_key_ids_do_not_delay_the_retries_of_another() {
        let mut number = 0;
        let flooded = attempts(30, |limiter, now| {
            for _ in 0..20 {
                number += 1;
                if limiter.try_acquire(&number.to_string(), now) {
                    limiter.insert_miss(&number.to_string(), now);
                }
            }
        });
        assert_eq!(flooded, attempts(30, |_, _| {}));
    }

    // S170: retries leave the bucket to the next rotation.
    #[test]
    fn retries_do_not_use_up_the_bucket() {
        let mut limiter = JwksRefetchLimiter::default();
        for at in (0..60_000).step_by(50) {
            let now = Duration::from_millis(at);
            if limiter.try_acquire("late", now) {
                limiter.insert_miss("late", now);
            }
        }
        assert!((0..3).all(|number| limiter.try_acquire(&format!("next-{number}"), seconds(60))));
    }

    // S170: an issuer that rotates often is not limited by its own rotations.
    #[test]
    fn fetches_that_find_their_key_are_not_counted() {
        let mut limiter = JwksRefetchLimiter::default();
        for number in 0..10 {
            assert!(limiter.try_acquire(&number.to_string(), seconds(5)), "rotation {number}");
            limiter.refund();
        }
        let acquired = (10..20).filter(|number| limiter.try_acquire(&number.to_string(), seconds(5)));
        assert_eq!(acquired.count(), 3);
    }

    // S170, A9, A64: repeating key IDs is no way around the bucket.
    #[test]
    fn flood_of_repeated_key_ids_is_bounded() {
        let mut limiter = JwksRefetchLimiter::default();
        let mut acquired = 0;
        for tenth in 0..6000 {
            let now = Duration::from_millis(100 * tenth);
            for kid in 0..50 {
                let kid = kid.to_string();
                if limiter.try_acquire(&kid, now) {
                    acquired += 1;
                    limiter.insert_miss(&kid, now);
                }
            }
        }
        assert!(acquired <= 3 + 40 + 60, "{acquired} fetches in ten minutes");
    }

    #[test]
    fn misses_are_bounded() {
        let mut limiter = JwksRefetchLimiter::default();
        limiter.insert_miss("k", seconds(1));
        assert!(!limiter.may_exist("k", Duration::from_millis(1_199)));
        assert!(
            limiter.may_exist("k", Duration::from_millis(1_200)) && limiter.may_exist("other", seconds(1))
        );
        assert!(!limiter.may_exist(&"k".repeat(MAX_KID_BYTES + 1), seconds(2)));
        for number in 0..2 * MAX_MISSES {
            limiter.insert_miss(&number.to_string(), seconds(2));
        }
        assert_eq!(limiter.misses.len(), MAX_MISSES);
        limiter.insert_miss("new", seconds(2 + 1 + 60));
        assert_eq!(limiter.misses.len(), 1, "old misses are forgotten");
        limiter.clear_misses();
        assert!(limiter.may_exist("new", seconds(2)));
    }

    // S170: an outage delays a token by a sixtieth of its length, by a tenth of a second at least and a second at most.
    #[test]
    fn failed_fetches_are_repeated_after_growing_pauses() {
        let mut limiter = JwksRefetchLimiter::default();
        let mut attempts = Vec::new();
        for milliseconds in (0..600_000).step_by(50) {
            let now = Duration::from_millis(milliseconds);
            if limiter.try_acquire(&format!("random-{milliseconds}"), now) {
                attempts.push(milliseconds);
                limiter.fetched(false, now);
            }
        }
        assert_eq!(attempts.get(..4), Some(&[0, 100, 200, 300][..]));
        for (second, most) in [(5, 100), (12, 250), (59, 1_050), (500, 1_050)] {
            assert!(latest(&attempts, second) <= most, "in second {second}: {}", latest(&attempts, second));
        }
        limiter.fetched(true, seconds(600));
        assert!(limiter.failing_since.is_none() && limiter.try_acquire_without_keys(Duration::ZERO));
    }
}
