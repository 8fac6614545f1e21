//! The one map from what went wrong to what a client may read: a Kubernetes `Status`, in words that give nothing away
//! (structured-authentication.md S271, S273). What we log is another text.

use std::error::Error;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use navicert_client::transport::TransportError;
use serde_json::json;

use crate::forward::ReplyBody;
use crate::listener::CloseConnection;

/// Why a request is not answered by the server it was meant for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The request can be understood in more than one way, or not at all.
    #[error("{0}")]
    Malformed(&'static str),
    /// Nobody that is known here. The same text for every reason.
    #[error("Unauthorized")]
    Unauthorized,
    /// Known, and not allowed.
    #[error("{0}")]
    Forbidden(String),
    /// Nothing is there.
    #[error("the server could not find the requested resource")]
    NotFound,
    /// Something is there, but not for this method.
    #[error("the server does not allow this method on the requested resource")]
    WrongMethod,
    /// A body larger than is read.
    #[error("the request's body is too large")]
    TooLarge,
    /// A body that does not come.
    #[error("the request's body took too long")]
    SlowBody,
    /// Not now.
    #[error("the server cannot answer at the moment, please try again later")]
    Unavailable,
    /// More requests than are served at a time.
    #[error("too many requests at a time, please try again later")]
    TooMany,
    /// The server behind us cannot be reached, or broke off.
    #[error("the API server cannot be reached{}", Detail(.0))]
    Unreachable(Option<String>),
    /// The server behind us did not answer in time.
    #[error("the API server did not answer in time{}", Detail(.0))]
    Late(Option<String>),
    /// There is no credential for the server behind us.
    #[error("no credentials for the API server{}", Detail(.0))]
    NoCredentials(Option<String>),
    /// The server behind us answered with what must not be passed on.
    #[error("{0}")]
    BadAnswer(&'static str),
}

struct Detail<'a>(&'a Option<String>);

impl std::fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |detail| write!(f, ": {detail}"))
    }
}

impl Problem {
    /// What an error of the transport means to a client. Details are for clients that are the user's own alone: they
    /// name files, programs and addresses (never secrets).
    pub fn of_transport(error: &TransportError, with_details: bool) -> Self {
        let detail = with_details.then(|| chain(error));
        match error {
            TransportError::ConnectTimeout { .. } | TransportError::HandshakeTimeout { .. } => {
                Problem::Late(detail)
            }
            TransportError::Credentials(_)
            | TransportError::CertificateRefused { .. }
            | TransportError::Identity(_) => Problem::NoCredentials(detail),
            TransportError::Path(_) => Problem::Malformed("the path cannot be forwarded"),
            _ => Problem::Unreachable(detail),
        }
    }

    /// The status code and the reason as Kubernetes spells it.
    pub fn code(&self) -> (StatusCode, &'static str) {
        match self {
            Problem::Malformed(_) => (StatusCode::BAD_REQUEST, "BadRequest"),
            Problem::Unauthorized => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            Problem::Forbidden(_) => (StatusCode::FORBIDDEN, "Forbidden"),
            Problem::NotFound => (StatusCode::NOT_FOUND, "NotFound"),
            Problem::WrongMethod => (StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
            Problem::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
            Problem::SlowBody => (StatusCode::REQUEST_TIMEOUT, "Timeout"),
            Problem::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
            Problem::TooMany => (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"),
            Problem::Unreachable(_) | Problem::NoCredentials(_) | Problem::BadAnswer(_) => {
                (StatusCode::BAD_GATEWAY, "BadGateway")
            }
            Problem::Late(_) => (StatusCode::GATEWAY_TIMEOUT, "Timeout"),
        }
    }

    /// The answer. Whoever is unknown or makes no sense has no further use for the connection (S274).
    pub fn response(&self) -> Response<ReplyBody> {
        let (code, reason) = self.code();
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.to_string(), "reason": reason, "code": code.as_u16(),
        });
        let mut response = Response::new(ReplyBody::whole(Bytes::from(status.to_string())));
        *response.status_mut() = code;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self {
            Problem::Unauthorized => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                response.extensions_mut().insert(CloseConnection);
            }
            Problem::Malformed(_) | Problem::TooLarge | Problem::SlowBody => {
                response.extensions_mut().insert(CloseConnection);
            }
            Problem::TooMany => {
                headers.insert(http::header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

/// An error and everything behind it, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    // S273
    #[test]
    fn details_are_told_only_where_they_may_be() {
        let error = TransportError::Connect {
            address: "10.0.0.1:6443".into(),
            source: std::io::ErrorKind::ConnectionRefused.into(),
        };
        assert_eq!(Problem::of_transport(&error, false).to_string(), "the API server cannot be reached");
        let told = Problem::of_transport(&error, true).to_string();
        assert!(told.contains("10.0.0.1:6443") && told.contains("refused"), "{told}");
    }

    // S271
    #[test]
    fn a_refusal_is_a_status_object_that_says_nothing_more() {
        let response = Problem::Unauthorized.response();
        assert_eq!(response.status(), 401);
        assert!(response.extensions().get::<CloseConnection>().is_some(), "S274");
    }
}
