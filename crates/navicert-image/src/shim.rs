//! A kubelet plugin with its own provider configuration, re-read for every request, so that a node's providers can
//! change without a kubelet restart.
//!
//! The kubelet is configured once, with this plugin and broad patterns. The shim forwards each request to the providers
//! of its own configuration and merges their responses.
// I8, I250

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use navicert_types::image_credential::{CredentialProviderRequest, WireVersion};
use navicert_types::{Clock, Secret, error_chain};

use crate::auth_file::write_private;
use crate::author::ResponseBuilder;
use crate::cache_key::CacheKeyType;
use crate::config::{ConfigFile, ImageConfig, read_files};
use crate::error::ProviderError;
use crate::profile::Profile;
use crate::provider::{Lookup, ProviderSettings, Providers};
use crate::reload::LoadError;
use crate::service_account::PullIdentity;

/// How long to retry a configuration that does not decode, since it may be partially written.
const CONFIG_SETTLE_TIMEOUT: Duration = Duration::from_millis(500);
/// Interval between these retries.
const CONFIG_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Cache duration of a response without credentials, which a configuration change may invalidate.
// I128
const NEGATIVE_CACHE_DURATION: Duration = Duration::from_secs(30);

/// The shim's configuration, with a copy of the last valid one as a fallback.
#[derive(Clone, Debug)]
pub struct Shim {
    /// The configuration file or directory.
    pub config: PathBuf,
    /// Where to save a copy of the last valid configuration, if at all.
    pub last_good: Option<PathBuf>,
}

/// Handles a request.
///
/// # Errors
/// [`ShimError`]: the plugin should print it and exit with 1, so that the kubelet does not cache the result.
pub fn answer(
    shim: &Shim,
    settings: ProviderSettings,
    request: &CredentialProviderRequest,
    version: WireVersion,
) -> Result<ShimResponse, ShimError> {
    let (config, warning) = shim.load(&*settings.clock)?;
    let providers = Providers::new(&config, settings);
    let identity = PullIdentity::Bearer {
        token: request.service_account_token.clone(),
        annotations: request.service_account_annotations.clone(),
    };
    let lookup = providers.lookup(&request.image, &identity);
    let failures: Vec<&ProviderError> = lookup.errors().collect();
    if let (Some(first), None) = (failures.first(), lookup.answers().next()) {
        return Err(ShimError::Provider((*first).clone()));
    }
    let warnings = failures.iter().map(|error| error_chain(*error) + "\n").collect::<String>();
    Ok(ShimResponse {
        response: merge_answers(&lookup).encode(version),
        warning: warning.unwrap_or_default() + &warnings,
    })
}

/// A response for standard output and a warning for standard error.
#[derive(Clone, Debug)]
pub struct ShimResponse {
    /// The response.
    pub response: Secret<Vec<u8>>,
    /// A warning, possibly empty.
    pub warning: String,
}

/// Why the shim has no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShimError {
    /// The configuration is invalid, and there is no fallback.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// All matching providers failed.
    #[error(transparent)]
    Provider(ProviderError),
}

/// Merges all answers into one response with the narrowest scope and the shortest lifetime.
fn merge_answers(lookup: &Lookup) -> ResponseBuilder {
    let key_type =
        lookup.answers().map(|(_, answer)| answer.entry.key_type()).min().unwrap_or(CacheKeyType::Image);
    let lifetimes = lookup.answers().map(|(_, answer)| answer.entry.lifetime().unwrap_or_default());
    let lifetime = lifetimes.min().unwrap_or(NEGATIVE_CACHE_DURATION);
    let mut response = ResponseBuilder::new(key_type).cache_for(lifetime);
    for (_, answer) in lookup.answers() {
        for (key, credentials) in answer.entry.keyring().entries() {
            let key = String::from_utf8_lossy(key).into_owned();
            // A response holds one credential per key; keep the one that would be tried first (I134).
            if let (Some(first), false) = (credentials.first(), response.has(&key)) {
                let added = response.clone().credential(key, first.username.clone(), first.password.clone());
                response = added.unwrap_or(response);
            }
        }
    }
    response
}

impl Shim {
    /// Loads the configuration. Retries while it does not decode, then falls back to the last valid one.
    fn load(&self, clock: &dyn Clock) -> Result<(ImageConfig, Option<String>), LoadError> {
        let until = clock.monotonic() + CONFIG_SETTLE_TIMEOUT;
        let (_sender, never) = mpsc::channel::<()>();
        loop {
            let error = match read_and_decode(&self.config) {
                Ok((config, files)) => {
                    self.save_last_good(&config, &files);
                    return Ok((config, None));
                }
                Err(error) => error,
            };
            if clock.monotonic() >= until {
                return self.fall_back(error);
            }
            let _ = never.recv_timeout(CONFIG_POLL_INTERVAL);
        }
    }

    fn fall_back(&self, error: LoadError) -> Result<(ImageConfig, Option<String>), LoadError> {
        let last = self.last_good.as_deref().and_then(|path| read_and_decode(path).ok());
        match last {
            Some((config, _)) => {
                Ok((config, Some(format!("using the last valid configuration: {}\n", error_chain(&error)))))
            }
            None => Err(error),
        }
    }

    /// Saves a copy of a single-file configuration; directories are not supported.
    fn save_last_good(&self, config: &ImageConfig, files: &[ConfigFile]) {
        let (Some(path), [file]) = (&self.last_good, files) else { return };
        let known = read_files(path).ok().map(|files| crate::config::hash(&files));
        if known.as_deref() != Some(config.hash()) {
            // A failed write only affects later fallbacks, not this request.
            let _ = write_private(path, &file.text);
        }
    }
}

fn read_and_decode(path: &Path) -> Result<(ImageConfig, Vec<ConfigFile>), LoadError> {
    let files = read_files(path)?;
    Ok((ImageConfig::decode(&files, Profile::Hardened)?, files))
}

/// Settings for a process that handles one request.
pub fn settings(
    bin_dir: &Path,
    environment: navicert_plugin::Environment,
    runner: Arc<dyn navicert_plugin::Runner>,
    clock: Arc<dyn Clock>,
) -> ProviderSettings {
    let mut settings = ProviderSettings::new(bin_dir, environment, runner, clock);
    // The kubelet's limit for this plugin is one minute; a shorter limit leaves time to report the error.
    settings.limits.run = Duration::from_secs(55);
    settings
}
