//! Connects on the client's own path, proxy included, and sends one request without a credential: the steps `proxy`,
//! `dns`, `tcp`, `tls` and `server`.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use navicert_go::host_port;
use navicert_go::url::Url;
use navicert_types::{error_chain, redact};
use rustls::AlertDescription;

use super::DoctorInputs;
use super::api_server::{self, ServerKind};
use super::clock::Skew;
use super::front_proxy;
use super::handshake;
use super::kubeconfig::quoted;
use super::proxy::{self, UsedProxy};
use super::report::{DoctorStep, ReportBuilder};
use super::switch::SwitchableCredential;
use super::tls_probe::alert_in;
use crate::context::ClientContext;
use crate::credential::{Credential, CredentialSource, StaticCredential};
use crate::kubeconfig::Effective;
use crate::transport::{Body, BuildError, Timeouts, Transport, TransportError, TransportSettings};

/// Timeout of connecting and of the TLS handshake, shorter than a client's for interactive use.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server may take to respond.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How much of the response is read.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// The server of the selected cluster, and how it is reached.
pub(super) struct Target<'a> {
    pub(super) inputs: &'a DoctorInputs,
    pub(super) effective: &'a Effective,
    pub(super) settings: TransportSettings,
    pub(super) proxy: Option<UsedProxy>,
}

/// A server that responded.
pub(super) struct Reached<'a> {
    pub(super) target: Target<'a>,
    /// Has an open connection.
    pub(super) transport: Transport,
    /// The credential of that transport.
    pub(super) credential: Arc<SwitchableCredential>,
    /// The difference of the clocks when the response arrived.
    pub(super) skew: Option<Skew>,
    pub(super) server: ServerKind,
}

/// The response to a request without a credential.
pub(super) struct ProbeResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) skew: Option<Skew>,
}

/// Why a request without a credential got no response.
pub(super) enum ProbeError {
    /// The settings give no transport.
    Build(BuildError),
    /// The request failed.
    Transport(TransportError),
    /// The server did not respond in time.
    Timeout,
}

impl<'a> Target<'a> {
    fn new(inputs: &'a DoctorInputs, effective: &'a Effective) -> Result<Self, BuildError> {
        let usual = inputs.config.transport.clone();
        let timeouts = Timeouts { connect: CONNECT_TIMEOUT, handshake: CONNECT_TIMEOUT, ..usual.timeouts };
        let settings = TransportSettings { timeouts, ..usual };
        let proxy = proxy::in_use(inputs, effective, &settings)?;
        Ok(Target { inputs, effective, settings, proxy })
    }

    /// The server URL, without a password.
    pub(super) fn server(&self) -> String {
        redact::url(&self.effective.server()).into_owned()
    }

    /// The cluster's name, quoted.
    pub(super) fn cluster(&self) -> String {
        quoted(&self.effective.cluster_name)
    }

    pub(super) fn host(&self) -> String {
        self.host_and_port().0
    }

    /// Host and port to connect to.
    pub(super) fn host_and_port(&self) -> (String, u16) {
        let server = self.effective.server();
        let default_port = if self.effective.is_https() { 443 } else { 80 };
        // Without a scheme it is plain http.
        let completed = if server.contains("://") { server } else { format!("http://{server}") };
        let parsed = Url::parse(&completed).ok();
        let parsed = parsed.as_ref().and_then(|address| host_port::split(address.host));
        parsed.map_or((completed.clone(), default_port), |(host, port)| {
            (host.to_owned(), port.unwrap_or(default_port))
        })
    }

    /// The name that the server's certificate is verified for.
    pub(super) fn server_name(&self) -> String {
        let name = &self.effective.cluster.tls_server_name;
        if name.is_empty() { self.host() } else { name.clone() }
    }

    pub(super) fn client_context(&self) -> ClientContext {
        self.inputs.client_context.clone()
    }

    /// Sends `GET /version` without a credential.
    pub(super) async fn probe(&self, settings: TransportSettings) -> Result<ProbeResponse, ProbeError> {
        let anonymous = Arc::new(StaticCredential::new(Credential::anonymous()));
        let settings = TransportSettings { impersonation: None, ..settings };
        let transport =
            Transport::new(settings, anonymous, self.client_context()).map_err(ProbeError::Build)?;
        self.get(&transport, "/version").await
    }

    /// Sends a GET request and measures the clocks when the response arrives.
    pub(super) async fn get(&self, transport: &Transport, path: &str) -> Result<ProbeResponse, ProbeError> {
        let request = Request::get(path).body(Body::empty()).map_err(TransportError::from);
        let request = request.map_err(ProbeError::Transport)?;
        let exchange = async {
            let response = transport.send(request).await?;
            let skew = Skew::measure(&*self.inputs.client_context.clock, response.headers());
            let (parts, body) = response.into_parts();
            let collected = Limited::new(body, MAX_BODY_BYTES).collect().await;
            let body = collected.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            Ok(ProbeResponse { status: parts.status, headers: parts.headers, body, skew })
        };
        let outcome = tokio::time::timeout(RESPONSE_TIMEOUT, exchange).await;
        outcome.map_err(|_| ProbeError::Timeout)?.map_err(ProbeError::Transport)
    }
}

