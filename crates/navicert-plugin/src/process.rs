//! Starts child processes. One thread does the whole run: it writes stdin, reads stdout and stderr, waits for the child's
//! exit, enforces the limits, and reaps the child before it returns.

mod streams;

use std::io;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use navicert_types::Clock;

use crate::command::{Command, ProcessGroup, Stderr, Stdin};
use crate::error::RunError;
use crate::platform::{self, ChildHandle, ChildSignal};
use crate::policy::{Permitted, Program};
use crate::resolve::is_not_found;
use crate::runner::{Completed, Runner};
use crate::terminal::TerminalLock;
use streams::Streams;

/// Runs commands as child processes. It starts no thread and does not change signal dispositions: SIGPIPE must be ignored,
/// as in every Rust program.
#[derive(Clone, Debug)]
pub struct ProcessRunner {
    clock: Arc<dyn Clock>,
    use_pidfd: bool,
}

impl ProcessRunner {
    /// Creates a runner that measures limits with this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        ProcessRunner { clock, use_pidfd: true }
    }

    /// Polls for the child's exit, as on systems without pidfds; for tests.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn without_pidfd(mut self) -> Self {
        self.use_pidfd = false;
        self
    }
}

impl Runner for ProcessRunner {
    fn run(&self, command: Permitted<Command>) -> Result<Completed, RunError> {
        let (command, program) = command.into_parts();
        // Waiting for the terminal does not count against the time limit.
        let _terminal = matches!(command.stdin, Stdin::Inherit).then(TerminalLock::acquire);
        let started = self.clock.monotonic();
        let mut child = spawn(&command, &program)?;
        let streams = Streams::from_child(&mut child, &command);
        let child = ReapOnDrop(Some(ChildHandle::new(child, command.group, self.use_pidfd)));
        let deadline = command.limit.map(|limit| started.saturating_add(limit));
        let mut run = Run {
            command: &command,
            program: &program.path,
            clock: &*self.clock,
            deadline,
            child,
            streams,
            phase: Phase::Running,
            exceeded: None,
        };
        run.drive().map_err(|source| run.io_error(source))?;
        run.finish(started)
    }
}

fn spawn(command: &Command, program: &Program) -> Result<Child, RunError> {
    start(command, program, Stdio::piped())
}

/// Starts a program with this standard output.
pub(crate) fn start(command: &Command, program: &Program, stdout: Stdio) -> Result<Child, RunError> {
    let stdin = match &command.stdin {
        Stdin::Null => Stdio::null(),
        Stdin::Inherit => Stdio::inherit(),
        Stdin::Bytes(_) => Stdio::piped(),
    };
    start_with_streams(command, program, stdin, stdout)
}

/// Starts a program with this standard input and output.
pub(crate) fn start_with_streams(
    command: &Command,
    program: &Program,
    stdin: Stdio,
    stdout: Stdio,
) -> Result<Child, RunError> {
    #[expect(clippy::disallowed_methods, reason = "the only place that starts programs")]
    let mut child = std::process::Command::new(program.path_to_run());
    child.args(command.arguments()).env_clear().envs(command.environment()).stdin(stdin).stdout(stdout);
    child.stderr(match &command.stderr {
        Stderr::Inherit => Stdio::inherit(),
        Stderr::Null => Stdio::null(),
        Stderr::Tail(_) | Stderr::Forward(_) => Stdio::piped(),
    });
    platform::prepare(&mut child, &command.cleaned_program(), command.group);
    platform::pinning::spawn(&mut child, program.inherited()).map_err(|error| not_started(program, error))
}

/// "No such file" has two causes: the program is missing, or its interpreter or dynamic loader is.
fn not_started(program: &Program, error: io::Error) -> RunError {
    let path = program.path.clone();
    match is_not_found(&error) {
        false => RunError::Start { program: path, source: Arc::new(error) },
        true if program.exists() => RunError::InterpreterNotFound { program: path },
        true => RunError::NotFound { program: path },
    }
}

/// Longest single wait, so that changes of a manual clock are noticed.
const MAX_POLL_WAIT: Duration = Duration::from_millis(250);
/// How long to wait for a killed child. One that takes longer (blocked on a dead network file system, or owned by another
/// user) is reaped by a background thread.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// The state of one run.
struct Run<'a> {
    command: &'a Command,
    program: &'a Path,
    clock: &'a dyn Clock,
    deadline: Option<Duration>,
    child: ReapOnDrop,
    streams: Streams<'a>,
    phase: Phase,
    exceeded: Option<ExceededLimit>,
}

/// The child's phase. Times are of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Running until the deadline.
    Running,
    /// Received SIGTERM; killed at that time.
    Terminating { kill_at: Duration },
    /// Killed; waited for until that time.
    Killed { give_up_at: Duration },
    /// Exited but not reaped; descendants may hold stdout open until that time.
    // C307
    Exited { eof_at: Duration },
}

/// The limit that a child exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExceededLimit {
    Time,
    Size,
}

