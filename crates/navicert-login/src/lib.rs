#![doc = include_str!("../README.md")]
//!
//! # The path of a run
//!
//! ```text
//! arguments ──▶ LoginRequest ──▶ CacheKey ──▶ entry fresh? ──yes──▶ credential      (one file is read, nothing else)
//!                                                │no
//!                                                ▼
//!                         lock ──▶ entry fresh now? ──yes──▶ credential
//!                                                │no
//!                                                ▼
//!          refresh token? ──▶ refresh ──ok──▶ check ──▶ store ──▶ unlock ──▶ credential
//!                               │rejected        │provider fault: the old token while it is valid, else an error
//!                               ▼
//!          may a person be asked? ──no──▶ error
//!                               │yes
//!                               ▼
//!          grant ──▶ check ──▶ store ──▶ unlock ──▶ credential
//! ```
//!
//! Each stage is a module; [`login()`] calls them in this order.

pub mod args;
mod attempt;
pub mod browser;
pub mod cache;
mod check;
mod context;
#[cfg(feature = "doctor")]
pub mod doctor;
mod error;
mod grant;
mod key;
pub mod keyring;
pub mod kubeconfig_user;
mod logout;
pub mod pages;
mod person;
pub mod provider;
mod random;
pub mod receiver;
mod refresh;
pub mod request;
mod runtime;
mod server_trust;
mod setup;
mod signals;
mod status;
mod store;
#[cfg(test)]
mod test_support;

use std::time::Duration;

pub use navicert_plugin::Environment;
use navicert_types::{Secret, Timestamp};

pub use attempt::SessionOrigin;
pub use context::{Invocation, LoginContext, Messages, Pause, Terminals, ThreadPause};
pub use error::{ErrorCode, ExitClass, LoginError};
pub use key::{CacheKey, KeyFields, TrustFields};
pub use logout::{
    AllLoggedOut, EndSession, LoggedOut, LogoutOptions, Revocation, clean, end_browser_session, logout,
    logout_all,
};
pub use person::Person;
pub use request::LoginRequest;
pub use setup::{
    SetupApiVersion, SetupDocuments, SetupOptions, SetupReport, SetupStep, SetupVerdict, StorageChoice,
    UserSource, choose_storage, kubeconfig_entry, setup, variables_from_user, words_from_user,
};
pub use status::{SessionStatus, session_of, status};

use attempt::Attempt;
use cache::lock::HeldLock;
use cache::{CacheFolder, Entry};
use keyring::Unlock;
use request::Storage;
use server_trust::ServerQuestion;

/// Time that a waiter adds to its own limit, and to that of the holder.
const LOCK_GRACE: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(5));

/// A credential, and the session that it belongs to.
#[derive(Clone, Debug)]
pub struct LoginSession {
    entry: Entry,
    /// How it was obtained.
    pub origin: SessionOrigin,
    /// Where it is kept.
    pub folder: std::path::PathBuf,
    min_validity: Duration,
}

impl LoginSession {
    /// The token to hand over.
    pub fn token(&self) -> Option<&Secret<String>> {
        self.entry.token()
    }

    /// The expiry to tell clients.
    pub fn expiry(&self) -> Timestamp {
        self.entry.handed_expiry(self.min_validity)
    }

    /// A name for people.
    pub fn display(&self) -> &str {
        &self.entry.display
    }

    /// Whether the session can be renewed without the person.
    pub fn can_be_renewed(&self) -> bool {
        self.entry.refresh_token.is_some()
    }
}

/// Gets a credential: from the cache, by a refresh, or by a login.
///
/// # Errors
/// [`LoginError`]: there is no credential.
pub fn login(request: &LoginRequest, context: &LoginContext) -> Result<LoginSession, LoginError> {
    let key = KeyFields::new(request)?;
    let folder = CacheFolder::locate(request, context)?;
    let question = ServerQuestion::open(request, context, &folder)?;
    let (entry, origin) = session_entry(request, context, &folder, &key)?;
    if let Some(question) = question {
        question.ask(&entry.display)?;
    }
    Ok(LoginSession { entry, origin, folder: folder.path().to_owned(), min_validity: request.min_validity })
}

