//! The real signer with keys that `pkcs11-tool` generated in SoftHSM.
// T44

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use navicert_signer::remote::wire::sample_message;
use navicert_signer::remote::{ExecSigner, ExecSignerSettings, SessionRunner, SignerProtocol};
use navicert_signer::{Input, SignError, SigningIdentity};
use navicert_testkit::{Ca, KeyKind, SoftHsm};
use navicert_types::error_chain;
use rustls::version::{TLS12, TLS13};
use tempfile::TempDir;

use crate::memory::{HandshakeResult, handshake};
use crate::support::{REAL, V1ALPHA1, allowing, configuration, settings};

pub(crate) const PIN: &str = "canary-4711";

pub(crate) struct Token {
    hsm: SoftHsm,
    ca: Ca,
    pub(crate) dir: TempDir,
}

impl Token {
    /// `None`, reported as skipped, if SoftHSM is not installed.
    pub(crate) fn new(kind: KeyKind) -> Option<Self> {
        let hsm = SoftHsm::start("my token", PIN)?;
        let ca = Ca::new("root");
        let key = hsm.generate(kind, "01", "mine");
        hsm.import_certificate(&ca.client("ann").issue_for(&key.public_key)[0], "01", "mine");
        let dir = tempfile::tempdir().unwrap();
        Some(Token { hsm, ca, dir })
    }

