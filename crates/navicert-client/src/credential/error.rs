//! Why there is no credential.

use std::time::Duration;

use thiserror::Error;

use super::hardware_key::SignerError;
use super::oidc::OidcError;
use super::token_file::TokenFileError;
use crate::exec::ExecError;

/// Why a source has no credential. Cheap to clone: one failure is told to everybody who waited for it (C421).
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// A plugin gave none.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A token file gave none, and there is no earlier one to go on with (C162).
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
    /// An external signer gave no certificate (§8).
    #[error(transparent)]
    Signer(#[from] SignerError),
    /// An identity provider gave none (C165).
    #[error(transparent)]
    Oidc(#[from] OidcError),
}

impl CredentialError {
    /// Whether a plugin policy is the reason.
    pub fn is_denied(&self) -> bool {
        match self {
            CredentialError::Exec(error) => error.is_denied(),
            CredentialError::Signer(error) => {
                matches!(error, SignerError::Denied { .. } | SignerError::PolicyUnreadable { .. })
            }
            CredentialError::TokenFile(_) | CredentialError::Oidc(_) => false,
        }
    }

    /// How long until another attempt is made, if it is not at once (C441).
    pub fn retry_in(&self) -> Option<Duration> {
        match self {
            CredentialError::Exec(error) => error.retry_in(),
            CredentialError::TokenFile(_) | CredentialError::Signer(_) | CredentialError::Oidc(_) => None,
        }
    }
}
