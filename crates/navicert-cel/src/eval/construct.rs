//! Evaluation of list, map and message literals that are not constant.

use super::{Machine, Outcome, indexes};
use crate::error::{InternalFault, Limit, Misuse};
use crate::fault::Cause;
use crate::functions;
use crate::opaque::Opaque;
use crate::plan::{Range, StepId};
use crate::value::{Map, Pairs, ValueRef, equal};

impl<'a> Machine<'a, '_> {
    #[inline(never)]
    pub(super) fn list(&mut self, id: StepId, elements: Range, optional: Range) -> Outcome<'a> {
        let outcome = self.list_elements(id, elements, optional);
        if let Err(fault) = &outcome
            && fault.cause.is_fatal()
        {
            return outcome;
        }
        self.charge(10)?;
        outcome
    }

    fn list_elements(&mut self, id: StepId, elements: Range, optional: Range) -> Outcome<'a> {
        let flags = self.flags(optional)?;
        let mut list = self.arena.list();
        for (index, &element) in self.operands(elements)?.iter().enumerate() {
            let mut val = self.eval(element)?;
            if flags.get(index).copied().unwrap_or(false) {
                val = match val {
                    ValueRef::Optional(Some(content)) => *content,
                    ValueRef::Optional(None) => continue,
                    _ => {
                        return self.fault(id, Cause::Misuse(Misuse::NotOptionalElement));
                    }
                };
            }
            if list.push(val).is_none() {
                return self.full(id);
            }
        }
        Ok(ValueRef::List(list.finish()))
    }

    #[inline(never)]
    pub(super) fn map(&mut self, id: StepId, entries: Range, optional: Range) -> Outcome<'a> {
        let outcome = self.map_entries(id, entries, optional);
        if let Err(fault) = &outcome
            && fault.cause.is_fatal()
        {
            return outcome;
        }
        self.charge(30)?;
        outcome
    }

    fn map_entries(&mut self, id: StepId, entries: Range, optional: Range) -> Outcome<'a> {
        let flags = self.flags(optional)?;
        let mut pairs: Vec<(ValueRef<'a>, ValueRef<'a>)> = Vec::with_capacity(entries.len as usize / 2);
        for (index, pair) in self.operands(entries)?.chunks_exact(2).enumerate() {
            let &[key, value] = pair else { continue };
            let key = self.eval(key)?;
            let mut val = self.eval(value)?;
            if flags.get(index).copied().unwrap_or(false) {
                val = match val {
                    ValueRef::Optional(Some(content)) => *content,
                    ValueRef::Optional(None) => {
                        pairs.retain(|known| !equal(known.0, key));
                        continue;
                    }
                    _ => {
                        return self.fault(id, Cause::Misuse(Misuse::NotOptionalEntry));
                    }
                };
            }
            if self.plan.scope.is_standard() {
                if !matches!(key, ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Uint(_) | ValueRef::Str(_))
                {
                    return self.fault(id, Cause::Misuse(Misuse::KeyType));
                }
                if pairs.iter().any(|known| equal(known.0, key)) {
                    return self.fault(id, Cause::Misuse(Misuse::RepeatedKey));
                }
            } else if is_unhashable(key) {
                return self.fault(id, Cause::Limit(Limit::UpstreamInternal));
            }
            pairs.push((key, val));
        }
        match Pairs::build(self.arena, &pairs) {
            Some(pairs) => Ok(ValueRef::Map(Map::Pairs(pairs))),
            None => self.full(id),
        }
    }

    #[inline(never)]
    pub(super) fn message(&mut self, id: StepId, message: u32, fields: Range) -> Outcome<'a> {
        let outcome = self.message_fields(id, message, fields);
        if let Err(fault) = &outcome
            && fault.cause.is_fatal()
        {
            return outcome;
        }
        self.charge(40)?;
        outcome
    }

    fn message_fields(&mut self, id: StepId, message: u32, fields: Range) -> Outcome<'a> {
        let Some(steps) = self.plan.fields.get(indexes(fields)) else {
            return self.internal(InternalFault::Operands);
        };
        let mut values = Vec::with_capacity(steps.len());
        for field in steps {
            let mut val = self.eval(field.value)?;
            if field.optional {
                val = match val {
                    ValueRef::Optional(Some(content)) => *content,
                    ValueRef::Optional(None) => continue,
                    _ => {
                        return self.fault(id, Cause::Misuse(Misuse::NotOptionalEntry));
                    }
                };
            }
            values.push((self.text(field.name)?, val));
        }
        let Some(name) = self.plan.messages.get(message as usize) else {
            return self.internal(InternalFault::Message);
        };
        match functions::messages::build(self.arena, name, &values) {
            Ok(val) => Ok(val),
            Err(cause) => self.fault(id, cause),
        }
    }
}

/// Whether cel-go panics on the value as a map key or lookup key. Logical operators do not absorb that error.
pub(super) fn is_unhashable(val: ValueRef<'_>) -> bool {
    matches!(val, ValueRef::Bytes(_) | ValueRef::Opaque(Opaque::Semver(_) | Opaque::Format(_)))
}
