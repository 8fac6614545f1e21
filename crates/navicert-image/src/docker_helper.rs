//! Docker's credential-helper protocol on top of the providers: takes a server name, returns one credential.
//!
//! The protocol only names registries, while the kubelet's configuration also has paths. If no single credential is right
//! for the whole registry, the helper returns none. [`crate::auth_file`] supports credentials per path.
// I232

use std::collections::BTreeMap;
use std::sync::Arc;

use navicert_types::{Secret, error_chain};
use thiserror::Error;

use crate::go_json::Object;
use crate::location::Location;
use crate::pattern::ImagePattern;
use crate::profile::Profile;
use crate::provider::{Attempt, Lookup, Provider, Providers};
use crate::service_account::PullIdentity;

/// The message that docker clients interpret as "no credentials, continue anonymously".
// I222
pub const NOT_FOUND: &str = "credentials not found in native keychain";

/// Maps the registry a client names to an image prefix within it, or to the registry it mirrors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes {
    /// Host to image prefix.
    // I234
    parts: BTreeMap<String, String>,
    /// Mirror host to the host of the mirrored registry.
    // I253
    mirrors: BTreeMap<String, String>,
}

impl Scopes {
    /// Creates an empty mapping.
    pub fn new() -> Self {
        Scopes::default()
    }

    /// Adds the entries of another mapping, which override existing ones.
    pub fn extend(&mut self, other: Scopes) {
        self.parts.extend(other.parts);
        self.mirrors.extend(other.mirrors);
    }

    /// The registry whose credentials to use for a requested name.
    fn registry(&self, asked: &str) -> String {
        let (host, path) = asked.split_once('/').map_or((asked, None), |(host, path)| (host, Some(path)));
        match (self.mirrors.get(host), path) {
            (None, _) => asked.to_owned(),
            (Some(of), None) => of.clone(),
            (Some(of), Some(path)) => format!("{of}/{path}"),
        }
    }

    /// The image to look up for a registry.
    fn image<'a>(&'a self, registry: &'a str) -> &'a str {
        self.parts.get(registry).map_or(registry, |part| part.trim_end_matches('/'))
    }
}

/// One credential in the protocol's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelperAnswer {
    /// The server as requested.
    pub server: String,
    /// The user name.
    pub username: String,
    /// The password.
    pub secret: Secret<String>,
}

/// Why there is no credential. `Display` is printed on standard output.
// I222
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum HelperError {
    /// No credential matches, or only an anonymous one.
    #[error("{NOT_FOUND}")]
    NotFound,
    /// Several providers or credentials match parts of the registry.
    #[error("{NOT_FOUND}")]
    Ambiguous {
        /// A hint for standard error.
        hint: String,
    },
    /// The server name is empty.
    #[error("no credentials server URL")]
    NoServer,
    /// The server name is invalid.
    #[error("invalid server name: {0}")]
    BadServer(&'static str),
    /// A matching provider failed.
    #[error("{0}")]
    Failed(String),
    /// The `store` verb is not supported.
    // I238
    #[error(
        "storing credentials is not supported: navicert gets them from image credential providers; to log in manually, remove `docker-credential-navicert` from this registry"
    )]
    StoreNotSupported,
}

impl HelperError {
    /// A hint for standard error.
    pub fn hint(&self) -> Option<&str> {
        match self {
            HelperError::Ambiguous { hint } => Some(hint),
            _ => None,
        }
    }
}

/// Handles the `get` verb.
///
/// # Errors
/// [`HelperError`].
// I230–I233
pub fn get(providers: &Providers, scopes: &Scopes, server: &str) -> Result<HelperAnswer, HelperError> {
    let asked = scopes.registry(&normalise_server(server)?);
    let image = scopes.image(&asked);
    let lookup = if image.contains('/') || !providers.matching_providers(image).is_empty() {
        providers.lookup(image, &PullIdentity::None)
    } else {
        let (provider, image) = scoped_image(providers, image)?;
        providers.lookup_in(&provider, &image, &PullIdentity::None)
    };
    match select(&lookup, &asked)? {
        Some(attempt) => Ok(HelperAnswer {
            server: server.trim().to_owned(),
            username: attempt.credential.username.clone(),
            secret: attempt.credential.password.clone(),
        }),
        None => Err(failure(&lookup)),
    }
}

