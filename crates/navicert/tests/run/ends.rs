//! Exit codes, signals and environment of the command; no files remain, however it ends.

use std::net::TcpStream;

use navicert_testkit::cli::tools;
use navicert_testkit::wait;

use super::setup::{Setup, kubectl, text};

#[test]
fn exit_code_is_the_commands() {
    let setup = Setup::new();
    for code in [0, 1, 3, 42, 255] {
        let outcome = setup.shell(&format!("exit {code}")).run().unwrap();
        assert_eq!(outcome.code(), Some(code), "{}", text(&outcome.stderr));
    }
    assert_eq!(setup.shell("kill -KILL $$").run().unwrap().signal(), Some(9), "a signal is a signal");
    assert_eq!(setup.shell("kill -TERM $$").run().unwrap().signal(), Some(15));
    assert_eq!(setup.shell("kill -INT $$").run().unwrap().signal(), Some(2));
    let missing = setup.navicert(&["run", "--", "no-such-command"]).run().unwrap();
    assert_eq!(missing.code(), Some(127));
    assert!(text(&missing.stderr).contains("no-such-command"));
    assert_eq!(setup.navicert(&["run", "--", "/etc/passwd"]).run().unwrap().code(), Some(126));
    assert_eq!(setup.navicert(&["run"]).run().unwrap().code(), Some(2));
    assert_eq!(setup.navicert(&["run", "--context", "none", "--", "true"]).run().unwrap().code(), Some(3));
    assert!(setup.left_behind().is_empty());
}

#[test]
fn standard_streams_are_the_commands() {
    let setup = Setup::new();
    let outcome = setup.shell("cat; echo complaint >&2").stdin("through").run().unwrap();
    assert_eq!((text(&outcome.stdout), text(&outcome.stderr)), ("through".into(), "complaint\n".into()));
}

#[test]
fn signals_to_navicert_are_forwarded_to_the_command() {
    let setup = Setup::new();
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("USR1", 10), ("USR2", 12), ("QUIT", 3)] {
        // A command that handles it continues and prints so.
        let script =
            format!("sleep 60 & trap 'echo got {signal}; kill $!; exit 7' {signal}; echo ready; wait");
        let running = setup.shell(&script).start_running().unwrap();
        wait::blocking(running.wait_for_output("ready"));
        running.signal(signal);
        wait::blocking(running.wait_for_output(&format!("got {signal}")));
        assert_eq!(wait::blocking(running.wait()).code(), Some(7), "{signal}");
        // A command that does not handle it is killed by it, and so is navicert.
        let running = setup.shell("echo ready; exec sleep 60").start_running().unwrap();
        wait::blocking(running.wait_for_output("ready"));
        running.signal(signal);
        assert_eq!(wait::blocking(running.wait()).signal(), Some(number), "{signal}");
    }
    assert!(setup.left_behind().is_empty());
}

#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    let setup = Setup::new();
    let navicert = env!("CARGO_BIN_EXE_navicert");
    let script =
        format!("trap '' HUP; exec {navicert} run -- /bin/sh -c 'kill -HUP $$; kill -HUP $PPID; echo alive'");
    let outcome = setup.navicert(&[]).run().unwrap();
    assert_eq!(outcome.code(), Some(2), "only to have the environment");
    let outcome = navicert_testkit::Program::new("/bin/sh")
        .arguments(["-c", &script])
        .variable("KUBECONFIG", setup.dir.path().join("config"))
        .variable("XDG_RUNTIME_DIR", setup.dir.path().join("runtime"))
        .run()
        .unwrap();
    assert_eq!(
        (outcome.code(), text(&outcome.stdout)),
        (Some(0), "alive\n".to_owned()),
        "{}",
        text(&outcome.stderr)
    );
}

