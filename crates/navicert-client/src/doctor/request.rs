//! The last step: sends a `SelfSubjectReview` with the credential and checks how the server authenticates it.

use std::sync::Arc;

use http::StatusCode;
use navicert_types::redact;
use navicert_types::tree::{Node, Syntax, parse};

use super::DoctorInputs;
use super::api_server::{ServerKind, is_status, other_server, outcome};
use super::connection::{ProbeError, Reached, printable};
use super::front_proxy;
use super::kubeconfig::quoted;
use super::plugin::ObtainedCredential;
use super::rejection::{self, Sent};
use super::report::{DoctorStep, ReportBuilder};
use super::tls_probe::alert_in;
use crate::credential::{Credential, CredentialSource, StaticCredential};
use crate::json::member;
use crate::kubeconfig::Effective;
use crate::transport::{Transport, TransportError};
use crate::whoami::{UserInfo, WhoamiError, whoami};

/// The user of a request without a credential, or whose credential was lost on the way.
const ANONYMOUS: &str = "system:anonymous";

/// Text and fix of a failed request.
type Explanation = (String, String);

/// Sends a `SelfSubjectReview` with the credential.
pub(super) async fn send_request(
    inputs: &DoctorInputs,
    effective: &Effective,
    reached: &Reached<'_>,
    obtained: Option<ObtainedCredential>,
    report: &mut ReportBuilder<'_>,
) {
    let Some(obtained) = obtained else { return };
    // A plugin is run once: a rejected credential is reported, not refreshed.
    let source: Arc<dyn CredentialSource> = match obtained.from_plugin {
        true => Arc::new(StaticCredential::new(Credential::clone(&obtained.credential))),
        false => Arc::clone(&obtained.source),
    };
    let target = &reached.target;
    let transport = if obtained.credential.identity.is_none() && target.settings.impersonation.is_none() {
        reached.credential.set(source);
        reached.transport.clone()
    } else {
        match Transport::new(target.settings.clone(), source, target.client_context()) {
            Ok(transport) => transport,
            Err(error) => {
                return report.fail(DoctorStep::Request, printable(&error), "correct the kubeconfig");
            }
        }
    };
    let sent = Sent { inputs, effective, target, obtained: &obtained };
    let reviewed = match &inputs.front_proxy {
        Some(header) => front_proxy::check(&sent, header, &transport, &reached.server, report).await,
        None => match whoami(&transport).await {
            Ok(review) => {
                report_user(&sent, &review.user, report).await;
                report.set_user(review.user);
                Ok(())
            }
            Err(error) => Err(error),
        },
    };
    if let Err(error) = reviewed {
        report_error(&sent, error, reached, &transport, report).await;
    }
}

/// Reports that there is no review.
async fn report_error(
    sent: &Sent<'_>,
    error: WhoamiError,
    reached: &Reached<'_>,
    transport: &Transport,
    report: &mut ReportBuilder<'_>,
) {
    match error {
        WhoamiError::Rejected { status: StatusCode::UNAUTHORIZED, is_status, .. } => {
            fail_unauthorized(sent, is_status, report).await;
        }
        WhoamiError::Rejected { message, is_status, .. } => {
            report_forbidden(sent, &message, is_status, report).await;
        }
        WhoamiError::NotServed => check_old_server(sent, reached, transport, report).await,
        WhoamiError::UnexpectedResponse { status: StatusCode::BAD_REQUEST, .. }
            if reached.server == ServerKind::CertificateRequired =>
        {
            fail(report, rejection::explain_alert(sent, "400 Bad Request"));
        }
        WhoamiError::UnexpectedResponse { status, message, location } => {
            fail(report, explain_unexpected(sent, status, &message, location));
        }
        WhoamiError::Transport(error) => {
            let explanation = explain_transport(sent, &error).await;
            fail(report, explanation);
        }
    }
}

fn fail(report: &mut ReportBuilder<'_>, (text, to_do): Explanation) {
    report.fail_request(text, to_do);
}

/// A 401: unless the credential itself explains it, an earlier warning may.
async fn fail_unauthorized(sent: &Sent<'_>, is_status: bool, report: &mut ReportBuilder<'_>) {
    let (text, to_do) = rejection::explain_unauthorized(sent, is_status).await;
    if sent.has_known_mistake() {
        report.fail_request(text, to_do);
    } else {
        report.fail(DoctorStep::Request, text, to_do);
    }
}

/// Reports the user. Anonymous is an error: a credential was lost, or there is none, and kubectl asks for one.
async fn report_user(sent: &Sent<'_>, user: &UserInfo, report: &mut ReportBuilder<'_>) {
    if user.username != ANONYMOUS {
        return report.pass(DoctorStep::Request, describe_user(user));
    }
    let explanation = rejection::explain_anonymous(sent).await;
    fail(report, explanation);
}

