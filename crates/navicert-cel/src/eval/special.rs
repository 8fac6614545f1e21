//! Specialized steps for common expressions, with the same cost and the same faults as the general steps.

use super::{Machine, Outcome};
use crate::cost;
use crate::error::InternalFault;
use crate::fault::Cause;
use crate::plan::{Anchor, Step, StepId};
use crate::value::{Value, ValueRef};

impl<'a> Machine<'a, '_> {
    /// Selects a field of a variable.
    #[inline(never)]
    pub(super) fn field_step(
        &mut self,
        id: StepId,
        step: &'a Step,
        (variable, name, fingerprint): (u32, u32, u64),
    ) -> Outcome<'a> {
        let name = self.text(name)?;
        let found = match self.variables.get(variable as usize) {
            Some(Some(ValueRef::Claims(claims))) => claims.value(name, fingerprint),
            Some(Some(ValueRef::Map(map))) => map.find(ValueRef::Str(name)),
            Some(Some(ValueRef::Object(object))) => object.field(name),
            _ => None,
        };
        match found {
            Some(found) => {
                // One unit for the qualifier, one for the selection. The selection is charged even if the first
                // unit exceeds the limit.
                if self.charge_within(2).is_none() {
                    let key = self.charge(1);
                    self.charge(1)?;
                    key?;
                }
                Ok(found)
            }
            None => self.general(id, step),
        }
    }

    /// `text.startsWith(part)`, `endsWith` or `contains` with a constant `part` whose cost is precomputed.
    #[inline(never)]
    pub(super) fn substring_test(
        &mut self,
        id: StepId,
        anchor: Anchor,
        text: StepId,
        (part, tenth): (u32, u32),
    ) -> Outcome<'a> {
        let text = self.eval(text);
        if let Err(fault) = &text
            && fault.cause.is_fatal()
        {
            return text;
        }
        let tenth = u64::from(tenth);
        let cost = match (anchor, &text) {
            (Anchor::Anywhere, Ok(text)) => cost::tenth(cost::size(*text)).saturating_mul(tenth),
            _ => tenth,
        };
        self.charge(cost)?;
        match (text?, self.plan.constants.get(part as usize)) {
            (ValueRef::Str(text), Some(Value::String(part))) => {
                Ok(ValueRef::Bool(anchor.matches(text, part)))
            }
            (_, None) => self.internal(InternalFault::Constant),
            _ => self.fault(id, Cause::NoSuchOverload("")),
        }
    }

    #[cold]
    fn general(&mut self, id: StepId, step: &'a Step) -> Outcome<'a> {
        match self.plan.general(step) {
            Some(step) => self.execute(id, step),
            None => self.internal(InternalFault::Step),
        }
    }
}
