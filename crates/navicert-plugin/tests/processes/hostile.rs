//! Runs hostile plugins as real processes.
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{
    FAKE_PLUGIN, LivenessSocket, ManualClockRun, TEST_TIMEOUT, inherited_descriptors, output, permit, plugin,
    run, runner, shell, write_program,
};
use navicert_plugin::contract::{ChildBehavior, RunnerFixture, check_runner};
use navicert_plugin::{
    Command, Completed, Environment, Exit, JoinError, ProcessGroup, ProcessRunner, RunError, Runner,
    SingleFlight, Stderr, Stdin, TerminalLock, start,
};
use navicert_types::clock::{Clock, ManualClock, SystemClock};

const AT_ONCE: Duration = Duration::from_millis(1);
const FIVE_MINUTES: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_millis(50);

/// Runs the fake plugin.
struct ProcessFixture(ProcessRunner);

impl RunnerFixture for ProcessFixture {
    fn prepare(&self, act: ChildBehavior) -> (Arc<dyn Runner>, Command) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let command = match act {
            ChildBehavior::Print { stdout, stderr, code } => plugin([
                format!("hex={}", hex(&stdout)),
                format!("errhex={}", hex(&stderr)),
                format!("exit={code}"),
            ]),
            ChildBehavior::DieBy(signal) => plugin([format!("signal={signal}")]),
            ChildBehavior::NeverEnd => plugin(["park"]),
        };
        (Arc::new(self.0.clone()), command)
    }
}

#[test]
fn process_runner_satisfies_the_contract() {
    check_runner(&ProcessFixture(runner()));
}

#[test]
fn process_runner_without_pidfd_satisfies_the_contract() {
    check_runner(&ProcessFixture(runner().without_pidfd()));
}

#[test]
fn arguments_arrive_verbatim() {
    // C302: no shell, no expansion. argv[0] is the configured command (C325, I91).
    let arguments = ["args", "$HOME", "*", "a b", "", "--token=x", "größe\n"];
    let expected = std::iter::once(FAKE_PLUGIN)
        .chain(arguments)
        .map(|argument| format!("{argument}\0"))
        .collect::<String>();
    assert_eq!(String::from_utf8(output(plugin(arguments))).unwrap(), expected);
}

#[test]
fn bare_name_is_searched_in_the_callers_path_and_becomes_argv0() {
    // C301: not in a PATH set for the child. C325: argv[0] is the command as configured.
    let directory = Path::new(FAKE_PLUGIN).parent().unwrap();
    let inherited: Environment = [("PATH", directory)].into_iter().collect();
    let command = Command::new("navicert-fake-plugin", inherited).args(["args"]).env("PATH", "/nowhere");
    let completed = run(command).unwrap();
    assert_eq!(completed.stdout.expose(), b"navicert-fake-plugin\0args\0");
    assert_eq!(completed.program, Path::new(FAKE_PLUGIN));
}

#[test]
fn environment_is_exactly_as_given() {
    // C303, C304, I92
    let inherited: Environment = [("A", "1"), ("B", "2"), ("GONE", "x"), ("B", "3")].into_iter().collect();
    let command = Command::new(FAKE_PLUGIN, inherited)
        .args(["env"])
        .env("A", "overridden")
        .env("NEW", "")
        .env("NEW", "last wins = yes")
        .drop_env("GONE");
    let printed = String::from_utf8(output(command)).unwrap();
    let mut variables: Vec<_> = printed.split_terminator('\0').collect();
    variables.sort_unstable();
    assert_eq!(variables, ["A=overridden", "B=3", "NEW=last wins = yes"]);
    assert_eq!(output(Command::new(FAKE_PLUGIN, Environment::empty()).args(["env"])), b"");
}

#[test]
fn child_inherits_working_directory_and_only_the_streams() {
    // C302, I91
    assert_eq!(
        output(plugin(["cwd"])),
        std::env::current_dir().unwrap().into_os_string().into_encoded_bytes()
    );
    let descriptors = String::from_utf8(output(plugin(["descriptors"]))).unwrap();
    assert_eq!(descriptors, inherited_descriptors());
}

#[test]
fn stdin_ends_after_the_bytes() {
    let large = vec![b'z'; 900 * 1024];
    let feed = |bytes: &[u8]| plugin(["cat"]).stdin(Stdin::Bytes(bytes.to_vec().into()));
    assert_eq!(output(feed(b"request\0")), b"request\0");
    assert_eq!(output(feed(b"")), b"");
    assert_eq!(output(feed(&large)), large, "more than the pipes hold, both ways at once");
    assert_eq!(output(plugin(["cat"])), b"", "the null device");
}

