//! Comprehension variables: few live in place, many on the heap.

use crate::fault::Fault;
use crate::plan::StepId;
use crate::value::ValueRef;

/// What a variable holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Slot<'a> {
    /// Never bound: reading it is a fault of the evaluator.
    Unbound,
    Ready(ValueRef<'a>),
    Failed(Fault<'a>),
    /// Bound, not computed yet.
    Pending(StepId),
}

impl Slot<'_> {
    pub(crate) const EMPTY: Self = Slot::Unbound;
}

/// The variables of all open comprehensions.
pub(super) struct Locals<'a, 'l>(&'l mut [Slot<'a>]);

impl<'a, 'l> Locals<'a, 'l> {
    pub(super) fn new(slots: &'l mut [Slot<'a>]) -> Self {
        Locals(slots)
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<&Slot<'a>> {
        self.0.get(slot as usize)
    }

    #[inline]
    pub(super) fn set(&mut self, slot: u32, value: Slot<'a>) {
        if let Some(place) = self.0.get_mut(slot as usize) {
            *place = value;
        }
    }
}
