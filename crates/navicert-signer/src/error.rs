//! Why there is no signature: one variant per thing a person can do something about. None of them holds a PIN, a key or
//! what was to be signed.

use std::time::Duration;

use navicert_plugin::{PermitError, RunError};
use navicert_types::redact;
use thiserror::Error;

use crate::pin::PinError;
use crate::scheme::Scheme;

/// Why a key did not sign, or could not be found. Cheap to clone: one failure is told to everybody who waited for it.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum SignError {
    /// No token fits.
    #[error("no token {wanted} is present; is the device plugged in?")]
    NoDevice {
        /// What was looked for, as a person would say it.
        wanted: String,
    },
    /// The token was there and is not any more.
    #[error("the token `{token}` was removed; insert it and try again")]
    Removed {
        /// Its label.
        token: String,
    },
    /// The token is there again, as somebody who has to be logged in to anew.
    #[error("the token `{token}` was taken out and inserted again, and its PIN is needed once more")]
    Reinserted {
        /// Its label.
        token: String,
        /// Why the PIN could not be had.
        source: PinError,
    },
    /// The token has no such key.
    #[error("no {wanted}")]
    NoObject {
        /// What was looked for, as a person would say it.
        wanted: String,
    },
    /// Several tokens or keys fit, and none is meant more than the others.
    #[error("{count} {what} fit; say which one is meant (`navicert signer list` shows them)")]
    Ambiguous {
        /// Tokens, or keys.
        what: &'static str,
        /// How many.
        count: usize,
    },
    /// The device says that the PIN is wrong. It is not tried again: devices count.
    #[error(
        "the PIN for the token `{token}` is not right; it is not tried a second time, because devices lock themselves"
    )]
    PinIncorrect {
        /// Its label.
        token: String,
    },
    /// A PIN that no human types now was refused before, or is about to be the last attempt.
    #[error(
        "somebody gave the token `{token}` a wrong PIN since the last right one; a stored PIN is not tried then: log in once by hand"
    )]
    PinCountLow {
        /// Its label.
        token: String,
    },
    /// The device has locked itself.
    #[error(
        "the token `{token}` is locked after too many wrong PINs; unlock it with its PUK or its administration tool"
    )]
    PinLocked {
        /// Its label.
        token: String,
    },
    /// The PIN could not be had.
    #[error("the PIN for the token `{token}` is needed")]
    PinNeeded {
        /// Its label.
        token: String,
        /// Why not.
        source: PinError,
    },
    /// A human said no.
    #[error("cancelled")]
    UserCancelled,
    /// The key cannot do what is asked.
    #[error("the key cannot do {scheme}")]
    UnsupportedScheme {
        /// What was asked for.
        scheme: String,
    },
    /// The server and the key have nothing in common.
    #[error("the server takes no signature this key can make (the key can do {can})")]
    NoCommonScheme {
        /// What the key can do.
        can: String,
    },
    /// What came back is no signature of this key (C834).
    #[error(
        "the {scheme} signature that came back is not by the key of the certificate: the signer used another key or another padding; nothing was sent"
    )]
    WrongSignature {
        /// What it should have been.
        scheme: Scheme,
    },
    /// A digest cannot be signed with a scheme that hashes by itself, or is of the wrong length.
    #[error("{scheme} needs {expected}")]
    Input {
        /// The scheme.
        scheme: Scheme,
        /// What it needs.
        expected: &'static str,
    },
    /// A key that wants its PIN for every single signature, where the module does not take it in between.
    #[error(
        "the key in the token `{token}` wants its PIN for every signature, as PIV slot 9c does, and its module cannot do that here ({code}); use another key, such as slot 9a's"
    )]
    AlwaysAuthenticates {
        /// The token's label.
        token: String,
        /// The module's code.
        code: String,
    },
    /// The module cannot be loaded.
    #[error("the PKCS#11 module `{path}` cannot be loaded: {problem}")]
    Module {
        /// The module.
        path: String,
        /// The loader's word.
        problem: String,
    },
    /// The module reports something else.
    #[error("the PKCS#11 module reports {code} in {operation}")]
    Device {
        /// What was being done.
        operation: String,
        /// The module's code.
        code: String,
    },
    /// A signer program may not run.
    #[error("the signer may not run")]
    Denied {
        /// Why.
        source: PermitError,
    },
    /// A signer program gave no answer.
    #[error("the signer gave no answer")]
    Run {
        /// Why.
        source: RunError,
    },
    /// A signer took too long inside a handshake (C842).
    #[error(
        "the signer `{signer}` did not answer within {} seconds; a server waits about half a minute for a handshake, so enter the PIN beforehand (`navicert signer serve`) and touch the device when it blinks",
        .after.as_secs()
    )]
    Slow {
        /// The program or socket.
        signer: String,
        /// How long was waited.
        after: Duration,
    },
    /// What a signer answered makes no sense.
    #[error("the signer `{signer}` answered something that cannot be used: {problem}")]
    Garbage {
        /// The program or socket.
        signer: String,
        /// What is wrong with it; never what it was.
        problem: String,
    },
    /// A signer says in its own words why not.
    #[error("the signer `{signer}` says {reason}: {}", redact::terminal(.message))]
    Remote {
        /// The program or socket.
        signer: String,
        /// Its reason (C884).
        reason: Reason,
        /// Its words, cleaned.
        message: String,
    },
    /// A socket cannot be used.
    #[error("the signer's socket `{path}` cannot be used: {problem}")]
    Socket {
        /// The path.
        path: String,
        /// Why not.
        problem: String,
    },
    /// Nothing a user could mend.
    #[error("{0}")]
    Internal(String),
}

