//! What a run did, step by step, for `--explain`; and what a person should know even if it worked. Never a secret.

use std::cell::RefCell;
use std::fmt;

use navicert_types::redact;

/// The steps of one run.
///
/// Stages write here what they decided and why; nobody reads it to decide anything.
#[derive(Debug, Default)]
pub struct Journal {
    steps: RefCell<Vec<(&'static str, String)>>,
    warnings: RefCell<Vec<String>>,
}

impl Journal {
    /// Nothing happened yet.
    pub fn new() -> Self {
        Journal::default()
    }

    /// A step: a short word for the stage, and what it found.
    pub fn note(&self, stage: &'static str, what: impl Into<String>) {
        self.steps.borrow_mut().push((stage, redact::terminal(&what.into()).into_owned()));
    }

    /// Something a person should read on standard error; said once.
    pub fn warn(&self, what: impl Into<String>) {
        let what = redact::terminal(&what.into()).into_owned();
        let mut warnings = self.warnings.borrow_mut();
        if !warnings.contains(&what) {
            self.steps.borrow_mut().push(("warning", what.clone()));
            warnings.push(what);
        }
    }

    /// What was warned of.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.borrow().clone()
    }
}

/// One line per step, the stages in a column.
impl fmt::Display for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = self.steps.borrow();
        let width = steps.iter().map(|(stage, _)| stage.len()).max().unwrap_or_default();
        steps.iter().try_for_each(|(stage, what)| writeln!(f, "{stage:<width$}  {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_lines_and_control_characters_are_not() {
        let journal = Journal::new();
        journal.note("image", "a\u{1b}[2Jb");
        journal.warn("twice");
        journal.warn("twice");
        let text = journal.to_string();
        assert!(!text.contains('\u{1b}') && text.lines().count() == 2, "{text:?}");
        assert_eq!(journal.warnings(), ["twice"]);
    }
}
