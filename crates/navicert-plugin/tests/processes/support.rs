//! Shared helpers: the fake plugin, a runner, and a socket that tracks processes.

use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::{
    Command, Completed, Environment, Permitted, Policy, ProcessRunner, RunError, Runner, Waiter, start,
};
pub(crate) use navicert_testkit::cli::FAKE_PLUGIN;
use navicert_types::clock::{Clock, ManualClock, SystemClock};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tempfile::TempDir;

/// Timeout of events that must happen: long enough for a busy machine.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A command that runs these steps in the fake plugin, with limits suitable for tests.
pub(crate) fn plugin<S: Into<OsString>>(steps: impl IntoIterator<Item = S>) -> Command {
    let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    Command::new(FAKE_PLUGIN, environment)
        .args(steps)
        .limit(Some(TEST_TIMEOUT))
        .grace(TEST_TIMEOUT)
        .eof_wait(TEST_TIMEOUT)
}

/// A shell that runs this text; `$0` in it is the fake plugin.
pub(crate) fn shell(text: &str) -> Command {
    let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    Command::new("/bin/sh", environment)
        .args(["-c", text, FAKE_PLUGIN])
        .limit(Some(TEST_TIMEOUT))
        .grace(TEST_TIMEOUT)
}

pub(crate) fn runner() -> ProcessRunner {
    ProcessRunner::new(Arc::new(SystemClock))
}

pub(crate) fn run(command: Command) -> Result<Completed, RunError> {
    runner().run(permit(command))
}

pub(crate) fn output(command: Command) -> Vec<u8> {
    run(command).expect("it ran").stdout.expose().clone()
}

/// The descriptors that every child inherits: the three streams and those of the test runner without close-on-exec, in the
/// fake plugin's format. Copies of scripts, which another test may be starting, are only for their own child.
pub(crate) fn inherited_descriptors() -> String {
    let close_on_exec = 0o2_000_000;
    let mut passed_on: Vec<String> = std::fs::read_dir("/proc/self/fdinfo")
        .expect("a list of descriptors")
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let text = std::fs::read_to_string(&path).ok()?;
            let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
            let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
            let number = path.file_name()?.to_str()?;
            let path = format!("/proc/self/fd/{number}");
            let target = std::fs::read_link(&path).ok()?;
            let is_script = target.to_string_lossy().starts_with("/memfd:navicert-plugin");
            (flags & close_on_exec == 0 && !is_script).then_some(path)
        })
        .collect();
    passed_on.sort();
    passed_on.join(" ")
}

/// Writes an executable file from another process: a writable descriptor of this process, inherited by a child that another
/// test is starting, would cause `ETXTBSY`.
pub(crate) fn write_program(path: &Path, text: &str) {
    let stdin = navicert_plugin::Stdin::Bytes(text.as_bytes().to_vec().into());
    let command = shell("cat > \"$1\" && chmod 755 \"$1\"").args([path]).stdin(stdin);
    assert!(run(command).expect("the shell ran").exit.is_success());
}

/// A socket to which processes connect with `hold=`: the connection shows that the process is alive, its end that it has
/// exited, and closing it lets the process continue.
pub(crate) struct LivenessSocket {
    directory: TempDir,
    listener: UnixListener,
}

impl LivenessSocket {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let listener = UnixListener::bind(directory.path().join("liveness")).expect("a socket");
        listener.set_nonblocking(true).expect("a socket that does not block");
        LivenessSocket { directory, listener }
    }

    pub(crate) fn step(&self, verb: &str) -> String {
        format!("{verb}={}", self.directory.path().join("liveness").display())
    }

    /// The process, unless it was killed before it connected.
    pub(crate) fn try_accept(&self) -> Option<TrackedProcess> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(false).expect("a stream that blocks");
        stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("a limit");
        let mut pid = [0; 4];
        (&stream).read_exact(&mut pid).ok()?;
        Some(TrackedProcess { stream, pid: Pid::from_raw(i32::from_le_bytes(pid)).expect("its number") })
    }

    /// Waits for a process to connect.
    pub(crate) fn accept(&self) -> TrackedProcess {
        let mut ready = [rustix::event::PollFd::new(&self.listener, rustix::event::PollFlags::IN)];
        let limit = rustix::event::Timespec::try_from(TEST_TIMEOUT).expect("a short time");
        rustix::event::poll(&mut ready, Some(&limit)).expect("polling");
        self.try_accept().expect("a process is connected")
    }
}

/// A process that is alive while the connection is open; released on drop.
pub(crate) struct TrackedProcess {
    stream: UnixStream,
    pid: Pid,
}

impl TrackedProcess {
    /// Waits until the process has exited.
    pub(crate) fn wait_until_gone(&self) {
        assert_eq!((&self.stream).read(&mut [0]).expect("an end within the limit"), 0);
    }

    /// Waits until the process, a child of this one, has exited, without reaping it.
    pub(crate) fn wait_until_exited(&self) {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid), look).expect("a child of ours");
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.stream.set_nonblocking(true).expect("a stream that does not block");
        let alive =
            matches!((&self.stream).read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
        self.stream.set_nonblocking(false).expect("a stream that blocks");
        alive
    }
}

pub(crate) fn permit(command: Command) -> Permitted<Command> {
    Policy::AllowAll.permit(command).expect("the program exists")
}

/// A run with a manual clock.
pub(crate) struct ManualClockRun {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) waiter: Waiter<Result<Completed, RunError>>,
}

impl ManualClockRun {
    pub(crate) fn start(command: Command) -> Self {
        let clock = Arc::new(ManualClock::at(0));
        let runner = ProcessRunner::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let waiter = start(Arc::new(runner), permit(command));
        ManualClockRun { clock, waiter }
    }

    /// Advances the clock by an hour at a time until the run ends.
    pub(crate) fn advance_until_done(&mut self) -> Result<Completed, RunError> {
        for _ in 0..600 {
            self.clock.advance(Duration::from_secs(3600));
            if let Some(answer) = self.waiter.wait_at_most(Duration::from_millis(100)) {
                return answer;
            }
        }
        panic!("the run did not notice that time passed")
    }
}
