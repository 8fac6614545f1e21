//! Reloads the configuration of providers in use. A valid change takes effect atomically; an invalid one is rejected.
// I8, I250

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use navicert_types::error_chain;
use thiserror::Error;

use crate::config::{self, ConfigErrors, ConfigFile, ConfigFileError, ImageConfig, read_files};
use crate::metrics::MetricsEvent;
use crate::profile::Profile;
use crate::provider::{ProviderSettings, Providers};

/// Why the configuration could not be loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The files cannot be read.
    #[error(transparent)]
    File(#[from] ConfigFileError),
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
}

/// Reads and validates a configuration file or directory.
///
/// # Errors
/// [`LoadError`].
pub fn load(path: &Path, profile: Profile) -> Result<ImageConfig, LoadError> {
    Ok(ImageConfig::decode(&read_files(path)?, profile)?)
}

/// Providers that reload their configuration files.
#[derive(Debug)]
pub struct Reloader {
    path: PathBuf,
    settings: ProviderSettings,
    state: Mutex<ReloaderState>,
}

#[derive(Debug)]
struct ReloaderState {
    current: Arc<Providers>,
    rejected: Option<RejectedConfig>,
}

/// A configuration that was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedConfig {
    /// The hash of its files; `None` if they could not be read.
    pub hash: Option<String>,
    /// Why it was rejected.
    pub reason: String,
}

/// The result of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigReload {
    /// The files have not changed.
    Unchanged,
    /// The changed configuration is in use.
    Applied,
    /// The changed configuration is invalid; the previous one stays in use.
    Rejected(RejectedConfig),
}

impl Reloader {
    /// Loads the initial configuration.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn open(path: &Path, settings: ProviderSettings) -> Result<Self, LoadError> {
        let config = load(path, settings.profile)?;
        let current = Arc::new(Providers::new(&config, settings.clone()));
        Ok(Reloader {
            path: path.to_owned(),
            settings,
            state: Mutex::new(ReloaderState { current, rejected: None }),
        })
    }

    /// The providers in use. A caller may keep using them after a reload.
    pub fn providers(&self) -> Arc<Providers> {
        Arc::clone(&self.lock().current)
    }

    /// The rejected configuration, while the files still contain it.
    pub fn rejected(&self) -> Option<RejectedConfig> {
        self.lock().rejected.clone()
    }

    /// Re-reads the files. Unchanged providers keep their caches.
    pub fn reload(&self) -> ConfigReload {
        let files = match read_files(&self.path) {
            Ok(files) => files,
            Err(error) => return self.reject(RejectedConfig { hash: None, reason: error_chain(&error) }),
        };
        self.apply(&files)
    }

    fn apply(&self, files: &[ConfigFile]) -> ConfigReload {
        let hash = config::hash(files);
        let current = self.providers();
        if current.hash() == hash {
            self.lock().rejected = None;
            return ConfigReload::Unchanged;
        }
        match ImageConfig::decode(files, self.settings.profile) {
            Ok(config) => {
                let next = Arc::new(current.reconfigured(&config));
                *self.lock() = ReloaderState { current: next, rejected: None };
                ConfigReload::Applied
            }
            Err(error) => self.reject(RejectedConfig { hash: Some(hash), reason: error_chain(&error) }),
        }
    }

    fn reject(&self, rejected: RejectedConfig) -> ConfigReload {
        let mut state = self.lock();
        if state.rejected.as_ref() == Some(&rejected) {
            return ConfigReload::Unchanged;
        }
        state.rejected = Some(rejected.clone());
        drop(state);
        self.settings.recorder.record(&MetricsEvent::ConfigRejected);
        ConfigReload::Rejected(rejected)
    }

    fn lock(&self) -> MutexGuard<'_, ReloaderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use navicert_plugin::{Environment, Script, ScriptedRunner};
    use navicert_types::clock::ManualClock;

    use super::*;
    use crate::service_account::PullIdentity;

    const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n";

    fn provider(name: &str, pattern: &str) -> String {
        format!(
            "- {{name: {name}, matchImages: ['{pattern}'], defaultCacheDuration: 1h, \
             apiVersion: credentialprovider.kubelet.k8s.io/v1}}\n"
        )
    }

    fn answer(user: &str) -> Script {
        Script::prints(format!(
            r#"{{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1",
            "cacheKeyType":"Registry","auth":{{"*.io":{{"username":"{user}","password":"p"}}}}}}"#
        ))
    }

    fn users(reloader: &Reloader, image: &str) -> Vec<String> {
        let found = reloader.providers().lookup(image, &PullIdentity::None);
        found.attempts().iter().map(|attempt| attempt.credential.username.clone()).collect()
    }

    #[test]
    fn applies_changes_keeps_caches_of_unchanged_providers_and_rejects_invalid_files() {
        // I250
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.yaml");
        let write = |text: String| fs::write(&path, text).unwrap();
        write(format!("{HEAD}{}", provider("sh", "a.io")));
        let runner = Arc::new(ScriptedRunner::new([answer("first"), answer("second")]));
        let clock = Arc::new(ManualClock::at(0));
        let settings =
            ProviderSettings::new(Path::new("/bin"), Environment::empty(), Arc::clone(&runner) as _, clock);
        let reloader = Reloader::open(&path, settings).unwrap();
        assert_eq!(users(&reloader, "a.io/x"), ["first"]);
        assert_eq!(reloader.reload(), ConfigReload::Unchanged);

        write(format!("{HEAD}{}{}", provider("sh", "a.io"), provider("cat", "b.io")));
        assert_eq!(reloader.reload(), ConfigReload::Applied);
        assert_eq!(
            (users(&reloader, "a.io/x"), users(&reloader, "b.io/x")),
            (vec!["first".to_owned()], vec!["second".to_owned()])
        );
        assert_eq!(runner.commands().len(), 2);

        let good = reloader.providers().hash().to_owned();
        write(format!("{HEAD}- name: broken\n"));
        let ConfigReload::Rejected(rejected) = reloader.reload() else { panic!("a broken file took over") };
        assert!(rejected.reason.contains("providers[0](broken).matchImages"), "{}", rejected.reason);
        assert_ne!(rejected.hash.as_deref(), Some(&*good));
        assert_eq!((reloader.providers().hash(), reloader.reload()), (&*good, ConfigReload::Unchanged));
        assert_eq!(users(&reloader, "a.io/x"), ["first"]);

        fs::remove_file(&path).unwrap();
        assert!(matches!(reloader.reload(), ConfigReload::Rejected(RejectedConfig { hash: None, .. })));
        write(format!("{HEAD}{}{}", provider("sh", "a.io"), provider("cat", "b.io")));
        assert_eq!((reloader.reload(), reloader.rejected()), (ConfigReload::Unchanged, None));
    }
}
