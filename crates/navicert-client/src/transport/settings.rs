//! Transport settings: server, trust, proxy, timeouts and behaviour.

use std::time::Duration;

use http::HeaderValue;
use navicert_types::proxy::{Proxy, ProxyEnvironment};

use super::connector::Timeouts;
use super::error::BuildError;
use super::impersonate::Impersonation;
use super::server::Server;
use super::tls::Trust;

/// How a server is reached.
#[derive(Clone, Debug)]
pub struct TransportSettings {
    /// Base URL: scheme, host, port, and optionally a path prefix for all requests.
    pub server: String,
    /// The name the server's certificate is verified for; if empty, the host of the URL.
    pub tls_server_name: String,
    /// Which certificate authorities are trusted.
    pub trust: Trust,
    /// How to choose a proxy.
    pub proxy: ProxyChoice,
    /// Whether to request compressed responses, which are then decompressed.
    pub compression: bool,
    /// Impersonation headers to send.
    pub impersonation: Option<Impersonation>,
    /// How long requests in flight may take to finish when the client certificate is replaced; then they fail with a
    /// retriable error. Zero closes their connections at once, as client-go does.
    // C463, C452
    pub drain_timeout: Duration,
    /// Whether a request rejected with 401 is retried once with a new credential. If not, the 401 is returned, as
    /// client-go does.
    // C432, C430
    pub retry_unauthorized: bool,
    /// Whether to offer HTTP/2.
    pub http2: bool,
    /// Requests in flight on one HTTP/2 connection before another is opened. If the server allows fewer, requests wait;
    /// most servers allow 100 or more.
    pub http2_streams: usize,
    /// How long an HTTP/2 connection may be silent before a PING is sent.
    // C149
    pub http2_read_idle: Duration,
    /// How long the server may take to respond to a PING.
    pub http2_ping_timeout: Duration,
    /// Timeouts for opening and keeping connections.
    pub timeouts: Timeouts,
    /// Whether to reject loopback and link-local addresses, whatever name resolves to them. Does not apply to the
    /// proxy's own address, which is configured.
    pub public_only: bool,
    /// Maximum number of idle connections.
    // C182
    pub max_idle: usize,
    /// `User-Agent` of requests that have none.
    pub user_agent: Option<HeaderValue>,
}

/// How the proxy is chosen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ProxyChoice {
    /// No proxy.
    None,
    /// Always this proxy: a `proxy-url` overrides the environment, including `NO_PROXY`.
    // C148
    Always(Proxy),
    /// As the environment variables say.
    Environment(ProxyEnvironment),
}

/// The environment variables that a transport uses, as values.
// C148, C149
#[derive(Clone, Debug)]
pub(crate) struct TransportEnvironment {
    /// The proxy variables.
    pub proxies: ProxyEnvironment,
    /// Whether `DISABLE_HTTP2` is set and not empty.
    pub disable_http2: bool,
    /// `HTTP2_READ_IDLE_TIMEOUT_SECONDS`.
    pub http2_read_idle: Duration,
    /// `HTTP2_PING_TIMEOUT_SECONDS`.
    pub http2_ping_timeout: Duration,
}

impl Default for TransportEnvironment {
    fn default() -> Self {
        TransportEnvironment::read(|_| None)
    }
}

impl TransportEnvironment {
    /// Reads every variable with `lookup`. An invalid number counts as unset.
    pub(crate) fn read(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let seconds = |name: &str, default: u64| {
            let given = lookup(name).and_then(|text| text.parse().ok());
            Duration::from_secs(given.unwrap_or(default))
        };
        TransportEnvironment {
            disable_http2: lookup("DISABLE_HTTP2").is_some_and(|value| !value.is_empty()),
            http2_read_idle: seconds("HTTP2_READ_IDLE_TIMEOUT_SECONDS", 30),
            http2_ping_timeout: seconds("HTTP2_PING_TIMEOUT_SECONDS", 15),
            proxies: ProxyEnvironment::read(lookup),
        }
    }
}

impl TransportSettings {
    /// Default settings for a server.
    pub fn new(server: impl Into<String>) -> Self {
        TransportSettings {
            server: server.into(),
            tls_server_name: String::new(),
            trust: Trust::System,
            proxy: ProxyChoice::None,
            compression: true,
            impersonation: None,
            drain_timeout: Duration::from_secs(10 * 60),
            retry_unauthorized: true,
            http2: true,
            http2_streams: 100,
            http2_read_idle: Duration::from_secs(30),
            http2_ping_timeout: Duration::from_secs(15),
            timeouts: Timeouts::default(),
            public_only: false,
            max_idle: 25,
            user_agent: Some(HeaderValue::from_static(concat!("navicert/", env!("CARGO_PKG_VERSION")))),
        }
    }

    /// The proxy that requests go through, if any.
    ///
    /// # Errors
    /// The server address or the environment's proxy address is invalid.
    pub(crate) fn proxy_in_use(&self) -> Result<Option<Proxy>, BuildError> {
        self.proxy_to(&Server::parse(&self.server, &self.tls_server_name)?)
    }

    pub(super) fn proxy_to(&self, server: &Server) -> Result<Option<Proxy>, BuildError> {
        match &self.proxy {
            ProxyChoice::None => Ok(None),
            ProxyChoice::Always(proxy) => Ok(Some(proxy.clone())),
            ProxyChoice::Environment(environment) => {
                Ok(environment.proxy_for(server.is_https(), &server.host, server.port)?)
            }
        }
    }
}
