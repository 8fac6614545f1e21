//! Running a test inside a process that sees a token of its own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use navicert_signer::pin::{AskPin, PinError, Question};
use navicert_signer::pkcs11::Selection;
use navicert_testkit::{Program, SoftHsm};
use navicert_types::Secret;

pub(crate) const PIN: &str = "4711";
pub(crate) const TOKEN: &str = "test token";

/// A token as the test inside sees it.
pub(crate) struct Inside {
    pub(crate) module: PathBuf,
    /// SoftHSM's folder of tokens: rename it, and the token is gone.
    pub(crate) tokens: PathBuf,
}

/// Prepares a token, and runs the test's body in a process that sees it. Reported as skipped if SoftHSM is not installed.
pub(crate) fn with_token(test: &str, prepare: impl FnOnce(&SoftHsm), body: impl FnOnce(&Inside)) {
    if let Some(inside) = Inside::here() {
        return body(&inside);
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
    let (said, complained) =
        (String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
    assert!(outcome.status.success() && said.contains("1 passed"), "{test}:\n{said}\n{complained}");
}

impl Inside {
    #[expect(clippy::disallowed_methods, reason = "how the test tells itself where its token is")]
    fn here() -> Option<Self> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        Some(Inside { module: variable("NAVICERT_TEST_MODULE")?, tokens: variable("NAVICERT_TEST_TOKENS")? })
    }

    pub(crate) fn select(&self, uri: &str) -> Selection {
        Selection { module: self.module.clone(), uri: uri.parse().unwrap(), pin: None }
    }

    pub(crate) fn away(&self) -> Away<'_> {
        let hidden = self.tokens.with_extension("away");
        std::fs::rename(&self.tokens, &hidden).unwrap();
        std::fs::create_dir(&self.tokens).unwrap();
        Away { tokens: &self.tokens, hidden }
    }
}

/// A token that is taken out.
pub(crate) struct Away<'a> {
    tokens: &'a Path,
    hidden: PathBuf,
}

impl Away<'_> {
    pub(crate) fn put_back(self) {
        std::fs::remove_dir(self.tokens).unwrap();
        std::fs::rename(&self.hidden, self.tokens).unwrap();
    }
}

/// Somebody with a PIN, who counts how often they are asked.
#[derive(Debug)]
pub(crate) struct Person {
    pin: Secret<String>,
    stored: bool,
    asked: AtomicUsize,
}

impl Person {
    pub(crate) fn typing(pin: &str) -> Self {
        Person { pin: Secret::new(pin.to_owned()), stored: false, asked: AtomicUsize::new(0) }
    }

    pub(crate) fn storing(pin: &str) -> Self {
        Person { stored: true, ..Person::typing(pin) }
    }

    pub(crate) fn times(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl AskPin for Person {
    fn ask(&self, question: &Question) -> Result<Secret<String>, PinError> {
        assert_eq!(question.token, TOKEN);
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(self.pin.clone())
    }

    fn is_stored(&self) -> bool {
        self.stored
    }
}
