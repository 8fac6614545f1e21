//! Decides from the response to an anonymous `GET /version` whether the server is a Kubernetes API server. A credential
//! is never sent to, and no plugin is run for, a server that is not.

use http::StatusCode;
use http::header::CONTENT_TYPE;
use navicert_types::redact;
use navicert_types::tree::{Node, Syntax, parse};

use super::connection::{ProbeResponse, Target};
use super::kubeconfig::quoted;
use super::report::{DoctorStep, ReportBuilder};
use crate::json::member;
use crate::whoami::redirect;

/// What is known about the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerKind {
    /// A Kubernetes API server of this version, or one that rejected the request as an API server does.
    Kubernetes(Option<String>),
    /// A load balancer that requires a client certificate.
    CertificateRequired,
    /// It did not say: something in front of it answers requests without a credential.
    Unknown,
}

/// Reports the `server` step; `None` if the server is not an API server or is unavailable.
pub(super) fn check(
    target: &Target<'_>,
    response: &ProbeResponse,
    report: &mut ReportBuilder<'_>,
) -> Option<ServerKind> {
    let body = parse(&response.body, Syntax::Json).unwrap_or_default();
    if let Some(version) = version(&body).filter(|_| response.status.is_success()) {
        report.pass(DoctorStep::Server, format!("Kubernetes {version}"));
        return Some(ServerKind::Kubernetes(Some(version)));
    }
    let status = response.status;
    let is_rejection = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if is_rejection && is_status(&body) {
        report.pass(DoctorStep::Server, "Kubernetes API server, which requires a credential");
        return Some(ServerKind::Kubernetes(None));
    }
    let server = target.server();
    if status == StatusCode::BAD_REQUEST && mentions_certificate(&response.body) {
        report.skip(DoctorStep::Server, "the server requires a client certificate");
        return Some(ServerKind::CertificateRequired);
    }
    match status.as_u16() {
        // An authenticating proxy.
        400 | 401 | 403 | 300..=399 | 407 | 429 => {
            report
                .skip(DoctorStep::Server, format!("{} to a request without a credential", outcome(response)));
            Some(ServerKind::Unknown)
        }
        500..=599 => {
            let text = format!("{}: the API server is unavailable", outcome(response));
            let to_do = format!("check the API server behind {}: it is down or not ready", quoted(&server));
            report.fail(DoctorStep::Server, text, to_do);
            None
        }
        _ => {
            report_other_server(target, &format!("{} to GET /version", outcome(response)), report);
            None
        }
    }
}

/// Reports that the server is something other than an API server.
pub(super) fn report_other_server(target: &Target<'_>, found: &str, report: &mut ReportBuilder<'_>) {
    let (text, to_do) = other_server(target, found);
    report.fail(DoctorStep::Server, text, to_do);
}

/// Text and fix for a server that is not an API server.
pub(super) fn other_server(target: &Target<'_>, found: &str) -> (String, String) {
    let server = quoted(&target.server());
    (
        format!("this is not a Kubernetes API server: {found}"),
        format!(
            "correct the server of cluster {}: {server} is not a Kubernetes API server",
            target.cluster()
        ),
    )
}

/// The status, with the kind of content or the destination of a redirect.
pub(super) fn outcome(response: &ProbeResponse) -> String {
    let header = |name| response.headers.get(name).and_then(|value| value.to_str().ok());
    let mut text = format!("server responded with {}", response.status);
    if let Some(location) = redirect(&response.headers).filter(|_| response.status.is_redirection()) {
        text = format!("{text} to {}", quoted(&location));
    } else if let Some(kind) = header(CONTENT_TYPE).and_then(|kind| kind.split(';').next()) {
        text = format!("{text} ({})", redact::line(kind.trim()));
    }
    text
}

/// nginx answers requests without a required client certificate with 400 and a page.
fn mentions_certificate(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).contains("SSL certificate")
}

fn version(body: &Node) -> Option<String> {
    let version = member(body, "gitVersion").and_then(Node::as_str)?;
    Some(redact::line(version).into_owned())
}

/// Whether this is the `Status` object of an API server.
pub(super) fn is_status(body: &Node) -> bool {
    member(body, "kind").and_then(Node::as_str) == Some("Status")
}
