//! `navicert signer` with keys in SoftHSM: transcripts, the printed kubeconfig used verbatim, a long-running signer, and
//! no PIN in any process (T42, T44).

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests; a signer runs beside the test"
)]

mod hsm_support;
#[path = "signer/request.rs"]
mod request;
#[path = "signer/setup.rs"]
mod setup;
#[path = "signer/terminal.rs"]
mod terminal;

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use navicert_testkit::cli::program::Outcome;
use navicert_testkit::cli::tools;
use navicert_testkit::cli::transcript::check_file;
use navicert_testkit::net::http_server::HttpServerBuilder;
use navicert_testkit::{ApiServer, Ca, Canaries, ClientAuth, KeyKind, Program, SoftHsm, TestContext};

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");
const PIN: &str = "canary-271828";

/// A token with one key for `ann`, and a server that demands a certificate of its authority.
struct Setup {
    hsm: SoftHsm,
    ca: Ca,
    api: ApiServer,
}

impl Setup {
    /// `None`, reported as skipped, if SoftHSM is not installed.
    fn new(kind: KeyKind) -> Option<Self> {
        Setup::with_server(kind, |builder| builder)
    }

    /// The same with other settings of the server.
    fn with_server(
        kind: KeyKind,
        change: impl FnOnce(HttpServerBuilder) -> HttpServerBuilder,
    ) -> Option<Self> {
        let hsm = SoftHsm::start("my token", PIN)?;
        let ca = Ca::new("root");
        let client_auth = ClientAuth::Required(ca.clone());
        let api = ApiServer::start_with(&ca, |builder| change(builder.client_auth(client_auth)));
        let key = hsm.generate(kind, "01", "work key");
        let chain = ca.client("ann").organization("developers").issue_for(&key.public_key);
        hsm.import_certificate(chain.first().unwrap(), "01", "work key");
        Some(Setup { hsm, ca, api })
    }

    /// A sandbox that sees the token, with a pinentry program that knows this PIN.
    fn context(&self, pin: &str) -> TestContext {
        let context = TestContext::new()
            .program("navicert", NAVICERT)
            .program("navicert-signer-pkcs11", hsm_support::signer())
            .variable("SOFTHSM2_CONF", self.hsm.configuration().to_str().unwrap())
            .replace(self.hsm.module().to_str().unwrap(), "[MODULE]")
            .filter("serial number [0-9a-f]+, slot [0-9]+", "serial number [SERIAL], slot [SLOT]")
            .filter("\"serial\": \"[0-9a-f]+\"", "\"serial\": \"[SERIAL]\"")
            .filter("\"slotId\": [0-9]+", "\"slotId\": \"[SLOT]\"")
            .filter("PKCS11 [0-9.]+", "PKCS11 [VERSION]")
            .filter("\"microseconds\": [0-9]+", "\"microseconds\": [TIME]")
            .filter(r"[0-9]+\.[0-9]{3} ms", "[TIME] ms");
        let pinentry = hsm_support::pinentry(&context.home(), pin);
        let run = context.home().join("run");
        std::fs::create_dir(&run).unwrap();
        std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o700)).unwrap();
        context
            .variable("NAVICERT_PINENTRY", pinentry.to_str().unwrap())
            .variable("XDG_RUNTIME_DIR", run.to_str().unwrap())
            .variable("NAVICERT_PKCS11_MODULE", self.hsm.module().to_str().unwrap())
    }

    /// `navicert gateway` in this home.
    fn gateway(&self, context: &TestContext) -> navicert_testkit::cli::program::Running {
        let signers = Path::new(NAVICERT).parent().unwrap().display().to_string();
        Program::new(NAVICERT)
            .arguments(["gateway"])
            .own_environment()
            .variable("PATH", format!("{signers}:/usr/bin:/bin"))
            .variable("HOME", context.home())
            .variable("SOFTHSM2_CONF", self.hsm.configuration())
            .variable("NAVICERT_PINENTRY", context.home().join("pinentry"))
            .variable("XDG_RUNTIME_DIR", context.home().join("run"))
            .start_running()
            .unwrap()
    }

    /// A kubeconfig and a kuberc with what `signer list` prints, and nothing of a key's added.
    fn paste(&self, context: &TestContext) {
        let listed = stdout(&context.run("navicert signer list"));
        hsm_support::paste(&listed, &context.home(), "ann", &self.api.url(), &self.ca.pem());
    }
}

