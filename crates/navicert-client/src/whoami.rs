//! Asks the server for the authenticated user: a `SelfSubjectReview`, in the newest version that the server serves.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use navicert_types::redact;
use navicert_types::tree::{Node, Syntax, parse};
use thiserror::Error;

use crate::credential::RequestOrigin;
use crate::json::member;
use crate::transport::{Body, Transport, TransportError};

/// The API versions, newest first; a server responds with 404 to one that it does not serve.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
/// Limit for the response body.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
/// How much of a server's message is printed.
const MAX_MESSAGE_BYTES: usize = 1024;

/// The server's response.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SelfSubjectReview {
    /// The API version of request and response: `authentication.k8s.io/v1`.
    pub api_version: String,
    /// The authenticated user.
    pub user: UserInfo,
}

/// A user as the server identifies it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserInfo {
    /// The user name.
    pub username: String,
    /// The unique identifier, or empty.
    pub uid: String,
    /// The groups, in the server's order.
    pub groups: Vec<String>,
    /// The extra attributes, in the server's order.
    pub extra: Vec<(String, Vec<String>)>,
}

/// Why there is no review.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WhoamiError {
    /// No response was received.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The server did not authenticate the user (401) or denied the request (403).
    #[error("server rejected the request: {status}{}", MessageSuffix(.message))]
    Rejected {
        /// 401 or 403.
        status: StatusCode,
        /// The server's message, sanitized for a terminal; may be empty.
        message: String,
        /// Whether the response is a Kubernetes `Status`; if not, something in front of the API server sent it.
        is_status: bool,
    },
    /// The server serves no version of the API.
    #[error("server does not serve SelfSubjectReview (available since Kubernetes 1.26)")]
    NotServed,
    /// The response is not a `SelfSubjectReview`.
    #[error("unexpected response {status} to SelfSubjectReview{}", MessageSuffix(.message))]
    UnexpectedResponse {
        /// The status.
        status: StatusCode,
        /// The server's message.
        message: String,
        /// Where a redirect leads, without query and user information.
        location: Option<String>,
    },
}

impl WhoamiError {
    /// Whether the plugin policy denied the credential.
    pub fn is_denied(&self) -> bool {
        matches!(self, WhoamiError::Transport(TransportError::Credentials(error)) if error.is_denied())
    }

    /// Whether the server could not be reached, as opposed to a problem with the credential.
    pub fn is_unreachable(&self) -> bool {
        match self {
            WhoamiError::Transport(
                TransportError::Credentials(_) | TransportError::CertificateRejected { .. },
            ) => false,
            WhoamiError::Transport(_) => true,
            _ => false,
        }
    }
}

/// Asks the server for the authenticated user. Sent as a foreground request.
///
/// # Errors
/// [`WhoamiError`]: no response, a rejection, or an unexpected response.
pub async fn whoami(transport: &Transport) -> Result<SelfSubjectReview, WhoamiError> {
    whoami_with_headers(transport, &[]).await
}

/// The same with further headers, such as those of a front proxy.
///
/// # Errors
/// As [`whoami`].
pub(crate) async fn whoami_with_headers(
    transport: &Transport,
    headers: &[(HeaderName, HeaderValue)],
) -> Result<SelfSubjectReview, WhoamiError> {
    for version in VERSIONS {
        let api_version = format!("authentication.k8s.io/{version}");
        let review = format!(r#"{{"kind":"SelfSubjectReview","apiVersion":"{api_version}"}}"#);
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("/apis/{api_version}/selfsubjectreviews"))
            .header(CONTENT_TYPE, "application/json")
            .extension(RequestOrigin::Foreground)
            .body(Body::from(Bytes::from(review)))
            .map_err(TransportError::from)?;
        for (name, value) in headers {
            request.headers_mut().append(name, value.clone());
        }
        let response = transport.send(request).await?;
        let (status, location) = (response.status(), redirect(response.headers()));
        if status == StatusCode::NOT_FOUND {
            continue;
        }
        let node = read_json(response.into_body()).await;
        return match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let is_status = member(&node, "kind").and_then(Node::as_str) == Some("Status");
                Err(WhoamiError::Rejected { status, message: message(&node), is_status })
            }
            _ => user(&node)
                .filter(|_| status.is_success())
                .map(|user| SelfSubjectReview { api_version, user })
                .ok_or_else(|| WhoamiError::UnexpectedResponse { status, message: message(&node), location }),
        };
    }
    Err(WhoamiError::NotServed)
}

/// Where a redirect leads. The query may contain secrets.
pub(crate) fn redirect(headers: &HeaderMap) -> Option<String> {
    let location = headers.get(LOCATION)?.to_str().ok()?.split(['?', '#']).next()?;
    Some(redact::line(&redact::url(location)).into_owned())
}

/// Parses the response; an invalid one gives an empty node.
pub(crate) async fn read_json(body: impl http_body::Body<Data = Bytes, Error = TransportError>) -> Node {
    let collected = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
    let bytes = collected.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    parse(&bytes, Syntax::Json).unwrap_or_default()
}

