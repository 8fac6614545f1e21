//! `navicert exec-plugin keep`: one run of the plugin for many commands, over real processes and with kubectl.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use navicert_testkit::cli::process::{Process, contains};
use navicert_testkit::cli::program::Outcome;
use navicert_testkit::cli::tools;
use navicert_testkit::cli::transcript::check_file;
use navicert_testkit::k8s::kubeconfig::Kubeconfig;
use navicert_testkit::{ApiServer, Ca, FakeExecPlugin, Program, TestContext};
use navicert_types::{Clock as _, SystemClock};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");
const V1BETA1: &str = "client.authentication.k8s.io/v1beta1";
const INFO: &str = r#"{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","spec":{"interactive":false}}"#;

/// A plugin, and a runtime directory for its keeper. The keeper is ended on drop.
struct Setup {
    home: TempDir,
    fake: FakeExecPlugin,
    plugin: PathBuf,
}

fn status(token: &str) -> Value {
    let expires = SystemClock.now() + std::time::Duration::from_secs(3600);
    json!({"token": token, "expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()})
}

impl Setup {
    fn new(answer: impl FnMut(usize) -> Value + Send + 'static) -> Self {
        let home = tempfile::tempdir().unwrap();
        let fake = FakeExecPlugin::start_in(V1BETA1, answer);
        let plugin = fake.write_plugin(home.path());
        let run = home.path().join("run");
        fs::create_dir(&run).unwrap();
        fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).unwrap();
        Setup { home, fake, plugin }
    }

    fn with_tokens() -> Self {
        Setup::new(|run| status(&format!("canary-token-{run}")))
    }

    fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Program {
        Program::new(program)
            .own_environment()
            .directory(self.home.path())
            .variable("PATH", "/usr/bin:/bin")
            .variable("HOME", self.home.path())
            .variable("XDG_RUNTIME_DIR", self.home.path().join("run"))
    }

    /// Runs it from a client of its own, as every kubectl command is one.
    fn keep(&self, flags: &str) -> Outcome {
        let script = format!("{NAVICERT} exec-plugin keep {flags} -- {}; exit $?", self.plugin.display());
        self.program("sh").arguments(["-c", &script]).variable("KUBERNETES_EXEC_INFO", INFO).run().unwrap()
    }

    fn token(&self, flags: &str) -> String {
        let outcome = self.keep(flags);
        let stderr = String::from_utf8_lossy(&outcome.stderr);
        assert_eq!((outcome.code(), &*stderr), (Some(0), ""));
        let answer: Value = serde_json::from_slice(&outcome.stdout).unwrap();
        answer.pointer("/status/token").and_then(Value::as_str).unwrap().to_owned()
    }

    fn clear(&self) -> String {
        let clear = self.program(NAVICERT).arguments(["exec-plugin", "keep", "--clear"]);
        String::from_utf8(clear.run().unwrap().stdout).unwrap()
    }

    /// The processes that keep answers for this runtime directory.
    fn keepers(&self) -> Vec<Process> {
        let socket = self.home.path().join("run/navicert/exec-plugin.sock");
        let numbers = fs::read_dir("/proc").unwrap().flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_keeper = |process: &Process| {
            let arguments = process.arguments().unwrap_or_default();
            contains(&arguments, b"keeper\0") && contains(&arguments, socket.as_os_str().as_encoded_bytes())
        };
        numbers.map(Process).filter(is_keeper).collect()
    }

    fn signal(&self, signal: Signal) {
        for Process(keeper) in self.keepers() {
            let keeper = Pid::from_raw(keeper.try_into().unwrap()).unwrap();
            kill_process(keeper, signal).unwrap();
        }
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        self.clear();
    }
}

#[test]
fn transcript_equals_the_output_of_the_command_line() {
    let context = TestContext::new().program("navicert", NAVICERT);
    let run = context.home().join("run");
    fs::create_dir(&run).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/exec-plugin/keep.md");
    check_file(&page, context.variable("XDG_RUNTIME_DIR", run.to_str().unwrap()));
}

#[test]
fn second_command_gets_the_answer_of_the_first() {
    let setup = Setup::with_tokens();
    for _ in 0..3 {
        assert_eq!(setup.token(""), "canary-token-1");
    }
    assert_eq!(setup.fake.runs().len(), 1);
    assert_eq!(setup.token("--max-age 0s"), "canary-token-2", "no answer is young enough");
    assert_eq!(setup.token("--drop-env FOO --max-age=5m"), "canary-token-2");
    assert_eq!(setup.clear(), "removed 1 answer\n");
    assert_eq!(setup.clear(), "no answer was kept\n");
    assert_eq!(setup.token(""), "canary-token-3");
}

#[test]
fn parallel_commands_share_one_run() {
    let setup = Setup::with_tokens();
    thread::scope(|scope| {
        let commands: Vec<_> = (0..24).map(|_| scope.spawn(|| setup.token(""))).collect();
        for command in commands {
            assert_eq!(command.join().unwrap(), "canary-token-1");
        }
    });
    assert_eq!(setup.fake.runs().len(), 1);
    assert_eq!(setup.keepers().len(), 1);
}

#[test]
fn answer_is_in_the_keepers_memory_only() {
    let setup = Setup::with_tokens();
    let lock = setup.home.path().join("lock");
    let keep = format!("{NAVICERT} exec-plugin keep -- {}", setup.plugin.display());
    let script = format!("exec 9>{0} 63>{0}; flock 9; {keep}", lock.display());
    assert_eq!(setup.program("bash").arguments(["-c", &script]).run().unwrap().code(), Some(0));
    let [keeper] = setup.keepers().try_into().unwrap();
    assert!(fs::File::open(&lock).unwrap().try_lock().is_ok(), "a lock of the client is released");
    if geteuid().is_root() {
        assert_inherits_nothing(keeper, &lock);
    } else {
        let error = keeper.environment().unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::PermissionDenied,
            "other processes of the user cannot look inside"
        );
    }
    let directory = setup.home.path().join("run/navicert");
    let files: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["exec-plugin.sock"]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&directory), mode(&directory.join("exec-plugin.sock"))), (0o700, 0o600));
}

