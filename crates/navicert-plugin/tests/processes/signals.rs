//! Callers with unusual signal dispositions, and callers' dispositions left alone.

use std::fs;

use navicert_plugin::{Command, Environment, RunError, Stderr, Stdin};

use crate::support::{SOON, plugin, run};

/// Set in the process that this test starts itself again in.
const INSIDE: &str = "NAVICERT_TEST_SIGCHLD_IS_IGNORED";

#[test]
fn a_caller_that_ignores_sigchld_is_told_that_the_status_is_lost() {
    // Then the kernel reaps every child itself and there is no exit status to be had.
    #[expect(clippy::disallowed_methods, reason = "the test speaks to itself")]
    let inside = std::env::var_os(INSIDE).is_some();
    if inside {
        let error = run(plugin(["say=token"])).unwrap_err();
        assert!(matches!(error, RunError::StatusLost { .. }), "{error:?}");
        return;
    }
    let name = "signals::a_caller_that_ignores_sigchld_is_told_that_the_status_is_lost";
    let environment: Environment = [("PATH", "/usr/bin:/bin"), (INSIDE, "1")].into_iter().collect();
    let command = Command::new("env", environment).args(["--ignore-signal=CHLD"]);
    let command = command.args([std::env::current_exe().unwrap()]).args(["--exact", name]).limit(Some(SOON));
    let completed = run(command.stderr(Stderr::Tail(4096))).unwrap();
    let said = String::from_utf8_lossy(completed.stdout.expose()).into_owned();
    assert!(completed.exit.is_success() && said.contains("1 passed"), "{said}");
}

#[test]
fn the_callers_signal_dispositions_are_left_alone() {
    let dispositions = || {
        // This thread's: another one blocks signals for a moment whenever it starts a thread.
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let of_signals =
            |line: &&str| ["SigBlk:", "SigIgn:", "SigCgt:"].iter().any(|name| line.starts_with(name));
        status.lines().filter(of_signals).map(str::to_owned).collect::<Vec<_>>()
    };
    let before = dispositions();
    assert_eq!(before.len(), 3);
    let unread = Stdin::Bytes(vec![0; 1024 * 1024].into());
    assert!(run(plugin(["exit=0"]).stdin(unread)).unwrap().exit.is_success());
    assert!(run(plugin(["park"]).limit(Some(std::time::Duration::from_millis(50)))).is_err());
    assert_eq!(dispositions(), before);
}
