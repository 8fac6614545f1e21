//! The settings of a server, from their defaults to the moment it listens.

use std::fmt;
use std::sync::{Arc, Mutex};

use navicert_types::Clock;
use rustls::SupportedProtocolVersion;
use tokio::sync::{mpsc, watch};

use super::HttpServer;
use super::accept::{self, Port, Reception};
use super::record::{Log, Request};
use super::rules::{Choice, Rules};
use super::state::Shared;
use super::tls::{ClientAuth, TlsSettings};
use crate::net::answer::Answer;
use crate::net::background::Background;
use crate::pki::ca::{Ca, Identity};

/// The settings of a server about to start.
#[must_use = "nothing listens before `start`"]
pub struct HttpServerBuilder {
    identity: Option<Identity>,
    settings: TlsSettings,
    otherwise: Choice,
}

impl Default for HttpServerBuilder {
    fn default() -> Self {
        HttpServerBuilder {
            identity: None,
            settings: TlsSettings {
                client_auth: ClientAuth::None,
                versions: vec![&rustls::version::TLS13, &rustls::version::TLS12],
                protocols: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
                resumption: true,
                clock: None,
                refusal: Arc::default(),
            },
            otherwise: Choice::Fixed(Box::new(Answer::status(404))),
        }
    }
}

impl HttpServerBuilder {
    /// Presents this certificate rather than one for loopback.
    pub fn identity(mut self, identity: &Identity) -> Self {
        self.identity = Some(identity.clone());
        self
    }

    /// What it does about client certificates; it does not ask for any otherwise.
    pub fn client_auth(mut self, client_auth: ClientAuth) -> Self {
        self.settings.client_auth = client_auth;
        self
    }

    /// Speaks these versions of TLS alone; 1.2 and 1.3 otherwise.
    pub fn tls_versions(mut self, versions: &[&'static SupportedProtocolVersion]) -> Self {
        self.settings.versions = versions.to_vec();
        self
    }

    /// Offers HTTP/1.1 alone; HTTP/2 as well otherwise.
    pub fn http1_only(mut self) -> Self {
        self.settings.protocols = vec![b"http/1.1".to_vec()];
        self
    }

    /// Never resumes a TLS session.
    pub fn without_resumption(mut self) -> Self {
        self.settings.resumption = false;
        self
    }

    /// Judges client certificates by this clock rather than the machine's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.settings.clock = Some(clock);
        self
    }

    /// The answer for paths without an [`HttpServer::answer`].
    pub fn otherwise(mut self, choose: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        self.otherwise = Choice::Chosen(Arc::new(choose));
        self
    }

    /// Starts it with TLS; without an [`identity`](Self::identity) it gets one for loopback from `ca`.
    pub fn start(self, ca: &Ca) -> HttpServer {
        let identity = self.identity.clone().unwrap_or_else(|| ca.server().issue());
        self.run(Some(&identity))
    }

    /// Starts it without TLS.
    pub fn start_plain(self) -> HttpServer {
        self.run(None)
    }

    fn run(self, identity: Option<&Identity>) -> HttpServer {
        let background = Background::start("test server");
        let port = Port::reserve().expect("a free loopback port");
        let address = port.address();
        let listener = {
            let _inside = background.handle().enter();
            port.listen().expect("to listen on a port just reserved")
        };
        let shared = Arc::new(Shared {
            log: watch::Sender::new(Log::default()),
            rules: Mutex::new(Rules::new(self.otherwise)),
            reception: watch::Sender::new(Reception::Serve),
            tls: Mutex::new(identity.map(|identity| self.settings.config(identity))),
            cuts: Mutex::default(),
        });
        let (orders, receiver) = mpsc::unbounded_channel();
        background.spawn(accept::accept(port, listener, receiver, Arc::clone(&shared)));
        let scheme = if identity.is_some() { "https" } else { "http" };
        HttpServer { address, scheme, shared, settings: self.settings, orders, _background: background }
    }
}

impl fmt::Debug for HttpServerBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpServerBuilder").field("settings", &self.settings).finish_non_exhaustive()
    }
}