fn stdout(outcome: &Outcome) -> String {
    let complaint = String::from_utf8_lossy(&outcome.stderr);
    assert_eq!(outcome.code(), Some(0), "{complaint}");
    String::from_utf8(outcome.stdout.clone()).unwrap()
}

fn times_asked(context: &TestContext) -> usize {
    std::fs::read_to_string(context.home().join("asked")).map_or(0, |text| text.lines().count())
}

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/signer").join(name)
}

#[test]
fn transcripts_equal_the_output_of_the_command_line() {
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    check_file(&page("keys.md"), setup.context(PIN));
    check_file(&page("request.md"), setup.context(PIN));
    let Some(setup) = Setup::new(KeyKind::Rsa2048) else { return };
    check_file(&page("wrong-pin.md"), setup.context("000000"));
    device_tool_prints_the_text_of_the_symptom(&setup);
    for name in ["keys.md", "wrong-pin.md"] {
        let text = std::fs::read_to_string(page(name)).unwrap();
        let mut canaries = Canaries::new();
        canaries.adopt("the PIN", PIN.as_bytes());
        canaries.assert_absent(name, text.as_bytes());
    }
}

/// docs/symptoms.md: with the same token and the same wrong PIN, the device's own tool prints what people search for.
fn device_tool_prints_the_text_of_the_symptom(setup: &Setup) {
    let symptoms = include_str!("../../../docs/symptoms.md");
    let row = symptoms.lines().find(|line| line.contains("<!-- signer/wrong-pin pkcs11-tool -->")).unwrap();
    let seen = row.split('`').nth(1).unwrap();
    let Some(tool) = tools::installed("opensc", "pkcs11-tool") else { return };
    let module = setup.hsm.module().to_str().unwrap();
    let mut program = Program::new(tool)
        .arguments(["--module", module, "--token-label", setup.hsm.label(), "--pin", "000000", "--login"])
        .arguments(["--list-objects"])
        .merged();
    for (name, value) in setup.hsm.variables() {
        program = program.variable(name, value);
    }
    let outcome = program.run().unwrap();
    let printed = String::from_utf8_lossy(&outcome.stdout);
    assert!(outcome.code() != Some(0) && printed.contains(seen), "`{seen}`: {printed}");
}

#[test]
fn output_of_signer_list_works_when_pasted() {
    for kind in [KeyKind::Rsa2048, KeyKind::EcP256, KeyKind::EcP384, KeyKind::Ed25519] {
        let Some(setup) = Setup::new(kind) else { return };
        let context = setup.context(PIN);
        setup.paste(&context);
        let response = stdout(&context.run("navicert whoami"));
        assert!(response.starts_with("username  ann\n"), "{kind:?}: {response}");
        assert_eq!(times_asked(&context), 1, "one signature, one PIN");
        let client = setup.api.requests().first().unwrap().client.clone().unwrap();
        assert_eq!(client.common_name, "ann");
    }
}

#[test]
fn signer_is_denied_without_a_kuberc_entry() {
    // X1, T42
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let context = setup.context(PIN);
    setup.paste(&context);
    let kuberc = context.home().join(".kube/kuberc");
    let allowed = std::fs::read_to_string(&kuberc).unwrap();
    std::fs::remove_file(&kuberc).unwrap();
    let denied = context.run("navicert whoami");
    let complaint = String::from_utf8_lossy(&denied.stderr).into_owned();
    assert_eq!(denied.code(), Some(5), "{complaint}");
    assert!(
        complaint.contains("credentialPluginAllowlist:\n- command: \"navicert-signer-pkcs11\""),
        "{complaint}"
    );
    // Another module than the one that is allowed.
    std::fs::write(&kuberc, allowed.replace("libsofthsm2.so", "other.so")).unwrap();
    assert_eq!(context.run("navicert whoami").code(), Some(5));
    assert_eq!(times_asked(&context), 0);
    std::fs::write(&kuberc, allowed).unwrap();
    assert_eq!(context.run("navicert whoami").code(), Some(0));
}

