//! The last two steps: do the clocks agree, and whom does the server take us for; if for nobody, why that may be.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use navicert_types::Timestamp;

use super::Patient;
use super::connection::{self, Reached, with_source};
use super::credential::claims;
use super::kubeconfig::shown;
use super::plugin::Held;
use super::report::{Step, Walk};
use crate::kubeconfig::Effective;
use crate::transport::{Transport, TransportError};
use crate::whoami::{User, WhoamiError, whoami};

/// More than this and tokens are taken for expired, or for not valid yet.
const TOLERANCE: Duration = Duration::from_secs(30);

/// How far this machine's clock is from the server's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skew {
    by: Duration,
    ahead: bool,
}

impl Skew {
    /// From the `Date` of an answer, which is exact to a second.
    pub(super) fn of(patient: &Patient, date: &HeaderValue) -> Option<Self> {
        let server = jiff::fmt::rfc2822::parse(date.to_str().ok()?).ok()?.timestamp();
        Some(Skew::between(patient.around.clock.now(), server))
    }

    fn between(here: Timestamp, server: Timestamp) -> Self {
        let by = here.duration_since(server);
        Skew { by: by.unsigned_abs(), ahead: by.is_positive() }
    }

    pub(super) fn is_large(&self) -> bool {
        self.by > TOLERANCE
    }
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.by.as_secs();
        let (amount, unit) = match seconds {
            0..120 => (seconds, "seconds"),
            120..7_200 => ((seconds + 30) / 60, "minutes"),
            7_200..172_800 => ((seconds + 1_800) / 3_600, "hours"),
            _ => ((seconds + 43_200) / 86_400, "days"),
        };
        let way = if self.ahead { "ahead of" } else { "behind" };
        write!(f, "{amount} {unit} {way} the server's")
    }
}

pub(super) fn compare_clocks(patient: &Patient, reached: &Reached, walk: &mut Walk<'_>) {
    match reached.date.as_ref().and_then(|date| Skew::of(patient, date)) {
        None => walk.skip(Step::Clock, "the server does not say what time it is"),
        Some(skew) if skew.is_large() => {
            walk.warn(Step::Clock, format!("this machine's clock is {skew}"), "set this machine's clock");
        }
        Some(_) => walk.pass(Step::Clock, "it agrees with the server's"),
    }
}

/// Asks who we are, with whatever credential there is.
pub(super) async fn ask(patient: &Patient, effective: &Effective, held: Option<Held>, walk: &mut Walk<'_>) {
    let Some(held) = held else { return };
    let settings = match connection::settings(patient, effective) {
        Ok(settings) => settings,
        Err(error) => return walk.fail(Step::Request, error.to_string(), "correct the kubeconfig"),
    };
    let transport = Transport::new(settings, Arc::clone(&held.source), connection::around(patient));
    let reviewed = match &transport {
        Ok(transport) => whoami(transport).await,
        Err(error) => return walk.fail(Step::Request, error.to_string(), "correct the kubeconfig"),
    };
    match reviewed {
        Ok(review) => {
            walk.pass(Step::Request, who(&review.user));
            walk.is_user(review.user);
        }
        Err(WhoamiError::Refused { status: StatusCode::UNAUTHORIZED, .. }) => {
            let (text, to_do) = unauthorized(patient, effective, &held);
            walk.fail(Step::Request, text, to_do);
        }
        Err(WhoamiError::Refused { message, .. }) => {
            let text =
                format!("the server knows who is calling, and does not let it ask who it is: {message}");
            walk.warn(Step::Request, text, "have somebody grant this user the role `system:basic-user`");
        }
        Err(WhoamiError::NotServed) => {
            walk.pass(Step::Request, "the server lets us in; it is too old to say who we are");
        }
        Err(WhoamiError::Transport(TransportError::CertificateRefused { alert })) => {
            let user = shown(&effective.user_name);
            let text = format!("the server turned the client certificate down: {alert}");
            walk.fail(
                Step::Request,
                text,
                format!("give user {user} a certificate of this cluster's authority"),
            );
        }
        Err(error) => {
            let text = with_source(&error);
            walk.fail(
                Step::Request,
                text,
                "look at the server's own log: it did not answer as an API server does",
            );
        }
    }
}

fn who(user: &User) -> String {
    let groups = if user.groups.is_empty() { "no groups".to_owned() } else { user.groups.join(", ") };
    navicert_types::redact::terminal(&format!("you are `{}` ({groups})", user.username)).into_owned()
}

/// Why a server says 401: it does not tell, but what was sent does, mostly.
fn unauthorized(patient: &Patient, effective: &Effective, held: &Held) -> (String, String) {
    let (user, credential) = (shown(&effective.user_name), &held.credential);
    let said = "the server answered 401";
    if credential.authorization.is_none() && credential.identity.is_none() {
        let text = format!("{said}: no credential was sent, and it lets nobody in without one");
        return (text, format!("give user {user} a credential, or name another user in the context"));
    }
    if let Some(claims) = claims(credential) {
        let now = patient.around.clock.now();
        if let Some(from) = claims.not_before.filter(|from| *from > now) {
            let text = format!("{said}: the token is not valid before {from}");
            return (text, "set this machine's clock, or wait".to_owned());
        }
        if let Some(end) = claims.expires.filter(|end| *end <= now) {
            let text = format!("{said}: the token expired at {end}");
            return (text, format!("give user {user} a new token"));
        }
        let (issuer, audiences) = (shown(&claims.issuer), claims.audiences.join(", "));
        let text = format!(
            "{said}: it does not accept tokens of issuer {issuer} for audience `{audiences}`, or no longer this one"
        );
        return (
            text,
            format!(
                "compare issuer {issuer} and audience `{audiences}` with the API server's authentication configuration"
            ),
        );
    }
    if let (true, Some(exec)) = (held.from_plugin, effective.user.exec.as_ref()) {
        let text = format!("{said}, also to what the plugin gave anew");
        return (text, format!("log in with {} again, as somebody this cluster knows", shown(&exec.command)));
    }
    if credential.authorization.is_none() {
        let text = format!("{said}: no authority that it trusts has signed the client certificate");
        return (text, format!("give user {user} a certificate of this cluster's authority"));
    }
    let kind = if effective.user.username.is_empty() { "token" } else { "password" };
    (
        format!("{said}: it does not know this {kind}"),
        format!("give user {user} a {kind} that this cluster knows"),
    )
}
