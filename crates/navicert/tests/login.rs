//! `navicert login`, `logout` and `status` as processes: what clients and people see, many processes at once, and processes
//! that are killed.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "helpers of tests, which run the program itself"
)]

#[path = "login/files.rs"]
mod files;
#[path = "login/sessions.rs"]
mod sessions;
#[path = "login/streams.rs"]
mod streams;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "login/system_calls.rs"]
mod system_calls;
#[path = "login/terminal.rs"]
mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use navicert_testkit::cli::output_schema;
use navicert_testkit::services::login_provider::CLIENT;
use navicert_testkit::{Answer, Canaries, Gate, LoginProvider, wait};
use serde_json::{Value, json};

const INFO_V1: &str = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false}}"#;
const INFO_V1BETA1: &str = r#"{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","spec":{"interactive":false}}"#;

struct Setup {
    dir: tempfile::TempDir,
    provider: LoginProvider,
}

impl Setup {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let provider = LoginProvider::start(dir.path());
        std::fs::write(dir.path().join("password"), "canary-password\n").unwrap();
        Setup { dir, provider }
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    /// The program without the environment of the test.
    fn program(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.dir.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// `navicert VERB` with the flags that select this provider.
    fn command(&self, verb: &[&str]) -> Command {
        let mut command = self.program(Path::new(env!("CARGO_BIN_EXE_navicert")));
        command.args(verb).args(self.selection());
        command
    }

    fn selection(&self) -> Vec<String> {
        vec![
            format!("--oidc-issuer-url={}", self.provider.issuer.issuer_url()),
            format!("--oidc-client-id={CLIENT}"),
            format!("--certificate-authority={}", self.provider.ca_file.display()),
            format!("--token-cache-dir={}", self.cache().display()),
            "--username=ann".to_owned(),
        ]
    }

    /// A login that needs no person.
    fn login(&self) -> Command {
        let mut command = self.command(&["login"]);
        command.arg(format!("--password-file={}", self.dir.path().join("password").display()));
        command
    }

    fn entry_path(&self) -> PathBuf {
        let names = std::fs::read_dir(self.cache()).unwrap().map(|entry| entry.unwrap().path());
        let is_entry = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.ends_with(".json") && !name.ends_with(".provider.json") && name != "servers.json"
        };
        let mut entries: Vec<PathBuf> = names.filter(is_entry).collect();
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries.remove(0)
    }

    fn entry(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.entry_path()).unwrap()).unwrap()
    }

    /// Makes the token of the entry old.
    fn expire(&self) {
        let mut entry = self.entry();
        entry["receivedAt"] = json!("2020-01-01T00:00:00Z");
        entry["localExpiry"] = json!("2020-01-01T01:00:00Z");
        std::fs::write(self.entry_path(), entry.to_string()).unwrap();
    }

    /// Tokens and secrets that must not be seen.
    fn canaries(&self) -> Canaries {
        let mut canaries = Canaries::new();
        canaries.adopt("password", b"canary-password");
        for (number, token) in self.provider.state().sent.iter().enumerate() {
            canaries.adopt(&format!("token {number}"), token.as_bytes());
        }
        canaries
    }
}

fn output(mut command: Command) -> (Option<i32>, String, String) {
    texts(&command.output().unwrap())
}

