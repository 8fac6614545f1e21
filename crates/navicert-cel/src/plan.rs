//! The planner: compiles a checked tree into steps. Resolves names to slots and calls to overloads, folds constants
//! and compiles patterns.

use crate::check::{Checked, Reference, Scope};
use crate::diagnostic::{CompileError, Diagnostic, Stage};
use crate::fault::Cause;
use crate::functions;
use crate::library::kubernetes::regex::Pattern;
use crate::syntax::ast::{Node, NodeId, Text, Tree};
use crate::value::{Arena, Value, ValueRef};
use std::sync::Arc;

mod aggregate;
mod call;
mod constant;
mod special;
mod step;

pub(crate) use special::{Anchor, FastBody};
pub(crate) use step::{Arithmetic, FieldStep, Key, Loop, Order, Qualifier, Range, Step, StepId};

/// A planned expression: everything that an evaluation needs.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) scope: Arc<Scope>,
    pub(crate) steps: Vec<Step>,
    /// The syntax node of each step.
    pub(crate) nodes: Vec<u32>,
    pub(crate) operands: Vec<StepId>,
    pub(crate) qualifiers: Vec<Qualifier>,
    pub(crate) constants: Vec<Value>,
    pub(crate) texts: Vec<Box<str>>,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) loops: Vec<Loop>,
    /// The general steps that specialized steps replaced.
    pub(crate) general_steps: Vec<Step>,
    pub(crate) flags: Vec<bool>,
    pub(crate) fields: Vec<FieldStep>,
    pub(crate) messages: Vec<Box<str>>,
    pub(crate) root: StepId,
    /// Number of comprehension variables.
    pub(crate) slots: u32,
}

/// Plans a tree. For an unchecked tree (`checked` is `None`), names are resolved while planning.
pub(crate) fn plan(
    scope: &Arc<Scope>,
    tree: &Tree,
    checked: Option<&Checked<'_>>,
) -> Result<Plan, CompileError> {
    let mut planner = Planner {
        plan: Plan {
            scope: Arc::clone(scope),
            // Most expressions are short; long ones often consist of a constant list, which takes one step.
            steps: Vec::with_capacity(tree.len().min(64)),
            nodes: Vec::with_capacity(tree.len().min(64)),
            operands: Vec::new(),
            qualifiers: Vec::new(),
            constants: Vec::new(),
            texts: Vec::new(),
            patterns: Vec::new(),
            loops: Vec::new(),
            general_steps: Vec::new(),
            flags: Vec::new(),
            fields: Vec::new(),
            messages: Vec::new(),
            root: StepId(0),
            slots: 0,
        },
        tree,
        checked,
        planned: vec![None; tree.len()],
        locals: Vec::new(),
        arena: Arena::new(),
    };
    match planner.step(tree.root()) {
        Ok(root) => {
            planner.plan.root = root;
            planner.plan.specialize();
            Ok(planner.plan)
        }
        Err(problem) => Err(*problem),
    }
}

type Planned<T> = Result<T, Box<CompileError>>;

struct Planner<'t> {
    plan: Plan,
    tree: &'t Tree,
    checked: Option<&'t Checked<'t>>,
    /// Steps of planned nodes; macro expansion may share a node.
    planned: Vec<Option<StepId>>,
    /// Names in scope and their slots. Every comprehension has its own slots, because a bound value may be
    /// evaluated inside another comprehension.
    locals: Vec<(&'t str, u32)>,
    arena: Arena,
}