#[test]
fn command_gets_the_kubeconfig_but_no_plugin_variables() {
    let setup = Setup::new();
    let outcome = setup
        .navicert(&["run", "--drop-env", "CLOUD_SECRET", "--", "/usr/bin/env"])
        .variable("KUBERNETES_EXEC_INFO", "{}")
        .variable("EXTERNAL_SIGNER_PLUGIN_CONFIG", "{}")
        .variable("CLOUD_SECRET", "s3cret")
        .variable("HTTPS_PROXY", "http://127.0.0.1:1")
        .variable("NO_PROXY", "example.com")
        .variable("KEPT", "yes")
        .run()
        .unwrap();
    let seen = text(&outcome.stdout);
    for gone in ["KUBERNETES_EXEC_INFO", "EXTERNAL_SIGNER_PLUGIN_CONFIG", "CLOUD_SECRET"] {
        assert!(!seen.contains(gone), "{gone} in {seen}");
    }
    assert!(seen.contains("KEPT=yes\n") && seen.contains("NO_PROXY=example.com,127.0.0.1\n"), "{seen}");
    let kubeconfig = seen.lines().find_map(|line| line.strip_prefix("KUBECONFIG=")).unwrap();
    assert!(kubeconfig.starts_with(setup.dir.path().join("runtime/navicert").to_str().unwrap()));
}

#[test]
fn child_kubeconfig_keeps_names_and_has_no_credentials() {
    let setup = Setup::new();
    let outcome =
        setup.shell("cat $KUBECONFIG; stat -c '%a' $KUBECONFIG $(dirname $KUBECONFIG)").run().unwrap();
    let seen = text(&outcome.stdout);
    assert!(seen.ends_with("600\n700\n"), "{seen}");
    for kept in ["name: prod", "name: north", "namespace: default", "https://127.0.0.1:", "token: "] {
        assert!(seen.contains(kept), "{kept} in {seen}");
    }
    let (_, port) = setup.api.url().rsplit_once(':').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    for gone in ["ann", "client-key", "client-certificate", &format!(":{port}")] {
        assert!(!seen.contains(gone), "{gone} in {seen}");
    }
}

// Parent killed with SIGKILL: the port is closed and the files are removed.
#[test]
fn killed_gateway_leaves_no_files() {
    let setup = Setup::new();
    let running = setup.shell("cat $KUBECONFIG; echo up; exec sleep 60").start_running().unwrap();
    let told = wait::blocking(running.wait_for_output("up\n"));
    let server =
        told.lines().find_map(|line| line.trim().strip_prefix("server: https://")).unwrap().to_owned();
    assert!(TcpStream::connect(&server).is_ok());
    let dir = setup.left_behind().pop().unwrap();
    // The guard must be running: it removes the files.
    wait_until(|| is_waiting_for(&dir));
    running.signal("KILL");
    let _ = running.status();
    wait_until(|| TcpStream::connect(&server).is_err());
    wait_until(|| setup.left_behind().is_empty());
    // The orphan has nothing left to use, and ends by itself within the minute.
}

#[test]
fn next_gateway_removes_files_that_the_guard_missed() {
    let setup = Setup::new();
    let dead = setup.dir.path().join("runtime/navicert/navicert-run-dead");
    std::fs::create_dir_all(&dead).unwrap();
    super::setup::set_mode(dead.parent().unwrap(), 0o700);
    for name in ["lock", "kubeconfig"] {
        std::fs::write(dead.join(name), "x").unwrap();
    }
    assert_eq!(setup.shell("exit 0").run().unwrap().code(), Some(0));
    assert!(setup.left_behind().is_empty());
}

#[test]
fn port_is_closed_after_the_command_exits_even_if_its_children_run_on() {
    let setup = Setup::new();
    let outcome = setup.shell("grep -o 'https://.*' $KUBECONFIG").run().unwrap();
    let server = text(&outcome.stdout).trim().trim_start_matches("https://").to_owned();
    assert!(TcpStream::connect(server).is_err());
}

/// A shell with job control on a terminal of its own.
fn terminal(setup: &Setup) -> navicert_testkit::cli::program::Running {
    navicert_testkit::Program::new("script")
        .arguments(["-qec", "bash --norc --noprofile -i"])
        .arguments([setup.dir.path().join("typescript")])
        .variable("KUBECONFIG", setup.dir.path().join("config"))
        .variable("XDG_RUNTIME_DIR", setup.dir.path().join("runtime"))
        .stdin("PS1='[\\#]'; stty rows 33 cols 77\n")
        .start_running()
        .unwrap()
}

