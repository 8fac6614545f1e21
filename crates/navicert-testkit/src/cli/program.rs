//! Runs a program for a test: tools such as `softhsm2-util`, and the binary a transcript shows. With a time limit.

mod running;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::{environment, platform, wait};

pub use running::Running;

/// A program about to run. Its standard input is empty unless [`stdin`](Self::stdin) says otherwise.
///
/// ```
/// use navicert_testkit::Program;
///
/// let outcome = Program::new("cat").stdin("hello").run().unwrap();
/// assert_eq!((outcome.code(), outcome.stdout.as_slice()), (Some(0), b"hello".as_slice()));
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `run`"]
pub struct Program {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    own_environment: bool,
    directory: Option<PathBuf>,
    stdin: Vec<u8>,
    merged: bool,
    limit: Duration,
}

/// What a finished program left.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed; of a merged run, both streams in the order they were written.
    pub stdout: Vec<u8>,
    /// What it complained; empty for a merged run.
    pub stderr: Vec<u8>,
}

/// Copies an executable that the test will run.
///
/// The copy is written by another process: a descriptor that is open for writing here could be inherited by a process that
/// another test is starting, and running the copy would then fail with `ETXTBSY`.
///
/// # Errors
/// The copy cannot be made.
pub fn copy_executable(from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
    let outcome = Program::new("cp").arguments([from.as_ref(), to.as_ref()]).run()?;
    match outcome.code() {
        Some(0) => Ok(()),
        _ => Err(io::Error::other(String::from_utf8_lossy(&outcome.stderr).into_owned())),
    }
}

/// Variable that holds the input of a test executable that was started again.
pub const CHILD_INPUT_VARIABLE: &str = "NAVICERT_TEST_CHILD";

/// The input that [`Program::this_test`] gave to this process; `None` in an ordinary test run, where the test that asks has
/// nothing to do.
pub fn child_input() -> Option<String> {
    environment::variable(CHILD_INPUT_VARIABLE).map(|input| input.to_string_lossy().into_owned())
}

impl Program {
    /// This test executable, started again for its test of this full name. That test gets the input from [`child_input`] and
    /// is the body of the other program: so a test has a process of its own without a binary that has to be built.
    ///
    /// # Panics
    /// If the path of this program is unknown.
    pub fn this_test(name: &str, input: impl AsRef<OsStr>) -> Self {
        let own = std::env::current_exe().expect("the path of this program");
        Program::new(own)
            .arguments([name, "--exact", "--nocapture", "--test-threads=1"])
            .variable(CHILD_INPUT_VARIABLE, input)
    }

    /// A program by path, or by name along the test run's `PATH`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Program {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            own_environment: false,
            directory: None,
            stdin: Vec::new(),
            merged: false,
            limit: wait::LIMIT,
        }
    }

    /// Adds arguments.
    pub fn arguments<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets a variable for it.
    pub fn variable(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Hides the test run's environment from it: it sees only what [`variable`](Self::variable) sets.
    pub fn own_environment(mut self) -> Self {
        self.own_environment = true;
        self
    }

    /// Runs it in this directory.
    pub fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// Sets its standard input.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Uses one pipe for both output streams, which preserves their order.
    pub fn merged(mut self) -> Self {
        self.merged = true;
        self
    }

    /// Sets its timeout, instead of [`wait::LIMIT`].
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// If it cannot be started.
    ///
    /// # Panics
    /// If it does not end within its limit; it is killed then.
    pub fn run(&self) -> io::Result<Outcome> {
        let what = format!("`{self}` to end");
        wait::blocking(wait::within_limit(self.limit, &what, self.run_async()))
    }

    async fn run_async(&self) -> io::Result<Outcome> {
        let (mut child, mut output) = self.start()?;
        let mut stdin = child.stdin.take();
        let mut stderr = child.stderr.take();
        let feed = async {
            if let Some(stdin) = &mut stdin {
                let _ = stdin.write_all(&self.stdin).await; // a program may close its input unread
            }
            drop(stdin.take());
        };
        let complaints = async {
            match &mut stderr {
                Some(stderr) => read(stderr).await,
                None => Ok(Vec::new()),
            }
        };
        let ((), stdout, stderr, status) = tokio::join!(feed, read(&mut output), complaints, child.wait());
        Ok(Outcome { status: status?, stdout: stdout?, stderr: stderr? })
    }

    /// Starts the program; the reader is its standard output, or both streams of a merged run.
    fn start(&self) -> io::Result<(Child, Box<dyn AsyncRead + Send + Unpin>)> {
        let mut command = self.command();
        if !self.merged {
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
            let stdout = child.stdout.take().expect("a piped stdout");
            return Ok((child, Box::new(stdout)));
        }
        let (reader, writer) = io::pipe()?;
        let child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
        drop(command); // holds the pipe's writing end: the reader would never see the end of it
        Ok((child, Box::new(platform::asynchronous(reader)?)))
    }

    fn command(&self) -> Command {
        let mut command = Command::from(self.blocking_command());
        command.kill_on_drop(true);
        command
    }
}

