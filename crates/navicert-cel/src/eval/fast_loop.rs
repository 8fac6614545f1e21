//! Fast paths for loops over strings whose body is one substring test or one concatenation with a constant. In all other
//! cases, such as an element of another type or a limit that is near, they charge nothing and the general loop runs.

use super::Machine;
use super::fold::Range;
use crate::cost;
use crate::fault::Fault;
use crate::plan::{Anchor, FastBody, Loop};
use crate::value::{List, Value, ValueRef};

/// A loop with a fast path.
pub(super) struct FastLoop<'a> {
    list: List<'a>,
    body: FastBody,
    /// The constant operand of the body.
    constant: &'a str,
}

impl<'a> Machine<'a, '_> {
    /// The fast path for a loop, if it applies.
    pub(super) fn fast_loop(&self, fold: &Loop, range: &Range<'a>) -> Option<FastLoop<'a>> {
        let (Some(body), &Range::One(list)) = (fold.fast_body, range) else { return None };
        if self.trace.is_some() || self.limits.interrupt.is_some() {
            return None;
        }
        let (FastBody::Test { part: constant, .. } | FastBody::Join { constant, .. }) = body;
        match self.plan.constants.get(constant as usize) {
            Some(Value::String(constant)) => Some(FastLoop { list, body, constant }),
            _ => None,
        }
    }

    /// Tests one element and charges the whole iteration. Returns `None` if the fast path does not apply.
    #[inline(always)]
    pub(super) fn test_element(
        &mut self,
        fast_loop: &FastLoop<'a>,
        index: usize,
        iteration_cost: u64,
    ) -> Option<bool> {
        let FastBody::Test { anchor, tenth, negated, .. } = fast_loop.body else { return None };
        let Some(ValueRef::Str(text)) = fast_loop.list.get(index) else { return None };
        let scan = match anchor {
            Anchor::Anywhere => cost::tenth(cost::characters(text)).saturating_mul(u64::from(tenth)),
            Anchor::Start | Anchor::End => u64::from(tenth),
        };
        // Loop step, variable, test and negation.
        self.charge_within(scan.saturating_add(iteration_cost + 2 + u64::from(negated)))?;
        Some(anchor.matches(text, fast_loop.constant) != negated)
    }

    /// Concatenates one element with the constant and charges the whole iteration. Returns `None` if the fast path does
    /// not apply.
    #[inline(always)]
    pub(super) fn join_element(
        &mut self,
        fast_loop: &FastLoop<'a>,
        index: usize,
        fold: &Loop,
    ) -> Option<Result<ValueRef<'a>, Fault<'a>>> {
        let FastBody::Join { is_first, .. } = fast_loop.body else { return None };
        let Some(ValueRef::Str(text)) = fast_loop.list.get(index) else { return None };
        let size = cost::characters(fast_loop.constant).saturating_add(cost::characters(text));
        let (before, after) = (2 + cost::tenth(size), 11);
        // Before the concatenation: loop step, variable and operator. After it: the one-element list and its addition.
        self.charge_within(before + after)?;
        let (left, right) = if is_first { (fast_loop.constant, text) } else { (text, fast_loop.constant) };
        Some(match self.arena.join(left, right) {
            Some(joined) => Ok(ValueRef::Str(joined)),
            None => {
                self.cost = self.cost.wrapping_sub(after);
                self.full(fold.body)
            }
        })
    }
}
