//! Name, socket, TLS: one request without a credential, through the client's own transport, and what its failure means.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::header::DATE;
use http::{HeaderValue, Request};
use navicert_types::redact;
use rustls::CertificateError;

use super::Patient;
use super::answer::Skew;
use super::kubeconfig::shown;
use super::report::{Step, Walk};
use crate::credential::{Credential, Fixed};
use crate::kubeconfig::{Address, Effective};
use crate::transport::{
    Around, Body, BuildError, Settings, Timeouts, TokioTimer, Transport, TransportError, Trust, host_and_port,
};

/// Nobody who looks for a fault waits longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server that answered.
pub(super) struct Reached {
    /// Its clock, as it wrote it.
    pub(super) date: Option<HeaderValue>,
}

/// How this patient's server is reached, with less patience.
pub(super) fn settings(patient: &Patient, effective: &Effective) -> Result<Settings, BuildError> {
    let usual = Settings::of(effective, &patient.transport)?;
    let timeouts = Timeouts { connect: PATIENCE, handshake: PATIENCE, ..usual.timeouts };
    Ok(Settings { timeouts, ..usual })
}

pub(super) fn around(patient: &Patient) -> Around {
    Around {
        clock: Arc::clone(&patient.around.clock),
        timer: Arc::new(TokioTimer),
        files: Arc::clone(&patient.files),
        recorder: Arc::clone(&patient.around.recorder),
    }
}

/// Connects and asks for something that needs no credential.
pub(super) async fn reach(patient: &Patient, effective: &Effective, walk: &mut Walk<'_>) -> Option<Reached> {
    let settings = match settings(patient, effective) {
        Ok(settings) => settings,
        Err(error) => {
            walk.fail(Step::Dns, error.to_string(), format!("correct the cluster's entry: {error}"));
            walk.skip_until(Step::Plugin);
            return None;
        }
    };
    let proxy = settings.proxy_in_use().ok().flatten().map(|proxy| proxy.address());
    let way = Way { effective, proxy };
    match probe(patient, settings.clone()).await {
        Ok(reached) => {
            way.is_open(Step::Plugin, walk);
            Some(reached)
        }
        Err(TransportError::Handshake { source, .. }) => {
            way.is_open(Step::Tls, walk);
            let (text, to_do) = handshake(patient, effective, settings, &source).await;
            walk.fail(Step::Tls, text, to_do);
            None
        }
        Err(error) => {
            way.failed(&error, walk);
            walk.skip_until(Step::Plugin);
            None
        }
    }
}

async fn probe(patient: &Patient, settings: Settings) -> Result<Reached, TransportError> {
    let anonymous = Arc::new(Fixed::new(Credential::anonymous()));
    let settings = Settings { impersonation: None, ..settings };
    let transport =
        Transport::new(settings, anonymous, around(patient)).map_err(|error| TransportError::Connect {
            address: "the server".to_owned(),
            source: io::Error::other(error.to_string()),
        })?;
    let request = Request::get("/version").body(Body::empty()).map_err(TransportError::from)?;
    match transport.send(request).await {
        Ok(response) => Ok(Reached { date: response.headers().get(DATE).cloned() }),
        // It insists on a certificate: then it is there.
        Err(TransportError::CertificateRefused { .. }) => Ok(Reached { date: None }),
        Err(error) => Err(error),
    }
}

/// The way to the server: straight, or through a proxy.
struct Way<'a> {
    effective: &'a Effective,
    proxy: Option<String>,
}

