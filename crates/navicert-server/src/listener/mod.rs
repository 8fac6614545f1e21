//! Accepts connections and serves HTTP/1.1 and HTTP/2 over them, with TLS, limits and graceful shutdown.
//!
//! ```text
//! accept ──▶ admit ──▶ TLS ──▶ strict_http1 (HTTP/1.1) ──▶ hyper ──▶ Handler
//! ```

mod connection_slots;
mod proxy_protocol;
mod response_body;
mod strict_http1;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use navicert_client::coalescing::CoalescingStream;
use navicert_client::repoll::poll_until_parked;
use navicert_client::wake_gate::PollOnWake;
use rustls::ServerConfig;
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::forward::ReplyBody;
use crate::limits::{InFlight, ServerLimits};
use crate::metrics::ListenerMetrics;
use crate::problem::Problem;
use connection_slots::{ConnectionSlots, MIN_IDLE, SlotState};
use response_body::TrackedBody;
use strict_http1::StrictHttp1;

/// Interval of TCP keep-alive probes and HTTP/2 pings.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// Pause after a failed accept.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Time that an idle HTTP/1.1 connection has to shut down.
const IDLE_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Response extension that closes the connection after this response: `Connection: close` in HTTP/1.1, `GOAWAY` in
/// HTTP/2.
// S274
#[derive(Clone, Copy, Debug)]
pub struct CloseConnection;

/// Remote end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Source address.
    pub address: SocketAddr,
    /// Client certificate chain, leaf first; empty without client authentication.
    pub certificates: Vec<CertificateDer<'static>>,
    names: OnceLock<Vec<String>>,
}

impl Peer {
    /// A peer with this address and certificate chain.
    pub fn new(address: SocketAddr, certificates: Vec<CertificateDer<'static>>) -> Self {
        Peer { address, certificates, names: OnceLock::new() }
    }

    /// Common name and DNS names of the client certificate; `None` without a certificate.
    pub fn names(&self) -> Option<&[String]> {
        let own = self.certificates.first()?;
        Some(self.names.get_or_init(|| names(own)))
    }
}

fn names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return Vec::new() };
    let common = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    let mut names: Vec<String> = common.map(str::to_owned).collect();
    if let Ok(Some(alternative)) = parsed.subject_alternative_name() {
        names.extend(alternative.value.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        }));
    }
    names
}

/// Handles the requests of a listener.
pub trait Handler: Send + Sync + 'static {
    /// Whether to accept connections from this peer. Called before any byte is read.
    fn admits(&self, peer: SocketAddr, local: SocketAddr) -> bool {
        let _ = (peer, local);
        true
    }

    /// Whether every connection starts with a PROXY protocol header.
    fn has_proxy_protocol(&self) -> bool {
        false
    }

    /// Responds to a request. The future is dropped when the client disconnects first.
    fn handle(
        &self,
        request: Request<Incoming>,
        peer: &Peer,
    ) -> impl Future<Output = Response<ReplyBody>> + Send;

    /// Response to a request above the in-flight limit.
    fn overloaded(&self) -> Response<ReplyBody> {
        Problem::TooManyRequests.response()
    }
}

/// Transport security of a listener.
#[derive(Clone, Debug)]
pub enum Security {
    /// Plain text. For loopback and for endpoints without secrets.
    Plain,
    /// TLS. A stored configuration applies to connections accepted from then on.
    Tls(Arc<ArcSwap<ServerConfig>>),
}

impl Security {
    /// TLS with a fixed configuration.
    pub fn fixed(config: Arc<ServerConfig>) -> Self {
        Security::Tls(Arc::new(ArcSwap::new(config)))
    }
}

/// A listening socket and its settings.
#[derive(Debug)]
pub struct Socket {
    /// The listening socket.
    pub listener: std::net::TcpListener,
    /// Transport security.
    pub security: Security,
    /// Connection and request limits.
    pub limits: ServerLimits,
    /// Metrics of this listener.
    pub metrics: Arc<ListenerMetrics>,
}

