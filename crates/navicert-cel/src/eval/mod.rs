//! The evaluator: executes the steps of a plan. Values are copied, faults are small, and cost is charged where
//! cel-go charges it.

mod call;
mod construct;
mod fast_loop;
mod fold;
mod operator;
mod scope;
mod select;
mod special;

use crate::error::{InternalFault, Limit};
use crate::fault::{Cause, Fault};
use crate::functions;
use crate::limits::EvalLimits;
use crate::plan::{Plan, Qualifier, Range, Step, StepId};
use crate::value::{Arena, List, Value, ValueRef};
pub(crate) use operator::{calculate, contains};
use scope::Locals;
pub(crate) use scope::Slot;

pub(crate) type Outcome<'a> = Result<ValueRef<'a>, Fault<'a>>;

/// The outcome of a subexpression, recorded by a tracing evaluation.
#[derive(Debug, Clone)]
pub(crate) struct Recorded<'a> {
    pub(crate) node: u32,
    pub(crate) outcome: Result<ValueRef<'a>, Cause<'a>>,
}

/// The state of one evaluation.
pub(crate) struct Machine<'a, 'l> {
    plan: &'a Plan,
    arena: &'a Arena,
    variables: &'l [Option<&'l ValueRef<'a>>],
    locals: Locals<'a, 'l>,
    pub(crate) cost: u64,
    /// The cost at which the cost limit or the interrupt must be checked next.
    next_check_cost: u64,
    limits: &'l EvalLimits<'l>,
    /// Records every value while tracing.
    trace: Option<&'l mut Vec<Recorded<'a>>>,
}

/// Cost between two checks of the interrupt.
const INTERRUPT_CHECK_COST: u64 = 1024;

/// Maximum number of arguments of a function.
const MAX_ARGUMENTS: usize = 4;

