//! Real processes: everything a plugin can do to its caller, and what the caller gets.
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{
    FAKE_PLUGIN, Leash, SOON, Timed, output, passed_on_by_every_child, permit, plugin, run, runner, shell,
    write_program,
};
use navicert_plugin::contract::{Act, Stage, every_promise_holds};
use navicert_plugin::{
    Command, Completed, Environment, Exit, Lost, ProcessGroup, ProcessRunner, RunError, Runner, SingleFlight,
    Stderr, Stdin, TerminalTurn, start,
};
use navicert_types::clock::{Clock, ManualClock, SystemClock};

const AT_ONCE: Duration = Duration::from_millis(1);
const FIVE_MINUTES: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_millis(50);

/// The fake plugin on a stage.
struct Processes(ProcessRunner);

impl Stage for Processes {
    fn prepare(&self, act: Act) -> (Arc<dyn Runner>, Command) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let command = match act {
            Act::Say { stdout, stderr, code } => plugin([
                format!("hex={}", hex(&stdout)),
                format!("errhex={}", hex(&stderr)),
                format!("exit={code}"),
            ]),
            Act::DieBy(signal) => plugin([format!("signal={signal}")]),
            Act::NeverEnd => plugin(["park"]),
        };
        (Arc::new(self.0.clone()), command)
    }
}

#[test]
fn the_contract_holds_for_real_processes() {
    every_promise_holds(&Processes(runner()));
}

