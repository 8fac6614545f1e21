//! Errors of credential sources.

use std::time::Duration;

use thiserror::Error;

use super::external_signer::SignerError;
use super::oidc::OidcError;
use super::token_file::TokenFileError;
use crate::exec::ExecError;

/// Why a source has no credential. Cheap to clone: all callers that waited get the same error.
// C421
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// The exec plugin failed.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The token file cannot be read, and there is no earlier token.
    // C162
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
    /// The external signer failed.
    #[error(transparent)]
    Signer(#[from] SignerError),
    /// The identity provider returned no token.
    // C165
    #[error(transparent)]
    Oidc(#[from] OidcError),
}

impl CredentialError {
    /// Whether the plugin policy denied it.
    pub fn is_denied(&self) -> bool {
        match self {
            CredentialError::Exec(error) => error.is_denied(),
            CredentialError::Signer(error) => {
                matches!(error, SignerError::Denied { .. } | SignerError::PolicyUnreadable { .. })
            }
            CredentialError::TokenFile(_) | CredentialError::Oidc(_) => false,
        }
    }

    /// How long until the next attempt, while backing off.
    // C441
    pub fn retry_in(&self) -> Option<Duration> {
        match self {
            CredentialError::Exec(error) => error.retry_in(),
            CredentialError::TokenFile(_) | CredentialError::Signer(_) | CredentialError::Oidc(_) => None,
        }
    }
}
