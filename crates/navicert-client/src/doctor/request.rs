//! The last two steps: compares the clocks, and sends a `SelfSubjectReview` to see how the server authenticates the user.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use navicert_types::Timestamp;

use super::Patient;
use super::connection::{self, Reached, printable};
use super::credential::claims;
use super::kubeconfig::quoted;
use super::plugin::ObtainedCredential;
use super::report::{DoctorStep, ReportBuilder};
use crate::kubeconfig::Effective;
use crate::transport::{Transport, TransportError};
use crate::whoami::{UserInfo, WhoamiError, whoami};

/// With a larger difference, valid tokens look expired or not yet valid.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(30);

/// The difference between the local clock and the server's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skew {
    by: Duration,
    ahead: bool,
}

impl Skew {
    /// From the `Date` of a response, which has a precision of one second.
    pub(super) fn from_date(patient: &Patient, date: &HeaderValue) -> Option<Self> {
        let server = jiff::fmt::rfc2822::parse(date.to_str().ok()?).ok()?.timestamp();
        Some(Skew::between(patient.around.clock.now(), server))
    }

    fn between(here: Timestamp, server: Timestamp) -> Self {
        let by = here.duration_since(server);
        Skew { by: by.unsigned_abs(), ahead: by.is_positive() }
    }

    pub(super) fn is_large(&self) -> bool {
        self.by > MAX_CLOCK_SKEW
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
        let relation = if self.ahead { "ahead of" } else { "behind" };
        write!(f, "{amount} {unit} {relation} the server's")
    }
}

pub(super) fn compare_clocks(patient: &Patient, reached: &Reached, report: &mut ReportBuilder<'_>) {
    match reached.date.as_ref().and_then(|date| Skew::from_date(patient, date)) {
        None => report.skip(DoctorStep::Clock, "the server sent no Date header"),
        Some(skew) if skew.is_large() => {
            report.warn(DoctorStep::Clock, format!("local clock is {skew}"), "correct the local clock");
        }
        Some(_) => report.pass(DoctorStep::Clock, "local clock agrees with the server's"),
    }
}

/// Sends a `SelfSubjectReview` with the credential.
pub(super) async fn send_request(
    patient: &Patient,
    effective: &Effective,
    obtained: Option<ObtainedCredential>,
    report: &mut ReportBuilder<'_>,
) {
    let Some(obtained) = obtained else { return };
    let settings = match connection::settings(patient, effective) {
        Ok(settings) => settings,
        Err(error) => return report.fail(DoctorStep::Request, printable(&error), "correct the kubeconfig"),
    };
    let transport = Transport::new(settings, Arc::clone(&obtained.source), connection::around(patient));
    let reviewed = match &transport {
        Ok(transport) => whoami(transport).await,
        Err(error) => return report.fail(DoctorStep::Request, printable(&error), "correct the kubeconfig"),
    };
    match reviewed {
        Ok(review) => {
            report.pass(DoctorStep::Request, describe_user(&review.user));
            report.set_user(review.user);
        }
        Err(WhoamiError::Rejected { status: StatusCode::UNAUTHORIZED, .. }) => {
            let (text, to_do) = explain_unauthorized(patient, effective, &obtained);
            report.fail(DoctorStep::Request, text, to_do);
        }
        Err(WhoamiError::Rejected { message, .. }) => {
            let text = format!("authenticated, but not allowed to create a SelfSubjectReview: {message}");
            report.warn(
                DoctorStep::Request,
                text,
                "ask an administrator to grant this user the role `system:basic-user`",
            );
        }
        Err(WhoamiError::NotServed) => {
            report.pass(DoctorStep::Request, "request accepted; the server is too old for SelfSubjectReview");
        }
        Err(WhoamiError::Transport(TransportError::CertificateRejected { alert })) => {
            let user = quoted(&effective.user_name);
            let text = format!("the server rejected the client certificate: {alert}");
            report.fail(
                DoctorStep::Request,
                text,
                format!("give user {user} a certificate issued by this cluster's certificate authority"),
            );
        }
        Err(error) => {
            let text = printable(&error);
            report.fail(
                DoctorStep::Request,
                text,
                "check the server's log: it did not respond like an API server",
            );
        }
    }
}

fn describe_user(user: &UserInfo) -> String {
    let groups = if user.groups.is_empty() { "no groups".to_owned() } else { user.groups.join(", ") };
    navicert_types::redact::terminal(&format!("authenticated as `{}` ({groups})", user.username)).into_owned()
}

/// The likely reason for a 401, derived from the credential because the server does not give one.
fn explain_unauthorized(
    patient: &Patient,
    effective: &Effective,
    obtained: &ObtainedCredential,
) -> (String, String) {
    let (user, credential) = (quoted(&effective.user_name), &obtained.credential);
    let prefix = "server responded with 401 Unauthorized";
    if credential.authorization.is_none() && credential.identity.is_none() {
        let text = format!("{prefix}: no credential was sent, and anonymous requests are not allowed");
        return (text, format!("give user {user} a credential, or name another user in the context"));
    }
    if let Some(claims) = claims(credential) {
        let now = patient.around.clock.now();
        if let Some(from) = claims.not_before.filter(|from| *from > now) {
            let text = format!("{prefix}: the token is not valid before {from}");
            return (text, "correct the local clock, or wait".to_owned());
        }
        if let Some(end) = claims.expires.filter(|end| *end <= now) {
            let text = format!("{prefix}: the token expired at {end}");
            return (text, format!("give user {user} a new token"));
        }
        let (issuer, audiences) = (quoted(&claims.issuer), claims.audiences.join(", "));
        let text = format!(
            "{prefix}: issuer {issuer} or audience `{audiences}` is not accepted, or the token was revoked"
        );
        return (
            text,
            format!(
                "compare issuer {issuer} and audience `{audiences}` with the API server's authentication configuration"
            ),
        );
    }
    if let (true, Some(exec)) = (obtained.from_plugin, effective.user.exec.as_ref()) {
        let text = format!("{prefix}, also for a new credential from the plugin");
        return (text, format!("log in again with {} as a user this cluster accepts", quoted(&exec.command)));
    }
    if credential.authorization.is_none() {
        let text =
            format!("{prefix}: the client certificate is not issued by a trusted certificate authority");
        return (
            text,
            format!("give user {user} a certificate issued by this cluster's certificate authority"),
        );
    }
    let kind = if effective.user.username.is_empty() { "token" } else { "password" };
    (format!("{prefix}: unknown {kind}"), format!("give user {user} a {kind} that this cluster accepts"))
}
