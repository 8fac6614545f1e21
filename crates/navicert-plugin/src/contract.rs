//! What every [`Runner`] promises, as a suite of checks. An implementation's tests build a [`Stage`] and call
//! [`every_promise_holds`].

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::command::{Command, Stderr};
use crate::error::RunError;
use crate::policy::Policy;
use crate::runner::{Completed, Exit, Runner, start};

/// What the program in a run is to do.
#[derive(Clone, Debug)]
pub enum Act {
    /// Write these, then end with the code.
    Say {
        /// To stdout.
        stdout: Vec<u8>,
        /// To stderr.
        stderr: Vec<u8>,
        /// How to end.
        code: i32,
    },
    /// Die by this signal.
    DieBy(i32),
    /// Do nothing, for ever.
    NeverEnd,
}

/// Somewhere acts can be played: it knows a runner and how to tell a program what to do.
pub trait Stage {
    /// A runner, and a command that makes its next run play the act.
    fn prepare(&self, act: Act) -> (Arc<dyn Runner>, Command);
}

/// Checks every promise on this stage.
///
/// # Panics
/// If one does not hold.
pub fn every_promise_holds(stage: &dyn Stage) {
    output_comes_back_byte_for_byte(stage);
    an_unsuccessful_end_is_a_result(stage);
    success_is_required_only_when_asked(stage);
    stdout_may_be_as_large_as_its_cap_and_no_larger(stage);
    the_end_of_stderr_is_kept_when_asked_for(stage);
    stderr_can_be_forwarded(stage);
    a_run_past_its_limit_is_ended(stage);
    nothing_printed_is_ever_shown(stage);
    runs_do_not_mix(stage);
    a_run_can_be_waited_for_from_elsewhere(stage);
}

fn say(stdout: &[u8], stderr: &[u8], code: i32) -> Act {
    Act::Say { stdout: stdout.to_vec(), stderr: stderr.to_vec(), code }
}

#[expect(clippy::expect_used, reason = "a check that cannot begin has failed")]
fn play(stage: &dyn Stage, act: Act, adjust: impl FnOnce(Command) -> Command) -> Result<Completed, RunError> {
    let (runner, command) = stage.prepare(act);
    runner.run(Policy::AllowAll.permit(adjust(command)).expect("the stage names a program that exists"))
}

#[expect(clippy::expect_used, reason = "a check that fails has to stop the test")]
fn completed(stage: &dyn Stage, act: Act, adjust: impl FnOnce(Command) -> Command) -> Completed {
    play(stage, act, adjust).expect("a program that ended is a result")
}

fn output_comes_back_byte_for_byte(stage: &dyn Stage) {
    for stdout in [&b""[..], b"{\"token\":\"t\"}\n", b"\x00\xff\xfe\r\n\x80"] {
        let run = completed(stage, say(stdout, b"", 0), |command| command);
        assert_eq!((run.stdout.expose().as_slice(), run.exit), (stdout, Exit::Code(0)));
        assert!(run.stdout_closed && run.stderr.is_none());
    }
}

fn an_unsuccessful_end_is_a_result(stage: &dyn Stage) {
    let run = completed(stage, say(b"half", b"", 3), |command| command);
    assert_eq!((run.exit, run.stdout.expose().as_slice()), (Exit::Code(3), &b"half"[..]));
    for signal in [6, 9, 15] {
        let run = completed(stage, Act::DieBy(signal), |command| command);
        assert_eq!((run.exit, run.exit.code()), (Exit::Signal(signal), -1));
    }
}

fn success_is_required_only_when_asked(stage: &dyn Stage) {
    let good = completed(stage, say(b"fine", b"", 0), |command| command).require_success();
    assert!(good.is_ok_and(|stdout| stdout.expose() == b"fine"));
    let tail = |command: Command| command.stderr(Stderr::Tail(1024));
    let bad = completed(stage, say(b"", b"because", 1), tail).require_success();
    assert!(bad.is_err_and(|error| error.stderr().is_some_and(|stderr| stderr.text() == "because")));
}

fn stdout_may_be_as_large_as_its_cap_and_no_larger(stage: &dyn Stage) {
    let ten = |command: Command| command.stdout_cap(10);
    assert_eq!(completed(stage, say(b"0123456789", b"", 0), ten).stdout.expose(), b"0123456789");
    let result = play(stage, say(b"0123456789a", b"", 0), ten);
    assert!(matches!(result, Err(RunError::StdoutTooLarge { cap: 10, .. })), "{result:?}");
}

fn the_end_of_stderr_is_kept_when_asked_for(stage: &dyn Stage) {
    let said = b"first line\nlast line\n";
    for (keep, kept, truncated) in [(10, &b"last line\n"[..], true), (100, said, false), (0, b"", true)] {
        let run = completed(stage, say(b"", said, 0), |command| command.stderr(Stderr::Tail(keep)));
        assert!(run.stderr.is_some_and(|tail| tail.bytes() == kept && tail.is_truncated() == truncated));
    }
}

fn stderr_can_be_forwarded(stage: &dyn Stage) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&heard);
    let receiver =
        move |bytes: &[u8]| hear.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
    let forward = |command: Command| command.stderr(Stderr::Forward(Arc::new(receiver)));
    assert!(completed(stage, say(b"", b"a warning", 0), forward).stderr.is_none());
    assert_eq!(*heard.lock().unwrap_or_else(PoisonError::into_inner), b"a warning");
}

fn a_run_past_its_limit_is_ended(stage: &dyn Stage) {
    let limit = Duration::from_millis(50);
    let result = play(stage, Act::NeverEnd, |command| command.limit(Some(limit)));
    assert!(matches!(&result, Err(RunError::TimedOut { after, .. }) if *after == limit), "{result:?}");
}

fn nothing_printed_is_ever_shown(stage: &dyn Stage) {
    let tail = |command: Command| command.stderr(Stderr::Tail(1024)).stdout_cap(6);
    let run = completed(stage, say(b"canary", b"canary", 1), tail);
    let too_large = play(stage, say(b"canary too large", b"canary", 1), tail);
    let failed = run.clone().require_success();
    for shown in [format!("{run:?}"), format!("{too_large:?}"), format!("{failed:?}")] {
        assert!(!shown.contains("canary"), "{shown}");
    }
}

fn runs_do_not_mix(stage: &dyn Stage) {
    let prepared: Vec<_> =
        (0..8).map(|n: i32| (n, stage.prepare(say(n.to_string().as_bytes(), b"", n)))).collect();
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

#[expect(clippy::expect_used, reason = "a check that cannot begin has failed")]
fn a_run_can_be_waited_for_from_elsewhere(stage: &dyn Stage) {
    let (runner, command) = stage.prepare(say(b"later", b"", 0));
    let waiter =
        start(runner, Policy::AllowAll.permit(command).expect("the stage names a program that exists"));
    let answer = waiter.wait();
    assert!(matches!(&answer, Ok(run) if run.stdout.expose() == b"later"), "{answer:?}");
}