/// Only root may read this of a process that is not dumpable.
fn assert_inherits_nothing(keeper: Process, lock: &Path) {
    assert!(keeper.environment().unwrap().is_empty(), "no variable");
    let descriptors = fs::read_dir(format!("/proc/{}/fd", keeper.0)).unwrap();
    let mut links = descriptors.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    assert!(!links.any(|link| link == lock), "no descriptor");
    let streams: Vec<_> =
        ["1", "2"].map(|stream| fs::read_link(format!("/proc/{}/fd/{stream}", keeper.0)).unwrap()).into();
    assert_eq!(streams, [Path::new("/dev/null"); 2]);
    assert_eq!(fs::read_link(format!("/proc/{}/cwd", keeper.0)).unwrap(), Path::new("/"));
}

#[test]
fn dead_or_stopped_keeper_does_not_stop_a_command() {
    let setup = Setup::with_tokens();
    setup.token("");
    setup.signal(Signal::KILL);
    assert_eq!(setup.token(""), "canary-token-2", "its answers are gone with it");
    assert_eq!(setup.token(""), "canary-token-2", "and another one was started");
    setup.signal(Signal::STOP);
    assert_eq!(setup.token(""), "canary-token-3", "the plugin runs as without a keeper");
    setup.signal(Signal::KILL);
}

#[test]
fn failures_keep_their_exit_code_and_output_and_are_not_kept() {
    let setup = Setup::with_tokens();
    let failing = setup.home.path().join("failing");
    fs::write(&failing, "#!/bin/sh\necho run >>runs\necho said >&2\necho printed\nexit 3\n").unwrap();
    fs::set_permissions(&failing, fs::Permissions::from_mode(0o755)).unwrap();
    let keep = |words: &[&str]| {
        let outcome = setup.program(NAVICERT).arguments(["exec-plugin", "keep", "--"]).arguments(words).run();
        let outcome = outcome.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (outcome.code().unwrap(), text(&outcome.stdout), text(&outcome.stderr))
    };
    for _ in 0..2 {
        assert_eq!(keep(&["./failing"]), (3, "printed\n".to_owned(), "said\n".to_owned()));
    }
    assert_eq!(fs::read_to_string(setup.home.path().join("runs")).unwrap(), "run\nrun\n");
    let (code, stdout, stderr) = keep(&["no-such-plugin"]);
    assert_eq!((code, stdout.as_str()), (127, ""));
    assert!(stderr.starts_with("error: ") && stderr.contains("no-such-plugin"), "{stderr}");
    let kuberc = setup.home.path().join(".kube/kuberc");
    fs::create_dir(kuberc.parent().unwrap()).unwrap();
    fs::write(
        &kuberc,
        "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ncredentialPluginPolicy: DenyAll\n",
    )
    .unwrap();
    let (code, _, stderr) = keep(&["./failing"]);
    assert_eq!(code, 5, "{stderr}");
}

/// kubectl runs the plugin again when the server refuses the token, and then it gets another one.
#[test]
fn kubectl_gets_a_new_answer_after_a_401() {
    let Some(kubectl) = tools::kubectl() else { return };
    let setup = Setup::with_tokens();
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("canary-token-1", "ann", &[]);
    api.accept_token("canary-token-2", "ann", &[]);
    let user = json!({"exec": {
        "apiVersion": V1BETA1, "interactiveMode": "Never", "command": NAVICERT,
        "args": ["exec-plugin", "keep", "--", setup.plugin.to_str().unwrap()],
    }});
    let config = Kubeconfig::new(api.url()).ca(&ca).user(user).write(setup.home.path().join("config"));
    let get = || {
        let command = setup.program(&kubectl).arguments(["get", "--raw", "/version"]);
        command.variable("KUBECONFIG", &config).run().unwrap()
    };
    for _ in 0..3 {
        let outcome = get();
        assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    }
    assert_eq!(setup.fake.runs().len(), 1);
    api.revoke_token("canary-token-1");
    assert_ne!(get().code(), Some(0), "kubectl does not repeat a refused request");
    assert_eq!(setup.fake.runs().len(), 2, "but it ran the plugin again");
    assert_eq!(get().code(), Some(0), "with the new token");
    assert_eq!(setup.fake.runs().len(), 2);
}
