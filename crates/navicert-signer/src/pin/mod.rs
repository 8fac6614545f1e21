//! Sources of PINs: the terminal, a pinentry program, or a file that only its owner can read. PINs are never read from
//! arguments or environment variables.

mod file;
mod pinentry;
mod terminal;

use std::fmt;

use navicert_types::Secret;
use thiserror::Error;

pub use file::PinFile;
pub use pinentry::Pinentry;
pub use terminal::TerminalPin;

/// Provides the PIN of a token.
///
/// Called once per login, and the PIN is tried once. `Debug` shows no PIN.
pub trait PinProvider: fmt::Debug + Send + Sync {
    /// Returns the PIN for this token. Blocks until the user has entered it.
    ///
    /// # Errors
    /// [`PinError`].
    fn request_pin(&self, request: &PinPrompt) -> Result<Secret<String>, PinError>;

    /// Whether the PIN is the same every time, so that retrying a rejected one could only lock the token.
    fn is_stored(&self) -> bool;
}

/// What the PIN prompt shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinPrompt {
    /// The token's label.
    pub token: String,
    /// One more incorrect PIN locks the device.
    pub last_try: bool,
}

/// Why no PIN is available.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PinError {
    /// No terminal, PIN file or pinentry program is available.
    #[error(
        "no way to ask for the PIN: run it on a terminal, set NAVICERT_PINENTRY to a pinentry program, or add `pin-source=file:…` to the URI"
    )]
    NoProvider,
    /// The user cancelled.
    #[error("PIN entry cancelled")]
    Cancelled,
    /// The file cannot be used.
    #[error("PIN file `{path}` {problem}")]
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The `pin-source` is not a file.
    #[error("`pin-source` must be a file (`file:/path` or `/path`)")]
    Source,
    /// The pinentry program returned no PIN.
    #[error("pinentry program `{program}` {problem}")]
    Pinentry {
        /// The program.
        program: String,
        /// What went wrong.
        problem: String,
    },
    /// The terminal cannot be used.
    #[error("failed to read the PIN from the terminal: {0}")]
    Terminal(String),
    /// The entered PIN is empty.
    #[error("the PIN is empty")]
    Empty,
}

/// Provides no PIN: a key without a PIN works, and any other fails with an error that says what to do.
#[derive(Clone, Copy, Debug)]
pub struct NoPin;

impl PinProvider for NoPin {
    fn request_pin(&self, _: &PinPrompt) -> Result<Secret<String>, PinError> {
        Err(PinError::NoProvider)
    }

    fn is_stored(&self) -> bool {
        false
    }
}

/// A fixed PIN: from a kubeconfig, where the application allows that.
// X2
#[derive(Clone, Debug)]
pub struct StaticPin(pub Secret<String>);

impl PinProvider for StaticPin {
    fn request_pin(&self, _: &PinPrompt) -> Result<Secret<String>, PinError> {
        Ok(self.0.clone())
    }

    fn is_stored(&self) -> bool {
        true
    }
}
