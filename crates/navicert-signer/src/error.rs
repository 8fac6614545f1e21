//! Errors of finding keys and signing: one variant per failure a user can act on. No error contains a PIN, a private
//! key or the signed message.

use std::time::Duration;

use navicert_plugin::{PermitError, RunError};
use navicert_types::redact;
use thiserror::Error;

use crate::pin::PinError;
use crate::scheme::Scheme;

/// Why a key was not found or did not sign. Cheap to clone: one failure is returned to every waiting caller.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum SignError {
    /// No token matches.
    #[error("PKCS#11 token not found: {wanted}; check that the device is plugged in")]
    NoDevice {
        /// Description of the search.
        wanted: String,
    },
    /// The token was removed.
    #[error("token `{token}` was removed; insert it and try again")]
    Removed {
        /// Its label.
        token: String,
    },
    /// The token was reinserted and needs a new login.
    #[error("token `{token}` was reinserted and needs its PIN again")]
    Reinserted {
        /// Its label.
        token: String,
        /// Why no PIN is available.
        source: PinError,
    },
    /// The token has no matching private key.
    #[error("no private key {wanted}")]
    NoKey {
        /// Description of the search.
        wanted: String,
    },
    /// The token has no matching certificate.
    #[error("no certificate {wanted}")]
    NoCertificate {
        /// Description of the search.
        wanted: String,
    },
    /// The certificate does not parse, or belongs to another key.
    #[error("no usable certificate {wanted}: {problem}")]
    UnusableCertificate {
        /// Description of the search.
        wanted: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The running signer has other keys.
    #[error("no such key is served by this signer")]
    NotServed,
    /// The configuration selects no key.
    #[error("invalid signer configuration: {problem}")]
    Configuration {
        /// What is wrong with it.
        problem: String,
    },
    /// Several tokens or keys match.
    #[error("{count} {what} match; select one of them")]
    Ambiguous {
        /// Tokens, or keys.
        what: &'static str,
        /// How many.
        count: usize,
    },
    /// The device rejected the PIN. It is not tried again: devices lock after a few failed attempts.
    #[error("incorrect PIN for token `{token}`; not retried, because devices lock after repeated failures")]
    PinIncorrect {
        /// Its label.
        token: String,
    },
    /// The token reports failed logins, so a stored PIN is not tried: it could lock the token.
    #[error(
        "token `{token}` reports a failed login since the last successful one; a stored PIN is not tried then: log in once interactively"
    )]
    PinCountLow {
        /// Its label.
        token: String,
    },
    /// The device is locked.
    #[error(
        "token `{token}` is locked after too many incorrect PINs; unlock it with its PUK or its administration tool"
    )]
    PinLocked {
        /// Its label.
        token: String,
    },
    /// The token needs a PIN and none is available.
    #[error("failed to get the PIN for token `{token}`")]
    PinNeeded {
        /// Its label.
        token: String,
        /// The cause.
        source: PinError,
    },
    /// The user cancelled.
    #[error("cancelled by the user")]
    UserCancelled,
    /// The key does not support the scheme.
    #[error("the key does not support {scheme}")]
    UnsupportedScheme {
        /// The requested scheme.
        scheme: String,
    },
    /// The server and the key have no signature scheme in common.
    #[error("no signature scheme in common with the server (the key supports {can})")]
    NoCommonScheme {
        /// The schemes the key supports.
        can: String,
    },
    /// The returned signature does not verify.
    // C834
    #[error(
        "the {scheme} signature does not match the certificate's key: the signer used another key or padding; nothing was sent"
    )]
    WrongSignature {
        /// The requested scheme.
        scheme: Scheme,
    },
    /// The scheme cannot sign a digest, or the digest has the wrong length.
    #[error("{scheme} needs {expected}")]
    Input {
        /// The scheme.
        scheme: Scheme,
        /// The input it accepts.
        expected: &'static str,
    },
    /// The key requires its PIN for every signature, and the module does not accept it within a signing operation.
    #[error(
        "the key in token `{token}` requires its PIN for every signature, as PIV slot 9c does, which its module does not support here ({code}); use another key, for example in slot 9a"
    )]
    AlwaysAuthenticates {
        /// The token's label.
        token: String,
        /// The return code of the module.
        code: String,
    },
    /// The module cannot be loaded.
    #[error("failed to load PKCS#11 module `{path}`: {problem}")]
    Module {
        /// The module.
        path: String,
        /// The error of the dynamic loader or of `C_Initialize`.
        problem: String,
    },
    /// Any other error of the module.
    #[error("PKCS#11 function {operation} failed: {code}")]
    Device {
        /// The PKCS#11 function.
        operation: String,
        /// The return code of the module.
        code: String,
    },
    /// The policy does not allow the signer program.
    #[error("running the signer is not allowed")]
    Denied {
        /// The cause.
        source: PermitError,
    },
    /// The signer program failed.
    #[error("failed to run the signer")]
    Run {
        /// The cause.
        source: RunError,
    },
    /// The signer took too long.
    // C842
    #[error(
        "signer `{signer}` did not respond within {} seconds; servers abort a TLS handshake after about 30 seconds, so enter the PIN beforehand and touch the device when it blinks",
        .after.as_secs()
    )]
    TimedOut {
        /// The program or socket.
        signer: String,
        /// The timeout.
        after: Duration,
    },
    /// The signer's response cannot be used.
    #[error("invalid response from signer `{signer}`: {problem}")]
    InvalidResponse {
        /// The program or socket.
        signer: String,
        /// What is wrong with it; never its content.
        problem: String,
    },
    /// The signer reported an error.
    #[error("signer `{signer}` failed with {reason}: {}", redact::terminal(.message))]
    Remote {
        /// The program or socket.
        signer: String,
        /// The reported reason.
        // C884
        reason: Reason,
        /// The reported message; control characters are escaped when displayed.
        message: String,
    },
    /// The signer's socket cannot be used.
    #[error("failed to use signer socket `{path}`: {problem}")]
    Socket {
        /// The path.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An error the user cannot fix.
    #[error("{0}")]
    Internal(String),
}

