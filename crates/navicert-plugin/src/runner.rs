//! The seam between wanting a program run and running it: a blocking trait without any runtime, and the way to wait
//! for it from one.

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
/// What every implementation promises, and the contract suite (`navicert_plugin::contract`, feature `test-util`)
/// checks:
///
/// - `run` returns when the run is over and leaves nothing behind: no zombie, no open descriptor.
/// - A program that ended, however it ended, is a [`Completed`]; an error means that there is no result.
/// - The run limit, the cap on stdout and the tail of stderr are those of the command.
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
    /// Runs the command to its end. Blocks for as long as that takes: on an async runtime use [`start`].
    ///
    /// # Errors
    /// [`RunError`]: the program could not be started, or was ended because it broke a limit.
    fn run(&self, command: Permitted<Command>) -> Result<Completed, RunError>;
}

/// Starts a run on a thread of its own. The answer is awaited or waited for; dropping it does not stop the run, whose
/// only limit is its own (C306, C422).
pub fn start(runner: Arc<dyn Runner>, command: Permitted<Command>) -> Waiter<Result<Completed, RunError>> {
    let completion = Completion::new();
    let waiter = completion.waiter();
    let program = command.program().to_path_buf();
    spawn_catching(
        "plugin",
        move || runner.run(command),
        move |answer| {
            completion.complete(answer.unwrap_or_else(|source| Err(RunError::Lost { program, source })));
        },
    );
    waiter
}

/// A run that came to an end.
#[derive(Clone, Debug)]
pub struct Completed {
    /// The absolute path of what ran.
    pub program: PathBuf,
    /// How it ended.
    pub exit: Exit,
    /// What it printed, up to the cap.
    pub stdout: Secret<Vec<u8>>,
    /// Whether stdout came to its end. If not, something the program left behind still holds it open, and there may
    /// have been more to come (C307).
    pub stdout_closed: bool,
    /// What it said on stderr last, if that was to be kept.
    pub stderr: Option<StderrTail>,
    /// How long it took.
    pub took: Duration,
}

impl Completed {
    /// The output of a program that ended as it should.
    ///
    /// # Errors
    /// [`RunError::Failed`] for any other end; stdout is dropped with it (C323).
    pub fn require_success(self) -> Result<Secret<Vec<u8>>, RunError> {
        if self.exit.is_success() {
            return Ok(self.stdout);
        }
        Err(RunError::Failed { program: self.program, exit: self.exit, stderr: self.stderr })
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// Whether it ended as it should.
    pub fn is_success(self) -> bool {
        self == Exit::Code(0)
    }

    /// The code as upstream reports it: `-1` for death by signal (C323).
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

/// The last bytes a child wrote to stderr. `Debug` shows only how many: plugins have been seen to log tokens.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StderrTail {
    bytes: Vec<u8>,
    truncated: bool,
}

impl StderrTail {
    /// The last `keep` of these bytes.
    pub(crate) fn of(mut bytes: Vec<u8>, keep: usize, dropped_before: bool) -> Self {
        let excess = bytes.len().saturating_sub(keep);
        bytes.drain(..excess);
        StderrTail { bytes, truncated: dropped_before || excess > 0 }
    }

    /// The bytes as written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes as text, surrounding whitespace taken off; what is not UTF-8 becomes U+FFFD.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }

    /// Whether there was more before them.
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
    fn a_tail_keeps_the_end_and_says_that_it_is_one() {
        let tail = StderrTail::of(b"  one two\n".to_vec(), 4, false);
        assert_eq!((tail.bytes(), tail.is_truncated()), (&b"two\n"[..], true));
        assert_eq!(tail.text(), "two");
        assert!(!StderrTail::of(b"all".to_vec(), 3, false).is_truncated());
        assert!(StderrTail::of(b"all".to_vec(), 3, true).is_truncated());
        assert_eq!(format!("{tail:?}"), "StderrTail(4 bytes)");
    }

    #[test]
    fn death_by_signal_counts_as_minus_one() {
        // C323
        assert_eq!((Exit::Code(3).code(), Exit::Signal(9).code()), (3, -1));
        assert!(Exit::Code(0).is_success() && !Exit::Signal(0).is_success());
    }
}
