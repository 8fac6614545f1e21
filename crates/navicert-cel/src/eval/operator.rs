//! Arithmetic, comparison, equality and membership.

use super::construct::is_unhashable;
use super::{Machine, Outcome};
use crate::cost::{self, Rule};
use crate::error::{Limit, Misuse};
use crate::fault::{Cause, Fault};
use crate::plan::{Arithmetic, Order, StepId};
use crate::value::{Arena, List, Map, ValueRef, compare, equal, equal_or_error};

impl<'a> Machine<'a, '_> {
    /// Evaluates both operands, even if the first fails, and charges for the operator.
    fn pair(
        &mut self,
        left: StepId,
        right: StepId,
        rule: Rule,
    ) -> Result<(ValueRef<'a>, ValueRef<'a>), Fault<'a>> {
        let left = self.eval(left);
        if let Err(fault) = &left
            && fault.cause.is_fatal()
        {
            return Err(*fault);
        }
        let right = self.eval(right);
        self.charge_pair(left, right, rule)
    }

    /// The values of two operands or the first fault; charges in both cases.
    fn charge_pair(
        &mut self,
        left: Outcome<'a>,
        right: Outcome<'a>,
        rule: Rule,
    ) -> Result<(ValueRef<'a>, ValueRef<'a>), Fault<'a>> {
        if let (Ok(left), Ok(right)) = (left, right) {
            let cost = match rule {
                Rule::Fixed(cost) => u64::from(cost),
                rule => rule.charge(&[left, right], None),
            };
            self.charge(cost)?;
            return Ok((left, right));
        }
        if let Err(fault) = &right
            && fault.cause.is_fatal()
        {
            return Err(*fault);
        }
        let sized = [left.unwrap_or(ValueRef::Null), right.unwrap_or(ValueRef::Null)];
        self.charge(rule.charge(&sized, None))?;
        Ok((left?, right?))
    }

    #[inline(never)]
    pub(super) fn equality(&mut self, id: StepId, left: StepId, right: StepId, negated: bool) -> Outcome<'a> {
        let first = self.eval(left);
        if let Err(fault) = &first
            && fault.cause.is_fatal()
        {
            return first;
        }
        let second = self.eval(right);
        // Fast path: string operands are the most common.
        if let (Ok(ValueRef::Str(first)), Ok(ValueRef::Str(second))) = (&first, &second) {
            self.charge(cost::compare_texts(first, second))?;
            return Ok(ValueRef::Bool((first == second) != negated));
        }
        if let (Ok(ValueRef::Bool(first)), Ok(ValueRef::Bool(second))) = (&first, &second) {
            self.charge(1)?;
            return Ok(ValueRef::Bool((first == second) != negated));
        }
        let rule = if negated { Rule::Smaller } else { Rule::Equality };
        let (left, right) = self.charge_pair(first, second, rule)?;
        let simple = |val| {
            matches!(
                val,
                ValueRef::Str(_)
                    | ValueRef::Bool(_)
                    | ValueRef::Double(_)
                    | ValueRef::Int(_)
                    | ValueRef::Null
            )
        };
        if simple(left) || self.plan.scope.is_standard() {
            return Ok(ValueRef::Bool(equal(left, right) != negated));
        }
        match equal_or_error(left, right) {
            Some(equal) => Ok(ValueRef::Bool(equal != negated)),
            None if negated => Ok(ValueRef::Bool(true)),
            None => self.fault(id, Cause::NoSuchOverload("")),
        }
    }

    #[inline(never)]
    pub(super) fn comparison(
        &mut self,
        id: StepId,
        order: Order,
        left: StepId,
        right: StepId,
        rule: Rule,
    ) -> Outcome<'a> {
        let (left, right) = self.pair(left, right, rule)?;
        let Some(found) = compare(left, right) else {
            let nan = |val| matches!(val, ValueRef::Double(value) if f64::is_nan(value));
            if nan(left) || nan(right) {
                let numbers = |val| matches!(val, ValueRef::Double(_) | ValueRef::Int(_) | ValueRef::Uint(_));
                if numbers(left) && numbers(right) {
                    return self.fault(id, Cause::Misuse(Misuse::NotOrdered));
                }
            }
            let cause = if has_order(left) {
                Cause::NoSuchOperand(order.name())
            } else {
                Cause::NoSuchOverload(order.name())
            };
            return self.fault(id, cause);
        };
        Ok(ValueRef::Bool(match order {
            Order::Less => found.is_lt(),
            Order::LessEqual => found.is_le(),
            Order::Greater => found.is_gt(),
            Order::GreaterEqual => found.is_ge(),
        }))
    }

    #[inline(never)]
    pub(super) fn arithmetic(
        &mut self,
        id: StepId,
        operator: Arithmetic,
        left: StepId,
        right: StepId,
        rule: Rule,
    ) -> Outcome<'a> {
        let first = self.eval(left);
        if let Err(fault) = &first
            && fault.cause.is_fatal()
        {
            return first;
        }
        let second = self.eval(right);
        // Fast path: string concatenation is the most common; this rule charges nothing else.
        if let (Ok(ValueRef::Str(first)), Ok(ValueRef::Str(second)), Rule::Concatenate) =
            (&first, &second, rule)
        {
            let size = cost::characters(first).saturating_add(cost::characters(second));
            self.charge(cost::tenth(size))?;
            return self
                .arena
                .join(first, second)
                .map_or_else(|| self.full(id), |text| Ok(ValueRef::Str(text)));
        }
        let (left, right) = self.charge_pair(first, second, rule)?;
        match calculate(self.arena, operator, left, right) {
            Ok(val) => Ok(val),
            Err(cause) => self.fault(id, cause),
        }
    }

    #[inline(never)]
    pub(super) fn negate(&mut self, id: StepId, operand: StepId) -> Outcome<'a> {
        let outcome = self.eval(operand);
        self.charge(1)?;
        match outcome? {
            ValueRef::Int(value) => match value.checked_neg() {
                Some(value) => Ok(ValueRef::Int(value)),
                None => self.fault(id, Cause::IntOverflow),
            },
            ValueRef::Double(value) => Ok(ValueRef::Double(-value)),
            ValueRef::Duration(value) => match value.checked_neg() {
                Some(value) => Ok(ValueRef::Duration(value)),
                None => self.fault(id, Cause::IntOverflow),
            },
            // cel-go calls the operator on these types, and the type does not know it.
            ValueRef::Str(_) | ValueRef::Bool(_) | ValueRef::Timestamp(_) => {
                self.fault(id, Cause::NoSuchOperand("-_"))
            }
            _ => self.fault(id, Cause::NoSuchOverload("-_")),
        }
    }

    #[inline(never)]
    pub(super) fn membership(
        &mut self,
        id: StepId,
        item: StepId,
        collection: StepId,
        rule: Rule,
    ) -> Outcome<'a> {
        let (item, collection) = self.pair(item, collection, rule)?;
        // In an empty map nothing is looked up.
        if let ValueRef::Map(map @ (Map::Pairs(_) | Map::Values(_))) = collection
            && !map.is_empty()
            && is_unhashable(item)
            && !self.plan.scope.is_standard()
        {
            // The failed call is not charged.
            self.cost = self.cost.wrapping_sub(rule.charge(&[item, collection], None));
            return self.fault(id, Cause::Limit(Limit::UpstreamInternal));
        }
        match collection {
            ValueRef::List(list) => Ok(ValueRef::Bool(contains(list, item))),
            ValueRef::Map(map) => Ok(ValueRef::Bool(map.find(item).is_some())),
            _ => self.fault(id, Cause::NoSuchOverload("")),
        }
    }

    /// Membership in a constant list has no cost.
    #[inline(never)]
    pub(super) fn constant_membership(&mut self, id: StepId, item: StepId, list: u32) -> Outcome<'a> {
        let item = self.eval(item)?;
        if is_unhashable(item) && !self.plan.scope.is_standard() {
            return self.fault(id, Cause::Limit(Limit::UpstreamInternal));
        }
        match self.constant(list)? {
            ValueRef::List(list) => Ok(ValueRef::Bool(contains(list, item))),
            _ => self.fault(id, Cause::NoSuchOverload("")),
        }
    }
}

