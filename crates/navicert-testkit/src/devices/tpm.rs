//! A TPM without the chip: swtpm, tpm2-abrmd on a bus of its own, and tpm2-pkcs11 in front of them, one per test.
//!
//! The programs come from Debian's `swtpm`, `tpm2-abrmd`, `libtpm2-pkcs11-1`, `libtpm2-pkcs11-tools` and `dbus-daemon`;
//! `make test` installs them. A missing one is reported as skipped.

use std::ffi::OsString;
use std::fmt;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::cli::program::{Outcome, Program, Running};
use crate::cli::tools;
use crate::devices::softhsm::{HsmKey, point};
use crate::pki::ca::{KeyKind, pem, subject_public_key_info};
use crate::{report, wait};

const MODULES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/libtpm2_pkcs11.so.1",
    "/usr/lib/aarch64-linux-gnu/libtpm2_pkcs11.so.1",
    "/usr/lib64/pkcs11/libtpm2_pkcs11.so",
];
/// Packages and their programs.
const PROGRAMS: [(&str, &str); 5] = [
    ("swtpm", "swtpm"),
    ("tpm2-abrmd", "tpm2-abrmd"),
    ("libtpm2-pkcs11-tools", "tpm2_ptool"),
    ("dbus", "dbus-run-session"),
    ("opensc", "pkcs11-tool"),
];
/// A broker lives among the administrator's programs.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
const BROKER: &str = "tabrmd:bus_type=session";
const LABEL: &str = "machine";

/// What runs on the bus: the TPM and its broker, until standard input ends. The broker is started when the TPM listens on
/// both of its ports (it does not try twice, and a call to find out would be taken for its own), and has its name then.
const SCRIPT: &str = r#"
set -e
swtpm socket --tpm2 --tpmstate dir=state --ctrl type=tcp,port=$((PORT + 1)) --server type=tcp,port=$PORT \
  --flags not-need-init,startup-clear & swtpm=$!
for port in $PORT $((PORT + 1)); do
  until grep -q "$(printf ':%04X 00000000:0000 0A' $port)" /proc/net/tcp; do kill -0 $swtpm; done
done
tpm2-abrmd --session --allow-root --tcti=swtpm:host=127.0.0.1,port=$PORT & broker=$!
trap 'kill $broker $swtpm' EXIT
until dbus-send --session --dest=org.freedesktop.DBus --print-reply /org/freedesktop/DBus \
  org.freedesktop.DBus.ListNames 2>/dev/null | grep -q Tabrmd; do kill -0 $broker; done
echo "bus <$DBUS_SESSION_BUS_ADDRESS>"
cat >/dev/null
"#;

/// A TPM with one token in it, called `machine`; it is gone when dropped, and when the test is.
///
/// ```
/// use navicert_testkit::{Ca, SoftTpm};
///
/// if let Some(tpm) = SoftTpm::start("271828") {
///     let key = tpm.generate("my key");
///     let chain = Ca::new("root").client("ann").issue_for(&key.public_key);
///     tpm.import_certificate(&chain[0], &key.label);
///     // Run the program under test with tpm.module() and tpm.variables().
///     assert!(tpm.module().exists());
/// }
/// ```
pub struct SoftTpm {
    dir: TempDir,
    module: PathBuf,
    pin: String,
    bus: String,
    running: Running,
}

impl SoftTpm {
    /// A TPM with a token that has this user PIN and nothing in it; `None`, reported as skipped, if a program is not
    /// installed.
    ///
    /// # Panics
    /// If it does not come up although everything is installed, or if nothing may be skipped.
    pub fn start(pin: &str) -> Option<Self> {
        let module = installed()?;
        let dir = tempfile::tempdir().expect("a temporary directory");
        for name in ["state", "store"] {
            std::fs::create_dir(dir.path().join(name)).expect("a directory in our own");
        }
        // The empty first line makes standard input a pipe that closes when this process ends.
        let running = Program::new("dbus-run-session")
            .arguments(["--", "bash", "-c", SCRIPT])
            .directory(dir.path())
            .variable("PORT", two_ports().to_string())
            .variable("PATH", PATH)
            .stdin("\n")
            .start_running()
            .expect("dbus-run-session starts");
        let told = wait::blocking(running.wait_for_output(">\n"));
        let bus = told.lines().find_map(|line| line.strip_prefix("bus <")?.strip_suffix('>'));
        let bus = bus.unwrap_or_else(|| panic!("no bus but: {told}")).to_owned();
        let tpm = SoftTpm { dir, module, pin: pin.to_owned(), bus, running };
        tpm.tool(&["init"]);
        tpm.tool(&[
            "addtoken",
            "--pid",
            "1",
            "--label",
            LABEL,
            "--userpin",
            pin,
            "--sopin",
            "security-officer",
        ]);
        Some(tpm)
    }

