//! From nothing to a connection: name, socket, proxy, TLS, each with its limit (client-credentials.md C182).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;

use super::error::TransportError;
use super::line::{Line, LineState, Stream, alert_in};
use super::proxy::{self, Proxy, ProxyError, Scheme};
use super::timer::{Timer, within};
use crate::piecewise::Piecewise;

/// The limits of opening a connection, and what keeps it (C182).
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Until the socket is connected, the name's look-up included.
    pub connect: Duration,
    /// Until TLS is agreed on, with the proxy's answer before it.
    pub handshake: Duration,
    /// The same where another program signs, and a human may have to touch a device (C842).
    pub signer_handshake: Duration,
    /// Between two questions whether an idle peer is still there.
    pub keepalive: Duration,
    /// How long an unused connection is kept.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(30),
            handshake: Duration::from_secs(10),
            signer_handshake: Duration::from_secs(60),
            keepalive: Duration::from_secs(30),
            idle: Duration::from_secs(90),
        }
    }
}

/// Opens connections to one server.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) host: String,
    pub(super) port: u16,
    /// The name the server's certificate is checked for; the host unless `tls-server-name` says otherwise.
    pub(super) server_name: ServerName<'static>,
    pub(super) proxy: Option<Proxy>,
    /// The server may not be on this machine or its own link.
    pub(super) public_only: bool,
    pub(super) timeouts: Timeouts,
    pub(super) timer: Arc<dyn Timer>,
}

/// A connection, ready for HTTP.
pub(super) struct Connected {
    pub(super) line: Line,
    pub(super) state: Arc<LineState>,
    pub(super) http2: bool,
}

/// The configurations a connection needs, where it is encrypted.
#[derive(Clone, Copy)]
pub(super) struct Encryption<'a> {
    pub(super) server: Option<&'a Arc<ClientConfig>>,
    /// For an https proxy: without our certificate, which is not for the proxy.
    pub(super) proxy: Option<&'a Arc<ClientConfig>>,
    /// Where another program signs: whose turn it is.
    pub(super) turn: Option<&'a Arc<Semaphore>>,
}

impl Connector {
    /// Opens a connection; plain where there is no encryption.
    pub(super) async fn open(&self, encryption: Encryption<'_>) -> Result<Connected, TransportError> {
        let stream: Box<dyn Stream> = match &self.proxy {
            Some(proxy) => self.through(proxy, encryption).await?,
            None => Box::new(self.dialer().dial(&self.host, self.port, self.public_only).await?),
        };
        self.open_on(stream, encryption).await
    }

    /// The same on a socket that is connected already.
    pub(super) async fn open_on(
        &self,
        stream: Box<dyn Stream>,
        encryption: Encryption<'_>,
    ) -> Result<Connected, TransportError> {
        let Some(config) = encryption.server else {
            let (line, state) = Line::new(stream);
            return Ok(Connected { line, state, http2: false });
        };
        let stream = match encryption.turn {
            Some(turn) => self.encrypt_elsewhere(stream, config, turn).await?,
            None => self.encrypt(stream, config, self.server_name.clone()).await?,
        };
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let (line, state) = Line::new(Box::new(Piecewise::new(stream)));
        Ok(Connected { line, state, http2 })
    }

    /// To the proxy, and if the server is encrypted, through it. A plain server's requests are the proxy's to forward.
    async fn through(
        &self,
        proxy: &Proxy,
        encryption: Encryption<'_>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        // The proxy looks names up itself; what needs no looking up can be judged here.
        if self.public_only && self.host.parse().is_ok_and(is_private) {
            return Err(TransportError::PrivateAddress { host: self.host.clone() });
        }
        let mut stream: Box<dyn Stream> = Box::new(self.dialer().dial(&proxy.host, proxy.port, false).await?);
        if let (Scheme::Https, Some(config)) = (proxy.scheme, encryption.proxy) {
            let name = ServerName::try_from(proxy.host.clone()).map_err(|_| {
                failed(proxy, ProxyError::Address("its host is neither a DNS name nor an IP address"))
            })?;
            stream = Box::new(self.encrypt(stream, config, name).await?);
        }
        let (host, port) = (&self.host, self.port);
        let ask = async {
            match proxy.scheme {
                Scheme::Socks5 => proxy::socks5(&mut stream, proxy, host, port).await,
                _ if encryption.server.is_some() => proxy::connect(&mut stream, proxy, host, port).await,
                _ => Ok(()),
            }
        };
        let limit = self.timeouts.handshake;
        let late = || Err(ProxyError::Io(io::ErrorKind::TimedOut.into()));
        let answer = within(&*self.timer, limit, ask).await.unwrap_or_else(late);
        answer.map_err(|source| failed(proxy, source))?;
        Ok(stream)
    }

