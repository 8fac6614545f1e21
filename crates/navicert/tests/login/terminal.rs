//! What a person types on a terminal: the answer about a new API server, and the address of the last page.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use navicert_testkit::cli::pseudo_terminal::PseudoTerminal;
use navicert_testkit::services::login_provider::form;

use super::{Setup, output, texts};

fn info(server: &str, is_interactive: bool) -> String {
    format!(
        r#"{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",
        "spec":{{"interactive":{is_interactive},"cluster":{{"server":"{server}"}}}}}}"#
    )
}

/// A login for a client that names its server.
fn login_for(setup: &Setup, server: &str, terminal: Option<&PseudoTerminal>) -> Command {
    let mut command = setup.login();
    command.arg("--trust-server=ask").env("KUBERNETES_EXEC_INFO", info(server, terminal.is_some()));
    if let Some(terminal) = terminal {
        command.stdin(terminal.stream()).stderr(terminal.stream());
    }
    command
}

/// Types an answer to the question, and returns the exit code and what was shown.
fn answer(setup: &Setup, server: &str, typed: &str) -> (Option<i32>, String) {
    let mut terminal = PseudoTerminal::new();
    let child = login_for(setup, server, Some(&terminal)).spawn().unwrap();
    let shown = terminal.wait_for("[y/N] ");
    terminal.enter(typed);
    let ended = child.wait_with_output().unwrap();
    assert!(terminal.has_echo(), "the terminal is as it was");
    (texts(&ended).0, shown)
}

const SERVER: &str = "https://api.example:6443";

// L1233, L1306
#[test]
fn new_api_server_is_confirmed_once_on_a_terminal() {
    let setup = Setup::new();
    let (code, stdout, stderr) = output(login_for(&setup, SERVER, None));
    assert_eq!(code, Some(5), "{stderr}");
    assert!(stderr.contains("https://api.example:6443 has not been given a token"), "{stderr}");
    assert!(stdout.contains("\"kind\":\"Status\"") && setup.provider.requests() == 0, "{stdout}");
    let (code, shown) = answer(&setup, SERVER, "n\r");
    assert_eq!(code, Some(5));
    assert!(shown.contains("ann@example.com") && shown.contains("api.example:6443"), "{shown}");
    assert_eq!(answer(&setup, SERVER, "yes\r").0, Some(0));
    // From now on no terminal is needed; another server or client is another question.
    assert_eq!(output(login_for(&setup, &format!("{SERVER}/path"), None)).0, Some(0));
    assert_eq!(output(login_for(&setup, "https://evil.example:6443", None)).0, Some(5));
    assert_eq!(output(login_for(&setup, "https://api.example", None)).0, Some(5));
    let file = setup.cache().join("servers.json");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    setup.canaries().assert_absent("servers.json", &std::fs::read(&file).unwrap());
    let mut clean = setup.program(std::path::Path::new(env!("CARGO_BIN_EXE_navicert")));
    clean.args(["login", "clean"]).arg(format!("--token-cache-dir={}", setup.cache().display()));
    // L403
    assert_eq!(output(clean).0, Some(0));
    assert!(file.exists());
}

// L1306
#[test]
fn logins_without_a_person_ask_nothing_by_default() {
    let setup = Setup::new();
    let mut command = setup.login();
    command.env("KUBERNETES_EXEC_INFO", info(SERVER, false));
    assert_eq!(output(command).0, Some(0));
    let mut any = login_for(&setup, SERVER, None);
    any.arg("--trust-server=any");
    assert_eq!(output(any).0, Some(0));
}

/// One request of a browser: where it is sent next.
fn follow(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (authority, path) = rest.split_at(rest.find('/').unwrap());
    let mut stream = TcpStream::connect(authority).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let location = text.lines().find_map(|line| line.strip_prefix("location: "));
    location.unwrap_or_else(|| panic!("{text}")).to_owned()
}

// L213, L214, L727, L741
#[test]
fn pasted_address_ends_the_login_of_a_browser_elsewhere() {
    let setup = Setup::new();
    let mut terminal = PseudoTerminal::new();
    let mut command = setup.program(std::path::Path::new(env!("CARGO_BIN_EXE_navicert")));
    let selection = setup.selection().into_iter().filter(|flag| !flag.starts_with("--username"));
    command
        .args(["login", "--grant-type=authcode", "--skip-open-browser"])
        .args(selection)
        .stdin(terminal.stream())
        .stderr(terminal.stream())
        .stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    let shown = terminal.wait_for("or the code: ");
    let start = shown.split_once(", open ").unwrap().1.split_whitespace().next().unwrap();
    let parameters = form(follow(start).split_once('?').unwrap().1);
    terminal.enter("two words\r");
    terminal.wait_for("neither a code nor the address of the last page");
    // Longer than a line of the terminal can be.
    let code = "c".repeat(4_000);
    setup.provider.state().codes.insert(code.clone(), parameters["nonce"].clone());
    terminal.enter(&format!("{}?code={code}&state=", parameters["redirect_uri"]));
    terminal.enter(&format!("{}&session_state={}\r", parameters["state"], "s".repeat(500)));
    let ended = child.wait_with_output().unwrap();
    let (code, stdout, _) = texts(&ended);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.contains("ExecCredential"), "{stdout}");
    assert!(terminal.has_echo(), "the terminal is as it was");
}

// L205, L213, L727
#[test]
fn answer_in_the_browser_ends_the_prompt_and_restores_the_terminal() {
    let setup = Setup::new();
    let mut terminal = PseudoTerminal::new();
    let mut command = setup.program(std::path::Path::new(env!("CARGO_BIN_EXE_navicert")));
    let selection = setup.selection().into_iter().filter(|flag| !flag.starts_with("--username"));
    command
        .args(["login", "--grant-type=authcode", "--skip-open-browser"])
        .args(selection)
        .stdin(terminal.stream())
        .stderr(terminal.stream())
        .stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    let shown = terminal.wait_for("or the code: ");
    assert!(!terminal.has_echo());
    let start = shown.split_once(", open ").unwrap().1.split_whitespace().next().unwrap();
    let parameters = form(follow(start).split_once('?').unwrap().1);
    setup.provider.state().codes.insert("code".to_owned(), parameters["nonce"].clone());
    follow(&format!("{}?code=code&state={}", parameters["redirect_uri"], parameters["state"]));
    let ended = child.wait_with_output().unwrap();
    assert_eq!(texts(&ended).0, Some(0));
    assert!(terminal.has_echo(), "the terminal is as it was");
}
