//! Asks the cluster for a client certificate: submits a `CertificateSigningRequest` and waits until it is approved and issued.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use navicert_types::redact;
use navicert_types::tree::Node;
use serde_json::json;
use thiserror::Error;

use crate::credential::RequestOrigin;
use crate::json::member;
use crate::transport::{Body, Timer, Transport, TransportError};
use crate::whoami::{MessageSuffix, message, read_json};

/// The signer that issues certificates which the API server accepts from clients.
pub const KUBE_APISERVER_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// The shortest validity that can be requested.
pub const MIN_EXPIRATION: Duration = Duration::from_secs(600);

const COLLECTION: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// How names begin that the server completes.
const NAME_PREFIX: &str = "navicert-";
/// The time between two looks at the request.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A request for a client certificate.
#[derive(Clone, Debug)]
pub struct SigningRequest {
    /// The PKCS#10 request as PEM text.
    pub request_pem: String,
    /// The name of the object; the server chooses one if it is absent.
    pub name: Option<String>,
    /// The signer.
    pub signer_name: String,
    /// The validity to request; the signer may shorten it.
    pub expiration: Option<Duration>,
}

/// The state of a submitted request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SigningState {
    /// Not approved yet.
    Pending,
    /// Approved, and not issued yet.
    Approved,
    /// The certificate chain as PEM text.
    Issued(String),
}

/// Why there is no certificate.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SigningRequestError {
    /// No response was received.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The name cannot be that of an object.
    #[error("invalid name `{0}`: expected lower case letters, digits, `-` and `.`")]
    Name(String),
    /// The server did not accept the request.
    #[error("server rejected the CertificateSigningRequest: {status}{}", MessageSuffix(.message))]
    Rejected {
        /// The status.
        status: StatusCode,
        /// The server's message, sanitized for a terminal; may be empty.
        message: String,
    },
    /// The response is not a `CertificateSigningRequest`.
    #[error("unexpected response to the CertificateSigningRequest")]
    Unexpected,
    /// An approver denied it.
    #[error("CertificateSigningRequest `{name}` was denied{}", MessageSuffix(.message))]
    Denied {
        /// The object.
        name: String,
        /// Reason and message of the approver.
        message: String,
    },
    /// The signer failed.
    #[error(
        "the signer failed to issue a certificate for CertificateSigningRequest `{name}`{}",
        MessageSuffix(.message)
    )]
    Failed {
        /// The object.
        name: String,
        /// Reason and message of the signer.
        message: String,
    },
    /// It was not approved or not issued in time.
    #[error("CertificateSigningRequest `{name}` was not {missing} within {} seconds", .limit.as_secs())]
    TimedOut {
        /// The object.
        name: String,
        /// What is missing: approved or issued.
        missing: &'static str,
        /// The time limit.
        limit: Duration,
    },
}

impl SigningRequestError {
    /// Whether the server could not be reached.
    pub fn is_unreachable(&self) -> bool {
        match self {
            SigningRequestError::Transport(
                TransportError::Credentials(_) | TransportError::CertificateRejected { .. },
            ) => false,
            SigningRequestError::Transport(_) => true,
            _ => false,
        }
    }
}

/// Submits the request. Returns the name of the object.
///
/// # Errors
/// [`SigningRequestError`].
pub async fn submit(transport: &Transport, request: &SigningRequest) -> Result<String, SigningRequestError> {
    let metadata = match &request.name {
        Some(name) => json!({ "name": check_name(name)? }),
        None => json!({ "generateName": NAME_PREFIX }),
    };
    let mut spec = json!({
        "request": STANDARD.encode(&request.request_pem),
        "signerName": request.signer_name,
        "usages": ["client auth"],
    });
    if let (Some(expiration), Some(spec)) = (request.expiration, spec.as_object_mut()) {
        spec.insert("expirationSeconds".to_owned(), expiration.as_secs().into());
    }
    let object = json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": metadata,
        "spec": spec,
    });
    let node = send(transport, Method::POST, COLLECTION.to_owned(), object.to_string()).await?;
    let name = member(&node, "metadata").and_then(|metadata| member(metadata, "name")).and_then(Node::as_str);
    // The name becomes part of a path.
    check_name(name.ok_or(SigningRequestError::Unexpected)?).map(ToOwned::to_owned)
}

