//! How many cases agree, and how the others differ.

use std::fmt;

/// The outcome of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases that agree.
    pub passed: usize,
    /// Cases left out, each with its reason.
    pub skipped: Vec<(String, String)>,
    /// Cases that differ: name, and how.
    pub failed: Vec<(String, String)>,
}

impl Report {
    /// Counts a case.
    pub fn note(&mut self, name: &str, verdict: Result<(), String>) {
        match verdict {
            Ok(()) => self.passed += 1,
            Err(difference) => self.failed.push((name.to_owned(), difference)),
        }
    }

    /// All cases that were run.
    pub fn total(&self) -> usize {
        self.passed + self.failed.len()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, difference) in &self.failed {
            writeln!(out, "{name}: {difference}")?;
        }
        write!(out, "{} of {} agree, {} skipped", self.passed, self.total(), self.skipped.len())
    }
}
