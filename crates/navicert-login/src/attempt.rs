//! One attempt under the lock: refresh, else login. Its end is written down for the processes that wait.

use std::time::Duration;

use navicert_types::Timestamp;

use crate::cache::state::{LoginState, Phase};
use crate::cache::{CacheFolder, Entry};
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::grant::{GrantRun, exchange_session, needs_person};
use crate::key::{CacheKey, KeyFields};
use crate::person::Person;
use crate::provider::ProviderClient;
use crate::refresh::{RefreshOutcome, refresh};
use crate::request::{LoginRequest, PromptWhen};
use crate::signals::TerminationSignals;

/// Longest time of a refresh, for the state file: three exchanges and the waits between them.
const REFRESH_LIMIT: Duration = Duration::from_secs(95);
/// Time that a refresh gets after a signal: its answer may hold a rotated token.
const SIGNAL_GRACE: Duration = Duration::from_secs(5);

/// How the credential was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionOrigin {
    /// It was in the cache.
    Cached,
    /// It was refreshed.
    Refreshed,
    /// It was valid, and refreshing failed.
    KeptAfterFault,
    /// A grant was used.
    LoggedIn,
}

pub(crate) struct Attempt<'a> {
    pub(crate) request: &'a LoginRequest,
    pub(crate) context: &'a LoginContext,
    pub(crate) folder: &'a CacheFolder,
    pub(crate) key: &'a KeyFields,
    pub(crate) cache_key: CacheKey,
    pub(crate) person: Person,
    /// The state when the lock was acquired.
    pub(crate) before: LoginState,
    /// The process that this one waited for was interrupted while it asked a person; whether this one may ask again.
    pub(crate) after_interruption: Option<bool>,
}

