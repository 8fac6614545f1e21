//! Callers with unusual signal dispositions, and dispositions that stay unchanged.

use std::fs;

use navicert_plugin::{Command, Environment, RunError, Stderr, Stdin};

use crate::support::{TEST_TIMEOUT, plugin, run};

/// Set in the child process in which the test runs itself again.
const INSIDE: &str = "NAVICERT_TEST_SIGCHLD_IS_IGNORED";

#[test]
fn ignored_sigchld_reports_a_lost_exit_status() {
    // With SIGCHLD ignored the kernel reaps every child, so no exit status is available.
    #[expect(clippy::disallowed_methods, reason = "set by the parent test process")]
    let inside = std::env::var_os(INSIDE).is_some();
    if inside {
        let error = run(plugin(["say=token"])).unwrap_err();
        assert!(matches!(error, RunError::StatusLost { .. }), "{error:?}");
        return;
    }
    let name = "signals::ignored_sigchld_reports_a_lost_exit_status";
    let environment: Environment = [("PATH", "/usr/bin:/bin"), (INSIDE, "1")].into_iter().collect();
    let command = Command::new("env", environment).args(["--ignore-signal=CHLD"]);
    let command =
        command.args([std::env::current_exe().unwrap()]).args(["--exact", name]).limit(Some(TEST_TIMEOUT));
    let completed = run(command.stderr(Stderr::Tail(4096))).unwrap();
    let stdout = String::from_utf8_lossy(completed.stdout.expose()).into_owned();
    assert!(completed.exit.is_success() && stdout.contains("1 passed"), "{stdout}");
}

#[test]
fn signal_dispositions_are_unchanged() {
    let dispositions = || {
        // Of this thread: another thread briefly blocks signals when it starts a thread.
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