impl Run<'_> {
    /// Drives the run until there is nothing more to wait for.
    fn drive(&mut self) -> io::Result<()> {
        self.streams.prepare()?;
        loop {
            let now = self.clock.monotonic();
            let Some(at_most) = self.next_wait(now) else { return Ok(()) };
            let exited = matches!(self.phase, Phase::Exited { .. });
            let ready = self.streams.wait(self.child.0.as_ref().filter(|_| !exited), at_most)?;
            self.streams.transfer(ready)?;
            if ready.ended {
                self.on_child_exit()?;
            }
            if self.exceeded.is_none() && self.streams.is_stdout_too_large() {
                self.mark_exceeded(ExceededLimit::Size);
                self.kill();
            }
            // Uses the time read before waiting: a child that had exited by then is not late.
            self.enforce_deadlines(now);
        }
    }

    /// Terminates or kills the child if a deadline has passed.
    fn enforce_deadlines(&mut self, now: Duration) {
        match self.phase {
            Phase::Running if self.deadline.is_some_and(|deadline| deadline <= now) => {
                self.mark_exceeded(ExceededLimit::Time);
                self.child.signal(ChildSignal::Terminate);
                self.phase = Phase::Terminating { kill_at: now.saturating_add(self.command.grace) };
            }
            Phase::Terminating { kill_at } if kill_at <= now => self.kill(),
            _ => {}
        }
    }

    /// How long to wait for the next event; `None` if the run is over.
    fn next_wait(&self, now: Duration) -> Option<Duration> {
        let until = match self.phase {
            Phase::Running => self.deadline,
            Phase::Terminating { kill_at } => Some(kill_at),
            Phase::Killed { give_up_at } if give_up_at <= now => return None,
            Phase::Killed { give_up_at } => Some(give_up_at),
            Phase::Exited { eof_at } if eof_at <= now => return None,
            Phase::Exited { .. } if self.exceeded.is_some() || self.streams.is_stdout_closed() => {
                return None;
            }
            Phase::Exited { eof_at } => Some(eof_at),
        };
        Some(until.map_or(MAX_POLL_WAIT, |until| until.saturating_sub(now).min(MAX_POLL_WAIT)))
    }

    fn mark_exceeded(&mut self, limit: ExceededLimit) {
        self.exceeded = Some(limit);
        self.streams.discard_stdout();
    }

    fn kill(&mut self) {
        if !matches!(self.phase, Phase::Exited { .. }) {
            self.child.signal(ChildSignal::Kill);
            self.phase = Phase::Killed { give_up_at: self.clock.monotonic().saturating_add(KILL_TIMEOUT) };
        }
    }

    /// The child's own output is in the pipes; only its descendants can add to it. The run's time limit applies to them
    /// too.
    fn on_child_exit(&mut self) -> io::Result<()> {
        self.streams.drain()?;
        let eof_at = self.clock.monotonic().saturating_add(self.command.eof_wait);
        self.phase = Phase::Exited { eof_at: self.deadline.map_or(eof_at, |deadline| deadline.min(eof_at)) };
        Ok(())
    }

    /// Kills survivors if required, reaps the child, and returns the result.
    fn finish(mut self, started: Duration) -> Result<Completed, RunError> {
        let exited = matches!(self.phase, Phase::Exited { .. });
        if exited && self.kills_survivors() {
            // Before reaping: until then the process group's id cannot be reused.
            self.child.signal(ChildSignal::Kill);
        }
        let status = if exited { self.child.reap() } else { self.child.reap_in_background() };
        let program = self.program.to_path_buf();
        let (stdout, stdout_closed, stderr) = self.streams.finish();
        match self.exceeded {
            Some(ExceededLimit::Time) => {
                Err(RunError::TimedOut { program, after: self.command.limit.unwrap_or_default(), stderr })
            }
            Some(ExceededLimit::Size) => {
                Err(RunError::StdoutTooLarge { program, cap: self.command.stdout_cap, stderr })
            }
            None => match status {
                Ok(status) => {
                    let took = self.clock.monotonic().saturating_sub(started);
                    let exit = platform::exit_from_status(status);
                    Ok(Completed { program, exit, stdout, stdout_closed, stderr, took })
                }
                Err(source) => Err(RunError::StatusLost { program, source: Arc::new(source) }),
            },
        }
    }

    fn kills_survivors(&self) -> bool {
        match self.command.group {
            ProcessGroup::Inherit => false,
            ProcessGroup::New => self.exceeded.is_some(),
            ProcessGroup::NewKilledAtEnd => true,
        }
    }

    fn io_error(&self, source: io::Error) -> RunError {
        RunError::Io { program: self.program.to_path_buf(), source: Arc::new(source) }
    }
}

/// A child that is killed and reaped on drop.
struct ReapOnDrop(Option<ChildHandle>);

impl ReapOnDrop {
    fn signal(&self, ask: ChildSignal) {
        if let Some(child) = &self.0 {
            child.signal(ask);
        }
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        self.0.take().map_or_else(|| Err(io::ErrorKind::NotFound.into()), |mut child| child.reap())
    }

    /// Reaps the child on a background thread; on this thread if none can be started.
    fn reap_in_background(&mut self) -> io::Result<ExitStatus> {
        if let Some(child) = self.0.take() {
            let child = Arc::new(Mutex::new(child));
            let reap =
                |child: &Mutex<ChildHandle>| child.lock().unwrap_or_else(PoisonError::into_inner).reap();
            let shared = Arc::clone(&child);
            let thread = thread::Builder::new().name("plugin-reaper".to_owned()).spawn(move || reap(&shared));
            if thread.is_err() {
                return reap(&child);
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl Drop for ReapOnDrop {
    fn drop(&mut self) {
        self.signal(ChildSignal::Kill);
        let _ = self.reap_in_background();
    }
}

#[cfg(test)]
mod tests;