impl fmt::Display for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.program.to_string_lossy())?;
        self.arguments.iter().try_for_each(|argument| write!(formatter, " {}", argument.to_string_lossy()))
    }
}

impl Outcome {
    /// The exit code; `None` if a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The signal that ended it, if one did.
    pub fn signal(&self) -> Option<i32> {
        platform::signal(self.status)
    }
}

async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program::new("/bin/sh").arguments(["-c", script])
    }

    #[test]
    fn both_streams_and_the_exit_code_come_back() {
        let outcome = shell("echo out; echo err >&2; exit 3").run().unwrap();
        assert_eq!((outcome.code(), outcome.signal()), (Some(3), None));
        assert_eq!((outcome.stdout.as_slice(), outcome.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    }

    #[test]
    fn a_merged_run_keeps_the_order_of_the_streams() {
        let outcome = shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2").merged().run().unwrap();
        assert_eq!(outcome.stdout, b"1\n2\n3\n4\n");
        assert!(outcome.stderr.is_empty());
    }

    #[test]
    fn a_program_with_its_own_environment_sees_nothing_of_ours() {
        let outcome = Program::new("/usr/bin/env").own_environment().variable("ONLY", "this").run().unwrap();
        assert_eq!(outcome.stdout, b"ONLY=this\n");
    }

    #[test]
    fn a_program_that_ignores_a_large_input_is_no_problem() {
        let outcome = shell("exit 0").stdin(vec![b'x'; 1 << 20]).run().unwrap();
        assert_eq!(outcome.code(), Some(0));
    }

    #[test]
    fn a_program_that_does_not_end_is_given_up_and_killed() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(Program::new("mkfifo").arguments([&pipe]).run().unwrap().status.success());
        // Writes its process id, then blocks on a pipe without a writer.
        let script = format!("echo $$ >pid; exec cat {}", pipe.display());
        let endless = shell(&script).directory(directory.path()).limit(Duration::from_millis(500));
        let given_up = std::panic::catch_unwind(|| endless.run()).unwrap_err();
        assert!(
            given_up.downcast_ref::<String>().unwrap().starts_with("waited 500ms in vain for `/bin/sh -c")
        );
        // On a machine so slow that it was killed before it left its number, there is nothing more to see.
        if let Ok(pid) = std::fs::read_to_string(directory.path().join("pid")) {
            let status = format!("/proc/{}/status", pid.trim());
            let alive = format!("while test -e {status} && ! grep -q '^State:.Z' {status}; do :; done");
            assert!(shell(&alive).run().unwrap().status.success(), "`cat` outlived its limit");
        }
    }

    #[test]
    fn reports_missing_programs_and_signals() {
        assert_eq!(Program::new("/no/such/program").run().unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(shell("kill -9 $$").run().unwrap().signal(), Some(9));
    }
}