// The command reads the terminal, and Ctrl-C reaches it exactly once.
#[test]
fn command_owns_the_terminal_and_its_interrupt() {
    let setup = Setup::new();
    let navicert = env!("CARGO_BIN_EXE_navicert");
    let shell = terminal(&setup);
    wait::blocking(shell.wait_for_output("[2]"));
    let handling =
        "trap \"echo inter\\upted\" INT; stty size; echo rea\\dy; read line; echo \"got $line\"; exit 9";
    shell.type_in(&format!("{navicert} run -- bash -c '{handling}'; echo code-$?\n"));
    wait::blocking(shell.wait_for_output("33 77"));
    wait::blocking(shell.wait_for_output("ready"));
    shell.type_in("\u{3}");
    wait::blocking(shell.wait_for_output("interupted"));
    shell.type_in("typed\n");
    let told = wait::blocking(shell.wait_for_output("code-9"));
    assert!(told.contains("got typed"), "{told}");
    assert_eq!(told.matches("interupted").count(), 1, "Ctrl-C comes once: {told}");
    // A command that does not handle it dies of it, and the shell sees that it did.
    shell.type_in(&format!("{navicert} run -- sh -c 'echo rea\\dy-2; exec cat'; echo code-$?\n"));
    wait::blocking(shell.wait_for_output("ready-2"));
    shell.type_in("\u{3}");
    // The prompt of the fourth command: what followed the third on its line was given up.
    wait::blocking(shell.wait_for_output("[4]"));
    shell.type_in("echo code-$?\n");
    wait::blocking(shell.wait_for_output("code-130"));
    shell.type_in("exit\n");
    assert!(setup.left_behind().is_empty());
}

// Ctrl-Z stops the command and us, `fg` continues both, and the gateway still answers.
#[test]
fn job_control_stops_and_continues_the_command() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    let navicert = env!("CARGO_BIN_EXE_navicert");
    let shell = terminal(&setup);
    wait::blocking(shell.wait_for_output("[2]"));
    let label = format!("job-control-{}", std::process::id());
    let script = format!("echo rea\\dy; read line; {} get --raw /version # {label}", kubectl().display());
    shell.type_in(&format!("{navicert} run -- sh -c '{script}'\n"));
    wait::blocking(shell.wait_for_output("ready"));
    shell.type_in("\u{1a}");
    wait::blocking(shell.wait_for_output("Stopped"));
    // The shell knows that navicert has stopped. The command gets the same signal, but until it is scheduled its `read` still
    // takes what is typed.
    wait_until(|| {
        let job: Vec<u32> =
            processes().filter(|(_, line)| line.contains(&label)).map(|(pid, _)| pid).collect();
        job.len() >= 2 && job.into_iter().all(is_stopped)
    });
    // Not before the prompt: the shell discards what was typed before it has set up the terminal.
    wait::blocking(shell.wait_for_output("[3]"));
    shell.type_in("echo still-a-shell-$((1+1)); fg\n");
    wait::blocking(shell.wait_for_output("still-a-shell-2"));
    shell.type_in("go on\n");
    wait::blocking(shell.wait_for_output("gitVersion"));
    shell.type_in("exit\n");
}

#[test]
fn kubectl_under_a_shell_under_navicert_works_all_the_same() {
    let Some(_) = tools::kubectl() else { return };
    let setup = Setup::new();
    let script = format!("{} get --raw /version | grep gitVersion", kubectl().display());
    let outcome = setup.shell(&script).run().unwrap();
    assert_eq!(outcome.code(), Some(0), "{}", text(&outcome.stderr));
}

/// Looks until it is so, without a pause that would have to be guessed: each look starts a process.
fn wait_until(is_so: impl Fn() -> bool) {
    for _ in 0..5_000 {
        if is_so() {
            return;
        }
        let _ = navicert_testkit::Program::new("true").run();
    }
    assert!(is_so(), "it never came to be");
}

/// Whether a guard waits for this directory's lock.
fn is_waiting_for(dir: &std::path::Path) -> bool {
    let wanted = dir.to_str().unwrap();
    processes().any(|(_, command)| command.contains("gateway-guard") && command.contains(wanted))
}

/// Whether a signal has stopped this process.
fn is_stopped(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:\tT"))
}

fn processes() -> impl Iterator<Item = (u32, String)> {
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    numbers.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let command = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some((pid, text(&command).replace('\0', " ")))
    })
}