fn texts(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn token(stdout: &str) -> String {
    let response: Value = serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
    response["status"]["token"].as_str().unwrap().to_owned()
}

// L201, L202, L205
#[test]
fn response_has_the_version_of_the_request_and_nothing_is_said() {
    let setup = Setup::new();
    for (info, version) in
        [(INFO_V1, "client.authentication.k8s.io/v1"), (INFO_V1BETA1, "client.authentication.k8s.io/v1beta1")]
    {
        let mut command = setup.login();
        command.env("KUBERNETES_EXEC_INFO", info);
        let (code, stdout, stderr) = output(command);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{version}");
        assert!(stdout.ends_with('\n') && stdout.lines().count() == 1, "{stdout}");
        let response: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!((&response["apiVersion"], &response["kind"]), (&json!(version), &json!("ExecCredential")));
        assert!(response["status"]["expirationTimestamp"].as_str().unwrap().ends_with('Z'));
    }
    let before = setup.provider.token_requests();
    assert_eq!(output(setup.login()).0, Some(0));
    assert_eq!(setup.provider.token_requests(), before, "answered from the cache");
}

// L204
#[test]
fn by_hand_a_pipe_gets_the_current_version() {
    let setup = Setup::new();
    let (code, stdout, _) = output(setup.login());
    assert_eq!(code, Some(0));
    assert!(stdout.contains("client.authentication.k8s.io/v1\""), "{stdout}");
    assert_eq!(token(&stdout), setup.entry()["idToken"].as_str().unwrap());
}

// L203, L212, L1201
#[test]
fn client_without_a_person_gets_a_status_and_the_command() {
    let setup = Setup::new();
    let mut command = setup.command(&["login"]);
    command.env("KUBERNETES_EXEC_INFO", INFO_V1);
    let (code, stdout, stderr) = output(command);
    assert_eq!(code, Some(5));
    let status: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Failure")));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("run in a terminal: navicert login --oidc-issuer-url="), "{stderr}");
    assert_eq!(setup.provider.requests(), 0);
}

// L105, L1219
#[test]
fn usage_errors_have_code_two() {
    let setup = Setup::new();
    let program = Path::new(env!("CARGO_BIN_EXE_navicert"));
    for (arguments, part) in [
        (&["login", "--oidc-client-id=c"][..], "missing --oidc-issuer-url"),
        (
            &[
                "login",
                "--oidc-issuer-url=http://id.example",
                "--oidc-client-id=c",
                "--username=a",
                "--password=b",
            ],
            "not https",
        ),
        (&["login", "--no-such"], "unknown flag"),
        (&["login", "setup"], "missing --oidc-issuer-url"),
        (&["status", "--oidc-client-id=c"], "unknown flag"),
    ] {
        let mut command = setup.program(program);
        command.args(arguments);
        let (code, stdout, stderr) = output(command);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(part), "{stderr}");
    }
    for arguments in [
        &["login", "-o", "json"][..],
        &["-o", "json", "login", "--no-such"],
        &["status", "--no-such", "--output=json"],
        &["logout", "-ojson", "--no-such"],
    ] {
        let mut command = setup.program(program);
        command.args(arguments);
        let (code, stdout, _) = output(command);
        let error: Value =
            serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{arguments:?}: {stdout}"));
        assert_eq!((code, &error["error"]["code"]), (Some(2), &json!("usage")), "{arguments:?}");
    }
}

// L103, L104
#[test]
fn other_names_of_the_program_take_kubelogins_arguments() {
    let setup = Setup::new();
    let link = setup.dir.path().join("kubectl-oidc_login");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_navicert"), &link).unwrap();
    let mut command = setup.program(&link);
    let password = setup.dir.path().join("password");
    command.arg("get-token").args(setup.selection()).arg(format!("--password-file={}", password.display()));
    let (code, stdout, _) = output(command);
    assert_eq!(code, Some(0));
    assert!(!token(&stdout).is_empty());
    let form = setup.provider.state().forms[0].clone();
    assert_eq!(form["scope"], "openid", "kubelogin requests no refresh token by itself");
    let (code, stdout, _) = output({
        let mut command = setup.program(&link);
        command.arg("version");
        command
    });
    assert!(code == Some(0) && stdout.starts_with("navicert "), "{stdout}");
    let (code, _, stderr) = output(setup.program(&link));
    assert!(code == Some(2) && stderr.contains("stand-alone"), "{stderr}");
}

// L302: no provider, no lock.
#[test]
fn cached_answer_needs_no_provider_and_no_lock() {
    let setup = Setup::new();
    let (_, first, _) = output(setup.login());
    setup.provider.issuer.refuse_connections();
    let before: Vec<_> =
        files(&setup.cache()).into_iter().filter(|(name, _)| !name.ends_with(".json")).collect();
    for (name, _) in &before {
        std::fs::remove_file(setup.cache().join(name)).unwrap();
    }
    let (code, second, _) = output(setup.login());
    assert_eq!((code, token(&second)), (Some(0), token(&first)));
    let after = files(&setup.cache());
    assert!(after.iter().all(|(name, _)| name.ends_with(".json")), "{after:?}");
}

