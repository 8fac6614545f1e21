//! Plans aggregate literals and comprehensions. A literal with constant parts becomes a constant.

use super::{FieldStep, Loop, Planned, Planner, Range, Step, StepId, number};
use crate::check::ObjectType;
use crate::syntax::ast::{NodeId, Run, Text};
use crate::value::{Value, ValueMap, equal};
use std::sync::Arc;

impl Planner<'_> {
    pub(super) fn list(&mut self, node: NodeId, elements: Run, optional: Run) -> Planned<StepId> {
        if self.tree.flags(optional).is_empty()
            && let Some(values) = self.literals(elements)
        {
            return Ok(self.constant(Value::List(values.into()), node));
        }
        let mut steps = Vec::with_capacity(elements.len as usize);
        for &element in self.tree.children(elements) {
            steps.push(self.step(element)?);
        }
        let flags = self.tree.flags(optional);
        if flags.is_empty() && steps.iter().all(|&step| self.value_of(step).is_some()) {
            let values = steps.iter().filter_map(|&step| self.value_of(step).cloned()).collect();
            return Ok(self.constant(Value::List(values), node));
        }
        let optional = self.flags(flags);
        let elements = self.operands(&steps);
        Ok(self.push(Step::List { elements, optional }, node))
    }

    /// The values of nodes that are all literals, without planning a step for each.
    fn literals(&self, nodes: Run) -> Option<Vec<Value>> {
        let nodes = self.tree.children(nodes);
        let mut values = Vec::with_capacity(nodes.len());
        for &node in nodes {
            values.push(self.literal(node)?);
        }
        Some(values)
    }

    pub(super) fn map(&mut self, node: NodeId, entries: Run, optional: Run) -> Planned<StepId> {
        let mut steps = Vec::with_capacity(entries.len as usize);
        for &part in self.tree.children(entries) {
            steps.push(self.step(part)?);
        }
        let flags = self.tree.flags(optional);
        if flags.is_empty() && steps.iter().all(|&step| self.value_of(step).is_some()) {
            let values: Vec<Value> = steps.iter().filter_map(|&step| self.value_of(step).cloned()).collect();
            let mut pairs = Vec::with_capacity(values.len() / 2);
            let mut values = values.into_iter();
            while let (Some(key), Some(value)) = (values.next(), values.next()) {
                pairs.push((key, value));
            }
            let bad =
                pairs.iter().any(|pair| matches!(pair.0, Value::Double(_) | Value::Null | Value::List(_)));
            let repeated = |(index, pair): (usize, &(Value, Value))| {
                pairs.iter().take(index).any(|other| equal(other.0.as_val(), pair.0.as_val()))
            };
            let unhashable = pairs.iter().any(|pair| matches!(pair.0, Value::Bytes(_)));
            // The conformance suite expects invalid and repeated keys to fail at evaluation.
            let refused = match self.plan.scope.is_standard() {
                true => bad || pairs.iter().enumerate().any(repeated),
                false => unhashable,
            };
            if !refused {
                return Ok(self.constant(Value::Map(ValueMap::new(pairs)), node));
            }
        }
        let optional = self.flags(flags);
        let entries = self.operands(&steps);
        Ok(self.push(Step::Map { entries, optional }, node))
    }

    pub(super) fn message(&mut self, node: NodeId, name: Text, fields: Run) -> Planned<StepId> {
        let written = self.tree.text(name);
        let scope = Arc::clone(&self.plan.scope);
        let found = scope.candidates(written).into_iter().find(|candidate| {
            // Kubernetes' environments accept the type of an object and fail at evaluation.
            let allowed = |object: &ObjectType| object.constructible || !scope.is_standard();
            scope.objects.get(&**candidate).is_some_and(allowed)
        });
        let Some(found) = found else {
            return Err(self.error_at(node, format!("unknown type: {written}")));
        };
        let mut steps = Vec::new();
        for field in self.tree.fields(fields) {
            let value = self.step(field.value)?;
            let name = self.text(self.tree.text(field.name));
            steps.push(FieldStep { name, value, optional: field.optional });
        }
        let start = number(self.plan.fields.len());
        let fields = Range { start, len: number(steps.len()) };
        self.plan.fields.extend(steps);
        let message = number(self.plan.messages.len());
        self.plan.messages.push(found.into());
        Ok(self.push(Step::Message { message, fields }, node))
    }

    pub(super) fn fold(&mut self, node: NodeId, index: u32) -> Planned<StepId> {
        let tree = self.tree;
        let Some(fold) = tree.fold(index) else {
            return Err(self.error_at(node, "unknown fold".to_owned()));
        };
        let range = self.step(fold.range)?;
        let depth = self.locals.len();
        let slot = self.plan.slots;
        self.locals.push((tree.text(fold.variable), slot));
        self.plan.slots += 1;
        if let Some(second) = fold.second {
            self.locals.push((tree.text(second), slot + 1));
            self.plan.slots += 1;
        }
        let filter = match fold.filter {
            Some(filter) => Some(self.step(filter)?),
            None => None,
        };
        let body = self.step(fold.body)?;
        self.locals.truncate(depth);
        let constant_body = self.value_of(body).is_some();
        let two = fold.second.is_some();
        let planned =
            Loop { kind: fold.kind, range, slot, two, filter, body, constant_body, fast_body: None };
        self.plan.loops.push(planned);
        let index = number(self.plan.loops.len() - 1);
        Ok(self.push(Step::Fold(index), node))
    }
}
