//! A key in a software TPM. Reports a skip if its programs are not installed; `make test` installs them. The module finds
//! the TPM through environment variables, so the test runs itself again in a child process with these variables.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use navicert_signer::pin::StaticPin;
use navicert_signer::pkcs11::{self, KeySelection};
use navicert_signer::{Input, Scheme, contract};
use navicert_testkit::{Ca, Program, SoftTpm};
use navicert_types::Secret;

const PIN: &str = "271828";
const MODULE: &str = "NAVICERT_TEST_TPM_MODULE";

// P-256 in a software TPM.
#[test]
fn tpm_key_signs() {
    match std::env::var_os(MODULE) {
        Some(module) => sign(PathBuf::from(module)),
        None => run_in_child(),
    }
}

fn run_in_child() {
    let Some(tpm) = SoftTpm::start(PIN) else { return };
    let key = tpm.generate("ann");
    let chain = Ca::new("root").client("ann").issue_for(&key.public_key);
    tpm.import_certificate(chain.first().unwrap(), "ann");
    let mut process = Program::new(std::env::current_exe().unwrap())
        .arguments(["tpm_key_signs", "--exact", "--nocapture"])
        .variable(MODULE, tpm.module());
    for (name, value) in tpm.variables() {
        process = process.variable(name, value);
    }
    let outcome = process.run().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
    assert!(outcome.status.success() && stdout.contains("signed by the TPM"), "{stdout}\n{stderr}");
}

fn sign(module: PathBuf) {
    let uri = "pkcs11:token=machine;object=ann".parse().unwrap();
    let ask = Arc::new(StaticPin(Secret::new(PIN.to_owned())));
    let (identity, key) = pkcs11::open(&KeySelection { module, uri, pin: None }, ask).unwrap();
    assert_eq!(identity.schemes(), [Scheme::EcdsaP256Sha256]);
    identity.sign(Scheme::EcdsaP256Sha256, Input::Message(b"message")).unwrap();
    contract::check_key(&*key, true);
    std::io::stdout().write_all(b"signed by the TPM\n").unwrap();
}