/// Connects and sends a request that needs no credential.
pub(super) async fn reach<'a>(
    inputs: &'a DoctorInputs,
    effective: &'a Effective,
    report: &mut ReportBuilder<'_>,
) -> Option<Reached<'a>> {
    let target = match Target::new(inputs, effective) {
        Ok(target) => target,
        Err(error) => {
            report_invalid_settings(effective, &error, report);
            report.skip_until(DoctorStep::Plugin);
            return None;
        }
    };
    let reached = check_steps(target, report).await;
    if reached.is_none() {
        report.skip_until(DoctorStep::Plugin);
    }
    reached
}

async fn check_steps<'a>(target: Target<'a>, report: &mut ReportBuilder<'_>) -> Option<Reached<'a>> {
    if target.proxy.is_none() {
        report.skip(DoctorStep::Proxy, "no proxy is used");
        resolve(&target, report).await?;
    }
    let credential = Arc::new(SwitchableCredential::anonymous());
    let settings = TransportSettings { impersonation: None, ..target.settings.clone() };
    let transport = Transport::new(
        settings,
        Arc::clone(&credential) as Arc<dyn CredentialSource>,
        target.client_context(),
    );
    let transport = match transport {
        Ok(transport) => transport,
        Err(error) => {
            report_invalid_settings(target.effective, &error, report);
            return None;
        }
    };
    let response = match target.get(&transport, "/version").await {
        Ok(response) => response,
        Err(ProbeError::Build(error)) => {
            report_invalid_settings(target.effective, &error, report);
            return None;
        }
        Err(ProbeError::Timeout) => {
            pass_steps_before(DoctorStep::Server, &target, report);
            let text = format!("no response within {} s", RESPONSE_TIMEOUT.as_secs());
            let to_do = format!("check the API server at {}: it does not respond", quoted(&target.server()));
            report.fail(DoctorStep::Server, text, to_do);
            return None;
        }
        Err(ProbeError::Transport(error)) => match requires_certificate(&target, &error).await {
            Some(alert) => {
                pass_steps_before(DoctorStep::Server, &target, report);
                report.skip(
                    DoctorStep::Server,
                    format!("the server requires a client certificate ({alert:?})"),
                );
                return Some(Reached {
                    target,
                    transport,
                    credential,
                    skew: None,
                    server: ServerKind::Unknown,
                });
            }
            None => {
                report_failure(&target, error, report).await;
                return None;
            }
        },
    };
    if handshake::is_tls_port(&target, &response).await {
        pass_steps_before(DoctorStep::Tls, &target, report);
        let (text, to_do) = handshake::plain_http_to_tls(&target);
        report.fail(DoctorStep::Tls, text, to_do);
        return None;
    }
    pass_steps_before(DoctorStep::Server, &target, report);
    let server = api_server::check(&target, &response, report)?;
    Some(Reached { target, transport, credential, skew: response.skew, server })
}

/// Resolves the server's name.
async fn resolve(target: &Target<'_>, report: &mut ReportBuilder<'_>) -> Option<()> {
    let (host, port) = target.host_and_port();
    if host.parse::<IpAddr>().is_ok() {
        report.pass(DoctorStep::Dns, format!("{} is an IP address", quoted(&host)));
        return Some(());
    }
    let lookup = tokio::net::lookup_host((host.as_str(), port));
    let found = tokio::time::timeout(CONNECT_TIMEOUT, lookup).await;
    let found = found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let found = found.map(|addresses| addresses.map(|address| address.ip().to_string()).collect());
    let addresses: Vec<String> = match found {
        Ok(addresses) => addresses,
        Err(source) => {
            let error = TransportError::Lookup { host: host.clone(), source };
            let to_do = format!(
                "check the host name {} in cluster {}, and the VPN if the name is internal",
                quoted(&host),
                target.cluster()
            );
            report.fail(DoctorStep::Dns, printable(&error), to_do);
            return None;
        }
    };
    report.pass(DoctorStep::Dns, format!("{} resolves to {}", quoted(&host), addresses.join(", ")));
    Some(())
}

/// Reports the steps before `until` as passed. `proxy` and `dns` are reported already if there is no proxy.
fn pass_steps_before(until: DoctorStep, target: &Target<'_>, report: &mut ReportBuilder<'_>) {
    let server = quoted(&target.server());
    match &target.proxy {
        Some(proxy) => {
            report.pass(DoctorStep::Proxy, proxy.to_string());
            report.skip(DoctorStep::Dns, "the proxy resolves the server's name");
            report.pass(DoctorStep::Tcp, format!("the proxy connects to {server}"));
        }
        None => report.pass(DoctorStep::Tcp, format!("{server} accepts connections")),
    }
    if until > DoctorStep::Tls && target.effective.is_https() {
        let verified = !target.effective.cluster.insecure_skip_tls_verify;
        let text =
            if verified { "server certificate is valid" } else { "server certificate is not verified" };
        report.pass(DoctorStep::Tls, text);
    } else if until > DoctorStep::Tls {
        report.skip(DoctorStep::Tls, "plain http");
    }
}