#[test]
fn unread_stdin_is_no_error() {
    // I93: also with a request larger than the pipe's buffer, and when the child closes stdin and continues.
    let large = || Stdin::Bytes(vec![b'z'; 8 * 1024 * 1024].into());
    for command in [plugin(["say=done"]), shell("exec 0<&-; exec \"$0\" say=done")] {
        let completed = run(command.stdin(large())).unwrap();
        assert_eq!((completed.exit, completed.stdout.expose().as_slice()), (Exit::Code(0), &b"done"[..]));
    }
}

#[test]
fn hanging_child_is_terminated_at_its_limit() {
    // C306, T06
    let liveness = LivenessSocket::new();
    let mut run = ManualClockRun::start(plugin([liveness.step("hold")]).limit(Some(FIVE_MINUTES)));
    let held = liveness.accept();
    assert!(run.waiter.wait_at_most(AT_ONCE).is_none() && held.is_alive());
    let error = run.advance_until_done().unwrap_err();
    assert!(matches!(error, RunError::TimedOut { after: FIVE_MINUTES, .. }), "{error:?}");
    assert!(error.to_string().ends_with("timed out after 300s"), "{error}");
    held.wait_until_gone();
}

#[test]
fn child_ignoring_sigterm_is_killed_after_its_grace() {
    // C306
    let liveness = LivenessSocket::new();
    let command = shell(&format!("trap '' TERM; exec \"$0\" err=started {}", liveness.step("hold")));
    let mut run = ManualClockRun::start(command.limit(Some(FIVE_MINUTES)).stderr(Stderr::Tail(100)));
    let held = liveness.accept();
    run.clock.advance(FIVE_MINUTES);
    assert!(
        run.waiter.wait_at_most(Duration::from_millis(600)).is_none() && held.is_alive(),
        "its grace is not over"
    );
    let error = run.advance_until_done().unwrap_err();
    assert!(matches!(error, RunError::TimedOut { .. }), "{error:?}");
    assert_eq!(error.stderr().unwrap().text(), "started");
    held.wait_until_gone();
}

#[test]
fn child_may_clean_up_within_its_grace() {
    // C306: SIGTERM first. The shell's trap runs only for a signal that can be handled.
    let liveness = LivenessSocket::new();
    let text = format!("trap 'echo cleaned >&2; exit 0' TERM; \"$0\" {} & wait", liveness.step("hold"));
    let run = ManualClockRun::start(shell(&text).limit(Some(FIVE_MINUTES)).stderr(Stderr::Tail(100)));
    let _held = liveness.accept();
    run.clock.advance(FIVE_MINUTES);
    let error = run.waiter.wait_at_most(TEST_TIMEOUT).unwrap().unwrap_err();
    assert!(
        matches!(error, RunError::TimedOut { .. }),
        "a good end after the limit is still too late: {error:?}"
    );
    assert_eq!(error.stderr().unwrap().text(), "cleaned");
}

#[test]
fn child_is_killed_when_output_exceeds_the_cap() {
    // C305: killed at once, and what was read is not in the error.
    let started = SystemClock.monotonic();
    let error = run(plugin(["err=talking", "flood=2048"]).stderr(Stderr::Tail(100))).unwrap_err();
    let RunError::StdoutTooLarge { cap, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*cap, error.stderr().unwrap().text()), (1024 * 1024, "talking".to_owned()));
    assert!(!format!("{error:?} {error}").contains("xxx"));
    assert!(SystemClock.monotonic() - started < TEST_TIMEOUT, "not by its limit");
}

#[test]
fn large_stderr_is_no_error_and_its_tail_is_kept() {
    // I94
    let completed =
        run(plugin(["err=beginning", "flood-err=64", "err=end"]).stderr(Stderr::Tail(8))).unwrap();
    let tail = completed.stderr.unwrap();
    assert_eq!((tail.bytes(), tail.is_truncated()), (&b"xxxxxend"[..], true));
}

#[test]
fn binary_output_is_unchanged() {
    let every_byte: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    let feed = plugin(["cat"]).stdin(Stdin::Bytes(every_byte.clone().into()));
    assert_eq!(output(feed), every_byte);
}

#[test]
fn signal_exit_is_reported_with_prior_output() {
    // C323, I98
    let completed = run(plugin(["say=half", "err=why", "signal=9"]).stderr(Stderr::Tail(100))).unwrap();
    assert_eq!((completed.exit, completed.exit.code()), (Exit::Signal(9), -1));
    let error = completed.require_success().unwrap_err();
    assert_eq!(error.to_string(), format!("`{FAKE_PLUGIN}` failed with signal 9"));
    assert_eq!(error.stderr().unwrap().text(), "why");
}

