//! Validation of literals beyond their types, as Kubernetes does it: homogeneous aggregates, durations, timestamps,
//! patterns and format strings.

use super::checker::{Checked, Reference};
use super::environment::Scope;
use super::types::{Type, TypeId};
use crate::diagnostic::Diagnostic;
use crate::functions;
use crate::language::LanguageFacts;
use crate::library::strings_format::Verb;
use crate::syntax::ast::{Node, NodeId, Run, Tree};
use crate::value::ValueRef;

pub(super) fn validate(
    scope: &Scope,
    tree: &Tree,
    checked: &mut Checked<'_>,
    problems: &mut Vec<Diagnostic>,
) {
    if !scope.validate {
        return;
    }
    let interesting = tree
        .nodes
        .iter()
        .any(|node| matches!(node, Node::List { .. } | Node::Map { .. } | Node::Call { .. }));
    if !interesting {
        return;
    }
    let exempt = within_format(tree);
    let mut validator = Validator { facts: scope.facts, tree, checked, problems };
    for index in 0..tree.len() {
        let id = NodeId(u32::try_from(index).unwrap_or(u32::MAX));
        let is_exempt = exempt.get(index).copied().unwrap_or(false);
        match tree.node(id) {
            Node::List { elements, optional } if !is_exempt => validator.list(elements, optional),
            Node::Map { entries, optional } if !is_exempt => validator.map(entries, optional),
            Node::Call { function, target, args } => {
                validator.call(id, tree.function_name(function), target, tree.children(args));
            }
            _ => {}
        }
    }
}

/// Marks the nodes below a call of `format`.
fn within_format(tree: &Tree) -> Vec<bool> {
    let mut exempt = vec![false; tree.len()];
    let mut open: Vec<NodeId> = Vec::new();
    for node in &tree.nodes {
        if let Node::Call { function, target: Some(target), args } = node
            && tree.text(*function) == "format"
        {
            open.push(*target);
            open.extend_from_slice(tree.children(*args));
        }
    }
    while let Some(id) = open.pop() {
        let Some(flag) = exempt.get_mut(id.index()) else { continue };
        if std::mem::replace(flag, true) {
            continue;
        }
        tree.each_child(tree.node(id), |child| open.push(child));
    }
    exempt
}

struct Validator<'v, 'e> {
    facts: &'static LanguageFacts,
    tree: &'v Tree,
    checked: &'v mut Checked<'e>,
    problems: &'v mut Vec<Diagnostic>,
}

impl Validator<'_, '_> {
    fn report(&mut self, id: NodeId, message: String) {
        let (at, span) = (self.tree.at(id), self.tree.span(id));
        self.problems.push(Diagnostic::new(self.tree.source(), at, span, message));
    }

