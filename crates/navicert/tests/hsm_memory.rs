//! Where a PIN and a key could be found while a command runs with a key in SoftHSM: memory, environment, arguments and
//! temporary files of every process that takes part (T42, T44). The key is one that was made outside, so that it is known
//! what to look for.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod hsm_support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use navicert_testkit::cli::process::{Process, contains};
use navicert_testkit::cli::program::Running;
use navicert_testkit::cli::tools;
use navicert_testkit::{Answer, ApiServer, Ca, ClientAuth, Gate, Identity, Program, SoftHsm, report, wait};
use serde_json::json;

const PIN: &str = "canary-271828-pin";
const URI: &str = "pkcs11:token=my%20token;id=%01;type=private";

/// A token with ann's key, an API server that demands her certificate, and a home with what `signer list` printed.
struct Setup {
    hsm: SoftHsm,
    api: ApiServer,
    ann: Identity,
    home: tempfile::TempDir,
}

impl Setup {
    /// `None`, reported as skipped, if SoftHSM is not installed.
    fn new() -> Option<Self> {
        let hsm = SoftHsm::start("my token", PIN)?;
        let ca = Ca::new("root");
        let api = ApiServer::start_with(&ca, |builder| builder.client_auth(ClientAuth::Required(ca.clone())));
        let ann = ca.client("ann").issue();
        hsm.import(&ann, "01", "work key");
        let home = tempfile::tempdir().unwrap();
        for name in ["run", "tmp"] {
            fs::create_dir(home.path().join(name)).unwrap();
            fs::set_permissions(home.path().join(name), fs::Permissions::from_mode(0o700)).unwrap();
        }
        let setup = Setup { hsm, api, ann, home };
        let listed = setup.navicert(&["signer", "list"]).run().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        hsm_support::paste(&listed, setup.home.path(), "ann", &setup.api.url(), &ca.pem());
        Some(setup)
    }

    fn navicert(&self, arguments: &[&str]) -> Program {
        let signer = hsm_support::signer();
        Program::new(env!("CARGO_BIN_EXE_navicert"))
            .arguments(arguments)
            .own_environment()
            .variable("PATH", format!("{}:/usr/bin:/bin", signer.parent().unwrap().display()))
            .variable("HOME", self.home.path())
            .variable("TMPDIR", self.home.path().join("tmp"))
            .variable("XDG_RUNTIME_DIR", self.home.path().join("run"))
            .variable("SOFTHSM2_CONF", self.hsm.configuration())
            .variable("NAVICERT_PKCS11_MODULE", self.hsm.module())
            .variable("NAVICERT_PINENTRY", hsm_support::pinentry(self.home.path(), PIN))
    }

    /// A running signer that has logged in.
    fn serve(&self, uri: &str) -> Running {
        let serving = self.navicert(&["signer", "serve", uri]).start_running().unwrap();
        wait::blocking(serving.wait_for_output("signing with 1 key"));
        serving
    }

    /// `navicert run -- kubectl get --raw /version`, held at the moment at which the API server has the request; what is
    /// looked at then; and that it ends well.
    fn while_kubectl_runs(&self, look: impl FnOnce(Process, Process)) {
        let gate = Gate::new();
        let version = json!({"major": "1", "minor": "34", "gitVersion": "v1.34.0"});
        self.api.answer_once("/version", Answer::json(&version).after(&gate));
        let kubectl = kubectl();
        let command = ["run", "--", kubectl.to_str().unwrap(), "get", "--raw", "/version"];
        let running = self.navicert(&command).start_running().unwrap();
        wait::blocking(gate.wait_for_arrivals(1));
        let navicert = Process(running.pid());
        let is_kubectl = |child: &Process| contains(&child.arguments().unwrap_or_default(), b"/version");
        look(navicert, navicert.children().into_iter().find(is_kubectl).unwrap());
        gate.open();
        let ended = wait::blocking(running.wait());
        assert_eq!(ended.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
        assert!(contains(&ended.stdout, b"gitVersion"));
        let seen = self.api.requests().last().unwrap().client.clone().unwrap();
        assert_eq!(seen.common_name, "ann");
    }

    /// What is in the places for temporary files.
    fn temporary_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut folders = vec![self.home.path().join("run"), self.home.path().join("tmp")];
        let mut files = Vec::new();
        while let Some(dir) = folders.pop() {
            for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
                match entry.metadata() {
                    Ok(facts) if facts.is_dir() => folders.push(entry),
                    Ok(facts) if facts.is_file() => files.push((entry.clone(), fs::read(entry).unwrap())),
                    _ => {}
                }
            }
        }
        files
    }
}

fn kubectl() -> PathBuf {
    let kubectl = tools::kubectl().unwrap();
    kubectl.canonicalize().unwrap()
}