/// The message of a `Status`, sanitized and truncated.
pub(crate) fn message(node: &Node) -> String {
    let text = member(node, "message").and_then(Node::as_str).unwrap_or_default();
    let cleaned = redact::line(text);
    cleaned
        .split_at_checked(cleaned.floor_char_boundary(MAX_MESSAGE_BYTES))
        .map_or("", |(start, _)| start)
        .to_owned()
}

fn user(node: &Node) -> Option<UserInfo> {
    let info = member(member(node, "status")?, "userInfo")?;
    let text = |name: &str| member(info, name).and_then(Node::as_str).unwrap_or_default().to_owned();
    let extra = member(info, "extra").and_then(Node::as_mapping);
    let extra =
        extra.map(|extra| extra.entries().iter().map(|entry| (entry.key.clone(), texts(&entry.value))));
    let user = UserInfo {
        username: text("username"),
        uid: text("uid"),
        groups: member(info, "groups").map(texts).unwrap_or_default(),
        extra: extra.map(Iterator::collect).unwrap_or_default(),
    };
    (!user.username.is_empty()).then_some(user)
}

fn texts(node: &Node) -> Vec<String> {
    let items = node.as_sequence().unwrap_or_default().iter();
    items.filter_map(|item| item.as_str().map(ToOwned::to_owned)).collect()
}

/// A server's message after what it is about.
pub(crate) struct MessageSuffix<'a>(pub(crate) &'a str);

impl std::fmt::Display for MessageSuffix<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use navicert_testkit::{Answer, ApiServer, Ca, wait};
    use serde_json::json;

    use super::*;
    use crate::context::ClientContext;
    use crate::credential::{Credential, StaticCredential};
    use crate::transport::{TransportSettings, Trust};

    fn transport(api: &ApiServer, ca: &Ca, token: Option<&'static str>) -> Transport {
        let credential =
            Credential { authorization: token.map(HeaderValue::from_static), ..Credential::anonymous() };
        let settings = TransportSettings {
            trust: Trust::Pem(ca.pem().into_bytes()),
            ..TransportSettings::new(api.url())
        };
        Transport::new(settings, Arc::new(StaticCredential::new(credential)), ClientContext::system())
            .unwrap()
    }

    #[tokio::test]
    async fn uses_the_newest_version_that_the_server_serves() {
        let ca = Ca::new("root");
        let path = |version: &str| format!("/apis/authentication.k8s.io/{version}/selfsubjectreviews");
        for (missing, expected) in [
            (&[][..], Some("v1")),
            (&["v1"], Some("v1beta1")),
            (&["v1", "v1beta1"], Some("v1alpha1")),
            (&VERSIONS, None),
        ] {
            let api = ApiServer::start(&ca);
            api.accept_token("t", "ann", &["developers"]);
            for version in VERSIONS {
                let answer = json!({"status": {"userInfo": {
                    "username": "ann", "uid": "7", "groups": ["developers"], "extra": {"scopes": ["a", "b"]},
                }}});
                let answer = if missing.contains(&version) {
                    Answer::failure(404, "NotFound", "the server could not find the requested resource")
                } else {
                    Answer::json(&answer).with_status(201)
                };
                api.answer(&path(version), answer);
            }
            let reviewed = wait::within("a review", whoami(&transport(&api, &ca, Some("Bearer t")))).await;
            let Some(version) = expected else {
                assert!(matches!(reviewed, Err(WhoamiError::NotServed)), "{reviewed:?}");
                continue;
            };
            let user = UserInfo {
                username: "ann".into(),
                uid: "7".into(),
                groups: vec!["developers".into()],
                extra: vec![("scopes".into(), vec!["a".into(), "b".into()])],
            };
            assert_eq!(
                reviewed.unwrap(),
                SelfSubjectReview { api_version: format!("authentication.k8s.io/{version}"), user }
            );
            let request = api.requests().pop().unwrap();
            assert_eq!((request.method.as_str(), request.path()), ("POST", path(version).as_str()));
        }
    }

    #[tokio::test]
    async fn errors_contain_the_servers_message_and_no_token() {
        let ca = Ca::new("root");
        let api = ApiServer::start(&ca);
        let error = whoami(&transport(&api, &ca, Some("Bearer canary"))).await.unwrap_err();
        assert_eq!(error.to_string(), "server rejected the request: 401 Unauthorized: Unauthorized");
        assert!(!error.is_unreachable() && !error.is_denied());
        assert!(!format!("{error:?}").contains("canary"));
        api.answer(ApiServer::WHO_AM_I, Answer::json(&json!({"kind": "Pod"})));
        let error = whoami(&transport(&api, &ca, None)).await.unwrap_err();
        assert_eq!(error.to_string(), "unexpected response 200 OK to SelfSubjectReview");
        api.refuse_connections();
        assert!(whoami(&transport(&api, &ca, None)).await.unwrap_err().is_unreachable());
    }
}
