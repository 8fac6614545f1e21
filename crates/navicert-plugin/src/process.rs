//! The one room that starts processes. One thread does it all: it feeds stdin, collects stdout and stderr, watches
//! for the child's end and for the limits, and does not return before the child is reaped.

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
use crate::platform::{self, Ask, Watched};
use crate::policy::{Permitted, Program};
use crate::resolve::is_absence;
use crate::runner::{Completed, Runner};
use crate::terminal::TerminalTurn;
use streams::Streams;

/// Runs commands as child processes. It starts no thread and leaves the caller's signal dispositions alone: as every
/// Rust program does from its start, the caller is expected to ignore SIGPIPE.
#[derive(Clone, Debug)]
pub struct ProcessRunner {
    clock: Arc<dyn Clock>,
    use_pidfd: bool,
}

impl ProcessRunner {
    /// A runner whose limits are measured by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        ProcessRunner { clock, use_pidfd: true }
    }

    /// Behaves as on a system that does not announce a child's end, to test that too.
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
        // Waiting for one's turn does not count against the limit.
        let _turn = matches!(command.stdin, Stdin::Inherit).then(TerminalTurn::take);
        let started = self.clock.monotonic();
        let mut child = spawn(&command, &program)?;
        let streams = Streams::of(&mut child, &command);
        let child = Kept(Some(Watched::new(child, command.group, self.use_pidfd)));
        let deadline = command.limit.map(|limit| started.saturating_add(limit));
        let mut run = Run {
            command: &command,
            program: &program.path,
            clock: &*self.clock,
            deadline,
            child,
            streams,
            phase: Phase::Running,
            broken: None,
        };
        run.drive().map_err(|source| run.lost_contact(source))?;
        run.finish(started)
    }
}

fn spawn(command: &Command, program: &Program) -> Result<Child, RunError> {
    start(command, program, Stdio::piped())
}

/// Starts a program whose standard output goes there.
pub(crate) fn start(command: &Command, program: &Program, stdout: Stdio) -> Result<Child, RunError> {
    #[expect(clippy::disallowed_methods, reason = "this is the one room that starts programs")]
    let mut child = std::process::Command::new(program.path_to_run());
    child.args(command.arguments()).env_clear().envs(command.environment()).stdout(stdout);
    child.stdin(match &command.stdin {
        Stdin::Null => Stdio::null(),
        Stdin::Inherit => Stdio::inherit(),
        Stdin::Bytes(_) => Stdio::piped(),
    });
    child.stderr(match &command.stderr {
        Stderr::Inherit => Stdio::inherit(),
        Stderr::Tail(_) | Stderr::Forward(_) => Stdio::piped(),
    });
    platform::prepare(&mut child, &command.cleaned_program(), command.group);
    child.spawn().map_err(|error| not_started(program, error))
}

/// "No such file" has two meanings: the program is gone, or what it needs to start is (its interpreter, its loader).
fn not_started(program: &Program, error: io::Error) -> RunError {
    let path = program.path.clone();
    match is_absence(&error) {
        false => RunError::Start { program: path, source: Arc::new(error) },
        true if program.is_there() => RunError::InterpreterNotFound { program: path },
        true => RunError::NotFound { program: path },
    }
}

/// No single wait is longer, so that a clock that is moved by hand is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(250);
/// How long a killed child may take to be gone. One that takes longer (in the middle of a dead network file system,
/// or run by another user) is reaped by a thread that can wait.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// One run: a child, its streams, and how far they have come.
struct Run<'a> {
    command: &'a Command,
    program: &'a Path,
    clock: &'a dyn Clock,
    deadline: Option<Duration>,
    child: Kept,
    streams: Streams<'a>,
    phase: Phase,
    broken: Option<Broken>,
}

/// Where the child is. Times are readings of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// At work, until the deadline.
    Running,
    /// Asked to end; killed at that time.
    Terminating { kill_at: Duration },
    /// Killed; no longer waited for after that time.
    Killed { give_up_at: Duration },
    /// Gone but not reaped; what it left behind may hold stdout until that time (C307).
    Gone { eof_at: Duration },
}

/// The limit that a child broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    Time,
    Size,
}

