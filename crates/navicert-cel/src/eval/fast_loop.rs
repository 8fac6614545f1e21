//! Loops over texts whose body is one test or one joint with a constant. An element for which anything is not as usual,
//! such as a limit within reach, is left to the general loop, with nothing charged.

use super::Machine;
use super::fold::Range;
use crate::cost;
use crate::fault::Fault;
use crate::plan::{Body, Loop, Place};
use crate::value::{List, Value, ValueRef};

/// A body, and what it runs over.
pub(super) struct Quick<'a> {
    list: List<'a>,
    body: Body,
    /// The constant in it.
    constant: &'a str,
}

impl<'a> Machine<'a, '_> {
    /// What is quick about a loop, if anything is.
    pub(super) fn quick(&self, fold: &Loop, range: &Range<'a>) -> Option<Quick<'a>> {
        let (Some(body), &Range::One(list)) = (fold.quick, range) else { return None };
        if self.trace.is_some() || self.limits.interrupt.is_some() {
            return None;
        }
        let (Body::Test { part: constant, .. } | Body::Join { constant, .. }) = body;
        match self.plan.constants.get(constant as usize) {
            Some(Value::String(constant)) => Some(Quick { list, body, constant }),
            _ => None,
        }
    }

    /// A test of one element, with all that its turn costs.
    #[inline(always)]
    pub(super) fn tested(&mut self, quick: &Quick<'a>, index: usize, turn: u64) -> Option<bool> {
        let Body::Test { place, tenth, negated, .. } = quick.body else { return None };
        let Some(ValueRef::Str(text)) = quick.list.get(index) else { return None };
        let scan = match place {
            Place::Anywhere => cost::tenth(cost::characters(text)).saturating_mul(u64::from(tenth)),
            Place::Start | Place::End => u64::from(tenth),
        };
        // The step, the variable, the test and its negation.
        self.charge_within(scan.saturating_add(turn + 2 + u64::from(negated)))?;
        Some(place.is_in(text, quick.constant) != negated)
    }

    /// One element joined with a constant, with all that its turn costs.
    #[inline(always)]
    pub(super) fn joined(
        &mut self,
        quick: &Quick<'a>,
        index: usize,
        fold: &Loop,
    ) -> Option<Result<ValueRef<'a>, Fault<'a>>> {
        let Body::Join { is_first, .. } = quick.body else { return None };
        let Some(ValueRef::Str(text)) = quick.list.get(index) else { return None };
        let size = cost::characters(quick.constant).saturating_add(cost::characters(text));
        let (before, after) = (2 + cost::tenth(size), 11);
        // Before the texts are joined: the step, the variable, the joint; after that the list of one, and its addition.
        self.charge_within(before + after)?;
        let (left, right) = if is_first { (quick.constant, text) } else { (text, quick.constant) };
        Some(match self.arena.join(left, right) {
            Some(joined) => Ok(ValueRef::Str(joined)),
            None => {
                self.cost = self.cost.wrapping_sub(after);
                self.full(fold.body)
            }
        })
    }
}
