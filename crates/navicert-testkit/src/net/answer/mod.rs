//! What a test server says to a request: an honest answer, a slow one, a hostile one, or a broken connection.

mod body;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;

use crate::net::gate::Gate;
use crate::net::tunnel::Tunnel;
use crate::net::watch::Watch;

pub(crate) use body::AnswerBody;

/// How a connection is broken off.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cut {
    /// The socket is closed without TLS's goodbye: the peer reads an unexpected end.
    Clip,
    /// The socket is reset: the peer reads `ECONNRESET`.
    Reset,
}

/// One answer, given as often as it is asked for.
///
/// ```
/// use navicert_testkit::{Answer, Gate};
/// use serde_json::json;
///
/// let gate = Gate::new();
/// let honest = Answer::json(&json!({"kind": "Status"})).header("cache-control", "max-age=20");
/// let slow = Answer::text("hello").after(&gate);
/// let hostile = Answer::filler("application/json", 1 << 30);
/// # let _ = (honest, slow, hostile);
/// ```
#[derive(Clone, Debug)]
#[must_use = "an answer is given only once a server knows it"]
pub struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) parts: Vec<Part>,
    pub(crate) gate: Option<Gate>,
    pub(crate) before_body: bool,
    pub(crate) action: Action,
}

/// What is done with the connection once the answer is due.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Respond,
    Cut(Cut),
    Upgrade(Tunnel),
}

/// A stretch of a response body.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Bytes(Bytes),
    /// This many spaces, made as they are sent.
    Filler(u64),
    Gate(Gate),
    /// The stream breaks off here.
    Break,
    Watch(Watch),
    Trailers(HeaderMap),
}

impl Answer {
    /// This status with no body.
    ///
    /// # Panics
    /// If the status is not between 100 and 999.
    pub fn status(status: u16) -> Self {
        Answer {
            status: StatusCode::from_u16(status).unwrap_or_else(|_| panic!("{status} is no HTTP status")),
            headers: HeaderMap::new(),
            parts: Vec::new(),
            gate: None,
            before_body: false,
            action: Action::Respond,
        }
    }

    /// 200 with this JSON.
    pub fn json(value: &Value) -> Self {
        Answer::bytes("application/json", value.to_string())
    }

    /// 200 with this text.
    pub fn text(text: &str) -> Self {
        Answer::bytes("text/plain", text.to_owned())
    }

    /// 200 with these bytes.
    pub fn bytes(content_type: &str, body: impl Into<Bytes>) -> Self {
        Answer::status(200).header("content-type", content_type).part(Part::Bytes(body.into()))
    }

    /// 200 with so many spaces, announced by `content-length`. A gigabyte costs no memory here.
    pub fn filler(content_type: &str, length: u64) -> Self {
        Answer::status(200).header("content-type", content_type).part(Part::Filler(length))
    }

    /// 200 with spaces that never end, of a length never announced.
    pub fn endless(content_type: &str) -> Self {
        Answer::status(200).header("content-type", content_type).part(Part::Filler(u64::MAX))
    }

    /// A redirection to `location`.
    pub fn redirect(status: u16, location: &str) -> Self {
        Answer::status(status).header("location", location)
    }

    /// The connection is broken off instead of an answer.
    pub fn cut(how: Cut) -> Self {
        Answer { action: Action::Cut(how), ..Answer::status(200) }
    }

    pub(crate) fn watch(watch: &Watch) -> Self {
        Answer::status(200).header("content-type", "application/json").part(Part::Watch(watch.clone()))
    }

    pub(crate) fn upgrade(tunnel: &Tunnel) -> Self {
        Answer { action: Action::Upgrade(tunnel.clone()), ..Answer::status(101) }
    }

    /// Another status for the same answer.
    ///
    /// # Panics
    /// If the status is not between 100 and 999.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Answer::status(status).status;
        self
    }

    /// Adds a header; one of the same name stays beside it, except for `content-type`.
    ///
    /// # Panics
    /// If the name or value cannot be a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let (name, value) = header(name, value);
        if name == http::header::CONTENT_TYPE {
            self.headers.insert(name, value);
        } else {
            self.headers.append(name, value);
        }
        self
    }

    /// Adds a trailer.
    ///
    /// # Panics
    /// If the name or value cannot be a header.
    pub fn trailer(self, name: &str, value: &str) -> Self {
        let (name, value) = header(name, value);
        let announced = name.clone();
        self.header("trailer", announced.as_str()).part(Part::Trailers(HeaderMap::from_iter([(name, value)])))
    }

    /// Nothing of the answer is sent before the gate lets it through.
    pub fn after(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// The head and the first `offset` bytes of the body are sent, the rest once the gate lets it through.
    ///
    /// # Panics
    /// If the body is not made of bytes or is shorter.
    pub fn stalled_at(mut self, offset: usize, gate: &Gate) -> Self {
        let (first, rest) = self.split_body(offset);
        self.parts = vec![Part::Bytes(first), Part::Gate(gate.clone()), Part::Bytes(rest)];
        self
    }

    /// The whole length is announced, but the body breaks off after `offset` bytes.
    ///
    /// # Panics
    /// If the body is not made of bytes or is shorter.
    pub fn truncated_at(mut self, offset: usize) -> Self {
        let (first, rest) = self.split_body(offset);
        let announced = (first.len() + rest.len()).to_string();
        self.parts = vec![Part::Bytes(first), Part::Break];
        self.header("content-length", &announced)
    }

    /// The answer is sent as soon as the request's head is there; its body is not read.
    pub fn before_body(mut self) -> Self {
        self.before_body = true;
        self
    }

    fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    fn split_body(&self, offset: usize) -> (Bytes, Bytes) {
        let [Part::Bytes(body)] = self.parts.as_slice() else {
            panic!("only an answer whose body is one run of bytes can be split, not {:?}", self.parts)
        };
        assert!(offset <= body.len(), "a body of {} bytes cannot be split at {offset}", body.len());
        (body.slice(..offset), body.slice(offset..))
    }
}

fn header(name: &str, value: &str) -> (HeaderName, HeaderValue) {
    let name = HeaderName::try_from(name).unwrap_or_else(|_| panic!("`{name}` is no header name"));
    let value = HeaderValue::try_from(value).unwrap_or_else(|_| panic!("`{value}` is no header value"));
    (name, value)
}
