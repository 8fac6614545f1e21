//! Requests that the proxy sends to the API server itself: access reviews, its own identity, the server version.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use navicert_client::transport::{Body, Transport, TransportError};
use serde_json::{Value, json};

use super::permission::Permission;
use crate::user_ref::UserRef;

/// The first version whose API server has constrained impersonation switched on.
// S237
pub(crate) const CONSTRAINED_IMPERSONATION_SINCE: (u32, u32) = (1, 36);

/// Maximum size of a response.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// A review failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AccessReviewError {
    /// The request could not be sent.
    #[error("failed to send a request to the API server")]
    Transport(#[from] TransportError),
    /// The response is not of the expected kind.
    #[error("unexpected response of the API server to a {kind} request: {status}")]
    UnexpectedResponse {
        /// Kind of the request.
        kind: &'static str,
        /// Status of the response.
        status: StatusCode,
    },
    /// The API server could not decide: an authorizer failed, or the answer depends on the content of a request.
    #[error("the API server's answer to a {kind} request is undetermined: {reason}")]
    Undetermined {
        /// Kind of the request.
        kind: &'static str,
        /// What the API server says about it.
        reason: String,
    },
}

/// Whether the proxy has a permission (`SelfSubjectAccessReview`).
///
/// # Errors
/// [`AccessReviewError`]: the review failed.
pub(crate) async fn self_access_review(
    transport: &Transport,
    permission: &Permission,
) -> Result<bool, AccessReviewError> {
    let (field, attributes) = permission.review_attributes();
    let spec = json!({field: attributes});
    is_allowed(transport, "SelfSubjectAccessReview", "selfsubjectaccessreviews", &spec).await
}

/// Whether a user has a permission (`SubjectAccessReview`). Adds the group `system:authenticated`, which the server
/// adds by itself only to requests.
///
/// # Errors
/// [`AccessReviewError`]: the review failed.
// S145
pub(crate) async fn subject_access_review(
    transport: &Transport,
    user: UserRef<'_>,
    permission: &Permission,
) -> Result<bool, AccessReviewError> {
    let mut groups = user.groups.to_vec();
    if !groups.iter().any(|group| group == "system:authenticated") {
        groups.push("system:authenticated".to_owned());
    }
    let (field, attributes) = permission.review_attributes();
    let spec = json!({
        "user": user.username, "uid": user.uid, "groups": groups, "extra": user.extra,
        field: attributes,
    });
    is_allowed(transport, "SubjectAccessReview", "subjectaccessreviews", &spec).await
}

async fn is_allowed(
    transport: &Transport,
    kind: &'static str,
    resource: &str,
    spec: &Value,
) -> Result<bool, AccessReviewError> {
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
    let path = format!("/apis/authorization.k8s.io/v1/{resource}");
    let (status, response) = send(transport, Method::POST, &path, &[], Some(&body)).await?;
    let allowed = response.pointer("/status/allowed").and_then(Value::as_bool);
    // A response of another kind is invalid.
    let is_review = status.is_success() && response.get("kind").and_then(Value::as_str) == Some(kind);
    // `denied` overrides `allowed`.
    let is_denied = response.pointer("/status/denied").and_then(Value::as_bool) == Some(true);
    let allowed = allowed
        .filter(|_| is_review)
        .map(|allowed| allowed && !is_denied)
        .ok_or(AccessReviewError::UnexpectedResponse { kind, status })?;
    match undetermined(&response).filter(|_| !allowed && !is_denied) {
        Some(reason) => Err(AccessReviewError::Undetermined { kind, reason }),
        None => Ok(allowed),
    }
}

/// Why a review that does not allow is not a denial either.
fn undetermined(response: &Value) -> Option<String> {
    let error = response.pointer("/status/evaluationError").and_then(Value::as_str).unwrap_or_default();
    if !error.is_empty() {
        return Some(navicert_types::redact::line(error).into_owned());
    }
    // Conditional authorization (KEP-5681): no released API has the field (k8s.io/api up to 0.38.0-alpha.2). The KEP calls
    // it `conditionsChain`, Kyverno's authorizer for it `conditionSetChain`.
    let has_conditions = ["/status/conditionsChain", "/status/conditionSetChain"].iter().any(|field| {
        response.pointer(field).and_then(Value::as_array).is_some_and(|conditions| !conditions.is_empty())
    });
    has_conditions.then(|| "it depends on the content of the request".to_owned())
}

/// User name that the server assigns to a request with these headers (`SelfSubjectReview`).
///
/// # Errors
/// [`AccessReviewError`]: the review failed.
pub(crate) async fn self_subject_review(
    transport: &Transport,
    headers: &[(HeaderName, HeaderValue)],
) -> Result<String, AccessReviewError> {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (status, response) = send(transport, Method::POST, path, headers, Some(&body)).await?;
    let name = response.pointer("/status/userInfo/username").and_then(Value::as_str).map(str::to_owned);
    name.filter(|_| status.is_success())
        .ok_or(AccessReviewError::UnexpectedResponse { kind: "SelfSubjectReview", status })
}

/// The server's version, such as `(1, 34)`.
///
/// # Errors
/// [`AccessReviewError`]: the request failed.
pub(crate) async fn server_version(
    transport: &Transport,
    headers: &[(HeaderName, HeaderValue)],
) -> Result<(u32, u32), AccessReviewError> {
    let (status, response) = send(transport, Method::GET, "/version", headers, None).await?;
    let number = |name: &str| {
        // Some providers report `34+`.
        let text = response.get(name)?.as_str()?;
        text.trim_end_matches(|character: char| !character.is_ascii_digit()).parse().ok()
    };
    let both = number("major").zip(number("minor")).filter(|_| status.is_success());
    both.ok_or(AccessReviewError::UnexpectedResponse { kind: "version", status })
}

async fn send(
    transport: &Transport,
    method: Method,
    path: &str,
    headers: &[(HeaderName, HeaderValue)],
    message: Option<&Value>,
) -> Result<(StatusCode, Value), TransportError> {
    let body = message.map(|message| Body::from(Bytes::from(message.to_string())));
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(ACCEPT, "application/json")
        .body(body.unwrap_or_else(Body::empty))?;
    if message.is_some() {
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, value) in headers {
        request.headers_mut().append(name, value.clone());
    }
    let response = transport.send(request).await?;
    let status = response.status();
    let read = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await;
    let bytes = read.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
}