/// Minimum delay before the next attempt after the user cancelled, the PIN was incorrect or the device is locked.
const MIN_BACKOFF_AFTER_REFUSAL: Duration = Duration::from_secs(30);

/// Failure reasons of the signer protocol v1.
// C884
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The device is missing or was removed.
    NoDevice,
    /// No such key or certificate.
    NoObject,
    /// The PIN is incorrect.
    PinIncorrect,
    /// The device is locked.
    PinLocked,
    /// The user cancelled.
    UserCancelled,
    /// The key does not support the scheme.
    UnsupportedScheme,
    /// Anything else.
    Internal,
}

impl PinError {
    /// The reason reported in the signer protocol.
    // C884
    pub fn reason(&self) -> Reason {
        match self {
            PinError::Cancelled | PinError::Empty => Reason::UserCancelled,
            _ => Reason::Internal,
        }
    }
}

impl Reason {
    /// The name used on the wire.
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

    /// Parses a wire name; an unknown name is [`Reason::Internal`].
    pub(crate) fn by_name(name: &str) -> Self {
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

    /// Whether an automatic retry could lock the device or would prompt the user again.
    // C884
    pub(crate) fn forbids_retry(self) -> bool {
        matches!(self, Reason::PinIncorrect | Reason::PinLocked | Reason::UserCancelled)
    }

    /// Minimum delay before the next automatic attempt.
    // C884
    pub fn min_backoff(self) -> Duration {
        if self.forbids_retry() { MIN_BACKOFF_AFTER_REFUSAL } else { Duration::ZERO }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl SignError {
    /// The reason reported in the signer protocol.
    pub fn reason(&self) -> Reason {
        match self {
            SignError::NoDevice { .. } | SignError::Removed { .. } => Reason::NoDevice,
            SignError::NoKey { .. }
            | SignError::NoCertificate { .. }
            | SignError::UnusableCertificate { .. }
            | SignError::NotServed
            | SignError::Configuration { .. }
            | SignError::Ambiguous { .. } => Reason::NoObject,
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

    /// Whether the key of a certificate is gone, so that reading the certificate again may find another pair. A configuration that
    /// selects no key, or several, is not worth another attempt.
    // C821
    pub fn is_key_gone(&self) -> bool {
        match self {
            SignError::NoKey { .. } | SignError::NoCertificate { .. } | SignError::NotServed => true,
            // The protocol has one reason for all of them.
            SignError::Remote { reason, .. } => *reason == Reason::NoObject,
            _ => false,
        }
    }

    /// Whether the plugin policy denied the signer.
    pub fn is_denied(&self) -> bool {
        matches!(self, SignError::Denied { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // C821, C884
    #[test]
    fn only_a_missing_key_is_worth_reading_the_certificate_again() {
        let wanted = || "with id 01".to_owned();
        let remote =
            |reason| SignError::Remote { signer: "s".to_owned(), reason, message: "no key".to_owned() };
        for (error, reason, is_gone) in [
            (SignError::NoKey { wanted: wanted() }, Reason::NoObject, true),
            (SignError::NoCertificate { wanted: wanted() }, Reason::NoObject, true),
            (SignError::NotServed, Reason::NoObject, true),
            (
                SignError::UnusableCertificate { wanted: wanted(), problem: "x".to_owned() },
                Reason::NoObject,
                false,
            ),
            (SignError::Configuration { problem: "x".to_owned() }, Reason::NoObject, false),
            (SignError::Ambiguous { what: "keys", count: 2 }, Reason::NoObject, false),
            (SignError::Removed { token: "t".to_owned() }, Reason::NoDevice, false),
            (remote(Reason::NoObject), Reason::NoObject, true),
            (remote(Reason::Internal), Reason::Internal, false),
        ] {
            assert_eq!((error.reason(), error.is_key_gone()), (reason, is_gone), "{error}");
        }
    }
}
