//! The same providers behind docker's credential-helper protocol: server names in, one credential out (§8).
//!
//! The protocol knows registries only, and the kubelet's configuration knows paths: where one answer cannot be right
//! for everybody, there is none. [`crate::auth_file`] can say more.
// I232

use std::collections::BTreeMap;
use std::sync::Arc;

use navicert_types::Secret;
use thiserror::Error;

use crate::go_json::Object;
use crate::location::Location;
use crate::pattern::ImagePattern;
use crate::profile::Profile;
use crate::provider::{Attempt, Lookup, Provider, Providers};
use crate::service_account::PullIdentity;

/// What clients take for "there are no credentials, go on without".
// I222
pub const NOT_FOUND: &str = "credentials not found in native keychain";

/// What is meant by a client that can only name a registry: which part of it, or which registry it is a mirror of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes {
    /// Host to image prefix.
    // I234
    parts: BTreeMap<String, String>,
    /// A mirror's host to that of the registry whose credentials it takes.
    // I253
    mirrors: BTreeMap<String, String>,
}

impl Scopes {
    /// Every name means itself.
    pub fn new() -> Self {
        Scopes::default()
    }

    /// Adds what another one says; it has the last word.
    pub fn extend(&mut self, other: Scopes) {
        self.parts.extend(other.parts);
        self.mirrors.extend(other.mirrors);
    }

    /// The registry whose credentials are asked for.
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

/// One credential, as the protocol has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelperAnswer {
    /// The server as it was asked for.
    pub server: String,
    /// The user name.
    pub username: String,
    /// The password.
    pub secret: Secret<String>,
}

/// Why there is no credential. `Display` is what goes to standard output.
// I222
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum HelperError {
    /// Nothing matches, or only an anonymous login.
    #[error("{NOT_FOUND}")]
    NotFound,
    /// Several teams share the registry, and the protocol cannot say which one is meant.
    #[error("{NOT_FOUND}")]
    Ambiguous {
        /// For a person, on standard error.
        hint: String,
    },
    /// No server was named.
    #[error("no credentials server URL")]
    NoServer,
    /// The server's name has something in it that no server's name has.
    #[error("refused: the server name {0}")]
    BadServer(&'static str),
    /// A provider matches and could not answer.
    #[error("{0}")]
    Failed(String),
    /// The `store` verb is not supported.
    // I238
    #[error(
        "navicert takes credentials from image credential providers and stores none; remove `docker-credential-navicert` from this registry to log in by hand"
    )]
    StoreRefused,
}

impl HelperError {
    /// What a person should read on standard error.
    pub fn hint(&self) -> Option<&str> {
        match self {
            HelperError::Ambiguous { hint } => Some(hint),
            _ => None,
        }
    }
}

/// Answers a `get`.
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

/// Forgets what is remembered about a server.
///
/// # Errors
/// Only for a name that is none.
// I238
pub fn erase(providers: &Providers, scopes: &Scopes, server: &str) -> Result<usize, HelperError> {
    let asked = scopes.registry(&normalise_server(server)?);
    let of_this = |base: &str| base == asked || base.split('/').next() == Some(&asked);
    let entries = providers.list_cache().into_iter().filter(|cached| of_this(&cached.base));
    let images: Vec<String> = entries.map(|cached| cached.base).chain([asked.clone()]).collect();
    Ok(images.iter().map(|image| providers.invalidate(image)).sum())
}

/// What is remembered, by server; nothing is run.
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