/// Handles the `erase` verb: removes the cached responses of a server and returns their number.
///
/// # Errors
/// An invalid server name.
// I238
pub fn erase(providers: &Providers, scopes: &Scopes, server: &str) -> Result<usize, HelperError> {
    let asked = scopes.registry(&normalise_server(server)?);
    let belongs = |base: &str| base == asked || base.split('/').next() == Some(&asked);
    let entries = providers.list_cache().into_iter().filter(|cached| belongs(&cached.base));
    let images: Vec<String> = entries.map(|cached| cached.base).chain([asked.clone()]).collect();
    Ok(images.iter().map(|image| providers.invalidate(image)).sum())
}

/// Handles the `list` verb: the cached user names by server. Runs no plugin.
// I238
pub fn list(providers: &Providers) -> BTreeMap<String, String> {
    let mut listed = BTreeMap::new();
    for cached in providers.list_cache() {
        let concrete = cached.entry.keyring().entries().filter(|(key, _)| !key.contains(&b'*'));
        for (key, credentials) in concrete {
            if let Some(credential) = credentials.iter().find(|credential| !credential.is_anonymous()) {
                listed
                    .entry(String::from_utf8_lossy(key).into_owned())
                    .or_insert(credential.username.clone());
            }
        }
    }
    listed
}

/// Normalizes a server URL to the registry host and remaining path.
///
/// # Errors
/// A name that is ambiguous or contains characters that a registry name cannot have.
// I230
pub fn normalise_server(server: &str) -> Result<String, HelperError> {
    let server = server.trim();
    if server.is_empty() {
        return Err(HelperError::NoServer);
    }
    if server.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(HelperError::BadServer("contains a control character or white space"));
    }
    let name = server.strip_prefix("https://").or_else(|| server.strip_prefix("http://")).unwrap_or(server);
    if name.contains('@') {
        return Err(HelperError::BadServer("contains user info"));
    }
    if name.contains(['%', '?', '#', '*', '\\', '"', '<', '>'])
        || name.contains("://")
        || name.contains("/..")
    {
        return Err(HelperError::BadServer("contains a character that is not allowed in a registry name"));
    }
    let name =
        ["/v1/", "/v2/", "/v1", "/v2", "/"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let host = name.split('/').next().unwrap_or_default();
    if host.is_empty()
        || host.starts_with('.')
        || host.ends_with('.')
        || Location::parse(name.as_bytes()).is_err()
    {
        return Err(HelperError::BadServer("not a registry host name"));
    }
    let rest = name.strip_prefix(host).unwrap_or_default();
    let host = match host {
        "index.docker.io" | "registry-1.docker.io" | "docker.io" => "docker.io",
        _ => host,
    };
    Ok(format!("{host}{rest}"))
}

/// For a registry that is only configured by path: the shortest path of the single provider.
// I232
fn scoped_image(providers: &Providers, host: &str) -> Result<(Arc<Provider>, String), HelperError> {
    let location = Location::parse(host.as_bytes()).map_err(|_| HelperError::NotFound)?;
    let mut candidates: Vec<(&Arc<Provider>, &ImagePattern)> = Vec::new();
    for provider in providers.providers() {
        let patterns = provider.config().patterns.iter().map(|(_, pattern)| pattern);
        let of_host = patterns.filter(|pattern| pattern.matches_registry(&location));
        candidates.extend(of_host.map(|pattern| (provider, pattern)));
    }
    let Some(&(first, _)) = candidates.first() else { return Err(HelperError::NotFound) };
    if candidates.iter().any(|(provider, _)| provider.name() != first.name()) {
        let shown = |(provider, pattern): &(&Arc<Provider>, &ImagePattern)| {
            format!("{host}{} ({})", String::from_utf8_lossy(pattern.path()), provider.name())
        };
        let candidates = candidates.iter().map(shown).collect::<Vec<_>>().join(", ");
        let advice = format!("select one with a scope such as {host}={host}/team");
        let hint = format!("several providers match paths of {host}: {candidates}; {advice}");
        return Err(HelperError::Ambiguous { hint });
    }
    let paths = candidates.iter().map(|(_, pattern)| pattern.path());
    let shortest = paths.min_by_key(|path| path.len()).unwrap_or_default();
    let path = String::from_utf8_lossy(shortest).trim_end_matches('/').to_owned();
    Ok((Arc::clone(first), format!("{host}{path}")))
}

