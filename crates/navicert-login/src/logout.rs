//! Ends sessions: at the provider, then here.

mod end_session;
mod stored_request;

use navicert_types::{Secret, Timestamp};
use std::time::Duration;

use crate::cache::{CacheFolder, Entry};
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::key::{CacheKey, KeyFields};
use crate::provider::{Metadata, OAuthFailure, ProviderClient, Repeat};
use crate::request::LoginRequest;

pub use end_session::{EndSession, end_browser_session};
use stored_request::stored_request;

/// How long to wait for a process that refreshes or logs in.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// How sessions are ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogoutOptions {
    /// The provider is not asked to revoke the session.
    pub is_local: bool,
    /// [`end_browser_session`] follows: its page is looked up even if `is_local`.
    pub ends_browser_session: bool,
    /// Where the provider sends the browser after that page.
    pub post_logout_redirect_url: Option<String>,
}

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
    pub end_session: Option<EndSession>,
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

/// The result of [`logout_all`].
#[derive(Debug, Default)]
pub struct AllLoggedOut {
    /// The sessions that were ended.
    pub sessions: Vec<LoggedOut>,
    /// Why others were not.
    pub failures: Vec<LoginError>,
}

/// Removes the entry of a request, and revokes its tokens. `None` if there is no entry.
///
/// # Errors
/// Another process holds the lock, or the entry cannot be removed.
pub fn logout(
    request: &LoginRequest,
    context: &LoginContext,
    options: &LogoutOptions,
) -> Result<Option<LoggedOut>, LoginError> {
    let folder = CacheFolder::locate(request, context)?;
    let key = KeyFields::new(request)?.cache_key();
    if folder.read(&key).is_none() {
        return Ok(None);
    }
    end(&folder, &key, context, options, |_| Ok(request.clone()))
}

/// Does that for every entry of a folder: each provider is reached as at the login.
///
/// # Errors
/// The folder cannot be read.
pub fn logout_all(
    folder: &CacheFolder,
    context: &LoginContext,
    options: &LogoutOptions,
) -> Result<AllLoggedOut, LoginError> {
    let mut all = AllLoggedOut::default();
    for key in folder.keys().map_err(|error| failed(folder, &error))? {
        match end(folder, &key, context, options, |entry| stored_request(entry, context)) {
            Ok(ended) => all.sessions.extend(ended),
            Err(error) => all.failures.push(error),
        }
    }
    Ok(all)
}

/// Removes every entry of a folder without asking a provider, and returns their number. Other files stay.
///
/// # Errors
/// Another process holds a lock, or a file cannot be removed.
pub fn clean(folder: &CacheFolder, context: &LoginContext) -> Result<usize, LoginError> {
    let failed = |error: std::io::Error| failed(folder, &error);
    let keys = folder.keys().map_err(failed)?;
    let mut has_sealed = false;
    for key in &keys {
        let _held = lock(folder, key, context)?;
        has_sealed |= folder.is_sealed(key);
        remove(folder, key)?;
    }
    folder.remove_provider_files().map_err(failed)?;
    if has_sealed {
        context.keyring.remove_key(&context.environment)?;
    }
    Ok(keys.len())
}

/// Ends one session. The entry is read under the lock: a refresh may have replaced its tokens meanwhile.
fn end(
    folder: &CacheFolder,
    key: &CacheKey,
    context: &LoginContext,
    options: &LogoutOptions,
    request: impl FnOnce(&Entry) -> Result<LoginRequest, LoginError>,
) -> Result<Option<LoggedOut>, LoginError> {
    let _held = lock(folder, key, context)?;
    let Some(entry) = folder.read(key) else { return Ok(None) };
    let (revocation, end_session) = if options.is_local && !options.ends_browser_session {
        (Revocation::Skipped, None)
    } else {
        match request(&entry) {
            Ok(request) => crate::runtime::runtime()?
                .block_on(Box::pin(at_provider(&request, context, folder, &entry, options))),
            Err(error) => (Revocation::Failed { error, until: entry.local_expiry }, None),
        }
    };
    remove(folder, key)?;
    Ok(Some(LoggedOut { display: entry.display, issuer: entry.key.issuer, revocation, end_session }))
}

fn lock(
    folder: &CacheFolder,
    key: &CacheKey,
    context: &LoginContext,
) -> Result<crate::cache::lock::HeldLock, LoginError> {
    let deadline = context.clock.monotonic().saturating_add(LOCK_WAIT);
    let lock = folder.open_lock(key, context).map_err(|error| failed(folder, &error))?;
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

/// Revokes the tokens, and finds the page that ends the browser's session.
async fn at_provider(
    request: &LoginRequest,
    context: &LoginContext,
    folder: &CacheFolder,
    entry: &Entry,
    options: &LogoutOptions,
) -> (Revocation, Option<EndSession>) {
    let failed = |error| match options.is_local {
        true => Revocation::Skipped,
        false => Revocation::Failed { error, until: entry.local_expiry },
    };
    let client = match ProviderClient::new(request, context, folder, &entry.key) {
        Ok(client) => client,
        Err(error) => return (failed(error), None),
    };
    client.recall(&entry.memo);
    let metadata = match client.metadata().await {
        Ok(metadata) => metadata,
        Err(error) => return (failed(error), None),
    };
    let end_session = match EndSession::new(&metadata, entry, options.post_logout_redirect_url.as_deref()) {
        Ok(end_session) => end_session,
        Err(error) => return (failed(error), None),
    };
    if options.is_local {
        return (Revocation::Skipped, end_session);
    }
    let revocation = revoke_tokens(&client, &metadata, entry).await;
    (revocation.unwrap_or_else(failed), end_session)
}

async fn revoke_tokens(
    client: &ProviderClient<'_>,
    metadata: &Metadata,
    entry: &Entry,
) -> Result<Revocation, LoginError> {
    let tokens = [(&entry.refresh_token, "refresh_token"), (&entry.access_token, "access_token")];
    let tokens: Vec<_> =
        tokens.into_iter().filter_map(|(token, kind)| Some((token.as_ref()?, kind))).collect();
    if tokens.is_empty() {
        return Ok(Revocation::NothingToRevoke);
    }
    if metadata.revocation_endpoint.is_none() {
        return Ok(Revocation::NotOffered);
    }
    for (token, kind) in tokens {
        revoke(client, token, kind).await?;
    }
    Ok(Revocation::Revoked)
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
    if (200..300).contains(&answer.status) { Ok(()) } else { Err(answer.unexpected(request.host()).into()) }
}
