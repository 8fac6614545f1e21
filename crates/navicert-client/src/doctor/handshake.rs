//! Explains failed TLS handshakes, and plain http where TLS is expected.

use std::io;

use navicert_tls::RootProblem;
use rustls::{AlertDescription, CertificateError};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::connection::{ProbeResponse, Target};
use super::kubeconfig::quoted;
use super::tls_probe::{self, CertificateNames, Observed};
use crate::transport::{TransportSettings, Trust};

/// Text and fix for a failed handshake.
pub(super) async fn explain(target: &Target<'_>, source: &io::Error) -> (String, String) {
    match source.get_ref().and_then(|error| error.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(error)) => explain_certificate(target, error).await,
        Some(rustls::Error::AlertReceived(alert)) => explain_alert(target, *alert),
        // Not a TLS record: another protocol.
        Some(rustls::Error::InvalidMessage(_)) => explain_other_protocol(target, source).await,
        _ => {
            let server = quoted(&target.server());
            let text = format!("TLS handshake failed: the server closed the connection ({source})");
            let to_do =
                format!("check what listens at {server}: it closes connections during the TLS handshake");
            (text, to_do)
        }
    }
}

/// Text and fix for a server that expects TLS where the kubeconfig says plain http.
pub(super) fn plain_http_to_tls(target: &Target<'_>) -> (String, String) {
    let server = target.server();
    let rest = server.split_once("://").map_or(server.as_str(), |(_, rest)| rest);
    (
        "the server expects TLS, and the kubeconfig says plain http".to_owned(),
        format!("set the server of cluster {} to {}", target.cluster(), quoted(&format!("https://{rest}"))),
    )
}

/// Whether a response to plain http says that the port expects TLS.
pub(super) async fn is_tls_port(target: &Target<'_>, response: &ProbeResponse) -> bool {
    response.status == http::StatusCode::BAD_REQUEST && accepts_tls(target).await
}

/// Whether the server of a plain http URL accepts a TLS handshake.
pub(super) async fn accepts_tls(target: &Target<'_>) -> bool {
    !target.effective.is_https() && target.proxy.is_none() && observe(target).await.is_some()
}

pub(super) async fn observe(target: &Target<'_>) -> Option<Observed> {
    if target.proxy.is_some() {
        return None;
    }
    let (host, port) = target.host_and_port();
    tls_probe::observe((&host, port), &target.server_name(), None).await
}

fn explain_alert(target: &Target<'_>, alert: AlertDescription) -> (String, String) {
    let (server, cluster) = (quoted(&target.server()), target.cluster());
    match alert {
        AlertDescription::UnrecognisedName => (
            format!("the server has no certificate for {}", quoted(&target.server_name())),
            format!("correct the host or `tls-server-name` of cluster {cluster}"),
        ),
        AlertDescription::ProtocolVersion => (
            "the server supports no TLS version that clients accept (1.2 and 1.3)".to_owned(),
            format!("enable TLS 1.2 or 1.3 at {server}"),
        ),
        AlertDescription::HandshakeFailure => (
            "TLS handshake rejected by the server: no common cipher suite, or it requires a client certificate"
                .to_owned(),
            format!("check the TLS settings of {server}"),
        ),
        alert => (
            format!("TLS handshake rejected by the server: {alert:?}"),
            format!("check the TLS settings of {server}"),
        ),
    }
}

/// The peer does not speak TLS: it may be a plain http server.
async fn explain_other_protocol(target: &Target<'_>, source: &io::Error) -> (String, String) {
    let (server, cluster) = (target.server(), target.cluster());
    let plain = server.replacen("https://", "http://", 1);
    let settings = TransportSettings { server: plain.clone(), ..target.settings.clone() };
    if target.probe(settings).await.is_ok() {
        return (
            "the server speaks plain http, and the kubeconfig says https".to_owned(),
            format!(
                "correct the port of cluster {cluster}: {} does not serve TLS, and credentials are sent only over https",
                quoted(&server)
            ),
        );
    }
    (
        format!("the server does not speak TLS: {source}"),
        format!("correct the server of cluster {cluster}: {} is another service", quoted(&server)),
    )
}

