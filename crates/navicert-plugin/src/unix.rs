//! Unix-specific code: signals, process groups, polling, pidfds, and execution of open files ([`pinning`]). A port to another platform
//! provides a module with the same functions as `platform`.

pub(crate) mod pinning;

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, AtFlags, CWD, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::command::ProcessGroup;
use crate::resolve::ExecutableError;
use crate::runner::Exit;

/// Checks that this user may execute the file.
pub(crate) fn check_executable(path: &Path) -> Result<(), ExecutableError> {
    let metadata = std::fs::metadata(path).map_err(ExecutableError::NoFile)?;
    check_mode(&metadata).map_err(ExecutableError::NotExecutable)?;
    match rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS) {
        // Where the check is not supported, starting the program will fail instead.
        Ok(()) | Err(Errno::NOSYS | Errno::PERM) => Ok(()),
        Err(error) => Err(ExecutableError::NotExecutable(error.into())),
    }
}

fn check_mode(metadata: &Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    if kind.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    if !kind.is_file() || metadata.mode() & 0o111 == 0 {
        return Err(Errno::ACCESS.into());
    }
    Ok(())
}

/// Opens a program for reading. Never blocks, even if the path is a FIFO, which is rejected.
pub(crate) fn open_program(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    check_mode(&file.metadata()?)?;
    Ok(file)
}

/// Sets Unix-specific options. None of them prevents the standard library from using `posix_spawn`.
pub(crate) fn prepare(command: &mut std::process::Command, name: &OsStr, group: ProcessGroup) {
    command.arg0(name);
    match group {
        ProcessGroup::Inherit => {}
        ProcessGroup::New | ProcessGroup::NewKilledAtEnd => {
            command.process_group(0);
        }
    }
}

/// Converts an exit status.
pub(crate) fn exit_from_status(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    }
}

/// The signal to end a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildSignal {
    Terminate,
    Kill,
}

/// A child that has not been reaped, and a way to detect its exit without reaping it: until then its process id and group
/// id cannot be reused.
#[derive(Debug)]
pub(crate) struct ChildHandle {
    child: Child,
    group: ProcessGroup,
    pidfd: Option<OwnedFd>,
    /// Without a pidfd: the current interval for polling the exit.
    pause: Cell<Duration>,
}

impl ChildHandle {
    pub(crate) fn new(child: Child, group: ProcessGroup, use_pidfd: bool) -> Self {
        let pidfd = if use_pidfd { open_pidfd(&child) } else { None };
        ChildHandle { child, group, pidfd, pause: Cell::new(MIN_EXIT_POLL_INTERVAL) }
    }

    /// Signals the child, or its process group if it has its own. Errors are ignored: the processes have exited, or this
    /// process may not signal them.
    pub(crate) fn signal(&self, ask: ChildSignal) {
        let signal = match ask {
            ChildSignal::Terminate => Signal::TERM,
            ChildSignal::Kill => Signal::KILL,
        };
        let pid = Pid::from_child(&self.child);
        let _ = match (self.group, &self.pidfd) {
            (ProcessGroup::New | ProcessGroup::NewKilledAtEnd, _) => {
                rustix::process::kill_process_group(pid, signal)
            }
            #[cfg(target_os = "linux")]
            (ProcessGroup::Inherit, Some(pidfd)) => rustix::process::pidfd_send_signal(pidfd, signal),
            (ProcessGroup::Inherit, _) => rustix::process::kill_process(pid, signal),
        };
    }

    /// Waits for the child and returns its exit status.
    pub(crate) fn reap(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Whether the child has exited, without reaping it. An error counts as an exit: there is no child to wait for, and
    /// [`ChildHandle::reap`] will report it.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(rustix::process::waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None))
    }
}

