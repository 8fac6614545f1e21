//! Serializes use of the terminal: two plugins that prompt at once would read each other's input.
// C423

use std::sync::{Mutex, MutexGuard, PoisonError};

static TERMINAL: Mutex<()> = Mutex::new(());

/// Holds the terminal until dropped.
#[derive(Debug)]
#[must_use = "the lock is released on drop"]
pub struct TerminalLock {
    _held: MutexGuard<'static, ()>,
}

impl TerminalLock {
    /// Waits until the terminal is free.
    ///
    /// [`ProcessRunner`](crate::ProcessRunner) acquires it for every run that inherits stdin; code that prompts in another
    /// way, for example for a PIN, must acquire it too. Lock order: first the credential's lock, then the terminal. While
    /// holding it, never take a lock that a run could be waiting for.
    pub fn acquire() -> Self {
        TerminalLock { _held: TERMINAL.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}
