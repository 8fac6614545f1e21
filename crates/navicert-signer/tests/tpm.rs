//! A key in a software TPM. Reports a skip if its programs are not installed; `make test` installs them. The module finds
//! the TPM through environment variables, so the test runs itself again in a child process with these variables.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_signer::certificate_request::{CertificateSubject, certificate_request};
use navicert_signer::pin::StaticPin;
use navicert_signer::pkcs11::{self, DeviceKey, KeySelection, NewKey};
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
        None => run_in_child("tpm_key_signs", import_key),
    }
}

/// A key that is made in the TPM, requests a certificate, and gets it stored beside it.
#[test]
fn tpm_makes_a_key_and_stores_its_certificate() {
    match std::env::var_os(MODULE) {
        Some(module) => enroll(&PathBuf::from(module)),
        None => run_in_child("tpm_makes_a_key_and_stores_its_certificate", |_| {}),
    }
}

fn import_key(tpm: &SoftTpm) {
    let key = tpm.generate("ann");
    let chain = Ca::new("root").client("ann").issue_for(&key.public_key);
    tpm.import_certificate(chain.first().unwrap(), "ann");
}

fn run_in_child(test: &str, prepare: impl FnOnce(&SoftTpm)) {
    let Some(tpm) = SoftTpm::start(PIN) else { return };
    prepare(&tpm);
    let mut process = Program::new(std::env::current_exe().unwrap())
        .arguments([test, "--exact", "--nocapture"])
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

fn enroll(module: &Path) {
    let ask = || Arc::new(StaticPin(Secret::new(PIN.to_owned())));
    let select = |object: &str| {
        let uri = format!("pkcs11:token=machine;object={object}").parse().unwrap();
        KeySelection { module: module.to_owned(), uri, pin: None }
    };
    for (object, kind) in [("curve", NewKey::EcP256), ("rsa", NewKey::Rsa2048)] {
        let key = DeviceKey::open(&select(object), ask(), Some(kind)).unwrap();
        assert!(key.is_new());
        let subject = CertificateSubject::new("ann", &["developers".to_owned()]).unwrap();
        certificate_request(&subject, key.key()).unwrap();
        for _ in 0..2 {
            let issued = Ca::new("root").client("ann").issue_for(&key.key().public_key().to_der());
            key.store_certificate(issued.first().unwrap()).unwrap();
            let (identity, signing) = pkcs11::open(&select(object), ask()).unwrap();
            assert_eq!(identity.chain().first(), issued.first(), "the last one replaces the first");
            contract::check_key(&*signing, true);
        }
    }
    std::io::stdout().write_all(b"signed by the TPM\n").unwrap();
}
