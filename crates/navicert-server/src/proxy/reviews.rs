//! Questions that the proxy asks the API server in its own name: may this user act as that one, may we ourselves, and who
//! does the server take us for.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use navicert_client::transport::{Body, Transport, TransportError};
use serde_json::{Value, json};

use crate::who::Told;

/// More than this is no review.
const LARGEST: usize = 1024 * 1024;

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// There was no answer.
    #[error("the API server cannot be asked")]
    Transport(#[from] TransportError),
    /// The answer is no answer to the question.
    #[error("the API server answered {status} to a {kind}")]
    Answer {
        /// What was asked.
        kind: &'static str,
        /// The status.
        status: StatusCode,
    },
}

/// Something that may be done to something.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// `impersonate`, `create`.
    pub verb: String,
    /// The API group; empty is the core group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// Its part, if any.
    pub subresource: String,
    /// Where; empty is everywhere, or nowhere in particular.
    pub namespace: String,
    /// Which one; empty is any.
    pub name: String,
}

impl Permission {
    /// Acting as something of this kind.
    pub fn impersonate(group: &str, resource: &str) -> Self {
        Permission {
            verb: "impersonate".into(),
            group: group.into(),
            resource: resource.into(),
            ..Permission::default()
        }
    }

    /// A part of the resource.
    #[must_use]
    pub fn part(mut self, subresource: &str) -> Self {
        subresource.clone_into(&mut self.subresource);
        self
    }

    /// This one alone.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// In this namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    fn attributes(&self) -> Value {
        let parts = [
            ("verb", &self.verb),
            ("group", &self.group),
            ("resource", &self.resource),
            ("subresource", &self.subresource),
            ("namespace", &self.namespace),
            ("name", &self.name),
        ];
        let parts = parts.into_iter().filter(|(_, value)| !value.is_empty());
        Value::Object(parts.map(|(name, value)| (name.to_owned(), json!(value))).collect())
    }
}

/// Whether the proxy itself may.
///
/// # Errors
/// [`ReviewError`]: nobody says.
pub async fn may_we(transport: &Transport, permission: &Permission) -> Result<bool, ReviewError> {
    let spec = json!({"resourceAttributes": permission.attributes()});
    allowed(transport, "SelfSubjectAccessReview", "selfsubjectaccessreviews", &spec).await
}

/// Whether somebody else may. Everybody who is somebody is in `system:authenticated`, which the server adds by itself only
/// for requests (S145).
///
/// # Errors
/// [`ReviewError`]: nobody says.
pub async fn may_they(
    transport: &Transport,
    who: Told<'_>,
    permission: &Permission,
) -> Result<bool, ReviewError> {
    let mut groups = who.groups.to_vec();
    if !groups.iter().any(|group| group == "system:authenticated") {
        groups.push("system:authenticated".to_owned());
    }
    let spec = json!({
        "user": who.username, "uid": who.uid, "groups": groups, "extra": who.extra,
        "resourceAttributes": permission.attributes(),
    });
    allowed(transport, "SubjectAccessReview", "subjectaccessreviews", &spec).await
}

async fn allowed(
    transport: &Transport,
    kind: &'static str,
    resource: &str,
    spec: &Value,
) -> Result<bool, ReviewError> {
    let question = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
    let path = format!("/apis/authorization.k8s.io/v1/{resource}");
    let (status, answer) = ask(transport, Method::POST, &path, &[], Some(&question)).await?;
    let verdict = answer.pointer("/status/allowed").and_then(Value::as_bool);
    // An answer about something else is none.
    let is_answer = status.is_success() && answer.get("kind").and_then(Value::as_str) == Some(kind);
    // A denial that comes with permission is a contradiction, and no permission.
    let is_denied = answer.pointer("/status/denied").and_then(Value::as_bool) == Some(true);
    verdict
        .filter(|_| is_answer)
        .map(|allowed| allowed && !is_denied)
        .ok_or(ReviewError::Answer { kind, status })
}

/// Whom the server takes a request with these headers for.
///
/// # Errors
/// [`ReviewError`]: nobody says.
pub async fn who_are_we(
    transport: &Transport,
    headers: &[(HeaderName, HeaderValue)],
) -> Result<String, ReviewError> {
    let question = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (status, answer) = ask(transport, Method::POST, path, headers, Some(&question)).await?;
    let name = answer.pointer("/status/userInfo/username").and_then(Value::as_str).map(str::to_owned);
    name.filter(|_| status.is_success()).ok_or(ReviewError::Answer { kind: "SelfSubjectReview", status })
}

/// The server's version: `(1, 34)`.
///
/// # Errors
/// [`ReviewError`]: nobody says.
pub async fn version(
    transport: &Transport,
    headers: &[(HeaderName, HeaderValue)],
) -> Result<(u32, u32), ReviewError> {
    let (status, answer) = ask(transport, Method::GET, "/version", headers, None).await?;
    let number = |name: &str| {
        // Some providers write `34+`.
        let text = answer.get(name)?.as_str()?;
        text.trim_end_matches(|character: char| !character.is_ascii_digit()).parse().ok()
    };
    let both = number("major").zip(number("minor")).filter(|_| status.is_success());
    both.ok_or(ReviewError::Answer { kind: "version", status })
}

async fn ask(
    transport: &Transport,
    method: Method,
    path: &str,
    headers: &[(HeaderName, HeaderValue)],
    question: Option<&Value>,
) -> Result<(StatusCode, Value), TransportError> {
    let body = question.map(|question| Body::from(Bytes::from(question.to_string())));
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(ACCEPT, "application/json")
        .body(body.unwrap_or_else(Body::empty))?;
    if question.is_some() {
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, value) in headers {
        request.headers_mut().append(name, value.clone());
    }
    let answer = transport.send(request).await?;
    let status = answer.status();
    let read = Limited::new(answer.into_body(), LARGEST).collect().await;
    let bytes = read.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
}
