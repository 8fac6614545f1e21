//! What the verbs print with `-o json`. No field holds a token.

use navicert_client::report::FileChangeReport;
use navicert_login::{LoggedOut, Revocation, SessionStatus, SetupReport, SetupVerdict};
use serde::Serialize;
use serde_json::Value;

/// The result of `login clean`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CleanReport {
    /// How many sessions were removed.
    pub(super) removed: usize,
}

/// The result of `logout`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LogoutReport {
    /// The sessions that were removed; empty if there was none.
    sessions: Vec<EndedSession>,
}

/// A session that was removed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndedSession {
    /// Its issuer.
    issuer: String,
    /// Its user, as a name for people.
    user: String,
    /// What became of it at the provider: `revoked`, `not-offered`, `nothing-to-revoke`, `skipped` or `failed`.
    revocation: &'static str,
    /// Where the browser's own session can be ended.
    #[serde(rename = "endSessionURL", skip_serializing_if = "Option::is_none")]
    end_session_url: Option<String>,
}

impl From<&[LoggedOut]> for LogoutReport {
    fn from(ended: &[LoggedOut]) -> Self {
        LogoutReport { sessions: ended.iter().map(EndedSession::from).collect() }
    }
}

impl From<&LoggedOut> for EndedSession {
    fn from(ended: &LoggedOut) -> Self {
        EndedSession {
            issuer: ended.issuer.clone(),
            user: ended.display.clone(),
            revocation: match &ended.revocation {
                Revocation::NothingToRevoke => "nothing-to-revoke",
                Revocation::Revoked => "revoked",
                Revocation::Skipped => "skipped",
                Revocation::NotOffered => "not-offered",
                _ => "failed",
            },
            end_session_url: ended.end_session.as_ref().map(|end_session| end_session.page().to_owned()),
        }
    }
}

/// The result of `status`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StatusReport {
    /// Every session, in the order of issuer, client and account.
    pub(super) sessions: Vec<SessionReport>,
}

/// One session.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionReport {
    /// The issuer.
    issuer: String,
    /// The client id.
    #[serde(rename = "clientID")]
    client_id: String,
    /// The label of the account; empty if there is none.
    account: String,
    /// The user, as a name for people.
    user: String,
    /// Whether the token can be handed over as it is.
    fresh: bool,
    /// When the token expires, by the local clock.
    expires: String,
    /// When the user last logged in.
    logged_in_at: String,
    /// Whether the session is sealed by a key of the keyring.
    sealed: bool,
    /// Whether there is a refresh token.
    refresh_token: bool,
    /// When the refresh token expires, if the provider said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_expires_at: Option<String>,
    /// The provider's time minus the local time in seconds, if that is more than 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    skew_seconds: Option<i64>,
    /// Number of logins.
    logins: u64,
    /// Number of refreshes.
    refreshes: u64,
    /// The last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<LastFailureReport>,
    /// The process that waits for the user to log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    login_in_progress: Option<u32>,
}

/// A failure of a session.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LastFailureReport {
    /// When.
    at: String,
    /// Its code.
    code: String,
}

impl From<&SessionStatus> for SessionReport {
    fn from(session: &SessionStatus) -> Self {
        let failure = session.last_failure.as_ref();
        SessionReport {
            issuer: session.issuer.clone(),
            client_id: session.client_id.clone(),
            account: session.account.clone(),
            user: session.display.clone(),
            fresh: session.is_fresh,
            expires: session.expires.to_string(),
            logged_in_at: session.logged_in_at.to_string(),
            sealed: session.is_sealed,
            refresh_token: session.has_refresh_token,
            refresh_expires_at: session.refresh_expires_at.map(|at| at.to_string()),
            skew_seconds: session.skew_seconds,
            logins: session.logins,
            refreshes: session.refreshes,
            last_failure: failure
                .map(|(at, code)| LastFailureReport { at: at.to_string(), code: code.clone() }),
            login_in_progress: session.login_in_progress,
        }
    }
}

/// The result of `login setup`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SetupJson {
    /// Every step, in order.
    steps: Vec<SetupStepReport>,
    /// What to configure; absent if a step before failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<SetupDocumentsReport>,
    /// The kubeconfig files that `--write` changes; absent without it, and if nothing is left to change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileChangeReport>,
}

/// One step of `login setup`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SetupStepReport {
    /// Its name.
    step: &'static str,
    /// `PASS`, `WARN` or `FAIL`.
    verdict: &'static str,
    /// What was found.
    text: String,
}

/// The files that `login setup` proposes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetupDocumentsReport {
    /// An `AuthenticationConfiguration` for the API server.
    authentication_configuration: Value,
    /// A `ClusterRoleBinding` for the user, and one for a group.
    cluster_role_bindings: Vec<Value>,
    /// A kubeconfig with the user alone.
    kubeconfig: Value,
}

/// The word for a verdict.
pub(super) fn verdict(verdict: SetupVerdict) -> &'static str {
    match verdict {
        SetupVerdict::Pass => "PASS",
        SetupVerdict::Warn => "WARN",
        SetupVerdict::Fail => "FAIL",
    }
}

impl SetupJson {
    pub(super) fn new(report: &SetupReport, files: Vec<FileChangeReport>) -> Self {
        let parsed = |text: &String| serde_json::from_str::<Value>(text).unwrap_or_default();
        let steps = report.steps.iter().map(|step| SetupStepReport {
            step: step.name,
            verdict: verdict(step.verdict),
            text: step.text.clone(),
        });
        let documents = report.documents.as_ref().map(|documents| SetupDocumentsReport {
            authentication_configuration: parsed(&documents.authentication_configuration),
            cluster_role_bindings: documents.rbac.iter().map(parsed).collect(),
            kubeconfig: parsed(&documents.kubeconfig_user),
        });
        SetupJson { steps: steps.collect(), documents, files }
    }
}
