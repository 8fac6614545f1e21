//! A small HTTP client for a program that makes a handful of calls and ends: blocking sockets, one connection per
//! call, TLS only where it is needed.
//!
//! Neither hyper nor a runtime: a run is two or three calls one after another, and what counts is how soon the first
//! byte leaves and how little memory a node gives up for it. Certificate authorities are read when the first TLS
//! connection is made, not before.
//!
//! Every call has a limit, and all of them together one that is below the kubelet's minute. What may pass is
//! tried again with a growing, jittered pause inside that limit. Redirects are never followed: no header goes
//! to a host it was not meant for.
// I209, I214, I217

mod dial;
mod proxy;
mod trust;
mod url;
mod wire;

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::Environment;
use navicert_types::{Clock, Secret};
use thiserror::Error;

pub use proxy::{HttpsProxy, HttpsProxyError};
pub use trust::TlsTrust;
pub use url::{HttpUrl, HttpUrlError, UrlScheme};

use crate::explain::Journal;
use wire::WireError;

/// The kubelet kills a plugin after a minute; by then it has to have said why.
pub const TOTAL_TIMEOUT: Duration = Duration::from_secs(50);
/// One attempt at a service.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// One attempt at a metadata server, which is on the same machine or one hop away.
pub const METADATA_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);
/// Tokens are a few kilobytes.
pub const MAX_TOKEN_BODY_BYTES: usize = 1 << 20;

const INITIAL_BACKOFF: Duration = Duration::from_millis(200);
const MAX_BACKOFF: Duration = Duration::from_secs(5);
/// More than this and signatures and expiries go wrong.
// I212
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

/// A call.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// `GET`, `POST` or `PUT`.
    pub method: &'static str,
    /// Where it goes.
    pub url: HttpUrl,
    /// Headers beside `host`, `connection` and `content-length`. Any of them may be a credential.
    pub headers: Vec<(&'static str, Secret<String>)>,
    /// The body.
    pub body: Option<Secret<Vec<u8>>>,
    /// How often it is tried.
    pub attempts: u32,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// How long the answer's body may be.
    pub max_body_bytes: usize,
    /// Never through a proxy.
    // I213
    pub direct: bool,
    /// Whether this answer is one to try again after, beside 408, 429 and 5xx.
    pub retry: fn(&HttpResponse) -> bool,
    /// Goes to this address, whatever the host's name resolves to.
    pub connect_to: Option<IpAddr>,
    /// Trusts the certificate authorities of this file alone.
    pub authorities: Option<PathBuf>,
}

impl HttpRequest {
    /// A call without headers and body.
    pub fn new(method: &'static str, url: HttpUrl) -> Self {
        HttpRequest {
            method,
            url,
            headers: Vec::new(),
            body: None,
            attempts: 3,
            timeout: ATTEMPT_TIMEOUT,
            max_body_bytes: MAX_TOKEN_BODY_BYTES,
            direct: false,
            retry: |_| false,
            connect_to: None,
            authorities: None,
        }
    }

    /// A call to a metadata server: near, quick, and never through a proxy.
    pub fn to_metadata_server(method: &'static str, url: HttpUrl) -> Self {
        HttpRequest { timeout: METADATA_ATTEMPT_TIMEOUT, direct: true, ..HttpRequest::new(method, url) }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, Secret::new(value.into())));
        self
    }

    /// Adds a body and its type.
    #[must_use]
    pub fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(Secret::new(body.into()));
        self.header("content-type", content_type)
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; it may be a token.
    pub body: Secret<Vec<u8>>,
}

impl HttpResponse {
    /// The values of a header, whose name is in lower case.
    pub fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as text; nothing if it is none.
    pub fn text(&self) -> &str {
        std::str::from_utf8(self.body.expose()).unwrap_or_default()
    }

    fn is_transient(&self) -> bool {
        matches!(self.status, 408 | 429 | 500..600)
    }
}

