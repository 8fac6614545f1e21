//! The system calls of a program, counted by the kernel's own interface for debuggers: no other program is needed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::process::{Command, Stdio};

use nix::libc;
use nix::sys::ptrace::{self, Event, Options};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

/// Waits for a line, so that the tracer can attach, and becomes the program.
const WAIT_AND_START: &str = "read -r line && exec \"$0\" \"$@\"";

/// What a program did.
#[derive(Clone, Debug, Default)]
pub struct SystemCalls {
    /// Its exit code.
    pub exit: i32,
    counts: BTreeMap<i64, usize>,
}

/// Calls that open a file.
#[cfg(target_arch = "x86_64")]
const OPEN: &[i64] = &[libc::SYS_openat, libc::SYS_openat2, libc::SYS_open, libc::SYS_creat];
#[cfg(not(target_arch = "x86_64"))]
const OPEN: &[i64] = &[libc::SYS_openat, libc::SYS_openat2];
/// Calls that start a thread or a process.
#[cfg(target_arch = "x86_64")]
const START: &[i64] = &[libc::SYS_clone, libc::SYS_clone3, libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const START: &[i64] = &[libc::SYS_clone, libc::SYS_clone3];
/// Calls that make a socket or connect it.
const SOCKET: &[i64] = &[libc::SYS_socket, libc::SYS_socketpair, libc::SYS_connect];
/// Calls that take a lock.
const LOCK: &[i64] = &[libc::SYS_flock];

impl SystemCalls {
    /// How often it opened a file.
    pub fn opened_files(&self) -> usize {
        self.count(OPEN)
    }

    /// How often it started a thread or a process.
    pub fn started_threads(&self) -> usize {
        self.count(START)
    }

    /// How often it made or connected a socket.
    pub fn sockets(&self) -> usize {
        self.count(SOCKET)
    }

    /// How often it locked or unlocked a file.
    pub fn locks(&self) -> usize {
        self.count(LOCK)
    }

    fn count(&self, numbers: &[i64]) -> usize {
        numbers.iter().filter_map(|number| self.counts.get(number)).sum()
    }
}

/// Runs the program with these arguments and variables alone, and counts its system calls from its start on. Those of other threads
/// and of its children are not counted, but the calls that start them are.
///
/// # Panics
/// If it cannot be traced.
pub fn trace<A: AsRef<OsStr>>(
    program: &str,
    arguments: impl IntoIterator<Item = A>,
    variables: &[(&str, &OsStr)],
    stdout: Stdio,
) -> SystemCalls {
    #[expect(clippy::disallowed_methods, reason = "the tracer is the thread that started the program")]
    #[expect(clippy::zombie_processes, reason = "waitpid collects it below")]
    let mut child = Command::new("/bin/sh")
        .args(["-c", WAIT_AND_START, program])
        .args(arguments)
        .env_clear()
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(stdout)
        .spawn()
        .expect("a shell");
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    let options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACEEXEC | Options::PTRACE_O_EXITKILL;
    ptrace::seize(pid, options).expect("to trace a child");
    ptrace::interrupt(pid).expect("to stop a child");
    child.stdin.take().expect("a pipe").write_all(b"\n").expect("a shell that reads");
    let mut calls = SystemCalls::default();
    let mut state = Tracing::BeforeStart;
    loop {
        let status = waitpid(pid, None).expect("a traced child");
        let signal = match status {
            WaitStatus::Exited(_, code) => {
                calls.exit = code;
                return calls;
            }
            WaitStatus::Signaled(_, signal, _) => panic!("`{program}` was ended by {signal}"),
            WaitStatus::PtraceEvent(_, _, event) => {
                if event == Event::PTRACE_EVENT_EXEC as i32 {
                    // The call that started the program has not returned yet. It may be the shell's own start first.
                    calls.counts.clear();
                    state = Tracing::InCall;
                }
                None
            }
            WaitStatus::PtraceSyscall(_) => {
                state = match state {
                    Tracing::BeforeStart => Tracing::BeforeStart,
                    Tracing::InCall => Tracing::Outside,
                    Tracing::Outside => {
                        *calls.counts.entry(call_number(pid)).or_default() += 1;
                        Tracing::InCall
                    }
                };
                None
            }
            WaitStatus::Stopped(_, signal) => Some(signal),
            _ => None,
        };
        ptrace::syscall(pid, signal).expect("to continue a traced child");
    }
}

/// Where the program is.
#[derive(Clone, Copy)]
enum Tracing {
    /// It is still the shell.
    BeforeStart,
    InCall,
    Outside,
}

/// The number of the call that a stopped program makes.
#[cfg(target_arch = "x86_64")]
fn call_number(pid: Pid) -> i64 {
    ptrace::getregs(pid).expect("registers of a stopped child").orig_rax.cast_signed()
}

/// The number of the call that a stopped program makes.
#[cfg(target_arch = "aarch64")]
fn call_number(pid: Pid) -> i64 {
    ptrace::getregs(pid).expect("registers of a stopped child").regs[8].cast_signed()
}
