//! Loads providers from the paths of the environment, or from paths of the caller.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use navicert_plugin::{Environment, Policy, ProcessRunner};
use navicert_types::SystemClock;
use thiserror::Error;

use super::{ProviderSettings, Providers};
use crate::default_paths;
use crate::error::StartError;
use crate::profile::Profile;
use crate::reload::{LoadError, load};
use crate::service_account::ServiceAccounts;

/// Loads [`Providers`]. What is not set comes from the environment of this process.
///
/// ```no_run
/// use navicert_image::{Profile, Providers};
///
/// let providers = Providers::builder()
///     .config("/etc/kubernetes/image-credential-providers.yaml")
///     .bin_dir("/usr/libexec/kubernetes/providers")
///     .profile(Profile::Kube)
///     .build()?;
/// # Ok::<(), navicert_image::ProvidersError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ProvidersBuilder {
    config: Option<PathBuf>,
    bin_dir: Option<PathBuf>,
    environment: Option<Environment>,
    profile: Profile,
    policy: Policy,
    service_accounts: Option<Arc<dyn ServiceAccounts>>,
}

/// Why providers cannot be loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProvidersError {
    /// The configuration cannot be read or is invalid.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A plugin executable is missing or cannot be run.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Providers {
    /// Loads the providers that the environment names: `NAVICERT_IMAGE_CONFIG` and `NAVICERT_IMAGE_BIN_DIR`, else the
    /// directories of navicert. The one-line form of [`Providers::builder`].
    ///
    /// # Errors
    /// [`ProvidersError`]: the configuration is invalid, or an executable is missing.
    pub fn from_env() -> Result<Self, ProvidersError> {
        Providers::builder().build()
    }

    /// Loads providers from other paths, with another profile or policy.
    pub fn builder() -> ProvidersBuilder {
        ProvidersBuilder::default()
    }
}

impl ProvidersBuilder {
    /// Sets the configuration: a file, or a directory of files. By default `NAVICERT_IMAGE_CONFIG`, else `image/config` in the
    /// user's or the system's directory of navicert.
    pub fn config(mut self, path: impl Into<PathBuf>) -> Self {
        self.config = Some(path.into());
        self
    }

    /// Sets the directory of the plugin executables. By default `NAVICERT_IMAGE_BIN_DIR`, else `image/bin` in the user's or
    /// the system's directory of navicert.
    pub fn bin_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.bin_dir = Some(path.into());
        self
    }

    /// Sets the environment that the default paths come from and that plugins inherit. By default that of this process.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Sets the profile: `hardened` by default.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets which executables may run: all by default.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the access to an API server, for providers that need a service account.
    pub fn service_accounts(mut self, api: Arc<dyn ServiceAccounts>) -> Self {
        self.service_accounts = Some(api);
        self
    }

    /// Loads the configuration and checks that the executable of every provider can be run. Runs none of them.
    ///
    /// # Errors
    /// [`ProvidersError`].
    pub fn build(self) -> Result<Providers, ProvidersError> {
        let environment = self.environment.unwrap_or_else(process_environment);
        let variable = |name: &str| environment.variable(name).map(OsString::from);
        let (default_config, default_bin_dir) = default_paths::config_and_bin_dir(&variable);
        let config = load(&self.config.unwrap_or(default_config), self.profile)?;
        let clock = Arc::new(SystemClock);
        let runner = Arc::new(ProcessRunner::new(Arc::clone(&clock) as _));
        let bin_dir = self.bin_dir.unwrap_or(default_bin_dir);
        let settings = ProviderSettings {
            profile: self.profile,
            policy: self.policy,
            service_accounts: self.service_accounts,
            ..ProviderSettings::new(&bin_dir, environment, runner, clock)
        };
        let providers = Providers::new(&config, settings);
        providers.check_executables()?;
        Ok(providers)
    }
}

#[expect(clippy::disallowed_methods, reason = "the default of library users; programs pass their own")]
fn process_environment() -> Environment {
    std::env::vars_os().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::*;
    use crate::default_paths::{BIN_DIR_VARIABLE, CONFIG_VARIABLE};
    use crate::reference::Repository;
    use crate::service_account::PullIdentity;

    const CONFIG: &str = "
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: fake
  matchImages: [r.example]
  defaultCacheDuration: 1m
  apiVersion: credentialprovider.kubelet.k8s.io/v1
";

    /// An environment that names a configuration and a provider that runs this script.
    fn environment(folder: &Path, script: &str) -> Environment {
        let (config, plugin) = (folder.join("config.yaml"), folder.join("fake"));
        fs::write(&config, CONFIG).unwrap();
        fs::write(&plugin, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).unwrap();
        let paths = [(CONFIG_VARIABLE, config.as_os_str()), (BIN_DIR_VARIABLE, folder.as_os_str())];
        paths.into_iter().chain([("PATH", "/usr/bin:/bin".as_ref())]).collect()
    }

    const ANSWER: &str = r#"cat >/dev/null; echo '{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderResponse","cacheKeyType":"Registry","auth":{"r.example":{"username":"ann","password":"secret"}}}'"#;

    #[test]
    fn finds_configuration_and_plugins_through_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let environment = environment(folder.path(), ANSWER);
        let providers = Providers::builder().environment(environment).build().unwrap();
        let image: Repository = "r.example/app:v1".parse().unwrap();
        let credentials = providers.credentials(&image, &PullIdentity::None).unwrap();
        assert_eq!(credentials.len(), 1);
        let first = credentials.first().unwrap();
        assert_eq!((first.username.as_str(), first.password.expose().as_str()), ("ann", "secret"));
        let other: Repository = "other.example/app".parse().unwrap();
        assert!(providers.credentials(&other, &PullIdentity::None).unwrap().is_empty(), "an anonymous pull");
    }

    #[test]
    fn failed_provider_is_an_error_if_there_is_no_credential() {
        let folder = tempfile::tempdir().unwrap();
        let environment = environment(folder.path(), "exit 3");
        let providers = Providers::builder().environment(environment).build().unwrap();
        let image: Repository = "r.example/app".parse().unwrap();
        let error = providers.credentials(&image, &PullIdentity::None).unwrap_err();
        assert!(error.to_string().contains("fake"), "{error}");
    }

    #[test]
    fn missing_configuration_and_missing_executable_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let environment = environment(folder.path(), ANSWER);
        let builder = Providers::builder().environment(environment);
        let missing = builder.clone().config(folder.path().join("no")).build().unwrap_err();
        assert!(matches!(missing, ProvidersError::Load(_)), "{missing}");
        fs::remove_file(folder.path().join("fake")).unwrap();
        let missing = builder.build().unwrap_err();
        assert!(matches!(missing, ProvidersError::Start(_)), "{missing}");
    }
}