    /// Dials the server itself, for a connection that is opened later; `None` where a proxy has to be asked first.
    pub(super) fn ahead(
        &self,
    ) -> Option<impl Future<Output = Result<TcpStream, TransportError>> + Send + 'static> {
        let (dialer, host) = (self.dialer(), self.host.clone());
        let (port, public_only) = (self.port, self.public_only);
        self.proxy.is_none().then_some(async move { dialer.dial(&host, port, public_only).await })
    }

    fn dialer(&self) -> Dialer {
        Dialer { timeouts: self.timeouts, timer: Arc::clone(&self.timer) }
    }

    async fn encrypt(
        &self,
        stream: Box<dyn Stream>,
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<TlsStream, TransportError> {
        let shown = name.to_str().into_owned();
        let handshake = TlsConnector::from(Arc::clone(config)).connect(name, stream);
        match within(&*self.timer, self.timeouts.handshake, handshake).await {
            Some(agreed) => agreed.map_err(|source| refused(shown, source)),
            None => Err(TransportError::HandshakeTimeout {
                name: shown,
                seconds: self.timeouts.handshake.as_secs(),
            }),
        }
    }

    /// A handshake in which another program signs. rustls waits for the signature, so it is driven from a thread that
    /// may block (C843), one at a time (C845).
    async fn encrypt_elsewhere(
        &self,
        stream: Box<dyn Stream>,
        config: &Arc<ClientConfig>,
        turn: &Arc<Semaphore>,
    ) -> Result<TlsStream, TransportError> {
        let (name, limit) = (self.server_name.clone(), self.timeouts.signer_handshake);
        let shown = name.to_str().into_owned();
        // Never closed.
        let permit = Arc::clone(turn).acquire_owned().await.ok();
        let connector = TlsConnector::from(Arc::clone(config));
        let runtime = tokio::runtime::Handle::current();
        let handshake = tokio::task::spawn_blocking(move || {
            // Held until the signer is done, also if nobody waits any more.
            let _permit = permit;
            runtime.block_on(connector.connect(name, stream))
        });
        match within(&*self.timer, limit, handshake).await {
            Some(Ok(agreed)) => agreed.map_err(|source| match navicert_signer::tls::sign_error(&source) {
                Some(error) => TransportError::Signer(error.clone()),
                None => refused(shown, source),
            }),
            Some(Err(_)) => Err(refused(shown, io::ErrorKind::Interrupted.into())),
            None => Err(TransportError::HandshakeTimeout { name: shown, seconds: limit.as_secs() }),
        }
    }
}

/// Connects sockets.
struct Dialer {
    timeouts: Timeouts,
    timer: Arc<dyn Timer>,
}

impl Dialer {
    async fn dial(&self, host: &str, port: u16, public_only: bool) -> Result<TcpStream, TransportError> {
        let address = || proxy::join(host, port);
        let dial = async {
            let found = tokio::net::lookup_host((host, port)).await;
            let lookup = |source| TransportError::Lookup { host: host.to_owned(), source };
            let mut addresses: Vec<SocketAddr> = found.map_err(lookup)?.collect();
            if public_only {
                addresses.retain(|address| !is_private(address.ip()));
                if addresses.is_empty() {
                    return Err(TransportError::PrivateAddress { host: host.to_owned() });
                }
            }
            let connect = |source| TransportError::Connect { address: address(), source };
            TcpStream::connect(addresses.as_slice()).await.map_err(connect)
        };
        let limit = self.timeouts.connect;
        let late = || Err(TransportError::ConnectTimeout { address: address(), seconds: limit.as_secs() });
        let stream = within(&*self.timer, limit, dial).await.unwrap_or_else(late)?;
        let _ = stream.set_nodelay(true);
        let keepalive = socket2::TcpKeepalive::new()
            .with_time(self.timeouts.keepalive)
            .with_interval(self.timeouts.keepalive);
        // A socket that cannot be asked to do this works all the same.
        let _ = socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive);
        Ok(stream)
    }
}

/// This machine, or its own network link.
fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local() || address.is_unspecified(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unicast_link_local() || address.is_unspecified()
        }
    }
}

type TlsStream = tokio_rustls::client::TlsStream<Box<dyn Stream>>;

fn refused(name: String, source: io::Error) -> TransportError {
    match alert_in(&source) {
        Some(alert) if super::unauthorized::is_about_us(alert) => {
            TransportError::CertificateRefused { alert: format!("{alert:?}") }
        }
        _ => TransportError::Handshake { name, source },
    }
}

fn failed(proxy: &Proxy, source: ProxyError) -> TransportError {
    TransportError::Proxy { proxy: proxy.address(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_and_its_own_link_are_private() {
        for text in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "169.254.169.254",
            "::1",
            "::",
            "fe80::1",
            "::ffff:127.0.0.1",
        ] {
            assert!(is_private(text.parse().unwrap()), "{text}");
        }
        for text in ["10.0.0.1", "192.0.2.1", "2001:db8::1", "fd00::1", "::ffff:192.0.2.1"] {
            assert!(!is_private(text.parse().unwrap()), "{text}");
        }
    }
}
