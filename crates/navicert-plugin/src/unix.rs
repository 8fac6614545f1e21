//! Everything in this crate that only Unix has: signals, process groups, polling, pidfds, and running a file that is
//! already open. A port to another system writes a module with the same functions and names it `platform`.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, AtFlags, CWD, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::command::ProcessGroup;
use crate::resolve::Unusable;
use crate::runner::Exit;

/// Whether this is a file that this user may execute.
pub(crate) fn check_executable(path: &Path) -> Result<(), Unusable> {
    let metadata = std::fs::metadata(path).map_err(Unusable::NoFile)?;
    check_mode(&metadata).map_err(Unusable::NotExecutable)?;
    match rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS) {
        // A system that cannot answer the question leaves it to the start of the program.
        Ok(()) | Err(Errno::NOSYS | Errno::PERM) => Ok(()),
        Err(error) => Err(Unusable::NotExecutable(error.into())),
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

/// Opens a program to look into it. Never waits: a FIFO that took the file's place is not a file.
pub(crate) fn open_program(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    check_mode(&file.metadata()?)?;
    Ok(file)
}

/// The path that runs exactly this open file, whatever happens to its name, where the system has one (C743).
///
/// Only for native binaries. A script, or a binary of another machine, is opened again *by name* by its interpreter,
/// and by then the descriptor is closed. A program run this way sees its own name in `argv[0]` and `/proc/self/exe`; only
/// its `comm`, which `top` shows, is the descriptor's number.
pub(crate) fn path_of_open_program(file: &File) -> Option<PathBuf> {
    if !cfg!(target_os = "linux") || !is_native_binary(file) {
        return None;
    }
    // Below 3 the child's own streams would take the descriptor's place before the program starts. It cannot happen
    // in a program that Rust started, which has all three open.
    let descriptor = file.as_raw_fd();
    let path = PathBuf::from(format!("/proc/self/fd/{descriptor}"));
    (descriptor > 2 && path.symlink_metadata().is_ok()).then_some(path)
}

/// An ELF header that names this machine: `e_machine`, two bytes at 18, after the class and the byte order.
fn is_native_binary(file: &File) -> bool {
    let (class, order, machine) = if cfg!(target_arch = "x86_64") {
        (2, 1, [62, 0])
    } else if cfg!(target_arch = "aarch64") && cfg!(target_endian = "little") {
        (2, 1, [183, 0])
    } else {
        return false;
    };
    let mut header = [0; 20];
    file.read_exact_at(&mut header, 0).is_ok()
        && header.starts_with(&[0x7f, b'E', b'L', b'F', class, order])
        && header.ends_with(&machine)
}

/// Sets what only Unix children have. Everything here keeps the standard library on its `posix_spawn` path.
pub(crate) fn prepare(command: &mut std::process::Command, name: &OsStr, group: ProcessGroup) {
    command.arg0(name);
    match group {
        ProcessGroup::Inherit => {}
        ProcessGroup::New | ProcessGroup::NewKilledAtEnd => {
            command.process_group(0);
        }
    }
}

/// How the exit status reads.
pub(crate) fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    }
}

/// How hard a child is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Terminate,
    Kill,
}

/// A child that has not been waited for, and the means to notice its end without doing so: as long as it is not
/// reaped, its number (and its group's) belongs to nobody else.
#[derive(Debug)]
pub(crate) struct Watched {
    child: Child,
    group: ProcessGroup,
    pidfd: Option<OwnedFd>,
    /// Where nothing announces the end: how long to wait before looking again.
    pause: Cell<Duration>,
}

impl Watched {
    pub(crate) fn new(child: Child, group: ProcessGroup, use_pidfd: bool) -> Self {
        let pidfd = if use_pidfd { open_pidfd(&child) } else { None };
        Watched { child, group, pidfd, pause: Cell::new(LOOK_AGAIN) }
    }