/// The reasons of the protocol's second version (C884).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No device, or it is gone.
    NoDevice,
    /// No such key or certificate.
    NoObject,
    /// The PIN is wrong.
    PinIncorrect,
    /// The device is locked.
    PinLocked,
    /// A human said no.
    UserCancelled,
    /// The key cannot do that.
    UnsupportedScheme,
    /// Anything else.
    Internal,
}

impl Reason {
    /// As the wire spells it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::NoDevice => "NoDevice",
            Reason::NoObject => "NoObject",
            Reason::PinIncorrect => "PinIncorrect",
            Reason::PinLocked => "PinLocked",
            Reason::UserCancelled => "UserCancelled",
            Reason::UnsupportedScheme => "UnsupportedScheme",
            Reason::Internal => "Internal",
        }
    }

    /// By its name; anything unknown is [`Reason::Internal`].
    pub fn by_name(name: &str) -> Self {
        const ALL: [Reason; 6] = [
            Reason::NoDevice,
            Reason::NoObject,
            Reason::PinIncorrect,
            Reason::PinLocked,
            Reason::UserCancelled,
            Reason::UnsupportedScheme,
        ];
        ALL.into_iter().find(|reason| reason.name() == name).unwrap_or(Reason::Internal)
    }

    /// Whether trying again by itself could do harm, or only annoy (C884).
    pub fn forbids_retry(self) -> bool {
        matches!(self, Reason::PinIncorrect | Reason::PinLocked | Reason::UserCancelled)
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl SignError {
    /// The reason as the protocol has it.
    pub fn reason(&self) -> Reason {
        match self {
            SignError::NoDevice { .. } | SignError::Removed { .. } => Reason::NoDevice,
            SignError::NoObject { .. } | SignError::Ambiguous { .. } => Reason::NoObject,
            SignError::PinIncorrect { .. } | SignError::PinCountLow { .. } => Reason::PinIncorrect,
            SignError::PinLocked { .. } => Reason::PinLocked,
            SignError::UserCancelled => Reason::UserCancelled,
            SignError::PinNeeded { source, .. } | SignError::Reinserted { source, .. } => source.reason(),
            SignError::UnsupportedScheme { .. } | SignError::NoCommonScheme { .. } => {
                Reason::UnsupportedScheme
            }
            SignError::Remote { reason, .. } => *reason,
            _ => Reason::Internal,
        }
    }

    /// Whether a policy is the reason.
    pub fn is_denied(&self) -> bool {
        matches!(self, SignError::Denied { .. })
    }

    /// The whole story in one line: this error and everything behind it.
    pub fn with_sources(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            text.push_str(": ");
            text.push_str(&error.to_string());
            source = error.source();
        }
        text
    }
}