fn files(folder: &Path) -> Vec<(String, u64)> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut files: Vec<_> = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()))
        .collect();
    files.sort();
    files
}

/// Starts it by hand: to a client that asks twice, the second token would be a new one.
fn start(mut command: Command) -> Child {
    command.spawn().unwrap()
}

// L506, L831
#[test]
fn sixty_four_processes_refresh_once() {
    let setup = Setup::new();
    output(setup.login());
    for round in 1..=3 {
        setup.expire();
        let before = setup.provider.token_requests();
        let children: Vec<Child> = (0..64).map(|_| start(setup.login())).collect();
        let results: Vec<_> =
            children.into_iter().map(|child| texts(&child.wait_with_output().unwrap())).collect();
        for (code, _, stderr) in &results {
            assert_eq!((*code, stderr.as_str()), (Some(0), ""), "round {round}");
        }
        let first = token(&results[0].1);
        assert!(results.iter().all(|(_, stdout, _)| token(stdout) == first), "one token for all");
        assert_eq!(setup.provider.token_requests() - before, 1, "one refresh");
        assert!(!setup.provider.state().is_over, "no refresh token was used twice");
    }
}

// L520, L521: the failure of one is the failure of all that waited.
#[test]
fn processes_that_wait_share_one_failure() {
    let setup = Setup::new();
    output(setup.login());
    setup.expire();
    let gate = Gate::new();
    setup.provider.answer_token(
        Answer::json(&json!({"error": "not_allowed", "error_description": "x"}))
            .with_status(400)
            .after(&gate),
    );
    let before = setup.provider.token_requests();
    let mut children = vec![start(setup.login())];
    wait::blocking(setup.provider.issuer.wait_until("a refresh", |log| {
        log.requests.iter().filter(|request| request.path() == "/token").count() > before
    }));
    children.extend((0..8).map(|_| start(setup.login())));
    wait_for_lock_waiters(&children[1..]);
    gate.open();
    let results: Vec<_> =
        children.into_iter().map(|child| texts(&child.wait_with_output().unwrap())).collect();
    for (code, _, stderr) in &results {
        assert_eq!(*code, Some(1), "{stderr}");
        assert!(stderr.contains("`not_allowed`"), "{stderr}");
    }
    let shared = results.iter().filter(|(_, _, stderr)| stderr.contains("asked by process")).count();
    assert_eq!(shared, 8, "{results:?}");
    assert_eq!(setup.provider.token_requests() - before, 1);
}

/// Waits until every process has slept several times, which it does only while it waits for the lock.
fn wait_for_lock_waiters(children: &[Child]) {
    const SLEEPS: u32 = 10;
    let is_waiting = |child: &Child| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.unwrap().trim().parse::<u32>().unwrap() >= SLEEPS
    };
    for _ in 0..6_000 {
        if children.iter().all(is_waiting) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the processes do not wait for the lock");
}

/// A login in a browser that the person has to open.
fn start_browser_login(setup: &Setup, limit: u32) -> Child {
    let mut command = setup.command(&["login"]);
    command.args(["--grant-type=authcode", "--skip-open-browser", "--prompt-when=always"]);
    command.arg(format!("--authentication-timeout-sec={limit}"));
    command.env("KUBERNETES_EXEC_INFO", INFO_V1).spawn().unwrap()
}

// L520, L521, L522, L1202
#[test]
fn sixteen_processes_that_are_not_answered_ask_once() {
    let setup = Setup::new();
    let children: Vec<Child> = (0..16).map(|_| start_browser_login(&setup, 2)).collect();
    let results: Vec<_> =
        children.into_iter().map(|child| texts(&child.wait_with_output().unwrap())).collect();
    let asked = results.iter().filter(|(_, _, stderr)| stderr.contains(", open http")).count();
    assert_eq!(asked, 1, "{results:?}");
    for (code, stdout, stderr) in &results {
        assert_eq!(*code, Some(1), "{stderr}");
        assert!(stderr.contains("login timed out after 2 s"), "{stderr}");
        assert!(stdout.contains("\"Failure\""), "{stdout}");
    }
}

