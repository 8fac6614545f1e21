//! Where a PIN comes from: a human at a terminal or a pinentry program, or a file only its owner can read. Never an
//! argument, and never the environment.

mod file;
mod pinentry;
mod terminal;

use std::fmt;

use navicert_types::Secret;
use thiserror::Error;

use crate::error::Reason;

pub use file::PinFile;
pub use pinentry::Pinentry;
pub use terminal::TerminalPin;

/// Somebody who knows the PIN.
///
/// Asked once for a login; what it answers is tried once. `Debug` shows no PIN.
pub trait AskPin: fmt::Debug + Send + Sync {
    /// The PIN for this token. Blocks as long as a human takes.
    ///
    /// # Errors
    /// [`PinError`].
    fn ask(&self, question: &Question) -> Result<Secret<String>, PinError>;

    /// Whether the answer is the same every time, so that trying it again after it was wrong can only do harm.
    fn is_stored(&self) -> bool;
}

/// What a human should know before typing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The token's label.
    pub token: String,
    /// The device says that one more wrong PIN locks it.
    pub last_try: bool,
}

/// Why there is no PIN.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PinError {
    /// There is neither a terminal nor a file nor a pinentry program.
    #[error(
        "there is nobody to ask: run it on a terminal, set NAVICERT_PINENTRY to a pinentry program, or add `pin-source=file:…` to the URI"
    )]
    NobodyToAsk,
    /// A human said no.
    #[error("cancelled")]
    Cancelled,
    /// The file cannot be used.
    #[error("the PIN file `{path}` {problem}")]
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A pin-source that is not a file.
    #[error("`pin-source` must be a file (`file:/path` or `/path`)")]
    Source,
    /// The pinentry program gave none.
    #[error("the pinentry program `{program}` {problem}")]
    Pinentry {
        /// The program.
        program: String,
        /// What went wrong.
        problem: String,
    },
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}")]
    Terminal(String),
    /// What was typed cannot be a PIN.
    #[error("the PIN is empty")]
    Empty,
}

impl PinError {
    /// As the protocol has it (C884).
    pub fn reason(&self) -> Reason {
        match self {
            PinError::Cancelled | PinError::Empty => Reason::UserCancelled,
            _ => Reason::Internal,
        }
    }
}

/// Nobody: a key that needs no PIN works, any other says what to do.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl AskPin for Nobody {
    fn ask(&self, _: &Question) -> Result<Secret<String>, PinError> {
        Err(PinError::NobodyToAsk)
    }

    fn is_stored(&self) -> bool {
        false
    }
}

/// A PIN somebody handed over: from a kubeconfig, where the application allows that (X2).
#[derive(Clone, Debug)]
pub struct GivenPin(pub Secret<String>);

impl AskPin for GivenPin {
    fn ask(&self, _: &Question) -> Result<Secret<String>, PinError> {
        Ok(self.0.clone())
    }

    fn is_stored(&self) -> bool {
        true
    }
}