/// Serves until `stop` becomes `true`, then waits for in-flight requests. Drop the runtime to end streams that do not
/// finish.
///
/// # Errors
/// The socket cannot be registered with the runtime.
pub async fn serve<H: Handler>(
    socket: Socket,
    handler: Arc<H>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let Socket { listener, security, limits, metrics } = socket;
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let in_flight = InFlight::new(limits.requests);
    let serving = ConnectionServer { limits, security, in_flight, metrics, stop };
    let slots = ConnectionSlots::new(limits.connections, MIN_IDLE, Arc::clone(&serving.metrics));
    let mut stopping = serving.stop.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Either the peer has gone already, or file descriptors are exhausted and closing an idle connection
                // frees one.
                tracing::warn!(event = "connection_accept_failed", %error, "failed to accept connection");
                if error.kind() != io::ErrorKind::ConnectionAborted {
                    slots.evict_if_crowded();
                    let _ =
                        tokio::time::timeout(ACCEPT_RETRY_INTERVAL, stopping.wait_for(|stop| *stop)).await;
                }
                continue;
            }
        };
        let slot = tokio::select! {
            slot = slots.acquire() => slot,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        let (serving, handler) = (serving.clone(), Arc::clone(&handler));
        tokio::spawn(async move {
            let metrics = Arc::clone(&serving.metrics);
            let _open = metrics.connection_opened();
            tokio::select! {
                biased;
                () = serving.serve_connection(stream, peer, handler, slot.state()) => {}
                () = PollOnWake::new(slot.state().evicted()) => {}
            }
            drop(slot);
        });
    }
    drop(listener);
    slots.wait_until_empty().await;
    Ok(())
}

#[derive(Clone)]
struct ConnectionServer {
    limits: ServerLimits,
    security: Security,
    in_flight: InFlight,
    metrics: Arc<ListenerMetrics>,
    stop: watch::Receiver<bool>,
}

impl ConnectionServer {
    async fn serve_connection<H: Handler>(
        self,
        mut stream: TcpStream,
        peer: SocketAddr,
        handler: Arc<H>,
        slot: &Arc<SlotState>,
    ) {
        let Ok(local) = stream.local_addr() else { return };
        if !handler.admits(peer, local) {
            tracing::warn!(event = "peer_rejected", %peer, "rejected connection: peer is not allowed");
            return;
        }
        let _ = stream.set_nodelay(true);
        let keepalive =
            socket2::TcpKeepalive::new().with_time(KEEPALIVE_INTERVAL).with_interval(KEEPALIVE_INTERVAL);
        let _ = socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive);
        let peer = match self.source_address(&mut stream, peer, &*handler).await {
            Ok(peer) => peer,
            Err(error) => {
                return tracing::debug!(
                    event = "proxy_protocol_failed",
                    %peer,
                    %error,
                    "failed to read PROXY protocol header"
                );
            }
        };
        let outcome = match &self.security {
            Security::Plain => {
                let service = self.service(handler, Peer::new(peer, Vec::new()), slot);
                self.serve_http1(stream, service).await
            }
            Security::Tls(config) => {
                let acceptor = TlsAcceptor::from(config.load_full());
                self.serve_tls(stream, acceptor, peer, handler, slot).await
            }
        };
        if let Err(error) = outcome {
            tracing::debug!(event = "connection_failed", %error, "connection closed with an error");
        }
    }

    /// Source address of the connection, from the PROXY protocol header if the handler expects one.
    async fn source_address<H: Handler>(
        &self,
        stream: &mut TcpStream,
        peer: SocketAddr,
        handler: &H,
    ) -> io::Result<SocketAddr> {
        if !handler.has_proxy_protocol() {
            return Ok(peer);
        }
        let read = tokio::time::timeout(self.limits.handshake_timeout, proxy_protocol::read(stream)).await;
        Ok(read.map_err(|_| io::ErrorKind::TimedOut)??.unwrap_or(peer))
    }

    async fn serve_tls<H: Handler>(
        self,
        stream: TcpStream,
        acceptor: TlsAcceptor,
        peer: SocketAddr,
        handler: Arc<H>,
        slot: &Arc<SlotState>,
    ) -> hyper::Result<()> {
        let stream = match tokio::time::timeout(self.limits.handshake_timeout, acceptor.accept(stream)).await
        {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                self.metrics.handshake_failed();
                tracing::debug!(event = "tls_handshake_failed", %peer, %error, "TLS handshake failed");
                return Ok(());
            }
            Err(_) => {
                self.metrics.handshake_failed();
                tracing::debug!(event = "tls_handshake_timeout", %peer, "TLS handshake timed out");
                return Ok(());
            }
        };
        let session = stream.get_ref().1;
        let is_http2 = session.alpn_protocol() == Some(b"h2");
        let certificates = session.peer_certificates().unwrap_or_default();
        let certificates = certificates.iter().map(|certificate| certificate.clone().into_owned()).collect();
        let service = self.service(handler, Peer::new(peer, certificates), slot);
        match is_http2 {
            true => self.serve_http2(stream, service).await,
            false => self.serve_http1(CoalescingStream::new(stream), service).await,
        }
    }

    fn service<H>(&self, handler: Arc<H>, peer: Peer, slot: &Arc<SlotState>) -> Arc<ConnectionService<H>> {
        let (in_flight, metrics) = (self.in_flight.clone(), Arc::clone(&self.metrics));
        let (slot, goaway) = (Arc::clone(slot), Notify::new());
        Arc::new(ConnectionService { handler, in_flight, metrics, peer, slot, goaway })
    }

    async fn serve_http1<H: Handler>(
        mut self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        service: Arc<ConnectionService<H>>,
    ) -> hyper::Result<()> {
        let limits = self.limits;
        let slot = Arc::clone(&service.slot);
        let respond = service_fn(move |request| Arc::clone(&service).respond(request));
        let connection = hyper::server::conn::http1::Builder::new()
            // hyper would create a timer per request; the slot already records idle time.
            .header_read_timeout(None)
            .max_buf_size(limits.header_bytes.max(8 * 1024))
            .max_headers(limits.header_lines)
            .serve_connection(TokioIo::new(StrictHttp1::new(stream, limits.header_bytes)), respond)
            .with_upgrades();
        tokio::pin!(connection);
        let is_idle = tokio::select! {
            biased;
            outcome = poll_until_parked(connection.as_mut()) => return outcome,
            _ = PollOnWake::new(self.stop.wait_for(|stop| *stop)) => false,
            () = PollOnWake::new(slot.idle_for(limits.header_timeout)) => true,
        };
        connection.as_mut().graceful_shutdown();
        match is_idle {
            true => close_idle(connection, &slot, IDLE_SHUTDOWN_TIMEOUT).await,
            false => connection.await,
        }
    }

    async fn serve_http2<H: Handler>(
        mut self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        service: Arc<ConnectionService<H>>,
    ) -> hyper::Result<()> {
        let limits = self.limits;
        let service_handle = Arc::clone(&service);
        let respond = service_fn(move |request| Arc::clone(&service).respond(request));
        let head = u32::try_from(limits.header_bytes).unwrap_or(u32::MAX);
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.http2_streams)
            .max_header_list_size(head)
            .keep_alive_interval(KEEPALIVE_INTERVAL)
            .adaptive_window(true)
            .serve_connection(TokioIo::new(stream), respond);
        tokio::pin!(connection);
        let is_idle = tokio::select! {
            outcome = connection.as_mut() => return outcome,
            _ = self.stop.wait_for(|stop| *stop) => false,
            () = service_handle.goaway.notified() => false,
            // hyper has no idle timeout for HTTP/2, not even before the first request.
            () = service_handle.slot.idle_for(limits.header_timeout) => true,
        };
        connection.as_mut().graceful_shutdown();
        match is_idle {
            true => close_idle(connection, &service_handle.slot, limits.handshake_timeout).await,
            false => connection.await,
        }
    }
}