    fn pin_file(&self, pin: &str) -> PathBuf {
        let path = self.dir.path().join("pin");
        std::fs::write(&path, pin).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn settings(&self, protocol: SignerProtocol, pin: &str, more: &[(&str, &str)]) -> ExecSignerSettings {
        let module = self.hsm.module().to_str().unwrap();
        let uri = format!(
            "pkcs11:token=my%20token;id=%01;type=private?pin-source=file:{}&module-path={module}",
            self.pin_file(pin).display()
        );
        let text = |value: std::ffi::OsString| value.into_string().unwrap();
        let variables = self.hsm.variables().into_iter().map(|(name, value)| (text(name), text(value)));
        let variables =
            variables.chain(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        ExecSignerSettings {
            policy: allowing(REAL, &[self.hsm.module()]),
            ..settings(REAL, &[("uri", &uri), ("pathExec", REAL)], variables.collect(), protocol)
        }
    }

    pub(crate) fn connect(&self, protocol: SignerProtocol, pin: &str) -> Result<SigningIdentity, SignError> {
        ExecSigner::connect(self.settings(protocol, pin, &[]))
    }
}

#[test]
fn real_signer_signs_every_scheme_in_both_protocol_versions() {
    for kind in [KeyKind::Rsa2048, KeyKind::EcP256, KeyKind::EcP384, KeyKind::EcP521, KeyKind::Ed25519] {
        let Some(token) = Token::new(kind) else { return };
        for protocol in [V1ALPHA1, SignerProtocol::V1] {
            let identity = token.connect(protocol, PIN).unwrap();
            for scheme in identity.schemes().to_vec() {
                identity.sign(scheme, Input::Message(&sample_message(3))).unwrap();
            }
        }
    }
}

#[test]
fn softhsm_keys_complete_tls_1_2_and_1_3_handshakes() {
    // T41, T44
    for kind in [KeyKind::Rsa2048, KeyKind::EcP256, KeyKind::EcP384, KeyKind::Ed25519] {
        let Some(token) = Token::new(kind) else { return };
        let identity = Arc::new(token.connect(SignerProtocol::V1, PIN).unwrap());
        for version in [&TLS12, &TLS13] {
            let result = handshake(&token.ca, Arc::clone(&identity), version);
            assert!(
                matches!(result, HandshakeResult::Both { client_certificate: Some(_) }),
                "{kind:?} {version:?}: {result:?}"
            );
        }
    }
}

#[test]
fn incorrect_pin_file_costs_one_attempt_across_processes() {
    let Some(token) = Token::new(KeyKind::EcP256) else { return };
    let identity = token.connect(SignerProtocol::V1, "canary-wrong").unwrap();
    let scheme = identity.schemes()[0];
    let error = identity.sign(scheme, Input::Message(&sample_message(1))).unwrap_err();
    assert!(error.to_string().contains("failed with PinIncorrect: incorrect PIN for token"), "{error}");
    assert!(!error_chain(&error).contains("canary"));
    // Another client with the same file: the signer first checks the failed logins that the token reports.
    let again = token.connect(SignerProtocol::V1, "canary-wrong").unwrap();
    let error = again.sign(scheme, Input::Message(&sample_message(1))).unwrap_err();
    assert!(error.to_string().contains("a stored PIN is not tried then"), "{error}");
}

/// Settings with a pinentry program that knows this PIN and counts.
fn with_pinentry(token: &Token, pin: &str) -> ExecSignerSettings {
    let path = token.dir.path().join("pinentry");
    let asked = token.dir.path().join("asked");
    let script = format!("#!/bin/sh\ncat >/dev/null\necho >>{}\nprintf 'D {pin}\\nOK\\n'\n", asked.display());
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let more = [("NAVICERT_PINENTRY", path.to_str().unwrap()), ("PATH", "/usr/bin:/bin")];
    let base = token.settings(SignerProtocol::V1, pin, &more);
    let module = token.hsm.module().to_str().unwrap();
    let uri = format!("pkcs11:token=my%20token;id=%01;type=private?module-path={module}");
    let configuration = configuration(&[("uri", &uri), ("pathExec", REAL)]);
    ExecSignerSettings { configuration, ..base }
}

fn times_asked(token: &Token) -> usize {
    std::fs::read_to_string(token.dir.path().join("asked")).map_or(0, |text| text.lines().count())
}

#[test]
fn signer_in_a_session_needs_one_pin_and_asks_for_it_with_the_certificate() {
    // C842
    let Some(token) = Token::new(KeyKind::EcP256) else { return };
    let sign = |identity: &SigningIdentity| {
        let scheme = identity.schemes()[0];
        identity.sign(scheme, Input::Message(&sample_message(1))).unwrap();
    };
    let base = with_pinentry(&token, PIN);
    let each = ExecSigner::connect(base.clone()).unwrap();
    assert_eq!(times_asked(&token), 0, "without a session, the first signature needs the PIN");
    (0..2).for_each(|_| sign(&each));
    assert_eq!(times_asked(&token), 2);
    let runner = Arc::new(SessionRunner::new(Arc::clone(&base.runner)));
    let session = ExecSigner::connect(ExecSignerSettings { runner, ..base }).unwrap();
    assert_eq!(times_asked(&token), 3, "before any connection");
    (0..3).for_each(|_| sign(&session));
    assert_eq!(times_asked(&token), 3);
}

#[test]
fn incorrect_pin_in_a_session_fails_with_the_certificate() {
    let Some(token) = Token::new(KeyKind::EcP256) else { return };
    let base = with_pinentry(&token, "canary-wrong");
    let runner = Arc::new(SessionRunner::new(Arc::clone(&base.runner)));
    let error = ExecSigner::connect(ExecSignerSettings { runner, ..base }).unwrap_err();
    assert!(error.to_string().contains("failed with PinIncorrect: incorrect PIN for token"), "{error}");
}

#[test]
fn kep_settings_work() {
    // C811
    let Some(token) = Token::new(KeyKind::EcP256) else { return };
    let module = token.hsm.module().to_str().unwrap().to_owned();
    let slot = slot_of(&token.hsm);
    let pairs =
        [("pathExec", REAL), ("pathLib", &module), ("slotId", &slot), ("objectId", "1"), ("pin", PIN)];
    let base = token.settings(V1ALPHA1, PIN, &[]);
    let configuration = configuration(&pairs);
    let identity =
        ExecSigner::connect(ExecSignerSettings { configuration, allow_pin: true, ..base }).unwrap();
    identity.sign(identity.schemes()[0], Input::Message(&sample_message(1))).unwrap();
}

/// SoftHSM assigns large slot numbers; `pkcs11-tool` shows them in hexadecimal.
fn slot_of(hsm: &SoftHsm) -> String {
    let mut program = navicert_testkit::Program::new("pkcs11-tool").arguments([
        "--module",
        hsm.module().to_str().unwrap(),
        "--list-slots",
    ]);
    for (name, value) in hsm.variables() {
        program = program.variable(name, value);
    }
    let text = String::from_utf8(program.run().unwrap().stdout).unwrap();
    let number = text.lines().find_map(|line| line.strip_prefix("Slot 0 (0x")?.split_once(')')).unwrap().0;
    u64::from_str_radix(number, 16).unwrap().to_string()
}

#[test]
fn module_initialization_error_names_the_return_code() {
    let Some(token) = Token::new(KeyKind::EcP256) else { return };
    let nowhere = [("SOFTHSM2_CONF", "/nonexistent/softhsm2.conf")];
    let error = ExecSigner::connect(token.settings(SignerProtocol::V1, PIN, &nowhere)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("failed to load PKCS#11 module"), "{text}");
    assert!(text.ends_with(": CKR_GENERAL_ERROR in C_Initialize"), "{text}");
}

#[test]
fn prints_help_without_a_request() {
    let run = |arguments: &[&str]| {
        navicert_testkit::Program::new(REAL).own_environment().arguments(arguments).run().unwrap()
    };
    assert_eq!(run(&[]).code(), Some(2));
    assert_eq!(run(&["--pin", "1234"]).code(), Some(2), "a PIN is never an argument");
    assert!(String::from_utf8(run(&["--help"]).stdout).unwrap().contains("navicert signer list"));
    let garbage = navicert_testkit::Program::new(REAL)
        .own_environment()
        .variable("EXTERNAL_SIGNER_PLUGIN_CONFIG", "{\"pin\":\"canary\"}")
        .run()
        .unwrap();
    assert_eq!(garbage.code(), Some(1));
    assert!(garbage.stdout.is_empty() && !String::from_utf8_lossy(&garbage.stderr).contains("canary"));
}