impl<'a, 'l> Machine<'a, 'l> {
    pub(crate) fn new(
        plan: &'a Plan,
        arena: &'a Arena,
        variables: &'l [Option<&'l ValueRef<'a>>],
        slots: &'l mut [Slot<'a>],
        limits: &'l EvalLimits<'l>,
        trace: Option<&'l mut Vec<Recorded<'a>>>,
    ) -> Self {
        let locals = Locals::new(slots);
        let mut machine =
            Machine { plan, arena, variables, locals, cost: 0, next_check_cost: 0, limits, trace };
        machine.next_check_cost = machine.compute_next_check();
        machine
    }

    #[inline(always)]
    pub(crate) fn run(&mut self) -> Outcome<'a> {
        if self.limits.is_interrupted() {
            return Err(Fault { cause: Cause::Limit(Limit::Interrupted), node: 0 });
        }
        // Skips the inlined fast path of `eval`: copying a computed value through it is slow.
        let plan = self.plan;
        match plan.steps.get(plan.root.0 as usize) {
            Some(step) if self.trace.is_none() => self.execute(plan.root, step),
            _ => self.eval(plan.root),
        }
    }

    fn compute_next_check(&self) -> u64 {
        let limit = self.limits.cost.saturating_add(1);
        if self.limits.interrupt.is_some() {
            limit.min(self.cost.saturating_add(INTERRUPT_CHECK_COST))
        } else {
            limit
        }
    }

    #[inline]
    fn charge(&mut self, cost: u64) -> Result<(), Fault<'a>> {
        self.cost = self.cost.wrapping_add(cost);
        if self.cost >= self.next_check_cost {
            return self.check_limits();
        }
        Ok(())
    }

    /// Charges a cost if no limit check is due afterwards; charges nothing otherwise.
    #[inline(always)]
    fn charge_within(&mut self, cost: u64) -> Option<()> {
        let cost = self.cost.checked_add(cost).filter(|cost| *cost < self.next_check_cost)?;
        self.cost = cost;
        Some(())
    }

    #[cold]
    fn check_limits(&mut self) -> Result<(), Fault<'a>> {
        if self.cost > self.limits.cost {
            return Err(Fault { cause: Cause::Limit(Limit::Cost), node: 0 });
        }
        if self.limits.is_interrupted() {
            return Err(Fault { cause: Cause::Limit(Limit::Interrupted), node: 0 });
        }
        self.next_check_cost = self.compute_next_check();
        Ok(())
    }

    fn fault<T>(&self, id: StepId, cause: Cause<'a>) -> Result<T, Fault<'a>> {
        Err(Fault { cause, node: self.node_of(id) })
    }

    fn node_of(&self, id: StepId) -> u32 {
        self.plan.nodes.get(id.0 as usize).copied().unwrap_or(0)
    }

    fn full<T>(&self, id: StepId) -> Result<T, Fault<'a>> {
        self.fault(id, Cause::Limit(Limit::Memory))
    }

    /// A part of the plan is missing. Refusing is the only safe answer: any value could satisfy a rule.
    #[cold]
    fn internal<T>(&self, fault: InternalFault) -> Result<T, Fault<'a>> {
        Err(Fault { cause: Cause::Internal(fault), node: 0 })
    }

    fn operands(&self, range: Range) -> Result<&'a [StepId], Fault<'a>> {
        match self.plan.operands.get(indexes(range)) {
            Some(operands) => Ok(operands),
            None => self.internal(InternalFault::Operands),
        }
    }

    fn flags(&self, range: Range) -> Result<&'a [bool], Fault<'a>> {
        match self.plan.flags.get(indexes(range)) {
            Some(flags) => Ok(flags),
            None => self.internal(InternalFault::Operands),
        }
    }

    fn qualifiers(&self, range: Range) -> Result<&'a [Qualifier], Fault<'a>> {
        match self.plan.qualifiers.get(indexes(range)) {
            Some(chain) => Ok(chain),
            None => self.internal(InternalFault::Qualifiers),
        }
    }

    #[inline]
    fn text(&self, index: u32) -> Result<&'a str, Fault<'a>> {
        match self.plan.texts.get(index as usize) {
            Some(text) => Ok(text),
            None => self.internal(InternalFault::Text),
        }
    }

    #[inline]
    fn constant(&self, index: u32) -> Outcome<'a> {
        match self.plan.constants.get(index as usize) {
            Some(Value::String(text)) => Ok(ValueRef::Str(text)),
            Some(value @ Value::Optional(Some(_))) => self.optional_constant(value),
            Some(value) => Ok(value.as_val()),
            None => self.internal(InternalFault::Constant),
        }
    }

    #[cold]
    fn optional_constant(&self, value: &'a Value) -> Outcome<'a> {
        match functions::optional::constant(self.arena, value) {
            Some(val) => Ok(val),
            None => Err(Fault { cause: functions::ARENA_FULL, node: 0 }),
        }
    }

    /// Evaluates a step. The most common operands are inlined.
    #[inline(always)]
    pub(crate) fn eval(&mut self, id: StepId) -> Outcome<'a> {
        let plan = self.plan;
        let Some(step) = plan.steps.get(id.0 as usize) else {
            return self.internal(InternalFault::Step);
        };
        if self.trace.is_some() {
            return self.eval_traced(id, step);
        }
        match *step {
            Step::Constant(index) => self.constant(index),
            Step::Local(slot) if let Some(&Slot::Ready(val)) = self.locals.get(slot) => {
                self.charge(1)?;
                Ok(val)
            }
            Step::Field { variable, name, fingerprint, .. } => {
                self.field_step(id, step, (variable, name, fingerprint))
            }
            _ => self.execute(id, step),
        }
    }

    /// Evaluates the general form of the step and records the outcome.
    #[cold]
    fn eval_traced(&mut self, id: StepId, step: &'a Step) -> Outcome<'a> {
        let outcome = match self.plan.general(step) {
            Some(step) => self.execute(id, step),
            None => self.internal(InternalFault::Step),
        };
        self.record(id, &outcome);
        outcome
    }

    #[cold]
    fn record(&mut self, id: StepId, outcome: &Outcome<'a>) {
        let node = self.node_of(id);
        if let Some(trace) = &mut self.trace {
            let outcome = match outcome {
                Ok(val) => Ok(*val),
                Err(fault) => Err(fault.cause),
            };
            trace.push(Recorded { node, outcome });
        }
    }

    #[inline(never)]
    fn execute(&mut self, id: StepId, step: &'a Step) -> Outcome<'a> {
        match *step {
            Step::Constant(index) => self.constant(index),
            Step::Variable(_) | Step::Local(_) | Step::Unknown(_) => {
                let outcome = self.resolve(id, step);
                self.charge(1)?;
                outcome
            }
            Step::Select { base, qualifiers } => self.selected(id, base, qualifiers),
            Step::Test { base, qualifiers } => self.test(id, base, qualifiers, false),
            Step::If { condition, yes, no } => self.conditional(id, condition, yes, no),
            Step::And(terms) => self.logic(id, terms, false),
            Step::Or(terms) => self.logic(id, terms, true),
            Step::Not(operand) => {
                let outcome = self.eval(operand);
                self.charge(1)?;
                match outcome? {
                    ValueRef::Bool(value) => Ok(ValueRef::Bool(!value)),
                    _ => self.fault(id, Cause::NoSuchOverload("")),
                }
            }
            Step::Negate(operand) => self.negate(id, operand),
            Step::Equal { left, right, negated } => self.equality(id, left, right, negated),
            Step::Compare { order, left, right, rule } => self.comparison(id, order, left, right, rule),
            Step::Arithmetic { operator, left, right, rule } => {
                self.arithmetic(id, operator, left, right, rule)
            }
            Step::In { item, collection, rule } => self.membership(id, item, collection, rule),
            Step::InConstant { item, list } => self.constant_membership(id, item, list),
            Step::Matches { text, pattern, size } => self.matches(id, text, pattern, size),
            Step::Call { function, overload, args, rule, lazy } => {
                self.call(id, (function, overload), args, rule, lazy)
            }
            Step::Missing { name, args, rule } => self.missing(id, name, args, rule),
            Step::OrElse { optional, other } => self.or_else(id, optional, other, false),
            Step::OrValue { optional, other } => self.or_else(id, optional, other, true),
            Step::List { elements, optional } => self.list(id, elements, optional),
            Step::Map { entries, optional } => self.map(id, entries, optional),
            Step::Message { message, fields } => self.message(id, message, fields),
            Step::Fold(index) => self.fold(id, index),
            Step::Field { variable, name, fingerprint, .. } => {
                self.field_step(id, step, (variable, name, fingerprint))
            }
            Step::SubstringTest { anchor, text, part, tenth, .. } => {
                self.substring_test(id, anchor, text, (part, tenth))
            }
        }
    }

    /// A selection. It is charged unless its operand is a conditional.
    fn selected(&mut self, id: StepId, base: StepId, qualifiers: Range) -> Outcome<'a> {
        let outcome = self.select(id, base, qualifiers);
        if !self.is_conditional(base) {
            self.charge(1)?;
        }
        outcome
    }

    fn is_conditional(&self, base: StepId) -> bool {
        matches!(self.plan.steps.get(base.0 as usize), Some(Step::If { .. }))
    }

    /// The value of a variable, without cost.
    fn resolve(&mut self, id: StepId, step: &Step) -> Outcome<'a> {
        match *step {
            Step::Variable(slot) => match self.variables.get(slot as usize).copied().flatten() {
                Some(val) => Ok(*val),
                None => match self.plan.scope.variables.get(slot as usize) {
                    Some(variable) => self.fault(id, Cause::NoSuchAttribute(&variable.name)),
                    None => self.internal(InternalFault::Local),
                },
            },
            Step::Local(slot) => self.local(slot),
            Step::Unknown(name) => self.fault(id, Cause::NoSuchAttribute(self.text(name)?)),
            _ => self.internal(InternalFault::Step),
        }
    }

    fn local(&mut self, slot: u32) -> Outcome<'a> {
        match self.locals.get(slot).copied() {
            Some(Slot::Ready(val)) => Ok(val),
            Some(Slot::Failed(fault)) => Err(fault),
            None | Some(Slot::Unbound) => self.internal(InternalFault::Local),
            // A bound value is evaluated and charged when it is first used.
            Some(Slot::Pending(step)) => {
                let outcome = self.eval(step);
                let slot_value = match outcome {
                    Ok(val) => Slot::Ready(val),
                    Err(fault) => Slot::Failed(fault),
                };
                self.locals.set(slot, slot_value);
                outcome
            }
        }
    }

    /// Evaluates a branch of a conditional or the operand of a selection, where identifiers and selections have no
    /// cost of their own.
    fn eval_raw(&mut self, id: StepId) -> Outcome<'a> {
        let plan = self.plan;
        let Some(step) = plan.steps.get(id.0 as usize) else { return self.eval(id) };
        let Some(general) = plan.general(step) else { return self.internal(InternalFault::Step) };
        let outcome = match *general {
            Step::Variable(_) | Step::Local(_) | Step::Unknown(_) => self.resolve(id, step),
            Step::Select { base, qualifiers } => self.select(id, base, qualifiers),
            Step::Test { base, qualifiers } => self.test(id, base, qualifiers, true),
            _ => return self.eval(id),
        };
        if self.trace.is_some() {
            self.record(id, &outcome);
        }
        outcome
    }

    #[inline(never)]
    fn conditional(&mut self, id: StepId, condition: StepId, yes: StepId, no: StepId) -> Outcome<'a> {
        match self.eval(condition)? {
            ValueRef::Bool(true) => self.eval_raw(yes),
            ValueRef::Bool(false) => self.eval_raw(no),
            _ => self.fault(id, Cause::NoSuchOverload("")),
        }
    }

    /// `&&` and `||`: the deciding value takes precedence over errors, the first error over later ones.
    #[inline(never)]
    fn logic(&mut self, id: StepId, terms: Range, deciding: bool) -> Outcome<'a> {
        let mut failed: Option<Fault<'a>> = None;
        for &term in self.operands(terms)? {
            match self.eval(term) {
                Ok(ValueRef::Bool(value)) if value == deciding => return Ok(ValueRef::Bool(deciding)),
                Ok(ValueRef::Bool(_)) => {}
                Ok(_) => {
                    let fault = Fault { cause: Cause::NoSuchOverload(""), node: self.node_of(id) };
                    failed = failed.or(Some(fault));
                }
                Err(fault) if fault.cause.is_fatal() => return Err(fault),
                Err(fault) => failed = failed.or(Some(fault)),
            }
        }
        match failed {
            Some(fault) => Err(fault),
            None => Ok(ValueRef::Bool(!deciding)),
        }
    }

    #[inline(never)]
    fn or_else(&mut self, id: StepId, optional: StepId, other: StepId, unwrap: bool) -> Outcome<'a> {
        match self.eval(optional)? {
            ValueRef::Optional(Some(content)) if unwrap => Ok(*content),
            present @ ValueRef::Optional(Some(_)) => Ok(present),
            ValueRef::Optional(None) => self.eval(other),
            other if !self.plan.scope.facts.or_needs_optional => Ok(other),
            _ => self.fault(id, Cause::NoSuchOverload("")),
        }
    }

    /// The elements that a one-variable comprehension iterates over.
    fn iterable(&self, val: ValueRef<'a>) -> Option<List<'a>> {
        match val {
            ValueRef::List(list) if self.plan.scope.unescape_everywhere => Some(list),
            ValueRef::List(list) => Some(list.without_unescape()),
            _ => None,
        }
    }
}

/// The indexes of a range of one of the plan's tables.
fn indexes(range: Range) -> std::ops::Range<usize> {
    range.start as usize..range.start as usize + range.len as usize
}
