//! How many plugins may run at once (I263).

use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, PoisonError};

/// A number of places; whoever finds none free waits.
#[derive(Debug)]
pub(super) struct Slots {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A place, given back when dropped.
#[derive(Debug)]
pub(super) struct Slot<'a>(&'a Slots);

impl Slots {
    pub(super) fn new(count: NonZeroUsize) -> Self {
        Slots { free: Mutex::new(count.get()), freed: Condvar::new() }
    }

    pub(super) fn take(&self) -> Slot<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Slot(self)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}