impl Way<'_> {
    /// Everything before this step is as it should be.
    fn is_open(&self, until: Step, walk: &mut Walk<'_>) {
        let through = self.proxy.as_ref().map(|proxy| format!("through the proxy {}", shown(proxy)));
        match &through {
            Some(through) => walk.skip(Step::Dns, format!("names are looked up {through}")),
            None => walk.pass(Step::Dns, self.has_address()),
        }
        let server = redact::url(&self.effective.server()).into_owned();
        walk.pass(Step::Tcp, through.unwrap_or_else(|| format!("{} accepts connections", shown(&server))));
        if until > Step::Tls && self.effective.is_https() {
            walk.pass(Step::Tls, "the server is who it should be");
        } else if until > Step::Tls {
            walk.skip(Step::Tls, "plain http");
        }
    }

    fn has_address(&self) -> String {
        let host = host(self.effective);
        let is_number = host.parse::<std::net::IpAddr>().is_ok();
        format!("{} {} an address", shown(&host), if is_number { "is" } else { "has" })
    }

    /// What stood in the way before TLS, or after it.
    fn failed(&self, error: &TransportError, walk: &mut Walk<'_>) {
        let text = with_source(error);
        match error {
            TransportError::Lookup { host, .. } => {
                let to_do = match &self.proxy {
                    Some(proxy) => {
                        format!("correct the proxy's address {}: its host does not exist", shown(proxy))
                    }
                    None => format!(
                        "check the server's name {} in cluster {}, and the VPN if it is an inner name",
                        shown(host),
                        shown(&self.effective.cluster_name)
                    ),
                };
                walk.fail(Step::Dns, text, to_do);
            }
            TransportError::Proxy { proxy, .. } => {
                walk.skip(Step::Dns, format!("names are looked up through the proxy {}", shown(proxy)));
                walk.fail(
                    Step::Tcp,
                    text,
                    format!("ask the proxy {} why it does not let this through", shown(proxy)),
                );
            }
            TransportError::Connect { address, .. } | TransportError::ConnectTimeout { address, .. } => {
                walk.pass(Step::Dns, self.has_address());
                let to_do = format!(
                    "start what should listen at {}, or connect the VPN that leads there",
                    shown(address)
                );
                walk.fail(Step::Tcp, text, to_do);
            }
            _ => {
                self.is_open(Step::Tls, walk);
                let server = redact::url(&self.effective.server()).into_owned();
                let to_do = format!("check that {} is an API server's address", shown(&server));
                walk.fail(Step::Tls, text, to_do);
            }
        }
    }
}

/// What a failed handshake means, and what to do.
async fn handshake(
    patient: &Patient,
    effective: &Effective,
    settings: Settings,
    source: &io::Error,
) -> (String, String) {
    let cluster = shown(&effective.cluster_name);
    let Some(rustls::Error::InvalidCertificate(error)) = tls_error(source) else {
        let server = redact::url(&effective.server()).into_owned();
        return (
            format!("what answers does not speak TLS with us: {source}"),
            format!("check that {} speaks TLS: is it http, or another port?", shown(&server)),
        );
    };
    match error {
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<String> = presented.iter().map(|name| shown(presented_name(name))).collect();
            let asked = if effective.cluster.tls_server_name.is_empty() {
                host(effective)
            } else {
                effective.cluster.tls_server_name.clone()
            };
            let text = format!(
                "the server's certificate is not for {}, but for {}",
                shown(&asked),
                names.join(", ")
            );
            let first = names.first().cloned().unwrap_or_else(|| "a name it has".to_owned());
            (text, format!("set `tls-server-name` of cluster {cluster} to {first}"))
        }
        error if about_time(error) => {
            let unchecked = Settings { trust: Trust::Insecure, ..settings };
            let clock = probe(patient, unchecked).await.ok().and_then(|reached| reached.date);
            match clock.and_then(|date| Skew::of(patient, &date)).filter(Skew::is_large) {
                Some(skew) => (
                    format!("the server's certificate is not valid by this machine's clock, which is {skew}"),
                    "set this machine's clock".to_owned(),
                ),
                None => (
                    format!("the server's certificate is not valid now: {}", shorter(error)),
                    format!("renew the certificate of the server of cluster {cluster}"),
                ),
            }
        }
        error => {
            let authority = match settings.trust {
                Trust::System => format!(
                    "add the cluster's certificate-authority-data to cluster {cluster}: this machine's authorities do not vouch for it"
                ),
                _ => format!(
                    "replace the certificate authority of cluster {cluster} by the one the server's certificate comes from"
                ),
            };
            (
                format!("nobody who is trusted vouches for the server's certificate: {}", shorter(error)),
                authority,
            )
        }
    }
}

/// In a few words: rustls adds moments and bytes.
fn shorter(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "it is not valid yet",
        CertificateError::UnknownIssuer => "its issuer is unknown",
        CertificateError::BadSignature => "its signature is another authority's",
        _ => "it cannot be checked",
    }
}

fn about_time(error: &CertificateError) -> bool {
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

/// rustls spells what it saw as `DnsName("x")` and `IpAddress(1.2.3.4)`.
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

/// An error with what is behind it.
pub(super) fn with_source(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(source) = behind {
        let more = source.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        behind = source.source();
    }
    redact::terminal(&text).into_owned()
}