/// Why there is no answer. Hosts are named, targets and headers never.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The name has no address.
    #[error("cannot find the address of `{host}`")]
    Resolve {
        /// Host and port.
        host: String,
        /// The resolver's word.
        source: io::Error,
    },
    /// Nobody listens, or the way is blocked.
    #[error("cannot connect to `{host}`")]
    Connect {
        /// Host and port.
        host: String,
        /// The operating system's word.
        source: io::Error,
    },
    /// It takes too long.
    #[error("no answer from `{host}` within {limit:?}")]
    TimedOut {
        /// Host and port.
        host: String,
        /// How long it was given.
        limit: Duration,
    },
    /// The connection broke.
    #[error("the connection to `{host}` broke")]
    ConnectionLost {
        /// Host and port.
        host: String,
        /// The operating system's word.
        source: io::Error,
    },
    /// No encrypted connection.
    #[error("no TLS connection with `{host}`")]
    Tls {
        /// Host and port.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// More than any honest answer.
    #[error("the answer of `{host}` is longer than {limit} bytes")]
    TooLarge {
        /// Host and port.
        host: String,
        /// The limit.
        limit: usize,
    },
    /// Not HTTP.
    #[error("the answer of `{host}` is no HTTP: {what}")]
    Malformed {
        /// Host and port.
        host: String,
        /// What about it.
        what: &'static str,
    },
    /// It wants us to go elsewhere.
    #[error("`{host}` redirects to `{to}`, and redirects are not followed with credentials")]
    Redirected {
        /// Host and port.
        host: String,
        /// The host it names.
        to: String,
    },
    /// A credential with a line break in it.
    #[error("a credential for `{host}` has a control character in it")]
    BadHeader {
        /// Host and port.
        host: String,
    },
    /// The proxy says no.
    #[error("the proxy `{proxy}` answered {status} for `{host}`")]
    ProxyRefused {
        /// The proxy.
        proxy: String,
        /// Its status.
        status: u16,
        /// Host and port.
        host: String,
    },
    /// Everything took too long together.
    #[error("the time for the whole run, {limit:?}, is used up")]
    TotalTimeout {
        /// The time for the whole run.
        limit: Duration,
    },
}

impl HttpError {
    /// Whether another attempt may succeed.
    pub fn is_transient(&self) -> bool {
        use HttpError::{Connect, ConnectionLost, Resolve, TimedOut};
        matches!(self, Resolve { .. } | Connect { .. } | TimedOut { .. } | ConnectionLost { .. })
    }
}

/// Waiting between attempts; a test does not wait.
pub trait Sleep: fmt::Debug {
    /// Returns after this long.
    fn sleep(&self, duration: Duration);
}

/// Waits for real.
#[derive(Clone, Copy, Debug)]
pub struct ThreadSleep;

impl Sleep for ThreadSleep {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one room that waits: between attempts there is no event"
    )]
    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// The client of one run.
#[derive(Debug)]
pub struct HttpClient {
    clock: Arc<dyn Clock>,
    sleep: Box<dyn Sleep>,
    trust: TlsTrust,
    proxy: HttpsProxy,
    total: Duration,
    started: Duration,
}

impl HttpClient {
    /// A client whose calls together take at most `total`.
    ///
    /// # Errors
    /// If the environment names a proxy that cannot be one.
    pub fn new(
        environment: &Environment,
        clock: Arc<dyn Clock>,
        pause: Box<dyn Sleep>,
        total: Duration,
    ) -> Result<Self, HttpsProxyError> {
        let started = clock.monotonic();
        let trust = TlsTrust::from_environment(environment);
        let proxy = HttpsProxy::from_environment(environment)?;
        Ok(HttpClient { clock, sleep: pause, trust, proxy, total, started })
    }

    /// Sends a request and gives the answer, whatever its status; what may pass is tried again.
    ///
    /// # Errors
    /// [`HttpError`].
    pub fn send(&self, request: &HttpRequest, journal: &Journal) -> Result<HttpResponse, HttpError> {
        let host = request.url.authority();
        let bytes = wire::encode(request).ok_or(HttpError::BadHeader { host })?;
        let mut attempt = 1;
        loop {
            let outcome = self.attempt(request, bytes.expose());
            let again = match &outcome {
                Ok(reply) => reply.is_transient() || (request.retry)(reply),
                Err(error) => error.is_transient(),
            };
            journal.note("call", describe_attempt(request, &outcome));
            if let Ok(reply) = &outcome {
                self.compare_clocks(request, reply, journal);
            }
            let pause = backoff_after(attempt);
            if !again || attempt >= request.attempts || self.remaining() <= pause {
                return outcome;
            }
            self.sleep.sleep(pause);
            attempt += 1;
        }
    }