/// `navicert signer serve`, until dropped.
struct Serving(Child);

impl Serving {
    fn start(setup: &Setup, context: &TestContext) -> Self {
        let mut child = Command::new(NAVICERT)
            .args(["signer", "serve", "pkcs11:token=my%20token;id=%01;type=private"])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", context.home())
            .env("SOFTHSM2_CONF", setup.hsm.configuration())
            .env("NAVICERT_PKCS11_MODULE", setup.hsm.module())
            .env("NAVICERT_PINENTRY", context.home().join("pinentry"))
            .env("XDG_RUNTIME_DIR", context.home().join("run"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("signing with 1 key at "), "{line}");
        Serving(child)
    }

    fn stop(mut self) {
        let script = format!("kill -TERM {}", self.0.id());
        assert!(Program::new("/bin/sh").arguments(["-c", &script]).run().unwrap().status.success());
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn running_signer_needs_one_pin_for_all_clients() {
    // C885
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let context = setup.context(PIN);
    setup.paste(&context);
    let serving = Serving::start(&setup, &context);
    assert_eq!(times_asked(&context), 1);
    for _ in 0..3 {
        assert!(stdout(&context.run("navicert whoami")).starts_with("username  ann\n"));
    }
    assert_eq!(times_asked(&context), 1, "no second PIN prompt");
    let second = context.run("navicert signer serve 'pkcs11:token=my%20token;id=%01'");
    let complaint = String::from_utf8_lossy(&second.stderr);
    assert!(complaint.contains("a signer is already listening"), "{complaint}");
    assert_eq!(second.code(), Some(1), "as for every address in use");
    #[cfg(target_os = "linux")]
    for name in ["cmdline", "environ"] {
        // If the process is not dumpable, no other process of the user can read it either.
        let seen = std::fs::read(format!("/proc/{}/{name}", serving.0.id())).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&seen).contains(PIN), "{name}");
    }
    let socket = context.home().join("run/navicert/signer.sock");
    assert_eq!(std::fs::symlink_metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    serving.stop();
    assert!(!socket.exists());
    assert!(stdout(&context.run("navicert whoami")).starts_with("username  ann\n"), "without it, by itself");
}

#[test]
fn unmodified_kubectl_uses_the_key_without_access_to_it() {
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let Some(context) = with_kubectl(&setup) else { return };
    assert!(stdout(&context.run("navicert run -- kubectl get --raw /version")).contains("gitVersion"));
    let clients = setup.api.requests().into_iter().map(|request| request.client.unwrap().common_name);
    assert!(clients.collect::<Vec<_>>().contains(&"ann".to_owned()));
    // What the command itself can look at: its environment, its arguments, its kubeconfig.
    let script = "cat /proc/self/environ /proc/$PPID/cmdline \"$KUBECONFIG\"";
    let seen = context.run(&format!("navicert run -- sh -c '{script}'"));
    let mut canaries = Canaries::new();
    canaries.adopt("the PIN", PIN.as_bytes());
    canaries.assert_absent("what a command sees", &seen.stdout);
    assert!(String::from_utf8_lossy(&seen.stdout).contains("127.0.0.1"), "it did look");
}

#[test]
fn removed_token_is_reported_and_works_again_after_insertion() {
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let context = setup.context(PIN);
    setup.paste(&context);
    let serving = Serving::start(&setup, &context);
    assert_eq!(context.run("navicert whoami").code(), Some(0));
    let tokens = setup.hsm.configuration().parent().unwrap().join("tokens");
    let away = tokens.with_extension("away");
    std::fs::rename(&tokens, &away).unwrap();
    std::fs::create_dir(&tokens).unwrap();
    let gone = context.run("navicert whoami");
    let complaint = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert_ne!(gone.code(), Some(0));
    assert!(complaint.contains("NoDevice") && complaint.contains("was removed"), "{complaint}");
    std::fs::remove_dir(&tokens).unwrap();
    std::fs::rename(&away, &tokens).unwrap();
    assert_eq!(context.run("navicert whoami").code(), Some(0));
    drop(serving);
}

/// The directory of SoftHSM's tokens, moved away while this lives.
struct TokenRemoved(PathBuf);

impl TokenRemoved {
    fn take(setup: &Setup) -> Self {
        let tokens = setup.hsm.configuration().parent().unwrap().join("tokens");
        std::fs::rename(&tokens, tokens.with_extension("away")).unwrap();
        std::fs::create_dir(&tokens).unwrap();
        TokenRemoved(tokens)
    }
}

impl Drop for TokenRemoved {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.0).unwrap();
        std::fs::rename(self.0.with_extension("away"), &self.0).unwrap();
    }
}

