//! What each stream gets: both versions, by hand, in a pipe and on a terminal.

use std::process::{Command, Stdio};

use navicert_testkit::cli::pseudo_terminal::PseudoTerminal;
use serde_json::{Value, json};

use super::{INFO_V1, INFO_V1BETA1, Setup, output, token};

/// How the program is started: `KUBERNETES_EXEC_INFO`, and the version of its answer.
const STARTS: [(Option<&str>, &str); 3] = [
    (Some(INFO_V1), "client.authentication.k8s.io/v1"),
    (Some(INFO_V1BETA1), "client.authentication.k8s.io/v1beta1"),
    (None, "client.authentication.k8s.io/v1"),
];

/// Runs it with the streams on terminals or in pipes: exit code, standard output, standard error.
fn run(
    mut command: Command,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
) -> (Option<i32>, String, String) {
    let (mut stdout, mut stderr) = (PseudoTerminal::new(), PseudoTerminal::new());
    command.stdout(if stdout_is_terminal { stdout.stream() } else { Stdio::piped() });
    command.stderr(if stderr_is_terminal { stderr.stream() } else { Stdio::piped() });
    let ended = command.spawn().unwrap().wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let shown = |is_terminal: bool, terminal: &mut PseudoTerminal, piped: &[u8]| {
        if is_terminal { terminal.shown().replace("\r\n", "\n") } else { text(piped) }
    };
    (
        ended.status.code(),
        shown(stdout_is_terminal, &mut stdout, &ended.stdout),
        shown(stderr_is_terminal, &mut stderr, &ended.stderr),
    )
}

fn with_info(mut command: Command, info: Option<&str>) -> Command {
    if let Some(info) = info {
        command.env("KUBERNETES_EXEC_INFO", info);
    }
    command
}

const BOTH: [bool; 2] = [false, true];

// L201, L202, L204, L205: LT2 of the specification.
#[test]
fn credential_goes_to_clients_and_pipes_and_a_report_to_a_terminal() {
    let setup = Setup::new();
    // The first run says that the password grant was asked for.
    assert_eq!(output(setup.login()).0, Some(0));
    for (info, version) in STARTS {
        for (stdout_is_terminal, stderr_is_terminal) in BOTH.into_iter().flat_map(|o| BOTH.map(|e| (o, e))) {
            let case = format!("{info:?} {stdout_is_terminal} {stderr_is_terminal}");
            let command = with_info(setup.login(), info);
            let (code, stdout, stderr) = run(command, stdout_is_terminal, stderr_is_terminal);
            assert_eq!((code, stderr.as_str()), (Some(0), ""), "{case}");
            if info.is_none() && stdout_is_terminal {
                assert!(stdout.contains("ann@example.com"), "{case}: {stdout}");
                setup.canaries().assert_absent(&case, stdout.as_bytes());
                let mut json = setup.login();
                json.args(["-o", "json"]);
                assert_eq!(token(&run(json, true, stderr_is_terminal).1), setup.entry()["idToken"], "{case}");
                continue;
            }
            assert_eq!(stdout.lines().count(), 1, "{case}: {stdout}");
            let response: Value = serde_json::from_str(&stdout).unwrap();
            assert_eq!(response["apiVersion"], json!(version), "{case}");
            assert_eq!(token(&stdout), setup.entry()["idToken"], "{case}");
        }
    }
    assert_eq!(setup.provider.token_requests(), 1);
}

// L203, L204: LT2 of the specification.
#[test]
fn failure_is_one_sentence_and_a_status_for_clients() {
    let setup = Setup::new();
    setup.provider.issuer.refuse_connections();
    for (info, version) in STARTS {
        for (stdout_is_terminal, stderr_is_terminal) in BOTH.into_iter().flat_map(|o| BOTH.map(|e| (o, e))) {
            let case = format!("{info:?} {stdout_is_terminal} {stderr_is_terminal}");
            let mut command = with_info(setup.login(), info);
            command.arg("--account=other");
            let (code, stdout, stderr) = run(command, stdout_is_terminal, stderr_is_terminal);
            assert_eq!(code, Some(4), "{case}: {stderr}");
            let sentences = stderr.lines().filter(|line| line.contains("127.0.0.1")).count();
            assert_eq!(sentences, 1, "{case}: {stderr}");
            setup.canaries().assert_absent(&case, stderr.as_bytes());
            match info {
                None => assert_eq!(stdout, "", "{case}"),
                Some(_) => {
                    let status: Value = serde_json::from_str(&stdout).unwrap();
                    assert_eq!(
                        (&status["kind"], &status["status"]),
                        (&json!("Status"), &json!("Failure")),
                        "{version}"
                    );
                }
            }
        }
    }
}

// LT2 of the specification: the rules that clients have for plugins.
#[test]
fn exec_plugin_check_finds_no_broken_rule() {
    let setup = Setup::new();
    let mut check = setup.program(std::path::Path::new(env!("CARGO_BIN_EXE_navicert")));
    check
        .args(["exec-plugin", "check", "--", env!("CARGO_BIN_EXE_navicert"), "login"])
        .args(setup.selection());
    check.arg(format!("--password-file={}", setup.dir.path().join("password").display()));
    let (code, stdout, stderr) = output(check);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("v1beta1"), "both versions are checked: {stdout}");
    setup.canaries().assert_absent("the report", stdout.as_bytes());
}
