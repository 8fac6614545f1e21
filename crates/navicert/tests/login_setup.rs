//! `navicert login setup --write` as a process: what it writes into a kubeconfig, what it asks, and what it refuses.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests, which run the program itself"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use navicert_testkit::cli::output_schema;
use navicert_testkit::services::login_provider::CLIENT;
use navicert_testkit::{LoginProvider, Program, wait};
use serde_json::{Value, json};

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");

struct Setup {
    dir: tempfile::TempDir,
    provider: LoginProvider,
}

impl Setup {
    fn new(kubeconfig: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let provider = LoginProvider::start(dir.path());
        fs::write(dir.path().join("password"), "canary-password\n").unwrap();
        fs::create_dir(dir.path().join(".kube")).unwrap();
        let setup = Setup { dir, provider };
        fs::write(setup.config(), kubeconfig).unwrap();
        setup
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join(".kube/config")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.config()).unwrap()
    }

    /// Flags of a login that needs no person.
    fn flags(&self) -> Vec<String> {
        vec![
            format!("--oidc-issuer-url={}", self.provider.issuer.issuer_url()),
            format!("--oidc-client-id={CLIENT}"),
            format!("--certificate-authority={}", self.provider.ca_file.display()),
            "--username=ann".to_owned(),
            format!("--password-file={}", self.dir.path().join("password").display()),
        ]
    }

    /// Runs `navicert login setup`; exit code, standard output and error.
    fn run<S: AsRef<str>>(&self, flags: &[S]) -> (Option<i32>, String, String) {
        let mut command = Command::new(NAVICERT);
        command.env_clear().env("HOME", self.dir.path()).stdin(Stdio::null());
        command.args(["login", "setup"]).args(flags.iter().map(AsRef::as_ref));
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let found = (output.status.code(), text(output.stdout), text(output.stderr));
        assert!(!format!("{found:?}").contains("canary"), "{found:?}");
        found
    }

    fn write(&self, flags: &[&str]) -> (Option<i32>, String, String) {
        let own = self.flags();
        let words: Vec<&str> =
            own.iter().map(String::as_str).chain(["--write"]).chain(flags.iter().copied()).collect();
        self.run(&words)
    }

    fn logins(&self) -> usize {
        self.provider.token_requests()
    }
}

const CONFIG: &str = "\
# my clusters
apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: 'https://127.0.0.1:1'}}
users:
- name: old # until June
  user:
    token: canary-token
contexts:
- name: prod
  context:
    cluster: c
    user: old # for now
current-context: prod
";

