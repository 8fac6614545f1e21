//! A kubelet plugin that has a provider configuration of its own and reads it afresh for every request, so that a
//! node's providers change without a kubelet restart.
//!
//! The kubelet is configured once, with this one plugin and broad patterns; what it asks is put to the providers of
//! the shim's own configuration, and their answers are joined into one.
// I8, I250

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use navicert_types::image_credential::{CredentialProviderRequest, WireVersion};
use navicert_types::{Clock, Secret};

use crate::auth_file::write_private;
use crate::author::ResponseBuilder;
use crate::cache_key::CacheKeyType;
use crate::config::{ConfigFile, ImageConfig, read_files};
use crate::error::ProviderError;
use crate::profile::Profile;
use crate::provider::{Lookup, ProviderSettings, Providers};
use crate::reload::LoadError;
use crate::service_account::PullIdentity;

/// How long a file that does not decode may still be in the middle of being written.
const CONFIG_SETTLE_TIMEOUT: Duration = Duration::from_millis(500);
/// How often it is looked at meanwhile.
const CONFIG_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long "nobody has credentials" may be remembered: a new configuration may know better.
// I128
const NEGATIVE_CACHE_DURATION: Duration = Duration::from_secs(30);

/// The shim's configuration, with a copy of the last good one to fall back on.
#[derive(Clone, Debug)]
pub struct Shim {
    /// The configuration: a file or a folder.
    pub config: PathBuf,
    /// Where a copy of the last good configuration is kept; nowhere if none.
    pub last_good: Option<PathBuf>,
}

/// Answers a request, or says why there is no answer.
///
/// # Errors
/// [`ShimError`]: the plugin should complain and exit with 1, so that the kubelet does not remember it.
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
    let complaints = failures.iter().map(|error| format!("{error}\n")).collect::<String>();
    Ok(ShimResponse {
        response: merge_answers(&lookup).encode(version),
        warning: warning.unwrap_or_default() + &complaints,
    })
}

/// An answer for standard output, and what to say on standard error.
#[derive(Clone, Debug)]
pub struct ShimResponse {
    /// The response.
    pub response: Secret<Vec<u8>>,
    /// What a person should know; empty if nothing.
    pub warning: String,
}

/// Why the shim has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShimError {
    /// No configuration, and none to fall back on.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// Every provider that matches failed.
    #[error("{0}")]
    Provider(ProviderError),
}

/// All answers as one: it is good for no more than the narrowest of them, and no longer than the shortest.
fn merge_answers(lookup: &Lookup) -> ResponseBuilder {
    let key_type =
        lookup.answers().map(|(_, answer)| answer.entry.key_type()).min().unwrap_or(CacheKeyType::Image);
    let lifetimes = lookup.answers().map(|(_, answer)| answer.entry.lifetime().unwrap_or_default());
    let lifetime = lifetimes.min().unwrap_or(NEGATIVE_CACHE_DURATION);
    let mut response = ResponseBuilder::new(key_type).cache_for(lifetime);
    for (_, answer) in lookup.answers() {
        for (key, credentials) in answer.entry.keyring().entries() {
            let key = String::from_utf8_lossy(key).into_owned();
            // Of several under one key the first provider's is tried first; the response has room for one (I134).
            if let (Some(first), false) = (credentials.first(), response.has(&key)) {
                let added = response.clone().credential(key, first.username.clone(), first.password.clone());
                response = added.unwrap_or(response);
            }
        }
    }
    response
}

impl Shim {
    /// The configuration as it is now; while it is being written, as it will be; and if it is broken, as it was.
    fn load(&self, clock: &dyn Clock) -> Result<(ImageConfig, Option<String>), LoadError> {
        let until = clock.monotonic() + CONFIG_SETTLE_TIMEOUT;
        let (_nobody, never) = mpsc::channel::<()>();
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
                Ok((config, Some(format!("the last good configuration is used: {error}\n"))))
            }
            None => Err(error),
        }
    }

    /// Keeps a copy; only of single files, which is what the copy is.
    fn save_last_good(&self, config: &ImageConfig, files: &[ConfigFile]) {
        let (Some(path), [file]) = (&self.last_good, files) else { return };
        let known = read_files(path).ok().map(|files| crate::config::hash(&files));
        if known.as_deref() != Some(config.hash()) {
            // Without the copy the next broken file fails; this request does not.
            let _ = write_private(path, &file.text);
        }
    }
}

fn read_and_decode(path: &Path) -> Result<(ImageConfig, Vec<ConfigFile>), LoadError> {
    let files = read_files(path)?;
    Ok((ImageConfig::decode(&files, Profile::Hardened)?, files))
}

/// Settings for one request: no cache to speak of, no background.
pub fn settings(
    bin_dir: &Path,
    environment: navicert_plugin::Environment,
    runner: Arc<dyn navicert_plugin::Runner>,
    clock: Arc<dyn Clock>,
) -> ProviderSettings {
    let mut settings = ProviderSettings::new(bin_dir, environment, runner, clock);
    // The kubelet gives this plugin a minute; the ones behind it get a little less, so that we can still say why.
    settings.limits.run = Duration::from_secs(55);
    settings
}