// L525, L1204
#[test]
fn interrupted_login_ends_by_the_signal_and_releases_the_lock() {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::ExitStatusExt as _;
    let setup = Setup::new();
    let mut child = start_browser_login(&setup, 60);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains(", open http"), "{line}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    let state = files(&setup.cache()).into_iter().find(|(name, _)| name.ends_with(".state")).unwrap();
    let state: Value = serde_json::from_slice(&std::fs::read(setup.cache().join(state.0)).unwrap()).unwrap();
    assert_eq!((&state["outcome"], &state["phase"]), (&json!("interrupted"), &json!("idle")));
    let lock = files(&setup.cache()).into_iter().find(|(name, _)| name.ends_with(".lock")).unwrap();
    let lock = std::fs::File::open(setup.cache().join(lock.0)).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
}

// L501, L1315
#[test]
fn process_killed_during_a_refresh_leaves_a_readable_cache_and_no_lock() {
    let setup = Setup::new();
    setup.provider.state().rotates = false;
    output(setup.login());
    setup.expire();
    let entry = std::fs::read(setup.entry_path()).unwrap();
    let gate = Gate::new();
    setup.provider.answer_token(Answer::status(200).after(&gate));
    let before = setup.provider.token_requests();
    let mut child = start(setup.login());
    wait::blocking(setup.provider.issuer.wait_until("a refresh", |log| {
        log.requests.iter().filter(|request| request.path() == "/token").count() > before
    }));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(std::fs::read(setup.entry_path()).unwrap(), entry, "the entry is as before");
    gate.open();
    setup.provider.serve_honestly();
    let (code, stdout, stderr) = output(setup.login());
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(!token(&stdout).is_empty());
    assert_eq!(setup.entry()["history"]["refreshes"], json!(1), "renewed, not logged in again");
}

// L505, L1317, L1401
#[test]
fn no_token_or_secret_is_printed_except_to_the_client() {
    let setup = Setup::new();
    let mut verbose = setup.login();
    verbose.args(["-v9", "--tls-renegotiation-once"]).env("KUBERNETES_EXEC_INFO", INFO_V1);
    let (code, _, login_stderr) = output(verbose);
    assert_eq!(code, Some(0));
    assert!(login_stderr.starts_with("--tls-renegotiation-once has no effect\n"), "{login_stderr}");
    assert!(login_stderr.contains("/token: 200"), "{login_stderr}");
    setup.expire();
    let mut refresh = setup.login();
    refresh.arg("-v9").env("KUBERNETES_EXEC_INFO", INFO_V1);
    let (_, _, refresh_stderr) = output(refresh);
    assert!(
        refresh_stderr.contains("cache: no fresh token\n") && refresh_stderr.contains("refresh: ok, "),
        "{refresh_stderr}"
    );
    let (_, status_stdout, status_stderr) = output({
        let mut command = setup.program(Path::new(env!("CARGO_BIN_EXE_navicert")));
        command.args(["status", "-o", "json", &format!("--token-cache-dir={}", setup.cache().display())]);
        command
    });
    setup.expire();
    setup.provider.answer_token(Answer::json(&json!({"error": "not_allowed"})).with_status(400));
    let (code, failed_stdout, failed_stderr) = output(setup.login());
    assert_eq!(code, Some(1));
    setup.provider.serve_honestly();
    let (code, logout_stdout, logout_stderr) = output(setup.command(&["logout"]));
    assert_eq!(code, Some(0), "{logout_stderr}");
    let canaries = setup.canaries();
    for (what, text) in [
        ("stderr of a login", login_stderr),
        ("stderr of a refresh", refresh_stderr),
        ("status", status_stdout + &status_stderr),
        ("a failure", failed_stdout + &failed_stderr),
        ("logout", logout_stdout + &logout_stderr),
    ] {
        canaries.assert_absent(what, text.as_bytes());
    }
    let state_files = files(&setup.cache()).into_iter().filter(|(name, _)| name.ends_with(".state"));
    for (name, _) in state_files {
        canaries.assert_absent(&name, &std::fs::read(setup.cache().join(&name)).unwrap());
    }
}