    /// Signals the child, or its whole group where it has one. Failure means that nobody is left to be signalled,
    /// or that we may not: either way there is nothing else to do.
    pub(crate) fn ask(&self, ask: Ask) {
        let signal = match ask {
            Ask::Terminate => Signal::TERM,
            Ask::Kill => Signal::KILL,
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

    /// Takes the exit status; waits for it if need be.
    pub(crate) fn reap(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Whether the child has ended, leaving its status where it is. An error counts as an end: then there is no
    /// child of ours left to wait for, and [`Watched::reap`] will say so.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(rustix::process::waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None))
    }
}

#[cfg(target_os = "linux")]
fn open_pidfd(child: &Child) -> Option<OwnedFd> {
    // Old kernels and strict sandboxes have none; then `wait` looks at short intervals.
    rustix::process::pidfd_open(Pid::from_child(child), rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn open_pidfd(_: &Child) -> Option<OwnedFd> {
    None
}

/// What happened while waiting.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    pub(crate) ended: bool,
}

/// How soon to look for the end of a child where nothing announces it: at first, and at the longest.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
const LOOK_AGAIN_AT_LAST: Duration = Duration::from_millis(50);

/// Waits until a stream can move, the child (while `watched` is given) has ended, or the time is up.
pub(crate) fn wait(
    stdin: Option<&impl AsFd>,
    stdout: Option<&impl AsFd>,
    stderr: Option<&impl AsFd>,
    watched: Option<&Watched>,
    at_most: Duration,
) -> io::Result<Ready> {
    let pidfd = watched.and_then(|watched| watched.pidfd.as_ref());
    let sources = [
        source(stdin, PollFlags::OUT),
        source(stdout, PollFlags::IN),
        source(stderr, PollFlags::IN),
        source(pidfd, PollFlags::IN),
    ];
    let Some(unannounced) = watched.filter(|watched| watched.pidfd.is_none()) else {
        return poll_sources(sources, at_most);
    };
    let pause = unannounced.pause.get();
    unannounced.pause.set(pause.saturating_mul(2).min(LOOK_AGAIN_AT_LAST));
    let ready = poll_sources(sources, at_most.min(pause))?;
    Ok(Ready { ended: unannounced.has_ended(), ..ready })
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
    // Hang-up and error count as movement: the next read or write tells which.
    let mut moved = fds.iter().map(|fd| !fd.revents().is_empty());
    let [stdin, stdout, stderr, ended] =
        sources.map(|source| source.is_some() && moved.next().unwrap_or_default());
    Ok(Ready { stdin, stdout, stderr, ended })
}

/// Makes reads and writes on our end return at once. The child's end is another open file and does not notice.
pub(crate) fn set_nonblocking(stream: &impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(stream, true)?)
}

/// What one read or write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// This many bytes.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// The other side is gone.
    Closed,
}

/// Reads once into the buffer's spare capacity.
pub(crate) fn read(stream: &impl AsFd, buffer: &mut Vec<u8>) -> io::Result<Moved> {
    match rustix::io::read(stream, spare_capacity(buffer)) {
        Ok(0) => Ok(Moved::Closed),
        Ok(count) => Ok(Moved::Bytes(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Moved::Nothing),
        Err(error) => Err(error.into()),
    }
}

/// Writes once. A reader that went away is not an error (I93).
pub(crate) fn write(stream: &impl AsFd, bytes: &[u8]) -> io::Result<Moved> {
    match rustix::io::write(stream, bytes) {
        Ok(count) => Ok(Moved::Bytes(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Moved::Nothing),
        Err(Errno::PIPE) => Ok(Moved::Closed),
        Err(error) => Err(error.into()),
    }
}

/// Somebody to send signals to, who may be gone: then nobody else gets them.
pub(crate) struct Recipient {
    pidfd: Option<OwnedFd>,
}

impl Recipient {
    pub(crate) fn of(child: &Child) -> Self {
        Recipient { pidfd: open_pidfd(child) }
    }

    /// Where there is no pidfd, nothing is sent: the number may be somebody else's by now.
    pub(crate) fn send(&self, signal: i32) {
        #[cfg(target_os = "linux")]
        if let (Some(pidfd), Some(signal)) = (&self.pidfd, Signal::from_named_raw(signal)) {
            let _ = rustix::process::pidfd_send_signal(pidfd, signal);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (&self.pidfd, signal);
    }
}

/// The signals that this process was started to ignore (`nohup`, a background job of a script).
pub(crate) fn ignored_signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    (1..=64).filter(|signal| mask >> (signal - 1) & 1 == 1).collect()
}

/// Whether the terminal's keyboard sends its signals to our process group.
pub(crate) fn is_foreground() -> bool {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let terminal = rustix::fs::open("/dev/tty", flags, rustix::fs::Mode::empty());
    terminal.is_ok_and(|terminal| {
        rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
    })
}