pub(crate) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl<'t> Planner<'t> {
    fn push(&mut self, step: Step, node: NodeId) -> StepId {
        let id = StepId(number(self.plan.steps.len()));
        self.plan.steps.push(step);
        self.plan.nodes.push(node.0);
        id
    }

    fn get(&self, id: StepId) -> Option<Step> {
        self.plan.steps.get(id.0 as usize).copied()
    }

    fn error_at(&self, node: NodeId, message: String) -> Box<CompileError> {
        let (at, span) = (self.tree.at(node), self.tree.span(node));
        let diagnostics = vec![Diagnostic::new(self.tree.source(), at, span, message)];
        Box::new(CompileError { stage: Stage::Program, diagnostics })
    }

    fn text(&mut self, text: &str) -> u32 {
        let known = self.plan.texts.iter().position(|known| &**known == text).unwrap_or_else(|| {
            self.plan.texts.push(text.into());
            self.plan.texts.len() - 1
        });
        number(known)
    }

    fn constant(&mut self, value: Value, node: NodeId) -> StepId {
        let index = number(self.plan.constants.len());
        self.plan.constants.push(value);
        self.push(Step::Constant(index), node)
    }

    fn operands(&mut self, ids: &[StepId]) -> Range {
        let start = number(self.plan.operands.len());
        self.plan.operands.extend_from_slice(ids);
        Range { start, len: number(ids.len()) }
    }

    fn flags(&mut self, flags: &[bool]) -> Range {
        let start = number(self.plan.flags.len());
        self.plan.flags.extend_from_slice(flags);
        Range { start, len: number(flags.len()) }
    }

    fn value_of(&self, id: StepId) -> Option<&Value> {
        match self.get(id)? {
            Step::Constant(index) => self.plan.constants.get(index as usize),
            _ => None,
        }
    }

    fn step(&mut self, node: NodeId) -> Planned<StepId> {
        if let Some(known) = self.planned.get(node.index()).copied().flatten() {
            return Ok(known);
        }
        let planned = match self.tree.node(node) {
            Node::Null
            | Node::Bool(_)
            | Node::Int(_)
            | Node::Uint(_)
            | Node::Double(_)
            | Node::Str(_)
            | Node::Bytes(_) => match self.literal(node) {
                Some(value) => self.constant(value, node),
                None => {
                    return Err(
                        self.error_at(node, "internal fault of the planner: missing literal".to_owned())
                    );
                }
            },
            Node::Ident(name) => self.ident(node, self.tree.text(name))?,
            Node::Select { operand, field, test } => self.select(node, operand, field, test)?,
            Node::Call { function, target, args } => self.call(node, function, target, args)?,
            Node::List { elements, optional } => self.list(node, elements, optional)?,
            Node::Map { entries, optional } => self.map(node, entries, optional)?,
            Node::Struct { name, fields } => self.message(node, name, fields)?,
            Node::Fold(index) => self.fold(node, index)?,
        };
        if let Some(slot) = self.planned.get_mut(node.index()) {
            *slot = Some(planned);
        }
        Ok(planned)
    }

    /// The value of a literal node.
    fn literal(&self, node: NodeId) -> Option<Value> {
        Some(match self.tree.node(node) {
            Node::Null => Value::Null,
            Node::Bool(value) => Value::Bool(value),
            Node::Int(value) => Value::Int(value),
            Node::Uint(value) => Value::Uint(value),
            Node::Double(value) => Value::Double(value),
            Node::Str(text) => Value::String(self.tree.text(text).into()),
            Node::Bytes(index) => Value::Bytes(self.tree.bytes(index).into()),
            _ => return None,
        })
    }

    /// Resolves a simple or qualified name to a variable or type.
    fn resolve(&mut self, node: NodeId, name: &str) -> Option<StepId> {
        if let Some(checked) = self.checked {
            return match checked.reference(node) {
                Reference::Variable(slot) => Some(self.push(Step::Variable(*slot), node)),
                Reference::Local(depth) => {
                    let slot = self.locals.get(*depth as usize).map_or(u32::MAX, |local| local.1);
                    // No program has this many variables: evaluating it is an internal fault.
                    Some(self.push(Step::Local(slot), node))
                }
                Reference::TypeName(name) => {
                    let value = Value::Type(type_value_name(name).into());
                    Some(self.constant(value, node))
                }
                Reference::NullValue => Some(self.constant(Value::Int(0), node)),
                _ => None,
            };
        }
        if let Some(&(_, slot)) = self.locals.iter().rfind(|local| local.0 == name) {
            return Some(self.push(Step::Local(slot), node));
        }
        let root = name.split('.').next().unwrap_or("");
        if !root.is_empty() && self.locals.iter().any(|local| local.0 == root) {
            return None;
        }
        let scope = Arc::clone(&self.plan.scope);
        for candidate in scope.candidates(name) {
            if let Some((slot, _)) = scope.variable(&candidate) {
                return Some(self.push(Step::Variable(slot), node));
            }
            if scope.type_names.contains_key(&*candidate) {
                let value = Value::Type(type_value_name(&candidate).into());
                return Some(self.push_type(value, node));
            }
            if *candidate == *functions::messages::NULL_VALUE {
                return Some(self.push_type(Value::Int(0), node));
            }
        }
        None
    }

    /// In an unchecked tree, a type name is resolved and charged like a variable.
    fn push_type(&mut self, value: Value, node: NodeId) -> StepId {
        let constant = self.constant(value, node);
        self.push(Step::Select { base: constant, qualifiers: Range::default() }, node)
    }

    fn ident(&mut self, node: NodeId, name: &str) -> Planned<StepId> {
        self.reject_type_variable(node, name)?;
        self.reject_object_name(node)?;
        match self.resolve(node, name) {
            Some(step) => Ok(step),
            None => {
                let name = self.text(name);
                Ok(self.push(Step::Unknown(name), node))
            }
        }
    }

    /// Rejects a variable that holds a type: cel-go resolves its name as a type name and fails.
    fn reject_type_variable(&self, node: NodeId, name: &str) -> Planned<()> {
        let Some(checked) = self.checked.filter(|_| !self.plan.scope.is_standard()) else { return Ok(()) };
        let variable = matches!(checked.reference(node), Reference::Local(_) | Reference::Variable(_));
        if variable && matches!(checked.types.node(checked.type_of(node)), crate::check::types::Type::Type(_))
        {
            return Err(self.error_at(node, format!("reference to undefined type: {name}")));
        }
        Ok(())
    }

    /// Rejects the name of an object type as a value: cel-go's checker knows it, its interpreter does not.
    fn reject_object_name(&self, node: NodeId) -> Planned<()> {
        let scope = &self.plan.scope;
        let Some(checked) = self.checked.filter(|_| !scope.is_standard()) else { return Ok(()) };
        match checked.reference(node) {
            Reference::TypeName(name)
                if scope.objects.contains_key(name) && !functions::messages::has_type_value(name) =>
            {
                Err(self.error_at(node, format!("reference to undefined type: {name}")))
            }
            _ => Ok(()),
        }
    }

    fn select(&mut self, node: NodeId, operand: NodeId, field: Text, test: bool) -> Planned<StepId> {
        self.reject_object_name(node)?;
        if !test
            && let Some(name) = self.tree.qualified_name(node)
            && let Some(step) = self.resolve(node, &name)
        {
            return Ok(step);
        }
        let base = self.step(operand)?;
        let key = self.text_key(self.tree.text(field));
        Ok(self.qualify(node, base, Qualifier { key, optional: false, node: node.0 }, test))
    }

    fn text_key(&mut self, text: &str) -> Key {
        Key::Text(self.text(text), text.contains("__"))
    }

    /// Appends a qualifier to a selection; a chain of selections becomes one step.
    fn qualify(&mut self, node: NodeId, base: StepId, qualifier: Qualifier, test: bool) -> StepId {
        let (base, before) = match self.get(base) {
            Some(Step::Select { base, qualifiers }) => (base, qualifiers),
            _ => (base, Range::default()),
        };
        let start = self.plan.qualifiers.len();
        let from = before.start as usize;
        self.plan.qualifiers.extend_from_within(from..from + before.len as usize);
        self.plan.qualifiers.push(qualifier);
        let qualifiers = Range { start: number(start), len: before.len + 1 };
        if test {
            return self.push(Step::Test { base, qualifiers }, node);
        }
        self.push(Step::Select { base, qualifiers }, node)
    }

    /// Calls a function with one constant at compile time.
    fn run(
        &self,
        overload: &crate::check::declaration::Overload,
        args: &[ValueRef<'_>],
    ) -> Result<Value, String> {
        let call = functions::Call {
            arena: &self.arena,
            standard: self.plan.scope.is_standard(),
            facts: self.plan.scope.facts,
        };
        let Some(body) = overload.body else {
            return Err(Cause::NoSuchOverload("").kind().exposed());
        };
        match body(&call, args) {
            Ok(val) => Ok(val.to_value()),
            // The arguments are constants of the expression.
            Err(cause) => Err(cause.kind().exposed()),
        }
    }
}

/// The name of a type at run time.
fn type_value_name(name: &str) -> &str {
    functions::messages::value_type(name)
}
