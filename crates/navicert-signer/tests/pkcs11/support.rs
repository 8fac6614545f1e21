//! Runs a test in a child process with its own SoftHSM token.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use navicert_signer::pin::{PinError, PinPrompt, PinProvider};
use navicert_signer::pkcs11::KeySelection;
use navicert_testkit::{Program, SoftHsm};
use navicert_types::Secret;

pub(crate) const PIN: &str = "4711";
pub(crate) const TOKEN: &str = "test token";

/// The child process's token.
pub(crate) struct TokenProcess {
    pub(crate) module: PathBuf,
    /// SoftHSM's token directory: renaming it removes the token.
    pub(crate) tokens: PathBuf,
}

/// Prepares a token and runs the test's body in a child process that uses it. Reports a skip if SoftHSM is not installed.
pub(crate) fn with_token(test: &str, prepare: impl FnOnce(&SoftHsm), body: impl FnOnce(&TokenProcess)) {
    if let Some(process) = TokenProcess::here() {
        return body(&process);
    }
    let Some(hsm) = SoftHsm::start(TOKEN, PIN) else { return };
    prepare(&hsm);
    let tokens = hsm.configuration().parent().unwrap().join("tokens");
    let mut program = Program::new(std::env::current_exe().unwrap())
        .arguments([test, "--exact", "--nocapture", "--test-threads=1"])
        .variable("NAVICERT_TEST_MODULE", hsm.module())
        .variable("NAVICERT_TEST_TOKENS", tokens);
    for (name, value) in hsm.variables() {
        program = program.variable(name, value);
    }
    let outcome = program.run().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
    assert!(outcome.status.success() && stdout.contains("1 passed"), "{test}:\n{stdout}\n{stderr}");
}

impl TokenProcess {
    #[expect(clippy::disallowed_methods, reason = "set by the parent test process")]
    fn here() -> Option<Self> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        Some(TokenProcess {
            module: variable("NAVICERT_TEST_MODULE")?,
            tokens: variable("NAVICERT_TEST_TOKENS")?,
        })
    }

    pub(crate) fn select(&self, uri: &str) -> KeySelection {
        KeySelection { module: self.module.clone(), uri: uri.parse().unwrap(), pin: None }
    }

    pub(crate) fn remove_token(&self) -> RemovedToken<'_> {
        let hidden = self.tokens.with_extension("removed");
        std::fs::rename(&self.tokens, &hidden).unwrap();
        std::fs::create_dir(&self.tokens).unwrap();
        RemovedToken { tokens: &self.tokens, hidden }
    }
}

/// A removed token.
pub(crate) struct RemovedToken<'a> {
    tokens: &'a Path,
    hidden: PathBuf,
}

impl RemovedToken<'_> {
    pub(crate) fn reinsert(self) {
        std::fs::remove_dir(self.tokens).unwrap();
        std::fs::rename(&self.hidden, self.tokens).unwrap();
    }
}

/// Provides a PIN and counts the requests.
#[derive(Debug)]
pub(crate) struct CountingPin {
    pin: Secret<String>,
    stored: bool,
    asked: AtomicUsize,
}

impl CountingPin {
    pub(crate) fn typed(pin: &str) -> Self {
        CountingPin { pin: Secret::new(pin.to_owned()), stored: false, asked: AtomicUsize::new(0) }
    }

    pub(crate) fn stored(pin: &str) -> Self {
        CountingPin { stored: true, ..CountingPin::typed(pin) }
    }

    pub(crate) fn times(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl PinProvider for CountingPin {
    fn request_pin(&self, request: &PinPrompt) -> Result<Secret<String>, PinError> {
        assert_eq!(request.token, TOKEN);
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(self.pin.clone())
    }

    fn is_stored(&self) -> bool {
        self.stored
    }
}