// L403, L1101, L1104, L1105, L1106
#[test]
fn sessions_are_listed_ended_and_cleaned() {
    let setup = Setup::new();
    let cache = format!("--token-cache-dir={}", setup.cache().display());
    let verb = |arguments: &[&str]| {
        let mut command = setup.program(Path::new(env!("CARGO_BIN_EXE_navicert")));
        command.args(arguments).arg(&cache);
        output(command)
    };
    assert_eq!(verb(&["status"]), (Some(1), "no sessions\n".to_owned(), String::new()));
    output(setup.login());
    let (code, stdout, _) = verb(&["status"]);
    assert!(code == Some(0) && stdout.contains("ann@example.com"), "{stdout}");
    let (code, stdout, _) = verb(&["status", "-o", "json"]);
    let status: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &status["sessions"][0]["fresh"]), (Some(0), &json!(true)));
    std::fs::write(setup.cache().join("other.txt"), "kept").unwrap();
    assert_eq!(verb(&["login", "clean"]).1, "removed 1 session\n");
    assert!(setup.cache().join("other.txt").exists());
    assert!(!setup.provider.state().is_over, "clean asks no provider");
    output(setup.login());
    let (code, stdout, _) = output(setup.command(&["logout"]));
    assert!(code == Some(0) && stdout.contains("revoked") && stdout.contains("/end?client_id="), "{stdout}");
    assert!(!stdout.contains("id_token_hint"), "{stdout}");
    assert!(setup.provider.state().is_over);
    let (code, stdout, _) = output(setup.command(&["logout", "--local"]));
    assert!(code == Some(0) && stdout.starts_with("not logged in"), "{stdout}");
}

// L101, L204, L1101, L1106, L1110
#[test]
fn output_as_json_matches_the_schemas() {
    let setup = Setup::new();
    let checked = |schema: &str, verb: &[&str], arguments: &[String]| {
        let mut command = setup.program(Path::new(env!("CARGO_BIN_EXE_navicert")));
        command.args(verb).args(["-o", "json"]).args(arguments);
        let (code, stdout, stderr) = output(command);
        assert_eq!(code, Some(0), "{verb:?}: {stdout}{stderr}");
        let mut line: Vec<String> = verb.iter().map(|word| (*word).to_owned()).collect();
        line.extend(["-o", "json"].map(str::to_owned));
        line.extend_from_slice(arguments);
        let found = output_schema::check(&line, stdout.as_bytes());
        assert_eq!(found.unwrap_or_else(|problem| panic!("{verb:?}: {problem}")).as_deref(), Some(schema));
        serde_json::from_str::<Value>(&stdout).unwrap()
    };
    let cache = format!("--token-cache-dir={}", setup.cache().display());
    let mut login = setup.selection();
    login.push(format!("--password-file={}", setup.dir.path().join("password").display()));
    checked("login", &["login"], &login);
    let report = checked("login-setup", &["login", "setup"], &login);
    let issuer = &report["documents"]["authenticationConfiguration"]["jwt"][0]["issuer"];
    let root = std::fs::read_to_string(&setup.provider.ca_file).unwrap();
    assert_eq!(issuer["certificateAuthority"].as_str().unwrap().trim(), root.trim());
    let arguments = report["documents"]["kubeconfig"]["users"][0]["user"]["exec"]["args"].as_array().unwrap();
    assert!(login.iter().all(|flag| arguments.contains(&json!(flag))), "{arguments:?}");
    let sessions = checked("status", &["status"], std::slice::from_ref(&cache));
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
    checked("logout", &["logout"], &setup.selection());
    checked("login-clean", &["login", "clean"], &[cache]);
}
