//! Credentials by where they are good for, and the order in which they are tried.
//!
//! A [`Keyring`] is made once from a plugin's answer or a docker configuration, and compiled: looking an image up
//! costs what the image's length costs. Several keyrings are asked as one with [`lookup_all`].
// I132–I140

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::credential::Credential;
use crate::index::PatternIndex;
use crate::location::{Location, LocationError};
use crate::pattern::ImagePattern;
use crate::profile::Profile;

/// The key whose credentials serve images of the default registry that nothing else matched.
// I139
const DEFAULT_REGISTRY: &[u8] = b"index.docker.io";

/// Credentials by key, ready to be looked up.
///
/// ```
/// use navicert_image::{Credential, Keyring, Profile};
///
/// let everyone = Credential::new("everyone", "secret".to_owned());
/// let team = Credential::new("team", "secret".to_owned());
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
    credentials: Vec<Credential>,
}

/// A key that is left out because it is no location.
// I132
#[derive(Clone, Debug)]
pub struct RejectedKey {
    /// The key as given, without user info.
    pub key: String,
    /// Why.
    pub reason: LocationError,
}

/// The credentials under one key that matches.
#[derive(Clone, Copy, Debug)]
pub struct KeyMatch<'a> {
    /// Which of the keyrings asked, counted from 0.
    pub keyring: usize,
    /// The key, normalised.
    pub key: &'a [u8],
    /// Its credentials, in the order they were added.
    pub credentials: &'a [Credential],
}

impl Keyring {
    /// Takes credentials in. Those with one key after normalisation stay in the order given; to have a defined order
    /// where the source has none, give them sorted.
    // I135
    pub fn new<K: AsRef<str>>(
        credentials: impl IntoIterator<Item = (K, Credential)>,
        profile: Profile,
    ) -> Self {
        let mut by_key: BTreeMap<Reverse<Vec<u8>>, Vec<Credential>> = BTreeMap::new();
        let mut refused = Vec::new();
        for (raw, credential) in credentials {
            match normalise(raw.as_ref()) {
                Ok(key) => by_key.entry(Reverse(key)).or_default().push(credential),
                Err(reason) => refused.push(RejectedKey { key: without_user_info(raw.as_ref()), reason }),
            }
        }
        let entries: Vec<KeyringEntry> =
            by_key.into_iter().map(|(Reverse(key), credentials)| KeyringEntry { key, credentials }).collect();
        // A key is parsed a second time when it is compared: decoding may have made it unusable (I133).
        let patterns = entries.iter().zip(0..);
        let patterns = patterns
            .filter_map(|(entry, at)| Some((ImagePattern::parse_bytes(&entry.key, profile).ok()?, at)));
        Keyring { index: PatternIndex::new(patterns), entries, rejected: refused, profile }
    }

    /// The credentials to try for an image, in order.
    // I138, I139
    pub fn lookup(&self, image: &str) -> Vec<&Credential> {
        lookup_all(&[self], image).iter().flat_map(|found| found.credentials).collect()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every key with its credentials, in the order of attempts.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], &[Credential])> {
        self.entries.iter().map(|entry| (&*entry.key, &*entry.credentials))
    }

    /// The keys that were left out.
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

/// Looks an image up in several keyrings as if they were one: by key first, then by keyring.
// I134, I137, I147
pub fn lookup_all<'a>(keyrings: &[&'a Keyring], image: &str) -> Vec<KeyMatch<'a>> {
    let mut found: Vec<KeyMatch<'a>> = Vec::new();
    if let Ok(location) = Location::parse(image.as_bytes()) {
        for (number, keyring) in keyrings.iter().enumerate() {
            found.extend(keyring.matching(number, &location));
        }
    }
    if keyrings.len() > 1 {
        // Stable: under one key the earlier keyring comes first.
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

/// A key of `auth` or `auths` as the kubelet files it.
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

/// Whether an image is one of Docker Hub's, judged by its text.
// I139
fn is_default_registry(image: &str, profile: Profile) -> bool {
    let (first, has_path) = match image.split_once('/') {
        Some((first, _)) => (first, true),
        None => (image, false),
    };
    if first == "localhost" && profile == Profile::Hardened {
        // I140: nobody's Docker Hub password belongs to a registry on this machine.
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
