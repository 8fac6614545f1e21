//! Plugins and terminals: a client in its own process, with or without a pseudo-terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use navicert_client::credential::{RequestOrigin, block_on};
use navicert_client::exec::ExecSettings;
use navicert_client::exec::interactive::StdinUse;
use navicert_client::{Client, Config};
use navicert_testkit::cli::program::{CHILD_INPUT_VARIABLE, child_input};
use navicert_types::error_chain;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use serde_json::{Value, json};

use super::{TestDirectory, fs, output};

/// Both ends of a pseudo-terminal.
fn terminal() -> (OwnedFd, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let other = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (ours, other)
}

/// What a client left: a line per credential, and its standard error.
struct Ran {
    credentials: String,
    stderr: Vec<u8>,
}

fn run(test_dir: &TestDirectory, stdin: Stdio, stdin_used_by: Option<&str>) -> Ran {
    let mut client = client(test_dir, stdin_used_by);
    let output = client.stdin(stdin).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Ran { credentials: credentials(test_dir), stderr: output.stderr }
}

/// This test executable, which fetches the credentials of all contexts concurrently.
#[expect(clippy::disallowed_methods, reason = "this test needs a process with a terminal")]
fn client(test_dir: &TestDirectory, stdin_used_by: Option<&str>) -> Command {
    let input = json!({
        "kubeconfig": test_dir.config(), "stdinUsedBy": stdin_used_by, "result": test_dir.path().join("result"),
    });
    let mut client = Command::new(std::env::current_exe().unwrap());
    client
        .args(["terminals::client_process", "--exact", "--nocapture"])
        .env(CHILD_INPUT_VARIABLE, input.to_string());
    client
}

fn credentials(test_dir: &TestDirectory) -> String {
    fs::read_to_string(test_dir.path().join("result")).unwrap()
}

/// The client's process in the tests below: its standard output is the test runner's, so the result goes into a file.
#[test]
fn client_process() {
    let Some(input) = child_input() else { return };
    let input: Value = serde_json::from_str(&input).unwrap();
    let path = |name: &str| PathBuf::from(input[name].as_str().unwrap());
    let mut settings = ExecSettings::default();
    if let Some(user) = input["stdinUsedBy"].as_str() {
        settings.stdin = StdinUse::Taken(user.to_owned());
    }
    let options = Config::options().kubeconfig(path("kubeconfig"));
    let merged = options.load().unwrap();
    let threads: Vec<_> = merged
        .config
        .contexts
        .iter()
        .map(|entry| {
            let config = options.clone().context(&entry.name).resolve_in(&merged);
            let settings = settings.clone();
            std::thread::spawn(move || credential(config.map_err(|errors| error_chain(&errors))?, settings))
        })
        .collect();
    let credentials: Result<Vec<String>, String> =
        threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let text = match credentials {
        Ok(credentials) => credentials.join("\n"),
        Err(error) => format!("error: {error}"),
    };
    fs::write(path("result"), text).unwrap();
}

fn credential(config: Config, settings: ExecSettings) -> Result<String, String> {
    let source = Client::builder(config).exec_settings(settings).credential_source();
    let credential = block_on(source.get(RequestOrigin::Foreground)).map_err(|error| error_chain(&error))?;
    let header =
        credential.authorization.as_ref().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Ok(header.unwrap_or_default())
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
        let result = run(&test_dir, stdin, used_by).credentials;
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
fn terminal_on_another_stream_than_standard_input_is_ignored() {
    let scratch = tempfile::tempdir().unwrap();
    let dump = scratch.path().join("dump");
    let status = output("\"token\":\"t\"");
    let test_dir =
        TestDirectory::new("IfAvailable", &[("FAKE_DUMP", dump.to_str().unwrap()), ("FAKE_STDOUT", &status)]);
    let (_ours, other) = terminal();
    let mut client = client(&test_dir, None);
    client.stdin(Stdio::piped()).stdout(other.try_clone().unwrap()).stderr(other);
    assert!(client.status().unwrap().success());
    assert_eq!(credentials(&test_dir), "Bearer t");
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
    let ran = run(&test_dir, Stdio::from(other), None);
    assert_eq!(ran.credentials, "Bearer typed-by-hand");
    assert_eq!(ran.stderr, b"token: ", "the prompt is on the client's standard error");
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
    let ran = run(&test_dir, Stdio::from(other), None);
    let mut given: Vec<&str> = ran.credentials.lines().collect();
    given.sort();
    assert_eq!(given, ["Bearer typed-first", "Bearer typed-second"]);
    assert_eq!(fs::read_to_string(&turns).unwrap(), "begin\nend\nbegin\nend\n");
    assert_eq!(ran.stderr, b"token: token: ");
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
    let ran = run(&test_dir, Stdio::from(other), None);
    both.join().unwrap();
    assert_eq!(ran.credentials, "Bearer t\nBearer t");
    assert!(fs::read_to_string(&turns).unwrap().starts_with("begin\nbegin\n"));
}
