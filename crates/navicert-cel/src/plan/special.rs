//! Specialized steps for common expressions: a field of a variable, and `startsWith`, `endsWith` or `contains` with a
//! constant. Each refers to the general step that it replaces and falls back to it in unusual cases.

use super::{Arithmetic, Key, Loop, Plan, Qualifier, Step, StepId, number};
use crate::cost::{self, Rule};
use crate::syntax::ast::FoldKind;
use crate::value::{Value, fingerprint};

/// Where a text is looked for in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Start,
    End,
    Anywhere,
}

impl Place {
    /// Whether the part is there.
    #[inline]
    pub(crate) fn is_in(self, text: &str, part: &str) -> bool {
        match self {
            Place::Start => text.starts_with(part),
            Place::End => text.ends_with(part),
            Place::Anywhere => text.contains(part),
        }
    }
}

/// What the body of a loop mostly does to its variable; each with an entry of the constant table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body {
    /// See [`Step::Affix`].
    Test { place: Place, part: u32, tenth: u32, negated: bool },
    /// The constant and the variable, put together; which of them is first.
    Join { constant: u32, is_first: bool },
}

impl Plan {
    /// Puts special steps in the place of those that have them.
    pub(super) fn specialise(&mut self) {
        for index in 0..self.steps.len() {
            let Some(&general) = self.steps.get(index) else { continue };
            let Some(special) = self.special(general) else { continue };
            self.generals.push(general);
            if let Some(step) = self.steps.get_mut(index) {
                *step = special;
            }
        }
        self.generals.shrink_to_fit();
        for index in 0..self.loops.len() {
            let quick = self.loops.get(index).and_then(|fold| self.body(fold));
            if let Some(fold) = self.loops.get_mut(index) {
                fold.quick = quick;
            }
        }
    }

    fn step(&self, id: StepId) -> Option<Step> {
        self.steps.get(id.0 as usize).copied()
    }

    /// What is quick about the body of a loop.
    fn body(&self, fold: &Loop) -> Option<Body> {
        let is_variable = |id| matches!(self.step(id), Some(Step::Local(slot)) if slot == fold.slot);
        let (body, negated) = match self.step(fold.body)? {
            Step::Not(operand) => (self.step(operand)?, true),
            body => (body, false),
        };
        match (fold.kind, body) {
            _ if fold.two || fold.filter.is_some() => None,
            (FoldKind::All | FoldKind::Exists, Step::Affix { place, text, part, tenth, .. })
                if is_variable(text) =>
            {
                Some(Body::Test { place, part, tenth, negated })
            }
            (
                FoldKind::List,
                Step::Arithmetic { operator: Arithmetic::Add, left, right, rule: Rule::Concatenate },
            ) if !negated => match (self.step(left)?, self.step(right)?) {
                (Step::Constant(constant), _) if is_variable(right) => {
                    Some(Body::Join { constant, is_first: true })
                }
                (_, Step::Constant(constant)) if is_variable(left) => {
                    Some(Body::Join { constant, is_first: false })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The step that a special one stands for; of any other, itself.
    pub(crate) fn general<'p>(&'p self, step: &'p Step) -> &'p Step {
        match *step {
            Step::Field { general, .. } | Step::Affix { general, .. } => {
                self.generals.get(general as usize).unwrap_or(step)
            }
            _ => step,
        }
    }

    /// The special step that stands for another; the general one is the next in its table.
    fn special(&self, step: Step) -> Option<Step> {
        let general = number(self.generals.len());
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
                let place = match (name, rule) {
                    ("startsWith", Rule::ScanSecond) => Place::Start,
                    ("endsWith", Rule::ScanSecond) => Place::End,
                    ("contains", Rule::Contains) => Place::Anywhere,
                    _ => return None,
                };
                self.scope.functions.overload(function, overload)?.body?;
                let range = args.start as usize..(args.start + args.len) as usize;
                let [text, part] = *self.operands.get(range)? else { return None };
                let Step::Constant(part) = *self.steps.get(part.0 as usize)? else { return None };
                let Value::String(constant) = self.constants.get(part as usize)? else { return None };
                let tenth = u32::try_from(cost::tenth(cost::characters(constant))).ok()?;
                Some(Step::Affix { place, text, part, tenth, general })
            }
            _ => None,
        }
    }
}
