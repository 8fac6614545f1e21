//! Reads pods and service accounts and requests service account tokens, as a kubelet does for image pulls.
// I109–I116

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use navicert_types::{Clock, Secret, Timestamp};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;
use tokio::time::timeout;

use crate::client::Client;
use crate::transport::{Body, TransportError};

/// Timeout of one request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// A service account may carry 256 KiB of annotations, a pod not much more.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// The objects of an API server that service account tokens are made of.
#[derive(Clone, Debug)]
pub struct ServiceAccountApi {
    client: Client,
}

/// A pod, as far as its service account is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodInfo {
    /// Its UID.
    pub uid: String,
    /// `spec.serviceAccountName`; empty for static pods.
    pub service_account_name: String,
}

/// A service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccountInfo {
    /// Its UID.
    pub uid: String,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// A request for a token. The API server selects its lifetime.
// I114
#[derive(Clone, Copy, Debug)]
pub struct BoundTokenRequest<'a> {
    /// The namespace of the service account.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its UID, a precondition.
    pub uid: &'a str,
    /// The audience.
    pub audience: &'a str,
    /// The pod that the token is bound to: name and UID.
    pub pod: Option<(&'a str, &'a str)>,
}

/// A token with its lifetime.
#[derive(Clone, Debug)]
pub struct BoundToken {
    /// The token.
    pub token: Secret<String>,
    /// When it was issued.
    pub issued: Timestamp,
    /// When it expires.
    pub expires: Timestamp,
}

/// Why a request has no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServiceAccountError {
    /// The name of an object is not one.
    #[error("invalid object name `{0}`")]
    Name(String),
    /// The request cannot be written.
    #[error("invalid request")]
    Request(#[from] http::Error),
    /// No response was received.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// No response was received in time.
    #[error("no response within {} s", RESPONSE_TIMEOUT.as_secs())]
    Timeout,
    /// The response cannot be read.
    #[error("failed to read the response: {0}")]
    Body(String),
    /// The response is not JSON. The parser's message may quote a token.
    #[error("the response is not valid JSON")]
    NotJson,
    /// The API server rejects the request.
    #[error("{message}")]
    Rejected {
        /// The status.
        status: StatusCode,
        /// The server's message, or a clause about the status.
        message: String,
    },
    /// The response lacks a field.
    #[error("missing `{0}` in the response")]
    Missing(&'static str),
}

impl ServiceAccountApi {
    /// The API of the client's server.
    pub fn new(client: Client) -> Self {
        ServiceAccountApi { client }
    }

    /// Reads a pod.
    ///
    /// # Errors
    /// [`ServiceAccountError`]
    pub async fn pod(&self, namespace: &str, name: &str) -> Result<PodInfo, ServiceAccountError> {
        let path = format!("/api/v1/namespaces/{}/pods/{}", segment(namespace)?, segment(name)?);
        let found = self.call(Method::GET, &path, None).await?;
        Ok(PodInfo {
            uid: text(&found, "/metadata/uid"),
            service_account_name: text(&found, "/spec/serviceAccountName"),
        })
    }

    /// Reads a service account.
    ///
    /// # Errors
    /// [`ServiceAccountError`]
    pub async fn account(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<ServiceAccountInfo, ServiceAccountError> {
        let found = self.call(Method::GET, &account_path(namespace, name)?, None).await?;
        let annotations = found.pointer("/metadata/annotations").and_then(Value::as_object);
        let annotations = annotations.into_iter().flatten();
        let annotations =
            annotations.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()));
        Ok(ServiceAccountInfo { uid: text(&found, "/metadata/uid"), annotations: annotations.collect() })
    }

    /// Requests a token. If the response does not say how long it lives, it counts as issued now.
    ///
    /// # Errors
    /// [`ServiceAccountError`]
    pub async fn token(
        &self,
        request: &BoundTokenRequest<'_>,
        clock: &dyn Clock,
    ) -> Result<BoundToken, ServiceAccountError> {
        let path = format!("{}/token", account_path(request.namespace, request.name)?);
        let body = serde_json::to_vec(&TokenRequest::from(request)).unwrap_or_default();
        let response = self.call(Method::POST, &path, Some(body.into())).await?;
        let token = text(&response, "/status/token");
        let expires = text(&response, "/status/expirationTimestamp").parse::<Timestamp>();
        let expires = expires.map_err(|_| ServiceAccountError::Missing("status.expirationTimestamp"))?;
        if token.is_empty() {
            return Err(ServiceAccountError::Missing("status.token"));
        }
        let lifetime = response.pointer("/spec/expirationSeconds").and_then(Value::as_u64);
        let issued = lifetime.and_then(|lifetime| expires.checked_sub(Duration::from_secs(lifetime)).ok());
        Ok(BoundToken { token: token.into(), issued: issued.unwrap_or_else(|| clock.now()), expires })
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<Value, ServiceAccountError> {
        let request = Request::builder().method(method).uri(path).header(ACCEPT, "application/json");
        let request = match body {
            Some(body) => request.header(CONTENT_TYPE, "application/json").body(Body::from(body))?,
            None => request.body(Body::empty())?,
        };
        timeout(RESPONSE_TIMEOUT, self.exchange(request)).await.unwrap_or(Err(ServiceAccountError::Timeout))
    }

    async fn exchange(&self, request: Request<Body>) -> Result<Value, ServiceAccountError> {
        let (head, body) = self.client.send(request).await?.into_parts();
        let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
        let body = body.map_err(|error| ServiceAccountError::Body(error.to_string()))?.to_bytes();
        let parsed: Option<Value> = serde_json::from_slice(&body).ok();
        let status = head.status;
        if status.is_success() {
            return parsed.ok_or(ServiceAccountError::NotJson);
        }
        let message = parsed.map(|status| text(&status, "/message")).filter(|message| !message.is_empty());
        let message = message.unwrap_or_else(|| format!("API server responded with {status}"));
        Err(ServiceAccountError::Rejected { status, message })
    }
}

/// `TokenRequest` of `authentication.k8s.io/v1`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenRequest<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: ObjectUid<'a>,
    spec: TokenRequestSpec<'a>,
}

