//! Credentials by key, and the order in which they are tried.
//!
//! A [`Keyring`] is built once from a plugin's response or a docker configuration and indexed, so that a lookup only
//! depends on the length of the image. [`lookup_all`] searches several keyrings as one.
// I132–I140

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::credential::RegistryCredential;
use crate::index::PatternIndex;
use crate::location::{Location, LocationError};
use crate::pattern::ImagePattern;
use crate::profile::Profile;

/// The key whose credentials are used for default-registry images that no other key matches.
// I139
const DEFAULT_REGISTRY: &[u8] = b"index.docker.io";

/// Indexed credentials by key.
///
/// ```
/// use navicert_image::{Keyring, Profile, RegistryCredential};
///
/// let everyone = RegistryCredential::new("everyone", "secret".to_owned());
/// let team = RegistryCredential::new("team", "secret".to_owned());
/// let keyring = Keyring::new([("registry.example", everyone), ("https://registry.example/team/", team)], Profile::Kube);
/// let users: Vec<_> = keyring.lookup("registry.example/team/app").iter().map(|found| &found.username).collect();
/// assert_eq!(users, ["team", "everyone"]);
/// ```
#[derive(Debug, Default)]
pub struct Keyring {
    /// In descending order of their keys, which is the order of attempts.
    // I136
    entries: Vec<KeyringEntry>,
    index: PatternIndex,
    rejected: Vec<RejectedKey>,
    profile: Profile,
}

#[derive(Debug)]
struct KeyringEntry {
    key: Vec<u8>,
    credentials: Vec<RegistryCredential>,
}

/// A key that was dropped because it does not parse.
// I132
#[derive(Clone, Debug)]
pub struct RejectedKey {
    /// The key as given, without user info.
    pub key: String,
    /// The cause.
    pub reason: LocationError,
}

/// The credentials of one matching key.
#[derive(Clone, Copy, Debug)]
pub struct KeyMatch<'a> {
    /// The index of the keyring.
    pub keyring: usize,
    /// The normalized key.
    pub key: &'a [u8],
    /// Its credentials in insertion order.
    pub credentials: &'a [RegistryCredential],
}

impl Keyring {
    /// Builds a keyring. Credentials with the same normalized key keep their order, so pass them sorted if the source
    /// has no defined order.
    // I135
    pub fn new<K: AsRef<str>>(
        credentials: impl IntoIterator<Item = (K, RegistryCredential)>,
        profile: Profile,
    ) -> Self {
        let mut by_key: BTreeMap<Reverse<Vec<u8>>, Vec<RegistryCredential>> = BTreeMap::new();
        let mut rejected = Vec::new();
        for (raw, credential) in credentials {
            match normalise(raw.as_ref()) {
                Ok(key) => by_key.entry(Reverse(key)).or_default().push(credential),
                Err(reason) => rejected.push(RejectedKey { key: without_user_info(raw.as_ref()), reason }),
            }
        }
        let entries: Vec<KeyringEntry> =
            by_key.into_iter().map(|(Reverse(key), credentials)| KeyringEntry { key, credentials }).collect();
        // The kubelet parses the normalized key again for matching; decoding may have made it invalid (I133).
        let patterns = entries.iter().zip(0..);
        let patterns = patterns
            .filter_map(|(entry, at)| Some((ImagePattern::parse_bytes(&entry.key, profile).ok()?, at)));
        Keyring { index: PatternIndex::new(patterns), entries, rejected, profile }
    }

    /// The credentials to try for an image, in order.
    // I138, I139
    pub fn lookup(&self, image: &str) -> Vec<&RegistryCredential> {
        lookup_all(&[self], image).iter().flat_map(|found| found.credentials).collect()
    }

    /// Whether the keyring has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every key with its credentials, in the order of attempts.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], &[RegistryCredential])> {
        self.entries.iter().map(|entry| (&*entry.key, &*entry.credentials))
    }

    /// The keys that were dropped.
    pub fn rejected_keys(&self) -> &[RejectedKey] {
        &self.rejected
    }

    fn matching(&self, keyring: usize, image: &Location<'_>) -> impl Iterator<Item = KeyMatch<'_>> {
        let numbers = self.index.matching(image).into_iter();
        let entries = numbers.filter_map(|number| self.entries.get(usize::try_from(number).ok()?));
        entries.map(move |entry| KeyMatch { keyring, key: &entry.key, credentials: &entry.credentials })
    }

    fn default_registry(&self, keyring: usize) -> Option<KeyMatch<'_>> {
        let at = self.entries.binary_search_by(|entry| DEFAULT_REGISTRY.cmp(&entry.key)).ok()?;
        self.entries.get(at).map(|entry| KeyMatch {
            keyring,
            key: &entry.key,
            credentials: &entry.credentials,
        })
    }
}

/// Looks up an image in several keyrings, ordered by key first, then by keyring.
// I134, I137, I147
pub fn lookup_all<'a>(keyrings: &[&'a Keyring], image: &str) -> Vec<KeyMatch<'a>> {
    let mut found: Vec<KeyMatch<'a>> = Vec::new();
    if let Ok(location) = Location::parse(image.as_bytes()) {
        for (number, keyring) in keyrings.iter().enumerate() {
            found.extend(keyring.matching(number, &location));
        }
    }
    if keyrings.len() > 1 {
        // The sort is stable: for equal keys the earlier keyring comes first.
        found.sort_by(|one, other| other.key.cmp(one.key));
    }
    let profile = keyrings.first().map_or(Profile::default(), |keyring| keyring.profile);
    if found.is_empty() && is_default_registry(image, profile) {
        found = keyrings
            .iter()
            .enumerate()
            .filter_map(|(number, keyring)| keyring.default_registry(number))
            .collect();
    }
    found
}

/// Normalizes a key of `auth` or `auths` as the kubelet does.
// I132, I133
fn normalise(raw: &str) -> Result<Vec<u8>, LocationError> {
    let schemeless = raw.strip_prefix("https://").or_else(|| raw.strip_prefix("http://")).unwrap_or(raw);
    let location = Location::parse(schemeless.as_bytes())?;
    let path = location.path();
    let path = if path.starts_with(b"/v1/") || path.starts_with(b"/v2/") {
        path.get(3..).unwrap_or(path)
    } else {
        path
    };
    let path = if path == b"/" { b"" } else { path };
    Ok([location.authority(), path].concat())
}

/// Whether an image name refers to Docker Hub.
// I139
fn is_default_registry(image: &str, profile: Profile) -> bool {
    let (first, has_path) = match image.split_once('/') {
        Some((first, _)) => (first, true),
        None => (image, false),
    };
    if first == "localhost" && profile == Profile::Hardened {
        // I140: do not send Docker Hub credentials to a registry on localhost.
        return false;
    }
    !first.is_empty()
        && (!has_path || matches!(first, "docker.io" | "index.docker.io") || !first.contains(['.', ':']))
}

fn without_user_info(key: &str) -> String {
    match key.rsplit_once('@') {
        Some((_, rest)) => format!("…@{rest}"),
        None => key.to_owned(),
    }
}

#[cfg(test)]
mod tests;