#[test]
fn the_contract_holds_where_nothing_announces_a_childs_end() {
    every_promise_holds(&Processes(runner().without_pidfd()));
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
fn a_bare_name_is_found_in_the_callers_path_and_stays_the_programs_name() {
    // C301: not in a PATH set for the child. C325: argv[0] is the command as configured.
    let directory = Path::new(FAKE_PLUGIN).parent().unwrap();
    let inherited: Environment = [("PATH", directory)].into_iter().collect();
    let command = Command::new("navicert-fake-plugin", inherited).args(["args"]).env("PATH", "/nowhere");
    let completed = run(command).unwrap();
    assert_eq!(completed.stdout.expose(), b"navicert-fake-plugin\0args\0");
    assert_eq!(completed.program, Path::new(FAKE_PLUGIN));
}

#[test]
fn the_environment_is_exactly_what_was_given() {
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
fn the_working_directory_is_the_callers_and_nothing_but_the_streams_is_passed_on() {
    // C302, I91
    assert_eq!(
        output(plugin(["cwd"])),
        std::env::current_dir().unwrap().into_os_string().into_encoded_bytes()
    );
    let descriptors = String::from_utf8(output(plugin(["descriptors"]))).unwrap();
    assert_eq!(descriptors, passed_on_by_every_child());
}

#[test]
fn bytes_go_to_stdin_and_then_it_ends() {
    let large = vec![b'z'; 900 * 1024];
    let feed = |bytes: &[u8]| plugin(["cat"]).stdin(Stdin::Bytes(bytes.to_vec().into()));
    assert_eq!(output(feed(b"request\0")), b"request\0");
    assert_eq!(output(feed(b"")), b"");
    assert_eq!(output(feed(&large)), large, "more than the pipes hold, both ways at once");
    assert_eq!(output(plugin(["cat"])), b"", "the null device");
}

#[test]
fn a_child_that_does_not_read_stdin_is_no_error() {
    // I93: also with a request larger than the pipe's buffer, also when it closes stdin and goes on.
    let large = || Stdin::Bytes(vec![b'z'; 8 * 1024 * 1024].into());
    for command in [plugin(["say=done"]), shell("exec 0<&-; exec \"$0\" say=done")] {
        let completed = run(command.stdin(large())).unwrap();
        assert_eq!((completed.exit, completed.stdout.expose().as_slice()), (Exit::Code(0), &b"done"[..]));
    }
}

#[test]
fn a_child_that_sleeps_for_ever_is_ended_at_its_limit() {
    // C306, T06
    let leash = Leash::new();
    let mut run = Timed::start(plugin([leash.step("hold")]).limit(Some(FIVE_MINUTES)));
    let held = leash.held();
    assert!(run.waiter.wait_at_most(AT_ONCE).is_none() && held.is_alive());
    let error = run.time_passes().unwrap_err();
    assert!(matches!(error, RunError::TimedOut { after: FIVE_MINUTES, .. }), "{error:?}");
    assert!(error.to_string().ends_with("timed out after 300s"), "{error}");
    held.is_gone();
}

#[test]
fn a_child_that_ignores_sigterm_is_killed_after_its_grace() {
    // C306
    let leash = Leash::new();
    let command = shell(&format!("trap '' TERM; exec \"$0\" err=started {}", leash.step("hold")));
    let mut run = Timed::start(command.limit(Some(FIVE_MINUTES)).stderr(Stderr::Tail(100)));
    let held = leash.held();
    run.clock.advance(FIVE_MINUTES);
    assert!(
        run.waiter.wait_at_most(Duration::from_millis(600)).is_none() && held.is_alive(),
        "its grace is not over"
    );
    let error = run.time_passes().unwrap_err();
    assert!(matches!(error, RunError::TimedOut { .. }), "{error:?}");
    assert_eq!(error.stderr().unwrap().text(), "started");
    held.is_gone();
}

#[test]
fn a_child_may_clean_up_within_its_grace() {
    // C306: SIGTERM first. The shell's trap runs only for a signal that can be handled.
    let leash = Leash::new();
    let text = format!("trap 'echo cleaned >&2; exit 0' TERM; \"$0\" {} & wait", leash.step("hold"));
    let run = Timed::start(shell(&text).limit(Some(FIVE_MINUTES)).stderr(Stderr::Tail(100)));
    let _held = leash.held();
    run.clock.advance(FIVE_MINUTES);
    let error = run.waiter.wait_at_most(SOON).unwrap().unwrap_err();
    assert!(
        matches!(error, RunError::TimedOut { .. }),
        "a good end after the limit is still too late: {error:?}"
    );
    assert_eq!(error.stderr().unwrap().text(), "cleaned");
}

#[test]
fn two_gibibytes_of_output_are_cut_off_at_the_cap() {
    // C305: killed at once, and what was read is not in the error.
    let started = SystemClock.monotonic();
    let error = run(plugin(["err=talking", "flood=2048"]).stderr(Stderr::Tail(100))).unwrap_err();
    let RunError::StdoutTooLarge { cap, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*cap, error.stderr().unwrap().text()), (1024 * 1024, "talking".to_owned()));
    assert!(!format!("{error:?} {error}").contains("xxx"));
    assert!(SystemClock.monotonic() - started < SOON, "not by its limit");
}

#[test]
fn a_flood_on_stderr_is_no_error_and_the_end_of_it_is_kept() {
    // I94
    let completed =
        run(plugin(["err=beginning", "flood-err=64", "err=end"]).stderr(Stderr::Tail(8))).unwrap();
    let tail = completed.stderr.unwrap();
    assert_eq!((tail.bytes(), tail.is_truncated()), (&b"xxxxxend"[..], true));
}

#[test]
fn binary_output_is_just_bytes() {
    let every_byte: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    let feed = plugin(["cat"]).stdin(Stdin::Bytes(every_byte.clone().into()));
    assert_eq!(output(feed), every_byte);
}

#[test]
fn death_by_signal_is_reported_with_what_was_said_before() {
    // C323, I98
    let completed = run(plugin(["say=half", "err=why", "signal=9"]).stderr(Stderr::Tail(100))).unwrap();
    assert_eq!((completed.exit, completed.exit.code()), (Exit::Signal(9), -1));
    let error = completed.require_success().unwrap_err();
    assert_eq!(error.to_string(), format!("`{FAKE_PLUGIN}` failed with signal 9"));
    assert_eq!(error.stderr().unwrap().text(), "why");
}

#[test]
fn a_grandchild_holding_stdout_does_not_hang_the_run() {
    // C307, T06: what was read is used, and the daemon lives on.
    for verb in ["leave", "leave-session"] {
        let leash = Leash::new();
        let command =
            plugin(["say=token".to_owned(), leash.step(verb)]).eof_wait(SHORT).stderr(Stderr::Tail(100));
        let completed = run(command).unwrap();
        assert_eq!((completed.exit, completed.stdout.expose().as_slice()), (Exit::Code(0), &b"token"[..]));
        assert!(!completed.stdout_closed);
        assert!(leash.held().is_alive());
    }
}

#[test]
fn a_child_that_ended_in_time_is_not_late_because_nobody_looked() {
    // The caller was stopped, or had no processor, until long after the limit.
    let (clock, leash) = (Arc::new(ManualClock::at(0)), Leash::new());
    let steps = [leash.step("touch"), "say=token".to_owned(), "err=look".to_owned()];
    let busy = {
        let clock = Arc::clone(&clock);
        move |_: &[u8]| {
            leash.held().has_ended();
            clock.advance(FIVE_MINUTES);
        }
    };
    let command = plugin(steps).stderr(Stderr::Forward(Arc::new(busy))).limit(Some(FIVE_MINUTES));
    let completed = ProcessRunner::new(clock).run(permit(command)).unwrap();
    assert_eq!((completed.stdout.expose().as_slice(), completed.took), (&b"token"[..], FIVE_MINUTES));
}

#[test]
fn a_grandchild_that_lets_go_of_stdout_in_time_is_waited_for() {
    // C307: completion is the child's exit and the end of stdout.
    let leash = Leash::new();
    let command = plugin(["say=token".to_owned(), leash.step("leave")]);
    let waiter = start(Arc::new(runner()), permit(command));
    let held = leash.held();
    assert!(waiter.wait_at_most(SHORT).is_none(), "stdout is still open");
    drop(held);
    let completed = waiter.wait_at_most(SOON).unwrap().unwrap();
    assert!(completed.stdout_closed && completed.stdout.expose() == b"token");
}

#[test]
fn waiting_for_the_end_of_stdout_stops_at_the_limit_too() {
    // I96: stop reading at the deadline.
    let (grandchild, child) = (Leash::new(), Leash::new());
    let command = plugin([grandchild.step("leave"), child.step("touch")]).limit(Some(FIVE_MINUTES));
    let mut run = Timed::start(command.eof_wait(Duration::MAX));
    let grandchild = grandchild.held();
    child.held().has_ended();
    let completed = run.time_passes().unwrap();
    assert!(completed.exit.is_success() && !completed.stdout_closed);
    assert!(grandchild.is_alive());
}

#[test]
fn a_new_group_ends_as_a_whole_at_the_limit() {
    // C306 and T06 without a terminal, I96
    for group in [ProcessGroup::New, ProcessGroup::NewKilledAtEnd] {
        let leash = Leash::new();
        let command = plugin([leash.step("leave"), "park".to_owned()]).process_group(group);
        let mut run = Timed::start(command.limit(Some(FIVE_MINUTES)));
        let grandchild = leash.held();
        assert!(matches!(run.time_passes(), Err(RunError::TimedOut { .. })));
        grandchild.is_gone();
    }
}

#[test]
fn without_a_new_group_only_the_child_is_signalled() {
    // C308
    let leash = Leash::new();
    let mut run = Timed::start(plugin([leash.step("leave"), "park".to_owned()]).limit(Some(FIVE_MINUTES)));
    let grandchild = leash.held();
    assert!(matches!(run.time_passes(), Err(RunError::TimedOut { .. })));
    assert!(grandchild.is_alive());
}

#[test]
fn what_a_good_run_leaves_behind_lives_or_dies_as_the_caller_says() {
    // C308: an agent started by a plugin lives on. I96: nothing survives an image provider.
    for (group, survives) in
        [(ProcessGroup::Inherit, true), (ProcessGroup::New, true), (ProcessGroup::NewKilledAtEnd, false)]
    {
        let leash = Leash::new();
        let mut run = Timed::start(plugin([leash.step("leave")]).process_group(group).limit(None));
        let grandchild = leash.held();
        assert!(run.time_passes().unwrap().exit.is_success());
        if survives {
            assert!(grandchild.is_alive(), "{group:?}");
        } else {
            grandchild.is_gone();
        }
    }
}

#[test]
fn the_child_is_in_the_group_it_was_given() {
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
fn a_child_that_closes_stdout_is_still_waited_for() {
    let leash = Leash::new();
    let text = format!("echo token; exec >&-; exec \"$0\" {} exit=7", leash.step("hold"));
    let waiter = start(Arc::new(runner()), permit(shell(&text)));
    let held = leash.held();
    assert!(waiter.wait_at_most(SHORT).is_none());
    drop(held);
    let completed = waiter.wait_at_most(SOON).unwrap().unwrap();
    assert_eq!((completed.exit, completed.stdout.expose().as_slice()), (Exit::Code(7), &b"token\n"[..]));
}

#[test]
fn sixty_four_waiters_start_one_process() {
    // C420, T05
    let (leash, flights) = (Leash::new(), SingleFlight::<&str, Completed, RunError>::new());
    let waiters: Vec<_> = (0..64)
        .map(|_| {
            let command = permit(plugin([leash.step("hold"), "say=token".to_owned()]));
            flights.join("key", move || runner().run(command))
        })
        .collect();
    drop(leash.held());
    for waiter in waiters {
        assert_eq!(waiter.wait_at_most(SOON).unwrap().unwrap().stdout.expose(), b"token");
    }
    assert!(leash.held_if_it_came_so_far().is_none(), "nobody else came");
}

#[test]
fn dropping_the_waiter_does_not_stop_the_run() {
    // C306, C422
    let leash = Leash::new();
    drop(start(Arc::new(runner()), permit(plugin([leash.step("hold")]))));
    assert!(leash.held().is_alive());
}

#[test]
fn runs_that_inherit_stdin_take_turns_at_the_terminal() {
    // C423
    let turn = TerminalTurn::take();
    let interactive = start(Arc::new(runner()), permit(plugin(["say=mine"]).stdin(Stdin::Inherit)));
    assert_eq!(output(plugin(["say=quiet"])), b"quiet", "a run without the terminal does not wait for it");
    assert!(interactive.wait_at_most(SHORT).is_none());
    drop(turn);
    assert_eq!(interactive.wait_at_most(SOON).unwrap().unwrap().stdout.expose(), b"mine");
}

#[test]
fn a_receiver_that_panics_leaves_no_process_behind() {
    let leash = Leash::new();
    let receiver = Stderr::Forward(Arc::new(|_: &[u8]| panic!("a receiver's own mistake")));
    let command = plugin(["err=go".to_owned(), leash.step("hold")]).stderr(receiver);
    let waiter = start(Arc::new(runner()), permit(command));
    assert!(matches!(waiter.wait(), Err(RunError::Lost { source: Lost::Panicked, .. })));
    if let Some(held) = leash.held_if_it_came_so_far() {
        held.is_gone();
    }
}

#[test]
fn what_cannot_be_started_says_why() {
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
