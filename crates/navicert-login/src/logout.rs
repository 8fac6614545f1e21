//! Ends sessions: at the provider, then here.

use navicert_types::{Secret, Timestamp};
use std::time::Duration;

use crate::cache::{CacheFolder, Entry};
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::key::CacheKey;
use crate::provider::{Form, Metadata, OAuthFailure, ProviderClient, Repeat};
use crate::request::LoginRequest;

/// How long to wait for a process that refreshes or logs in.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// How a logout ended. The entry is removed in every case.
#[derive(Debug)]
pub struct LoggedOut {
    /// A name for people.
    pub display: String,
    /// The issuer.
    pub issuer: String,
    /// Whether the provider revoked the session.
    pub revocation: Revocation,
    /// Where the browser's own session can be ended.
    pub end_session_url: Option<String>,
}

/// What became of the session at the provider.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Revocation {
    /// There was nothing to revoke.
    NothingToRevoke,
    /// The provider revoked it.
    Revoked,
    /// `--local`: the provider was not asked.
    Skipped,
    /// The provider has no revocation endpoint.
    NotOffered,
    /// The provider could not be asked; the token stays valid there.
    Failed {
        /// Why.
        error: LoginError,
        /// Until when the token that was handed out is valid.
        until: Timestamp,
    },
}

/// Removes the entry of a request, and revokes its tokens unless `is_local`. `None` if there is no entry.
///
/// # Errors
/// Another process holds the lock, or the entry cannot be removed.
pub fn logout(
    request: &LoginRequest,
    context: &LoginContext,
    is_local: bool,
) -> Result<Option<LoggedOut>, LoginError> {
    let key = crate::key::KeyFields::new(request)?;
    let folder = CacheFolder::locate(request, context)?;
    let cache_key = key.cache_key();
    let Some(entry) = folder.read(&cache_key) else { return Ok(None) };
    let _held = lock(&folder, &cache_key, context)?;
    let (revocation, end_session_url) = if is_local {
        (Revocation::Skipped, None)
    } else {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| LoginError::Internal(format!("failed to start a runtime: {error}")))?;
        runtime.block_on(Box::pin(revoke_session(request, context, &folder, &entry)))
    };
    remove(&folder, &cache_key)?;
    Ok(Some(LoggedOut { display: entry.display, issuer: entry.key.issuer, revocation, end_session_url }))
}

/// Removes every entry of a folder without asking a provider, and returns their number. Other files stay.
///
/// # Errors
/// Another process holds a lock, or a file cannot be removed.
pub fn clean(folder: &CacheFolder, context: &LoginContext) -> Result<usize, LoginError> {
    let failed = |error: std::io::Error| failed(folder, &error);
    let keys = folder.keys().map_err(failed)?;
    for key in &keys {
        let _held = lock(folder, key, context)?;
        remove(folder, key)?;
    }
    folder.remove_provider_files().map_err(failed)?;
    Ok(keys.len())
}

fn lock(
    folder: &CacheFolder,
    key: &CacheKey,
    context: &LoginContext,
) -> Result<crate::cache::lock::HeldLock, LoginError> {
    let deadline = context.clock.monotonic().saturating_add(LOCK_WAIT);
    let lock = folder.open_lock(key).map_err(|error| failed(folder, &error))?;
    lock.acquire(context, || (deadline, folder.state(key).pid))
}

fn remove(folder: &CacheFolder, key: &CacheKey) -> Result<(), LoginError> {
    folder.remove(key).map_err(|error| failed(folder, &error))
}

fn failed(folder: &CacheFolder, error: &std::io::Error) -> LoginError {
    LoginError::CacheFolder(format!(
        "failed to change the cache folder `{}`: {error}",
        folder.path().display()
    ))
}

async fn revoke_session(
    request: &LoginRequest,
    context: &LoginContext,
    folder: &CacheFolder,
    entry: &Entry,
) -> (Revocation, Option<String>) {
    let failed = |error| Revocation::Failed { error, until: entry.local_expiry };
    let client = match ProviderClient::new(request, context, folder, &entry.key) {
        Ok(client) => client,
        Err(error) => return (failed(error), None),
    };
    client.recall(&entry.memo);
    let metadata = match client.metadata().await {
        Ok(metadata) => metadata,
        Err(error) => return (failed(error), None),
    };
    let end_session_url = end_session_url(&metadata, request);
    let tokens = [(&entry.refresh_token, "refresh_token"), (&entry.access_token, "access_token")];
    let tokens: Vec<_> =
        tokens.into_iter().filter_map(|(token, kind)| Some((token.as_ref()?, kind))).collect();
    if tokens.is_empty() {
        return (Revocation::NothingToRevoke, end_session_url);
    }
    if metadata.revocation_endpoint.is_none() {
        return (Revocation::NotOffered, end_session_url);
    }
    for (token, kind) in tokens {
        if let Err(error) = revoke(&client, token, kind).await {
            return (failed(error), end_session_url);
        }
    }
    (Revocation::Revoked, end_session_url)
}

/// Revokes a token (RFC 7009). Providers answer 200 for unknown tokens too.
pub(crate) async fn revoke(
    client: &ProviderClient<'_>,
    token: &Secret<String>,
    kind: &str,
) -> Result<(), LoginError> {
    let request = client.request;
    let endpoint = |metadata: &Metadata| {
        let missing = || LoginError::Grant {
            host: request.host().to_owned(),
            grant: "revocation".to_owned(),
            offered: String::new(),
        };
        metadata.revocation_endpoint.clone().ok_or_else(missing)
    };
    let fields = [("token", token.expose().as_str()), ("token_type_hint", kind)];
    let answer = client.post(endpoint, &fields, Repeat::Always).await?;
    if let Some(failure) = OAuthFailure::read(&answer) {
        return Err(crate::provider::classify(&failure, request, None, "", "revocation"));
    }
    if (200..300).contains(&answer.status) { Ok(()) } else { Err(answer.unexpected(request.host())) }
}

/// The page on which the person ends the browser's own session. Without the ID token, which belongs into no terminal: the
/// provider asks the person to confirm.
fn end_session_url(metadata: &Metadata, request: &LoginRequest) -> Option<String> {
    let endpoint = metadata.end_session_endpoint.as_deref()?;
    let mut query = Form::new();
    query.add("client_id", &request.client_id);
    let separator = if endpoint.contains('?') { '&' } else { '?' };
    Some(format!("{endpoint}{separator}{}", query.as_str()))
}
