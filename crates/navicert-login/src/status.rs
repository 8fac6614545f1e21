//! The sessions in the cache, without their tokens.

use navicert_types::Timestamp;

use crate::cache::state::Phase;
use crate::cache::{CacheFolder, Entry};
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::key::{CacheKey, KeyFields};
use crate::request::{DEFAULT_MIN_VALIDITY, LoginRequest};

/// A clock difference that is shown.
const SHOWN_SKEW_SECONDS: i64 = 30;

/// One session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionStatus {
    /// The issuer.
    pub issuer: String,
    /// The client id.
    pub client_id: String,
    /// The label of the account.
    pub account: String,
    /// A name for people.
    pub display: String,
    /// Whether the token can be handed over as it is.
    pub is_fresh: bool,
    /// When the token expires, by the local clock.
    pub expires: Timestamp,
    /// When the person last logged in.
    pub logged_in_at: Timestamp,
    /// Whether the session is sealed by a key of the keyring.
    pub is_sealed: bool,
    /// Whether there is a refresh token.
    pub has_refresh_token: bool,
    /// When the refresh token expires, if the provider said so.
    pub refresh_expires_at: Option<Timestamp>,
    /// The provider's time minus the local time, if that matters.
    pub skew_seconds: Option<i64>,
    /// Logins and refreshes.
    pub logins: u64,
    /// Refreshes.
    pub refreshes: u64,
    /// Time and code of the last failure.
    pub last_failure: Option<(Timestamp, String)>,
    /// The process that waits for a person.
    pub login_in_progress: Option<u32>,
}

/// The session of a request, if there is one.
///
/// # Errors
/// A certificate that the request names cannot be read.
pub fn session_of(
    folder: &CacheFolder,
    request: &LoginRequest,
    context: &LoginContext,
) -> Result<Option<SessionStatus>, LoginError> {
    Ok(read_session(folder, &KeyFields::new(request)?.cache_key(), context))
}

/// Every session of a folder, in the order of issuer, client and account.
///
/// # Errors
/// The folder cannot be read.
pub fn status(folder: &CacheFolder, context: &LoginContext) -> Result<Vec<SessionStatus>, LoginError> {
    let keys = folder.keys().map_err(|error| {
        LoginError::CacheFolder(format!(
            "failed to read the cache folder `{}`: {error}",
            folder.path().display()
        ))
    })?;
    let mut sessions: Vec<SessionStatus> =
        keys.iter().filter_map(|key| read_session(folder, key, context)).collect();
    let order = |session: &SessionStatus| {
        (session.issuer.clone(), session.client_id.clone(), session.account.clone(), session.display.clone())
    };
    sessions.sort_by_key(order);
    Ok(sessions)
}

fn read_session(folder: &CacheFolder, key: &CacheKey, context: &LoginContext) -> Option<SessionStatus> {
    let entry = folder.read(key)?;
    let state = folder.state(key);
    let is_waiting = state.phase == Phase::Login
        && state.outcome.is_none()
        && folder.open_lock(key, context).is_ok_and(|lock| lock.try_acquire().is_ok_and(|free| !free));
    Some(session(&entry, context.clock.now(), is_waiting.then_some(state.pid)))
}

fn session(entry: &Entry, now: Timestamp, login_in_progress: Option<u32>) -> SessionStatus {
    let skew = Some(entry.skew_seconds).filter(|skew| skew.abs() > SHOWN_SKEW_SECONDS);
    let failure = entry.history.last_failure.as_ref();
    SessionStatus {
        issuer: entry.key.issuer.clone(),
        client_id: entry.key.client_id.clone(),
        account: entry.key.account.clone(),
        display: entry.display.clone(),
        is_fresh: entry.is_fresh(now, DEFAULT_MIN_VALIDITY),
        expires: entry.local_expiry,
        logged_in_at: entry.logged_in_at,
        is_sealed: entry.is_sealed,
        has_refresh_token: entry.refresh_token.is_some(),
        refresh_expires_at: entry.refresh_expires_at,
        skew_seconds: skew,
        logins: entry.history.logins,
        refreshes: entry.history.refreshes,
        last_failure: failure.map(|failure| (failure.at, failure.code.clone())),
        login_in_progress,
    }
}
