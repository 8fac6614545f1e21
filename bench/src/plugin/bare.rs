//! The physical limit of running a program: `posix_spawn` with a pipe for its stdout, read to the end, `waitpid`. Argument
//! and environment vectors are built beforehand; nothing is checked, bounded or timed.
#![expect(unsafe_code, reason = "calls the C library directly, because that is what is measured against")]

use std::ffi::{CString, c_char};
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// A program with its vectors ready.
pub(crate) struct BareProgram {
    program: CString,
    /// Point into `program` and `_strings`; each ends with a null.
    arguments: [*mut c_char; 2],
    environment: Vec<*mut c_char>,
    _strings: Vec<CString>,
}

impl BareProgram {
    pub(crate) fn new(program: &str, environment: Vec<String>) -> io::Result<Self> {
        let program = CString::new(program)?;
        let strings = environment.into_iter().map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let pointer = |text: &CString| text.as_ptr().cast_mut();
        let pointers = strings.iter().map(pointer).chain([ptr::null_mut()]).collect();
        Ok(BareProgram {
            arguments: [pointer(&program), ptr::null_mut()],
            environment: pointers,
            program,
            _strings: strings,
        })
    }

    /// Runs it; returns how many bytes it printed, and its status as `waitpid` gives it.
    pub(crate) fn run(&self) -> io::Result<(usize, i32)> {
        let (read_end, write_end) = pipe()?;
        let pid = self.spawn(&write_end)?;
        drop(write_end);
        let mut output = Vec::new();
        let bytes = File::from(read_end).read_to_end(&mut output)?;
        let mut status = 0;
        // SAFETY: the pid is our child's, and the status a place to write to.
        match unsafe { libc::waitpid(pid, &raw mut status, 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok((bytes, status)),
        }
    }

    fn spawn(&self, stdout: &OwnedFd) -> io::Result<libc::pid_t> {
        let mut actions = MaybeUninit::uninit();
        let mut pid = 0;
        // SAFETY: `init` makes the actions before anything uses them and `destroy` is their last use; the vectors end
        // with a null, and what they point to lives as long as `self`.
        let result = unsafe {
            libc::posix_spawn_file_actions_init(actions.as_mut_ptr());
            libc::posix_spawn_file_actions_adddup2(actions.as_mut_ptr(), stdout.as_raw_fd(), 1);
            let (arguments, environment) = (self.arguments.as_ptr(), self.environment.as_ptr());
            let program = self.program.as_ptr();
            let result = libc::posix_spawn(
                &raw mut pid,
                program,
                actions.as_ptr(),
                ptr::null(),
                arguments,
                environment,
            );
            libc::posix_spawn_file_actions_destroy(actions.as_mut_ptr());
            result
        };
        if result == 0 { Ok(pid) } else { Err(io::Error::from_raw_os_error(result)) }
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: room for the two descriptors; they are ours alone once the call succeeded.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) == -1 {
            return Err(io::Error::last_os_error());
        }
        let [read_end, write_end] = ends.map(|end| OwnedFd::from_raw_fd(end));
        Ok((read_end, write_end))
    }
}
