//! A program that stays: it reads requests from its standard input and writes lines, until its input is closed.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use navicert_types::Secret;

use crate::command::{Command, Stderr};
use crate::error::RunError;
use crate::policy::Permitted;
use crate::process::start;
use crate::runner::{Completed, Exit};

/// A running program. Its standard input is closed on drop, which also happens when this process is killed; it is killed
/// when it exceeds the time limit of a request.
pub struct Session {
    program: PathBuf,
    child: Option<Child>,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
}

impl Session {
    /// Starts the program of a command whose standard input is a request, with one more environment variable, and makes
    /// that request. Standard error is this process's own.
    ///
    /// # Errors
    /// [`RunError`]: the program could not be started, or as for [`Session::request`].
    pub fn start(
        command: Permitted<Command>,
        variable: (&OsStr, &OsStr),
        is_last: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(Self, Completed), RunError> {
        let (command, program) = command.into_parts();
        let command = command.protocol_env(variable.0, variable.1).stderr(Stderr::Inherit);
        let mut child = start(&command, &program, Stdio::piped())?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (sender, lines) = mpsc::channel();
        let cap = command.stdout_cap;
        let mut session = Session { program: program.path.clone(), child: Some(child), stdin, lines };
        if let Some(stdout) = stdout {
            let reader = thread::Builder::new().name("session".to_owned());
            let reader = reader.spawn(move || read_lines(stdout, cap, |line| sender.send(line).is_ok()));
            reader.map_err(|source| session.io_error(source))?;
        }
        let completed = session.exchange(&command, is_last)?;
        Ok((session, completed))
    }

    /// The absolute path of the program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Makes another request: the standard input of this command, as one line. Returns the lines up to and including the
    /// one for which `is_last` holds.
    ///
    /// # Errors
    /// [`RunError::TimedOut`] after the command's limit; the program is killed. [`RunError::Io`] if it has exited.
    pub fn request(
        &mut self,
        command: &Permitted<Command>,
        is_last: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Completed, RunError> {
        self.exchange(command.command(), is_last)
    }

    fn exchange(
        &mut self,
        command: &Command,
        is_last: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Completed, RunError> {
        let request = command.stdin_bytes().map_or(&[][..], |bytes| bytes.expose());
        let stdin = self.stdin.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe));
        let sent = stdin.and_then(|stdin| {
            stdin.write_all(request)?;
            stdin.write_all(b"\n")?;
            stdin.flush()
        });
        sent.map_err(|source| self.io_error(source))?;
        let mut stdout = Vec::new();
        loop {
            let line = self.next_line(command.limit)?;
            if let Some(receiver) = &command.stdout_receiver {
                receiver(&line);
            }
            stdout.extend_from_slice(&line);
            if stdout.len() > command.stdout_cap {
                self.kill();
                let (program, cap) = (self.program.clone(), command.stdout_cap);
                return Err(RunError::StdoutTooLarge { program, cap, stderr: None });
            }
            if is_last(&line) {
                return Ok(self.completed(stdout));
            }
        }
    }

    fn next_line(&mut self, limit: Option<Duration>) -> Result<Vec<u8>, RunError> {
        let ended = || io::Error::new(io::ErrorKind::UnexpectedEof, "the program has exited");
        let Some(limit) = limit else {
            return self.lines.recv().map_err(|_| self.io_error(ended()));
        };
        match self.lines.recv_timeout(limit) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Disconnected) => Err(self.io_error(ended())),
            Err(RecvTimeoutError::Timeout) => {
                self.kill();
                Err(RunError::TimedOut { program: self.program.clone(), after: limit, stderr: None })
            }
        }
    }

    fn completed(&self, stdout: Vec<u8>) -> Completed {
        Completed {
            program: self.program.clone(),
            exit: Exit::Code(0),
            stdout: Secret::new(stdout),
            stdout_closed: true,
            stderr: None,
            took: Duration::ZERO,
        }
    }

    fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
        }
    }

    fn io_error(&self, source: io::Error) -> RunError {
        RunError::Io { program: self.program.clone(), source: Arc::new(source) }
    }
}

/// Passes on lines of up to `cap` bytes until the end of the output, or until no line is accepted.
fn read_lines(stdout: ChildStdout, cap: usize, mut accept: impl FnMut(Vec<u8>) -> bool) {
    let mut reader = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let limit = u64::try_from(cap).unwrap_or(u64::MAX).saturating_add(1);
        match reader.by_ref().take(limit).read_until(b'\n', &mut line) {
            Ok(count) if count > 0 && accept(line) => {}
            _ => return,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.stdin.take());
        if let Some(mut child) = self.child.take() {
            // Reaped when it has seen the end of its input. Without a thread, it is reaped when this process ends.
            let _ = thread::Builder::new().name("session-reaper".to_owned()).spawn(move || child.wait());
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("program", &self.program).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Environment, Stdin};
    use crate::policy::Policy;

    fn shell(script: &str, request: &str) -> Permitted<Command> {
        let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
        let command = Command::new("/bin/sh", environment).args(["-c", script]);
        let command = command.stdin(Stdin::Bytes(Secret::new(request.as_bytes().to_vec())));
        Policy::AllowAll.permit(command.limit(Some(Duration::from_secs(60)))).unwrap()
    }

    fn open(script: &str, request: &str) -> Result<(Session, Completed), RunError> {
        let variable = (OsStr::new("KEPT"), OsStr::new("yes"));
        Session::start(shell(script, request), variable, &|line| line.starts_with(b"last"))
    }

    #[test]
    fn one_process_answers_every_request() {
        let script = "while read line; do echo \"more $$\"; echo \"last $KEPT $line\"; done";
        let (mut session, first) = open(script, "one").unwrap();
        let second = session.request(&shell(script, "two"), &|line| line.starts_with(b"last")).unwrap();
        let lines = |completed: &Completed| String::from_utf8(completed.stdout.expose().clone()).unwrap();
        let (first, second) = (lines(&first), lines(&second));
        assert!(first.ends_with("last yes one\n") && second.ends_with("last yes two\n"), "{first}{second}");
        assert_eq!(first.lines().next(), second.lines().next(), "the same process");
    }

    #[test]
    fn exit_and_excess_output_are_errors() {
        assert!(matches!(open("read line; exit 0", "x"), Err(RunError::Io { .. })));
        let endless = open("read line; while :; do echo more; done", "x");
        assert!(matches!(endless, Err(RunError::StdoutTooLarge { .. })), "{endless:?}");
    }

    #[test]
    fn time_limit_kills_the_program() {
        let command = shell("read line; exec sleep 600", "x");
        let (command, program) = command.into_parts();
        let command = command.limit(Some(Duration::ZERO));
        let child = start(&command, &program, Stdio::piped()).unwrap();
        let (_sender, lines) = mpsc::channel();
        let mut session = Session { program: program.path.clone(), child: Some(child), stdin: None, lines };
        assert!(matches!(session.next_line(command.limit), Err(RunError::TimedOut { .. })));
        let status = session.child.as_mut().unwrap().wait().unwrap();
        assert_eq!(crate::platform::exit_from_status(status), Exit::Signal(9));
    }

    #[test]
    fn dropping_the_session_ends_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let script = format!("read line; echo last; read line; echo ended >{}/ended", dir.path().display());
        let (mut session, _) = open(&script, "x").unwrap();
        let mut child = session.child.take().unwrap();
        drop(session);
        assert!(child.wait().unwrap().success());
        assert!(dir.path().join("ended").exists(), "its input has ended");
    }
}
