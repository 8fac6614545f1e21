//! What a server remembers: every request, every connection, every handshake that failed.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, Method, Version};
use rustls::ProtocolVersion;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Everything a server has seen so far.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Requests in the order their heads arrived.
    pub requests: Vec<Request>,
    /// Connections in the order they were accepted.
    pub connections: Vec<Connection>,
    /// Why TLS handshakes failed, as the server saw it.
    pub handshake_failures: Vec<String>,
}

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Request {
    /// The [`Connection::id`] it came on.
    pub connection: usize,
    /// The method.
    pub method: Method,
    /// Path and query exactly as sent.
    pub target: String,
    /// HTTP/1.1 or HTTP/2.
    pub version: Version,
    /// The headers; HTTP/1.1 spelling and order are in [`Connection::received`].
    pub headers: HeaderMap,
    /// The body as far as it has arrived.
    pub body: Vec<u8>,
    /// Whether that is all of it.
    pub body_state: BodyState,
    /// The trailers, if there were any.
    pub trailers: HeaderMap,
    /// The client certificate of its connection.
    pub client: Option<ClientCertificate>,
}

/// How far a request's body has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyState {
    /// The head is here, the body still arriving.
    Arriving,
    /// Everything arrived.
    Complete,
    /// The client broke off.
    Broken,
    /// The answer is sent without reading the body ([`Answer::before_body`](crate::Answer::before_body)).
    Unread,
}

impl Request {
    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The query, without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// The only value of a header; `None` if it is absent.
    ///
    /// # Panics
    /// If the header came more than once or is not text: a test that does not expect that should see it.
    pub fn header(&self, name: &str) -> Option<&str> {
        match self.header_values(name).as_slice() {
            [] => None,
            [value] => Some(value),
            several => panic!("`{name}` came {} times", several.len()),
        }
    }

    /// All values of a header.
    ///
    /// # Panics
    /// If one is not text.
    pub fn header_values(&self, name: &str) -> Vec<&str> {
        let text = |value: &'_ http::HeaderValue| value.to_str().is_ok();
        let values = self.headers.get_all(name);
        assert!(values.iter().all(text), "`{name}` has a value that is not text");
        values.iter().filter_map(|value| value.to_str().ok()).collect()
    }

    /// The bearer token, if the request carries exactly one `Authorization: Bearer …`.
    pub fn bearer_token(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }

    /// The body as text.
    ///
    /// # Panics
    /// If it is not UTF-8.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body)
            .unwrap_or_else(|error| panic!("the request's body is not text: {error}"))
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("the request's body is not JSON: {error}"))
    }
}

/// One accepted connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Its number, counted from 0.
    pub id: usize,
    /// Address of the client.
    pub peer: SocketAddr,
    /// What TLS agreed on; `None` before the handshake is done, and on a server without TLS.
    pub tls: Option<Tls>,
    /// Whether its socket is closed.
    pub closed: bool,
    pub(super) received: Arc<Mutex<Vec<u8>>>,
}

impl Connection {
    /// The first mebibyte of what came in, after decryption: spelling, order and framing as sent.
    pub fn received(&self) -> Vec<u8> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a TLS handshake agreed on.
#[derive(Clone, Debug)]
pub struct Tls {
    /// TLS 1.2 or 1.3.
    pub version: ProtocolVersion,
    /// Whether the session was resumed rather than negotiated anew.
    pub resumed: bool,
    /// The application protocol agreed by ALPN: `h2`, `http/1.1`, or none.
    pub protocol: Option<String>,
    /// The server name the client asked for (SNI); none for an address.
    pub server_name: Option<String>,
    /// The client's certificate; a resumed session carries that of its first handshake.
    pub client: Option<ClientCertificate>,
}

/// A client certificate as presented.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientCertificate {
    /// The chain in DER, leaf first.
    pub chain: Vec<Vec<u8>>,
    /// The subject's common name: a Kubernetes user name.
    pub common_name: String,
    /// The subject's organizations: Kubernetes groups.
    pub organizations: Vec<String>,
}

impl ClientCertificate {
    /// Reads the leaf's subject; nothing if no certificate was presented.
    pub(super) fn read(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let (_, leaf) = X509Certificate::from_der(chain.first()?).ok()?;
        let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            attribute.as_str().map(str::to_owned).unwrap_or_default()
        };
        Some(ClientCertificate {
            chain: chain.iter().map(|certificate| certificate.to_vec()).collect(),
            common_name: leaf.subject().iter_common_name().next().map(text).unwrap_or_default(),
            organizations: leaf.subject().iter_organization().map(text).collect(),
        })
    }
}
