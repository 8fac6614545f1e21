//! Finds claims for which an expression is true, false or equal to a value, by walking its syntax tree. Not complete: what is not
//! recognised gives no solution, and mutation of claims has to find it.

mod compare;
mod text;

pub(super) use compare::others;

use std::collections::BTreeSet;

use navicert_cel::syntax::ast::{Fold, FoldKind, Node, NodeId, Tree};
use navicert_cel::unescape;
use serde_json::{Value, json};

use super::places::{Assignment, Place};

/// Maximum number of solutions that are kept for one expression.
const MAX_SOLUTIONS: usize = 8;

/// An expression to solve. `aliases` are the variables of comprehensions in scope.
#[derive(Clone, Copy)]
pub(super) struct Solver<'t> {
    pub(super) tree: &'t Tree,
}

impl Solver<'_> {
    /// Claims for which the whole expression is true, or false.
    pub(super) fn truth(self, wanted: bool) -> Vec<Assignment> {
        self.holds(self.tree.root(), wanted)
    }

    /// Claims for which the whole expression has this value.
    pub(super) fn value(self, value: &Value) -> Vec<Assignment> {
        self.equals(self.tree.root(), value)
    }

    /// Claims for every condition within the expression, true and false: comparisons, presence tests, branches.
    pub(super) fn conditions(self) -> Vec<Assignment> {
        let mut found = Vec::new();
        for (id, node) in self.tree.iter() {
            let is_condition = match node {
                Node::Select { test, .. } => test,
                Node::Call { function, .. } => is_condition(self.tree.function_name(function)),
                Node::Fold(index) => self
                    .tree
                    .fold(index)
                    .is_some_and(|fold| matches!(fold.kind, FoldKind::All | FoldKind::Exists)),
                _ => false,
            };
            if is_condition {
                found.extend(self.holds(id, true));
                found.extend(self.holds(id, false));
            }
        }
        let free = |assignment: &Assignment| {
            assignment.iter().all(|(place, _)| matches!(place.variable.as_str(), "claims" | "user"))
        };
        found.retain(free);
        found
    }

    /// Literals in the expression.
    pub(super) fn literals(self) -> Vec<Value> {
        let mut found = Vec::new();
        for (id, _) in self.tree.iter() {
            if let Some(value) = self.literal(id)
                && !found.contains(&value)
            {
                found.push(value);
            }
        }
        found
    }

    /// The places that the expression reads, of this variable.
    pub(super) fn places(self, variable: &str) -> Vec<Place> {
        let read = |(id, _): (NodeId, Node)| self.place(id);
        let named = |place: &Place| place.variable == variable && !place.fields.is_empty();
        let found: BTreeSet<Vec<String>> =
            self.tree.iter().filter_map(read).filter(named).map(|place| place.fields).collect();
        found.into_iter().map(|fields| Place { variable: variable.to_owned(), fields }).collect()
    }

    fn holds(self, id: NodeId, wanted: bool) -> Vec<Assignment> {
        let tree = self.tree;
        let found = match tree.node(id) {
            Node::Bool(value) if value == wanted => vec![Assignment::default()],
            Node::Bool(_) => Vec::new(),
            Node::Select { operand, field, test: true } => {
                let place = self.place(operand).map(|place| place.field(&unescaped(tree.text(field))));
                let value = wanted.then(|| json!("x"));
                place.map(|place| Assignment::one(place, value)).into_iter().collect()
            }
            Node::Call { function, target, args } => {
                let name = tree.function_name(function);
                self.call(name, target, tree.children(args), wanted)
            }
            Node::Fold(index) => tree.fold(index).map(|fold| self.fold(fold, wanted)).unwrap_or_default(),
            _ => Vec::new(),
        };
        let found = if found.is_empty() { self.equals(id, &json!(wanted)) } else { found };
        shortened(found)
    }

    fn call(self, name: &str, target: Option<NodeId>, args: &[NodeId], wanted: bool) -> Vec<Assignment> {
        match (name, target, args) {
            ("_&&_", None, &[left, right]) if wanted => self.both(left, right, true),
            ("_||_", None, &[left, right]) if !wanted => self.both(left, right, false),
            ("_&&_" | "_||_", None, &[left, right]) => {
                let mut found = self.holds(left, wanted);
                found.extend(self.holds(right, wanted));
                found
            }
            ("!_", None, &[operand]) => self.holds(operand, !wanted),
            ("_?_:_", None, &[condition, yes, no]) => {
                let branch = |is_true: bool, branch: NodeId| {
                    product(&self.holds(condition, is_true), &self.holds(branch, wanted))
                };
                let mut found = branch(true, yes);
                found.extend(branch(false, no));
                found
            }
            ("_==_", None, &[left, right]) => self.compared(left, right, wanted),
            ("_!=_", None, &[left, right]) => self.compared(left, right, !wanted),
            ("_<_" | "_<=_" | "_>_" | "_>=_", None, &[left, right]) => {
                self.ordered(name, left, right, wanted)
            }
            ("@in", None, &[item, collection]) => self.member(item, collection, wanted),
            ("startsWith" | "endsWith" | "contains" | "matches", Some(text), &[part])
            | ("matches", None, &[text, part]) => self.part_of_text(name, text, part, wanted),
            ("hasValue", Some(optional), []) => {
                let value = wanted.then(|| json!("x"));
                self.place(optional).map(|place| Assignment::one(place, value)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn both(self, left: NodeId, right: NodeId, wanted: bool) -> Vec<Assignment> {
        product(&self.holds(left, wanted), &self.holds(right, wanted))
    }

    /// A comprehension over a list in the claims: a list with one element, for which the body holds or not.
    fn fold(self, fold: &Fold, wanted: bool) -> Vec<Assignment> {
        let (empty, inner) = match fold.kind {
            FoldKind::All => (wanted, wanted),
            FoldKind::Exists | FoldKind::ExistsOne => (!wanted, wanted),
            _ => return Vec::new(),
        };
        let variable = self.tree.text(fold.variable).to_owned();
        let mut found = Vec::new();
        for mut solution in self.holds(fold.body, inner) {
            let element = solution.take(&variable).unwrap_or_else(|| json!("x"));
            let lists = self.equals(fold.range, &json!([element]));
            found.extend(product(&[solution], &lists));
        }
        if empty {
            found.extend(self.equals(fold.range, &json!([])));
        }
        found
    }

    /// The part of the input that a node reads.
    fn place(self, id: NodeId) -> Option<Place> {
        let tree = self.tree;
        match tree.node(id) {
            Node::Ident(name) => {
                let variable = tree.text(name).trim_start_matches('.').to_owned();
                Some(Place { variable, fields: Vec::new() })
            }
            Node::Select { operand, field, .. } => {
                Some(self.place(operand)?.field(&unescaped(tree.text(field))))
            }
            Node::Call { function, target: None, args } => {
                match (tree.function_name(function), tree.children(args)) {
                    ("_?._" | "_[_]" | "_[?_]", &[operand, key]) => match tree.node(key) {
                        Node::Str(field) => Some(self.place(operand)?.field(tree.text(field))),
                        _ => None,
                    },
                    ("dyn" | "string", &[operand]) => self.place(operand),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The value of a literal, or of a list of literals.
    fn literal(self, id: NodeId) -> Option<Value> {
        match self.tree.node(id) {
            Node::Null => Some(Value::Null),
            Node::Bool(value) => Some(json!(value)),
            Node::Int(value) => Some(json!(value)),
            Node::Uint(value) => Some(json!(value)),
            Node::Double(value) => Some(json!(value)),
            Node::Str(text) => Some(json!(self.tree.text(text))),
            Node::List { elements, .. } => {
                let elements = self.tree.children(elements).iter();
                elements.map(|element| self.literal(*element)).collect::<Option<Vec<_>>>().map(Value::Array)
            }
            _ => None,
        }
    }
}

/// Whether a call gives a bool that depends on its operands.
fn is_condition(name: &str) -> bool {
    matches!(
        name,
        "_==_"
            | "_!=_"
            | "_<_"
            | "_<=_"
            | "_>_"
            | "_>=_"
            | "@in"
            | "startsWith"
            | "endsWith"
            | "contains"
            | "matches"
            | "hasValue"
            | "_&&_"
            | "_||_"
    )
}

/// Claim names are escaped in expressions.
fn unescaped(name: &str) -> String {
    unescape(name).map_or_else(|| name.to_owned(), |name| name.to_string())
}

/// Every combination of two lists of solutions.
fn product(left: &[Assignment], right: &[Assignment]) -> Vec<Assignment> {
    let all = left.iter().flat_map(|left| right.iter().map(move |right| left.clone().with(right)));
    all.take(MAX_SOLUTIONS).collect()
}

fn shortened(mut found: Vec<Assignment>) -> Vec<Assignment> {
    found.truncate(MAX_SOLUTIONS);
    found
}

#[cfg(test)]
mod tests;
