//! Calls: argument evaluation, dynamic overload dispatch and cost.

use super::{MAX_ARGUMENTS, Machine, Outcome};
use crate::check::declaration::Overload;
use crate::cost::{self, Rule};
use crate::error::{InternalFault, Limit};
use crate::fault::{Cause, Fault, Kinds};
use crate::functions::Call;
use crate::plan::{Range, StepId};
use crate::value::ValueRef;

/// The arguments that failed.
struct Failed<'a> {
    first: Fault<'a>,
    /// Index of the last failed argument.
    last: usize,
    at: [bool; MAX_ARGUMENTS],
}

impl<'a> Machine<'a, '_> {
    /// Evaluates the arguments and charges for the call. Up to two arguments are all evaluated even if one fails;
    /// with more, evaluation stops at the first failure. cel-go does the same.
    #[inline(never)]
    pub(super) fn call(
        &mut self,
        id: StepId,
        (function, overload): (u32, Option<u32>),
        args: Range,
        rule: Rule,
        lazy: bool,
    ) -> Outcome<'a> {
        let mut values = [ValueRef::Null; MAX_ARGUMENTS];
        let count = args.len as usize;
        let failed = self.arguments(args, &mut values, lazy)?;
        // No function takes more arguments: the call of an unchecked expression finds no overload.
        let values = values.get(..count).unwrap_or(&[]);
        if let Some(Failed { last, first: fault, at }) = failed {
            if !lazy || last + 1 == count {
                // cel-go's cost tracker panics on a failed list argument, which ends the evaluation.
                if at.iter().enumerate().any(|(index, failed)| *failed && rule.needs_list(index))
                    && !self.plan.scope.is_standard()
                {
                    return self.fault(id, Cause::Limit(Limit::UpstreamInternal));
                }
                self.charge(rule.charge(values, None))?;
            }
            return Err(fault);
        }
        let outcome = match values {
            // A call with a constant pattern unwraps an optional operand, as cel-go does.
            [ValueRef::Optional(Some(text)), rest @ ..]
                if lazy && rule == Rule::Pattern && matches!(text, ValueRef::Str(_)) =>
            {
                let mut plain = [**text; MAX_ARGUMENTS];
                for (slot, value) in plain.iter_mut().skip(1).zip(rest) {
                    *slot = *value;
                }
                match plain.get(..count) {
                    Some(plain) => self.dispatch(id, function, overload, plain),
                    None => self.internal(InternalFault::Operands),
                }
            }
            values => self.dispatch(id, function, overload, values),
        };
        if let Err(fault) = &outcome
            && fault.cause.is_fatal()
        {
            return outcome;
        }
        self.charge(rule.charge(values, outcome.as_ref().ok().copied()))?;
        outcome
    }

    /// Evaluates the arguments and reports the failed ones.
    fn arguments(
        &mut self,
        args: Range,
        values: &mut [ValueRef<'a>; MAX_ARGUMENTS],
        lazy: bool,
    ) -> Result<Option<Failed<'a>>, Fault<'a>> {
        let operands = self.operands(args)?;
        let mut failed: Option<Failed<'a>> = None;
        for (index, (&operand, value)) in operands.iter().zip(values.iter_mut()).enumerate() {
            match self.eval(operand) {
                Ok(val) => *value = val,
                Err(fault) if fault.cause.is_fatal() => return Err(fault),
                Err(fault) => {
                    let failed = failed.get_or_insert(Failed { first: fault, last: 0, at: [false; _] });
                    failed.last = index;
                    if let Some(at) = failed.at.get_mut(index) {
                        *at = true;
                    }
                    if lazy {
                        break;
                    }
                }
            }
        }
        Ok(failed)
    }

    fn dispatch(
        &self,
        id: StepId,
        function: u32,
        overload: Option<u32>,
        values: &[ValueRef<'a>],
    ) -> Outcome<'a> {
        let scope = &self.plan.scope;
        let Some(declared) = scope.functions.get(function) else {
            return self.internal(InternalFault::Function);
        };
        let fits = |overload: &&Overload| {
            overload.guards.len() == values.len()
                && overload.guards.iter().zip(values).all(|(guard, value)| guard.accepts(value))
        };
        let chosen = match overload {
            Some(index) => declared.overloads.get(index as usize).filter(fits),
            None => declared.overloads.iter().find(fits),
        };
        let body = chosen.and_then(|overload| overload.body);
        let Some(body) = body else {
            // Some functions of cel-go's standard library skip the type check; their error names no function.
            let cause = match declared.name.as_ref() {
                "contains" | "endsWith" | "startsWith" => Cause::NoSuchOverload(""),
                "size" => Cause::NoSuchOverload("size"),
                name => Cause::NoSuchVariant(name, Kinds::from_values(values)),
            };
            return self.fault(id, cause);
        };
        let call = Call { arena: self.arena, standard: scope.is_standard(), facts: scope.facts };
        match body(&call, values) {
            Ok(val) => Ok(val),
            Err(cause) => self.fault(id, cause),
        }
    }

    #[inline(never)]
    pub(super) fn missing(&mut self, id: StepId, name: u32, args: Range, rule: Rule) -> Outcome<'a> {
        let mut values = [ValueRef::Null; MAX_ARGUMENTS];
        let count = args.len as usize;
        let failed = self.arguments(args, &mut values, count > 2)?;
        if let Some(Failed { first: fault, last, .. }) = failed {
            if count <= 2 || last + 1 == count {
                self.charge(rule.charge(&values, None))?;
            }
            return Err(fault);
        }
        self.charge(rule.charge(&values, None))?;
        self.fault(id, Cause::NoSuchOverload(self.text(name)?))
    }

    #[inline(never)]
    pub(super) fn matches(&mut self, id: StepId, text: StepId, pattern: u32, size: u32) -> Outcome<'a> {
        let val = self.eval(text)?;
        self.charge(cost::pattern(cost::size(val), u64::from(size)))?;
        let text = match val {
            ValueRef::Optional(Some(text)) if !self.plan.scope.is_standard() => *text,
            other => other,
        };
        match (text, self.plan.patterns.get(pattern as usize)) {
            (_, None) => self.internal(InternalFault::Pattern),
            (ValueRef::Str(text), Some(pattern)) => Ok(ValueRef::Bool(pattern.is_match(text))),
            _ => self.fault(id, Cause::NoSuchOverload("matches")),
        }
    }
}
