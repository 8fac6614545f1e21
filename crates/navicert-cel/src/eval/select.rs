//! Selection and indexing: an operand and a chain of qualifiers, with the cost and optional chaining of cel-go.

use super::{Machine, Outcome};
use crate::error::{ClaimError, Misuse};
use crate::fault::{Cause, Fault, Origin};
use crate::functions::ARENA_FULL;
use crate::number::DoubleText;
use crate::plan::{Key, Qualifier, Range, Step, StepId};
use crate::value::{List, ValueRef};

/// How a qualifier is applied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A missing key is an error.
    Get,
    /// A missing key ends the chain with `optional.none()`.
    Optional,
    /// Tests for presence only.
    Presence,
}

impl<'a> Machine<'a, '_> {
    /// The selected value, without charging for the selection itself.
    pub(super) fn select(&mut self, id: StepId, base: StepId, qualifiers: Range) -> Outcome<'a> {
        let variable = match self.plan.steps.get(base.0 as usize) {
            Some(&Step::Variable(slot)) if self.trace.is_none() => {
                self.variables.get(slot as usize).copied().flatten().copied()
            }
            _ => None,
        };
        let val = match variable {
            Some(val) => val,
            None => self.eval_raw(base)?,
        };
        let chain = self.qualifiers(qualifiers)?;
        if let Some(found) = self.field(val, chain) {
            self.charge(1)?;
            return Ok(found);
        }
        self.apply(id, val, chain, false)
    }

    /// Fast path: one plain field that is present.
    #[inline]
    fn field(&self, val: ValueRef<'a>, chain: &[Qualifier]) -> Option<ValueRef<'a>> {
        let [Qualifier { key: Key::Text(name, false), optional: false, .. }] = *chain else { return None };
        let name = self.text(name).ok()?;
        match val {
            ValueRef::Claims(claims) => claims.select(name, false)?.ok(),
            ValueRef::Map(map) => map.find(ValueRef::Str(name)),
            ValueRef::Object(object) => object.field(name),
            _ => None,
        }
    }

    /// `has(base.chain.last)`: has no selection cost. If the operand is a conditional, one unit is subtracted although no
    /// selection was charged, as in cel-go.
    ///
    /// In a branch of a conditional (`raw`), an optional chain is not reduced to a boolean.
    pub(super) fn test(&mut self, id: StepId, base: StepId, qualifiers: Range, raw: bool) -> Outcome<'a> {
        let val = self.eval_raw(base)?;
        let chain = self.qualifiers(qualifiers)?;
        let outcome = self.apply(id, val, chain, true);
        if self.is_conditional(base) {
            self.cost = self.cost.wrapping_sub(1);
        }
        match outcome? {
            ValueRef::Optional(content) if !raw || self.plan.scope.is_standard() => {
                Ok(ValueRef::Bool(content.is_some()))
            }
            other => Ok(other),
        }
    }

    fn apply(&mut self, id: StepId, base: ValueRef<'a>, chain: &[Qualifier], test: bool) -> Outcome<'a> {
        let (mut val, mut optional) = match base {
            ValueRef::Optional(Some(content)) if !chain.is_empty() => (*content, true),
            ValueRef::Optional(None) if !chain.is_empty() => return Ok(base),
            other => (other, false),
        };
        for (index, qualifier) in chain.iter().enumerate() {
            optional |= qualifier.optional;
            let last = test && index + 1 == chain.len();
            let mode = match (last, optional) {
                (true, _) => Mode::Presence,
                (false, true) => Mode::Optional,
                (false, false) => Mode::Get,
            };
            let found = self.qualify(qualifier, val, mode);
            match (mode, found) {
                (_, Err(fault)) if fault.cause.is_fatal() => return Err(fault),
                (Mode::Get, Err(fault)) => {
                    self.charge(1)?;
                    return Err(fault);
                }
                (Mode::Presence, Err(fault)) => {
                    if !optional {
                        self.charge(1)?;
                    }
                    return Err(fault);
                }
                (Mode::Optional, Err(fault)) => return Err(fault),
                (Mode::Presence, Ok(found)) => {
                    // In an optional chain, an absent key has no cost.
                    if found.is_some() || !optional {
                        self.charge(1)?;
                    }
                    if !optional {
                        return Ok(ValueRef::Bool(found.is_some()));
                    }
                    return match found.map(|found| self.arena.alloc(found)) {
                        None => Ok(ValueRef::Optional(None)),
                        Some(Some(kept)) => Ok(ValueRef::Optional(Some(kept))),
                        Some(None) => self.full(id),
                    };
                }
                (Mode::Optional, Ok(None)) => return Ok(ValueRef::Optional(None)),
                (_, Ok(Some(next))) => {
                    self.charge(1)?;
                    val = next;
                }
                (Mode::Get, Ok(None)) => return self.fault(id, Cause::NoSuchKey("", Origin::Literal)),
            }
        }
        if !optional {
            return Ok(val);
        }
        match self.arena.alloc(val) {
            Some(kept) => Ok(ValueRef::Optional(Some(kept))),
            None => self.full(id),
        }
    }

    /// Applies one qualifier. Returns `Ok(None)` only if an absent key is not an error.
    fn qualify(
        &mut self,
        qualifier: &Qualifier,
        val: ValueRef<'a>,
        mode: Mode,
    ) -> Result<Option<ValueRef<'a>>, Fault<'a>> {
        let mut escaped = true;
        let key = match qualifier.key {
            Key::Text(text, may_escape) => {
                escaped = may_escape;
                ValueRef::Str(self.text(text)?)
            }
            Key::Constant(index) => self.constant(index)?,
            Key::Step(step) => {
                let key = self.eval_raw(step)?;
                if !matches!(
                    key,
                    ValueRef::Str(_)
                        | ValueRef::Int(_)
                        | ValueRef::Uint(_)
                        | ValueRef::Double(_)
                        | ValueRef::Bool(_)
                ) {
                    let cause = Cause::Misuse(Misuse::QualifierType);
                    return Err(Fault { cause, node: qualifier.node });
                }
                key
            }
        };
        let missing = |machine: &Self| {
            if mode == Mode::Get { Err(machine.missing_key(qualifier, key)) } else { Ok(None) }
        };
        match val {
            ValueRef::Claims(claims) => match key {
                ValueRef::Str(name) => match claims.select(name, escaped) {
                    Some(Ok(found)) => Ok(Some(found)),
                    Some(Err(fault)) if mode == Mode::Presence && fault.error == ClaimError::Pending => {
                        Ok(Some(ValueRef::Null))
                    }
                    Some(Err(fault)) => Err(Fault { cause: Cause::Claim(fault), node: qualifier.node }),
                    None => missing(self),
                },
                _ => Err(Fault { cause: Cause::NoSuchOverload(""), node: qualifier.node }),
            },
            ValueRef::Map(map) => match map.select(key, escaped) {
                Some(found) => Ok(Some(found)),
                None => missing(self),
            },
            ValueRef::List(list) => self.element(qualifier, list, key, mode),
            ValueRef::Object(object) => match key {
                ValueRef::Str(name) => match object.field(name) {
                    Some(found) => Ok(Some(found)),
                    None => missing(self),
                },
                _ => Err(Fault { cause: Cause::NoSuchOverload(""), node: qualifier.node }),
            },
            ValueRef::Optional(_) => missing(self),
            // The conformance suite expects an error for a selection from a value without fields, even in an
            // optional chain.
            _ if self.plan.scope.is_standard() => Err(self.missing_key(qualifier, key)),
            _ => missing(self),
        }
    }

    fn element(
        &self,
        qualifier: &Qualifier,
        list: List<'a>,
        key: ValueRef<'a>,
        mode: Mode,
    ) -> Result<Option<ValueRef<'a>>, Fault<'a>> {
        let index = match key {
            ValueRef::Int(index) => Some(index),
            ValueRef::Uint(index) => i64::try_from(index).ok(),
            ValueRef::Double(index) => crate::number::Number::Double(index).lossless_int(),
            other => {
                let cause = Cause::IndexType(other.type_name());
                return Err(Fault { cause, node: qualifier.node });
            }
        };
        let Some(index) = index else { return Err(self.invalid_index(qualifier, key)) };
        match usize::try_from(index).ok().and_then(|at| list.get(at)) {
            Some(found) => Ok(Some(found)),
            None if mode == Mode::Get => {
                Err(Fault { cause: Cause::OutOfBounds(index, origin(qualifier)), node: qualifier.node })
            }
            None => Ok(None),
        }
    }

    #[cold]
    fn invalid_index(&self, qualifier: &Qualifier, key: ValueRef<'a>) -> Fault<'a> {
        let text = self.arena.write(|out| match key {
            ValueRef::Uint(index) => write!(out, "{index}"),
            ValueRef::Double(index) => write!(out, "{}", DoubleText(index)),
            _ => Ok(()),
        });
        let cause = text.map_or(ARENA_FULL, |text| Cause::InvalidIndex(text, origin(qualifier)));
        Fault { cause, node: qualifier.node }
    }

    fn missing_key(&self, qualifier: &Qualifier, key: ValueRef<'a>) -> Fault<'a> {
        let name = match key {
            ValueRef::Str(name) => name,
            other => {
                let text = match other {
                    ValueRef::Int(value) => value.to_string(),
                    ValueRef::Uint(value) => value.to_string(),
                    ValueRef::Double(value) => value.to_string(),
                    ValueRef::Bool(value) => value.to_string(),
                    _ => String::new(),
                };
                match self.arena.text(&text) {
                    Some(text) => text,
                    None => return Fault { cause: ARENA_FULL, node: qualifier.node },
                }
            }
        };
        Fault { cause: Cause::NoSuchKey(name, origin(qualifier)), node: qualifier.node }
    }
}

/// Whether the key is written in the expression.
fn origin(qualifier: &Qualifier) -> Origin {
    match qualifier.key {
        Key::Text(..) | Key::Constant(_) => Origin::Literal,
        Key::Step(_) => Origin::Computed,
    }
}