fn describe_user(user: &UserInfo) -> String {
    let groups = if user.groups.is_empty() { "no groups".to_owned() } else { user.groups.join(", ") };
    redact::line(&format!("authenticated as `{}` ({groups})", user.username)).into_owned()
}

/// Reports a 403: anonymous, not from an API server, impersonation, or a missing role.
async fn report_forbidden(sent: &Sent<'_>, message: &str, is_status: bool, report: &mut ReportBuilder<'_>) {
    if message.contains(&format!("\"{ANONYMOUS}\"")) {
        let explanation = rejection::explain_anonymous(sent).await;
        return fail(report, explanation);
    }
    if !is_status {
        let server = quoted(&sent.target.server());
        return fail(
            report,
            (
                "server responded with 403 Forbidden, but not as a Kubernetes API server does".to_owned(),
                format!("check what stands in front of the API server at {server}: it rejects the request"),
            ),
        );
    }
    if sent.impersonates() {
        let user = quoted(&sent.effective.user_name);
        return fail(
            report,
            (
                format!("impersonation is not allowed: {message}"),
                format!(
                    "remove the impersonation (`as`, `--as`), or ask an administrator to let user {user} impersonate"
                ),
            ),
        );
    }
    report.warn(
        DoctorStep::Request,
        format!("authenticated, but not allowed to create a SelfSubjectReview: {message}"),
        "ask an administrator to grant this user the role `system:basic-user`",
    );
}

/// Kubernetes before 1.26 has no `SelfSubjectReview`: asks for the API versions, which needs an accepted credential too.
async fn check_old_server(
    sent: &Sent<'_>,
    reached: &Reached<'_>,
    transport: &Transport,
    report: &mut ReportBuilder<'_>,
) {
    let response = match sent.target.get(transport, "/api").await {
        Ok(response) => response,
        Err(ProbeError::Transport(error)) => {
            let explanation = explain_transport(sent, &error).await;
            return fail(report, explanation);
        }
        Err(ProbeError::Build(_) | ProbeError::Timeout) => {
            let found = "no response to GET /api";
            return fail(report, other_server(sent.target, found));
        }
    };
    let body = parse(&response.body, Syntax::Json).unwrap_or_default();
    let text = |name| member(&body, name).and_then(Node::as_str).unwrap_or_default();
    match response.status {
        StatusCode::UNAUTHORIZED => {
            fail_unauthorized(sent, is_status(&body), report).await;
        }
        StatusCode::FORBIDDEN => report_forbidden(sent, text("message"), is_status(&body), report).await,
        status if status.is_success() && !text("kind").is_empty() => {
            let version = match &reached.server {
                ServerKind::Kubernetes(Some(version)) => format!(" ({version})"),
                _ => String::new(),
            };
            report.pass(
                DoctorStep::Request,
                format!(
                    "request accepted; the server{version} is too old to name the user (1.26 and newer do)"
                ),
            );
        }
        _ => fail(report, other_server(sent.target, &format!("{} to GET /api", outcome(&response)))),
    }
}

fn explain_unexpected(
    sent: &Sent<'_>,
    status: StatusCode,
    message: &str,
    location: Option<String>,
) -> Explanation {
    let server = quoted(&sent.target.server());
    let suffix = if message.is_empty() { String::new() } else { format!(": {message}") };
    if let Some(location) = location.filter(|_| status.is_redirection()) {
        let found = format!("server responded with {status} to {}", quoted(&location));
        return other_server(sent.target, &found);
    }
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return (
            format!("server responded with {status}{suffix}"),
            format!("check the API server at {server}: it is overloaded or unavailable"),
        );
    }
    other_server(sent.target, &format!("server responded with {status} to a SelfSubjectReview{suffix}"))
}

/// Explains a request without a response.
async fn explain_transport(sent: &Sent<'_>, error: &TransportError) -> Explanation {
    if let TransportError::CertificateRejected { alert } = error {
        return rejection::explain_alert(sent, alert);
    }
    if let Some(alert) = alert_in(error) {
        return rejection::explain_alert(sent, &format!("{alert:?}"));
    }
    // The connection may be closed before the alert is read.
    if let Some(alert) = sent.observed_alert().await {
        return rejection::explain_alert(sent, &format!("{alert:?}"));
    }
    let server = quoted(&sent.target.server());
    let to_do = match error {
        TransportError::Signer(_) | TransportError::SlowSigner { .. } => {
            "check the external signer and its device".to_owned()
        }
        _ => format!("check the API server at {server}: the connection failed"),
    };
    (printable(error), to_do)
}