fn with_kubectl(setup: &Setup) -> Option<TestContext> {
    let context = setup.context(PIN).program("kubectl", tools::kubectl()?);
    setup.paste(&context);
    Some(context)
}

// C845: an open connection needs no token; the next handshake does, and the error reaches the kubectl user.
#[test]
fn token_removed_under_a_gateway_fails_the_next_handshake_only() {
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let Some(context) = with_kubectl(&setup) else { return };
    let serving = Serving::start(&setup, &context);
    let gateway = setup.gateway(&context);
    let told = navicert_testkit::wait::blocking(gateway.wait_for_output("\n"));
    let get = format!("kubectl --kubeconfig {} get --raw /version", told.trim());
    let succeeds = |when: &str| assert!(stdout(&context.run(&get)).contains("gitVersion"), "{when}");
    succeeds("with the token");
    let away = TokenRemoved::take(&setup);
    succeeds("over the connection that is there");
    assert_eq!(setup.api.connections().len(), 1);
    setup.api.cut_connections(navicert_testkit::Cut::Reset);
    let gone = context.run(&get);
    let complaint = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert_eq!(gone.code(), Some(1), "{complaint}");
    assert!(complaint.contains("token `my token` was removed"), "{complaint}");
    drop(away);
    succeeds("with the token again");
    assert_eq!(times_asked(&context), 2, "the device was away, so its PIN was needed once more");
    drop(serving);
}

// C845: without a signer that stays, every signature asks for the PIN, so the questions are the signatures, or the touches.
#[test]
fn commands_that_share_a_gateway_need_one_touch() {
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let Some(context) = with_kubectl(&setup) else { return };
    let run = |flags: &str| {
        let line = format!("navicert run {flags} -- kubectl get --raw /version");
        assert!(stdout(&context.run(&line)).contains("gitVersion"));
    };
    for count in 1..=2 {
        run("");
        assert_eq!(
            times_asked(&context),
            count,
            "each has a gateway, a connection and a signature of its own"
        );
    }
    let gateway = setup.gateway(&context);
    navicert_testkit::wait::blocking(gateway.wait_for_output("\n"));
    for _ in 0..4 {
        run("--gateway auto");
    }
    assert_eq!(times_asked(&context), 3, "one for all four");
}

/// Debian's kubectl, and a current one where it is installed.
fn kubectls() -> Vec<PathBuf> {
    let Some(debian) = tools::kubectl() else { return Vec::new() };
    let installed = ["/usr/local/bin/kubectl", "/usr/bin/kubectl"].map(PathBuf::from);
    std::iter::once(debian).chain(installed.into_iter().find(|path| path.exists())).collect()
}

