//! A key in a TPM, without the chip: swtpm, tpm2-abrmd on a bus of its own, and tpm2-pkcs11. Where these are not installed
//! the test says so and passes; `make test` installs them.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::disallowed_methods, reason = "tests")]

use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use navicert_signer::pin::GivenPin;
use navicert_signer::pkcs11::{self, Module, Selection, inventory};
use navicert_signer::{Input, Scheme, contract};
use navicert_testkit::ca::pem;
use navicert_testkit::{Ca, Program};
use navicert_types::Secret;

const MODULE: &str = "/usr/lib/x86_64-linux-gnu/libtpm2_pkcs11.so.1";
const NEEDED: [&str; 5] =
    ["/usr/bin/swtpm", "/usr/sbin/tpm2-abrmd", "/usr/bin/tpm2_ptool", "/usr/bin/dbus-run-session", MODULE];

/// What runs on the bus: the TPM, its broker, a token with a key, then this test again, twice. It waits for the broker's
/// name to appear, and ends what it started.
const SCRIPT: &str = r#"
set -e
swtpm socket --tpm2 --tpmstate dir=state --ctrl type=tcp,port=$((PORT + 1)) --server type=tcp,port=$PORT \
  --flags not-need-init,startup-clear & swtpm=$!
tpm2-abrmd --session --allow-root --tcti=swtpm:host=127.0.0.1,port=$PORT & broker=$!
trap 'kill $broker $swtpm' EXIT
until dbus-send --session --dest=org.freedesktop.DBus --print-reply /org/freedesktop/DBus \
  org.freedesktop.DBus.ListNames 2>/dev/null | grep -q Tabrmd; do :; done
export TPM2TOOLS_TCTI=tabrmd:bus_type=session TPM2_PKCS11_TCTI=tabrmd:bus_type=session
tpm2_ptool init --path store
tpm2_ptool addtoken --pid 1 --label machine --userpin 271828 --sopin 314159 --path store
tpm2_ptool addkey --algorithm ecc256 --label machine --key-label ann --userpin 271828 --path store
NAVICERT_TEST_TPM=issue "$TEST" a_key_in_a_tpm_signs --exact
tpm2_ptool addcert --label machine --key-label ann --path store leaf.pem
NAVICERT_TEST_TPM=sign "$TEST" a_key_in_a_tpm_signs --exact --nocapture
"#;

#[test]
fn a_key_in_a_tpm_signs() {
    match std::env::var("NAVICERT_TEST_TPM").as_deref() {
        Ok("issue") => issue(),
        Ok(_) => sign(),
        Err(_) => outside(),
    }
}

fn outside() {
    if let Some(missing) = NEEDED.iter().find(|path| !Path::new(path).exists()) {
        say(&format!("skipped: {missing} is not installed (scripts/install-tools does that)"));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["state", "store"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    let outcome = Program::new("dbus-run-session")
        .arguments(["--", "bash", "-c", SCRIPT])
        .directory(folder.path())
        .variable("PORT", two_ports().to_string())
        .variable("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .variable("TPM2_PKCS11_STORE", folder.path().join("store"))
        .variable("TEST", std::env::current_exe().unwrap())
        .limit(Duration::from_secs(120))
        .run()
        .unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
    assert!(outcome.status.success() && said.contains("signed by the TPM"), "{said}\n{complained}");
}

/// The TPM's control channel is one port above the other.
fn two_ports() -> u16 {
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let some = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    std::iter::repeat_with(some).find(|port| port.checked_add(1).is_some_and(free)).unwrap()
}

/// A certificate for the key the TPM made.
fn issue() {
    let module = Module::load(Path::new(MODULE)).unwrap();
    let token = module.tokens().unwrap().into_iter().find(|token| token.label == "machine").unwrap();
    let keys = inventory(&module, &token).unwrap();
    let public_key = keys[0].public_key.as_ref().unwrap().to_der();
    let chain = Ca::new("root").client("ann").issue_for(&public_key);
    std::fs::write("leaf.pem", pem("CERTIFICATE", &chain[0])).unwrap();
}

fn sign() {
    let selection = Selection {
        module: PathBuf::from(MODULE),
        uri: "pkcs11:token=machine;object=ann".parse().unwrap(),
        pin: None,
    };
    let ask = Arc::new(GivenPin(Secret::new("271828".to_owned())));
    let (identity, key) = pkcs11::open(&selection, ask).unwrap();
    assert_eq!(identity.schemes(), [Scheme::EcdsaP256Sha256]);
    identity.sign(Scheme::EcdsaP256Sha256, Input::Message(b"message")).unwrap();
    contract::holds(&*key, true);
    say("signed by the TPM");
}

fn say(text: &str) {
    std::io::stdout().write_all(format!("{text}\n").as_bytes()).unwrap();
}
