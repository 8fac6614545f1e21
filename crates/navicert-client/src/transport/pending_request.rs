//! A request before a credential is attached. Retries after a rejected credential start from here, so that nothing of the
//! old credential remains.
// C433

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderName, USER_AGENT,
};
use http::uri::PathAndQuery;
use http::{Extensions, HeaderValue, Method, Request, Response, Uri, request};

use super::attach::attach;
use super::body::{Body, ResponseBody};
use super::error::TransportError;
use super::server::Server;
use super::settings::TransportSettings;
use crate::credential::{Credential, RequestOrigin};

const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// A request split into head and body. It is boxed because it is moved through many layers.
#[derive(Debug)]
pub struct OutgoingRequest {
    /// Method, URI, headers and extensions.
    pub head: request::Parts,
    /// The body.
    pub body: Body,
}

impl OutgoingRequest {
    pub(super) fn into_request(self: Box<Self>) -> Request<Body> {
        Request::from_parts(self.head, self.body)
    }
}

impl From<Request<Body>> for Box<OutgoingRequest> {
    fn from(request: Request<Body>) -> Self {
        let (head, body) = request.into_parts();
        Box::new(OutgoingRequest { head, body })
    }
}

/// A request without a credential.
pub(super) struct PendingRequest {
    request: Box<OutgoingRequest>,
    flags: RequestFlags,
}

/// What is needed to build the same request again. Cheaper than a full clone, since most requests are sent once.
pub(super) struct RetryParts {
    method: Method,
    uri: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    extensions: Extensions,
    body: Bytes,
    flags: RequestFlags,
}

impl RetryParts {
    /// Builds the request again.
    pub(super) fn to_request(&self) -> PendingRequest {
        let mut request = Request::new(Body::from(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        for (name, value) in &self.headers {
            request.headers_mut().append(name.clone(), value.clone());
        }
        *request.extensions_mut() = self.extensions.clone();
        PendingRequest { request: request.into(), flags: self.flags }
    }
}

/// Which of the headers that matter here are present. One pass over all names: requests have few headers, and one lookup
/// by name costs as much.
#[derive(Default)]
struct KnownHeaders {
    authorization: bool,
    upgrade: bool,
    accept_encoding: bool,
    range: bool,
    user_agent: bool,
}

impl KnownHeaders {
    fn scan(headers: &HeaderMap) -> Self {
        let mut known = KnownHeaders::default();
        for name in headers.keys() {
            match name.as_str() {
                "authorization" => known.authorization = true,
                "upgrade" => known.upgrade = true,
                "accept-encoding" => known.accept_encoding = true,
                "range" => known.range = true,
                "user-agent" => known.user_agent = true,
                _ => {}
            }
        }
        known
    }
}

/// Properties of a request that are needed after it was sent.
#[derive(Clone, Copy)]
pub(super) struct RequestFlags {
    /// The caller set `Authorization`: no credential is attached, and a 401 causes no refresh.
    // C471
    pub(super) has_authorization: bool,
    /// Requests a protocol upgrade, which needs an HTTP/1.1 connection.
    pub(super) upgrade: bool,
    /// The transport added `Accept-Encoding: gzip`, so it decompresses the response.
    requested_gzip: bool,
    /// The method is safe, so sending the request twice does no harm.
    pub(super) is_safe: bool,
    /// Whether a person waits for the response.
    pub(super) origin: RequestOrigin,
}

impl PendingRequest {
    /// Prepares the caller's request: completes the path and adds the headers that do not depend on the credential (user
    /// agent, impersonation, compression).
    pub(super) fn new(
        mut request: Box<OutgoingRequest>,
        settings: &TransportSettings,
        server: &Server,
    ) -> Result<Self, TransportError> {
        let head = &mut request.head;
        head.uri = Uri::from(path_on_server(&head.uri, server)?);
        let known = KnownHeaders::scan(&head.headers);
        let requested_gzip = settings.compression
            && !(known.upgrade || known.accept_encoding || known.range)
            && head.method != Method::HEAD;
        if let Some(agent) = settings.user_agent.as_ref().filter(|_| !known.user_agent) {
            head.headers.insert(USER_AGENT, agent.clone());
        }
        if let Some(impersonation) = &settings.impersonation {
            impersonation.add_to(&mut head.headers);
        }
        if requested_gzip {
            head.headers.insert(ACCEPT_ENCODING, GZIP);
        }
        let flags = RequestFlags {
            has_authorization: known.authorization,
            upgrade: known.upgrade,
            requested_gzip,
            is_safe: matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE),
            origin: head.extensions.get::<RequestOrigin>().copied().unwrap_or_default(),
        };
        Ok(PendingRequest { request, flags })
    }

    /// The parts to build the same request again; `None` for a streaming body.
    pub(super) fn retry_parts(&self) -> Option<RetryParts> {
        let OutgoingRequest { head, body } = &*self.request;
        Some(RetryParts {
            method: head.method.clone(),
            uri: head.uri.clone(),
            headers: head.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            extensions: head.extensions.clone(),
            body: body.bytes()?,
            flags: self.flags,
        })
    }

    /// Attaches a credential, if any; the request is then ready to be sent.
    pub(super) fn attach(mut self, credential: Option<&Credential>) -> Box<OutgoingRequest> {
        if let Some(credential) = credential {
            attach(credential, &mut self.request.head.headers);
        }
        self.request
    }

    /// Takes back a request that was not sent, and removes the attached credential.
    pub(super) fn from_unsent(mut request: Box<OutgoingRequest>, flags: RequestFlags) -> Self {
        if !flags.has_authorization {
            request.head.headers.remove(AUTHORIZATION);
        }
        PendingRequest { request, flags }
    }

    /// The properties that are needed after sending.
    pub(super) fn flags(&self) -> RequestFlags {
        self.flags
    }
}

impl RequestFlags {
    /// Decompresses the response if the transport requested compression.
    pub(super) fn decompress_response(&self, response: &mut Response<ResponseBody>) {
        let is_gzip = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"gzip");
        if !self.requested_gzip || !response.headers().get(CONTENT_ENCODING).is_some_and(is_gzip) {
            return;
        }
        response.headers_mut().remove(CONTENT_ENCODING);
        response.headers_mut().remove(CONTENT_LENGTH);
        response.body_mut().decompress();
    }
}

/// The path on the server. An absolute URI must name this server: credentials are sent nowhere else.
fn path_on_server(uri: &Uri, server: &Server) -> Result<PathAndQuery, TransportError> {
    let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    match uri.authority() {
        Some(authority) if !server.matches(uri.scheme_str(), authority) => {
            let scheme = uri.scheme_str().unwrap_or_default();
            let port = authority.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
            let requested = format!("{scheme}://{}{port}", authority.host());
            Err(TransportError::OtherServer { asked: requested, server: server.origin() })
        }
        Some(_) => Ok(path),
        None => server.join_path(path),
    }
}
