//! A request on its way out, before a credential is on it: this is what is sent again when a credential was turned down,
//! so nothing of the old one can stay behind (client-credentials.md C433).

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, RANGE, UPGRADE, USER_AGENT,
};
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, Uri, request};

use super::attach::attach;
use super::body::{Body, ResponseBody};
use super::error::TransportError;
use super::server::Server;
use super::settings::Settings;
use crate::credential::{Asking, Credential};

const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// A request without a credential.
pub(super) struct Draft {
    head: request::Parts,
    body: Body,
    traits: Traits,
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
        request: Request<Body>,
        settings: &Settings,
        server: &Server,
    ) -> Result<Self, TransportError> {
        let (mut head, body) = request.into_parts();
        head.uri = Uri::from(address(&head.uri, server)?);
        if let Some(agent) = &settings.user_agent
            && !head.headers.contains_key(USER_AGENT)
        {
            head.headers.insert(USER_AGENT, agent.clone());
        }
        if let Some(impersonation) = &settings.impersonation {
            impersonation.add_to(&mut head.headers);
        }
        let upgrade = head.headers.contains_key(UPGRADE);
        let compressed = settings.compression
            && !upgrade
            && head.method != Method::HEAD
            && !head.headers.contains_key(ACCEPT_ENCODING)
            && !head.headers.contains_key(RANGE);
        if compressed {
            head.headers.insert(ACCEPT_ENCODING, GZIP);
        }
        let traits = Traits {
            has_authorization: head.headers.contains_key(AUTHORIZATION),
            upgrade,
            compressed,
            is_safe: matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE),
            asking: head.extensions.get::<Asking>().copied().unwrap_or_default(),
        };
        Ok(Draft { head, body, traits })
    }

    /// The same once more, if its body can be had again.
    pub(super) fn try_clone(&self) -> Option<Self> {
        let body = self.body.try_clone()?;
        Some(Draft { head: self.head.clone(), body, traits: self.traits })
    }

    /// With a credential on it, ready to be sent; without one if the caller brought its own.
    pub(super) fn with(mut self, credential: Option<&Credential>) -> Request<Body> {
        if let Some(credential) = credential {
            attach(credential, &mut self.head.headers);
        }
        Request::from_parts(self.head, self.body)
    }

    /// A request that came back unsent becomes a draft again: our credential comes off.
    pub(super) fn take_back(request: Request<Body>, traits: Traits) -> Self {
        let (mut head, body) = request.into_parts();
        if !traits.has_authorization {
            head.headers.remove(AUTHORIZATION);
        }
        Draft { head, body, traits }
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