#[test]
fn incorrect_pin_is_reported_once_and_tried_once() {
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let context = setup.context("000000");
    setup.paste(&context);
    for kubectl in kubectls() {
        let _ = std::fs::remove_file(context.home().join("asked"));
        for arguments in ["get pods", "get --raw /version"] {
            let failed = context.run(&format!("navicert run -- {} {arguments}", kubectl.display()));
            let complaint = String::from_utf8_lossy(&failed.stderr).into_owned();
            assert_eq!(failed.code(), Some(1), "{complaint}");
            let cause = "incorrect PIN for token `my token`";
            assert_eq!(complaint.matches(cause).count(), 1, "{arguments}: {complaint}");
        }
        assert_eq!(times_asked(&context), 2, "once per run");
    }
}

#[test]
fn missing_token_and_invalid_signer_response_are_reported_to_the_kubectl_user() {
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let Some(context) = with_kubectl(&setup) else { return };
    let run = "navicert run -- kubectl get --raw /version";
    let complains = |of: &str| {
        let failed = context.run(run);
        let complaint = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!(failed.code(), Some(1), "{complaint}");
        assert!(complaint.contains(of), "{complaint}");
        complaint
    };
    let away = TokenRemoved::take(&setup);
    complains("PKCS#11 token not found: `my token`; check that the device is plugged in");
    drop(away);
    let nonsense = context.home().join("nonsense");
    std::fs::write(&nonsense, "#!/bin/sh\nprintf '\\033[2Jcanary-nonsense\\n'\n").unwrap();
    std::fs::set_permissions(&nonsense, std::fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["config", "kuberc"] {
        let path = context.home().join(".kube").join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let replaced = text.replace("navicert-signer-pkcs11", nonsense.to_str().unwrap());
        assert_ne!(text, replaced);
        std::fs::write(&path, replaced).unwrap();
    }
    let complaint = complains("invalid response from signer");
    assert!(!complaint.contains("canary"), "{complaint}");
    assert!(setup.api.requests().is_empty());
}

// A second user of the machine gets no signature, even if the socket's mode is too permissive.
#[test]
fn other_user_cannot_use_a_running_signer() {
    if let Some(socket) = std::env::var_os("NAVICERT_TEST_SOCKET") {
        return as_the_other_user(Path::new(&socket));
    }
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let context = setup.context(PIN);
    let _serving = Serving::start(&setup, &context);
    let socket = context.home().join("run/navicert/signer.sock");
    let other = Program::new("setpriv")
        .arguments(["--reuid=nobody", "--clear-groups", "--"])
        .arguments([std::env::current_exe().unwrap()])
        .arguments(["other_user_cannot_use_a_running_signer", "--exact", "--nocapture"])
        .directory(Path::new("/"))
        .variable("NAVICERT_TEST_SOCKET", &socket);
    let said = |expected: &str| {
        let Ok(outcome) = other.run() else { return false };
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&outcome.stdout),
            String::from_utf8_lossy(&outcome.stderr)
        );
        if said.contains("setpriv") {
            return false;
        }
        assert!(outcome.status.success() && said.contains(expected), "{said}");
        true
    };
    if !said("cannot connect") {
        return say("not root, or no second user: nothing to see here");
    }
    let home = context.home();
    for dir in [home.parent().unwrap(), &home, &home.join("run"), &home.join("run/navicert")] {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(said("connected and heard nothing"));
}

/// Asks for a certificate, which needs no PIN, and says what came of it.
fn as_the_other_user(socket: &Path) {
    use std::io::{Read as _, Write as _};
    let Ok(mut stream) = std::os::unix::net::UnixStream::connect(socket) else {
        return say("cannot connect");
    };
    let request = r#"{"apiVersion":"external-signer.authentication.k8s.io/v1","kind":"CertificateRequest","configuration":{"uri":"pkcs11:token=my%20token;id=%01;type=private"},"interactive":false}"#;
    let _ = stream.write_all(format!("{request}\n").as_bytes());
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    say(if response.is_empty() { "connected and heard nothing" } else { "was answered" });
}

fn say(text: &str) {
    use std::io::Write as _;
    std::io::stdout().write_all(format!("{text}\n").as_bytes()).unwrap();
}
