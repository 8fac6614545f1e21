//! The steps that rules mostly are, with every unit and every fault of the steps they stand for.

use super::{Machine, Outcome};
use crate::fault::Cause;
use crate::plan::{Place, Quick, Step, StepId};
use crate::value::{Val, Value};

impl<'a> Machine<'a, '_> {
    /// A special step, or in its stead the general one.
    #[inline(never)]
    pub(super) fn special(&mut self, id: StepId, index: u32) -> Outcome<'a> {
        let plan = self.plan;
        let Some(special) = plan.specials.get(index as usize) else {
            return self.fault(id, Cause::Message("no such step"));
        };
        match special.quick {
            _ if self.trace.is_some() => self.general(id, special.general),
            Quick::Field { variable, name, mark } => match self.field_of(variable, name, mark) {
                Some(found) => {
                    // One for the key, one for the selection, which is charged for even if the first was too much.
                    let key = self.charge(1);
                    self.charge(1)?;
                    key?;
                    Ok(found)
                }
                None => self.general(id, special.general),
            },
            Quick::Affix { place, text, part, tenth } => self.affix(id, place, text, (part, tenth)),
        }
    }

    /// The field of a variable, if it has one that can be read.
    #[inline]
    fn field_of(&self, variable: u32, name: u32, mark: u64) -> Option<Val<'a>> {
        let name = self.text(name);
        match self.variables.get(variable as usize).copied()?? {
            Val::Claims(claims) => claims.value(name, mark),
            Val::Map(map) => map.find(Val::Str(name)),
            Val::Object(object) => object.field(name),
            _ => None,
        }
    }

    /// `text.startsWith(part)` and its like, of a constant part.
    fn affix(&mut self, id: StepId, place: Place, text: StepId, (part, tenth): (u32, u64)) -> Outcome<'a> {
        let text = self.eval(text);
        if let Err(fault) = &text
            && fault.cause.is_limit()
        {
            return text;
        }
        let cost = match (place, &text) {
            (Place::Anywhere, Ok(text)) => crate::cost::tenth(crate::cost::size(*text)).saturating_mul(tenth),
            _ => tenth,
        };
        self.charge(cost)?;
        let (Val::Str(text), Some(Value::String(part))) = (text?, self.plan.constants.get(part as usize))
        else {
            return self.fault(id, Cause::NoSuchOverload(""));
        };
        Ok(Val::Bool(match place {
            Place::Start => text.starts_with(&**part),
            Place::End => text.ends_with(&**part),
            Place::Anywhere => text.contains(&**part),
        }))
    }

    #[cold]
    fn general(&mut self, id: StepId, step: Step) -> Outcome<'a> {
        self.perform(id, step)
    }
}
