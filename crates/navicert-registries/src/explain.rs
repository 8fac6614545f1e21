//! Records the steps of a run for `--explain`, and warnings. Never contains secrets.

use std::cell::RefCell;
use std::fmt;

use navicert_types::redact;

/// The steps of one run.
///
/// Write-only for the provider logic: no decision depends on it.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    steps: RefCell<Vec<(&'static str, String)>>,
    warnings: RefCell<Vec<String>>,
}

impl Journal {
    /// Creates an empty journal.
    pub(crate) fn new() -> Self {
        Journal::default()
    }

    /// Records a step: the stage and its result.
    pub(crate) fn note(&self, stage: &'static str, what: impl Into<String>) {
        self.steps.borrow_mut().push((stage, redact::terminal(&what.into()).into_owned()));
    }

    /// Records a warning for standard error; duplicates are dropped.
    pub(crate) fn warn(&self, what: impl Into<String>) {
        let what = redact::terminal(&what.into()).into_owned();
        let mut warnings = self.warnings.borrow_mut();
        if !warnings.contains(&what) {
            self.steps.borrow_mut().push(("warning", what.clone()));
            warnings.push(what);
        }
    }

    /// The recorded warnings.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.borrow().clone()
    }
}

/// One line per step, with the stages aligned.
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
    fn prints_steps_as_lines_without_control_characters() {
        let journal = Journal::new();
        journal.note("image", "a\u{1b}[2Jb");
        journal.warn("twice");
        journal.warn("twice");
        let text = journal.to_string();
        assert!(!text.contains('\u{1b}') && text.lines().count() == 2, "{text:?}");
        assert_eq!(journal.warnings(), ["twice"]);
    }
}