    /// The PKCS#11 module to load.
    pub fn module(&self) -> &Path {
        &self.module
    }

    /// The token's label.
    pub fn label(&self) -> &'static str {
        LABEL
    }

    /// What a program that loads the module needs in its environment.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        vec![
            ("DBUS_SESSION_BUS_ADDRESS".into(), self.bus.clone().into()),
            ("TPM2_PKCS11_TCTI".into(), BROKER.into()),
            ("TPM2_PKCS11_STORE".into(), self.dir.path().join("store").into()),
        ]
    }

    /// Makes a P-256 key inside the TPM, never to leave it. Its id is the module's own choice.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn generate(&self, label: &str) -> HsmKey {
        let key = ["addkey", "--algorithm", "ecc256", "--label", LABEL, "--key-label", label];
        self.tool(&[&key[..], &["--userpin", &self.pin]].concat());
        let module = self.module.to_str().expect("a path we named ourselves");
        let shown = self.run(
            "pkcs11-tool",
            &["--module", module, "--list-objects", "--type", "pubkey", "--label", label],
        );
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        let id = text.lines().find_map(|line| line.trim().strip_prefix("ID:")).unwrap_or_default().trim();
        let public_key = subject_public_key_info(KeyKind::EcP256, &point(&shown));
        HsmKey { id: id.to_owned(), label: label.to_owned(), kind: KeyKind::EcP256, public_key }
    }

    /// Puts a key's certificate beside it.
    ///
    /// # Panics
    /// If it is refused.
    pub fn import_certificate(&self, der: &[u8], key_label: &str) {
        let file = self.dir.path().join("certificate.pem");
        std::fs::write(&file, pem("CERTIFICATE", der)).expect("a file in our own directory");
        let file = file.to_str().expect("a temporary path is text");
        self.tool(&["addcert", "--label", LABEL, "--key-label", key_label, file]);
    }

    fn tool(&self, arguments: &[&str]) {
        let store = self.dir.path().join("store");
        let store = store.to_str().expect("a temporary path is text");
        self.run("tpm2_ptool", &[arguments, &["--path", store]].concat());
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Outcome {
        let mut tool = Program::new(program)
            .arguments(arguments)
            .variable("PATH", PATH)
            .variable("TPM2TOOLS_TCTI", BROKER)
            .limit(Duration::from_secs(120));
        for (name, value) in self.variables() {
            tool = tool.variable(name, value);
        }
        let outcome = tool.run().unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
        let stderr = String::from_utf8_lossy(&outcome.stderr);
        assert!(outcome.status.success(), "{program} {arguments:?}: {stderr}");
        outcome
    }
}

impl Drop for SoftTpm {
    fn drop(&mut self) {
        self.running.close_input();
        let _ = self.running.status(); // it ends what it started, the bus too
    }
}

impl fmt::Debug for SoftTpm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SoftTpm").field("label", &LABEL).finish_non_exhaustive()
    }
}

/// The module, if everything is installed.
fn installed() -> Option<PathBuf> {
    let programs = PROGRAMS.iter().map(|(package, program)| tools::installed(package, program));
    if programs.filter(Option::is_none).count() > 0 {
        return None;
    }
    let module = MODULES.iter().map(PathBuf::from).find(|path| path.exists());
    if module.is_none() {
        report::skipped("libtpm2-pkcs11-1", "tpm2-pkcs11's module is not installed");
    }
    module
}

/// The TPM's control channel is one port above the other.
fn two_ports() -> u16 {
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let some = || TcpListener::bind("127.0.0.1:0")?.local_addr().map(|address| address.port());
    std::iter::repeat_with(|| some().expect("a free port"))
        .find(|port| port.checked_add(1).is_some_and(free))
        .expect("an endless iterator")
}