#[cfg(target_os = "linux")]
fn open_pidfd(child: &Child) -> Option<OwnedFd> {
    // Old kernels and strict sandboxes have no pidfds; then `wait` polls.
    rustix::process::pidfd_open(Pid::from_child(child), rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn open_pidfd(_: &Child) -> Option<OwnedFd> {
    None
}

/// Events of a wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    pub(crate) ended: bool,
}

/// Intervals for polling a child's exit without a pidfd: the first one and the longest one.
const MIN_EXIT_POLL_INTERVAL: Duration = Duration::from_millis(1);
const MAX_EXIT_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits until a stream is ready, the child (if given) has exited, or the time is up.
pub(crate) fn wait(
    stdin: Option<&impl AsFd>,
    stdout: Option<&impl AsFd>,
    stderr: Option<&impl AsFd>,
    child: Option<&ChildHandle>,
    at_most: Duration,
) -> io::Result<Ready> {
    let pidfd = child.and_then(|child| child.pidfd.as_ref());
    let sources = [
        source(stdin, PollFlags::OUT),
        source(stdout, PollFlags::IN),
        source(stderr, PollFlags::IN),
        source(pidfd, PollFlags::IN),
    ];
    let Some(polled) = child.filter(|child| child.pidfd.is_none()) else {
        return poll_sources(sources, at_most);
    };
    let pause = polled.pause.get();
    polled.pause.set(pause.saturating_mul(2).min(MAX_EXIT_POLL_INTERVAL));
    let ready = poll_sources(sources, at_most.min(pause))?;
    Ok(Ready { ended: polled.has_ended(), ..ready })
}

fn source(stream: Option<&impl AsFd>, interest: PollFlags) -> Option<(BorrowedFd<'_>, PollFlags)> {
    stream.map(|stream| (stream.as_fd(), interest))
}

fn poll_sources(sources: [Option<(BorrowedFd<'_>, PollFlags)>; 4], at_most: Duration) -> io::Result<Ready> {
    let mut fds: Vec<PollFd<'_>> =
        sources.iter().flatten().map(|(fd, interest)| PollFd::from_borrowed_fd(*fd, *interest)).collect();
    let timeout = Timespec::try_from(at_most).ok();
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Ready::default()),
        Err(error) => return Err(error.into()),
    }
    // Hang-up and error count as ready: the next read or write reports them.
    let mut is_ready = fds.iter().map(|fd| !fd.revents().is_empty());
    let [stdin, stdout, stderr, ended] =
        sources.map(|source| source.is_some() && is_ready.next().unwrap_or_default());
    Ok(Ready { stdin, stdout, stderr, ended })
}

/// Makes this end of a pipe non-blocking. The child's end is a separate open file and is not affected.
pub(crate) fn set_nonblocking(stream: &impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(stream, true)?)
}

/// The result of one read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IoProgress {
    /// Transferred this many bytes.
    Bytes(usize),
    /// Would block.
    Nothing,
    /// The peer closed the pipe.
    Closed,
}

/// Reads once into the buffer's spare capacity.
pub(crate) fn read(stream: &impl AsFd, buffer: &mut Vec<u8>) -> io::Result<IoProgress> {
    match rustix::io::read(stream, spare_capacity(buffer)) {
        Ok(0) => Ok(IoProgress::Closed),
        Ok(count) => Ok(IoProgress::Bytes(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(IoProgress::Nothing),
        Err(error) => Err(error.into()),
    }
}

/// Writes once. A closed pipe is not an error.
// I93
pub(crate) fn write(stream: &impl AsFd, bytes: &[u8]) -> io::Result<IoProgress> {
    match rustix::io::write(stream, bytes) {
        Ok(count) => Ok(IoProgress::Bytes(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(IoProgress::Nothing),
        Err(Errno::PIPE) => Ok(IoProgress::Closed),
        Err(error) => Err(error.into()),
    }
}

/// Sends signals to a child. If it has exited, no other process receives them.
pub(crate) struct SignalTarget {
    pidfd: Option<OwnedFd>,
}

impl SignalTarget {
    pub(crate) fn from_child(child: &Child) -> Self {
        SignalTarget { pidfd: open_pidfd(child) }
    }

    /// Without a pidfd nothing is sent: the process id may have been reused.
    pub(crate) fn send(&self, signal: i32) {
        #[cfg(target_os = "linux")]
        if let (Some(pidfd), Some(signal)) = (&self.pidfd, Signal::from_named_raw(signal)) {
            let _ = rustix::process::pidfd_send_signal(pidfd, signal);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (&self.pidfd, signal);
    }
}

/// The signals that were ignored when this process started (`nohup`, a background job of a script).
pub(crate) fn ignored_signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    (1..=64).filter(|signal| mask >> (signal - 1) & 1 == 1).collect()
}

/// Whether this process group is the terminal's foreground group, which receives keyboard signals.
pub(crate) fn is_foreground() -> bool {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let terminal = rustix::fs::open("/dev/tty", flags, rustix::fs::Mode::empty());
    terminal.is_ok_and(|terminal| {
        rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
    })
}
