//! A small HTTP client for short-lived programs: blocking sockets, one connection per request, TLS if required.
//!
//! It uses neither hyper nor an async runtime: a run makes two or three sequential requests, and startup time and memory
//! matter most. Root certificates are loaded with the first TLS connection. `ureq` 3.5 with the same rustls was measured in its place, without
//! proxies: `ecr-credential-provider` took 1.19 times as long (1.15 times over TLS), 1.25 times the memory, and was 5 % larger.
//!
//! Every request has a timeout, and the whole run has one below the kubelet's limit of a minute. Transient failures are
//! retried with jittered exponential back-off within that limit. Redirects are never followed, so that credentials are
//! not sent to other hosts.
// I209, I214, I217

pub(crate) mod dial;
mod proxy;
mod trust;
mod url;
pub(crate) mod wire;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::Environment;
use navicert_types::backoff::{BackoffSettings, random_fraction};
use navicert_types::proxy::{Proxy, ProxyError};
use navicert_types::{Clock, Secret};
use thiserror::Error;

pub(crate) use url::{HttpUrl, UrlScheme};

use crate::explain::Journal;
use proxy::Proxies;
use trust::TlsTrust;
use wire::WireError;

/// Default timeout of a whole run; below the minute after which the kubelet kills a plugin.
pub(crate) const TOTAL_TIMEOUT: Duration = Duration::from_secs(50);
/// Timeout of one attempt.
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of one attempt at a metadata server, which is at most one hop away.
pub(crate) const METADATA_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);
/// Default limit for response bodies; tokens are a few kilobytes.
pub(crate) const MAX_TOKEN_BODY_BYTES: usize = 1 << 20;

/// From 200 to 400 ms before the second attempt, then twice as long each time.
const BACKOFF: BackoffSettings = BackoffSettings {
    initial: Duration::from_millis(300),
    max: Duration::from_millis(3_750),
    jitter: 1.0 / 3.0,
};
/// Clock difference above which a warning is printed, since signatures and expiries become invalid.
// I212
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequest {
    /// `GET`, `POST` or `PUT`.
    pub method: &'static str,
    /// The URL.
    pub url: HttpUrl,
    /// Headers except `host`, `connection` and `content-length`. Any of them may be a credential.
    pub headers: Vec<(&'static str, Secret<String>)>,
    /// The body.
    pub body: Option<Secret<Vec<u8>>>,
    /// Maximum number of attempts.
    pub attempts: u32,
    /// Timeout of one attempt.
    pub timeout: Duration,
    /// Maximum size of the response body.
    pub max_body_bytes: usize,
    /// Whether to bypass the proxy.
    // I213
    pub direct: bool,
    /// Whether to retry after this response, in addition to 408, 429 and 5xx.
    pub retry: fn(&HttpResponse) -> bool,
    /// Connects to this address instead of resolving the host.
    pub connect_to: Option<IpAddr>,
    /// Trusts only the certificate authorities in this file.
    pub authorities: Option<PathBuf>,
}

impl HttpRequest {
    /// Creates a request without headers and body.
    pub(crate) fn new(method: &'static str, url: HttpUrl) -> Self {
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

    /// Creates a request to a metadata server: short timeout, no proxy.
    pub(crate) fn to_metadata_server(method: &'static str, url: HttpUrl) -> Self {
        HttpRequest { timeout: METADATA_ATTEMPT_TIMEOUT, direct: true, ..HttpRequest::new(method, url) }
    }

    /// Adds a header.
    #[must_use]
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, Secret::new(value.into())));
        self
    }

    /// Adds a body and its content type.
    #[must_use]
    pub(crate) fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(Secret::new(body.into()));
        self.header("content-type", content_type)
    }
}

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct HttpResponse {
    /// The status.
    pub status: u16,
    /// Headers, with lowercase names.
    pub headers: Vec<(String, String)>,
    /// The body; it may be a token.
    pub body: Secret<Vec<u8>>,
}

