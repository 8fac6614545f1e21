//! Provider errors. None of them contains a plugin's stdout; its redacted stderr is available from
//! [`ProviderError::stderr`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::{JoinError, PermitError, RunError};
use thiserror::Error;

use crate::cache_key::KeyTooLong;
use crate::response::ResponseError;
use crate::service_account::ServiceAccountError;

/// Why a matching provider returned no credentials.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The plugin is not allowed to run, or is missing.
    #[error("failed to run credential provider plugin {provider} for image {image}")]
    Permit {
        /// The provider.
        provider: String,
        /// The image.
        image: String,
        /// The cause.
        source: Box<PermitError>,
    },

    /// The plugin failed.
    // I98
    #[error("error execing credential provider plugin {provider} for image {image}")]
    Run {
        /// The provider.
        provider: String,
        /// The image.
        image: String,
        /// The cause.
        source: Box<RunError>,
        /// The redacted end of its stderr.
        stderr: String,
    },

    /// The plugin's response is invalid.
    #[error("credential provider plugin {provider} returned an invalid response for image {image}")]
    Response {
        /// The provider.
        provider: String,
        /// The image.
        image: String,
        /// The cause.
        source: Box<ResponseError>,
        /// The redacted end of its stderr.
        stderr: String,
    },

    /// The plugin returned the service account token as a password, which would let other pods use it.
    // I117
    #[error(
        "credential provider plugin {provider} returned the service account token as the password, which is not \
         allowed unless `cacheType` is `Token`"
    )]
    EchoedToken {
        /// The provider.
        provider: String,
    },

    /// The service account could not be read, or no token was issued.
    // I112, I114
    #[error("credential provider plugin {provider} was not run")]
    ServiceAccount {
        /// The provider.
        provider: String,
        /// The cause.
        source: ServiceAccountError,
    },

    /// The cache key is too long.
    // I124
    #[error("failed to create a cache key for credential provider plugin {provider}")]
    CacheKey {
        /// The provider.
        provider: String,
        /// The cause.
        source: KeyTooLong,
    },

    /// The last run failed, and the back-off has not expired.
    // I262
    #[error("credential provider plugin {provider} failed recently, next attempt in {remaining:?}")]
    BackingOff {
        /// The provider.
        provider: String,
        /// Time until the next attempt.
        remaining: Duration,
        /// The last failure.
        source: Arc<ProviderError>,
    },

    /// The run ended without a result: its thread panicked or could not be started.
    #[error("credential provider plugin {provider} failed")]
    RunLost {
        /// The provider.
        provider: String,
        /// The cause.
        source: JoinError,
    },
}

impl ProviderError {
    /// The redacted end of the plugin's stderr; empty if unknown.
    pub fn stderr(&self) -> &str {
        match self {
            ProviderError::Run { stderr, .. } | ProviderError::Response { stderr, .. } => stderr,
            ProviderError::BackingOff { source, .. } => source.stderr(),
            _ => "",
        }
    }
}

/// Why providers failed to start.
// I1–I6
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The directory of plugin executables does not exist.
    // I4
    #[error("plugin binary directory {} did not exist", .path.display())]
    NoBinDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// The plugin executable is missing or not executable. The kubelet's message omits the path.
    // I6
    #[error("plugin binary executable of provider {provider} cannot be run")]
    Executable {
        /// The provider.
        provider: String,
        /// The cause.
        source: PermitError,
    },
}
