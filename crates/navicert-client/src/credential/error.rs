//! Errors of credential sources.

use std::time::Duration;

use thiserror::Error;

#[cfg(feature = "signer")]
use super::external_signer::SignerError;
#[cfg(feature = "oidc")]
use super::oidc::OidcError;
use super::token_file::TokenFileError;
#[cfg(feature = "exec")]
use crate::exec::ExecError;

/// Why a source has no credential. Cheap to clone: all callers that waited get the same error.
// C421
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// The exec plugin failed.
    #[cfg(feature = "exec")]
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The token file cannot be read, and there is no earlier token.
    // C162
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
    /// The external signer failed.
    #[cfg(feature = "signer")]
    #[error(transparent)]
    Signer(#[from] SignerError),
    /// The identity provider returned no token.
    // C165
    #[cfg(feature = "oidc")]
    #[error(transparent)]
    Oidc(#[from] OidcError),
}

impl CredentialError {
    /// Whether the plugin policy denied it.
    pub fn is_denied(&self) -> bool {
        match self {
            #[cfg(feature = "exec")]
            CredentialError::Exec(error) => error.is_denied(),
            #[cfg(feature = "signer")]
            CredentialError::Signer(error) => {
                matches!(error, SignerError::Denied { .. } | SignerError::PolicyUnreadable { .. })
            }
            CredentialError::TokenFile(_) => false,
            #[cfg(feature = "oidc")]
            CredentialError::Oidc(_) => false,
        }
    }

    /// How long until the next attempt, while backing off.
    // C441
    pub fn retry_in(&self) -> Option<Duration> {
        match self {
            #[cfg(feature = "exec")]
            CredentialError::Exec(error) => error.retry_in(),
            _ => None,
        }
    }
}
