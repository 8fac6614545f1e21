//! Checks DNS, TCP and TLS with one anonymous request through the client's own transport, and explains failures.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::header::DATE;
use http::{HeaderValue, Request};
use navicert_tls::RootProblem;
use navicert_types::{error_chain, redact};
use rustls::CertificateError;

use super::Patient;
use super::kubeconfig::quoted;
use super::report::{DoctorStep, ReportBuilder};
use super::request::Skew;
use crate::credential::{Credential, StaticCredential};
use crate::kubeconfig::{Address, Effective};
use crate::transport::{
    Around, Body, BuildError, Timeouts, TokioTimer, Transport, TransportError, TransportSettings, Trust,
    host_and_port,
};

/// Timeout of connecting and of the TLS handshake, shorter than a client's for interactive use.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A server that responded.
pub(super) struct Reached {
    /// The `Date` header of its response.
    pub(super) date: Option<HeaderValue>,
}

/// The client's transport settings with shorter timeouts.
pub(super) fn settings(patient: &Patient, effective: &Effective) -> Result<TransportSettings, BuildError> {
    let usual = TransportSettings::from_effective(effective, &patient.transport)?;
    let timeouts = Timeouts { connect: CONNECT_TIMEOUT, handshake: CONNECT_TIMEOUT, ..usual.timeouts };
    Ok(TransportSettings { timeouts, ..usual })
}

pub(super) fn around(patient: &Patient) -> Around {
    Around {
        clock: Arc::clone(&patient.around.clock),
        timer: Arc::new(TokioTimer),
        files: Arc::clone(&patient.files),
        recorder: Arc::clone(&patient.around.recorder),
    }
}

/// Connects and sends a request that needs no credential.
pub(super) async fn reach(
    patient: &Patient,
    effective: &Effective,
    report: &mut ReportBuilder<'_>,
) -> Option<Reached> {
    let settings = match settings(patient, effective) {
        Ok(settings) => settings,
        Err(error) => {
            let text = printable(&error);
            let to_do = format!("correct the cluster's entry: {text}");
            report.fail(DoctorStep::Dns, text, to_do);
            report.skip_until(DoctorStep::Plugin);
            return None;
        }
    };
    let proxy = settings.proxy_in_use().ok().flatten().map(|proxy| proxy.address());
    let route = Route { effective, proxy };
    match probe(patient, settings.clone()).await {
        Ok(reached) => {
            route.pass_steps_before(DoctorStep::Plugin, report);
            Some(reached)
        }
        Err(TransportError::Handshake { source, .. }) => {
            route.pass_steps_before(DoctorStep::Tls, report);
            let (text, to_do) = explain_handshake_failure(patient, effective, settings, &source).await;
            report.fail(DoctorStep::Tls, text, to_do);
            None
        }
        Err(error) => {
            route.report_failure(&error, report);
            report.skip_until(DoctorStep::Plugin);
            None
        }
    }
}

async fn probe(patient: &Patient, settings: TransportSettings) -> Result<Reached, TransportError> {
    let anonymous = Arc::new(StaticCredential::new(Credential::anonymous()));
    let settings = TransportSettings { impersonation: None, ..settings };
    let transport =
        Transport::new(settings, anonymous, around(patient)).map_err(|error| TransportError::Connect {
            address: "the server".to_owned(),
            source: io::Error::other(error_chain(&error)),
        })?;
    let request = Request::get("/version").body(Body::empty()).map_err(TransportError::from)?;
    match transport.send(request).await {
        Ok(response) => Ok(Reached { date: response.headers().get(DATE).cloned() }),
        // A server that requires a client certificate is reachable.
        Err(TransportError::CertificateRejected { .. }) => Ok(Reached { date: None }),
        Err(error) => Err(error),
    }
}

/// The route to the server: direct, or through a proxy.
struct Route<'a> {
    effective: &'a Effective,
    proxy: Option<String>,
}

