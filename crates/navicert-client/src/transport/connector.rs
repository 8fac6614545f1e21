//! Opens connections: DNS lookup, socket, proxy and TLS handshake, each with a timeout.
// C182

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use navicert_go::host_port;
use navicert_io::coalescing::CoalescingStream;
use navicert_types::proxy::{Proxy, ProxyError, ProxyScheme};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;

use super::connection_io::{ConnectionIo, ConnectionState, Stream, alert_in};
use super::error::TransportError;
use super::timer::{Timer, with_timeout};
use super::tunnel;

/// Timeouts for opening and keeping connections.
// C182
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Until the socket is connected, including the DNS lookup.
    pub connect: Duration,
    /// Until the TLS handshake is complete, including the proxy's response before it.
    pub handshake: Duration,
    /// The handshake timeout where an external signer signs and a person may have to touch a device.
    // C842
    pub signer_handshake: Duration,
    /// Interval of TCP keep-alive probes on an idle connection.
    pub keepalive: Duration,
    /// How long an idle connection is kept.
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
    /// The name the server's certificate is verified for: the host, or `tls-server-name` if set.
    pub(super) server_name: ServerName<'static>,
    pub(super) proxy: Option<Proxy>,
    /// Rejects loopback and link-local addresses of the server.
    pub(super) public_only: bool,
    pub(super) timeouts: Timeouts,
    pub(super) timer: Arc<dyn Timer>,
}

/// An open connection, ready for HTTP.
pub(super) struct Connected {
    pub(super) io: ConnectionIo,
    pub(super) state: Arc<ConnectionState>,
    pub(super) http2: bool,
}

/// The TLS configurations of a connection; `None` where it is not encrypted.
#[derive(Clone, Copy)]
pub(super) struct TlsConfigs<'a> {
    pub(super) server: Option<&'a Arc<ClientConfig>>,
    /// For an https proxy: without the client certificate, which is for the server only.
    pub(super) proxy: Option<&'a Arc<ClientConfig>>,
    /// Set for external signers: allows one handshake at a time.
    pub(super) handshake_permit: Option<&'a Arc<Semaphore>>,
}

impl Connector {
    /// Opens a connection, encrypted if the server is https.
    pub(super) async fn open(&self, tls: TlsConfigs<'_>) -> Result<Connected, TransportError> {
        let stream: Box<dyn Stream> = match &self.proxy {
            Some(proxy) => self.open_through_proxy(proxy, tls).await?,
            None => Box::new(self.dialer().dial(&self.host, self.port, self.public_only).await?),
        };
        self.open_on(stream, tls).await
    }

    /// Like [`Connector::open`], on a connected socket.
    pub(super) async fn open_on(
        &self,
        stream: Box<dyn Stream>,
        tls: TlsConfigs<'_>,
    ) -> Result<Connected, TransportError> {
        let Some(config) = tls.server else {
            let (io, state) = ConnectionIo::new(stream);
            return Ok(Connected { io, state, http2: false });
        };
        let stream = match tls.handshake_permit {
            Some(permits) => self.handshake_blocking(stream, config, permits).await?,
            None => self.handshake(stream, config, self.server_name.clone()).await?,
        };
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let (io, state) = ConnectionIo::new(Box::new(CoalescingStream::new(stream)));
        Ok(Connected { io, state, http2 })
    }

    /// Connects to the proxy and, for an https server, opens a tunnel through it. The proxy forwards requests for a
    /// plain http server.
    async fn open_through_proxy(
        &self,
        proxy: &Proxy,
        tls: TlsConfigs<'_>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        // The proxy resolves names itself; an IP address can be checked here.
        if self.public_only && self.host.parse().is_ok_and(is_loopback_or_link_local) {
            return Err(TransportError::LocalAddress { host: self.host.clone() });
        }
        let mut stream: Box<dyn Stream> =
            Box::new(self.dialer().dial(proxy.host(), proxy.port(), false).await?);
        if let (ProxyScheme::Https, Some(config)) = (proxy.scheme(), tls.proxy) {
            let name = ServerName::try_from(proxy.host().to_owned()).map_err(|_| {
                proxy_error(proxy, ProxyError::Address("the host is neither a DNS name nor an IP address"))
            })?;
            stream = Box::new(self.handshake(stream, config, name).await?);
        }
        let (host, port) = (&self.host, self.port);
        if proxy.scheme() != ProxyScheme::Socks5 && tls.server.is_none() {
            return Ok(stream);
        }
        let negotiate = tunnel::open(&mut stream, proxy, host, port);
        let limit = self.timeouts.handshake;
        let timed_out = || Err(ProxyError::Io(io::ErrorKind::TimedOut.into()));
        let answer = with_timeout(&*self.timer, limit, negotiate).await.unwrap_or_else(timed_out);
        answer.map_err(|source| proxy_error(proxy, source))?;
        Ok(stream)
    }

