//! Temporarily replaces standard input with a pseudo-terminal: plugins behave differently if they can prompt the user.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::stdio::{dup2_stdin, stdin};

/// Runs `work` with a pseudo-terminal as standard input. Reads from it return end of file.
pub(super) fn with_terminal<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let (ours, theirs) = terminal()?;
    // Ctrl-D: end of file.
    rustix::io::write(&ours, b"\x04")?;
    let _restored = StdinGuard::replace(&theirs)?;
    let done = work();
    drop(ours);
    Ok(done)
}

fn terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let name = name.to_str().map_err(io::Error::other)?;
    let theirs = OpenOptions::new().read(true).write(true).open(name)?;
    Ok((ours, theirs.into()))
}

/// Restores the original standard input when dropped.
struct StdinGuard(OwnedFd);

impl StdinGuard {
    fn replace(other: &OwnedFd) -> io::Result<Self> {
        let saved = fcntl_dupfd_cloexec(stdin(), 3)?;
        dup2_stdin(other)?;
        Ok(StdinGuard(saved))
    }
}

impl Drop for StdinGuard {
    fn drop(&mut self) {
        let _ = dup2_stdin(&self.0);
    }
}
