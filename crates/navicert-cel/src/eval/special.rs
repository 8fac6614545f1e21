//! The steps that rules mostly are, with every unit and every fault of the steps they stand for.

use super::{Machine, Outcome};
use crate::cost;
use crate::fault::Cause;
use crate::plan::{Place, Step, StepId};
use crate::value::{Value, ValueRef};

impl<'a> Machine<'a, '_> {
    /// A field of a variable.
    #[inline(never)]
    pub(super) fn field_step(
        &mut self,
        id: StepId,
        step: &'a Step,
        (variable, name, fingerprint): (u32, u32, u64),
    ) -> Outcome<'a> {
        let name = self.text(name);
        let found = match self.variables.get(variable as usize) {
            Some(Some(ValueRef::Claims(claims))) => claims.value(name, fingerprint),
            Some(Some(ValueRef::Map(map))) => map.find(ValueRef::Str(name)),
            Some(Some(ValueRef::Object(object))) => object.field(name),
            _ => None,
        };
        match found {
            Some(found) => {
                // One for the key, one for the selection, which is charged for even if the first was too much.
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

    /// `text.startsWith(part)` and its like, of a constant part of which a tenth is known.
    #[inline(never)]
    pub(super) fn affix(
        &mut self,
        id: StepId,
        place: Place,
        text: StepId,
        (part, tenth): (u32, u32),
    ) -> Outcome<'a> {
        let text = self.eval(text);
        if let Err(fault) = &text
            && fault.cause.is_limit()
        {
            return text;
        }
        let tenth = u64::from(tenth);
        let cost = match (place, &text) {
            (Place::Anywhere, Ok(text)) => cost::tenth(cost::size(*text)).saturating_mul(tenth),
            _ => tenth,
        };
        self.charge(cost)?;
        let (ValueRef::Str(text), Some(Value::String(part))) =
            (text?, self.plan.constants.get(part as usize))
        else {
            return self.fault(id, Cause::NoSuchOverload(""));
        };
        Ok(ValueRef::Bool(place.is_in(text, part)))
    }

    #[cold]
    fn general(&mut self, id: StepId, step: &'a Step) -> Outcome<'a> {
        self.perform(id, self.plan.general(step))
    }
}
