//! Limits of an evaluation: cost and interruption.

/// Limits of one evaluation.
#[derive(Clone, Copy)]
pub struct EvalLimits<'l> {
    /// Maximum cost units; exceeding them ends the evaluation.
    pub cost: u64,
    /// Called periodically; `true` ends the evaluation. For deadlines and cancellation.
    pub interrupt: Option<&'l (dyn Fn() -> bool + Sync)>,
}

impl EvalLimits<'_> {
    /// The limits of Kubernetes for one expression.
    pub const KUBERNETES: EvalLimits<'static> = EvalLimits { cost: 1_000_000, interrupt: None };

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.is_some_and(|interrupt| interrupt())
    }
}

impl Default for EvalLimits<'_> {
    fn default() -> Self {
        EvalLimits::KUBERNETES
    }
}

impl std::fmt::Debug for EvalLimits<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("EvalLimits")
            .field("cost", &self.cost)
            .field("interrupt", &self.interrupt.is_some())
            .finish()
    }
}
