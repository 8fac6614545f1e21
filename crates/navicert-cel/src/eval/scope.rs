//! Comprehension variables: few live in place, many on the heap.

use crate::fault::Fault;
use crate::plan::StepId;
use crate::value::Val;

/// What a variable holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Slot<'a> {
    Ready(Val<'a>),
    Failed(Fault<'a>),
    /// Bound, not computed yet.
    Pending(StepId),
}

const IN_PLACE: usize = 6;

/// The variables of all open comprehensions.
pub(super) struct Locals<'a> {
    first: [Slot<'a>; IN_PLACE],
    more: Vec<Slot<'a>>,
}

impl<'a> Locals<'a> {
    pub(super) fn new(count: u32) -> Self {
        let empty = Slot::Ready(Val::Null);
        let more = (count as usize).saturating_sub(IN_PLACE);
        Locals { first: [empty; IN_PLACE], more: vec![empty; more] }
    }

    pub(super) fn get(&self, slot: u32) -> Slot<'a> {
        let index = slot as usize;
        let found = self.first.get(index).or_else(|| self.more.get(index.wrapping_sub(IN_PLACE)));
        found.copied().unwrap_or(Slot::Ready(Val::Null))
    }

    pub(super) fn set(&mut self, slot: u32, value: Slot<'a>) {
        let index = slot as usize;
        let place = match self.first.get_mut(index) {
            Some(place) => Some(place),
            None => self.more.get_mut(index.wrapping_sub(IN_PLACE)),
        };
        if let Some(place) = place {
            *place = value;
        }
    }
}
