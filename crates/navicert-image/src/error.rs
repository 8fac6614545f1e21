//! Why a provider gave no credentials. Nothing here holds a plugin's stdout; what it said on stderr is kept apart,
//! without secrets, in [`ProviderError::stderr`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::{JoinError, PermitError, RunError};
use thiserror::Error;

use crate::cache_key::KeyTooLong;
use crate::response::ResponseError;
use crate::service_account::ServiceAccountError;

/// Why a provider that matches an image contributed nothing.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The plugin may not run, or is not there.
    #[error("credential provider plugin {provider} cannot be run for image {image}: {source}")]
    Permit {
        /// The provider.
        provider: String,
        /// The image.
        image: String,
        /// Why.
        source: Box<PermitError>,
    },

    /// The plugin did not come to a good end.
    // I98
    #[error("error execing credential provider plugin {provider} for image {image}: {source}")]
    Run {
        /// The provider.
        provider: String,
        /// The image.
        image: String,
        /// Why.
        source: Box<RunError>,
        /// The end of what it said, without secrets.
        stderr: String,
    },

    /// The plugin's answer is of no use.
    #[error("credential provider plugin {provider} for image {image}: {source}")]
    Response {
        /// The provider.
        provider: String,
        /// The image.
        image: String,
        /// Why.
        source: Box<ResponseError>,
        /// The end of what it said, without secrets.
        stderr: String,
    },

    /// The plugin handed the token back where that would let another pod use it.
    // I117
    #[error(
        "credential provider plugin {provider} returned the service account token as the password, which is not \
         allowed unless `cacheType` is `Token`"
    )]
    EchoedToken {
        /// The provider.
        provider: String,
    },

    /// The service account could not be read, or gave no token.
    // I112, I114
    #[error("credential provider plugin {provider}: {source}")]
    ServiceAccount {
        /// The provider.
        provider: String,
        /// Why.
        source: ServiceAccountError,
    },

    /// The cache cannot name this.
    // I124
    #[error("credential provider plugin {provider}: {source}")]
    CacheKey {
        /// The provider.
        provider: String,
        /// Why.
        source: KeyTooLong,
    },

    /// The last run failed a moment ago; the next one waits.
    // I262
    #[error(
        "credential provider plugin {provider} failed a moment ago and is asked again in {remaining:?}: {source}"
    )]
    BackingOff {
        /// The provider.
        provider: String,
        /// How long until the next run.
        remaining: Duration,
        /// How the last one failed.
        source: Arc<ProviderError>,
    },

    /// The run ended without an answer: a bug of ours, or no thread.
    #[error("credential provider plugin {provider}: {source}")]
    RunLost {
        /// The provider.
        provider: String,
        /// Why.
        source: JoinError,
    },
}

impl ProviderError {
    /// What the plugin said on stderr at the end, without secrets; empty if nothing is known.
    pub fn stderr(&self) -> &str {
        match self {
            ProviderError::Run { stderr, .. } | ProviderError::Response { stderr, .. } => stderr,
            ProviderError::BackingOff { source, .. } => source.stderr(),
            _ => "",
        }
    }

    /// Whether a policy said no.
    pub fn is_denied_by_policy(&self) -> bool {
        matches!(self, ProviderError::Permit { source, .. } if matches!(**source, PermitError::Denied(_)))
    }
}

/// Why providers could not be set up.
// I1–I6
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The directory of plugin executables does not exist.
    // I4
    #[error("plugin binary directory {} did not exist", .path.display())]
    NoBinDirectory {
        /// The folder.
        path: PathBuf,
    },
    /// I6, with the path that the kubelet leaves out.
    #[error("plugin binary executable of provider {provider}: {source}")]
    Executable {
        /// The provider.
        provider: String,
        /// Why.
        source: PermitError,
    },
}
