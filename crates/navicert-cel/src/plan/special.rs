//! Specialized steps for common expressions: a field of a variable, and `startsWith`, `endsWith` or `contains` with a
//! constant. Each refers to the general step that it replaces and falls back to it in unusual cases.

use super::{Arithmetic, Key, Loop, Plan, Qualifier, Step, StepId, number};
use crate::cost::{self, Rule};
use crate::syntax::ast::FoldKind;
use crate::value::{Value, fingerprint};

/// Where a substring must occur in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    End,
    Anywhere,
}

impl Anchor {
    /// Whether `part` occurs in `text` at this position.
    #[inline]
    pub(crate) fn matches(self, text: &str, part: &str) -> bool {
        match self {
            Anchor::Start => text.starts_with(part),
            Anchor::End => text.ends_with(part),
            Anchor::Anywhere => text.contains(part),
        }
    }
}

/// A loop body with a fast path; each refers to an entry of the constant table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FastBody {
    /// A substring test of the iteration variable, see [`Step::SubstringTest`].
    Test { anchor: Anchor, part: u32, tenth: u32, negated: bool },
    /// Concatenation of a constant and the iteration variable; `is_first` is set if the constant is the left
    /// operand.
    Join { constant: u32, is_first: bool },
}

impl Plan {
    /// Replaces steps by their specialized forms.
    pub(super) fn specialize(&mut self) {
        for index in 0..self.steps.len() {
            let Some(&general) = self.steps.get(index) else { continue };
            let Some(special) = self.special(general) else { continue };
            self.general_steps.push(general);
            if let Some(step) = self.steps.get_mut(index) {
                *step = special;
            }
        }
        self.general_steps.shrink_to_fit();
        for index in 0..self.loops.len() {
            let fast_body = self.loops.get(index).and_then(|fold| self.body(fold));
            if let Some(fold) = self.loops.get_mut(index) {
                fold.fast_body = fast_body;
            }
        }
    }

    fn step(&self, id: StepId) -> Option<Step> {
        self.steps.get(id.0 as usize).copied()
    }

    /// The fast path for the body of a loop, if any.
    fn body(&self, fold: &Loop) -> Option<FastBody> {
        let is_variable = |id| matches!(self.step(id), Some(Step::Local(slot)) if slot == fold.slot);
        let (body, negated) = match self.step(fold.body)? {
            Step::Not(operand) => (self.step(operand)?, true),
            body => (body, false),
        };
        match (fold.kind, body) {
            _ if fold.two || fold.filter.is_some() => None,
            (FoldKind::All | FoldKind::Exists, Step::SubstringTest { anchor, text, part, tenth, .. })
                if is_variable(text) =>
            {
                Some(FastBody::Test { anchor, part, tenth, negated })
            }
            (
                FoldKind::List,
                Step::Arithmetic { operator: Arithmetic::Add, left, right, rule: Rule::Concatenate },
            ) if !negated => match (self.step(left)?, self.step(right)?) {
                (Step::Constant(constant), _) if is_variable(right) => {
                    Some(FastBody::Join { constant, is_first: true })
                }
                (_, Step::Constant(constant)) if is_variable(left) => {
                    Some(FastBody::Join { constant, is_first: false })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The general form of a specialized step; any other step is returned unchanged.
    /// `None` if it is missing: evaluating the specialized step instead would not end.
    pub(crate) fn general<'p>(&'p self, step: &'p Step) -> Option<&'p Step> {
        match *step {
            Step::Field { general, .. } | Step::SubstringTest { general, .. } => {
                self.general_steps.get(general as usize)
            }
            _ => Some(step),
        }
    }

    /// The specialized form of a step; it refers to the next entry of the table of general steps.
    fn special(&self, step: Step) -> Option<Step> {
        let general = number(self.general_steps.len());
        match step {
            Step::Select { base, qualifiers } => {
                let Step::Variable(variable) = *self.steps.get(base.0 as usize)? else { return None };
                let range = qualifiers.start as usize..(qualifiers.start + qualifiers.len) as usize;
                let [Qualifier { key: Key::Text(name, false), optional: false, .. }] =
                    *self.qualifiers.get(range)?
                else {
                    return None;
                };
                let fingerprint = fingerprint(self.texts.get(name as usize)?);
                Some(Step::Field { variable, name, fingerprint, general })
            }
            Step::Call { function, overload: Some(overload), args, rule, lazy: false } => {
                let name = &*self.scope.functions.get(function)?.name;
                let anchor = match (name, rule) {
                    ("startsWith", Rule::ScanSecond) => Anchor::Start,
                    ("endsWith", Rule::ScanSecond) => Anchor::End,
                    ("contains", Rule::Contains) => Anchor::Anywhere,
                    _ => return None,
                };
                self.scope.functions.overload(function, overload)?.body?;
                let range = args.start as usize..(args.start + args.len) as usize;
                let [text, part] = *self.operands.get(range)? else { return None };
                let Step::Constant(part) = *self.steps.get(part.0 as usize)? else { return None };
                let Value::String(constant) = self.constants.get(part as usize)? else { return None };
                let tenth = u32::try_from(cost::tenth(cost::characters(constant))).ok()?;
                Some(Step::SubstringTest { anchor, text, part, tenth, general })
            }
            _ => None,
        }
    }
}
