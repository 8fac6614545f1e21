//! The node's docker configuration as the kubelet finds it, and the order in which a pull tries credentials.
// I142, I144

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_types::Clock;

use crate::credential::RegistryCredential;
use crate::docker_config::{DockerConfig, DockerConfigError, read_config_json, read_legacy};
use crate::keyring::{Keyring, lookup_all};
use crate::profile::Profile;
use crate::provider::{Attempt, Lookup};

/// How long a result, including "not found", is cached.
// I144
const CACHE_TTL: Duration = Duration::from_secs(5 * 60);
/// Maximum size of a docker configuration.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The directories that a kubelet searches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDirectories {
    /// The kubelet's root directory, usually `/var/lib/kubelet`.
    pub root: PathBuf,
    /// Its working directory.
    pub working: PathBuf,
    /// Its home directory.
    pub home: Option<PathBuf>,
}

impl NodeDirectories {
    /// The candidate files in order. The first one that parses is used, even if it is empty.
    pub fn candidates(&self) -> Vec<PathBuf> {
        let home = |more: &str| self.home.as_ref().map(|home| home.join(more));
        let system = PathBuf::from("/");
        let new =
            [Some(self.root.clone()), Some(self.working.clone()), home(".docker"), Some("/.docker".into())];
        let old = [Some(self.root.clone()), Some(self.working.clone()), home(""), Some(system)];
        let new = new.into_iter().flatten().map(|dir| dir.join("config.json"));
        new.chain(old.into_iter().flatten().map(|dir| dir.join(".dockercfg"))).collect()
    }
}

/// The node's credentials. Like the kubelet it ignores `credsStore` and `credHelpers`.
// I144
#[derive(Debug)]
pub struct NodeKeyring {
    folders: NodeDirectories,
    profile: Profile,
    clock: Arc<dyn Clock>,
    found: Mutex<Option<(Duration, NodeConfig)>>,
}

/// The docker configuration in use.
#[derive(Clone, Debug, Default)]
pub struct NodeConfig {
    /// The file, if one was found.
    pub file: Option<PathBuf>,
    /// Its credentials.
    pub keyring: Arc<Keyring>,
}

impl NodeKeyring {
    /// Creates a keyring that reads files on first use.
    pub fn new(folders: NodeDirectories, profile: Profile, clock: Arc<dyn Clock>) -> Self {
        NodeKeyring { folders, profile, clock, found: Mutex::default() }
    }

    /// The credentials, re-read after five minutes.
    pub fn current(&self) -> NodeConfig {
        let now = self.clock.monotonic();
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        match &*found {
            Some((since, config)) if now.saturating_sub(*since) < CACHE_TTL => config.clone(),
            _ => {
                let config = self.read();
                *found = Some((now, config.clone()));
                config
            }
        }
    }

    fn read(&self) -> NodeConfig {
        let read = self.folders.candidates().into_iter().find_map(|path| Some((read(&path)?, path)));
        read.map_or_else(NodeConfig::default, |(config, path)| NodeConfig {
            keyring: Arc::new(Keyring::new(config, self.profile)),
            file: Some(path),
        })
    }
}

/// The credentials of a node for one pull, if its docker configuration is used.
#[derive(Clone, Debug, Default)]
pub struct NodeCredentials(Option<(String, Arc<Keyring>)>);

impl NodeCredentials {
    /// Searches the directories of a kubelet.
    // I144
    pub fn find(folders: NodeDirectories, profile: Profile, clock: Arc<dyn Clock>) -> Self {
        let found = NodeKeyring::new(folders, profile, clock).current();
        NodeCredentials(found.file.map(|file| (file.to_string_lossy().into_owned(), found.keyring)))
    }

    /// Path of the configuration file.
    pub fn file(&self) -> Option<&str> {
        self.0.as_ref().map(|(file, _)| file.as_str())
    }

    /// The credentials to try, in order: the node's, then the providers'.
    // I142
    pub fn attempts<'a>(&'a self, lookup: &'a Lookup) -> Vec<Attempt<'a>> {
        let mut attempts = Vec::new();
        if let Some((file, keyring)) = &self.0 {
            for found in lookup_all(&[keyring], lookup.image()) {
                let attempt =
                    |credential| Attempt { provider: file, key: found.key, credential, source: None };
                attempts.extend(found.credentials.iter().map(attempt));
            }
        }
        attempts.extend(lookup.attempts());
        attempts
    }
}

