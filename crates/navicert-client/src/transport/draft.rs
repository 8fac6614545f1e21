//! A request on its way out, before a credential is on it: this is what is sent again when a credential was turned down,
//! so nothing of the old one can stay behind (client-credentials.md C433).

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
use super::settings::Settings;
use crate::credential::{Asking, Credential};

const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// A request on its way. What is handed on from one to the next so many times is best kept where it is, on the heap.
#[derive(Debug)]
pub struct Outgoing {
    /// What is asked for.
    pub head: request::Parts,
    /// What goes with it.
    pub body: Body,
}

impl Outgoing {
    pub(super) fn into_request(self: Box<Self>) -> Request<Body> {
        Request::from_parts(self.head, self.body)
    }
}

impl From<Request<Body>> for Box<Outgoing> {
    fn from(request: Request<Body>) -> Self {
        let (head, body) = request.into_parts();
        Box::new(Outgoing { head, body })
    }
}

/// A request without a credential.
pub(super) struct Draft {
    request: Box<Outgoing>,
    traits: Traits,
}

/// What a draft was made of. Less than a request, since mostly nobody asks for it.
pub(super) struct Spare {
    method: Method,
    uri: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    extensions: Extensions,
    body: Bytes,
    traits: Traits,
}

impl Spare {
    /// The same draft again.
    pub(super) fn draft(&self) -> Draft {
        let mut request = Request::new(Body::from(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        for (name, value) in &self.headers {
            request.headers_mut().append(name.clone(), value.clone());
        }
        *request.extensions_mut() = self.extensions.clone();
        Draft { request: request.into(), traits: self.traits }
    }
}

/// Which headers there are, of those that matter here. One look at each: requests have few, and asking for one by its name
/// costs as much as looking at all.
#[derive(Default)]
struct Named {
    authorization: bool,
    upgrade: bool,
    accept_encoding: bool,
    range: bool,
    user_agent: bool,
}

impl Named {
    fn in_headers(headers: &HeaderMap) -> Self {
        let mut named = Named::default();
        for name in headers.keys() {
            match name.as_str() {
                "authorization" => named.authorization = true,
                "upgrade" => named.upgrade = true,
                "accept-encoding" => named.accept_encoding = true,
                "range" => named.range = true,
                "user-agent" => named.user_agent = true,
                _ => {}
            }
        }
        named
    }
}

/// What stays true of a draft after it was sent.
#[derive(Clone, Copy)]
pub(super) struct Traits {
    /// The caller brought an `Authorization` of its own: no header of ours, and no answer of ours to a 401 (C471).
    pub(super) has_authorization: bool,
    /// Asks for another protocol, which takes an HTTP/1.1 connection.
    pub(super) upgrade: bool,
    /// Compression was our idea, so expanding is our duty.
    compressed: bool,
    /// Asking twice does no harm.
    pub(super) is_safe: bool,
    /// Who is waiting for the answer.
    pub(super) asking: Asking,
}

impl Draft {
    /// Takes a request as the caller made it. The path is completed, and the headers that do not depend on the
    /// credential are added: user agent, impersonation, compression.
    pub(super) fn new(
        mut request: Box<Outgoing>,
        settings: &Settings,
        server: &Server,
    ) -> Result<Self, TransportError> {
        let head = &mut request.head;
        head.uri = Uri::from(address(&head.uri, server)?);
        let named = Named::in_headers(&head.headers);
        let compressed = settings.compression
            && !(named.upgrade || named.accept_encoding || named.range)
            && head.method != Method::HEAD;
        if let Some(agent) = settings.user_agent.as_ref().filter(|_| !named.user_agent) {
            head.headers.insert(USER_AGENT, agent.clone());
        }
        if let Some(impersonation) = &settings.impersonation {
            impersonation.add_to(&mut head.headers);
        }
        if compressed {
            head.headers.insert(ACCEPT_ENCODING, GZIP);
        }
        let traits = Traits {
            has_authorization: named.authorization,
            upgrade: named.upgrade,
            compressed,
            is_safe: matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE),
            asking: head.extensions.get::<Asking>().copied().unwrap_or_default(),
        };
        Ok(Draft { request, traits })
    }

    /// What it takes to make the same once more, if its body can be had again.
    pub(super) fn spare(&self) -> Option<Spare> {
        let Outgoing { head, body } = &*self.request;
        Some(Spare {
            method: head.method.clone(),
            uri: head.uri.clone(),
            headers: head.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            extensions: head.extensions.clone(),
            body: body.bytes()?,
            traits: self.traits,
        })
    }

    /// With a credential on it, ready to be sent; without one if the caller brought its own.
    pub(super) fn with(mut self, credential: Option<&Credential>) -> Box<Outgoing> {
        if let Some(credential) = credential {
            attach(credential, &mut self.request.head.headers);
        }
        self.request
    }

    /// A request that came back unsent becomes a draft again: our credential comes off.
    pub(super) fn take_back(mut request: Box<Outgoing>, traits: Traits) -> Self {
        if !traits.has_authorization {
            request.head.headers.remove(AUTHORIZATION);
        }
        Draft { request, traits }
    }

    /// What stays true after it was sent.
    pub(super) fn traits(&self) -> Traits {
        self.traits
    }
}

impl Traits {
    /// Expands an answer that is compressed because we asked for it.
    pub(super) fn expand(&self, response: &mut Response<ResponseBody>) {
        let is_gzip = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"gzip");
        if !self.compressed || !response.headers().get(CONTENT_ENCODING).is_some_and(is_gzip) {
            return;
        }
        response.headers_mut().remove(CONTENT_ENCODING);
        response.headers_mut().remove(CONTENT_LENGTH);
        response.body_mut().decompress();
    }
}

/// The path on the server. A whole address has to be the server's own: credentials go nowhere else.
fn address(uri: &Uri, server: &Server) -> Result<PathAndQuery, TransportError> {
    let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    match uri.authority() {
        Some(authority) if !server.is_at(uri.scheme_str(), authority) => {
            let scheme = uri.scheme_str().unwrap_or_default();
            let port = authority.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
            let asked = format!("{scheme}://{}{port}", authority.host());
            Err(TransportError::OtherServer { asked, server: server.shown() })
        }
        Some(_) => Ok(path),
        None => server.below(path),
    }
}