impl HttpResponse {
    /// The values of a header, given by its lowercase name.
    pub(crate) fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as text; empty if it is not UTF-8.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(self.body.expose()).unwrap_or_default()
    }

    fn is_transient(&self) -> bool {
        matches!(self.status, 408 | 429 | 500..600)
    }
}

/// Why a request failed. Messages contain hosts, but neither paths nor headers.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum HttpError {
    /// The host cannot be resolved.
    #[error("failed to resolve `{host}`")]
    Resolve {
        /// Host and port.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The connection was refused or is blocked.
    #[error("failed to connect to `{host}`")]
    Connect {
        /// Host and port.
        host: String,
        /// I/O error reported by the operating system.
        source: io::Error,
    },
    /// The attempt timed out.
    #[error("request to `{host}` timed out after {limit:?}")]
    TimedOut {
        /// Host and port.
        host: String,
        /// The timeout.
        limit: Duration,
    },
    /// The connection was lost.
    #[error("lost connection to `{host}`")]
    ConnectionLost {
        /// Host and port.
        host: String,
        /// I/O error reported by the operating system.
        source: io::Error,
    },
    /// The TLS connection failed.
    #[error("TLS connection to `{host}` failed")]
    Tls {
        /// Host and port.
        host: String,
        /// The cause.
        source: io::Error,
    },
    /// The response is too large.
    #[error("response from `{host}` is larger than {limit} bytes")]
    TooLarge {
        /// Host and port.
        host: String,
        /// The limit.
        limit: usize,
    },
    /// The response is not valid HTTP.
    #[error("invalid HTTP response from `{host}`: {what}")]
    Malformed {
        /// Host and port.
        host: String,
        /// The cause.
        what: &'static str,
    },
    /// The server redirects.
    #[error("`{host}` redirects to `{to}`, but redirects are not followed with credentials")]
    Redirected {
        /// Host and port.
        host: String,
        /// The target host.
        to: String,
    },
    /// A header value contains a control character.
    #[error("credential for `{host}` contains a control character")]
    BadHeader {
        /// Host and port.
        host: String,
    },
    /// The proxy rejected the connection, or is no proxy.
    #[error("failed to connect to `{host}` through proxy `{proxy}`")]
    Proxy {
        /// The proxy, without user information.
        proxy: String,
        /// Host and port.
        host: String,
        /// The cause.
        source: ProxyError,
    },
    /// The environment names an invalid proxy.
    #[error("invalid proxy in {variable}")]
    InvalidProxy {
        /// The variable.
        variable: &'static str,
        /// The cause.
        source: ProxyError,
    },
    /// The whole run timed out.
    #[error("exceeded the total timeout of {limit:?}")]
    TotalTimeout {
        /// The timeout.
        limit: Duration,
    },
}

impl HttpError {
    /// Whether a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        use HttpError::{Connect, ConnectionLost, Resolve, TimedOut};
        matches!(self, Resolve { .. } | Connect { .. } | TimedOut { .. } | ConnectionLost { .. })
    }
}

/// Sleeps between attempts; replaced in tests.
pub(crate) trait Sleep: fmt::Debug {
    /// Sleeps for a duration.
    fn sleep(&self, duration: Duration);
}

/// Sleeps the thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadSleep;

impl Sleep for ThreadSleep {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only place that sleeps: there is no event to wait for between attempts"
    )]
    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// The HTTP client of one run.
#[derive(Debug)]
pub(crate) struct RegistryHttpClient {
    clock: Arc<dyn Clock>,
    sleep: Box<dyn Sleep>,
    trust: TlsTrust,
    proxies: Proxies,
    total: Duration,
    started: Duration,
}

impl RegistryHttpClient {
    /// Creates a client whose requests together take at most `total`.
    pub(crate) fn new(
        environment: &Environment,
        clock: Arc<dyn Clock>,
        pause: Box<dyn Sleep>,
        total: Duration,
    ) -> Self {
        let started = clock.monotonic();
        let trust = TlsTrust::from_environment(environment);
        let proxies = Proxies::from_environment(environment);
        RegistryHttpClient { clock, sleep: pause, trust, proxies, total, started }
    }