impl Run<'_> {
    /// From the start of the child to the moment there is nothing more to wait for.
    fn drive(&mut self) -> io::Result<()> {
        self.streams.prepare()?;
        loop {
            let now = self.clock.monotonic();
            let Some(at_most) = self.wait_for(now) else { return Ok(()) };
            let gone = matches!(self.phase, Phase::Gone { .. });
            let ready = self.streams.wait(self.child.0.as_ref().filter(|_| !gone), at_most)?;
            self.streams.move_bytes(ready)?;
            if ready.ended {
                self.child_has_ended()?;
            }
            if self.broken.is_none() && self.streams.is_stdout_too_large() {
                self.breaks(Broken::Size);
                self.kill();
            }
            // Last, and by the time before the look: nobody is late who had ended by then.
            self.keep_time(now);
        }
    }

    /// What is due at this time.
    fn keep_time(&mut self, now: Duration) {
        match self.phase {
            Phase::Running if self.deadline.is_some_and(|deadline| deadline <= now) => {
                self.breaks(Broken::Time);
                self.child.ask(Ask::Terminate);
                self.phase = Phase::Terminating { kill_at: now.saturating_add(self.command.grace) };
            }
            Phase::Terminating { kill_at } if kill_at <= now => self.kill(),
            _ => {}
        }
    }

    /// How long to wait for the next thing to happen; `None` when the run is over.
    fn wait_for(&self, now: Duration) -> Option<Duration> {
        let until = match self.phase {
            Phase::Running => self.deadline,
            Phase::Terminating { kill_at } => Some(kill_at),
            Phase::Killed { give_up_at } if give_up_at <= now => return None,
            Phase::Killed { give_up_at } => Some(give_up_at),
            Phase::Gone { eof_at } if eof_at <= now => return None,
            Phase::Gone { .. } if self.broken.is_some() || self.streams.is_stdout_closed() => return None,
            Phase::Gone { eof_at } => Some(eof_at),
        };
        Some(until.map_or(LONGEST_WAIT, |until| until.saturating_sub(now).min(LONGEST_WAIT)))
    }

    fn breaks(&mut self, limit: Broken) {
        self.broken = Some(limit);
        self.streams.discard_stdout();
    }

    fn kill(&mut self) {
        if !matches!(self.phase, Phase::Gone { .. }) {
            self.child.ask(Ask::Kill);
            self.phase = Phase::Killed { give_up_at: self.clock.monotonic().saturating_add(KILL_PATIENCE) };
        }
    }

    /// What the child itself wrote is in the pipes by now; only what it left behind can add to it. The limit of the
    /// run holds for these too.
    fn child_has_ended(&mut self) -> io::Result<()> {
        self.streams.drain()?;
        let eof_at = self.clock.monotonic().saturating_add(self.command.eof_wait);
        self.phase = Phase::Gone { eof_at: self.deadline.map_or(eof_at, |deadline| deadline.min(eof_at)) };
        Ok(())
    }

    /// Ends what has to end, reaps the child, and says what came of it.
    fn finish(mut self, started: Duration) -> Result<Completed, RunError> {
        let gone = matches!(self.phase, Phase::Gone { .. });
        if gone && self.survivors_end() {
            // Before reaping: until then the group's number cannot have been given to anybody else.
            self.child.ask(Ask::Kill);
        }
        let status = if gone { self.child.reap() } else { self.child.reap_elsewhere() };
        let program = self.program.to_path_buf();
        let (stdout, stdout_closed, stderr) = self.streams.finish();
        match self.broken {
            Some(Broken::Time) => {
                Err(RunError::TimedOut { program, after: self.command.limit.unwrap_or_default(), stderr })
            }
            Some(Broken::Size) => {
                Err(RunError::StdoutTooLarge { program, cap: self.command.stdout_cap, stderr })
            }
            None => match status {
                Ok(status) => {
                    let took = self.clock.monotonic().saturating_sub(started);
                    let exit = platform::exit_of(status);
                    Ok(Completed { program, exit, stdout, stdout_closed, stderr, took })
                }
                Err(source) => Err(RunError::StatusLost { program, source: Arc::new(source) }),
            },
        }
    }

    fn survivors_end(&self) -> bool {
        match self.command.group {
            ProcessGroup::Inherit => false,
            ProcessGroup::New => self.broken.is_some(),
            ProcessGroup::NewKilledAtEnd => true,
        }
    }

    fn lost_contact(&self, source: io::Error) -> RunError {
        RunError::Contact { program: self.program.to_path_buf(), source: Arc::new(source) }
    }
}

/// A child until it is reaped. Dropped before that, it is killed, and reaped all the same.
struct Kept(Option<Watched>);

impl Kept {
    fn ask(&self, ask: Ask) {
        if let Some(child) = &self.0 {
            child.ask(ask);
        }
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        self.0.take().map_or_else(|| Err(io::ErrorKind::NotFound.into()), |mut child| child.reap())
    }

    /// Leaves the waiting to a thread; where there is none to be had, waits here after all.
    fn reap_elsewhere(&mut self) -> io::Result<ExitStatus> {
        if let Some(child) = self.0.take() {
            let child = Arc::new(Mutex::new(child));
            let reap = |child: &Mutex<Watched>| child.lock().unwrap_or_else(PoisonError::into_inner).reap();
            let elsewhere = Arc::clone(&child);
            let thread =
                thread::Builder::new().name("plugin-reaper".to_owned()).spawn(move || reap(&elsewhere));
            if thread.is_err() {
                return reap(&child);
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.ask(Ask::Kill);
        let _ = self.reap_elsewhere();
    }
}

#[cfg(test)]
mod tests;
