//! Maps failures to what a client receives: a Kubernetes `Status` that reveals no internals. Logs contain more.
// structured-authentication.md S271, S273

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use navicert_authn::outcome::RefusalClass;
use navicert_client::transport::{ResponseBody as ReplyBody, TransportError};
use navicert_types::error_chain;
use serde_json::json;

use crate::audit::Reason;

/// Response extension that closes the connection after this response: `Connection: close` in HTTP/1.1, `GOAWAY` in
/// HTTP/2.
// S274
#[derive(Clone, Copy, Debug)]
pub struct CloseConnection;

/// A request that the server answers with an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The request is ambiguous or invalid.
    #[error("{0}")]
    Malformed(&'static str),
    /// No valid credentials. The text is the same for every reason.
    #[error("Unauthorized")]
    Unauthorized,
    /// Authenticated, but not allowed.
    #[error("{0}")]
    Forbidden(String),
    /// Unknown path.
    #[error("the server could not find the requested resource")]
    NotFound,
    /// The path does not support this method.
    #[error("the server does not allow this method on the requested resource")]
    MethodNotAllowed,
    /// The request body exceeds the limit.
    #[error("request body is too large")]
    BodyTooLarge,
    /// The request body was not received in time.
    #[error("timed out reading the request body")]
    BodyTimeout,
    /// Temporarily unavailable.
    #[error("the server is temporarily unavailable, please try again later")]
    Unavailable,
    /// The in-flight limit is reached.
    #[error("too many requests, please try again later")]
    TooManyRequests,
    /// The user has too many connections.
    #[error("too many connections of this user, please try again later")]
    TooManyConnections,
    /// The API server is unreachable, or the connection to it failed.
    #[error("failed to reach the API server{}", Detail(.0))]
    UpstreamUnreachable(Option<String>),
    /// The API server did not respond in time.
    #[error("timed out waiting for the API server{}", Detail(.0))]
    UpstreamTimeout(Option<String>),
    /// No credentials for the API server are available.
    #[error("no credentials available for the API server{}", Detail(.0))]
    NoUpstreamCredentials(Option<String>),
    /// The API server's response must not be forwarded.
    #[error("{0}")]
    BadUpstreamResponse(&'static str),
    /// The proxy's account may not impersonate the user. The text names the missing RBAC rule.
    #[error("{0}")]
    MissingPermission(String),
}

struct Detail<'a>(&'a Option<String>);

impl std::fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |detail| write!(f, ": {detail}"))
    }
}

impl Problem {
    /// Maps a transport error. Details name files, programs and addresses (never secrets), so include them only for
    /// clients of the same user.
    pub fn from_transport(error: &TransportError, with_details: bool) -> Self {
        let detail = with_details.then(|| error_chain(error));
        match error {
            TransportError::ConnectTimeout { .. } | TransportError::HandshakeTimeout { .. } => {
                Problem::UpstreamTimeout(detail)
            }
            TransportError::Credentials(_)
            | TransportError::CertificateRejected { .. }
            | TransportError::Identity(_) => Problem::NoUpstreamCredentials(detail),
            TransportError::Path(_) => Problem::Malformed("request path cannot be forwarded"),
            _ => Problem::UpstreamUnreachable(detail),
        }
    }

    /// Status code and Kubernetes reason.
    pub fn code(&self) -> (StatusCode, &'static str) {
        match self {
            Problem::Malformed(_) => (StatusCode::BAD_REQUEST, "BadRequest"),
            Problem::Unauthorized => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            Problem::Forbidden(_) => (StatusCode::FORBIDDEN, "Forbidden"),
            Problem::NotFound => (StatusCode::NOT_FOUND, "NotFound"),
            Problem::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
            Problem::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
            Problem::BodyTimeout => (StatusCode::REQUEST_TIMEOUT, "Timeout"),
            Problem::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
            Problem::TooManyRequests | Problem::TooManyConnections => {
                (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests")
            }
            Problem::UpstreamUnreachable(_)
            | Problem::NoUpstreamCredentials(_)
            | Problem::BadUpstreamResponse(_)
            | Problem::MissingPermission(_) => (StatusCode::BAD_GATEWAY, "BadGateway"),
            Problem::UpstreamTimeout(_) => (StatusCode::GATEWAY_TIMEOUT, "Timeout"),
        }
    }

    /// The reason for the audit log. Of the servers that write one, only impersonation is forbidden.
    pub fn reason(&self) -> Reason {
        match self {
            Problem::Malformed(_) | Problem::BodyTooLarge => Reason::Request,
            Problem::Unauthorized => Reason::NoCredentials,
            Problem::Forbidden(_) => Reason::Impersonation,
            Problem::NotFound => Reason::Path,
            Problem::MethodNotAllowed => Reason::Method,
            Problem::BodyTimeout => Reason::Timeout,
            Problem::Unavailable => Reason::Refused(RefusalClass::NotReady),
            Problem::TooManyRequests | Problem::TooManyConnections => Reason::TooManyRequests,
            Problem::UpstreamUnreachable(_)
            | Problem::UpstreamTimeout(_)
            | Problem::NoUpstreamCredentials(_)
            | Problem::BadUpstreamResponse(_) => Reason::Upstream,
            Problem::MissingPermission(_) => Reason::UpstreamPermissions,
        }
    }

    /// The HTTP response, with the [`Reason`] as an extension. Closes the connection of clients that are unauthenticated or send invalid requests.
    // S274
    pub fn response(&self) -> Response<ReplyBody> {
        let (code, reason) = self.code();
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.to_string(), "reason": reason, "code": code.as_u16(),
        });
        let mut response = Response::new(ReplyBody::full(Bytes::from(status.to_string())));
        *response.status_mut() = code;
        response.extensions_mut().insert(self.reason());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self {
            Problem::Unauthorized => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                response.extensions_mut().insert(CloseConnection);
            }
            Problem::Malformed(_) | Problem::BodyTooLarge | Problem::BodyTimeout => {
                response.extensions_mut().insert(CloseConnection);
            }
            Problem::TooManyRequests => {
                headers.insert(http::header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Problem::TooManyConnections => {
                headers.insert(http::header::RETRY_AFTER, HeaderValue::from_static("1"));
                response.extensions_mut().insert(CloseConnection);
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S273
    #[test]
    fn includes_details_only_on_request() {
        let error = TransportError::Connect {
            address: "10.0.0.1:6443".into(),
            source: std::io::ErrorKind::ConnectionRefused.into(),
        };
        assert_eq!(Problem::from_transport(&error, false).to_string(), "failed to reach the API server");
        let told = Problem::from_transport(&error, true).to_string();
        assert!(told.contains("10.0.0.1:6443") && told.contains("refused"), "{told}");
    }

    // S271
    #[test]
    fn unauthorized_response_closes_the_connection() {
        let response = Problem::Unauthorized.response();
        assert_eq!(response.status(), 401);
        assert!(response.extensions().get::<CloseConnection>().is_some(), "S274");
    }
}