#[test]
fn grandchild_holding_stdout_does_not_block_the_run() {
    // C307, T06: the output read so far is used, and the daemon continues.
    for verb in ["leave", "leave-session"] {
        let liveness = LivenessSocket::new();
        let command =
            plugin(["say=token".to_owned(), liveness.step(verb)]).eof_wait(SHORT).stderr(Stderr::Tail(100));
        let completed = run(command).unwrap();
        assert_eq!((completed.exit, completed.stdout.expose().as_slice()), (Exit::Code(0), &b"token"[..]));
        assert!(!completed.stdout_closed);
        assert!(liveness.accept().is_alive());
    }
}

#[test]
fn child_that_exited_in_time_is_not_timed_out_late() {
    // The caller was stopped or not scheduled until long after the limit.
    let (clock, liveness) = (Arc::new(ManualClock::at(0)), LivenessSocket::new());
    let steps = [liveness.step("touch"), "say=token".to_owned(), "err=look".to_owned()];
    let busy = {
        let clock = Arc::clone(&clock);
        move |_: &[u8]| {
            liveness.accept().wait_until_exited();
            clock.advance(FIVE_MINUTES);
        }
    };
    let command = plugin(steps).stderr(Stderr::Forward(Arc::new(busy))).limit(Some(FIVE_MINUTES));
    let completed = ProcessRunner::new(clock).run(permit(command)).unwrap();
    assert_eq!((completed.stdout.expose().as_slice(), completed.took), (&b"token"[..], FIVE_MINUTES));
}

#[test]
fn waits_for_grandchild_that_closes_stdout_in_time() {
    // C307: completion is the child's exit and the end of stdout.
    let liveness = LivenessSocket::new();
    let command = plugin(["say=token".to_owned(), liveness.step("leave")]);
    let waiter = start(Arc::new(runner()), permit(command));
    let held = liveness.accept();
    assert!(waiter.wait_at_most(SHORT).is_none(), "stdout is still open");
    drop(held);
    let completed = waiter.wait_at_most(TEST_TIMEOUT).unwrap().unwrap();
    assert!(completed.stdout_closed && completed.stdout.expose() == b"token");
}

#[test]
fn waiting_for_end_of_stdout_stops_at_the_limit() {
    // I96: stop reading at the deadline.
    let (grandchild, child) = (LivenessSocket::new(), LivenessSocket::new());
    let command = plugin([grandchild.step("leave"), child.step("touch")]).limit(Some(FIVE_MINUTES));
    let mut run = ManualClockRun::start(command.eof_wait(Duration::MAX));
    let grandchild = grandchild.accept();
    child.accept().wait_until_exited();
    let completed = run.advance_until_done().unwrap();
    assert!(completed.exit.is_success() && !completed.stdout_closed);
    assert!(grandchild.is_alive());
}

#[test]
fn new_process_group_is_killed_at_the_limit() {
    // C306 and T06 without a terminal, I96
    for group in [ProcessGroup::New, ProcessGroup::NewKilledAtEnd] {
        let liveness = LivenessSocket::new();
        let command = plugin([liveness.step("leave"), "park".to_owned()]).process_group(group);
        let mut run = ManualClockRun::start(command.limit(Some(FIVE_MINUTES)));
        let grandchild = liveness.accept();
        assert!(matches!(run.advance_until_done(), Err(RunError::TimedOut { .. })));
        grandchild.wait_until_gone();
    }
}

#[test]
fn only_the_child_is_signalled_without_a_new_group() {
    // C308
    let liveness = LivenessSocket::new();
    let mut run =
        ManualClockRun::start(plugin([liveness.step("leave"), "park".to_owned()]).limit(Some(FIVE_MINUTES)));
    let grandchild = liveness.accept();
    assert!(matches!(run.advance_until_done(), Err(RunError::TimedOut { .. })));
    assert!(grandchild.is_alive());
}

#[test]
fn process_group_decides_whether_background_processes_survive() {
    // C308: an agent started by a plugin continues. I96: nothing survives an image provider.
    for (group, survives) in
        [(ProcessGroup::Inherit, true), (ProcessGroup::New, true), (ProcessGroup::NewKilledAtEnd, false)]
    {
        let liveness = LivenessSocket::new();
        let mut run =
            ManualClockRun::start(plugin([liveness.step("leave")]).process_group(group).limit(None));
        let grandchild = liveness.accept();
        assert!(run.advance_until_done().unwrap().exit.is_success());
        if survives {
            assert!(grandchild.is_alive(), "{group:?}");
        } else {
            grandchild.wait_until_gone();
        }
    }
}

