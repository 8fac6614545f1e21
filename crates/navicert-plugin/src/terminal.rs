//! Whose turn it is at the terminal: two plugins that ask for a password at once would read each other's
//! (client-credentials.md C423).

use std::sync::{Mutex, MutexGuard, PoisonError};

static TERMINAL: Mutex<()> = Mutex::new(());

/// The terminal is this holder's until the value is dropped.
#[derive(Debug)]
#[must_use = "the turn ends when this is dropped"]
pub struct TerminalTurn {
    _held: MutexGuard<'static, ()>,
}

impl TerminalTurn {
    /// Waits for the turn.
    ///
    /// [`ProcessRunner`](crate::ProcessRunner) takes it by itself for every run that inherits stdin; whoever prompts
    /// by other means (a PIN, say) takes it here. Never lock anything that a run could be waiting for while holding
    /// it: the order is the credential's lock first, then the terminal.
    pub fn take() -> Self {
        TerminalTurn { _held: TERMINAL.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}
