//! Why there is no credential.

use std::sync::Arc;

use thiserror::Error;

/// Why a source has no credential. Cheap to clone: one failure is told to everybody who waited for it (C421).
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// A token file gave no token, and there is no earlier one to go on with (C162).
    #[error("read token file `{path}`")]
    TokenFile {
        /// The file.
        path: String,
        /// What the operating system said.
        source: Arc<std::io::Error>,
    },
}
