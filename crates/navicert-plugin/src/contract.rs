//! Contract tests for [`Runner`]. The tests of an implementation provide a [`RunnerFixture`] and call [`check_runner`].

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::command::{Command, Stderr};
use crate::error::RunError;
use crate::policy::Policy;
use crate::runner::{Completed, Exit, Runner, start};

/// What the program does in a run.
#[derive(Clone, Debug)]
pub enum ChildBehavior {
    /// Writes these bytes and exits with the code.
    Print {
        /// To stdout.
        stdout: Vec<u8>,
        /// To stderr.
        stderr: Vec<u8>,
        /// The exit code.
        code: i32,
    },
    /// Is killed by this signal.
    DieBy(i32),
    /// Never exits.
    NeverEnd,
}

/// Provides a runner and commands with a given behavior.
pub trait RunnerFixture {
    /// A runner, and a command whose next run has this behavior.
    fn prepare(&self, behavior: ChildBehavior) -> (Arc<dyn Runner>, Command);
}

/// Checks the whole contract.
///
/// # Panics
/// If the runner violates the contract.
pub fn check_runner(fixture: &dyn RunnerFixture) {
    returns_output_byte_for_byte(fixture);
    nonzero_exit_is_a_result(fixture);
    require_success_rejects_nonzero_exit(fixture);
    stdout_is_limited_to_its_cap(fixture);
    captures_the_tail_of_stderr(fixture);
    forwards_stderr(fixture);
    kills_run_at_its_limit(fixture);
    debug_never_shows_output(fixture);
    concurrent_runs_are_independent(fixture);
    start_returns_a_waiter(fixture);
}

fn print(stdout: &[u8], stderr: &[u8], code: i32) -> ChildBehavior {
    ChildBehavior::Print { stdout: stdout.to_vec(), stderr: stderr.to_vec(), code }
}

#[expect(clippy::expect_used, reason = "test support: failing to set up a check fails the test")]
fn run_child(
    fixture: &dyn RunnerFixture,
    behavior: ChildBehavior,
    adjust: impl FnOnce(Command) -> Command,
) -> Result<Completed, RunError> {
    let (runner, command) = fixture.prepare(behavior);
    runner.run(Policy::AllowAll.permit(adjust(command)).expect("the fixture names a program that exists"))
}

#[expect(clippy::expect_used, reason = "test support: a failed check fails the test")]
fn completed(
    fixture: &dyn RunnerFixture,
    behavior: ChildBehavior,
    adjust: impl FnOnce(Command) -> Command,
) -> Completed {
    run_child(fixture, behavior, adjust).expect("a program that ended is a result")
}

fn returns_output_byte_for_byte(fixture: &dyn RunnerFixture) {
    for stdout in [&b""[..], b"{\"token\":\"t\"}\n", b"\x00\xff\xfe\r\n\x80"] {
        let run = completed(fixture, print(stdout, b"", 0), |command| command);
        assert_eq!((run.stdout.expose().as_slice(), run.exit), (stdout, Exit::Code(0)));
        assert!(run.stdout_closed && run.stderr.is_none());
    }
}

fn nonzero_exit_is_a_result(fixture: &dyn RunnerFixture) {
    let run = completed(fixture, print(b"half", b"", 3), |command| command);
    assert_eq!((run.exit, run.stdout.expose().as_slice()), (Exit::Code(3), &b"half"[..]));
    for signal in [6, 9, 15] {
        let run = completed(fixture, ChildBehavior::DieBy(signal), |command| command);
        assert_eq!((run.exit, run.exit.code()), (Exit::Signal(signal), -1));
    }
}

fn require_success_rejects_nonzero_exit(fixture: &dyn RunnerFixture) {
    let good = completed(fixture, print(b"fine", b"", 0), |command| command).require_success();
    assert!(good.is_ok_and(|stdout| stdout.expose() == b"fine"));
    let tail = |command: Command| command.stderr(Stderr::Tail(1024));
    let bad = completed(fixture, print(b"", b"because", 1), tail).require_success();
    assert!(bad.is_err_and(|error| error.stderr().is_some_and(|stderr| stderr.text() == "because")));
}

fn stdout_is_limited_to_its_cap(fixture: &dyn RunnerFixture) {
    let ten = |command: Command| command.stdout_cap(10);
    assert_eq!(completed(fixture, print(b"0123456789", b"", 0), ten).stdout.expose(), b"0123456789");
    let result = run_child(fixture, print(b"0123456789a", b"", 0), ten);
    assert!(matches!(result, Err(RunError::StdoutTooLarge { cap: 10, .. })), "{result:?}");
}

fn captures_the_tail_of_stderr(fixture: &dyn RunnerFixture) {
    let said = b"first line\nlast line\n";
    for (keep, kept, truncated) in [(10, &b"last line\n"[..], true), (100, said, false), (0, b"", true)] {
        let run = completed(fixture, print(b"", said, 0), |command| command.stderr(Stderr::Tail(keep)));
        assert!(run.stderr.is_some_and(|tail| tail.bytes() == kept && tail.is_truncated() == truncated));
    }
}

fn forwards_stderr(fixture: &dyn RunnerFixture) {
    let received = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&received);
    let receiver =
        move |bytes: &[u8]| sink.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
    let forward = |command: Command| command.stderr(Stderr::Forward(Arc::new(receiver)));
    assert!(completed(fixture, print(b"", b"a warning", 0), forward).stderr.is_none());
    assert_eq!(*received.lock().unwrap_or_else(PoisonError::into_inner), b"a warning");
}

fn kills_run_at_its_limit(fixture: &dyn RunnerFixture) {
    let limit = Duration::from_millis(50);
    let result = run_child(fixture, ChildBehavior::NeverEnd, |command| command.limit(Some(limit)));
    assert!(matches!(&result, Err(RunError::TimedOut { after, .. }) if *after == limit), "{result:?}");
}

fn debug_never_shows_output(fixture: &dyn RunnerFixture) {
    let tail = |command: Command| command.stderr(Stderr::Tail(1024)).stdout_cap(6);
    let run = completed(fixture, print(b"canary", b"canary", 1), tail);
    let too_large = run_child(fixture, print(b"canary too large", b"canary", 1), tail);
    let failed = run.clone().require_success();
    for shown in [format!("{run:?}"), format!("{too_large:?}"), format!("{failed:?}")] {
        assert!(!shown.contains("canary"), "{shown}");
    }
}

fn concurrent_runs_are_independent(fixture: &dyn RunnerFixture) {
    let prepared: Vec<_> =
        (0..8).map(|n: i32| (n, fixture.prepare(print(n.to_string().as_bytes(), b"", n)))).collect();
    thread::scope(|scope| {
        for (n, (runner, command)) in prepared {
            scope.spawn(move || {
                let run = Policy::AllowAll.permit(command).ok().and_then(|command| runner.run(command).ok());
                assert!(run.is_some_and(
                    |run| run.exit == Exit::Code(n) && *run.stdout.expose() == n.to_string().into_bytes()
                ));
            });
        }
    });
}

#[expect(clippy::expect_used, reason = "test support: failing to set up a check fails the test")]
fn start_returns_a_waiter(fixture: &dyn RunnerFixture) {
    let (runner, command) = fixture.prepare(print(b"later", b"", 0));
    let waiter =
        start(runner, Policy::AllowAll.permit(command).expect("the fixture names a program that exists"));
    let answer = waiter.wait();
    assert!(matches!(&answer, Ok(run) if run.stdout.expose() == b"later"), "{answer:?}");
}