    /// A dial of the server, for a connection that is opened later; `None` if there is a proxy.
    pub(super) fn direct_dial(
        &self,
    ) -> Option<impl Future<Output = Result<TcpStream, TransportError>> + Send + 'static> {
        let (dialer, host) = (self.dialer(), self.host.clone());
        let (port, public_only) = (self.port, self.public_only);
        self.proxy.is_none().then_some(async move { dialer.dial(&host, port, public_only).await })
    }

    fn dialer(&self) -> Dialer {
        Dialer { timeouts: self.timeouts, timer: Arc::clone(&self.timer) }
    }

    async fn handshake(
        &self,
        stream: Box<dyn Stream>,
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<TlsStream, TransportError> {
        let server_name = name.to_str().into_owned();
        let handshake = TlsConnector::from(Arc::clone(config)).connect(name, stream);
        match with_timeout(&*self.timer, self.timeouts.handshake, handshake).await {
            Some(outcome) => outcome.map_err(|source| handshake_error(server_name, source)),
            None => Err(TransportError::HandshakeTimeout {
                name: server_name,
                seconds: self.timeouts.handshake.as_secs(),
            }),
        }
    }

    /// A handshake with an external signer. rustls blocks until the signature is there, so it runs on a blocking
    /// thread, one handshake at a time.
    // C843, C845
    async fn handshake_blocking(
        &self,
        stream: Box<dyn Stream>,
        config: &Arc<ClientConfig>,
        permits: &Arc<Semaphore>,
    ) -> Result<TlsStream, TransportError> {
        let (name, limit) = (self.server_name.clone(), self.timeouts.signer_handshake);
        let server_name = name.to_str().into_owned();
        // The semaphore is never closed.
        let permit = Arc::clone(permits).acquire_owned().await.ok();
        let connector = TlsConnector::from(Arc::clone(config));
        let runtime = tokio::runtime::Handle::current();
        let handshake = tokio::task::spawn_blocking(move || {
            // Held until the signer is done, even if the caller has stopped waiting.
            let _permit = permit;
            runtime.block_on(connector.connect(name, stream))
        });
        match with_timeout(&*self.timer, limit, handshake).await {
            Some(Ok(outcome)) => outcome.map_err(|source| {
                signer_error(&source).unwrap_or_else(|| handshake_error(server_name, source))
            }),
            Some(Err(_)) => Err(handshake_error(server_name, io::ErrorKind::Interrupted.into())),
            None => Err(TransportError::HandshakeTimeout { name: server_name, seconds: limit.as_secs() }),
        }
    }
}

/// The error of an external signer that made a handshake fail.
#[cfg(feature = "signer")]
fn signer_error(source: &io::Error) -> Option<TransportError> {
    navicert_signer::tls::sign_error(source).cloned().map(TransportError::Signer)
}

#[cfg(not(feature = "signer"))]
fn signer_error(_: &io::Error) -> Option<TransportError> {
    None
}

/// Opens sockets.
struct Dialer {
    timeouts: Timeouts,
    timer: Arc<dyn Timer>,
}

impl Dialer {
    async fn dial(&self, host: &str, port: u16, public_only: bool) -> Result<TcpStream, TransportError> {
        let address = || host_port::join(host, port);
        let dial = async {
            let found = tokio::net::lookup_host((host, port)).await;
            let lookup = |source| TransportError::Lookup { host: host.to_owned(), source };
            let mut addresses: Vec<SocketAddr> = found.map_err(lookup)?.collect();
            if public_only {
                addresses.retain(|address| !is_loopback_or_link_local(address.ip()));
                if addresses.is_empty() {
                    return Err(TransportError::LocalAddress { host: host.to_owned() });
                }
            }
            let connect = |source| TransportError::Connect { address: address(), source };
            TcpStream::connect(addresses.as_slice()).await.map_err(connect)
        };
        let limit = self.timeouts.connect;
        let timed_out =
            || Err(TransportError::ConnectTimeout { address: address(), seconds: limit.as_secs() });
        let stream = with_timeout(&*self.timer, limit, dial).await.unwrap_or_else(timed_out)?;
        let _ = stream.set_nodelay(true);
        let keepalive = socket2::TcpKeepalive::new()
            .with_time(self.timeouts.keepalive)
            .with_interval(self.timeouts.keepalive);
        // Keep-alive is best effort.
        let _ = socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive);
        Ok(stream)
    }
}

/// Whether an address is loopback, link-local or unspecified.
fn is_loopback_or_link_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local() || address.is_unspecified(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unicast_link_local() || address.is_unspecified()
        }
    }
}

type TlsStream = tokio_rustls::client::TlsStream<Box<dyn Stream>>;

fn handshake_error(name: String, source: io::Error) -> TransportError {
    match alert_in(&source) {
        Some(alert) if super::rejection::is_client_certificate_alert(alert) => {
            TransportError::CertificateRejected { alert: format!("{alert:?}") }
        }
        _ => TransportError::Handshake { name, source },
    }
}

fn proxy_error(proxy: &Proxy, source: ProxyError) -> TransportError {
    TransportError::Proxy { proxy: proxy.address(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_link_local_addresses_are_recognised() {
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
            assert!(is_loopback_or_link_local(text.parse().unwrap()), "{text}");
        }
        for text in ["10.0.0.1", "192.0.2.1", "2001:db8::1", "fd00::1", "::ffff:192.0.2.1"] {
            assert!(!is_loopback_or_link_local(text.parse().unwrap()), "{text}");
        }
    }
}