/// Whether the list contains an equal element.
pub(crate) fn contains(list: List<'_>, item: ValueRef<'_>) -> bool {
    match (item, list) {
        (ValueRef::Str(wanted), List::Strings(items)) => return items.iter().any(|item| item == wanted),
        (ValueRef::Str(wanted), List::Values(items)) => {
            return items.iter().any(|item| item.as_str() == Some(wanted));
        }
        _ => {}
    }
    list.iter().any(|element| equal(element, item))
}

/// `left operator right`
pub(crate) fn calculate<'a>(
    arena: &'a Arena,
    operator: Arithmetic,
    left: ValueRef<'a>,
    right: ValueRef<'a>,
) -> Result<ValueRef<'a>, Cause<'a>> {
    match (left, right) {
        (ValueRef::Int(left), ValueRef::Int(right)) => integers(operator, left, right),
        (ValueRef::Double(left), ValueRef::Double(right)) => match operator {
            Arithmetic::Add => Ok(ValueRef::Double(left + right)),
            Arithmetic::Subtract => Ok(ValueRef::Double(left - right)),
            Arithmetic::Multiply => Ok(ValueRef::Double(left * right)),
            Arithmetic::Divide => Ok(ValueRef::Double(left / right)),
            Arithmetic::Modulo => Err(Cause::NoSuchOverload("_%_")),
        },
        (ValueRef::Uint(left), ValueRef::Uint(right)) => unsigned(operator, left, right),
        _ => match operator {
            Arithmetic::Add => add(arena, left, right),
            Arithmetic::Subtract => subtract(left, right),
            Arithmetic::Multiply => Err(no_operand(left, "_*_")),
            Arithmetic::Divide => Err(no_operand(left, "_/_")),
            Arithmetic::Modulo => Err(no_operand(left, "_%_")),
        },
    }
}

