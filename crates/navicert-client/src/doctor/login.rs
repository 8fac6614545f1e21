//! Checks the session of a user who logs in: of an exec plugin through [`InspectLogin`], of the auth provider `oidc` from the
//! kubeconfig itself.

use std::time::Duration;

use navicert_types::{Timestamp, redact};

use super::DoctorInputs;
use super::clock::Skew;
use super::kubeconfig::quoted;
use super::report::{DoctorStep, ReportBuilder};
use crate::config::Config;
use crate::credential::BoxFuture;
use crate::credential::claims::Claims;
use crate::kubeconfig::Effective;

/// The auth provider that the kubeconfig's own tokens belong to.
const OIDC_PROVIDER: &str = "oidc";

/// Looks at the sessions of exec plugins that log in. The crate `navicert-login` implements it for its own.
pub trait InspectLogin: Send + Sync {
    /// The session of the configuration's user; `None` if its exec plugin does not log in.
    fn inspect<'a>(&'a self, config: &'a Config) -> BoxFuture<'a, Option<LoginFacts>>;
}

/// What is known about a login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginFacts {
    /// The issuer.
    pub issuer: String,
    /// The command that logs in, without secrets.
    pub command: String,
    /// Why the provider's discovery document cannot be used.
    pub discovery_error: Option<String>,
    /// The session.
    pub session: LoginSessionFacts,
    /// Whether the plugin is told which API server gets the token, so that it can ask about a new one.
    pub knows_server: bool,
    /// Whether a refresh token is requested (`offline_access`).
    pub requests_refresh_token: bool,
}

/// What is known about a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoginSessionFacts {
    /// There is none.
    #[default]
    Missing,
    /// It belongs to another program, which keeps it to itself.
    Foreign,
    /// It cannot be read, or the plugin's arguments are wrong.
    Unusable(String),
    /// It was found.
    Found(FoundSession),
}

/// A session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundSession {
    /// A name for people.
    pub user: String,
    /// When its token expires, by the local clock.
    pub expires: Timestamp,
    /// Whether the token can be handed over as it is.
    pub is_fresh: bool,
    /// Whether it can be renewed without the person.
    pub has_refresh_token: bool,
    /// The provider's time minus the local time in seconds.
    pub skew_seconds: i64,
}

impl LoginFacts {
    /// Facts of a user without a session.
    pub fn new(issuer: impl Into<String>, command: impl Into<String>) -> Self {
        LoginFacts { issuer: issuer.into(), command: command.into(), ..LoginFacts::default() }
    }

    /// The command, unless the session would do without it.
    pub(super) fn needed_command(&self) -> Option<&str> {
        match &self.session {
            LoginSessionFacts::Found(session) if session.is_fresh => None,
            _ => Some(self.command.as_str()).filter(|command| !command.is_empty()),
        }
    }
}

/// Reports the session of the exec plugin, and returns what is known about it.
pub(super) async fn check_plugin(
    inputs: &DoctorInputs,
    report: &mut ReportBuilder<'_>,
) -> Option<LoginFacts> {
    let facts = match &inputs.login {
        Some(inspector) => inspector.inspect(&inputs.config).await,
        None => None,
    };
    match &facts {
        Some(facts) => check_session(facts, report),
        None => report.skip(DoctorStep::Login, "not a login plugin"),
    }
    facts
}

fn check_session(facts: &LoginFacts, report: &mut ReportBuilder<'_>) {
    let step = DoctorStep::Login;
    let issuer = quoted(&facts.issuer);
    let log_in = format!("log in: {}", facts.command);
    let session = match &facts.session {
        LoginSessionFacts::Unusable(why) => {
            return report.fail(step, redact::line(why), "correct what the text names, then log in again");
        }
        _ if facts.discovery_error.is_some() => {
            let why = facts.discovery_error.as_deref().unwrap_or_default();
            let text = format!("the provider {issuer} cannot be used: {}", redact::line(why));
            return report.warn(step, text, format!("make the provider {issuer} reachable"));
        }
        LoginSessionFacts::Foreign => {
            return report.pass(step, format!("kubelogin at {issuer}; its session is not examined"));
        }
        LoginSessionFacts::Missing => return report.warn(step, format!("no session at {issuer}"), log_in),
        LoginSessionFacts::Found(session) => session,
    };
    let user = quoted(&session.user);
    let skew = Skew::from_seconds(session.skew_seconds.saturating_neg());
    let renewal = match (session.has_refresh_token, facts.requests_refresh_token) {
        (true, _) => "a refresh token renews it",
        (false, true) => "no refresh token, which the provider did not grant",
        (false, false) => "no refresh token, which was not requested (--oidc-extra-scope=offline_access)",
    };
    if skew.is_large() {
        let text = format!("local clock is {}, by the provider {issuer}", skew.amount());
        return report.warn(step, text, "correct the local clock");
    }
    if !session.is_fresh && !session.has_refresh_token {
        let text = format!("the session of {user} at {issuer} expired at {}; {renewal}", session.expires);
        return report.warn(step, text, log_in);
    }
    let confirmation = match facts.knows_server {
        true => "",
        false => "; without provideClusterInfo no new API server is confirmed",
    };
    let text = format!("{user} at {issuer} until {}; {renewal}{confirmation}", session.expires);
    report.pass(step, text);
}

/// Reports the session of the auth provider `oidc`; nothing for other users.
pub(super) fn check_auth_provider(
    inputs: &DoctorInputs,
    effective: &Effective,
    report: &mut ReportBuilder<'_>,
) {
    let provider = effective.user.auth_provider.as_ref().filter(|_| effective.is_https());
    let Some(provider) = provider.filter(|provider| provider.name == OIDC_PROVIDER) else { return };
    report.skip_before(DoctorStep::Login, "no exec plugin is used");
    let step = DoctorStep::Login;
    let setting =
        |name: &str| provider.config.get(name).map(|value| value.expose().as_str()).unwrap_or_default();
    let issuer = quoted(setting("idp-issuer-url"));
    let expires = Claims::parse_unverified(setting("id-token")).and_then(|claims| claims.expires);
    let is_valid = expires.is_some_and(|expires| expires > inputs.client_context.clock.now());
    let until = match expires {
        Some(expires) if is_valid => format!("the id-token of {issuer} is valid until {expires}"),
        Some(expires) => format!("the id-token of {issuer} expired at {expires}"),
        None => format!("there is no id-token of {issuer}"),
    };
    if !setting("refresh-token").is_empty() {
        return report.pass(step, format!("{until}; a refresh token renews it in memory"));
    }
    let text = format!("{until}; no refresh token");
    let command = format!(
        "replace the tokens of user {} by a login: navicert login setup --oidc-issuer-url={} --oidc-client-id={}",
        quoted(&effective.user_name),
        redact::line(setting("idp-issuer-url")),
        redact::line(setting("client-id")),
    );
    match is_valid {
        true => report.pass(step, text),
        false => report.fail(step, text, command),
    }
}

impl Skew {
    /// A difference of so many seconds; positive if the local clock is ahead.
    fn from_seconds(seconds: i64) -> Self {
        Skew::new(Duration::from_secs(seconds.unsigned_abs()), seconds > 0)
    }
}
