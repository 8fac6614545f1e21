//! Forwarding over real sockets, with an identity step of the kind a proxy has: shapes, streams, upgrades, ends.

#![expect(clippy::unwrap_used, reason = "helpers of tests; a broken set-up should stop the test")]

mod shapes;
mod streams;
mod upgrades;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::{Request, Response, request};
use hyper::body::Incoming;
use navicert_client::credential::{Credential, Fixed};
use navicert_client::transport::{Around, Settings, Transport, Trust};
use navicert_server::forward::Rules;
use navicert_server::listener::{self, Handler, Peer, Security, Socket};
use navicert_server::metrics::Traffic;
use navicert_server::{Forwarder, Identify, Identity, Limits, Problem, ReplyBody};
use navicert_testkit::raw::status;
use navicert_testkit::{ApiServer, Ca, RawClient};
use navicert_types::SystemClock;
use tokio::sync::watch;

/// What the proxy itself shows the API server.
const OWN: &str = "the-proxys-own-token";
/// What clients show the proxy.
const GOOD: &str = "the-clients-token";

/// A proxy between a client and an API server.
struct Proxy {
    ca: Ca,
    api: ApiServer,
    address: SocketAddr,
    _stop: watch::Sender<bool>,
}

/// Clients with the token pass, as a user and two groups.
struct Ann(Forwarder);

impl Identify for Ann {
    async fn identify(&self, head: &request::Parts) -> Result<Identity, Problem> {
        if head.headers.get(AUTHORIZATION).is_none_or(|value| value != &format!("Bearer {GOOD}")) {
            return Err(Problem::Unauthorized);
        }
        let header = |name: &'static str, value: &'static str| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        Ok(Identity::with_headers(vec![
            header("impersonate-user", "ann"),
            header("impersonate-group", "dev"),
            header("impersonate-group", "a,b"),
        ]))
    }
}

impl Handler for Ann {
    async fn handle(&self, request: Request<Incoming>, _: &Peer) -> Response<ReplyBody> {
        *self.0.forward(request.into(), self).await
    }
}

impl Proxy {
    fn start() -> Self {
        Proxy::start_with(Rules::default(), Limits::default(), |settings| settings)
    }

    fn start_with(rules: Rules, limits: Limits, change: impl FnOnce(Settings) -> Settings) -> Self {
        let ca = Ca::new("forward");
        let api = ApiServer::start(&ca);
        api.accept_token(OWN, "proxy", &[]);
        let settings = change(Settings {
            trust: Trust::Pem(ca.pem().into_bytes()),
            compression: false,
            ..Settings::new(api.url())
        });
        let mut own = HeaderValue::from_str(&format!("Bearer {OWN}")).unwrap();
        own.set_sensitive(true);
        let credential = Credential { authorization: Some(own), ..Credential::anonymous() };
        let upstream = Transport::new(settings, Arc::new(Fixed::new(credential)), Around::system()).unwrap();
        let handler = Arc::new(Ann(Forwarder::new(upstream, rules)));
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let traffic = Traffic::new("proxy", Arc::new(SystemClock));
        let socket = Socket {
            listener: tcp,
            security: Security::fixed(ca.server().issue().server_config(&["h2", "http/1.1"])),
            limits,
            traffic,
        };
        tokio::spawn(listener::serve(socket, handler, stopped));
        Proxy { ca, api, address, _stop: stop }
    }

    /// An HTTP/1.1 connection with nothing on it.
    async fn raw(&self) -> RawClient {
        RawClient::connect_tls(self.address, &self.ca, None, &["http/1.1"]).await
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// A request line, `Host` and `Authorization`, these lines, and the end of the head.
    fn head(&self, request: &str, lines: &[&str]) -> String {
        let own = [format!("Host: {}", self.address), format!("Authorization: Bearer {GOOD}")];
        let lines = own.iter().map(String::as_str).chain(lines.iter().copied());
        let lines: String = lines.map(|line| format!("{line}\r\n")).collect();
        format!("{request} HTTP/1.1\r\n{lines}\r\n")
    }
}
