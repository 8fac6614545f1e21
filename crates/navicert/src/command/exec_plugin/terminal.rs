//! A pseudo-terminal as standard input for as long as a piece of work takes: plugins behave differently when somebody
//! could answer them.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::stdio::{dup2_stdin, stdin};

/// Does the work with a terminal on standard input. Nobody sits at it: whoever reads finds the end of the input.
pub(super) fn with_terminal<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let (ours, theirs) = terminal()?;
    // What Ctrl-D is at a terminal.
    rustix::io::write(&ours, b"\x04")?;
    let _restored = Restored::replacing_stdin_by(&theirs)?;
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

/// Puts the real standard input back when dropped.
struct Restored(OwnedFd);

impl Restored {
    fn replacing_stdin_by(other: &OwnedFd) -> io::Result<Self> {
        let saved = fcntl_dupfd_cloexec(stdin(), 3)?;
        dup2_stdin(other)?;
        Ok(Restored(saved))
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = dup2_stdin(&self.0);
    }
}
