//! Compiled expressions.

use crate::check::{self, Environment, VariableDeclaration};
use crate::diagnostic::{CompileError, Stage};
use crate::error::{EvalError, EvalErrorKind};
use crate::eval::{Machine, Recorded, Slot};
use crate::fault::Fault;
use crate::limits::EvalLimits;
use crate::plan::{self, Plan};
use crate::source::Span;
use crate::syntax::{self, ast::NodeId, ast::Tree};
use crate::value::{Arena, HashedName, ValueRef};

/// A compiled expression. It can be evaluated repeatedly and from several threads.
#[derive(Debug)]
pub struct Program {
    tree: Tree,
    plan: Plan,
    result: String,
}

/// The variable bindings of an evaluation.
#[derive(Debug, Clone, Default)]
pub struct Bindings<'a> {
    /// The first two are stored inline: rules have one variable.
    first: [Option<Bound<'a>>; 2],
    more: Vec<Bound<'a>>,
}

/// A variable's name and its value.
#[derive(Debug, Clone)]
struct Bound<'a> {
    name: HashedName<&'a str>,
    value: ValueRef<'a>,
}

impl<'a> Bindings<'a> {
    /// No bindings.
    pub fn new() -> Self {
        Bindings::default()
    }

    /// Binds a variable.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: ValueRef<'a>) -> Self {
        let bound = Bound { name: HashedName::new(name), value };
        match self.first.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => *slot = Some(bound),
            None => self.more.push(bound),
        }
        self
    }

    #[inline(always)]
    fn find(&self, variable: &VariableDeclaration) -> Option<&ValueRef<'a>> {
        let is_it = |bound: &&Bound<'a>| bound.name.is(&variable.name, variable.name.fingerprint());
        match &self.first {
            [Some(first), _] if is_it(&first) => Some(&first.value),
            [_, second] => second.iter().chain(&self.more).find(is_it).map(|bound| &bound.value),
        }
    }
}

/// The result of an evaluation.
#[derive(Debug, Clone, Copy)]
pub struct Evaluation<'a> {
    /// The value.
    pub value: ValueRef<'a>,
    /// Cost in units.
    pub cost: u64,
}

/// A failed evaluation with its cost. `Display` contains no value of the evaluated data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct EvaluationError {
    /// The error.
    pub error: EvalError,
    /// Cost in units until the failure.
    pub cost: u64,
}

/// The outcome of one subexpression.
#[derive(Debug, Clone)]
pub struct Traced<'a> {
    /// The subexpression.
    pub span: Span,
    /// Its value or error.
    pub outcome: Result<ValueRef<'a>, EvalErrorKind>,
}

impl Environment {
    /// Parses an expression.
    pub fn parse(&self, text: &str) -> Result<Tree, CompileError> {
        syntax::parse(text, &self.scope.options)
    }

    /// Parses, checks and plans an expression.
    pub fn compile(&self, text: &str) -> Result<Program, CompileError> {
        let tree = self.parse(text)?;
        let checked = check::check(&self.scope, &tree)
            .map_err(|diagnostics| CompileError { stage: Stage::Check, diagnostics })?;
        let result = checked.types.describe(checked.type_of(tree.root()));
        let plan = plan::plan(&self.scope, &tree, Some(&checked))?;
        drop(checked);
        Ok(Program { tree, plan, result })
    }

    /// Parses and checks an expression and returns the name of its type.
    pub fn check(&self, text: &str) -> Result<String, CompileError> {
        let tree = self.parse(text)?;
        let checked = check::check(&self.scope, &tree)
            .map_err(|diagnostics| CompileError { stage: Stage::Check, diagnostics })?;
        Ok(checked.types.describe(checked.type_of(tree.root())))
    }

    /// Parses and plans without checking: names and overloads are resolved at evaluation.
    pub fn compile_unchecked(&self, text: &str) -> Result<Program, CompileError> {
        let tree = self.parse(text)?;
        let plan = plan::plan(&self.scope, &tree, None)?;
        Ok(Program { tree, plan, result: "dyn".to_owned() })
    }