// L1112
#[test]
fn user_is_written_and_the_context_uses_it() {
    let setup = Setup::new(CONFIG);
    let (code, stdout, stderr) = setup.write(&["--yes", "--user=ann", "--context=prod"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(stdout.contains("+- name: ann\n") && stdout.contains("the previous file is"), "{stdout}");
    let text = setup.text();
    let (before, rest) = text.split_once("- name: ann\n").unwrap();
    assert!(CONFIG.starts_with(before), "{text}");
    assert!(rest.contains("    user: ann # for now\ncurrent-context: prod\n"), "{text}");
    assert!(
        rest.contains("      command: navicert\n") && rest.contains("provideClusterInfo: true"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(setup.dir.path().join(".kube/config.bak")).unwrap(), CONFIG);
    // The same again changes nothing.
    let (code, stdout, _) = setup.write(&["--yes", "--user=ann", "--context=prod"]);
    assert_eq!((code, setup.text()), (Some(0), text));
    assert!(stdout.contains("the kubeconfig has this user already"), "{stdout}");
    // A client understands what was written.
    let check = Command::new(NAVICERT)
        .env_clear()
        .env("HOME", setup.dir.path())
        .args(["kubeconfig", "check"])
        .output()
        .unwrap();
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stderr));
}

// L1112
#[test]
fn without_a_terminal_nothing_is_written_unless_agreed() {
    let setup = Setup::new(CONFIG);
    let (code, stdout, stderr) = setup.write(&[]);
    assert_eq!((code, setup.text().as_str()), (Some(5), CONFIG), "{stdout}{stderr}");
    assert!(stdout.contains("+- name: oidc\n") && stderr.contains("add `--yes`"), "{stdout}{stderr}");
    let (code, stdout, _) = setup.write(&["-o", "json"]);
    assert_eq!(code, Some(5));
    let report: Value = serde_json::from_str(&stdout).unwrap();
    output_schema::check(
        &["login".to_owned(), "setup".to_owned(), "-o".to_owned(), "json".to_owned()],
        stdout.as_bytes(),
    )
    .unwrap();
    let file = &report["files"][0];
    assert_eq!((&file["action"], &file["written"]), (&json!("change"), &json!(false)));
    assert!(file["diff"].as_str().unwrap().starts_with("--- "), "{file}");
}

// L1112: refused before anyone has to log in.
#[test]
fn other_content_and_unknown_contexts_are_refused_before_the_login() {
    let setup = Setup::new(CONFIG);
    for (flags, expected, exit) in [
        (&["--yes", "--user=old"][..], "user `old` exists in", 1),
        (&["--yes", "--context=none"], "unknown context `none`", 3),
        (&["--yes", "--kubeconfig=/dev/null/x"], "failed to read `/dev/null/x`", 3),
        (&["--exec-api-version=v2"], "expected v1 or v1beta1", 2),
    ] {
        let (code, stdout, stderr) = setup.write(flags);
        assert_eq!(code, Some(exit), "{flags:?}: {stdout}{stderr}");
        assert!(stderr.contains(expected), "{flags:?}: {stderr}");
    }
    for (flags, expected) in [
        (&["--yes"][..], "--yes needs --write"),
        (&["--context=prod"], "--context needs --write"),
        (&["--from-kubelogin", "--from-auth-provider"], "contradicts"),
    ] {
        let (code, _, stderr) = setup.run(flags);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
    assert_eq!((setup.logins(), setup.text().as_str()), (0, CONFIG));
    let (code, stdout, stderr) = setup.write(&["--yes", "--user=old", "--force"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("-    token: REDACTED"), "{stdout}");
    assert!(setup.text().contains("- name: old # until June\n  user:\n    exec:\n"), "{}", setup.text());
}

// L1112
#[test]
fn missing_kubeconfig_is_created() {
    let setup = Setup::new("");
    fs::remove_file(setup.config()).unwrap();
    fs::remove_dir(setup.config().parent().unwrap()).unwrap();
    let (code, stdout, stderr) =
        setup.write(&["--yes", "--exec-api-version=v1beta1", "--authn-api-version=v1"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(
        setup.text().starts_with("apiVersion: v1\nkind: Config\nusers:\n- name: oidc\n"),
        "{}",
        setup.text()
    );
    assert!(setup.text().contains("client.authentication.k8s.io/v1beta1"));
    assert!(stdout.contains("\"apiserver.config.k8s.io/v1\""), "{stdout}");
}

/// A user that runs kubelogin, which the context `prod` uses.
fn kubelogin_user(flags: &[String]) -> String {
    let args: String = flags.iter().map(|flag| format!("      - {flag}\n")).collect();
    CONFIG.replace(
        "    token: canary-token\n",
        &format!("    exec:\n      apiVersion: client.authentication.k8s.io/v1beta1\n      command: kubectl\n      args:\n      - oidc-login\n      - get-token\n{args}"),
    )
}

// L1113
#[test]
fn user_of_kubelogin_becomes_a_user_of_navicert() {
    let setup = Setup::new("");
    let mut flags = setup.flags();
    flags.truncate(3);
    fs::write(setup.config(), kubelogin_user(&flags)).unwrap();
    let password = format!("--password-file={}", setup.dir.path().join("password").display());
    let more = ["--username=ann", password.as_str()];
    let (code, stdout, stderr) = setup.run(&[&["--from-kubelogin", "--write", "--yes"][..], &more].concat());
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stderr.contains("user `old` exists in"), "{stderr}");
    let (code, stdout, stderr) =
        setup.run(&[&["--from-kubelogin=old", "--write", "--yes", "--force"][..], &more].concat());
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let text = setup.text();
    assert!(
        text.contains("- name: old # until June\n") && text.contains("      command: navicert\n"),
        "{text}"
    );
    assert!(
        text.contains("--listen-address=127.0.0.1:8000")
            && text.contains("--oidc-redirect-url=http://localhost:8000"),
        "{text}"
    );
    assert!(!text.contains("get-token"), "{text}");
    for (flags, expected) in [
        (&["--from-auth-provider"][..], "user `old` has no `auth-provider` named `oidc`"),
        (&["--from-kubelogin=none"], "unknown user `none`"),
        (&["--from-kubelogin", "--context=none"], "unknown context `none`"),
    ] {
        let (code, _, stderr) = setup.run(flags);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}

// L1113
#[test]
fn variables_of_a_kubelogin_user_are_used_and_kept() {
    let setup = Setup::new("");
    let mut flags = setup.flags();
    flags.truncate(3);
    let folder = setup.dir.path().join("kube-cache");
    let env = format!(
        "      env:\n      - {{name: KUBECACHEDIR, value: {}}}\n      - {{name: HTTPS_PROXY, value: 'http://u:canary-p@127.0.0.1:1'}}\n",
        folder.display()
    );
    fs::write(setup.config(), kubelogin_user(&flags).replace("contexts:\n", &format!("{env}contexts:\n")))
        .unwrap();
    let password = format!("--password-file={}", setup.dir.path().join("password").display());
    let from = ["--from-kubelogin", "--username=ann", password.as_str()];
    let (code, stdout, stderr) = setup.run(&from);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(folder.join("navicert-login").is_dir(), "the login runs with the variables of the user");
    assert!(stdout.contains(&format!("--exec-env=KUBECACHEDIR={}", folder.display())), "{stdout}");
    assert!(stdout.contains("kept by --write: the variable HTTPS_PROXY"), "{stdout}");
    let (code, stdout, stderr) = setup.run(&[&from[..], &["--write", "--yes", "--force"]].concat());
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let text = setup.text();
    assert!(text.contains("command: navicert") && text.contains("canary-p@127.0.0.1:1"), "{text}");
    assert!(text.contains(folder.to_str().unwrap()), "{text}");
}

// L1113
#[test]
fn settings_of_the_auth_provider_are_taken_without_its_tokens() {
    let setup = Setup::new("");
    let provider = format!(
        "    auth-provider:\n      name: oidc\n      config:\n        idp-issuer-url: {}\n        client-id: {CLIENT}\n        idp-certificate-authority: {}\n        id-token: canary-id\n        refresh-token: canary-refresh\n",
        setup.provider.issuer.issuer_url(),
        setup.provider.ca_file.display()
    );
    fs::write(setup.config(), CONFIG.replace("    token: canary-token\n", &provider)).unwrap();
    let password = format!("--password-file={}", setup.dir.path().join("password").display());
    let (code, stdout, stderr) =
        setup.run(&["--from-auth-provider", "--write", "--yes", "--user=ann", "--username=ann", &password]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(
        setup.text().contains("- name: ann\n") && setup.text().contains("canary-refresh"),
        "{}",
        setup.text()
    );
}

/// Types into `navicert login setup` on a terminal.
fn in_terminal(setup: &Setup, flags: &[String]) -> navicert_testkit::cli::program::Running {
    let line = format!("navicert login setup {}; echo ex''it $?", flags.join(" "));
    let programs = Path::new(NAVICERT).parent().unwrap().display().to_string();
    Program::new("script")
        .arguments(["-qec", "sh"])
        .arguments([setup.dir.path().join("typescript")])
        .own_environment()
        .variable("PATH", format!("{programs}:/usr/bin:/bin"))
        .variable("TERM", "xterm")
        .variable("HOME", setup.dir.path())
        .stdin(format!("{line}\n"))
        .start_running()
        .unwrap()
}

// L1112
#[test]
fn person_at_the_terminal_sees_the_change_and_decides() {
    for (answer, exit) in [("n\n", "exit 1"), ("\n", "exit 1"), ("y\n", "exit 0")] {
        let setup = Setup::new(CONFIG);
        let flags: Vec<String> = setup.flags().into_iter().chain(["--write".to_owned()]).collect();
        let running = in_terminal(&setup, &flags);
        let shown = wait::blocking(running.wait_for_output("Write this?"));
        assert!(shown.contains("+- name: oidc") && !shown.contains("canary-token"), "{shown}");
        running.type_in(answer);
        wait::blocking(running.wait_for_output(exit));
        assert_eq!(setup.text() != CONFIG, answer == "y\n", "{answer:?}");
    }
}
