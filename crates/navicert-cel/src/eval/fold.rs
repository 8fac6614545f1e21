//! Comprehensions and bindings. Each kind has its own loop. It charges what the expansion into a general
//! comprehension would cost: the accumulator, the loop condition and the loop step.

use super::{Machine, Outcome, Slot};
use crate::error::{InternalFault, Limit, Misuse};
use crate::fault::{Cause, Fault, Origin};
use crate::plan::{Loop, StepId};
use crate::syntax::ast::FoldKind;
use crate::value::{List, Map, Pairs, ValueRef};

/// The iteration range of a comprehension.
pub(super) enum Range<'a> {
    One(List<'a>),
    /// Pairs of key or index and value.
    Two(Vec<(ValueRef<'a>, Slot<'a>)>),
    /// Index and element of a list.
    Indexed(List<'a>),
    /// Single values that are not a list, such as the keys of a map.
    Keys(Vec<Slot<'a>>),
}

impl Range<'_> {
    fn len(&self) -> usize {
        match self {
            Range::One(list) | Range::Indexed(list) => list.len(),
            Range::Two(pairs) => pairs.len(),
            Range::Keys(keys) => keys.len(),
        }
    }
}

impl<'a> Machine<'a, '_> {
    #[inline(never)]
    pub(super) fn fold(&mut self, id: StepId, index: u32) -> Outcome<'a> {
        let plan = self.plan;
        let Some(fold) = plan.loops.get(index as usize) else {
            return self.internal(InternalFault::Comprehension);
        };
        if fold.kind == FoldKind::Bind {
            self.locals.set(fold.slot, Slot::Pending(fold.range));
            return self.eval(fold.body);
        }
        let range = self.eval(fold.range)?;
        let range = self.range(id, range, fold.two)?;
        match fold.kind {
            FoldKind::All => self.quantify(id, fold, &range, false),
            FoldKind::Exists => self.quantify(id, fold, &range, true),
            FoldKind::ExistsOne => self.exists_one(id, fold, &range),
            FoldKind::List => self.collect(id, fold, &range),
            FoldKind::Map | FoldKind::MapEntry => self.collect_map(id, fold, &range),
            FoldKind::Bind => self.eval(fold.body),
        }
    }

    fn range(&self, id: StepId, val: ValueRef<'a>, two: bool) -> Result<Range<'a>, Fault<'a>> {
        match (val, two) {
            (ValueRef::List(list), true) => Ok(Range::Indexed(list)),
            (ValueRef::Map(map), true) => {
                Ok(Range::Two(map.iter().map(|(key, value)| (key, Slot::Ready(value))).collect()))
            }
            (ValueRef::Map(map), false) => {
                Ok(Range::Keys(map.iter().map(|(key, _)| Slot::Ready(key)).collect()))
            }
            (ValueRef::Claims(claims), _) => {
                let lookup = |name: &str| match claims.select(name, true) {
                    Some(Ok(val)) => Slot::Ready(val),
                    Some(Err(fault)) => Slot::Failed(Fault { cause: Cause::Claim(fault), node: 0 }),
                    None => Slot::Failed(Fault { cause: Cause::NoSuchKey("", Origin::Literal), node: 0 }),
                };
                Ok(iterated_values(&claims.names(), lookup, two))
            }
            (ValueRef::Object(object), _) => {
                let names: Vec<&str> = object.fields.iter().map(|field| field.0).collect();
                let lookup = |name: &str| match object.field(name) {
                    Some(val) => Slot::Ready(val),
                    None => Slot::Failed(Fault { cause: Cause::NoSuchKey("", Origin::Literal), node: 0 }),
                };
                Ok(iterated_values(&names, lookup, two))
            }
            (val, false) => match self.iterable(val) {
                Some(list) => Ok(Range::One(list)),
                None => self.fault(id, Cause::NotIterable(go_type(val))),
            },
            (_, true) => self.fault(id, Cause::Misuse(Misuse::NotIterableInPairs)),
        }
    }

    #[inline(always)]
    fn bind(&mut self, fold: &Loop, range: &Range<'a>, index: usize) -> Result<(), Fault<'a>> {
        let (first, second) = match range {
            Range::One(list) => (list.get(index).map(Slot::Ready), None),
            Range::Indexed(list) => {
                let position = i64::try_from(index).unwrap_or(i64::MAX);
                (Some(Slot::Ready(ValueRef::Int(position))), list.get(index).map(Slot::Ready))
            }
            Range::Keys(keys) => (keys.get(index).copied(), None),
            Range::Two(pairs) => match pairs.get(index) {
                Some((key, value)) => (Some(Slot::Ready(*key)), Some(*value)),
                None => (None, None),
            },
        };
        let Some(first) = first else { return self.internal(InternalFault::Element) };
        self.locals.set(fold.slot, first);
        match second {
            Some(second) => self.locals.set(fold.slot + 1, second),
            None if fold.two => return self.internal(InternalFault::Element),
            None => {}
        }
        Ok(())
    }

    /// Checks for interruption; called at every iteration.
    fn check_interrupt(&mut self) -> Result<(), Fault<'a>> {
        if self.limits.interrupt.is_some() && self.limits.is_interrupted() {
            let cause = Cause::Limit(Limit::Interrupted);
            return Err(Fault { cause, node: 0 });
        }
        Ok(())
    }

    /// `all` (ends at false) and `exists` (ends at true).
    fn quantify(&mut self, id: StepId, fold: &Loop, range: &Range<'a>, deciding: bool) -> Outcome<'a> {
        let condition_cost = if deciding { 3 } else { 2 };
        let mut failed: Option<Fault<'a>> = None;
        let mut decided = false;
        let fast_loop = self.fast_loop(fold, range);
        for index in 0..range.len() {
            if let Some(fast_loop) = &fast_loop
                && !decided
                && let Some(value) = self.test_element(fast_loop, index, condition_cost)
            {
                decided = value == deciding;
                continue;
            }
            self.charge(condition_cost)?;
            if decided {
                break;
            }
            self.check_interrupt()?;
            self.bind(fold, range, index)?;
            self.charge(1)?;
            match self.eval(fold.body) {
                Ok(ValueRef::Bool(value)) => decided = value == deciding,
                Ok(_) => {
                    let fault = Fault { cause: Cause::NoSuchOverload(""), node: self.node_of(id) };
                    failed = failed.or(Some(fault));
                }
                Err(fault) if fault.cause.is_fatal() => return Err(fault),
                Err(fault) => failed = failed.or(Some(fault)),
            }
        }
        self.charge(1)?;
        match failed {
            _ if decided => Ok(ValueRef::Bool(deciding)),
            Some(fault) => Err(fault),
            None => Ok(ValueRef::Bool(!deciding)),
        }
    }

    fn exists_one(&mut self, id: StepId, fold: &Loop, range: &Range<'a>) -> Outcome<'a> {
        let mut count = 0_u64;
        let mut failed = None;
        for index in 0..range.len() {
            self.check_interrupt()?;
            self.bind(fold, range, index)?;
            match self.eval(fold.body) {
                Ok(ValueRef::Bool(true)) => {
                    self.charge(2)?;
                    count += 1;
                }
                Ok(ValueRef::Bool(false)) => {}
                Ok(_) => failed = Some(Fault { cause: Cause::NoSuchOverload(""), node: self.node_of(id) }),
                Err(fault) if fault.cause.is_fatal() => return Err(fault),
                Err(fault) => failed = Some(fault),
            }
        }
        self.charge(2)?;
        match failed {
            Some(fault) => Err(fault),
            None => Ok(ValueRef::Bool(count == 1)),
        }
    }

    /// Whether the element passes the filter; true without a filter.
    #[inline(always)]
    fn passes_filter(
        &mut self,
        id: StepId,
        fold: &Loop,
        failed: &mut Option<Fault<'a>>,
    ) -> Result<bool, Fault<'a>> {
        match fold.filter {
            None => Ok(true),
            Some(filter) => self.evaluate_filter(id, filter, failed),
        }
    }

    /// Evaluates the filter. A failure is stored in `failed` and the element is skipped.
    fn evaluate_filter(
        &mut self,
        id: StepId,
        filter: StepId,
        failed: &mut Option<Fault<'a>>,
    ) -> Result<bool, Fault<'a>> {
        match self.eval(filter) {
            Ok(ValueRef::Bool(value)) => Ok(value),
            Ok(_) => {
                *failed = Some(Fault { cause: Cause::NoSuchOverload(""), node: self.node_of(id) });
                Ok(false)
            }
            Err(fault) if fault.cause.is_fatal() => Err(fault),
            Err(fault) => {
                *failed = Some(fault);
                Ok(false)
            }
        }
    }

    /// `map`, `filter`, `transformList`
    fn collect(&mut self, id: StepId, fold: &Loop, range: &Range<'a>) -> Outcome<'a> {
        let mut list = self.arena.list();
        let mut failed: Option<Fault<'a>> = None;
        if fold.filter.is_none() && list.reserve(range.len()).is_none() {
            return self.full(id);
        }
        let fast_loop = self.fast_loop(fold, range);
        for index in 0..range.len() {
            if let Some(fast_loop) = &fast_loop
                && failed.is_none()
                && let Some(joined) = self.join_element(fast_loop, index, fold)
            {
                if list.push(joined?).is_none() {
                    return self.full(id);
                }
                continue;
            }
            self.check_interrupt()?;
            self.bind(fold, range, index)?;
            if !self.passes_filter(id, fold, &mut failed)? {
                continue;
            }
            self.charge(1)?;
            match self.eval(fold.body) {
                Ok(val) if failed.is_none() => {
                    if list.push(val).is_none() {
                        return self.full(id);
                    }
                }
                Ok(_) => {}
                Err(fault) if fault.cause.is_fatal() => return Err(fault),
                Err(fault) => failed = failed.or(Some(fault)),
            }
            if !fold.constant_body {
                self.charge(10)?;
            }
            self.charge(1)?;
        }
        self.charge(1)?;
        match failed {
            Some(fault) => Err(fault),
            None => Ok(ValueRef::List(list.finish())),
        }
    }

    /// `transformMap`, `transformMapEntry`
    fn collect_map(&mut self, id: StepId, fold: &Loop, range: &Range<'a>) -> Outcome<'a> {
        let mut pairs: Vec<(ValueRef<'a>, ValueRef<'a>)> = Vec::new();
        let mut failed: Option<Fault<'a>> = None;
        let entries = fold.kind == FoldKind::MapEntry;
        for index in 0..range.len() {
            self.check_interrupt()?;
            self.bind(fold, range, index)?;
            if !self.passes_filter(id, fold, &mut failed)? {
                continue;
            }
            self.charge(1)?;
            if !entries {
                if failed.is_some() {
                    continue;
                }
                self.charge(1)?;
            }
            let body = self.eval(fold.body);
            self.charge(1)?;
            match body {
                Ok(_) if failed.is_some() => {}
                Ok(val) => {
                    let added = if entries {
                        self.merge(&mut pairs, val)
                    } else {
                        self.insert(fold, &mut pairs, val)
                    };
                    if let Err(cause) = added {
                        if cause.is_fatal() {
                            return self.fault(id, cause);
                        }
                        failed = Some(Fault { cause, node: self.node_of(id) });
                    }
                }
                Err(fault) if fault.cause.is_fatal() => return Err(fault),
                Err(fault) => failed = failed.or(Some(fault)),
            }
            if pairs.len().saturating_mul(size_of::<(ValueRef<'a>, ValueRef<'a>)>()) > self.arena.remaining()
            {
                return self.full(id);
            }
        }
        self.charge(1)?;
        match (failed, Pairs::build(self.arena, &pairs)) {
            (Some(fault), _) => Err(fault),
            (None, Some(pairs)) => Ok(ValueRef::Map(Map::Pairs(pairs))),
            (None, None) => self.full(id),
        }
    }

    fn insert(
        &self,
        fold: &Loop,
        pairs: &mut Vec<(ValueRef<'a>, ValueRef<'a>)>,
        val: ValueRef<'a>,
    ) -> Result<(), Cause<'a>> {
        match self.locals.get(fold.slot) {
            Some(&Slot::Ready(key)) => {
                pairs.push((key, val));
                Ok(())
            }
            None | Some(Slot::Unbound) => Err(Cause::Internal(InternalFault::Local)),
            Some(_) => Err(Cause::NoSuchOverload("cel.@mapInsert")),
        }
    }

    fn merge(
        &self,
        pairs: &mut Vec<(ValueRef<'a>, ValueRef<'a>)>,
        val: ValueRef<'a>,
    ) -> Result<(), Cause<'a>> {
        let ValueRef::Map(map) = val else { return Err(Cause::NoSuchOverload("cel.@mapInsert")) };
        for (key, value) in map.iter() {
            if pairs.iter().any(|known| crate::value::finds_key(known.0, key)) {
                return Err(Cause::Misuse(Misuse::ExistingKey));
            }
            pairs.push((key, value));
        }
        Ok(())
    }
}