/// The alert with which the server rejected a request without a client certificate, if the user may have one.
async fn requires_certificate(target: &Target<'_>, error: &TransportError) -> Option<AlertDescription> {
    let alert = match error {
        TransportError::CertificateRejected { .. } => Some(AlertDescription::BadCertificate),
        // The connection may be closed before the alert is read.
        TransportError::Http(_) if target.effective.is_https() => match alert_in(error) {
            Some(alert) => Some(alert),
            None => handshake::observe(target).await.and_then(|observed| observed.alert),
        },
        error => alert_in(error),
    }?;
    let user = &target.effective.user;
    let may_have_certificate = !user.client_certificate.is_empty()
        || !user.client_certificate_data.is_empty()
        || user.exec.is_some()
        || user.auth_provider.is_some();
    match alert {
        AlertDescription::CertificateRequired | AlertDescription::BadCertificate => Some(alert),
        // In TLS 1.2 a missing certificate is a failed handshake, and so are other failures.
        AlertDescription::HandshakeFailure if may_have_certificate => Some(alert),
        _ => None,
    }
}

/// Reports a failure of a step up to `server`.
async fn report_failure(target: &Target<'_>, error: TransportError, report: &mut ReportBuilder<'_>) {
    if let Some(proxy) = &target.proxy
        && let Some((text, to_do)) = proxy::explain(target, proxy, &error).await
    {
        return report.fail(DoctorStep::Proxy, text, to_do);
    }
    match error {
        TransportError::Connect { ref address, .. } | TransportError::ConnectTimeout { ref address, .. } => {
            let mut to_do =
                format!("start the server at {}, or connect the VPN that reaches it", quoted(address));
            if target.inputs.front_proxy.is_some() {
                to_do += front_proxy::NOT_STARTED;
            }
            report.fail(DoctorStep::Tcp, printable(&error), to_do);
        }
        TransportError::Handshake { source, .. } => {
            pass_steps_before(DoctorStep::Tls, target, report);
            let (text, to_do) = handshake::explain(target, &source).await;
            report.fail(DoctorStep::Tls, text, to_do);
        }
        TransportError::HandshakeTimeout { .. } => {
            pass_steps_before(DoctorStep::Tls, target, report);
            let to_do = format!(
                "check what listens at {}: it accepts connections but does not complete TLS handshakes",
                quoted(&target.server())
            );
            report.fail(DoctorStep::Tls, printable(&error), to_do);
        }
        _ if handshake::accepts_tls(target).await => {
            pass_steps_before(DoctorStep::Tls, target, report);
            let (text, to_do) = handshake::plain_http_to_tls(target);
            report.fail(DoctorStep::Tls, text, to_do);
        }
        // Not a malformed response: the server, or something in front of it, closes the connection.
        TransportError::Http(ref source) if !source.is_parse() => {
            pass_steps_before(DoctorStep::Tls, target, report);
            let server = quoted(&target.server());
            let to_do = format!("check the API server at {server}: it closes connections without a response");
            report.fail(DoctorStep::Tls, "the server closed the connection without a response", to_do);
        }
        error => {
            pass_steps_before(DoctorStep::Server, target, report);
            api_server::report_other_server(target, &printable(&error), report);
        }
    }
}

/// Reports settings that no client accepts at the step they belong to.
fn report_invalid_settings(effective: &Effective, error: &BuildError, report: &mut ReportBuilder<'_>) {
    let cluster = quoted(&effective.cluster_name);
    let text = printable(error);
    let (step, to_do) = match error {
        BuildError::Proxy(_) if effective.cluster.proxy_url.is_empty() => {
            let variable = if effective.is_https() { "HTTPS_PROXY" } else { "HTTP_PROXY" };
            (DoctorStep::Proxy, format!("correct {variable}: {text}"))
        }
        BuildError::Proxy(_) => {
            (DoctorStep::Proxy, format!("correct `proxy-url` of cluster {cluster}: {text}"))
        }
        BuildError::ServerName(_) if !effective.cluster.tls_server_name.is_empty() => {
            (DoctorStep::Tls, format!("correct `tls-server-name` of cluster {cluster}: {text}"))
        }
        BuildError::Server(_) | BuildError::Uri(_) | BuildError::ServerName(_) => {
            (DoctorStep::Dns, format!("correct the server of cluster {cluster}: {text}"))
        }
        _ => (DoctorStep::Tls, format!("correct cluster {cluster}: {text}")),
    };
    report.skip_before(step, "not checked: the configuration is invalid");
    report.fail(step, text, to_do);
}

/// An error with its sources, without control characters.
pub(super) fn printable(error: &(dyn Error + 'static)) -> String {
    redact::line(&error_chain(error)).into_owned()
}
