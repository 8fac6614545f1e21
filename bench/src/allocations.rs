//! Counts allocations: the bench binary's global allocator is the system's with a counter in front.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

static LIVE: AtomicU64 = AtomicU64::new(0);

/// How many allocations this program has made so far, growing ones included.
pub(crate) fn count() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

/// How many bytes they were, all together; what grows counts with its new size.
pub(crate) fn bytes() -> u64 {
    BYTES.load(Ordering::Relaxed)
}

/// How many bytes are allocated now.
pub(crate) fn live() -> u64 {
    LIVE.load(Ordering::Relaxed)
}

fn note(size: usize) {
    COUNT.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(size as u64, Ordering::Relaxed);
    LIVE.fetch_add(size as u64, Ordering::Relaxed);
}

fn forget(size: usize) {
    LIVE.fetch_sub(size as u64, Ordering::Relaxed);
}

/// The system's allocator, counted.
pub(crate) struct Counting;

#[expect(unsafe_code, reason = "an allocator is an unsafe trait; this one only counts and hands on")]
// SAFETY: every call goes unchanged to the system's allocator, whose promises are the ones asked for.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        forget(layout.size());
        note(size);
        // SAFETY: as above; the pointer came from the system's allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        forget(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
