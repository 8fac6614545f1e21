//! Who a server says we are: a `SelfSubjectReview`, in the newest version that the server knows.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, DATE};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use navicert_types::redact;
use navicert_types::tree::{Node, Syntax, Value, parse};
use thiserror::Error;

use crate::credential::Asking;
use crate::transport::{Body, Transport, TransportError};

/// The versions, newest first; one that a server does not serve is answered with 404.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
/// More than this is no review.
const LARGEST: usize = 1024 * 1024;
/// How much of a server's message is shown.
const LONGEST: usize = 1024;

/// What the server says about the caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Review {
    /// The version it was asked and answered in: `authentication.k8s.io/v1`.
    pub api_version: String,
    /// The caller.
    pub user: User,
}

/// A caller as a server knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub username: String,
    /// The unique identifier, empty if there is none.
    pub uid: String,
    /// The groups, in the server's order.
    pub groups: Vec<String>,
    /// Further attributes, in the server's order.
    pub extra: Vec<(String, Vec<String>)>,
}

/// Why the server did not say.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WhoamiError {
    /// There was no answer.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The server does not know the caller (401) or will not talk to it (403).
    #[error("the server answered {status}{}", Quoted(.message))]
    Refused {
        /// 401 or 403.
        status: StatusCode,
        /// What the server said, cleaned for a terminal; empty if nothing.
        message: String,
        /// The server's clock, as it wrote it.
        date: Option<HeaderValue>,
    },
    /// No version of the API is served.
    #[error("the server does not serve SelfSubjectReview (Kubernetes does since 1.26)")]
    NotServed,
    /// Something else came.
    #[error("the server answered {status}, which is no SelfSubjectReview{}", Quoted(.message))]
    Other {
        /// The status.
        status: StatusCode,
        /// What the server said.
        message: String,
    },
}

impl WhoamiError {
    /// Whether a plugin policy kept the credential back.
    pub fn is_denied(&self) -> bool {
        matches!(self, WhoamiError::Transport(TransportError::Credentials(error)) if error.is_denied())
    }

    /// Whether no answer came because of the way there, not because of the credential.
    pub fn is_unreachable(&self) -> bool {
        match self {
            WhoamiError::Transport(
                TransportError::Credentials(_) | TransportError::CertificateRefused { .. },
            ) => false,
            WhoamiError::Transport(_) => true,
            _ => false,
        }
    }
}

/// Asks the server who it takes us for. The request is one of a person who waits.
///
/// # Errors
/// [`WhoamiError`]: no answer, a refusal, or a server that cannot say.
pub async fn whoami(transport: &Transport) -> Result<Review, WhoamiError> {
    for version in VERSIONS {
        let api_version = format!("authentication.k8s.io/{version}");
        let question = format!(r#"{{"kind":"SelfSubjectReview","apiVersion":"{api_version}"}}"#);
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("/apis/{api_version}/selfsubjectreviews"))
            .header(CONTENT_TYPE, "application/json")
            .extension(Asking::Foreground)
            .body(Body::from(Bytes::from(question)))
            .map_err(TransportError::from)?;
        let response = transport.send(request).await?;
        let (status, date) = (response.status(), response.headers().get(DATE).cloned());
        if status == StatusCode::NOT_FOUND {
            continue;
        }
        let node = read(response.into_body()).await;
        return match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(WhoamiError::Refused { status, message: message(&node), date })
            }
            _ => user(&node)
                .filter(|_| status.is_success())
                .map(|user| Review { api_version, user })
                .ok_or_else(|| WhoamiError::Other { status, message: message(&node) }),
        };
    }
    Err(WhoamiError::NotServed)
}

/// The answer as a tree; an answer that is none is an empty one.
async fn read(body: impl http_body::Body<Data = Bytes, Error = TransportError>) -> Node {
    let collected = Limited::new(body, LARGEST).collect().await;
    let bytes = collected.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    parse(&bytes, Syntax::Json).unwrap_or_default()
}

/// The message of a `Status`, cleaned and cut.
fn message(node: &Node) -> String {
    let text = member(node, "message").and_then(Node::as_str).unwrap_or_default();
    let cleaned = redact::terminal(text);
    cleaned.split_at_checked(cleaned.floor_char_boundary(LONGEST)).map_or("", |(start, _)| start).to_owned()
}

fn user(node: &Node) -> Option<User> {
    let info = member(member(node, "status")?, "userInfo")?;
    let text = |name: &str| member(info, name).and_then(Node::as_str).unwrap_or_default().to_owned();
    let extra = member(info, "extra").and_then(Node::as_mapping);
    let extra =
        extra.map(|extra| extra.entries().iter().map(|entry| (entry.key.clone(), texts(&entry.value))));
    let user = User {
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

/// A member of an object.
pub(crate) fn member<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    let entry = node.as_mapping()?.last(name)?;
    (!matches!(entry.value.value, Value::Null)).then_some(&entry.value)
}

struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
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
    use crate::credential::{Credential, Fixed};
    use crate::transport::{Around, Settings, Trust};

    fn transport(api: &ApiServer, ca: &Ca, token: Option<&'static str>) -> Transport {
        let credential =
            Credential { authorization: token.map(HeaderValue::from_static), ..Credential::anonymous() };
        let settings = Settings { trust: Trust::Pem(ca.pem().into_bytes()), ..Settings::new(api.url()) };
        Transport::new(settings, Arc::new(Fixed::new(credential)), Around::system()).unwrap()
    }

    #[tokio::test]
    async fn the_newest_version_that_is_served_is_asked() {
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
            let user = User {
                username: "ann".into(),
                uid: "7".into(),
                groups: vec!["developers".into()],
                extra: vec![("scopes".into(), vec!["a".into(), "b".into()])],
            };
            assert_eq!(
                reviewed.unwrap(),
                Review { api_version: format!("authentication.k8s.io/{version}"), user }
            );
            let asked = api.requests().pop().unwrap();
            assert_eq!((asked.method.as_str(), asked.path()), ("POST", path(version).as_str()));
        }
    }

    #[tokio::test]
    async fn a_refusal_is_told_with_the_servers_words_and_no_token() {
        let ca = Ca::new("root");
        let api = ApiServer::start(&ca);
        let error = whoami(&transport(&api, &ca, Some("Bearer canary"))).await.unwrap_err();
        assert_eq!(error.to_string(), "the server answered 401 Unauthorized: Unauthorized");
        assert!(!error.is_unreachable() && !error.is_denied());
        assert!(!format!("{error:?}").contains("canary"));
        api.answer(ApiServer::WHO_AM_I, Answer::json(&json!({"kind": "Pod"})));
        let error = whoami(&transport(&api, &ca, None)).await.unwrap_err();
        assert_eq!(error.to_string(), "the server answered 200 OK, which is no SelfSubjectReview");
        api.refuse_connections();
        assert!(whoami(&transport(&api, &ca, None)).await.unwrap_err().is_unreachable());
    }
}
