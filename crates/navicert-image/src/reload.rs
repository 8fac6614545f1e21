//! Providers whose configuration may change while they are in use: the new one takes over in one step, and one that is
//! not valid changes nothing.
// I8, I250

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use crate::config::{self, ConfigErrors, ConfigFile, ConfigFileError, ImageConfig, read_files};
use crate::metrics::MetricsEvent;
use crate::profile::Profile;
use crate::provider::{ProviderSettings, Providers};

/// Why there is no configuration.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The files cannot be read.
    #[error(transparent)]
    File(#[from] ConfigFileError),
    /// The files are not a valid configuration.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
}

/// Reads and checks a configuration: a file or a folder.
///
/// # Errors
/// [`LoadError`].
pub fn load(path: &Path, profile: Profile) -> Result<ImageConfig, LoadError> {
    Ok(ImageConfig::decode(&read_files(path)?, profile)?)
}

/// Providers, and the files they come from.
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

/// A configuration that did not take over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedConfig {
    /// The hash of its files; none if they could not be read.
    pub hash: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

/// What came of looking at the files again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// They are the same.
    Unchanged,
    /// They have changed, and are in use.
    Applied,
    /// They have changed, and the earlier ones stay in use.
    Rejected(RejectedConfig),
}

impl Reloader {
    /// Reads the configuration for the first time.
    ///
    /// # Errors
    /// [`LoadError`]: there is nothing to fall back on.
    pub fn open(path: &Path, settings: ProviderSettings) -> Result<Self, LoadError> {
        let config = load(path, settings.profile)?;
        let current = Arc::new(Providers::new(&config, settings.clone()));
        Ok(Reloader {
            path: path.to_owned(),
            settings,
            state: Mutex::new(ReloaderState { current, rejected: None }),
        })
    }

    /// The providers in use. Whoever holds them keeps them through a change.
    pub fn providers(&self) -> Arc<Providers> {
        Arc::clone(&self.lock().current)
    }

    /// What was refused last, if the files are still that way.
    pub fn rejected(&self) -> Option<RejectedConfig> {
        self.lock().rejected.clone()
    }

    /// Looks at the files again. A provider that has not changed keeps its cache.
    pub fn reload(&self) -> ReloadOutcome {
        let files = match read_files(&self.path) {
            Ok(files) => files,
            Err(error) => return self.reject(RejectedConfig { hash: None, reason: error.to_string() }),
        };
        self.apply(&files)
    }

    fn apply(&self, files: &[ConfigFile]) -> ReloadOutcome {
        let hash = config::hash(files);
        let current = self.providers();
        if current.hash() == hash {
            self.lock().rejected = None;
            return ReloadOutcome::Unchanged;
        }
        match ImageConfig::decode(files, self.settings.profile) {
            Ok(config) => {
                let next = Arc::new(current.reconfigured(&config));
                *self.lock() = ReloaderState { current: next, rejected: None };
                ReloadOutcome::Applied
            }
            Err(error) => self.reject(RejectedConfig { hash: Some(hash), reason: error.to_string() }),
        }
    }

    fn reject(&self, refused: RejectedConfig) -> ReloadOutcome {
        let mut state = self.lock();
        if state.rejected.as_ref() == Some(&refused) {
            return ReloadOutcome::Unchanged;
        }
        state.rejected = Some(refused.clone());
        drop(state);
        self.settings.recorder.record(&MetricsEvent::ConfigRejected);
        ReloadOutcome::Rejected(refused)
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
    fn a_change_takes_over_unchanged_providers_keep_their_cache_and_a_bad_file_changes_nothing() {
        // I250
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        let write = |text: String| fs::write(&path, text).unwrap();
        write(format!("{HEAD}{}", provider("sh", "a.io")));
        let runner = Arc::new(ScriptedRunner::new([answer("first"), answer("second")]));
        let clock = Arc::new(ManualClock::at(0));
        let settings =
            ProviderSettings::new(Path::new("/bin"), Environment::empty(), Arc::clone(&runner) as _, clock);
        let reloader = Reloader::open(&path, settings).unwrap();
        assert_eq!(users(&reloader, "a.io/x"), ["first"]);
        assert_eq!(reloader.reload(), ReloadOutcome::Unchanged);

        write(format!("{HEAD}{}{}", provider("sh", "a.io"), provider("cat", "b.io")));
        assert_eq!(reloader.reload(), ReloadOutcome::Applied);
        assert_eq!(
            (users(&reloader, "a.io/x"), users(&reloader, "b.io/x")),
            (vec!["first".to_owned()], vec!["second".to_owned()])
        );
        assert_eq!(runner.commands().len(), 2);

        let good = reloader.providers().hash().to_owned();
        write(format!("{HEAD}- name: broken\n"));
        let ReloadOutcome::Rejected(refused) = reloader.reload() else { panic!("a broken file took over") };
        assert!(refused.reason.contains("providers[0](broken).matchImages"), "{}", refused.reason);
        assert_ne!(refused.hash.as_deref(), Some(&*good));
        assert_eq!((reloader.providers().hash(), reloader.reload()), (&*good, ReloadOutcome::Unchanged));
        assert_eq!(users(&reloader, "a.io/x"), ["first"]);

        fs::remove_file(&path).unwrap();
        assert!(matches!(reloader.reload(), ReloadOutcome::Rejected(RejectedConfig { hash: None, .. })));
        write(format!("{HEAD}{}{}", provider("sh", "a.io"), provider("cat", "b.io")));
        assert_eq!((reloader.reload(), reloader.rejected()), (ReloadOutcome::Unchanged, None));
    }
}