/// The ways in which a P-256 key lies in memory: its number in both byte orders and in hexadecimal, and a line of its PEM.
fn spellings(identity: &Identity) -> Vec<Vec<u8>> {
    let der = identity.key_der();
    let before = b"\x02\x01\x01\x04\x20"; // version 1, then an octet string of 32
    let at = der.windows(before.len()).position(|window| window == before).unwrap() + before.len();
    let number = der.get(at..at + 32).unwrap().to_vec();
    let reversed = number.iter().rev().copied().collect();
    let hex = number.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes();
    let line = identity.key_pem().lines().nth(1).unwrap().as_bytes().to_vec();
    vec![number, reversed, hex, line]
}

/// Whether this test may read what a process hides from its own user.
fn may_look(process: Process) -> bool {
    match process.memory() {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}");
            report::skipped("root", "only root may read the memory of a process that is not dumpable");
            false
        }
    }
}

fn assert_shows_none(what: &str, process: Process, secrets: &[Vec<u8>]) {
    for bytes in [process.memory(), process.environment(), process.arguments()].map(Result::unwrap) {
        for (number, secret) in secrets.iter().enumerate() {
            assert!(!contains(&bytes, secret), "{what} shows secret {number}");
        }
    }
}

// The process's memory, environment, temporary files and arguments hold neither PIN nor key.
#[test]
fn pin_and_key_appear_in_no_process_while_kubectl_uses_the_key() {
    let Some(_) = tools::kubectl() else { return };
    let Some(setup) = Setup::new() else { return };
    let certificate = setup.ann.leaf().to_vec();
    let secrets: Vec<Vec<u8>> =
        std::iter::once(PIN.as_bytes().to_vec()).chain(spellings(&setup.ann)).collect();
    // Every question has a signer's process of its own; then one signer that stays.
    for stays in [false, true] {
        let serving = stays.then(|| setup.serve(URI));
        setup.while_kubectl_runs(|navicert, kubectl| {
            assert_shows_none("kubectl", kubectl, &secrets);
            let files = setup.temporary_files();
            let kubeconfig = files.iter().find(|(path, _)| path.ends_with("kubeconfig")).unwrap();
            assert!(contains(&kubeconfig.1, b"https://127.0.0.1:"), "the files that were read are the run's");
            for (path, file) in &files {
                assert!(!secrets.iter().any(|secret| contains(file, secret)), "{}", path.display());
            }
            if !may_look(navicert) {
                return;
            }
            assert!(navicert.shows(&certificate).unwrap(), "what navicert has to know is found");
            assert_shows_none("navicert", navicert, &secrets);
            for guard in navicert.children().into_iter().filter(|child| *child != kubectl) {
                assert_shows_none("the guard", guard, &secrets);
            }
            if let Some(serving) = &serving {
                let signer = Process(serving.pid());
                assert!(signer.shows(&certificate).unwrap(), "what the signer has to know is found");
                // SoftHSM is software: the key is in the memory of the process that loads the module, and nowhere else.
                assert_shows_none("the signer", signer, secrets.get(..1).unwrap());
            }
        });
    }
}

// A PIN that comes from a file is not kept either.
#[test]
fn running_signer_does_not_keep_the_pin() {
    let Some(setup) = Setup::new() else { return };
    let file = setup.home.path().join("pin");
    fs::write(&file, format!("{PIN}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let serving = setup.serve(&format!("{URI}?pin-source=file:{}", file.display()));
    let signer = Process(serving.pid());
    if may_look(signer) {
        assert!(signer.shows(setup.ann.leaf()).unwrap());
        assert_shows_none("the signer", signer, &[PIN.as_bytes().to_vec()]);
    }
    assert!(!setup.home.path().join("asked").exists(), "no PIN prompt");
}

// Control: the same search finds a process that holds these values, in each of their encodings.
#[test]
fn process_that_holds_a_pin_or_key_is_detected() {
    let ann = Ca::new("root").client("ann").issue();
    let script = "read pin; read hex; read pem; echo ready; read more";
    let spelled = spellings(&ann);
    let (hex, line) = (String::from_utf8_lossy(&spelled[2]), String::from_utf8_lossy(&spelled[3]));
    let typed = format!("{PIN}\n{hex}\n{line}\n");
    let holder = Program::new("/bin/sh").arguments(["-c", script]).stdin(typed).start_running().unwrap();
    wait::blocking(holder.wait_for_output("ready"));
    for held in [PIN.as_bytes(), &spelled[2], &spelled[3]] {
        assert!(Process(holder.pid()).shows(held).unwrap());
    }
    let (number, reversed) = (spelled[0].clone(), spelled[1].clone());
    for held in [&number, &reversed] {
        assert!(contains(&Process(std::process::id()).memory().unwrap(), held), "this test holds it");
    }
}