/// Selects the first non-anonymous credential for the requested host.
// I233
fn select<'a>(lookup: &'a Lookup, asked: &str) -> Result<Option<Attempt<'a>>, HelperError> {
    let Ok(location) = Location::parse(asked.as_bytes()) else { return Ok(None) };
    let mut attempts = lookup.attempts().into_iter();
    if let Some(attempt) = attempts.find(|attempt| is_usable(attempt, &location)) {
        return Ok(Some(attempt));
    }
    let mut scoped: Vec<Attempt<'a>> = Vec::new();
    for (provider, answer) in lookup.answers() {
        for (key, credentials) in answer.entry.keyring().entries() {
            let attempts =
                credentials.iter().map(|credential| Attempt { provider, key, credential, source: None });
            scoped.extend(attempts.filter(|attempt| is_usable(attempt, &location)));
        }
    }
    match scoped.split_first() {
        Some((first, rest)) if rest.iter().all(|other| other.credential == first.credential) => {
            Ok(Some(*first))
        }
        Some(_) => {
            let hint = format!(
                "credentials for {asked} differ by path, but the helper protocol only names the registry"
            );
            Err(HelperError::Ambiguous { hint })
        }
        None => Ok(None),
    }
}

/// Whether a credential may be returned for the requested registry. A keyring reads a name without a slash as a Docker
/// Hub image; here it is a registry, so only keys for that registry count.
fn is_usable(attempt: &Attempt<'_>, asked: &Location<'_>) -> bool {
    let key = ImagePattern::parse_bytes(attempt.key, Profile::Hardened);
    let is_hub = asked.host() == b"docker.io" && attempt.key == b"index.docker.io";
    !attempt.credential.is_anonymous() && (is_hub || key.is_ok_and(|key| key.matches_registry(asked)))
}

/// The error of a lookup without a usable credential. A failed provider is reported, not treated as "not found".
// I248
fn failure(lookup: &Lookup) -> HelperError {
    let failures: Vec<String> = lookup.errors().map(|error| error_chain(error)).collect();
    if failures.is_empty() { HelperError::NotFound } else { HelperError::Failed(failures.join("; ")) }
}

impl HelperAnswer {
    /// Encodes the answer for standard output, including the newline.
    // I221
    pub fn encode(&self) -> Secret<Vec<u8>> {
        let text = Object::new()
            .text("ServerURL", &self.server)
            .text("Username", &self.username)
            .text("Secret", self.secret.expose())
            .finish();
        Secret::new([text.as_bytes(), b"\n"].concat())
    }
}

/// Encodes the list for standard output, including the newline.
// I223
pub(crate) fn encode_list(listed: &BTreeMap<String, String>) -> Vec<u8> {
    let object = listed.iter().fold(Object::new(), |object, (server, user)| object.text(server, user));
    [object.finish().as_bytes(), b"\n"].concat()
}

/// Parses the scopes of a variable or flag: comma-separated `host=host/path`.
///
/// # Errors
/// The first invalid entry.
// I234
pub fn parse_scopes(text: &str) -> Result<Scopes, ScopeError> {
    let belongs =
        |host: &str, image: &str| image.strip_prefix(host).is_some_and(|rest| rest.starts_with('/'));
    let parts = parse_pairs(text, belongs).map_err(ScopeError::Part)?;
    Ok(Scopes { parts, ..Scopes::new() })
}

/// Parses the mirrors of a variable or flag: comma-separated `mirror=registry`, hosts with their ports. An entry permits
/// sending the registry's credentials to the mirror.
///
/// # Errors
/// The first invalid entry.
// I253
pub fn parse_mirrors(text: &str) -> Result<Scopes, ScopeError> {
    let is_host = |name: &str| !name.contains('/') && normalise_server(name).is_ok_and(|read| read == name);
    let mirrors = parse_pairs(text, |mirror, of| is_host(mirror) && is_host(of) && mirror != of);
    Ok(Scopes { mirrors: mirrors.map_err(ScopeError::Mirror)?, ..Scopes::new() })
}

fn parse_pairs(text: &str, good: impl Fn(&str, &str) -> bool) -> Result<BTreeMap<String, String>, String> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let pair = |entry: &str| match entry.split_once('=') {
        Some((from, to)) if good(from, to) => Ok((from.to_owned(), to.to_owned())),
        _ => Err(entry.to_owned()),
    };
    entries.map(pair).collect()
}

/// An invalid scope or mirror.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// Not a scope within a registry.
    #[error("invalid scope `{0}`: expected `registry.example=registry.example/team`")]
    Part(String),
    /// Not a mirror.
    #[error("invalid mirror `{0}`: expected `mirror.example:5000=registry.example`")]
    Mirror(String),
}

#[cfg(test)]
mod tests;
