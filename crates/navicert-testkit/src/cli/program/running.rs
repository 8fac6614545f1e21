//! A program that runs beside the test: its output is waited for piece by piece, it gets signals, and it is gone when
//! dropped.

use std::io::{self, Read};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::watch;

use super::{Outcome, Program};
use crate::wait;

/// A program at work. Both its output streams are one.
#[derive(Debug)]
pub struct Running {
    child: Mutex<Child>,
    stdin: Mutex<Option<ChildStdin>>,
    pid: u32,
    output: watch::Receiver<Output>,
}

#[derive(Debug, Default)]
struct Output {
    bytes: Vec<u8>,
    ended: bool,
}

impl Program {
    /// Starts it and lets it run. If [`stdin`](Self::stdin) gives anything, that is small and comes at once, and standard input
    /// stays open for [`Running::type_in`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let program = navicert_testkit::Program::new("/bin/sh").arguments(["-c", "echo ready; exec sleep 60"]);
    /// let running = program.start_running().unwrap();
    /// running.wait_for_output("ready").await;
    /// running.signal("TERM");
    /// assert_eq!(running.wait().await.signal(), Some(15));
    /// # }
    /// ```
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_running(&self) -> io::Result<Running> {
        let (mut reader, writer) = io::pipe()?;
        let mut command = self.blocking_command();
        command.stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn()?;
        drop(command); // holds the pipe's writing end
        let mut stdin = child.stdin.take();
        if let Some(stdin) = &mut stdin {
            let _ = io::Write::write_all(stdin, &self.stdin);
        }
        let pid = child.id();
        let (sender, output) = watch::channel(Output::default());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                // Bounded, for programs that print endlessly; enough for every wait.
                sender.send_modify(|output| {
                    if output.bytes.len() < 1 << 20 {
                        output.bytes.extend_from_slice(&buffer[..count]);
                    }
                });
            }
            sender.send_modify(|output| output.ended = true);
        });
        Ok(Running { child: Mutex::new(child), stdin: Mutex::new(stdin), pid, output })
    }

    #[expect(clippy::disallowed_methods, reason = "the only function of the test kit that starts programs")]
    pub(super) fn blocking_command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.arguments);
        if self.own_environment {
            command.env_clear();
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdin(if self.stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
        command
    }
}

impl Running {
    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What it has printed so far.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.output.borrow().bytes).into_owned()
    }

    /// Waits until the program has printed this text, and returns all output so far.
    ///
    /// # Panics
    /// If it ends first, or does not within [`wait::LIMIT`].
    pub async fn wait_for_output(&self, text: &str) -> String {
        self.wait_for_output_within(text, wait::LIMIT).await
    }

    /// The same with a limit of its own.
    ///
    /// # Panics
    /// If it ends first, or does not within the limit.
    pub async fn wait_for_output_within(&self, text: &str, limit: Duration) -> String {
        let has = |output: &Output| output.bytes.windows(text.len()).any(|window| window == text.as_bytes());
        let mut output = self.output.clone();
        let waited = tokio::time::timeout(limit, output.wait_for(|output| output.ended || has(output))).await;
        drop(waited);
        assert!(has(&self.output.borrow()), "no `{text}` within {limit:?}: {}", self.output());
        self.output()
    }

    /// Waits until it has printed this so many times.
    ///
    /// # Panics
    /// If it does not within the limit.
    pub async fn wait_for_repeated_output(&self, text: &str, times: usize, limit: Duration) {
        let has = |output: &Output| String::from_utf8_lossy(&output.bytes).matches(text).count() >= times;
        let mut output = self.output.clone();
        let waited = tokio::time::timeout(limit, output.wait_for(has)).await.is_ok();
        assert!(waited, "not {times} times `{text}` within {limit:?}: {}", self.output());
    }

    /// Writes to its standard input.
    ///
    /// # Panics
    /// If it has no standard input, or no longer reads it.
    pub fn type_in(&self, text: &str) {
        let mut stdin = self.stdin.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let stdin = stdin.as_mut().expect("a program that was started with standard input");
        io::Write::write_all(stdin, text.as_bytes()).expect("a program that reads");
    }

    /// Ends its standard input: whatever it reads next is the end.
    pub fn close_input(&self) {
        drop(self.stdin.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
    }

    /// Sends it a signal by name, such as `TERM`.
    ///
    /// # Panics
    /// If it is gone.
    pub fn signal(&self, name: &str) {
        // The shell's own `kill`: a minimal Debian has no program of that name.
        let script = format!("kill -{name} {}", self.pid);
        let outcome = Program::new("/bin/sh").arguments(["-c", &script]).run();
        assert!(outcome.is_ok_and(|outcome| outcome.status.success()), "no signal {name} to {}", self.pid);
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not come within [`wait::LIMIT`].
    pub async fn wait(self) -> Outcome {
        let state = |output: &Output| String::from_utf8_lossy(&output.bytes).into_owned();
        wait::until("a program to close its output", self.output.clone(), |output| output.ended, state).await;
        let stdout = self.output.borrow().bytes.clone();
        Outcome { status: self.status(), stdout, stderr: Vec::new() }
    }

    /// Waits for its exit, even if another process still holds its output open.
    ///
    /// # Panics
    /// If its end cannot be learned.
    pub fn status(&self) -> ExitStatus {
        let mut child = self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        child.wait().expect("the end of a child of ours")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }
}