impl Route<'_> {
    /// Reports the steps before `until` as passed.
    fn pass_steps_before(&self, until: DoctorStep, report: &mut ReportBuilder<'_>) {
        let through = self.proxy.as_ref().map(|proxy| format!("through the proxy {}", quoted(proxy)));
        match &through {
            Some(through) => report.skip(DoctorStep::Dns, format!("names are resolved {through}")),
            None => report.pass(DoctorStep::Dns, self.describe_host()),
        }
        let server = redact::url(&self.effective.server()).into_owned();
        report.pass(
            DoctorStep::Tcp,
            through.unwrap_or_else(|| format!("{} accepts connections", quoted(&server))),
        );
        if until > DoctorStep::Tls && self.effective.is_https() {
            report.pass(DoctorStep::Tls, "server certificate is valid");
        } else if until > DoctorStep::Tls {
            report.skip(DoctorStep::Tls, "plain http");
        }
    }

    fn describe_host(&self) -> String {
        let host = host(self.effective);
        let is_ip_address = host.parse::<std::net::IpAddr>().is_ok();
        let text = if is_ip_address { "is an IP address" } else { "resolves to an address" };
        format!("{} {text}", quoted(&host))
    }

    /// Reports a failure before or after TLS.
    fn report_failure(&self, error: &TransportError, report: &mut ReportBuilder<'_>) {
        let text = printable(error);
        match error {
            TransportError::Lookup { host, .. } => {
                let to_do = match &self.proxy {
                    Some(proxy) => {
                        format!("correct the proxy URL {}: its host does not resolve", quoted(proxy))
                    }
                    None => format!(
                        "check the host name {} in cluster {}, and the VPN if the name is internal",
                        quoted(host),
                        quoted(&self.effective.cluster_name)
                    ),
                };
                report.fail(DoctorStep::Dns, text, to_do);
            }
            TransportError::Proxy { proxy, .. } => {
                report.skip(
                    DoctorStep::Dns,
                    format!("names are looked up through the proxy {}", quoted(proxy)),
                );
                report.fail(
                    DoctorStep::Tcp,
                    text,
                    format!("check why the proxy {} rejects the connection", quoted(proxy)),
                );
            }
            TransportError::Connect { address, .. } | TransportError::ConnectTimeout { address, .. } => {
                report.pass(DoctorStep::Dns, self.describe_host());
                let to_do =
                    format!("start the server at {}, or connect the VPN that reaches it", quoted(address));
                report.fail(DoctorStep::Tcp, text, to_do);
            }
            _ => {
                self.pass_steps_before(DoctorStep::Tls, report);
                let server = redact::url(&self.effective.server()).into_owned();
                let to_do = format!("check that {} is the URL of an API server", quoted(&server));
                report.fail(DoctorStep::Tls, text, to_do);
            }
        }
    }
}

/// Explains a failed handshake and how to fix it.
async fn explain_handshake_failure(
    patient: &Patient,
    effective: &Effective,
    settings: TransportSettings,
    source: &io::Error,
) -> (String, String) {
    let cluster = quoted(&effective.cluster_name);
    let Some(rustls::Error::InvalidCertificate(error)) = tls_error(source) else {
        let server = redact::url(&effective.server()).into_owned();
        return (
            format!("TLS handshake failed: {source}"),
            format!("check that {} serves TLS, and not plain http or another service", quoted(&server)),
        );
    };
    match error {
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<String> = presented.iter().map(|name| quoted(presented_name(name))).collect();
            let expected_name = if effective.cluster.tls_server_name.is_empty() {
                host(effective)
            } else {
                effective.cluster.tls_server_name.clone()
            };
            let text = format!(
                "server certificate is not valid for {}, only for {}",
                quoted(&expected_name),
                names.join(", ")
            );
            let first = names.first().cloned().unwrap_or_else(|| "one of its names".to_owned());
            (text, format!("set `tls-server-name` of cluster {cluster} to {first}"))
        }
        error if is_validity_error(error) => {
            let unchecked = TransportSettings { trust: Trust::Insecure, ..settings };
            let clock = probe(patient, unchecked).await.ok().and_then(|reached| reached.date);
            match clock.and_then(|date| Skew::from_date(patient, &date)).filter(Skew::is_large) {
                Some(skew) => (
                    format!("server certificate is not valid at local time; local clock is {skew}"),
                    "correct the local clock".to_owned(),
                ),
                None => (
                    format!("server certificate is not currently valid: {}", short_reason(error)),
                    format!("renew the server certificate of cluster {cluster}"),
                ),
            }
        }
        error => {
            let authority = match settings.trust {
                Trust::System => format!(
                    "add certificate-authority-data to cluster {cluster}: its certificate authority is not a system root certificate"
                ),
                _ => format!(
                    "replace the certificate authority of cluster {cluster} with the one that issued the server certificate"
                ),
            };
            (format!("server certificate is not trusted: {}", short_reason(error)), authority)
        }
    }
}

/// A short text: rustls adds timestamps and bytes.
fn short_reason(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "it is not valid yet",
        CertificateError::UnknownIssuer => "its issuer is unknown",
        CertificateError::BadSignature => "its signature does not match the certificate authority",
        CertificateError::Other(other) => match other.0.downcast_ref() {
            Some(RootProblem::Expired) => "its certificate authority has expired",
            Some(RootProblem::NotValidYet) => "its certificate authority is not valid yet",
            _ => "it cannot be verified",
        },
        _ => "it cannot be verified",
    }
}

fn is_validity_error(error: &CertificateError) -> bool {
    matches!(
        error,
        CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
    )
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// Extracts the name from rustls's `DnsName("x")` and `IpAddress(1.2.3.4)`.
fn presented_name(text: &str) -> &str {
    let inner = text.split_once('(').map_or(text, |(_, rest)| rest.trim_end_matches(')'));
    inner.trim_matches('"')
}

fn host(effective: &Effective) -> String {
    let server = effective.server();
    Address::parse(&server)
        .ok()
        .and_then(|address| Some(host_and_port(address.host)?.0.to_owned()))
        .unwrap_or(server)
}

/// An error with its sources, without control characters.
pub(super) fn printable(error: &dyn Error) -> String {
    redact::terminal(&error_chain(error)).into_owned()
}