/// Go's name of the type of a value that cannot be iterated; empty if cel-go's message names none.
fn go_type(val: ValueRef<'_>) -> &'static str {
    match val {
        ValueRef::Null => "types.Null",
        ValueRef::Bool(_) => "types.Bool",
        ValueRef::Int(_) => "types.Int",
        ValueRef::Uint(_) => "types.Uint",
        ValueRef::Double(_) => "types.Double",
        ValueRef::Str(_) => "types.String",
        ValueRef::Bytes(_) => "types.Bytes",
        ValueRef::Duration(_) => "types.Duration",
        ValueRef::Timestamp(_) => "types.Timestamp",
        ValueRef::Optional(_) => "*types.Optional",
        _ => "",
    }
}

/// The range of a comprehension over `claims` or `user`: it iterates over values, not names. With two variables,
/// each value is looked up as a name.
fn iterated_values<'a>(names: &[&str], lookup: impl Fn(&str) -> Slot<'a>, two: bool) -> Range<'a> {
    let values = names.iter().map(|name| lookup(name));
    if !two {
        return Range::Keys(values.collect());
    }
    let pair = |slot: Slot<'a>| match slot {
        Slot::Ready(ValueRef::Str(name)) => (ValueRef::Str(name), lookup(name)),
        Slot::Ready(val) => {
            let cause = Cause::NoSuchOverload("");
            (val, Slot::Failed(Fault { cause, node: 0 }))
        }
        other => (ValueRef::Null, other),
    };
    Range::Two(values.map(pair).collect())
}