async fn explain_certificate(target: &Target<'_>, error: &CertificateError) -> (String, String) {
    let cluster = target.cluster();
    match error {
        CertificateError::NotValidForNameContext { presented, .. } => explain_name(target, presented).await,
        CertificateError::NotValidForName => explain_name(target, &[]).await,
        error if is_validity_error(error) => {
            let unchecked = TransportSettings { trust: Trust::Insecure, ..target.settings.clone() };
            let skew = target.probe(unchecked).await.ok().and_then(|response| response.skew);
            match skew.filter(super::clock::Skew::is_large) {
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
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => (
            "server certificate is not for servers: its extended key usage does not include server authentication".to_owned(),
            format!("reissue the server certificate of cluster {cluster} with the extended key usage `serverAuth`"),
        ),
        error => explain_untrusted(target, error).await,
    }
}

/// The certificate is for another name.
async fn explain_name(target: &Target<'_>, presented: &[String]) -> (String, String) {
    let (cluster, expected) = (target.cluster(), quoted(&target.server_name()));
    let names: Vec<&str> = presented.iter().map(|name| presented_name(name)).collect();
    if names.is_empty() {
        let leaf = observe(target).await.and_then(|observed| names_of(observed.chain.first()?));
        let common = leaf.map(|leaf| format!(" (only the common name {})", quoted(&leaf.subject)));
        return (
            format!("server certificate has no subject alternative name{}", common.unwrap_or_default()),
            format!(
                "reissue the server certificate of cluster {cluster} with {expected} as subject alternative name: clients ignore the common name"
            ),
        );
    }
    let listed: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    let text = format!("server certificate is not valid for {expected}, only for {}", listed.join(", "));
    // A wildcard is not a name that a certificate can be verified for.
    let usable = names.iter().find(|name| !name.starts_with("*."));
    let to_do = match usable {
        Some(name) => format!("set `tls-server-name` of cluster {cluster} to {}", quoted(name)),
        None => {
            format!("use a host name that matches {} in the server of cluster {cluster}", listed.join(", "))
        }
    };
    (text, to_do)
}

/// The certificate was issued by another certificate authority.
async fn explain_untrusted(target: &Target<'_>, error: &CertificateError) -> (String, String) {
    let cluster = target.cluster();
    let reason = short_reason(error);
    let observed = observe(target).await;
    let leaf = observed.as_ref().and_then(|observed| observed.chain.first());
    let names = leaf.and_then(names_of);
    let trusted = trusted_certificates(target);
    let Some(names) = names else {
        return (
            format!("server certificate is not trusted: {reason}"),
            format!(
                "replace the certificate authority of cluster {cluster} with the one that issued the server certificate"
            ),
        );
    };
    let issuer = quoted(&names.issuer);
    if matches!(target.settings.trust, Trust::System) {
        return (
            format!(
                "server certificate is not trusted: its issuer {issuer} is not a system root certificate"
            ),
            format!("add `certificate-authority-data` to cluster {cluster}: the certificate of {issuer}"),
        );
    }
    let mut subjects = trusted.iter().filter_map(names_of).map(|names| names.subject);
    let text = if names.issuer == names.subject {
        "server certificate is not trusted: it is self-signed and not the configured certificate authority"
            .to_owned()
    } else if subjects.any(|subject| subject == names.issuer) {
        format!(
            "server certificate is not trusted: its issuer {issuer} has the name of the configured certificate authority, but another key"
        )
    } else {
        format!("server certificate is not trusted: its issuer {issuer} is unknown")
    };
    (
        text,
        format!(
            "replace the certificate authority of cluster {cluster} with the one that issued the server certificate"
        ),
    )
}

fn names_of(certificate: &CertificateDer<'_>) -> Option<CertificateNames> {
    CertificateNames::parse(certificate)
}

/// The certificate authorities of the cluster.
fn trusted_certificates(target: &Target<'_>) -> Vec<CertificateDer<'static>> {
    let text = match &target.settings.trust {
        Trust::Pem(text) => text.clone(),
        Trust::Der(certificates) => {
            return certificates.iter().cloned().map(CertificateDer::from).collect();
        }
        Trust::File(path) => target.inputs.client_context.files.read(path).unwrap_or_default(),
        Trust::System | Trust::Insecure => return Vec::new(),
    };
    CertificateDer::pem_slice_iter(&text).flatten().collect()
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

/// Extracts the name from rustls's `DnsName("x")` and `IpAddress(1.2.3.4)`.
fn presented_name(text: &str) -> &str {
    let inner = text.split_once('(').map_or(text, |(_, rest)| rest.trim_end_matches(')'));
    inner.trim_matches('"')
}