    /// Sends a request and returns the response with any status. Retries transient failures.
    ///
    /// # Errors
    /// [`HttpError`].
    pub(crate) fn send(&self, request: &HttpRequest, journal: &Journal) -> Result<HttpResponse, HttpError> {
        let proxy = if request.direct { None } else { self.proxies.for_url(&request.url)? };
        let forwarder = proxy.as_ref().filter(|proxy| proxy::forwards(proxy, &request.url));
        let host = request.url.authority();
        let bytes = wire::encode(request, forwarder).ok_or(HttpError::BadHeader { host })?;
        let mut attempt = 1;
        loop {
            let outcome = self.attempt(request, proxy.as_ref(), bytes.expose());
            let retry = match &outcome {
                Ok(response) => response.is_transient() || (request.retry)(response),
                Err(error) => error.is_transient(),
            };
            journal.note("call", describe_attempt(request, &outcome));
            if let Ok(response) = &outcome {
                self.compare_clocks(request, response, journal);
            }
            let pause = BACKOFF.delay(attempt - 1, random_fraction());
            if !retry || attempt >= request.attempts || self.remaining() <= pause {
                return outcome;
            }
            self.sleep.sleep(pause);
            attempt += 1;
        }
    }

    fn attempt(
        &self,
        request: &HttpRequest,
        proxy: Option<&Proxy>,
        bytes: &[u8],
    ) -> Result<HttpResponse, HttpError> {
        let limit = request.timeout.min(self.remaining());
        if limit.is_zero() {
            return Err(HttpError::TotalTimeout { limit: self.total });
        }
        let host = request.url.authority();
        let deadline = dial::Deadline::new(&*self.clock, limit);
        let url = &request.url;
        let mut stream = match proxy {
            Some(proxy) => proxy::connect(proxy, url, &self.trust, deadline)?,
            None => dial::connect(&url.host, url.port, request.connect_to, deadline)?,
        };
        if url.scheme == UrlScheme::Https {
            stream = self.trust.connect(&url.host, request.authorities.as_deref(), stream)?;
        }
        let response = wire::exchange(&mut *stream, bytes, request.max_body_bytes)
            .map_err(|error| http_error_from_wire(error, host.clone(), limit, request.max_body_bytes))?;
        if matches!(response.status, 301 | 302 | 303 | 307 | 308) {
            let to = response.header("location").next().unwrap_or_default();
            let to = HttpUrl::parse(to).map_or_else(|_| "another location".to_owned(), |url| url.authority());
            return Err(HttpError::Redirected { host, to });
        }
        Ok(response)
    }

    fn remaining(&self) -> Duration {
        self.total.saturating_sub(self.clock.monotonic().saturating_sub(self.started))
    }

    fn compare_clocks(&self, request: &HttpRequest, response: &HttpResponse, journal: &Journal) {
        let parser = jiff::fmt::rfc2822::DateTimeParser::new();
        let Some(remote) = response.header("date").next().and_then(|date| parser.parse_timestamp(date).ok())
        else {
            return;
        };
        let skew = self.clock.now().duration_since(remote).unsigned_abs();
        if skew > MAX_CLOCK_SKEW {
            let host = request.url.authority();
            journal.warn(format!("the local clock and the clock of `{host}` differ by {} s", skew.as_secs()));
        }
    }
}

fn describe_attempt(request: &HttpRequest, outcome: &Result<HttpResponse, HttpError>) -> String {
    let what = format!("{} {}", request.method, request.url);
    match outcome {
        Ok(response) => format!("{what}: {}", response.status),
        Err(error) => format!("{what}: {}", navicert_types::error_chain(error)),
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
        // rustls reports its errors with this kind.
        io::ErrorKind::InvalidData => HttpError::Tls { host, source },
        _ => HttpError::ConnectionLost { host, source },
    }
}

#[cfg(test)]
mod tests;
