//! The request to authenticate a token.

use navicert_types::Timestamp;

use super::step::{AuthnStep, StepObserver};

/// Polled while an expression runs: returning `true` stops it.
pub type Interrupt<'i> = Option<&'i (dyn Fn() -> bool + Sync)>;

/// A request to authenticate one token.
#[derive(Clone, Copy)]
pub struct AuthnRequest<'q> {
    /// The token.
    pub token: &'q str,
    /// The current time.
    pub now: Timestamp,
    /// Polled while an expression runs; returning `true` stops it.
    // H6
    pub interrupt: Interrupt<'q>,
    /// Notified of every step that passed, for explanations.
    pub observer: Option<&'q dyn StepObserver>,
}

impl<'q> AuthnRequest<'q> {
    /// A request without an observer or an interrupt.
    pub fn new(token: &'q str, now: Timestamp) -> Self {
        AuthnRequest { token, now, interrupt: None, observer: None }
    }

    /// Notifies the observer that a step passed.
    pub(crate) fn passed(&self, step: AuthnStep) {
        if let Some(observer) = self.observer {
            observer.passed(step);
        }
    }
}
