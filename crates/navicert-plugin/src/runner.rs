//! The [`Runner`] trait, which runs commands synchronously, and [`start`], which runs one on its own thread.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_types::Secret;

use crate::command::Command;
use crate::completion::{Completion, Waiter, spawn_catching};
use crate::error::RunError;
use crate::policy::Permitted;

/// Runs permitted commands.
///
/// Every implementation guarantees, and the contract tests (`navicert_plugin::contract`, feature `test-util`) check:
///
/// - `run` returns when the run has ended, and leaves no zombie and no open descriptor.
/// - A program that exited, with any status, is a [`Completed`]; an error means that there is no result.
/// - The time limit, the cap on stdout and the tail of stderr of the command are applied.
/// - It may be called from many threads at once.
///
/// ```
/// use std::sync::Arc;
/// use navicert_plugin::{Command, Environment, Policy, ProcessRunner, Runner};
/// use navicert_types::SystemClock;
///
/// let runner = ProcessRunner::new(Arc::new(SystemClock));
/// let command = Command::new("/bin/echo", Environment::empty()).args(["hello"]);
/// let completed = runner.run(Policy::AllowAll.permit(command)?)?;
/// assert_eq!(completed.require_success()?.expose(), b"hello\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Runner: fmt::Debug + Send + Sync {
    /// Runs the command to its end. Blocks: on an async runtime use [`start`].
    ///
    /// # Errors
    /// [`RunError`]: the program could not be started, or was killed because it exceeded a limit.
    fn run(&self, command: Permitted<Command>) -> Result<Completed, RunError>;
}

/// Starts a run on its own thread. Dropping the waiter does not stop the run, which ends by its own limit.
// C306, C422
pub fn start(runner: Arc<dyn Runner>, command: Permitted<Command>) -> Waiter<Result<Completed, RunError>> {
    let completion = Completion::new();
    let waiter = completion.waiter();
    let program = command.program().to_path_buf();
    spawn_catching(
        "plugin",
        move || runner.run(command),
        move |answer| {
            completion.complete(answer.unwrap_or_else(|source| Err(RunError::Join { program, source })));
        },
    );
    waiter
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Completed {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// How it ended.
    pub exit: Exit,
    /// Standard output, up to the cap.
    pub stdout: Secret<Vec<u8>>,
    /// Whether stdout reached end of file. If not, a descendant process still holds it open and the output may be
    /// incomplete.
    // C307
    pub stdout_closed: bool,
    /// The tail of stderr, if it was captured.
    pub stderr: Option<StderrTail>,
    /// How long it took.
    pub took: Duration,
}

impl Completed {
    /// Returns stdout if the program exited with code 0.
    ///
    /// # Errors
    /// [`RunError::Failed`] for any other exit; stdout is dropped.
    // C323
    pub fn require_success(self) -> Result<Secret<Vec<u8>>, RunError> {
        if self.exit.is_success() {
            return Ok(self.stdout);
        }
        Err(RunError::Failed { program: self.program, exit: self.exit, stderr: self.stderr })
    }
}

/// The exit status of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Exited with this code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
}

impl Exit {
    /// Whether the exit code is 0.
    pub fn is_success(self) -> bool {
        self == Exit::Code(0)
    }

    /// The exit code as Go reports it: `-1` if killed by a signal.
    // C323
    pub fn code(self) -> i32 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(_) => -1,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// The last bytes a child wrote to stderr. `Debug` shows only their number: some plugins log tokens.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StderrTail {
    bytes: Vec<u8>,
    truncated: bool,
}

impl StderrTail {
    /// The last `keep` of these bytes.
    pub(crate) fn from_bytes(mut bytes: Vec<u8>, keep: usize, dropped_before: bool) -> Self {
        let excess = bytes.len().saturating_sub(keep);
        bytes.drain(..excess);
        StderrTail { bytes, truncated: dropped_before || excess > 0 }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes as trimmed text; invalid UTF-8 becomes U+FFFD.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }

    /// Whether earlier bytes were dropped.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }
}

impl fmt::Debug for StderrTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StderrTail({} bytes)", self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_keeps_the_end_and_reports_truncation() {
        let tail = StderrTail::from_bytes(b"  one two\n".to_vec(), 4, false);
        assert_eq!((tail.bytes(), tail.is_truncated()), (&b"two\n"[..], true));
        assert_eq!(tail.text(), "two");
        assert!(!StderrTail::from_bytes(b"all".to_vec(), 3, false).is_truncated());
        assert!(StderrTail::from_bytes(b"all".to_vec(), 3, true).is_truncated());
        assert_eq!(format!("{tail:?}"), "StderrTail(4 bytes)");
    }

    #[test]
    fn signal_exit_has_code_minus_one() {
        // C323
        assert_eq!((Exit::Code(3).code(), Exit::Signal(9).code()), (3, -1));
        assert!(Exit::Code(0).is_success() && !Exit::Signal(0).is_success());
    }
}
