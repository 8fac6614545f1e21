//! What `exec-plugin keep --clear` did.

use std::fmt;

use serde::Serialize;

/// The result of `exec-plugin keep --clear`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClearedAnswersReport {
    /// How many answers were removed from memory.
    pub removed: u32,
}

impl fmt::Display for ClearedAnswersReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.removed {
            0 => writeln!(f, "no answer was kept"),
            1 => writeln!(f, "removed 1 answer"),
            count => writeln!(f, "removed {count} answers"),
        }
    }
}
