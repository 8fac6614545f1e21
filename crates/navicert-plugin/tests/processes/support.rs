//! What the tests of real processes share: the fake plugin, a runner, and a leash on the processes it leaves behind.

use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::{
    Command, Completed, Environment, Permitted, Policy, ProcessRunner, RunError, Runner, Waiter, start,
};
use navicert_types::clock::{Clock, ManualClock, SystemClock};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tempfile::TempDir;

/// How long to wait for something that must happen: long enough for a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);

pub(crate) const FAKE_PLUGIN: &str = env!("CARGO_BIN_EXE_navicert-fake-plugin");

/// A command that makes the fake plugin take these steps, with limits that a test can wait for.
pub(crate) fn plugin<S: Into<OsString>>(steps: impl IntoIterator<Item = S>) -> Command {
    let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    Command::new(FAKE_PLUGIN, environment).args(steps).limit(Some(SOON)).grace(SOON).eof_wait(SOON)
}

/// A shell that runs this text; `$0` in it is the fake plugin.
pub(crate) fn shell(text: &str) -> Command {
    let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    Command::new("/bin/sh", environment).args(["-c", text, FAKE_PLUGIN]).limit(Some(SOON)).grace(SOON)
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

/// The three streams, and whatever whoever started the tests passes on to every program, in the fake plugin's words.
pub(crate) fn passed_on_by_every_child() -> String {
    let close_on_exec = 0o2_000_000;
    let mut passed_on: Vec<String> = std::fs::read_dir("/proc/self/fdinfo")
        .expect("a list of descriptors")
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let text = std::fs::read_to_string(&path).ok()?;
            let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
            let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
            let number = path.file_name()?.to_str()?;
            (flags & close_on_exec == 0).then(|| format!("/proc/self/fd/{number}"))
        })
        .collect();
    passed_on.sort();
    passed_on.join(" ")
}

/// Writes an executable file from another process: a descriptor of ours that is open for writing, copied by a child
/// that another test is just starting, would make the file "busy".
pub(crate) fn write_program(path: &Path, text: &str) {
    let stdin = navicert_plugin::Stdin::Bytes(text.as_bytes().to_vec().into());
    let command = shell("cat > \"$1\" && chmod 755 \"$1\"").args([path]).stdin(stdin);
    assert!(run(command).expect("the shell ran").exit.is_success());
}

/// A socket that processes connect to with `hold=`: the connection tells that one is alive, its end that it is gone,
/// and hanging up lets it go.
pub(crate) struct Leash {
    directory: TempDir,
    listener: UnixListener,
}

impl Leash {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let listener = UnixListener::bind(directory.path().join("leash")).expect("a socket");
        listener.set_nonblocking(true).expect("a socket that does not block");
        Leash { directory, listener }
    }

    pub(crate) fn step(&self, verb: &str) -> String {
        format!("{verb}={}", self.directory.path().join("leash").display())
    }

    /// The process, if it was not killed before it could connect.
    pub(crate) fn held_if_it_came_so_far(&self) -> Option<Held> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(false).expect("a stream that blocks");
        stream.set_read_timeout(Some(SOON)).expect("a limit");
        let mut pid = [0; 4];
        (&stream).read_exact(&mut pid).ok()?;
        Some(Held { stream, pid: Pid::from_raw(i32::from_le_bytes(pid)).expect("its number") })
    }

    /// Waits for a process to connect.
    pub(crate) fn held(&self) -> Held {
        let mut ready = [rustix::event::PollFd::new(&self.listener, rustix::event::PollFlags::IN)];
        let limit = rustix::event::Timespec::try_from(SOON).expect("a short time");
        rustix::event::poll(&mut ready, Some(&limit)).expect("polling");
        self.held_if_it_came_so_far().expect("a process holds the leash")
    }
}

/// A process on the leash; let go when dropped.
pub(crate) struct Held {
    stream: UnixStream,
    pid: Pid,
}

impl Held {
    /// Waits until the process is gone.
    pub(crate) fn is_gone(&self) {
        assert_eq!((&self.stream).read(&mut [0]).expect("an end within the limit"), 0);
    }

    /// Waits until the process, a child of ours, has ended; leaves it to be reaped.
    pub(crate) fn has_ended(&self) {
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

/// A run under way whose time the test decides.
pub(crate) struct Timed {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) waiter: Waiter<Result<Completed, RunError>>,
}

impl Timed {
    pub(crate) fn start(command: Command) -> Self {
        let clock = Arc::new(ManualClock::at(0));
        let runner = ProcessRunner::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let waiter = start(Arc::new(runner), permit(command));
        Timed { clock, waiter }
    }

    /// Lets time pass, an hour at a time, until the run has noticed.
    pub(crate) fn time_passes(&mut self) -> Result<Completed, RunError> {
        for _ in 0..600 {
            self.clock.advance(Duration::from_secs(3600));
            if let Some(answer) = self.waiter.wait_at_most(Duration::from_millis(100)) {
                return answer;
            }
        }
        panic!("the run did not notice that time passed")
    }
}
