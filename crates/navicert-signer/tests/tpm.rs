//! A key in a TPM, without the chip. Where its programs are not installed it is reported as skipped; `make test` installs
//! them. A module finds its TPM through the environment, so the test runs itself again as a process that has it.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use navicert_signer::pin::GivenPin;
use navicert_signer::pkcs11::{self, Selection};
use navicert_signer::{Input, Scheme, contract};
use navicert_testkit::{Ca, Program, SoftTpm};
use navicert_types::Secret;

const PIN: &str = "271828";
const MODULE: &str = "NAVICERT_TEST_TPM_MODULE";

// Issue 8: P-256 with a software TPM.
#[test]
fn a_key_in_a_tpm_signs() {
    match std::env::var_os(MODULE) {
        Some(module) => sign(PathBuf::from(module)),
        None => outside(),
    }
}

fn outside() {
    let Some(tpm) = SoftTpm::start(PIN) else { return };
    let key = tpm.generate("ann");
    let chain = Ca::new("root").client("ann").issue_for(&key.public_key);
    tpm.import_certificate(chain.first().unwrap(), "ann");
    let mut inside = Program::new(std::env::current_exe().unwrap())
        .arguments(["a_key_in_a_tpm_signs", "--exact", "--nocapture"])
        .variable(MODULE, tpm.module());
    for (name, value) in tpm.variables() {
        inside = inside.variable(name, value);
    }
    let outcome = inside.run().unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
    assert!(outcome.status.success() && said.contains("signed by the TPM"), "{said}\n{complained}");
}

fn sign(module: PathBuf) {
    let uri = "pkcs11:token=machine;object=ann".parse().unwrap();
    let ask = Arc::new(GivenPin(Secret::new(PIN.to_owned())));
    let (identity, key) = pkcs11::open(&Selection { module, uri, pin: None }, ask).unwrap();
    assert_eq!(identity.schemes(), [Scheme::EcdsaP256Sha256]);
    identity.sign(Scheme::EcdsaP256Sha256, Input::Message(b"message")).unwrap();
    contract::holds(&*key, true);
    std::io::stdout().write_all(b"signed by the TPM\n").unwrap();
}
