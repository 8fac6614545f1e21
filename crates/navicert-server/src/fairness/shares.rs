//! Dynamic shares of a budget, with the threshold rule of shared-memory switches (Choudhury and Hahne, 1998): a flow
//! may take more while it holds less than [`SHARE_FACTOR`] times what is free. A flow alone gets eight ninths of the
//! budget, `n` flooding flows get the same share each, and something is always left for a flow that holds nothing.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::FlowId;

/// What a flow may hold, as a multiple of what is free.
const SHARE_FACTOR: usize = 8;

/// Map from flows to values.
pub(super) type FlowMap<V> = HashMap<FlowId, V, BuildHasherDefault<FlowHasher>>;

/// A flow is a hash already.
#[derive(Debug, Default)]
pub(super) struct FlowHasher(u64);

impl Hasher for FlowHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, flow: u64) {
        self.0 = flow;
    }
}

/// A budget and what each flow holds of it.
#[derive(Debug)]
pub(super) struct Shares {
    free: usize,
    held: FlowMap<usize>,
}

impl Shares {
    pub(super) fn new(budget: usize) -> Self {
        Shares { free: budget, held: FlowMap::with_capacity_and_hasher(64, BuildHasherDefault::default()) }
    }

    /// Takes `amount` for a flow, if it is available and within the flow's share.
    pub(super) fn try_take(&mut self, flow: FlowId, amount: usize) -> bool {
        let Some(free) = self.free.checked_sub(amount) else { return false };
        let entry = self.held.entry(flow);
        let held = if let Entry::Occupied(held) = &entry { *held.get() } else { 0 };
        if held >= SHARE_FACTOR.saturating_mul(self.free) {
            return false;
        }
        self.free = free;
        *entry.or_insert(0) = held.saturating_add(amount);
        true
    }

    /// Returns `amount` of what a flow holds.
    pub(super) fn give_back(&mut self, flow: FlowId, amount: usize) {
        self.free = self.free.saturating_add(amount);
        if let Entry::Occupied(mut held) = self.held.entry(flow) {
            match held.get().saturating_sub(amount) {
                0 => drop(held.remove()),
                left => *held.get_mut() = left,
            }
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(shares: &mut Shares, flow: u64) -> usize {
        (0..10_000).take_while(|_| shares.try_take(FlowId(flow), 1)).count()
    }

    #[test]
    fn flow_alone_gets_eight_ninths() {
        let mut shares = Shares::new(900);
        assert_eq!(take_all(&mut shares, 1), 800);
        assert_eq!(take_all(&mut shares, 2), 89, "eight ninths of the rest");
        assert_eq!(take_all(&mut shares, 3), 10);
        assert_eq!(take_all(&mut shares, 4), 1);
    }

    #[test]
    fn flooding_flows_converge_to_equal_shares_and_leave_some_free() {
        let mut shares = Shares::new(2_000);
        for _ in 0..2_000 {
            for flow in 1..=10 {
                shares.try_take(FlowId(flow), 1);
            }
        }
        let held: Vec<usize> = (1..=10).map(|flow| shares.held[&FlowId(flow)]).collect();
        assert!(held.iter().all(|held| (190..=200).contains(held)), "{held:?}");
        assert!(shares.free >= 20, "{}", shares.free);
        assert!(shares.try_take(FlowId(11), 1));
    }

    #[test]
    fn returned_shares_can_be_taken_again_and_leave_no_entry() {
        let mut shares = Shares::new(3);
        for _ in 0..100 {
            assert_eq!(take_all(&mut shares, 7), 3, "a small budget is not divided");
            shares.give_back(FlowId(7), 3);
            assert_eq!((shares.free, shares.held.len()), (3, 0));
        }
        assert!(!shares.try_take(FlowId(7), 4));
    }
}
