//! What rules mostly are, as steps of their own: a field of a variable, and a text that begins with, ends with or holds
//! a constant. Each keeps the step it stands for, which says what happens whenever something is not as usual.

use super::{Key, Plan, Qualifier, Step, StepId, number};
use crate::cost::{self, Rule};
use crate::value::{Value, mark};

/// A step that is quicker than the one it stands for, and otherwise the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Special {
    /// What is evaluated instead where parts are recorded, or are not what they mostly are.
    pub(crate) general: Step,
    pub(crate) quick: Quick,
}

/// What rules mostly are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Quick {
    /// A field of a variable: an entry of the text table without escapes, and its mark.
    Field { variable: u32, name: u32, mark: u64 },
    /// A text and an entry of the constant table, which is one too; a tenth of the constant's size.
    Affix { place: Place, text: StepId, part: u32, tenth: u64 },
}

/// Where a text is looked for in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Start,
    End,
    Anywhere,
}

impl Plan {
    /// Puts special steps in the place of those that have them.
    pub(super) fn specialise(&mut self) {
        for index in 0..self.steps.len() {
            let Some(&general) = self.steps.get(index) else { continue };
            let Some(quick) = self.quick(general) else { continue };
            let special = number(self.specials.len());
            self.specials.push(Special { general, quick });
            if let Some(step) = self.steps.get_mut(index) {
                *step = Step::Special(special);
            }
        }
    }

    /// The step that a special one stands for.
    pub(crate) fn general(&self, step: Step) -> Step {
        match step {
            Step::Special(index) => self.specials.get(index as usize).map_or(step, |special| special.general),
            step => step,
        }
    }

    fn quick(&self, step: Step) -> Option<Quick> {
        match step {
            Step::Select { base, qualifiers } => {
                let Step::Variable(variable) = *self.steps.get(base.0 as usize)? else { return None };
                let range = qualifiers.start as usize..(qualifiers.start + qualifiers.len) as usize;
                let [Qualifier { key: Key::Text(name, false), optional: false, .. }] =
                    *self.qualifiers.get(range)?
                else {
                    return None;
                };
                let mark = mark(self.texts.get(name as usize)?);
                Some(Quick::Field { variable, name, mark })
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
                let tenth = cost::tenth(cost::characters(constant));
                Some(Quick::Affix { place, text, part, tenth })
            }
            _ => None,
        }
    }
}