#[derive(Serialize)]
struct ObjectUid<'a> {
    uid: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenRequestSpec<'a> {
    audiences: [&'a str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    bound_object_ref: Option<BoundObjectRef<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BoundObjectRef<'a> {
    api_version: &'static str,
    kind: &'static str,
    name: &'a str,
    uid: &'a str,
}

impl<'a> From<&BoundTokenRequest<'a>> for TokenRequest<'a> {
    fn from(request: &BoundTokenRequest<'a>) -> Self {
        let pod = request.pod.map(|(name, uid)| BoundObjectRef { api_version: "v1", kind: "Pod", name, uid });
        TokenRequest {
            kind: "TokenRequest",
            api_version: "authentication.k8s.io/v1",
            metadata: ObjectUid { uid: request.uid },
            spec: TokenRequestSpec { audiences: [request.audience], bound_object_ref: pod },
        }
    }
}

fn account_path(namespace: &str, name: &str) -> Result<String, ServiceAccountError> {
    Ok(format!("/api/v1/namespaces/{}/serviceaccounts/{}", segment(namespace)?, segment(name)?))
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Validates an object name before it becomes a URL path segment, so that it cannot select another object.
fn segment(name: &str) -> Result<&str, ServiceAccountError> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    let is_name = !name.is_empty() && name.bytes().all(is_plain) && !name.starts_with('.');
    if is_name { Ok(name) } else { Err(ServiceAccountError::Name(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn object_name_cannot_select_another_object() {
        for name in ["", "..", ".a", "a/b", "a?b", "A", "a%2f", "a b"] {
            assert!(segment(name).is_err(), "{name}");
        }
        assert_eq!(
            account_path("ns", "builder.v1").unwrap(),
            "/api/v1/namespaces/ns/serviceaccounts/builder.v1"
        );
    }

    #[test]
    fn token_request_names_its_preconditions() {
        let mut request = BoundTokenRequest {
            namespace: "n",
            name: "a",
            uid: "u",
            audience: "r.io",
            pod: Some(("p", "v")),
        };
        let written =
            |request: &BoundTokenRequest<'_>| serde_json::to_value(TokenRequest::from(request)).unwrap();
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "v"});
        assert_eq!(
            written(&request),
            json!({
                "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": {"uid": "u"},
                "spec": {"audiences": ["r.io"], "boundObjectRef": pod},
            })
        );
        request.pod = None;
        assert_eq!(written(&request)["spec"], json!({"audiences": ["r.io"]}));
    }
}
