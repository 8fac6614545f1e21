//! What a transport is told: where the server is, whom to trust, which way to go, and how to behave.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use navicert_types::Clock;

use super::connector::Timeouts;
use super::error::BuildError;
use super::impersonate::Impersonation;
use super::proxy::{Proxy, ProxyEnvironment};
use super::rotation::Rotation;
use super::server::Server;
use super::timer::{Timer, TokioTimer};
use super::tls::Trust;
use crate::credential::SharedFiles;
use crate::kubeconfig::{Disk, Effective};
use crate::metrics::{Recorder, Unrecorded};

/// How a server is reached.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Base address: scheme, host, port, and perhaps a path that all requests are below.
    pub server: String,
    /// The name the server's certificate is checked for; empty is the address's host.
    pub tls_server_name: String,
    /// Whose word counts for who the server is.
    pub trust: Trust,
    /// The way to the server.
    pub proxy: ProxyChoice,
    /// Whether to ask for compressed answers. They are expanded on the way.
    pub compression: bool,
    /// Whom requests are sent as.
    pub impersonation: Option<Impersonation>,
    /// What becomes of connections in use when the client certificate is replaced.
    pub rotation: Rotation,
    /// Whether a request that was answered with 401 is sent once more with a new credential (C432). If not, the 401 is
    /// the answer, as client-go has it (C430).
    pub retry_unauthorized: bool,
    /// Whether HTTP/2 is offered.
    pub http2: bool,
    /// How many requests are on one HTTP/2 connection before another is opened. A server that allows fewer lets the
    /// others wait; most allow a hundred or more.
    pub http2_streams: usize,
    /// How long an HTTP/2 connection may be silent before the server is asked whether it is there (C149).
    pub http2_read_idle: Duration,
    /// How long the server may take to answer that.
    pub http2_ping_timeout: Duration,
    /// The limits of opening a connection.
    pub timeouts: Timeouts,
    /// Whether loopback and link-local addresses are left alone, whatever name leads to them. A proxy's own address is
    /// not meant: it was configured.
    pub public_only: bool,
    /// How many unused connections are kept (C182).
    pub max_idle: usize,
    /// What a request without a `User-Agent` says.
    pub user_agent: Option<HeaderValue>,
}

/// Which way to the server.
#[derive(Clone, Debug)]
pub enum ProxyChoice {
    /// Straight.
    None,
    /// Always through this one: a `proxy-url` leaves no room for the environment, not even for `NO_PROXY` (C148).
    Always(Proxy),
    /// As the environment says.
    Environment(ProxyEnvironment),
}

/// The variables of the environment that a transport heeds, as values (C148, C149).
#[derive(Clone, Debug)]
pub struct Environment {
    /// The proxy variables.
    pub proxies: ProxyEnvironment,
    /// Whether `DISABLE_HTTP2` is there and not empty.
    pub disable_http2: bool,
    /// `HTTP2_READ_IDLE_TIMEOUT_SECONDS`.
    pub http2_read_idle: Duration,
    /// `HTTP2_PING_TIMEOUT_SECONDS`.
    pub http2_ping_timeout: Duration,
}

impl Default for Environment {
    fn default() -> Self {
        Environment::read(|_| None)
    }
}

impl Environment {
    /// Asks `lookup` for every variable. A number that is none counts as absent.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let seconds = |name: &str, otherwise: u64| {
            let given = lookup(name).and_then(|text| text.parse().ok());
            Duration::from_secs(given.unwrap_or(otherwise))
        };
        Environment {
            disable_http2: lookup("DISABLE_HTTP2").is_some_and(|value| !value.is_empty()),
            http2_read_idle: seconds("HTTP2_READ_IDLE_TIMEOUT_SECONDS", 30),
            http2_ping_timeout: seconds("HTTP2_PING_TIMEOUT_SECONDS", 15),
            proxies: ProxyEnvironment::read(lookup),
        }
    }
}

impl Settings {
    /// For this server, with everything else as usual.
    pub fn new(server: impl Into<String>) -> Self {
        Settings {
            server: server.into(),
            tls_server_name: String::new(),
            trust: Trust::System,
            proxy: ProxyChoice::None,
            compression: true,
            impersonation: None,
            rotation: Rotation::default(),
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
    /// The server's address or the environment's proxy cannot be used.
    pub fn proxy_in_use(&self) -> Result<Option<Proxy>, BuildError> {
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

    /// For the cluster and user that were selected.
    ///
    /// # Errors
    /// A proxy address or something to impersonate cannot be used, or trust is contradictory (C180).
    pub fn of(effective: &Effective, environment: &Environment) -> Result<Self, BuildError> {
        let (cluster, user) = (&effective.cluster, &effective.user);
        let has_authority =
            !cluster.certificate_authority.is_empty() || !cluster.certificate_authority_data.is_empty();
        let trust = if !effective.is_https() {
            Trust::System // Of no account: there is no TLS (C160).
        } else if cluster.insecure_skip_tls_verify && has_authority {
            return Err(BuildError::InsecureWithAuthority);
        } else if cluster.insecure_skip_tls_verify {
            Trust::Insecure
        } else if !cluster.certificate_authority_data.is_empty() {
            Trust::Pem(cluster.certificate_authority_data.clone())
        } else if !cluster.certificate_authority.is_empty() {
            Trust::File(PathBuf::from(&cluster.certificate_authority))
        } else {
            Trust::System
        };
        let proxy = if cluster.proxy_url.is_empty() {
            ProxyChoice::Environment(environment.proxies.clone())
        } else {
            ProxyChoice::Always(Proxy::parse(&cluster.proxy_url)?)
        };
        Ok(Settings {
            tls_server_name: cluster.tls_server_name.clone(),
            trust,
            proxy,
            compression: !cluster.disable_compression,
            impersonation: Impersonation::of(user)?,
            http2: !environment.disable_http2,
            http2_read_idle: environment.http2_read_idle,
            http2_ping_timeout: environment.http2_ping_timeout,
            ..Settings::new(effective.server())
        })
    }
}

/// Where a transport gets time and files from.
#[derive(Clone)]
pub struct Around {
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// How to wait.
    pub timer: Arc<dyn Timer>,
    /// Where the file of a certificate authority is read from.
    pub files: SharedFiles,
    /// Who counts.
    pub recorder: Arc<dyn Recorder>,
}

impl Around {
    /// This machine's, with the runtime's timer.
    pub fn system() -> Self {
        Around {
            clock: Arc::new(navicert_types::SystemClock),
            timer: Arc::new(TokioTimer),
            files: Arc::new(Disk),
            recorder: Arc::new(Unrecorded),
        }
    }
}

impl std::fmt::Debug for Around {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Around").field("clock", &self.clock).finish_non_exhaustive()
    }
}
