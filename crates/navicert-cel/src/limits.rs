//! How much an evaluation may cost and when it has to stop.

/// Limits of one evaluation.
#[derive(Clone, Copy)]
pub struct Limits<'l> {
    /// Units of cost; reaching more ends the evaluation.
    pub cost: u64,
    /// Asked now and then: `true` ends the evaluation. For deadlines and cancellation.
    pub interrupt: Option<&'l (dyn Fn() -> bool + Sync)>,
}

impl Limits<'_> {
    /// What Kubernetes allows one expression.
    pub const KUBERNETES: Limits<'static> = Limits { cost: 1_000_000, interrupt: None };

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.is_some_and(|interrupt| interrupt())
    }
}

impl Default for Limits<'_> {
    fn default() -> Self {
        Limits::KUBERNETES
    }
}

impl std::fmt::Debug for Limits<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Limits")
            .field("cost", &self.cost)
            .field("interrupt", &self.interrupt.is_some())
            .finish()
    }
}