    fn attempt(&self, request: &HttpRequest, bytes: &[u8]) -> Result<HttpResponse, HttpError> {
        let limit = request.timeout.min(self.remaining());
        if limit.is_zero() {
            return Err(HttpError::TotalTimeout { limit: self.total });
        }
        let host = request.url.authority();
        let deadline = dial::Deadline::new(&*self.clock, limit);
        let tunnel = if request.direct { None } else { self.proxy.for_url(&request.url) };
        let mut stream = dial::connect(request, tunnel, deadline)?;
        let exchanged = match request.url.scheme {
            UrlScheme::Http => wire::exchange(&mut stream, bytes, request.max_body_bytes),
            UrlScheme::Https => {
                let tls = self.trust.connect(request, stream)?;
                let mut tls = tls;
                wire::exchange(&mut tls, bytes, request.max_body_bytes)
            }
        };
        let reply = exchanged
            .map_err(|error| http_error_from_wire(error, host.clone(), limit, request.max_body_bytes))?;
        if matches!(reply.status, 301 | 302 | 303 | 307 | 308) {
            let to = reply.header("location").next().unwrap_or_default();
            let to = HttpUrl::parse(to).map_or_else(|_| "somewhere".to_owned(), |url| url.authority());
            return Err(HttpError::Redirected { host, to });
        }
        Ok(reply)
    }

    fn remaining(&self) -> Duration {
        self.total.saturating_sub(self.clock.monotonic().saturating_sub(self.started))
    }

    fn compare_clocks(&self, request: &HttpRequest, reply: &HttpResponse, journal: &Journal) {
        let parser = jiff::fmt::rfc2822::DateTimeParser::new();
        let Some(theirs) = reply.header("date").next().and_then(|date| parser.parse_timestamp(date).ok())
        else {
            return;
        };
        let apart = self.clock.now().duration_since(theirs).unsigned_abs();
        if apart > MAX_CLOCK_SKEW {
            let host = request.url.authority();
            journal.warn(format!("the clock here and that of `{host}` differ by {} s", apart.as_secs()));
        }
    }
}

/// Half of a doubling pause is fixed, the other half is chance: many nodes that failed together do not return together.
fn backoff_after(attempt: u32) -> Duration {
    let full = INITIAL_BACKOFF.saturating_mul(1 << attempt.min(8)).min(MAX_BACKOFF);
    let chance = RandomState::new().build_hasher().finish() % 1_000;
    let half = full / 2;
    half + half.saturating_mul(u32::try_from(chance).unwrap_or_default()) / 1_000
}

fn describe_attempt(request: &HttpRequest, outcome: &Result<HttpResponse, HttpError>) -> String {
    let what = format!("{} {}", request.method, request.url);
    match outcome {
        Ok(reply) => format!("{what}: {}", reply.status),
        Err(error) => format!("{what}: {}", crate::error::chain(error)),
    }
}

fn http_error_from_wire(error: WireError, host: String, limit: Duration, largest: usize) -> HttpError {
    match error {
        WireError::TooLarge => HttpError::TooLarge { host, limit: largest },
        WireError::Malformed(what) => HttpError::Malformed { host, what },
        WireError::Ended(what) => {
            HttpError::ConnectionLost { host, source: io::Error::new(io::ErrorKind::UnexpectedEof, what) }
        }
        WireError::Io(source) => http_error_from_io(source, host, limit),
    }
}

fn http_error_from_io(source: io::Error, host: String, limit: Duration) -> HttpError {
    match source.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => HttpError::TimedOut { host, limit },
        // rustls speaks through this kind.
        io::ErrorKind::InvalidData => HttpError::Tls { host, source },
        _ => HttpError::ConnectionLost { host, source },
    }
}

#[cfg(test)]
mod tests;
