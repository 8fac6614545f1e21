//! A thousand runs of every kind leak no zombie and no descriptor. The only test in its process, so that it can count;
//! `make soak` runs many thousands.
#![cfg(unix)]
#![expect(clippy::expect_used, reason = "helpers of a test; a broken set-up should stop it")]

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::{
    AllowlistEntry, Command, Environment, Policy, ProcessGroup, ProcessRunner, Runner, Stderr, Stdin, start,
};
use navicert_testkit::cli::FAKE_PLUGIN;
use navicert_testkit::soak;
use navicert_types::SystemClock;

const RUNS: usize = 1_000;

/// One command of each kind: successful, failing, killed, too much output, too slow, with stdin, with unread stdin, and one
/// that cannot start.
fn command(kind: usize) -> Command {
    let plugin =
        |steps: &[&str]| Command::new(FAKE_PLUGIN, Environment::empty()).args(steps).stderr(Stderr::Tail(64));
    let large = || Stdin::Bytes(vec![0; 256 * 1024].into());
    match kind % 10 {
        0 => plugin(&["say=token", "err=a word"]),
        1 => plugin(&["exit=1"]),
        2 => plugin(&["signal=9"]).process_group(ProcessGroup::New),
        3 => plugin(&["flood=2048"]).stdout_cap(1000),
        4 => plugin(&["park"])
            .limit(Some(Duration::from_millis(2)))
            .process_group(ProcessGroup::NewKilledAtEnd),
        5 => plugin(&["cat"]).stdin(large()),
        6 => plugin(&["say=not read"]).stdin(large()),
        7 => plugin(&["say=inherits"]).stderr(Stderr::Inherit).stdin(Stdin::Inherit),
        8 => plugin(&["say=x"]).env("TOO_LONG", "x".repeat(8 * 1024 * 1024)),
        _ => plugin(&["say=elsewhere"]),
    }
}

fn run(kind: usize, policy: &Policy, runner: &Arc<ProcessRunner>) -> bool {
    let permitted = policy.permit(command(kind)).expect("the program exists");
    let result = if kind % 10 == 9 {
        start(Arc::clone(runner) as Arc<dyn Runner>, permitted).wait()
    } else {
        runner.run(permitted)
    };
    result.is_ok_and(|completed| completed.exit.is_success())
}

/// The open descriptors and children of this process.
fn open_resources() -> (usize, Vec<String>) {
    let descriptors = fs::read_dir("/proc/self/fd").expect("a list of descriptors").count();
    let children = fs::read_dir("/proc/self/task")
        .expect("a list of threads")
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    let children =
        children.flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    (descriptors, children)
}

#[test]
fn thousand_runs_leak_nothing() {
    // C306, I96: no zombie ever, no leaked descriptor.
    let runner = Arc::new(ProcessRunner::new(Arc::new(SystemClock)));
    let policies = [
        Policy::AllowAll,
        Policy::from_parts("Allowlist", Some(vec![AllowlistEntry::new(FAKE_PLUGIN).env_names(["TOO_LONG"])]))
            .expect("a policy"),
    ];
    assert_eq!(
        (0..10).filter(|kind| run(*kind, &policies[0], &runner)).count(),
        5,
        "five of ten kinds succeed"
    );
    let before = open_resources();
    assert!(before.1.is_empty(), "{before:?}");
    let runs = RUNS * soak::factor();
    let good = (0..runs).filter(|kind| run(*kind, &policies[(kind / 10) % 2], &runner)).count();
    assert_eq!(good, runs / 2);
    assert_eq!(open_resources(), before);
}
