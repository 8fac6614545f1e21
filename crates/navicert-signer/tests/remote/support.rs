//! The fake signer and its directory with a key.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use navicert_plugin::{AllowlistEntry, Environment, Policy, ProcessRunner};
use navicert_signer::remote::{ExecSigner, ExecSignerSettings, SignerProtocol, SignerTimeouts};
use navicert_signer::{SignError, SigningIdentity};
use navicert_testkit::{Ca, KeyKind};
use navicert_types::SystemClock;
use navicert_types::external_signer::{SignerConfiguration, v1alpha1};
use tempfile::TempDir;

pub(crate) const FAKE: &str = env!("CARGO_BIN_EXE_navicert-fake-signer");
pub(crate) const REAL: &str = env!("CARGO_BIN_EXE_navicert-signer-pkcs11");
pub(crate) const V1ALPHA1: SignerProtocol = SignerProtocol::V1Alpha1(v1alpha1::Kinds::Kep);

/// The fake signer with its directory.
pub(crate) struct FakeSigner {
    pub(crate) dir: TempDir,
    pub(crate) shown: Arc<Mutex<Vec<String>>>,
    variables: Vec<(String, String)>,
}

impl FakeSigner {
    pub(crate) fn new(kind: KeyKind) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (ca, other) = (Ca::new("root"), dir.path().join("other"));
        std::fs::create_dir(&other).unwrap();
        for (key_dir, name) in [(dir.path(), "ann"), (other.as_path(), "bob")] {
            let issued = ca.client(name).key(kind).issue();
            std::fs::write(key_dir.join("key.der"), issued.key_der()).unwrap();
            std::fs::write(key_dir.join("chain.pem"), issued.chain_pem()).unwrap();
        }
        FakeSigner { dir, shown: Arc::default(), variables: Vec::new() }
    }

    pub(crate) fn mode(mut self, mode: &str) -> Self {
        self.variables.push(("FAKE_SIGNER_MODE".to_owned(), mode.to_owned()));
        self
    }

    pub(crate) fn settings(&self, protocol: SignerProtocol) -> ExecSignerSettings {
        let dir = self.dir.path().to_str().unwrap().to_owned();
        let variables = self.variables.iter().cloned().chain([("FAKE_SIGNER_FOLDER".to_owned(), dir)]);
        let shown = Arc::clone(&self.shown);
        ExecSignerSettings {
            show: Arc::new(move |text| shown.lock().unwrap().push(text.to_owned())),
            ..settings(FAKE, &[], variables.collect(), protocol)
        }
    }

    pub(crate) fn connect(&self, protocol: SignerProtocol) -> Result<SigningIdentity, SignError> {
        ExecSigner::connect(self.settings(protocol))
    }

    /// All requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir.path().join("asked")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn environment(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("environment")).unwrap_or_default()
    }
}

pub(crate) fn configuration(pairs: &[(&str, &str)]) -> SignerConfiguration {
    SignerConfiguration(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

pub(crate) fn allowing(program: &str, modules: &[&Path]) -> Arc<Policy> {
    let entry = modules.iter().fold(AllowlistEntry::new(program), |entry, module| {
        entry.setting("pathLib", module.to_str().unwrap())
    });
    Arc::new(Policy::from_parts("Allowlist", Some(vec![entry])).unwrap())
}

pub(crate) fn settings(
    program: &str,
    pairs: &[(&str, &str)],
    environment: Vec<(String, String)>,
    protocol: SignerProtocol,
) -> ExecSignerSettings {
    let clock = Arc::new(SystemClock);
    let environment: Environment = environment.into_iter().collect();
    ExecSignerSettings {
        program: PathBuf::from(program).into_os_string(),
        configuration: configuration(pairs),
        protocol,
        policy: allowing(program, &[]),
        environment,
        runner: Arc::new(ProcessRunner::new(Arc::clone(&clock) as _)),
        clock,
        interactive: false,
        stdin_is_terminal: false,
        cluster: None,
        limits: SignerTimeouts { sign: Duration::from_secs(30), ..SignerTimeouts::default() },
        show: Arc::new(|_| {}),
        allow_pin: false,
    }
}
