//! Plans calls: operators have their own steps; other calls become a call of an overload.

use super::{Arithmetic, Key, Order, Planned, Planner, Qualifier, Step, StepId, number};
use crate::check::Reference;
use crate::cost::Rule;
use crate::functions;
use crate::syntax::ast::{NodeId, Run, Text};
use crate::value::Value;
use std::sync::Arc;

/// The function that a call resolved to.
struct Resolved {
    function: Option<u32>,
    overload: Option<u32>,
    /// The receiver is an argument, not part of the function name.
    receiver: bool,
    rule: Rule,
}

impl Planner<'_> {
    pub(super) fn call(
        &mut self,
        node: NodeId,
        function: Text,
        target: Option<NodeId>,
        args: Run,
    ) -> Planned<StepId> {
        let tree = self.tree;
        let name = tree.function_name(function);
        let nodes = tree.children(args);
        if target.is_none()
            && let Some(step) = self.operator(node, name, nodes)?
        {
            return Ok(step);
        }
        let resolved = self.resolve_call(node, name, target);
        let mut steps = Vec::with_capacity(nodes.len() + 1);
        if let Some(target) = target.filter(|_| resolved.receiver) {
            steps.push(self.step(target)?);
        }
        for &argument in nodes {
            steps.push(self.step(argument)?);
        }
        if let Some(step) = self.special(node, name, &resolved, &steps)? {
            return Ok(step);
        }
        let Some(function) = resolved.function else {
            let name = self.text(name);
            let args = self.operands(&steps);
            return Ok(self.push(Step::Missing { name, args, rule: resolved.rule }, node));
        };
        if let Some(step) = self.fold_conversion(node, name, function, resolved.overload, &steps)? {
            return Ok(step);
        }
        let lazy = self.compile_pattern(node, name, &steps)? || self.is_dispatched(function, &resolved);
        self.check_arity(node, name, function, steps.len())?;
        let args = self.operands(&steps);
        let overload = resolved.overload;
        Ok(self.push(Step::Call { function, overload, args, rule: resolved.rule, lazy }, node))
    }

    /// Compiles a constant pattern of `find` or `findAll`, to report errors at compile time; cel-go plans such
    /// calls differently.
    fn compile_pattern(&mut self, node: NodeId, name: &str, steps: &[StepId]) -> Planned<bool> {
        if !matches!(name, "find" | "findAll") || steps.len() < 2 {
            return Ok(steps.len() > 2);
        }
        let pattern = steps.get(1).and_then(|&step| self.value_of(step)).and_then(Value::as_str);
        match pattern.map(functions::regex::compile) {
            None => Ok(steps.len() > 2),
            Some(Ok(_)) => Ok(true),
            Some(Err(error)) => Err(self.error_at(node, error.to_string())),
        }
    }

    /// Whether the overload is chosen at run time. Such calls evaluate their arguments one by one.
    fn is_dispatched(&self, function: u32, resolved: &Resolved) -> bool {
        let declared = self.plan.scope.functions.get(function);
        let overloads = declared.map_or(&[][..], |declared| &declared.overloads);
        let with_code = overloads.iter().filter(|overload| overload.body.is_some()).count();
        self.checked.is_some() && resolved.overload.is_none() && with_code > 1
    }

    /// Rejects an unchecked call of a known function with an unsupported number of arguments.
    fn check_arity(&self, node: NodeId, name: &str, function: u32, count: usize) -> Planned<()> {
        let Some(declared) = self.plan.scope.functions.get(function) else { return Ok(()) };
        let known = declared.overloads.iter().any(|overload| {
            let expected = overload.guards.len();
            expected == count || expected > 2 || count > 2
        });
        if self.checked.is_some() || self.plan.scope.is_standard() || known {
            return Ok(());
        }
        Err(self.error_at(node, format!("no such overload: {name}")))
    }

    fn resolve_call(&self, node: NodeId, name: &str, target: Option<NodeId>) -> Resolved {
        let scope = Arc::clone(&self.plan.scope);
        if let Some(checked) = self.checked {
            if let Reference::Function { function, overload, qualified } = *checked.reference(node) {
                let rule = match overload.and_then(|overload| scope.functions.overload(function, overload)) {
                    Some(overload) => overload.rule,
                    None => {
                        Rule::for_function(scope.functions.get(function).map_or(name, |found| &found.name))
                    }
                };
                return Resolved { function: Some(function), overload, receiver: !qualified, rule };
            }
        } else if let Some(prefix) = target.and_then(|target| self.tree.qualified_name(target)) {
            let full = format!("{prefix}.{name}");
            for candidate in scope.candidates(&full) {
                if let Some(function) = scope.functions.find(&candidate) {
                    let rule = Rule::for_function(&candidate);
                    return Resolved { function: Some(function), overload: None, receiver: false, rule };
                }
            }
        }
        let function = scope.candidates(name).iter().find_map(|candidate| scope.functions.find(candidate));
        Resolved { function, overload: None, receiver: true, rule: Rule::for_function(name) }
    }

    /// The cost rule of the overload that a checked operator resolved to.
    fn operator_rule(&self, node: NodeId, name: &str) -> Rule {
        self.resolve_call(node, name, None).rule
    }

    fn pair(&mut self, nodes: &[NodeId]) -> Planned<Option<(StepId, StepId)>> {
        let &[left, right] = nodes else { return Ok(None) };
        Ok(Some((self.step(left)?, self.step(right)?)))
    }

    /// Plans an operator with its own step.
    fn operator(&mut self, node: NodeId, name: &str, nodes: &[NodeId]) -> Planned<Option<StepId>> {
        let arithmetic = match name {
            "_+_" => Some(Arithmetic::Add),
            "_-_" => Some(Arithmetic::Subtract),
            "_*_" => Some(Arithmetic::Multiply),
            "_/_" => Some(Arithmetic::Divide),
            "_%_" => Some(Arithmetic::Modulo),
            _ => None,
        };
        if let Some(operator) = arithmetic {
            let rule = self.operator_rule(node, name);
            return Ok(self
                .pair(nodes)?
                .map(|(left, right)| self.push(Step::Arithmetic { operator, left, right, rule }, node)));
        }
        let order = match name {
            "_<_" => Some(Order::Less),
            "_<=_" => Some(Order::LessEqual),
            "_>_" => Some(Order::Greater),
            "_>=_" => Some(Order::GreaterEqual),
            _ => None,
        };
        if let Some(order) = order {
            let rule = self.operator_rule(node, name);
            return Ok(self
                .pair(nodes)?
                .map(|(left, right)| self.push(Step::Compare { order, left, right, rule }, node)));
        }
        match (name, nodes) {
            ("_==_" | "_!=_", _) => {
                let negated = name == "_!=_";
                Ok(self
                    .pair(nodes)?
                    .map(|(left, right)| self.push(Step::Equal { left, right, negated }, node)))
            }
            ("_&&_" | "_||_", _) => {
                let mut terms = Vec::with_capacity(nodes.len());
                for &term in nodes {
                    terms.push(self.step(term)?);
                }
                let terms = self.operands(&terms);
                let step = if name == "_&&_" { Step::And(terms) } else { Step::Or(terms) };
                Ok(Some(self.push(step, node)))
            }
            ("!_", &[operand]) => {
                let operand = self.step(operand)?;
                Ok(Some(self.push(Step::Not(operand), node)))
            }
            ("-_", &[operand]) => {
                let operand = self.step(operand)?;
                Ok(Some(self.push(Step::Negate(operand), node)))
            }
            ("_?_:_", &[condition, yes, no]) => {
                let condition = self.step(condition)?;
                let (yes, no) = (self.step(yes)?, self.step(no)?);
                Ok(Some(self.push(Step::If { condition, yes, no }, node)))
            }
            ("_[_]" | "_[?_]" | "_?._", &[operand, key]) => {
                let base = self.step(operand)?;
                let key = self.step(key)?;
                let optional = name != "_[_]";
                let key = self.key(node, key)?;
                Ok(Some(self.qualify(node, base, Qualifier { key, optional, node: node.0 }, false)))
            }
            ("@in", &[item, collection]) => self.membership(node, item, collection).map(Some),
            _ => Ok(None),
        }
    }

    fn key(&mut self, node: NodeId, step: StepId) -> Planned<Key> {
        let Some(value) = self.value_of(step) else { return Ok(Key::Step(step)) };
        match value {
            Value::String(text) => {
                let text = text.clone();
                Ok(self.text_key(&text))
            }
            Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_) => match self.get(step) {
                Some(Step::Constant(index)) => Ok(Key::Constant(index)),
                _ => Ok(Key::Step(step)),
            },
            other if !self.plan.scope.is_standard() => {
                let message = format!("invalid qualifier type: {}", other.as_val().type_name());
                Err(self.error_at(node, message))
            }
            _ => Ok(Key::Step(step)),
        }
    }

    fn membership(&mut self, node: NodeId, item: NodeId, collection: NodeId) -> Planned<StepId> {
        let rule = self.operator_rule(node, "@in");
        let item = self.step(item)?;
        let collection = self.step(collection)?;
        if rule == Rule::InList
            && let Some(Step::Constant(index)) = self.get(collection)
            && let Some(Value::List(values)) = self.value_of(collection)
        {
            if values.is_empty() {
                return Ok(self.constant(Value::Bool(false), node));
            }
            let simple = |value: &Value| {
                matches!(
                    value,
                    Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_)
                )
            };
            if values.iter().all(simple) {
                return Ok(self.push(Step::InConstant { item, list: index }, node));
            }
        }
        Ok(self.push(Step::In { item, collection, rule }, node))
    }

    /// Plans calls with special evaluation: lazy optional defaults and constant patterns.
    fn special(
        &mut self,
        node: NodeId,
        name: &str,
        resolved: &Resolved,
        steps: &[StepId],
    ) -> Planned<Option<StepId>> {
        let optional = self.plan.scope.options.macros.optional;
        match (name, steps) {
            ("or", &[optional_value, other]) if optional && resolved.receiver => {
                Ok(Some(self.push(Step::OrElse { optional: optional_value, other }, node)))
            }
            ("orValue", &[optional_value, other]) if optional && resolved.receiver => {
                Ok(Some(self.push(Step::OrValue { optional: optional_value, other }, node)))
            }
            ("matches", &[text, pattern]) if resolved.function.is_some() => {
                let Some(Value::String(pattern)) = self.value_of(pattern) else { return Ok(None) };
                let pattern = pattern.clone();
                let compiled = functions::regex::compile(&pattern)
                    .map_err(|error| self.error_at(node, error.to_string()))?;
                self.plan.patterns.push(compiled);
                let size = number(pattern.chars().count());
                let pattern = number(self.plan.patterns.len() - 1);
                if resolved.rule != Rule::Pattern {
                    return Ok(None);
                }
                Ok(Some(self.push(Step::Matches { text, pattern, size }, node)))
            }
            _ => Ok(None),
        }
    }
}
