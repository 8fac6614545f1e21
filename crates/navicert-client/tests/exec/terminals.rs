//! Plugins and terminals: a client in a process of its own, with a pseudo-terminal or without.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::{Output, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{Folder, fs, output};

const CLIENT: &str = env!("CARGO_BIN_EXE_navicert-fake-client");

/// A pseudo-terminal: our end and the other.
fn terminal() -> (OwnedFd, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let other = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (ours, other)
}

#[expect(clippy::disallowed_methods, reason = "this test needs a process with a terminal")]
fn run(folder: &Folder, stdin: Stdio, stdin_used_by: Option<&str>) -> Output {
    let mut client = std::process::Command::new(CLIENT);
    client.arg(folder.config()).args(stdin_used_by).stdin(stdin).stderr(Stdio::piped()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

// C220, C221, C222, T12, T26
#[test]
fn the_plugin_has_the_terminal_exactly_when_it_is_told_so() {
    let taken = Some("used by stdin resource manifest reader");
    let refused = "error: exec plugin cannot support interactive mode: standard input is ";
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
        let place = tempfile::tempdir().unwrap();
        let dump = place.path().join("dump");
        let status = output("\"token\":\"t\"");
        let folder = Folder::new(mode, &[("FAKE_DUMP", dump.to_str().unwrap()), ("FAKE_STDOUT", &status)]);
        let (_ours, other) = terminal();
        let stdin = if has_terminal { Stdio::from(other) } else { Stdio::piped() };
        let result = said(&run(&folder, stdin, used_by));
        match expected {
            Ok((kind, interactive)) => {
                assert_eq!(result, "Bearer t", "{mode} {has_terminal} {used_by:?}");
                let given = fs::read_to_string(&dump).unwrap();
                let (found, question) = given.split_once('\n').unwrap();
                assert_eq!(found, kind, "{mode} {has_terminal} {used_by:?}");
                assert!(question.contains(&format!("\"interactive\":{interactive}")), "{question}");
            }
            Err(reason) => {
                assert_eq!(result, format!("{refused}{reason}"), "{mode} {has_terminal} {used_by:?}");
                assert!(!dump.exists(), "the plugin was not run");
            }
        }
    }
}

// C224, C226: standard output and error may be terminals; only standard input decides.
#[test]
#[expect(clippy::disallowed_methods, reason = "this test needs a process with a terminal")]
fn a_terminal_elsewhere_than_on_standard_input_is_none() {
    let place = tempfile::tempdir().unwrap();
    let dump = place.path().join("dump");
    let status = output("\"token\":\"t\"");
    let folder =
        Folder::new("IfAvailable", &[("FAKE_DUMP", dump.to_str().unwrap()), ("FAKE_STDOUT", &status)]);
    let (_ours, other) = terminal();
    let mut client = std::process::Command::new(CLIENT);
    let client = client.arg(folder.config()).stdin(Stdio::piped());
    let client = client.stdout(other.try_clone().unwrap()).stderr(other);
    assert!(client.status().unwrap().success());
    let given = fs::read_to_string(&dump).unwrap();
    let (stdin, question) = given.split_once('\n').unwrap();
    assert_eq!(stdin, "null");
    assert!(question.contains("\"interactive\":false"), "{question}");
}

// T26, C222
#[test]
fn a_plugin_reads_what_the_user_types() {
    let folder = Folder::new("Always", &[("FAKE_PROMPT", "1")]);
    let (ours, other) = terminal();
    let mut ours = File::from(ours);
    ours.write_all(b"typed-by-hand\n").unwrap();
    let output = run(&folder, Stdio::from(other), None);
    assert_eq!(said(&output), "Bearer typed-by-hand");
    assert_eq!(output.stderr, b"token: ", "the prompt goes where the client's complaints go");
    let mut echo = [0; 13];
    ours.read_exact(&mut echo).unwrap();
    assert_eq!(&echo, b"typed-by-hand");
}

// T27, C423: both are asked for at the same time, and whoever is second does not begin before the first has ended.
#[test]
fn two_plugins_that_want_the_terminal_get_it_one_after_the_other() {
    let place = tempfile::tempdir().unwrap();
    let turns = place.path().join("turns");
    let folder = Folder::of_two("Always", &[("FAKE_PROMPT", "1"), ("FAKE_TURNS", turns.to_str().unwrap())]);
    let (ours, other) = terminal();
    let mut ours = File::from(ours);
    ours.write_all(b"typed-first\ntyped-second\n").unwrap();
    let output = run(&folder, Stdio::from(other), None);
    let mut given: Vec<String> = said(&output).lines().map(ToOwned::to_owned).collect();
    given.sort();
    assert_eq!(given, ["Bearer typed-first", "Bearer typed-second"]);
    assert_eq!(fs::read_to_string(&turns).unwrap(), "begin\nend\nbegin\nend\n");
    assert_eq!(output.stderr, b"token: token: ");
}

// The guard of the test above: plugins that do not want the terminal run side by side, so something holds those back.
#[test]
fn two_plugins_that_do_not_want_the_terminal_run_at_the_same_time() {
    let place = tempfile::tempdir().unwrap();
    let (turns, socket) = (place.path().join("turns"), place.path().join("socket"));
    let listener = UnixListener::bind(&socket).unwrap();
    let variables = [
        ("FAKE_HOLD", socket.to_str().unwrap()),
        ("FAKE_TURNS", turns.to_str().unwrap()),
        ("FAKE_STDOUT", &output("\"token\":\"t\"")),
    ];
    let folder = Folder::of_two("Never", &variables);
    let both = std::thread::spawn(move || {
        // Neither is let go before both are there.
        let mut waiting: Vec<_> = (0..2).map(|_| listener.accept().unwrap().0).collect();
        waiting.iter_mut().for_each(|plugin| plugin.read_exact(&mut [0]).unwrap());
    });
    let (_ours, other) = terminal();
    let output = run(&folder, Stdio::from(other), None);
    both.join().unwrap();
    assert_eq!(said(&output), "Bearer t\nBearer t");
    assert!(fs::read_to_string(&turns).unwrap().starts_with("begin\nbegin\n"));
}
