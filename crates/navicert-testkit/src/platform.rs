//! What the test kit needs of Unix, in one place.

use std::io::{self, PipeReader};
use std::path::Path;
use std::process::ExitStatus;

use tokio::io::AsyncRead;
use tokio::net::unix::pipe;

/// The signal that ended a program, if one did.
pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

/// A pipe's reading end for the runtime.
pub(crate) fn asynchronous(reader: PipeReader) -> io::Result<impl AsyncRead + Send + Unpin> {
    pipe::Receiver::from_owned_fd(reader.into())
}

/// Makes `link` stand for `target`.
pub(crate) fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

/// Sets the permission bits of a file.
pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}