/// The registry, and whatever path is left, that a server URL means.
///
/// # Errors
/// For names that could be read in two ways, or that smuggle something along.
// I230
pub fn normalise_server(server: &str) -> Result<String, HelperError> {
    let server = server.trim();
    if server.is_empty() {
        return Err(HelperError::NoServer);
    }
    if server.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(HelperError::BadServer("has a control character or white space in it"));
    }
    let name = server.strip_prefix("https://").or_else(|| server.strip_prefix("http://")).unwrap_or(server);
    if name.contains('@') {
        return Err(HelperError::BadServer("has user info in it"));
    }
    if name.contains(['%', '?', '#', '*', '\\', '"', '<', '>'])
        || name.contains("://")
        || name.contains("/..")
    {
        return Err(HelperError::BadServer("has a character in it that no registry's name has"));
    }
    let name =
        ["/v1/", "/v2/", "/v1", "/v2", "/"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let host = name.split('/').next().unwrap_or_default();
    if host.is_empty()
        || host.starts_with('.')
        || host.ends_with('.')
        || Location::parse(name.as_bytes()).is_err()
    {
        return Err(HelperError::BadServer("is not a registry's host name"));
    }
    let rest = name.strip_prefix(host).unwrap_or_default();
    let host = match host {
        "index.docker.io" | "registry-1.docker.io" | "docker.io" => "docker.io",
        _ => host,
    };
    Ok(format!("{host}{rest}"))
}

/// For a registry that is configured by path only: the one provider's shortest path.
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
        let way_out = format!("say which with a scope such as {host}={host}/team");
        let hint = format!("several providers serve parts of {host}: {candidates}; {way_out}");
        return Err(HelperError::Ambiguous { hint });
    }
    let paths = candidates.iter().map(|(_, pattern)| pattern.path());
    let shortest = paths.min_by_key(|path| path.len()).unwrap_or_default();
    let path = String::from_utf8_lossy(shortest).trim_end_matches('/').to_owned();
    Ok((Arc::clone(first), format!("{host}{path}")))
}

/// The one credential to answer with: the first that is no anonymous login and is for the host that was asked for.
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
                "the credentials for {asked} differ by path, and the protocol can name only the registry"
            );
            Err(HelperError::Ambiguous { hint })
        }
        None => Ok(None),
    }
}

/// A name without a slash looks like one of Docker Hub's to a keyring; here it is a registry, and nobody else's
/// credentials are for it.
fn is_usable(attempt: &Attempt<'_>, asked: &Location<'_>) -> bool {
    let key = ImagePattern::parse_bytes(attempt.key, Profile::Hardened);
    let is_hub = asked.host() == b"docker.io" && attempt.key == b"index.docker.io";
    !attempt.credential.is_anonymous() && (is_hub || key.is_ok_and(|key| key.matches_registry(asked)))
}

/// A provider that failed must not look like one that has nothing.
// I248
fn failure(lookup: &Lookup) -> HelperError {
    let failures: Vec<String> = lookup.errors().map(ToString::to_string).collect();
    if failures.is_empty() { HelperError::NotFound } else { HelperError::Failed(failures.join("; ")) }
}

impl HelperAnswer {
    /// The answer on standard output, newline included.
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

/// The list on standard output, newline included.
// I223
pub fn encode_list(listed: &BTreeMap<String, String>) -> Vec<u8> {
    let object = listed.iter().fold(Object::new(), |object, (server, user)| object.text(server, user));
    [object.finish().as_bytes(), b"\n"].concat()
}

/// Reads scopes as they are given in a variable or flag: `host=host/path`, separated by commas.
///
/// # Errors
/// The entry that is none.
// I234
pub fn parse_scopes(text: &str) -> Result<Scopes, ScopeError> {
    let belongs =
        |host: &str, image: &str| image.strip_prefix(host).is_some_and(|rest| rest.starts_with('/'));
    let parts = parse_pairs(text, belongs).map_err(ScopeError::Part)?;
    Ok(Scopes { parts, ..Scopes::new() })
}

/// Reads mirrors as they are given in a variable or flag: `mirror=registry`, hosts with their ports, separated by
/// commas. Naming a mirror is the permission to send it the registry's credentials.
///
/// # Errors
/// The entry that is none.
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

/// A scope or a mirror that is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// No part of a registry.
    #[error("`{0}` is not a scope: write `registry.example=registry.example/team`")]
    Part(String),
    /// No mirror.
    #[error("`{0}` is not a mirror: write `mirror.example:5000=registry.example`")]
    Mirror(String),
}

#[cfg(test)]
mod tests;