impl Attempt<'_> {
    /// Renews the session or logs in. Makes the runtime: everything before needs none.
    pub(crate) fn run(self, entry: Option<Entry>) -> Result<(Entry, SessionOrigin), LoginError> {
        let runtime = crate::runtime::runtime()?;
        let mut state = self.before.clone();
        let kept = entry.clone();
        let result = runtime.block_on(async {
            let mut signals = TerminationSignals::register();
            Box::pin(self.renew_or_log_in(entry, &mut state, &mut signals)).await
        });
        // A browser's opener may still run on a thread of the runtime; it must not delay the answer.
        runtime.shutdown_background();
        if state != self.before {
            let _ =
                self.folder.write_state(&self.cache_key, &state.finished(self.now(), result.as_ref().err()));
        }
        match (result, kept) {
            // Processes that wait find the fault in the state, and keep the token too.
            (Err(fault), Some(entry)) if self.keeps_token(&fault, &entry) => {
                Ok((entry, SessionOrigin::KeptAfterFault))
            }
            (result, _) => result,
        }
    }

    async fn renew_or_log_in(
        &self,
        entry: Option<Entry>,
        state: &mut LoginState,
        signals: &mut TerminationSignals,
    ) -> Result<(Entry, SessionOrigin), LoginError> {
        let client = ProviderClient::new(self.request, self.context, self.folder, self.key)?;
        let mut ended = None;
        if let Some(entry) = &entry
            && entry.can_exchange(self.now())
            && !self.request.force_refresh
            && !entry.is_fresh(self.now(), self.request.min_validity)
            && !entry.is_over(self.now(), self.request.session_max)
        {
            self.enter(state, Phase::Refresh, REFRESH_LIMIT);
            client.recall(&entry.memo);
            return self.exchange(&client, entry.clone(), signals).await;
        }
        if let Some(entry) = &entry
            && entry.refresh_token.is_some()
            && !entry.is_over(self.now(), self.request.session_max)
        {
            self.enter(state, Phase::Refresh, REFRESH_LIMIT);
            let renewed =
                signals.finish_within(refresh(&client, entry), SIGNAL_GRACE, &*self.context.timer).await;
            match renewed.unwrap_or(Err(LoginError::Interrupted { signal: signals.received() })) {
                Ok(RefreshOutcome::Renewed(mut renewed)) => {
                    crate::store::store(self.folder, self.context, &mut renewed);
                    return self.exchange(&client, *renewed, signals).await;
                }
                Ok(RefreshOutcome::Ended(why)) => {
                    ended = Some(self.end_session(entry, why));
                    // The API server rejected the token: no reason to ask a person while it is fresh.
                    if entry.is_fresh(self.now(), self.request.min_validity) && !self.request.force_refresh {
                        return Ok((entry.clone(), SessionOrigin::Cached));
                    }
                }
                Ok(RefreshOutcome::Unusable { error: error @ LoginError::SubjectChanged { .. }, .. }) => {
                    let _ = self.folder.remove(&self.cache_key);
                    return Err(error);
                }
                // L832: the provider may end the session when the refresh token before this one is used again.
                Ok(RefreshOutcome::Unusable { error, refresh_token }) => {
                    let mut rest = entry.clone();
                    rest.refresh_token = Some(refresh_token);
                    let _ = self.folder.write(&rest);
                    return Err(self.record_failure(&rest, error));
                }
                Err(error) => return Err(self.record_failure(entry, error)),
            }
        }
        self.log_in(&client, entry.as_ref(), ended.as_deref(), state, signals).await
    }

    /// Exchanges the access token of a renewed session, if the request asks for that.
    async fn exchange(
        &self,
        client: &ProviderClient<'_>,
        mut entry: Entry,
        signals: &mut TerminationSignals,
    ) -> Result<(Entry, SessionOrigin), LoginError> {
        if self.request.exchange.audience.is_some() {
            let exchanged = signals.interrupt(Box::pin(exchange_session(client, &mut entry))).await;
            exchanged.unwrap_or(Err(LoginError::Interrupted { signal: signals.received() }))?;
            crate::store::store(self.folder, self.context, &mut entry);
        }
        Ok((entry, SessionOrigin::Refreshed))
    }

    async fn log_in(
        &self,
        client: &ProviderClient<'_>,
        entry: Option<&Entry>,
        ended: Option<&str>,
        state: &mut LoginState,
        signals: &mut TerminationSignals,
    ) -> Result<(Entry, SessionOrigin), LoginError> {
        let needs_person = needs_person(self.request);
        if needs_person {
            self.check_person(ended)?;
            self.enter(state, Phase::Login, self.request.login_limit());
            state.add_tab(self.now());
            let _ = self.folder.write_state(&self.cache_key, state);
        } else {
            self.enter(state, Phase::Refresh, REFRESH_LIMIT);
        }
        let run = GrantRun {
            client,
            request: self.request,
            context: self.context,
            folder: self.folder,
            key: self.key,
            person: self.person,
            ended: entry,
        };
        if let Some(entry) = entry {
            client.recall(&entry.memo);
        }
        let granted = signals.interrupt(Box::pin(run.run())).await;
        let granted = granted.unwrap_or(Err(LoginError::Interrupted { signal: signals.received() }));
        granted.map(|entry| (entry, SessionOrigin::LoggedIn))
    }

    /// Whether the old token is handed over although the provider failed.
    fn keeps_token(&self, fault: &LoginError, entry: &Entry) -> bool {
        let now = self.now();
        let is_usable = entry.is_valid(now) && !entry.is_over(now, self.request.session_max);
        fault.is_transient() && is_usable && !self.request.force_refresh
    }

    /// Whether a person may be asked now.
    fn check_person(&self, ended: Option<&str>) -> Result<(), LoginError> {
        if self.after_interruption == Some(false) {
            return Err(LoginError::Interrupted { signal: None });
        }
        let (host, command) = (self.request.host().to_owned(), self.request.command_line());
        let needed = match ended {
            Some(why) => LoginError::SessionOver { host, why: why.to_owned(), command },
            None => LoginError::LoginNeeded { host, command },
        };
        if !self.person.may_be_asked {
            return Err(needed);
        }
        if self.person.is_explicit || self.after_interruption == Some(true) {
            return Ok(());
        }
        if let Some(error) = self.before.backoff(self.now()) {
            return Err(error);
        }
        let in_background = !self.person.is_present && self.request.prompt_when == PromptWhen::Always;
        if in_background && !self.before.allows_background_login(self.now()) {
            return Err(needed);
        }
        Ok(())
    }

    /// Writes down what this process does.
    fn enter(&self, state: &mut LoginState, phase: Phase, limit: Duration) {
        let now = self.now();
        let until = now.checked_add(limit).unwrap_or(now);
        *state = state.started(phase, now, until, LoginContext::host_name());
        let _ = self.folder.write_state(&self.cache_key, state);
    }

    /// Removes the refresh token that the provider no longer accepts; the rest stays for `status`.
    fn end_session(&self, entry: &Entry, why: String) -> String {
        let mut rest = entry.clone();
        rest.refresh_token = None;
        let _ = self.folder.write(&rest);
        let here = LoginContext::host_name();
        if entry.host.is_empty() || entry.host == here {
            return why;
        }
        format!("{why}; it was last used on {}, give each machine its own --token-cache-dir", entry.host)
    }

    fn record_failure(&self, entry: &Entry, error: LoginError) -> LoginError {
        if !error.is_transient() {
            let mut entry = entry.clone();
            let code = error.code().as_str().to_owned();
            entry.history.last_failure = Some(crate::cache::entry::LastFailure { at: self.now(), code });
            let _ = self.folder.write(&entry);
        }
        error
    }

    fn now(&self) -> Timestamp {
        self.context.clock.now()
    }
}