    fn mismatch(&mut self, id: NodeId, expected: TypeId, found: TypeId) {
        let (expected, found) = (self.checked.types.describe(expected), self.checked.types.describe(found));
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn element_type(&self, id: NodeId, optional: bool) -> TypeId {
        let found = self.checked.type_of(id);
        let found = if optional { self.checked.types.unwrap_optional(found).unwrap_or(found) } else { found };
        // A wrapper type is equivalent to the type it wraps.
        match self.checked.types.node(found) {
            Type::Wrapper(inner) => inner,
            _ => found,
        }
    }

    /// Whether two types are equal when wrapper types are ignored at every level.
    fn equivalent(&self, left: TypeId, right: TypeId) -> bool {
        let mut open = vec![(left, right)];
        while let Some((left, right)) = open.pop() {
            if left == right {
                continue;
            }
            match (self.checked.types.node(left), self.checked.types.node(right)) {
                (Type::Wrapper(inner), _) => open.push((inner, right)),
                (_, Type::Wrapper(inner)) => open.push((left, inner)),
                (Type::List(left), Type::List(right)) => open.push((left, right)),
                (Type::Map(left_key, left_value), Type::Map(right_key, right_value)) => {
                    open.extend([(left_key, right_key), (left_value, right_value)]);
                }
                (Type::Opaque(name, left, count), Type::Opaque(other, right, others))
                    if name == other && count == others =>
                {
                    open.extend(left.into_iter().zip(right).take(usize::from(count)));
                }
                _ => return false,
            }
        }
        true
    }

    fn list(&mut self, elements: Run, optional: Run) {
        let flags = self.tree.flags(optional);
        let mut first = None;
        for (index, &element) in self.tree.children(elements).iter().enumerate() {
            let found = self.element_type(element, flags.get(index).copied().unwrap_or(false));
            match first {
                None => first = Some(found),
                Some(expected) if !self.equivalent(expected, found) => {
                    self.mismatch(element, expected, found);
                    break;
                }
                Some(_) => {}
            }
        }
    }

    fn map(&mut self, entries: Run, optional: Run) {
        let flags = self.tree.flags(optional);
        let mut first = None;
        for (index, pair) in self.tree.children(entries).chunks_exact(2).enumerate() {
            let &[key, value] = pair else { continue };
            let key_type = self.element_type(key, false);
            let value_type = self.element_type(value, flags.get(index).copied().unwrap_or(false));
            match first {
                None => first = Some((key_type, value_type)),
                Some((expected_key, expected_value)) => {
                    if !self.equivalent(expected_key, key_type) {
                        self.mismatch(key, expected_key, key_type);
                    }
                    if !self.equivalent(expected_value, value_type) {
                        self.mismatch(value, expected_value, value_type);
                    }
                }
            }
        }
    }

    fn call(&mut self, id: NodeId, name: &str, target: Option<NodeId>, args: &[NodeId]) {
        match (name, args) {
            ("duration" | "timestamp", [argument, ..]) => {
                let Some(val) = self.literal(*argument) else { return };
                let valid = match (name, val) {
                    ("duration", ValueRef::Str(text)) => crate::instant::parse_duration(text).is_some(),
                    ("duration", ValueRef::Int(_)) => self.facts.duration_of_int,
                    ("timestamp", ValueRef::Str(text)) => crate::instant::Timestamp::parse(text).is_some(),
                    ("timestamp", ValueRef::Int(seconds)) => {
                        crate::instant::Timestamp::from_seconds(seconds).is_some()
                    }
                    _ => false,
                };
                if !valid {
                    self.report(*argument, format!("invalid {name} argument"));
                }
            }
            // Validates the first argument in either call style, as cel-go does; in `matches(text, pattern)` that
            // is the text.
            ("matches", [argument, ..]) => {
                if let Some(ValueRef::Str(pattern)) = self.literal(*argument)
                    && !functions::regex::is_pattern(pattern)
                {
                    self.report(*argument, "invalid matches argument".to_owned());
                }
            }
            ("format", [list]) => self.format(id, target, *list),
            _ => {}
        }
    }

    fn literal(&self, id: NodeId) -> Option<ValueRef<'_>> {
        Some(match self.tree.node(id) {
            Node::Null => ValueRef::Null,
            Node::Bool(value) => ValueRef::Bool(value),
            Node::Int(value) => ValueRef::Int(value),
            Node::Uint(value) => ValueRef::Uint(value),
            Node::Double(value) => ValueRef::Double(value),
            Node::Str(text) => ValueRef::Str(self.tree.text(text)),
            Node::Bytes(index) => ValueRef::Bytes(self.tree.bytes(index)),
            _ => return None,
        })
    }

    /// Whether the type of an argument is valid for its formatting clause; checks every element of list and map
    /// literals.
    fn clause_fits(&self, clause: Verb, argument: NodeId) -> Result<(), (NodeId, &'static str)> {
        let types = &self.checked.types;
        let node = match types.node(self.checked.type_of(argument)) {
            Type::Wrapper(inner) => types.node(inner),
            node => node,
        };
        functions::strings::clause_accepts(clause, node).map_err(|words| (argument, words))?;
        let parts = match self.tree.node(argument) {
            Node::List { elements: run, .. } | Node::Map { entries: run, .. } if clause == Verb::Text => {
                self.tree.children(run)
            }
            _ => &[],
        };
        parts.iter().try_for_each(|&part| self.clause_fits(clause, part))
    }

    /// Validates a literal format string against a literal list of arguments.
    fn format(&mut self, id: NodeId, target: Option<NodeId>, list: NodeId) {
        if !matches!(self.checked.reference(id), Reference::Function { .. }) {
            return;
        }
        let Some(target) = target else { return };
        let (Node::Str(text), Node::List { elements, .. }) = (self.tree.node(target), self.tree.node(list))
        else {
            return;
        };
        let arguments = self.tree.children(elements);
        let mut used = 0;
        let outcome = functions::strings::clauses(self.tree.text(text), |clause| {
            let Some(&argument) = arguments.get(used) else {
                return Err((id, format!("index {used} out of range")));
            };
            used += 1;
            self.clause_fits(clause, argument).map_err(|(at, words)| {
                let described = self.checked.types.describe(self.checked.type_of(at));
                (at, format!("error during formatting: {words}, was given {described}"))
            })
        });
        match outcome {
            Err(functions::strings::FormatProblem::Clause((at, message))) => self.report(at, message),
            Err(functions::strings::FormatProblem::Syntax(message)) => self.report(id, message),
            Ok(()) if arguments.len() > used => {
                let message = format!(
                    "too many arguments supplied to string.format (expected {used}, got {})",
                    arguments.len()
                );
                self.report(id, message);
            }
            Ok(()) => {}
        }
    }
}
