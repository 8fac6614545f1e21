//! Limits the number of concurrent plugin runs.
// I263

use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, PoisonError};

/// A counting semaphore.
#[derive(Debug)]
pub(super) struct RunSlots {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A slot, released on drop.
#[derive(Debug)]
pub(super) struct RunSlotGuard<'a>(&'a RunSlots);

impl RunSlots {
    pub(super) fn new(count: NonZeroUsize) -> Self {
        RunSlots { free: Mutex::new(count.get()), freed: Condvar::new() }
    }

    pub(super) fn acquire(&self) -> RunSlotGuard<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        RunSlotGuard(self)
    }
}

impl Drop for RunSlotGuard<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}