/// Reads one candidate. Returns `None` for a missing or invalid file, so that the next one is tried.
fn read(path: &Path) -> Option<DockerConfig> {
    let reader: fn(&[u8]) -> Result<DockerConfig, DockerConfigError> =
        if path.ends_with(".dockercfg") { read_legacy } else { read_config_json };
    let is_small =
        fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_FILE_BYTES);
    if is_small { reader(&fs::read(path).ok()?).ok() } else { None }
}

/// The credentials of a pull in order: the pod's secrets, the node's configuration, the providers. Duplicates are kept.
// I142
pub fn union<'a>(
    secrets: Option<&'a Keyring>,
    node: &'a Keyring,
    providers: impl IntoIterator<Item = &'a RegistryCredential>,
    image: &str,
) -> Vec<&'a RegistryCredential> {
    let secrets = secrets.map(|secrets| secrets.lookup(image)).unwrap_or_default();
    secrets.into_iter().chain(node.lookup(image)).chain(providers).collect()
}

#[cfg(test)]
mod tests {
    use navicert_types::clock::ManualClock;

    use super::*;

    fn config(user: &str) -> String {
        format!(r#"{{"auths": {{"a.io": {{"username": "{user}", "password": "p"}}}}, "credsStore": "x"}}"#)
    }

    fn user(keyring: &NodeKeyring) -> Option<String> {
        keyring.current().keyring.lookup("a.io/x").first().map(|found| found.username.clone())
    }

    #[test]
    fn first_readable_file_wins_and_config_json_precedes_dockercfg() {
        // I144
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["root", "work", "home/.docker"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        let folders = NodeDirectories { root: path("root"), working: path("work"), home: Some(path("home")) };
        let clock = Arc::new(ManualClock::at(0));
        let user = || user(&NodeKeyring::new(folders.clone(), Profile::Kube, Arc::clone(&clock) as _));
        assert_eq!(user(), None);
        fs::write(path("home/.dockercfg"), r#"{"a.io": {"username": "old", "password": "p"}}"#).unwrap();
        assert_eq!(user().unwrap(), "old");
        fs::write(path("home/.docker/config.json"), config("home")).unwrap();
        assert_eq!(user().unwrap(), "home");
        fs::write(path("work/config.json"), config("work")).unwrap();
        fs::write(path("root/config.json"), "{").unwrap();
        assert_eq!(user().unwrap(), "work", "an unreadable file is skipped");
        fs::write(path("root/config.json"), "{}").unwrap();
        assert_eq!(user(), None, "an empty file is used");
    }

    #[test]
    fn caches_result_for_five_minutes_even_if_empty() {
        // I144
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        let clock = Arc::new(ManualClock::at(0));
        let folders = NodeDirectories { working: root.join("w"), home: None, root };
        let keyring = NodeKeyring::new(folders, Profile::Kube, Arc::clone(&clock) as _);
        assert_eq!(user(&keyring), None);
        fs::write(dir.path().join("config.json"), config("ann")).unwrap();
        clock.advance(CACHE_TTL - Duration::from_secs(1));
        assert_eq!(user(&keyring), None);
        clock.advance(Duration::from_secs(1));
        assert_eq!(user(&keyring).unwrap(), "ann");
        assert_eq!(keyring.current().file, Some(dir.path().join("config.json")));
    }

    #[test]
    fn orders_secrets_before_node_before_providers_and_keeps_duplicates() {
        // I142
        let keyring = |user: &str| {
            Keyring::new([("a.io", RegistryCredential::new(user, "p".to_owned()))], Profile::Kube)
        };
        let (secrets, node, provider) =
            (keyring("pod"), keyring("both"), RegistryCredential::new("both", "p".to_owned()));
        let users = |secrets| {
            let found = union(secrets, &node, [&provider], "a.io/x");
            found.into_iter().map(|found| found.username.clone()).collect::<Vec<_>>()
        };
        assert_eq!(users(Some(&secrets)), ["pod", "both", "both"]);
        assert_eq!(users(None), ["both", "both"]);
    }
}
