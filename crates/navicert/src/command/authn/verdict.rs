//! The verdicts of steps and test cases, coloured on terminals.

use crate::output::style;

/// The coloured word of a step that passed.
pub(super) fn pass() -> String {
    word(style::GOOD, "PASS")
}

/// The coloured word of a step that failed.
pub(super) fn fail() -> String {
    word(style::ERROR, "FAIL")
}

/// The coloured word of a step that was not reached.
pub(super) fn skip() -> String {
    word(style::FAINT, "SKIP")
}

fn word(colour: &str, word: &str) -> String {
    format!("{colour}{word}{}", style::END)
}