/// The error message of cel-go: if the left operand supports the operator, the message names no function.
fn no_operand<'a>(left: ValueRef<'a>, operator: &'static str) -> Cause<'a> {
    let has_operator = match left {
        ValueRef::Int(_) | ValueRef::Uint(_) => true,
        ValueRef::Double(_) => operator != "_%_",
        ValueRef::Bytes(_) | ValueRef::List(_) => operator == "_+_",
        // cel-go calls any function on these types; the type itself does not know it.
        ValueRef::Str(_) | ValueRef::Duration(_) | ValueRef::Timestamp(_) => true,
        _ => false,
    };
    if has_operator { Cause::NoSuchOperand(operator) } else { Cause::NoSuchOverload(operator) }
}

fn has_order(val: ValueRef<'_>) -> bool {
    matches!(
        val,
        ValueRef::Bool(_)
            | ValueRef::Int(_)
            | ValueRef::Uint(_)
            | ValueRef::Double(_)
            | ValueRef::Str(_)
            | ValueRef::Bytes(_)
            | ValueRef::Duration(_)
            | ValueRef::Timestamp(_)
    )
}

fn integers(operator: Arithmetic, left: i64, right: i64) -> Result<ValueRef<'static>, Cause<'static>> {
    let result = match operator {
        Arithmetic::Add => left.checked_add(right),
        Arithmetic::Subtract => left.checked_sub(right),
        Arithmetic::Multiply => left.checked_mul(right),
        Arithmetic::Divide if right == 0 => return Err(Cause::DivisionByZero),
        Arithmetic::Divide => left.checked_div(right),
        Arithmetic::Modulo if right == 0 => return Err(Cause::ModulusByZero),
        Arithmetic::Modulo => left.checked_rem(right),
    };
    result.map(ValueRef::Int).ok_or(Cause::IntOverflow)
}

fn unsigned(operator: Arithmetic, left: u64, right: u64) -> Result<ValueRef<'static>, Cause<'static>> {
    let result = match operator {
        Arithmetic::Add => left.checked_add(right),
        Arithmetic::Subtract => left.checked_sub(right),
        Arithmetic::Multiply => left.checked_mul(right),
        Arithmetic::Divide if right == 0 => return Err(Cause::DivisionByZero),
        Arithmetic::Divide => left.checked_div(right),
        Arithmetic::Modulo if right == 0 => return Err(Cause::ModulusByZero),
        Arithmetic::Modulo => left.checked_rem(right),
    };
    result.map(ValueRef::Uint).ok_or(Cause::UintOverflow)
}

fn add<'a>(arena: &'a Arena, left: ValueRef<'a>, right: ValueRef<'a>) -> Result<ValueRef<'a>, Cause<'a>> {
    let full = Cause::Limit(Limit::Memory);
    match (left, right) {
        (ValueRef::Str(left), ValueRef::Str(right)) => arena.join(left, right).map(ValueRef::Str).ok_or(full),
        (ValueRef::Bytes(left), ValueRef::Bytes(right)) => {
            arena.reserve(left.len() + right.len()).ok_or(full)?;
            let joined = [left, right].concat();
            arena.slice(&joined).map(ValueRef::Bytes).ok_or(full)
        }
        (ValueRef::List(left), ValueRef::List(right)) => {
            if left.is_empty() {
                return Ok(ValueRef::List(right));
            }
            if right.is_empty() {
                return Ok(ValueRef::List(left));
            }
            let mut list = arena.list();
            list.reserve(left.len() + right.len()).ok_or(full)?;
            for item in left.without_unescape().iter().chain(right.without_unescape().iter()) {
                list.push(item).ok_or(full)?;
            }
            Ok(ValueRef::List(list.finish()))
        }
        (ValueRef::Duration(left), ValueRef::Duration(right)) => {
            left.checked_add(right).map(ValueRef::Duration).ok_or(Cause::IntOverflow)
        }
        (ValueRef::Timestamp(at), ValueRef::Duration(length))
        | (ValueRef::Duration(length), ValueRef::Timestamp(at)) => {
            at.checked_add(length).map(ValueRef::Timestamp).ok_or(Cause::TimestampOverflow)
        }
        _ => Err(no_operand(left, "_+_")),
    }
}

fn subtract<'a>(left: ValueRef<'a>, right: ValueRef<'a>) -> Result<ValueRef<'a>, Cause<'a>> {
    match (left, right) {
        (ValueRef::Duration(left), ValueRef::Duration(right)) => {
            left.checked_sub(right).map(ValueRef::Duration).ok_or(Cause::IntOverflow)
        }
        (ValueRef::Timestamp(at), ValueRef::Duration(length)) => {
            at.checked_sub(length).map(ValueRef::Timestamp).ok_or(Cause::TimestampOverflow)
        }
        (ValueRef::Timestamp(left), ValueRef::Timestamp(right)) => {
            left.since(right).map(ValueRef::Duration).ok_or(Cause::IntOverflow)
        }
        _ => Err(no_operand(left, "_-_")),
    }
}
