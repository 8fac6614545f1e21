//! Solutions for equality, order and membership.

use navicert_cel::syntax::ast::{FoldKind, Node, NodeId};
use serde_json::{Value, json};

use super::{Assignment, Solver, product};

impl Solver<'_> {
    /// `left == right` if `wanted`, else `left != right`.
    pub(super) fn compared(self, left: NodeId, right: NodeId, wanted: bool) -> Vec<Assignment> {
        let with_literal = match (self.literal(left), self.literal(right)) {
            (None, Some(value)) => Some((left, value)),
            (Some(value), None) => Some((right, value)),
            _ => None,
        };
        let Some((term, value)) = with_literal else { return self.compared_terms(left, right, wanted) };
        if let Some(found) = self.compared_size(term, &value, wanted) {
            return found;
        }
        let values = if wanted { vec![value] } else { others(&value) };
        values.iter().flat_map(|value| self.equals(term, value)).collect()
    }

    fn compared_terms(self, left: NodeId, right: NodeId, wanted: bool) -> Vec<Assignment> {
        if let Some(found) = self.compared_type(left, right, wanted) {
            return found;
        }
        let other = if wanted { "x" } else { "y" };
        product(&self.equals(left, &json!("x")), &self.equals(right, &json!(other)))
    }

    /// `type(claims.x) == string`
    fn compared_type(self, left: NodeId, right: NodeId, wanted: bool) -> Option<Vec<Assignment>> {
        let type_of = |id: NodeId| match self.tree.node(id) {
            Node::Call { function, target: None, args } if self.tree.function_name(function) == "type" => {
                self.tree.children(args).first().copied()
            }
            _ => None,
        };
        let (operand, named) = match (type_of(left), type_of(right)) {
            (Some(operand), None) => (operand, right),
            (None, Some(operand)) => (operand, left),
            _ => return None,
        };
        let Node::Ident(name) = self.tree.node(named) else { return None };
        let sample = |name: &str| match name {
            "string" => json!("x"),
            "list" => json!(["x"]),
            "map" => json!({"x": "y"}),
            "bool" => json!(true),
            "null_type" => Value::Null,
            _ => json!(1.5),
        };
        let name = self.tree.text(name);
        let other = if name == "string" { "list" } else { "string" };
        Some(self.equals(operand, &sample(if wanted { name } else { other })))
    }

    /// `size(term) == number`
    fn compared_size(self, term: NodeId, value: &Value, wanted: bool) -> Option<Vec<Assignment>> {
        let measured = self.measured(term)?;
        let number = value.as_u64()?;
        let sizes = if wanted { vec![number] } else { vec![number + 1, number.saturating_sub(1)] };
        Some(sizes.into_iter().flat_map(|size| self.of_size(measured, size)).collect())
    }

    /// `left < right` and its kind, with a number on one side.
    pub(super) fn ordered(
        self,
        operator: &str,
        left: NodeId,
        right: NodeId,
        wanted: bool,
    ) -> Vec<Assignment> {
        let (term, value, operator) = match (self.literal(left), self.literal(right)) {
            (None, Some(value)) => (left, value, operator),
            (Some(value), None) => (right, value, mirrored(operator)),
            _ => return Vec::new(),
        };
        let (below, at, above) = match operator {
            "_<_" => (wanted, !wanted, !wanted),
            "_<=_" => (wanted, wanted, !wanted),
            "_>_" => (!wanted, !wanted, wanted),
            _ => (!wanted, wanted, wanted),
        };
        let mut steps = Vec::new();
        steps.extend(at.then_some(0_i64));
        steps.extend(below.then_some(-1));
        steps.extend(above.then_some(1));
        let solutions = |step: i64| match (self.measured(term), value.as_i64(), value.as_f64(), &value) {
            (Some(measured), Some(number), _, _) => {
                let size = u64::try_from(number.saturating_add(step)).ok();
                size.map(|size| self.of_size(measured, size)).unwrap_or_default()
            }
            (None, Some(number), _, _) => self.equals(term, &json!(number.saturating_add(step))),
            (None, None, Some(number), _) => self.equals(term, &json!(number + step as f64)),
            (None, None, None, Value::String(text)) => {
                let text = match step {
                    0 => text.clone(),
                    1.. => format!("{text}~"),
                    _ => String::new(),
                };
                self.equals(term, &json!(text))
            }
            _ => Vec::new(),
        };
        steps.into_iter().flat_map(solutions).collect()
    }

    /// `item in collection`
    pub(super) fn member(self, item: NodeId, collection: NodeId, wanted: bool) -> Vec<Assignment> {
        match (self.literal(item), self.literal(collection)) {
            (Some(item), None) => {
                let lists = match wanted {
                    true => vec![json!([item])],
                    false => vec![json!(["x"]), json!([])],
                };
                lists.iter().flat_map(|list| self.equals(collection, list)).collect()
            }
            (None, Some(Value::Array(list))) => {
                let is_other = |value: &Value| !list.contains(value);
                let first = list.first().cloned().unwrap_or(Value::Null);
                let values = if wanted { list.clone() } else { others(&first) };
                let values = values.into_iter().filter(|value| wanted || is_other(value));
                values.flat_map(|value| self.equals(item, &value)).collect()
            }
            _ => {
                let list = if wanted { json!(["x"]) } else { json!(["y"]) };
                product(&self.equals(item, &json!("x")), &self.equals(collection, &list))
            }
        }
    }

    /// Claims for which a node has this value.
    pub(super) fn equals(self, id: NodeId, value: &Value) -> Vec<Assignment> {
        if let Some(place) = self.place(id).filter(|place| !place.fields.is_empty() || is_local(place)) {
            return vec![Assignment::one(place, Some(value.clone()))];
        }
        if let Some(literal) = self.literal(id) {
            return if literal == *value { vec![Assignment::default()] } else { Vec::new() };
        }
        let tree = self.tree;
        match tree.node(id) {
            Node::Call { function, target, args } => {
                self.call_equals(tree.function_name(function), target, tree.children(args), value)
            }
            Node::Fold(index) => match tree.fold(index) {
                Some(fold) if fold.kind == FoldKind::List => {
                    self.list_equals(fold.range, fold.body, tree.text(fold.variable), value)
                }
                _ => Vec::new(),
            },
            Node::List { elements, .. } => {
                // One element decides; the others keep what they are.
                let wanted = value.as_array().and_then(|list| list.first());
                let solve = |element: &NodeId| wanted.map(|value| self.equals(*element, value));
                tree.children(elements).iter().filter_map(solve).flatten().collect()
            }
            _ => Vec::new(),
        }
    }

    fn call_equals(
        self,
        name: &str,
        target: Option<NodeId>,
        args: &[NodeId],
        value: &Value,
    ) -> Vec<Assignment> {
        match (name, target, args) {
            ("_+_", None, &[left, right]) => self.sum_equals(left, right, value),
            ("_?_:_", None, &[condition, yes, no]) => {
                let branch = |is_true: bool, branch: NodeId| {
                    product(&self.holds(condition, is_true), &self.equals(branch, value))
                };
                let mut found = branch(true, yes);
                found.extend(branch(false, no));
                found
            }
            ("orValue" | "or", Some(optional), &[other]) => {
                let mut found = self.equals(optional, value);
                if self.literal(other).as_ref() == Some(value)
                    && let Some(place) = self.place(optional)
                {
                    found.push(Assignment::one(place, None));
                }
                found
            }
            ("lowerAscii" | "upperAscii" | "trim" | "replace" | "value", Some(operand), _)
            | ("string" | "dyn" | "int" | "double" | "bool" | "optional.of", None, &[operand]) => {
                self.equals(operand, value)
            }
            ("split", Some(operand), [separator, ..]) => {
                let separator = self.literal(*separator);
                let parts: Option<Vec<&str>> =
                    value.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
                match (parts, separator.as_ref().and_then(Value::as_str)) {
                    (Some(parts), Some(separator)) => self.equals(operand, &json!(parts.join(separator))),
                    _ => Vec::new(),
                }
            }
            ("_[_]", None, &[list, index]) if self.literal(index).is_some_and(|index| index.is_number()) => {
                self.equals(list, &json!([value]))
            }
            _ => Vec::new(),
        }
    }

    /// `claims.groups.map(g, 'p:' + g)` with these elements.
    fn list_equals(self, range: NodeId, body: NodeId, variable: &str, value: &Value) -> Vec<Assignment> {
        let Some(list) = value.as_array() else { return Vec::new() };
        let element = |value: &Value| self.equals(body, value).first()?.clone().take(variable);
        match list.iter().map(element).collect::<Option<Vec<_>>>() {
            Some(elements) => self.equals(range, &json!(elements)),
            None => Vec::new(),
        }
    }
}

/// The variable of a comprehension.
fn is_local(place: &super::Place) -> bool {
    !matches!(place.variable.as_str(), "claims" | "user")
}

/// Values that differ from this one as little as possible.
pub(crate) fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::String(text) => vec![json!(format!("{text}x"))],
        Value::Bool(value) => vec![json!(!value)],
        Value::Number(number) => match number.as_i64() {
            Some(number) => vec![json!(number.saturating_add(1)), json!(number.saturating_sub(1))],
            None => vec![json!(0)],
        },
        Value::Array(list) if list.is_empty() => vec![json!(["x"])],
        Value::Array(_) => vec![json!([])],
        Value::Null | Value::Object(_) => vec![json!("x")],
    }
}

fn mirrored(operator: &str) -> &str {
    match operator {
        "_<_" => "_>_",
        "_<=_" => "_>=_",
        "_>_" => "_<_",
        _ => "_<=_",
    }
}
