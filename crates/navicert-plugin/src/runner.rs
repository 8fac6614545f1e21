//! The seam between wanting a program run and running it: a blocking trait without any runtime, and the way to wait
//! for it from one.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_types::Secret;

use crate::command::Command;
use crate::completion::{Lost, Waiter, detach};
use crate::error::{Exit, RunError, StderrTail};
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
pub fn start(
    runner: Arc<dyn Runner>,
    command: Permitted<Command>,
) -> Waiter<Result<Result<Completed, RunError>, Lost>> {
    detach("plugin", move || runner.run(command))
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