/// Waits for a connection to shut down, at most `timeout` once it is idle.
async fn close_idle(
    mut connection: Pin<&mut impl Future<Output = hyper::Result<()>>>,
    slot: &SlotState,
    timeout: Duration,
) -> hyper::Result<()> {
    loop {
        match tokio::time::timeout(timeout, connection.as_mut()).await {
            Ok(outcome) => return outcome,
            Err(_) if slot.is_idle() => return Ok(()),
            // A request arrived during the shutdown.
            Err(_) => {}
        }
    }
}

/// Serves the requests of one connection. One value per connection, so requests do not update shared reference
/// counts.
struct ConnectionService<H> {
    handler: Arc<H>,
    in_flight: InFlight,
    metrics: Arc<ListenerMetrics>,
    peer: Peer,
    /// Activity of the connection.
    slot: Arc<SlotState>,
    /// Notified when an HTTP/2 connection should send `GOAWAY`.
    goaway: Notify,
}

impl<H: Handler> ConnectionService<H> {
    /// Handles one request, if the in-flight limit allows it. A single function, because each layer would move the
    /// request again.
    async fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<TrackedBody>, Infallible> {
        let active = self.slot.begin_request();
        let in_flight_request = self.metrics.request_started();
        let version = request.version();
        let guard = self.in_flight.try_enter();
        let mut response = if guard.is_some() {
            self.handler.handle(request, &self.peer).await
        } else {
            // Moved or dropped in both branches, so that the future keeps no space for it.
            drop(request);
            self.handler.overloaded()
        };
        drop(guard);
        if version == Version::HTTP_10 && response.status() == StatusCode::SWITCHING_PROTOCOLS {
            response = Problem::Malformed("protocol upgrades require HTTP/1.1").response();
        }
        if response.extensions_mut().remove::<CloseConnection>().is_some() {
            match version {
                Version::HTTP_2 => self.goaway.notify_one(),
                _ => drop(response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"))),
            }
        }
        Ok(in_flight_request.finish(response).map(|body| TrackedBody::new(body, active)))
    }
}