#[test]
fn child_is_in_the_requested_process_group() {
    // C308
    let groups = |group| {
        let printed = String::from_utf8(output(plugin(["group"]).process_group(group))).unwrap();
        let (pid, group) = printed.split_once(' ').unwrap();
        (pid.to_owned(), group.to_owned())
    };
    let (_, shared) = groups(ProcessGroup::Inherit);
    assert_eq!(shared, rustix::process::getpgrp().to_string());
    let (pid, own) = groups(ProcessGroup::New);
    assert_eq!(pid, own);
}

#[test]
fn waits_for_child_that_closed_stdout() {
    let liveness = LivenessSocket::new();
    let text = format!("echo token; exec >&-; exec \"$0\" {} exit=7", liveness.step("hold"));
    let waiter = start(Arc::new(runner()), permit(shell(&text)));
    let held = liveness.accept();
    assert!(waiter.wait_at_most(SHORT).is_none());
    drop(held);
    let completed = waiter.wait_at_most(TEST_TIMEOUT).unwrap().unwrap();
    assert_eq!((completed.exit, completed.stdout.expose().as_slice()), (Exit::Code(7), &b"token\n"[..]));
}

#[test]
fn sixty_four_waiters_start_one_process() {
    // C420, T05
    let (liveness, flights) = (LivenessSocket::new(), SingleFlight::<&str, Completed, RunError>::new());
    let waiters: Vec<_> = (0..64)
        .map(|_| {
            let command = permit(plugin([liveness.step("hold"), "say=token".to_owned()]));
            flights.join("key", move || runner().run(command))
        })
        .collect();
    drop(liveness.accept());
    for waiter in waiters {
        assert_eq!(waiter.wait_at_most(TEST_TIMEOUT).unwrap().unwrap().stdout.expose(), b"token");
    }
    assert!(liveness.try_accept().is_none(), "no other process connected");
}

#[test]
fn dropping_the_waiter_does_not_stop_the_run() {
    // C306, C422
    let liveness = LivenessSocket::new();
    drop(start(Arc::new(runner()), permit(plugin([liveness.step("hold")]))));
    assert!(liveness.accept().is_alive());
}

#[test]
fn runs_that_inherit_stdin_are_serialized() {
    // C423
    let turn = TerminalLock::acquire();
    let interactive = start(Arc::new(runner()), permit(plugin(["say=mine"]).stdin(Stdin::Inherit)));
    assert_eq!(output(plugin(["say=quiet"])), b"quiet", "a run without the terminal does not wait for it");
    assert!(interactive.wait_at_most(SHORT).is_none());
    drop(turn);
    assert_eq!(interactive.wait_at_most(TEST_TIMEOUT).unwrap().unwrap().stdout.expose(), b"mine");
}

#[test]
fn panicking_receiver_leaks_no_process() {
    let liveness = LivenessSocket::new();
    let receiver = Stderr::Forward(Arc::new(|_: &[u8]| panic!("a receiver's own mistake")));
    let command = plugin(["err=go".to_owned(), liveness.step("hold")]).stderr(receiver);
    let waiter = start(Arc::new(runner()), permit(command));
    assert!(matches!(waiter.wait(), Err(RunError::Join { source: JoinError::Panicked, .. })));
    if let Some(held) = liveness.try_accept() {
        held.wait_until_gone();
    }
}

#[test]
fn start_errors_name_the_cause() {
    // C320, C321, C324
    let directory = tempfile::tempdir().unwrap();
    let program = |name: &str, text: &str| {
        let path = directory.path().join(name);
        write_program(&path, text);
        path
    };
    let (gone, format) = (program("gone", "#!/bin/sh\n"), program("format", "no first line\n"));
    let interpreter = program("interpreter", "#!/nowhere/interpreter\n");
    let attempt = |path: &Path, meanwhile: fn(&Path)| {
        let permitted = permit(Command::new(path, Environment::empty()));
        meanwhile(path);
        runner().run(permitted).unwrap_err()
    };
    let removed = attempt(&gone, |path| std::fs::remove_file(path).unwrap());
    assert!(matches!(removed, RunError::NotFound { .. }) && removed.is_not_found(), "{removed:?}");
    let missing = attempt(&interpreter, |_| ());
    assert!(
        matches!(missing, RunError::InterpreterNotFound { .. }) && !missing.is_not_found(),
        "{missing:?}"
    );
    let bad = attempt(&format, |_| ());
    let RunError::Start { source, .. } = &bad else { panic!("{bad:?}") };
    assert_eq!(source.raw_os_error(), Some(rustix::io::Errno::NOEXEC.raw_os_error()), "no shell steps in");
}
