//! What the holder of an entry's lock does, and how its last attempt ended. Processes that waited share that end, and later
//! ones wait before they ask again. Contains no URL and no secret.

use std::time::Duration;

use navicert_types::Timestamp;
use serde::{Deserialize, Serialize};

use super::time_text;
use crate::error::{ErrorCode, LoginError};

/// Delay before a person is asked again after an unanswered login: doubled up to the second value.
const UNANSWERED_BACKOFF: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(15 * 60));
/// Delay after a login that was interrupted.
const INTERRUPTED_BACKOFF: Duration = Duration::from_secs(5);
/// At most one background login in this time.
const BACKGROUND_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Background logins without an answer in a day.
const MAX_BACKGROUND_LOGINS: usize = 3;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// What the holder does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Nothing.
    #[default]
    Idle,
    /// It refreshes, or uses a grant that needs no person.
    Refresh,
    /// It waits for a person.
    Login,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptOutcome {
    /// With a credential.
    Ok,
    /// With an error.
    Failed,
    /// By a signal.
    Interrupted,
}

/// The state of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoginState {
    /// What the holder does.
    pub phase: Phase,
    /// The holder's process id.
    pub pid: u32,
    /// The holder's machine.
    pub host: String,
    /// When the attempt started.
    #[serde(with = "time_text::optional", skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When the attempt ends at the latest.
    #[serde(with = "time_text::optional", skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// When the attempt ended.
    #[serde(with = "time_text::optional", skip_serializing_if = "Option::is_none")]
    pub finished: Option<Timestamp>,
    /// How it ended; absent while it runs, and if its process was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<AttemptOutcome>,
    /// Code of the error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// Sentence of the error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Consecutive logins without an answer.
    #[serde(skip_serializing_if = "is_zero")]
    pub unanswered: u32,
    /// When a person was asked, in the last day.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tabs: Vec<String>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl LoginState {
    /// The state at the beginning of an attempt.
    pub(crate) fn started(&self, phase: Phase, now: Timestamp, until: Timestamp, host: String) -> Self {
        LoginState {
            phase,
            pid: std::process::id(),
            host,
            started: Some(now),
            until: Some(until),
            finished: None,
            outcome: None,
            code: String::new(),
            message: String::new(),
            unanswered: self.unanswered,
            tabs: self.recent_tabs(now).iter().map(Timestamp::to_string).collect(),
        }
    }

    /// The state after an attempt that ended in this way.
    pub(crate) fn finished(&self, now: Timestamp, error: Option<&LoginError>) -> Self {
        let was_login = self.phase == Phase::Login;
        let mut state = LoginState { phase: Phase::Idle, until: None, finished: Some(now), ..self.clone() };
        match error {
            None => {
                state.outcome = Some(AttemptOutcome::Ok);
                state.unanswered = 0;
                state.tabs.clear();
            }
            Some(error) => {
                let code = error.code();
                let is_interrupted = code == ErrorCode::Interrupted;
                state.outcome =
                    Some(if is_interrupted { AttemptOutcome::Interrupted } else { AttemptOutcome::Failed });
                code.as_str().clone_into(&mut state.code);
                state.message = error.to_string();
                if was_login && matches!(code, ErrorCode::TimedOut | ErrorCode::Denied) {
                    state.unanswered = state.unanswered.saturating_add(1);
                }
            }
        }
        state
    }

    /// The failure that a process shares which waited since `waiting_since` for the holder.
    pub(crate) fn shared_failure(&self, waiting_since: Timestamp) -> Option<LoginError> {
        let is_recent = self.finished.is_some_and(|finished| finished >= waiting_since);
        if self.outcome != Some(AttemptOutcome::Failed) || !is_recent {
            return None;
        }
        Some(self.as_error(format!(" (asked by process {})", self.pid)))
    }

    /// Whether the holder that a process waited for was interrupted or killed during a login.
    pub(crate) fn was_interrupted(&self, waiting_since: Timestamp) -> bool {
        match self.outcome {
            Some(AttemptOutcome::Interrupted) => {
                self.finished.is_some_and(|finished| finished >= waiting_since)
            }
            None => self.phase == Phase::Login,
            _ => false,
        }
    }

    /// The failure of an earlier login after which a person is not asked again yet.
    pub(crate) fn backoff(&self, now: Timestamp) -> Option<LoginError> {
        let (first, longest) = UNANSWERED_BACKOFF;
        let delay = match (self.outcome, self.phase) {
            (Some(AttemptOutcome::Interrupted), _) => INTERRUPTED_BACKOFF,
            (None, Phase::Login) => INTERRUPTED_BACKOFF,
            (Some(AttemptOutcome::Failed), _) if self.unanswered > 0 => {
                let doubled = first.saturating_mul(2_u32.saturating_pow(self.unanswered - 1));
                doubled.min(longest)
            }
            _ => return None,
        };
        let ended = self.finished.or(self.started)?;
        let elapsed = Duration::try_from(now.duration_since(ended)).ok()?;
        let remaining = delay.checked_sub(elapsed).filter(|left| !left.is_zero())?;
        Some(self.as_error(format!(" (next attempt in {} s)", remaining.as_secs().max(1))))
    }

    /// Whether a person may be asked in the background.
    pub(crate) fn allows_background_login(&self, now: Timestamp) -> bool {
        let tabs = self.recent_tabs(now);
        let is_recent = |tab: &Timestamp| now.duration_since(*tab).unsigned_abs() < BACKGROUND_INTERVAL;
        tabs.len() < MAX_BACKGROUND_LOGINS && !tabs.iter().any(is_recent)
    }

    /// Records that a person is asked.
    pub(crate) fn add_tab(&mut self, now: Timestamp) {
        self.tabs.push(now.to_string());
    }

    fn recent_tabs(&self, now: Timestamp) -> Vec<Timestamp> {
        let is_recent = |tab: &Timestamp| now.duration_since(*tab).unsigned_abs() < DAY;
        self.tabs.iter().filter_map(|text| text.parse().ok()).filter(is_recent).collect()
    }

    fn as_error(&self, note: String) -> LoginError {
        let code = ErrorCode::from_text(&self.code).unwrap_or(ErrorCode::Interrupted);
        let message = if self.message.is_empty() {
            LoginError::Interrupted { signal: None }.to_string()
        } else {
            self.message.clone()
        };
        LoginError::Shared { code, message, note }
    }
}