    /// Compiles an expression that must have static type `bool`, as a validation rule must.
    pub fn compile_rule(&self, text: &str) -> Result<Program, CompileError> {
        let program = self.compile(text)?;
        if program.result == "bool" {
            return Ok(program);
        }
        let tree = &program.tree;
        let (at, span) = (tree.at(tree.root()), tree.span(tree.root()));
        let message = "must evaluate to bool".to_owned();
        let diagnostic = crate::diagnostic::Diagnostic::new(tree.source(), at, span, message);
        Err(CompileError { stage: Stage::Check, diagnostics: vec![diagnostic] })
    }
}

/// Number of comprehension slots that are stored on the stack.
const INLINE_SLOTS: usize = 4;

impl Program {
    /// The static type of the result.
    pub fn result_type(&self) -> &str {
        &self.result
    }

    /// The parsed expression.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Evaluates with Kubernetes' limits.
    pub fn evaluate<'a>(
        &'a self,
        arena: &'a Arena,
        bindings: &Bindings<'a>,
    ) -> Result<Evaluation<'a>, EvaluationError> {
        self.evaluate_within(arena, bindings, &EvalLimits::KUBERNETES)
    }

    /// Evaluates with custom limits.
    pub fn evaluate_within<'a>(
        &'a self,
        arena: &'a Arena,
        bindings: &Bindings<'a>,
        limits: &EvalLimits<'_>,
    ) -> Result<Evaluation<'a>, EvaluationError> {
        self.run(arena, bindings, limits, None)
    }

    /// Evaluates and records the outcome of every evaluated subexpression, in evaluation order.
    pub fn trace<'a>(
        &'a self,
        arena: &'a Arena,
        bindings: &Bindings<'a>,
        limits: &EvalLimits<'_>,
    ) -> (Result<Evaluation<'a>, EvaluationError>, Vec<Traced<'a>>) {
        let mut recorded = Vec::new();
        let outcome = self.run(arena, bindings, limits, Some(&mut recorded));
        let traced = recorded.into_iter().map(|entry| Traced {
            span: self.tree.span(NodeId(entry.node)),
            outcome: entry.outcome.map_err(|cause| cause.kind()),
        });
        (outcome, traced.collect())
    }

    /// Evaluates with the variable values in declaration order. Values and comprehension slots are stored on the
    /// stack if there are few of them.
    #[inline(always)]
    fn run<'a>(
        &'a self,
        arena: &'a Arena,
        bindings: &Bindings<'a>,
        limits: &EvalLimits<'_>,
        trace: Option<&mut Vec<Recorded<'a>>>,
    ) -> Result<Evaluation<'a>, EvaluationError> {
        let (one, all, mut few, mut many);
        let variables: &[Option<&ValueRef<'a>>] = match &*self.plan.scope.variables {
            [only] => {
                one = [bindings.find(only)];
                &one
            }
            several => {
                all = several.iter().map(|variable| bindings.find(variable)).collect::<Vec<_>>();
                &all
            }
        };
        let slots: &mut [Slot<'a>] = match self.plan.slots as usize {
            0 => &mut [],
            1..=INLINE_SLOTS => {
                few = [Slot::EMPTY; INLINE_SLOTS];
                &mut few
            }
            count => {
                many = vec![Slot::EMPTY; count];
                &mut many
            }
        };
        let mut machine = Machine::new(&self.plan, arena, variables, slots, limits, trace);
        let outcome = machine.run();
        let cost = machine.cost;
        match outcome {
            Ok(value) => Ok(Evaluation { value, cost }),
            Err(fault) => Err(self.failed(&fault, cost)),
        }
    }

    #[cold]
    fn failed(&self, fault: &Fault<'_>, cost: u64) -> EvaluationError {
        let span = self.tree.span(NodeId(fault.node));
        EvaluationError { error: EvalError { kind: fault.cause.kind(), span }, cost }
    }
}

#[cfg(test)]
mod tests;
