//! The lock of an entry: held during a refresh and a login, and released by the system when its holder dies.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::context::LoginContext;
use crate::error::LoginError;

/// First and longest wait between two attempts.
const POLL_INTERVALS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));

/// The lock's file, open and close-on-exec: no child process can hold the lock.
#[derive(Debug)]
pub struct EntryLock {
    file: File,
}

/// The lock, held until dropped.
#[derive(Debug)]
#[must_use = "the lock is released on drop"]
pub struct HeldLock {
    file: File,
    /// Whether another process held it before.
    pub has_waited: bool,
}

impl Drop for HeldLock {
    /// Closing the file is not enough: a program that another thread starts has it too, for the moment before its close-on-exec.
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl EntryLock {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(flags)
            .open(path);
        let file = match opened {
            // A file that cannot be written can be locked all the same.
            Err(error) if is_read_only(&error) => {
                OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|_| error)?
            }
            opened => opened?,
        };
        Ok(EntryLock { file })
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// The file system does not support locks.
    pub fn try_acquire(&self) -> io::Result<bool> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for the lock until the deadline, a time on the monotonic clock that may move while the holder works.
    ///
    /// # Errors
    /// The deadline has passed, or the file system does not support locks.
    pub(crate) fn acquire(
        self,
        context: &LoginContext,
        deadline: impl Fn() -> (Duration, u32),
    ) -> Result<HeldLock, LoginError> {
        let (mut interval, longest) = POLL_INTERVALS;
        let mut has_waited = false;
        loop {
            let acquired = self.try_acquire().map_err(|error| {
                LoginError::CacheFolder(format!(
                    "the file system of the cache folder does not support locks ({error}); choose another one with --token-cache-dir"
                ))
            })?;
            if acquired {
                return Ok(HeldLock { file: self.file, has_waited });
            }
            has_waited = true;
            let (deadline, pid) = deadline();
            if context.clock.monotonic() >= deadline {
                return Err(LoginError::LockTimeout { pid });
            }
            context.pause.pause(jittered(interval));
            interval = (interval * 2).min(longest);
        }
    }
}

/// Whether the folder or its file system does not permit changes.
pub(super) fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

/// Between 75 % and 125 % of the interval, so that waiters do not try in step.
fn jittered(interval: Duration) -> Duration {
    let mut byte = [128];
    // Without random numbers there is no jitter.
    let _ = aws_lc_rs::rand::fill(&mut byte);
    interval * (192 + u32::from(byte[0]) / 2) / 256
}