/// Looks at a submitted request.
///
/// # Errors
/// [`SigningRequestError`]: also if it was denied, or the signer failed.
pub async fn state(transport: &Transport, name: &str) -> Result<SigningState, SigningRequestError> {
    let path = format!("{COLLECTION}/{}", check_name(name)?);
    let node = send(transport, Method::GET, path, String::new()).await?;
    let Some(status) = member(&node, "status") else { return Ok(SigningState::Pending) };
    let conditions = member(status, "conditions").and_then(Node::as_sequence).unwrap_or_default();
    let condition = |kind: &str| {
        conditions.iter().find(|condition| text(condition, "type") == kind).map(|found| {
            let parts = [text(found, "reason"), text(found, "message")];
            let parts = parts.iter().filter(|part| !part.is_empty()).map(|part| redact::line(part));
            parts.collect::<Vec<_>>().join(": ")
        })
    };
    let name = || name.to_owned();
    if let Some(message) = condition("Denied") {
        return Err(SigningRequestError::Denied { name: name(), message });
    }
    if let Some(message) = condition("Failed") {
        return Err(SigningRequestError::Failed { name: name(), message });
    }
    match text(status, "certificate") {
        "" if condition("Approved").is_some() => Ok(SigningState::Approved),
        "" => Ok(SigningState::Pending),
        certificate => {
            let decoded = STANDARD.decode(certificate).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            decoded.map(SigningState::Issued).ok_or(SigningRequestError::Unexpected)
        }
    }
}

/// Waits until the certificate is issued. Returns the chain as PEM text.
///
/// # Errors
/// [`SigningRequestError`]: denied, failed, or not in time.
pub async fn wait(
    transport: &Transport,
    timer: &dyn Timer,
    name: &str,
    limit: Duration,
) -> Result<String, SigningRequestError> {
    let end = timer.sleep(limit);
    tokio::pin!(end);
    loop {
        let missing = match state(transport, name).await? {
            SigningState::Issued(chain) => return Ok(chain),
            SigningState::Approved => "issued",
            SigningState::Pending => "approved",
        };
        tokio::select! {
            biased;
            () = &mut end => {
                return Err(SigningRequestError::TimedOut { name: name.to_owned(), missing, limit });
            }
            () = timer.sleep(POLL_INTERVAL) => {}
        }
    }
}

async fn send(
    transport: &Transport,
    method: Method,
    path: String,
    body: String,
) -> Result<Node, SigningRequestError> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, "application/json")
        .extension(RequestOrigin::Foreground)
        .body(Body::from(Bytes::from(body)))
        .map_err(TransportError::from)?;
    let response = transport.send(request).await?;
    let status = response.status();
    let node = read_json(response.into_body()).await;
    if !status.is_success() {
        return Err(SigningRequestError::Rejected { status, message: message(&node) });
    }
    match text(&node, "kind") {
        "CertificateSigningRequest" => Ok(node),
        _ => Err(SigningRequestError::Unexpected),
    }
}

fn text<'a>(node: &'a Node, name: &str) -> &'a str {
    member(node, name).and_then(Node::as_str).unwrap_or_default()
}

fn check_name(name: &str) -> Result<&str, SigningRequestError> {
    let is_valid =
        |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || matches!(octet, b'-' | b'.');
    let has_letter = name.bytes().any(|octet| octet.is_ascii_alphanumeric());
    match has_letter && name.len() <= 253 && name.bytes().all(is_valid) {
        true => Ok(name),
        false => Err(SigningRequestError::Name(redact::line(name).into_owned())),
    }
}

#[cfg(test)]
mod tests;