/// The entry with the token, and where it comes from.
fn session_entry(
    request: &LoginRequest,
    context: &LoginContext,
    folder: &CacheFolder,
    key: &KeyFields,
) -> Result<(Entry, SessionOrigin), LoginError> {
    if let Some(entry) = fresh_entry(request, context, folder, key) {
        stage(request, context, "cache: fresh");
        return Ok((entry, SessionOrigin::Cached));
    }
    stage(request, context, "cache: no fresh token");
    let waiting_since = context.clock.now();
    let held = lock(request, context, folder, key)?;
    stage(request, context, if held.has_waited { "lock: acquired after waiting" } else { "lock: acquired" });
    // L506: another process may have renewed it since it was read, also if the lock was free again by then.
    if let Some(entry) = fresh_entry(request, context, folder, key) {
        return Ok((entry, SessionOrigin::Cached));
    }
    let mut folder = folder.clone();
    if request.storage == Storage::Disk {
        // The entry may have been sealed before; without the keyring it is as good as absent.
        let _ = folder.unseal(Unlock::Never, context);
    }
    let folder = &folder;
    let entry = folder.read(&key.cache_key());
    let (entry, origin) = match begin(request, context, folder, key, held.has_waited.then_some(waiting_since))
    {
        Ok(attempt) => attempt.run(entry)?,
        Err(fault) => {
            match entry.filter(|entry| fault.is_transient() && entry.is_valid(context.clock.now())) {
                Some(entry) => (entry, SessionOrigin::KeptAfterFault),
                None => return Err(fault),
            }
        }
    };
    drop(held);
    let elapsed = waiting_since.duration_until(context.clock.now()).as_millis();
    let result = match origin {
        SessionOrigin::Refreshed => "refresh: ok",
        SessionOrigin::KeptAfterFault => "refresh: failed, token still valid",
        _ => "login: ok",
    };
    stage(request, context, &format!("{result}, {elapsed} ms"));
    Ok((entry, origin))
}

/// Shows a stage with `-v1`.
fn stage(request: &LoginRequest, context: &LoginContext, text: &str) {
    if request.verbosity >= 1 {
        context.messages.show(text);
    }
}

/// The cached entry if it can be handed over as it is. Reads one file.
fn fresh_entry(
    request: &LoginRequest,
    context: &LoginContext,
    folder: &CacheFolder,
    key: &KeyFields,
) -> Option<Entry> {
    if request.force_refresh {
        return None;
    }
    let entry = folder.read(&key.cache_key())?;
    let now = context.clock.now();
    let is_usable = entry.is_fresh(now, request.min_validity)
        && !entry.is_over(now, request.session_max)
        && !store::is_rejected(&entry, context, now);
    is_usable.then_some(entry)
}

fn lock(
    request: &LoginRequest,
    context: &LoginContext,
    folder: &CacheFolder,
    key: &KeyFields,
) -> Result<HeldLock, LoginError> {
    folder.create()?;
    let cache_key = key.cache_key();
    let lock = folder.open_lock(&cache_key, context).map_err(|error| {
        LoginError::CacheFolder(format!("failed to open a lock in `{}`: {error}", folder.path().display()))
    })?;
    let start = context.clock.monotonic();
    let own_deadline = start.saturating_add(request.login_limit()).saturating_add(LOCK_GRACE.0);
    lock.acquire(context, || {
        let state = folder.state(&cache_key);
        let Some(until) = state.until else { return (own_deadline, state.pid) };
        let now = context.clock.monotonic();
        let remaining = Duration::try_from(until.duration_since(context.clock.now())).unwrap_or_default();
        // The state may still be that of a holder that was killed.
        let holder = if remaining.is_zero() { start } else { now.saturating_add(remaining) };
        (holder.saturating_add(LOCK_GRACE.1).min(own_deadline), state.pid)
    })
}

/// An attempt, unless the process that this one waited for failed: then its failure.
fn begin<'a>(
    request: &'a LoginRequest,
    context: &'a LoginContext,
    folder: &'a CacheFolder,
    key: &'a KeyFields,
    waiting_since: Option<Timestamp>,
) -> Result<Attempt<'a>, LoginError> {
    let cache_key = key.cache_key();
    let before = folder.state(&cache_key);
    let person = Person::decide(request, context);
    let mut after_interruption = None;
    if let Some(since) = waiting_since {
        if let Some(error) = before.shared_failure(since) {
            return Err(error);
        }
        // Of the processes that waited, the first that has a terminal may ask again.
        after_interruption = before.was_interrupted(since).then_some(context.terminals.stderr);
    }
    Ok(Attempt { request, context, folder, key, cache_key, person, before, after_interruption })
}
