//! Shows the standard error of programs that fail again and again only once.

use std::fmt;
use std::io::Write;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::command::{Command, Stderr, StderrReceiver, Stdin};
use crate::error::RunError;
use crate::policy::Permitted;
use crate::runner::{Completed, Runner};

/// Maximum bytes compared with the previous run. A longer output counts as different.
const MAX_COMPARED_BYTES: usize = 64 << 10;

/// A [`Runner`] that passes on standard error as it is written, unless a run only repeats what the previous failed run
/// wrote. It is for clients that retry while another program uses the terminal.
///
/// Runs that use the terminal, or whose standard error is captured, are not changed.
pub struct RepeatedStderrFilter {
    runner: Arc<dyn Runner>,
    output: StderrReceiver,
    /// What the previous run wrote, if it failed.
    previous: Mutex<Vec<u8>>,
}

impl RepeatedStderrFilter {
    /// Writes to the standard error of this process.
    pub fn new(runner: Arc<dyn Runner>) -> Self {
        let output = |bytes: &[u8]| {
            // If standard error is closed, the text cannot be shown.
            let _ = std::io::stderr().write_all(bytes);
        };
        RepeatedStderrFilter::with_output(runner, Arc::new(output))
    }

    /// Passes the text to this receiver.
    pub fn with_output(runner: Arc<dyn Runner>, output: StderrReceiver) -> Self {
        RepeatedStderrFilter { runner, output, previous: Mutex::default() }
    }
}

impl Runner for RepeatedStderrFilter {
    fn run(&self, command: Permitted<Command>) -> Result<Completed, RunError> {
        let asked = command.command();
        if matches!(asked.stdin, Stdin::Inherit) || !matches!(asked.stderr, Stderr::Inherit) {
            return self.runner.run(command);
        }
        let comparison = Arc::new(Mutex::new(Comparison {
            previous: lock(&self.previous).clone(),
            ..Comparison::default()
        }));
        let (shared, output) = (Arc::clone(&comparison), Arc::clone(&self.output));
        let receiver: StderrReceiver = Arc::new(move |chunk| {
            let shown = lock(&shared).push(chunk);
            if !shown.is_empty() {
                output(&shown);
            }
        });
        let result = self.runner.run(command.with_stderr(Stderr::Forward(receiver)));
        let mut comparison = lock(&comparison);
        let has_succeeded = result.as_ref().is_ok_and(|completed| completed.exit.is_success());
        if has_succeeded && !comparison.is_different && !comparison.written.is_empty() {
            (self.output)(&comparison.written);
        }
        *lock(&self.previous) = if has_succeeded { Vec::new() } else { mem::take(&mut comparison.written) };
        result
    }
}

impl fmt::Debug for RepeatedStderrFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RepeatedStderrFilter").field("runner", &self.runner).finish_non_exhaustive()
    }
}

/// The output of a run compared with that of the previous one.
#[derive(Default)]
struct Comparison {
    previous: Vec<u8>,
    written: Vec<u8>,
    is_different: bool,
}

impl Comparison {
    /// Adds a chunk, and returns what to show now: nothing as long as everything is a repetition.
    fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        let room = MAX_COMPARED_BYTES.saturating_sub(self.written.len());
        self.written.extend(chunk.iter().take(room));
        if self.is_different {
            return chunk.to_vec();
        }
        if chunk.len() <= room && self.previous.starts_with(&self.written) {
            return Vec::new();
        }
        self.is_different = true;
        let mut held = self.written.clone();
        held.extend(chunk.iter().skip(room));
        held
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Environment;
    use crate::policy::Policy;
    use crate::scripted::{Script, ScriptedRunner};

    /// Runs the scripts in order, and returns what is shown of each.
    fn shown(scripts: Vec<Script>, stdin: &Stdin) -> Vec<String> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (sink, count) = (Arc::clone(&seen), scripts.len());
        let output: StderrReceiver = Arc::new(move |bytes| lock(&sink).extend_from_slice(bytes));
        let filter = RepeatedStderrFilter::with_output(Arc::new(ScriptedRunner::new(scripts)), output);
        let run = |_| {
            let command = Command::new("/bin/sh", Environment::empty()).stdin(stdin.clone());
            let command = command.stderr(Stderr::Inherit);
            let _ = filter.run(Policy::AllowAll.permit(command).unwrap());
            String::from_utf8(mem::take(&mut *lock(&seen))).unwrap()
        };
        (0..count).map(run).collect()
    }

    #[test]
    fn repeated_failure_is_shown_once_and_a_new_text_is_shown() {
        let fails = |text: &str| Script::exits(1).stderr(text);
        let scripts = vec![
            fails("expired\n"),
            fails("expired\n"),
            fails("exp"),
            fails("no network\n"),
            fails("expired\n"),
        ];
        assert_eq!(shown(scripts, &Stdin::Null), ["expired\n", "", "", "no network\n", "expired\n"]);
    }

    #[test]
    fn output_that_continues_a_repetition_is_shown_whole() {
        let scripts =
            vec![Script::exits(1).stderr("warning\n"), Script::exits(1).stderr("warning\nexpired\n")];
        assert_eq!(shown(scripts, &Stdin::Null), ["warning\n", "warning\nexpired\n"]);
    }

    #[test]
    fn output_of_successful_runs_is_always_shown() {
        let good = || Script::prints("token").stderr("deprecated\n");
        let scripts = vec![good(), good(), Script::exits(1).stderr("deprecated\n"), good()];
        assert_eq!(shown(scripts, &Stdin::Null), ["deprecated\n"; 4]);
    }

    #[test]
    fn runs_that_use_the_terminal_are_not_changed() {
        let scripts = vec![Script::exits(1).stderr("expired\n")];
        assert_eq!(shown(scripts, &Stdin::Inherit), [""], "the scripted runner forwards only to a receiver");
    }

    #[test]
    fn comparison_of_long_outputs_is_bounded() {
        let long = vec![b'x'; MAX_COMPARED_BYTES + 1];
        let mut comparison = Comparison { previous: vec![b'x'; MAX_COMPARED_BYTES], ..Comparison::default() };
        assert_eq!(comparison.push(&long), long);
        assert_eq!(comparison.push(b"y"), b"y");
        assert_eq!(comparison.written.len(), MAX_COMPARED_BYTES);
    }
}
