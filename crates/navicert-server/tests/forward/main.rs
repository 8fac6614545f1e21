//! Forwarding over real sockets, with an authentication step like the proxy's: headers, streams, upgrades, shutdown.

#![expect(clippy::unwrap_used, reason = "helpers of tests; a broken set-up should stop the test")]

mod shapes;
mod streams;
mod upgrades;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::{Request, Response, request};
use hyper::body::Incoming;
use navicert_client::ClientContext;
use navicert_client::credential::{Credential, StaticCredential};
use navicert_client::transport::{Transport, TransportSettings, Trust};
use navicert_server::forward::ForwardRules;
use navicert_server::listener::{self, Handler, Peer, Security, Socket};
use navicert_server::metrics::ListenerMetrics;
use navicert_server::{Forwarder, Identify, Problem, ReplyBody, ServerLimits, UpstreamIdentity};
use navicert_testkit::net::raw::status;
use navicert_testkit::{ApiServer, Ca, RawClient};
use navicert_types::SystemClock;
use tokio::sync::watch;

/// Credential of the proxy for the API server.
const OWN: &str = "the-proxys-own-token";
/// Token of the clients.
const GOOD: &str = "the-clients-token";

/// A proxy between a client and an API server.
struct Proxy {
    ca: Ca,
    api: ApiServer,
    address: SocketAddr,
    _stop: watch::Sender<bool>,
}

/// Authenticates clients with the token as a user with two groups.
struct Ann(Forwarder);

impl Identify for Ann {
    async fn identify(&self, head: &request::Parts) -> Result<UpstreamIdentity, Problem> {
        if head.headers.get(AUTHORIZATION).is_none_or(|value| value != &format!("Bearer {GOOD}")) {
            return Err(Problem::Unauthorized);
        }
        let header = |name: &'static str, value: &'static str| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        Ok(UpstreamIdentity::with_headers(vec![
            header("impersonate-user", "ann"),
            header("impersonate-group", "dev"),
            header("impersonate-group", "a,b"),
        ]))
    }
}

impl Handler for Ann {
    async fn handle(&self, request: Request<Incoming>, peer: &Peer) -> Response<ReplyBody> {
        *self.0.forward(request.into(), self, peer.admission()).await
    }
}

impl Proxy {
    fn start() -> Self {
        Proxy::start_with(ForwardRules::default(), ServerLimits::default(), |settings| settings)
    }

    fn start_with(
        rules: ForwardRules,
        limits: ServerLimits,
        change: impl FnOnce(TransportSettings) -> TransportSettings,
    ) -> Self {
        let ca = Ca::new("forward");
        let api = ApiServer::start(&ca);
        api.accept_token(OWN, "proxy", &[]);
        let settings = change(TransportSettings {
            trust: Trust::Pem(ca.pem().into_bytes()),
            compression: false,
            ..TransportSettings::new(api.url())
        });
        let mut own = HeaderValue::from_str(&format!("Bearer {OWN}")).unwrap();
        own.set_sensitive(true);
        let credential = Credential { authorization: Some(own), ..Credential::anonymous() };
        let upstream =
            Transport::new(settings, Arc::new(StaticCredential::new(credential)), ClientContext::system())
                .unwrap();
        let handler = Arc::new(Ann(Forwarder::new(upstream, rules)));
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let traffic = ListenerMetrics::new("proxy", Arc::new(SystemClock));
        let socket = Socket {
            listener: tcp,
            security: Security::fixed(ca.server().issue().server_config(&["h2", "http/1.1"])),
            limits,
            metrics: traffic,
        };
        tokio::spawn(listener::serve(socket, handler, stopped));
        Proxy { ca, api, address, _stop: stop }
    }

    /// A fresh HTTP/1.1 connection.
    async fn raw(&self) -> RawClient {
        RawClient::connect_tls(self.address, &self.ca, None, &["http/1.1"]).await
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// A request head with `Host`, `Authorization` and these lines.
    fn head(&self, request: &str, lines: &[&str]) -> String {
        let own = [format!("Host: {}", self.address), format!("Authorization: Bearer {GOOD}")];
        let lines = own.iter().map(String::as_str).chain(lines.iter().copied());
        let lines: String = lines.map(|line| format!("{line}\r\n")).collect();
        format!("{request} HTTP/1.1\r\n{lines}\r\n")
    }
}
