//! Plugins and terminals: a client in its own process, with or without a pseudo-terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::{Output, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{TestDirectory, fs, output};

const CLIENT: &str = env!("CARGO_BIN_EXE_navicert-fake-client");

/// Both ends of a pseudo-terminal.
fn terminal() -> (OwnedFd, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let other = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (ours, other)
}

#[expect(clippy::disallowed_methods, reason = "this test needs a process with a terminal")]
fn run(test_dir: &TestDirectory, stdin: Stdio, stdin_used_by: Option<&str>) -> Output {
    let mut client = std::process::Command::new(CLIENT);
    client.arg(test_dir.config()).args(stdin_used_by).stdin(stdin).stderr(Stdio::piped()).output().unwrap()
}

fn stdout_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

// C220, C221, C222, T12, T26
#[test]
fn plugin_has_the_terminal_exactly_when_interactive_is_true() {
    let taken = Some("used by stdin resource manifest reader");
    let prefix = "error: exec plugin cannot support interactive mode: standard input is ";
    let rows = [
        ("Never", true, None, Ok(("null", false))),
        ("Never", false, None, Ok(("null", false))),
        ("IfAvailable", true, None, Ok(("terminal", true))),
        ("IfAvailable", true, taken, Ok(("null", false))),
        ("IfAvailable", false, None, Ok(("null", false))),
        ("Always", true, None, Ok(("terminal", true))),
        ("Always", true, taken, Err("unavailable: used by stdin resource manifest reader")),
        ("Always", false, None, Err("not a terminal")),
        ("Always", false, taken, Err("not a terminal")),
    ];
    for (mode, has_terminal, used_by, expected) in rows {
        let scratch = tempfile::tempdir().unwrap();
        let dump = scratch.path().join("dump");
        let status = output("\"token\":\"t\"");
        let test_dir =
            TestDirectory::new(mode, &[("FAKE_DUMP", dump.to_str().unwrap()), ("FAKE_STDOUT", &status)]);
        let (_ours, other) = terminal();
        let stdin = if has_terminal { Stdio::from(other) } else { Stdio::piped() };
        let result = stdout_text(&run(&test_dir, stdin, used_by));
        match expected {
            Ok((kind, interactive)) => {
                assert_eq!(result, "Bearer t", "{mode} {has_terminal} {used_by:?}");
                let given = fs::read_to_string(&dump).unwrap();
                let (found, exec_info) = given.split_once('\n').unwrap();
                assert_eq!(found, kind, "{mode} {has_terminal} {used_by:?}");
                assert!(exec_info.contains(&format!("\"interactive\":{interactive}")), "{exec_info}");
            }
            Err(reason) => {
                assert_eq!(result, format!("{prefix}{reason}"), "{mode} {has_terminal} {used_by:?}");
                assert!(!dump.exists(), "the plugin must not run");
            }
        }
    }
}

// C224, C226: standard output and error may be terminals; only standard input decides.
#[test]
#[expect(clippy::disallowed_methods, reason = "this test needs a process with a terminal")]
fn terminal_on_another_stream_than_standard_input_is_ignored() {
    let scratch = tempfile::tempdir().unwrap();
    let dump = scratch.path().join("dump");
    let status = output("\"token\":\"t\"");
    let test_dir =
        TestDirectory::new("IfAvailable", &[("FAKE_DUMP", dump.to_str().unwrap()), ("FAKE_STDOUT", &status)]);
    let (_ours, other) = terminal();
    let mut client = std::process::Command::new(CLIENT);
    let client = client.arg(test_dir.config()).stdin(Stdio::piped());
    let client = client.stdout(other.try_clone().unwrap()).stderr(other);
    assert!(client.status().unwrap().success());
    let given = fs::read_to_string(&dump).unwrap();
    let (stdin, exec_info) = given.split_once('\n').unwrap();
    assert_eq!(stdin, "null");
    assert!(exec_info.contains("\"interactive\":false"), "{exec_info}");
}

// T26, C222
#[test]
fn plugin_reads_user_input() {
    let test_dir = TestDirectory::new("Always", &[("FAKE_PROMPT", "1")]);
    let (ours, other) = terminal();
    let mut ours = File::from(ours);
    ours.write_all(b"typed-by-hand\n").unwrap();
    let output = run(&test_dir, Stdio::from(other), None);
    assert_eq!(stdout_text(&output), "Bearer typed-by-hand");
    assert_eq!(output.stderr, b"token: ", "the prompt is on the client's standard error");
    let mut echo = [0; 13];
    ours.read_exact(&mut echo).unwrap();
    assert_eq!(&echo, b"typed-by-hand");
}

// T27, C423: both are requested at the same time, and the second starts after the first has ended.
#[test]
fn interactive_plugins_run_one_after_the_other() {
    let scratch = tempfile::tempdir().unwrap();
    let turns = scratch.path().join("turns");
    let test_dir = TestDirectory::with_two_users(
        "Always",
        &[("FAKE_PROMPT", "1"), ("FAKE_TURNS", turns.to_str().unwrap())],
    );
    let (ours, other) = terminal();
    let mut ours = File::from(ours);
    ours.write_all(b"typed-first\ntyped-second\n").unwrap();
    let output = run(&test_dir, Stdio::from(other), None);
    let mut given: Vec<String> = stdout_text(&output).lines().map(ToOwned::to_owned).collect();
    given.sort();
    assert_eq!(given, ["Bearer typed-first", "Bearer typed-second"]);
    assert_eq!(fs::read_to_string(&turns).unwrap(), "begin\nend\nbegin\nend\n");
    assert_eq!(output.stderr, b"token: token: ");
}

// Control for the test above: non-interactive plugins run concurrently.
#[test]
fn non_interactive_plugins_run_concurrently() {
    let scratch = tempfile::tempdir().unwrap();
    let (turns, socket) = (scratch.path().join("turns"), scratch.path().join("socket"));
    let listener = UnixListener::bind(&socket).unwrap();
    let variables = [
        ("FAKE_HOLD", socket.to_str().unwrap()),
        ("FAKE_TURNS", turns.to_str().unwrap()),
        ("FAKE_STDOUT", &output("\"token\":\"t\"")),
    ];
    let test_dir = TestDirectory::with_two_users("Never", &variables);
    let both = std::thread::spawn(move || {
        // Neither continues before both have connected.
        let mut waiting: Vec<_> = (0..2).map(|_| listener.accept().unwrap().0).collect();
        waiting.iter_mut().for_each(|plugin| plugin.read_exact(&mut [0]).unwrap());
    });
    let (_ours, other) = terminal();
    let output = run(&test_dir, Stdio::from(other), None);
    both.join().unwrap();
    assert_eq!(stdout_text(&output), "Bearer t\nBearer t");
    assert!(fs::read_to_string(&turns).unwrap().starts_with("begin\nbegin\n"));
}
