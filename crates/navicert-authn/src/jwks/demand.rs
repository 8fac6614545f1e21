//! Who asked for keys that are not there: how often that may lead to a request, and what is known not to exist (H22).

use std::collections::HashMap;
use std::time::Duration;

/// How long a name is known to be unknown.
const UNKNOWN_FOR: Duration = Duration::from_secs(30);
/// How many such names are remembered.
const MOST_UNKNOWN: usize = 1_000;
/// A key's name that is longer is not worth a question (A9).
const MOST_KID: usize = 1 << 10;
/// One request per this long…
const REFILL: Duration = Duration::from_secs(10);
/// … and so many at once.
const BURST: u32 = 3;

/// Times are readings of the monotonic clock.
#[derive(Debug, Default)]
pub(super) struct Demand {
    unknown: HashMap<String, Duration>,
    spent: u32,
    refilled: Duration,
}

impl Demand {
    /// Whether a name is worth a request: it is not known to be unknown.
    pub(super) fn is_worth_it(&mut self, kid: &str, now: Duration) -> bool {
        kid.len() <= MOST_KID && self.unknown.get(kid).is_none_or(|until| *until <= now)
    }

    /// Takes one request out of the bucket, if there is one.
    pub(super) fn take(&mut self, now: Duration) -> bool {
        while self.spent > 0 && now.saturating_sub(self.refilled) >= REFILL {
            self.spent -= 1;
            self.refilled += REFILL;
        }
        if self.spent == 0 {
            self.refilled = now;
        }
        let may = self.spent < BURST;
        self.spent += u32::from(may);
        may
    }

    /// The issuer was asked, and has no such key.
    pub(super) fn remember_unknown(&mut self, kid: &str, now: Duration) {
        self.unknown.retain(|_, until| *until > now);
        if self.unknown.len() < MOST_UNKNOWN {
            self.unknown.insert(kid.to_owned(), now + UNKNOWN_FOR);
        }
    }

    /// New keys are here: nothing is known to be unknown any more.
    pub(super) fn forget_unknown(&mut self) {
        self.unknown.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S170, A64
    #[test]
    fn three_at_once_and_one_in_ten_seconds() {
        let mut demand = Demand::default();
        let second = Duration::from_secs;
        let taken = |demand: &mut Demand, at: u64| (0..10).filter(|_| demand.take(second(at))).count();
        for (at, expected) in [(5, 3), (14, 0), (15, 1), (16, 0), (24, 0), (25, 1), (1000, 3)] {
            assert_eq!(taken(&mut demand, at), expected, "at {at}");
        }
    }

    // S170, A9
    #[test]
    fn an_unknown_name_stays_unknown_for_half_a_minute_and_the_list_of_them_is_bounded() {
        let mut demand = Demand::default();
        let second = Duration::from_secs;
        demand.remember_unknown("k", second(1));
        assert!(!demand.is_worth_it("k", second(30)));
        assert!(demand.is_worth_it("k", second(31)));
        assert!(demand.is_worth_it("other", second(2)));
        assert!(!demand.is_worth_it(&"k".repeat(MOST_KID + 1), second(2)));
        for number in 0..2 * MOST_UNKNOWN {
            demand.remember_unknown(&number.to_string(), second(2));
        }
        assert_eq!(demand.unknown.len(), MOST_UNKNOWN);
        demand.forget_unknown();
        assert!(demand.is_worth_it("k", second(2)));
    }
}
