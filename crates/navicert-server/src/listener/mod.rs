//! Accepts connections and serves HTTP/1.1 and HTTP/2 over them, with TLS, limits and graceful shutdown.
//!
//! ```text
//! accept ──▶ admit ──▶ TLS ──▶ strict_http1 (HTTP/1.1) ──▶ hyper ──▶ Handler
//! ```

mod connection_slots;
mod http2_heads;
mod proxy_protocol;
mod response_body;
mod strict_http1;
mod unfinished_head;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::header::{CONNECTION, HeaderValue, UPGRADE};
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use navicert_client::transport::ResponseBody as ReplyBody;
use navicert_io::coalescing::CoalescingStream;
use navicert_io::repoll::poll_until_parked;
use navicert_io::wake_gate::PollOnWake;
use rustls::ServerConfig;
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::fairness::{Admission, FlowId, Overloaded};
use crate::limits::ServerLimits;
use crate::metrics::ListenerMetrics;
use crate::problem::Problem;
use connection_slots::{ConnectionSlots, MIN_IDLE, SlotGuard, SlotState};

pub use crate::problem::CloseConnection;
pub(crate) use connection_slots::TunnelSlot;
use http2_heads::Http2Heads;
use response_body::TrackedBody;
use strict_http1::StrictHttp1;

#[cfg(feature = "fuzzing")]
pub(crate) use proxy_protocol::read as read_proxy_header;
#[cfg(feature = "fuzzing")]
pub(crate) use strict_http1::framing::{Inspection, RequestFraming};

/// Interval of TCP keep-alive probes and HTTP/2 pings.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// Flow-control windows of HTTP/2: what a client may send before it is read. A request to an API server is far smaller.
const HTTP2_STREAM_WINDOW: u32 = 128 * 1024;
const HTTP2_CONNECTION_WINDOW: u32 = 256 * 1024;

/// Response bytes that are buffered for one HTTP/2 stream whose client does not read.
const HTTP2_SEND_BUFFER: usize = 64 * 1024;

/// Pause after a failed accept.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// An HTTP/1.1 connection that is idle for this long has no buffers.
const IDLE_BUFFER_TIMEOUT: Duration = Duration::from_millis(500);

/// Time that an idle HTTP/1.1 connection has to shut down.
const IDLE_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Remote end of a connection.
#[derive(Debug)]
pub struct Peer {
    /// Source address.
    pub address: SocketAddr,
    /// Client certificate chain, leaf first; empty without client authentication.
    pub certificates: Vec<CertificateDer<'static>>,
    names: OnceLock<Vec<String>>,
    /// The IP address as a header value: formatting it takes 1,300 instructions.
    address_value: OnceLock<Option<HeaderValue>>,
    /// Activity of the connection.
    slot: Arc<SlotState>,
    admission: Arc<Admission>,
    flow: FlowId,
    /// The first user who was authenticated on this connection.
    user: OnceLock<FlowId>,
}

impl Peer {
    /// The budgets that the requests of this peer share with others.
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// The flow of this peer's address.
    pub fn flow(&self) -> FlowId {
        self.flow
    }

    /// The flow of a client whose requests this peer forwards, or of the peer itself.
    pub(crate) fn flow_of(&self, client: IpAddr) -> FlowId {
        if client == self.address.ip() { self.flow } else { self.admission.peer_flow(client) }
    }

    /// The address of a client whose requests this peer forwards, or of the peer itself, as a header value.
    pub(crate) fn address_value(&self, client: IpAddr) -> Option<HeaderValue> {
        let value = |address: IpAddr| HeaderValue::try_from(address.to_string()).ok();
        match client == self.address.ip() {
            true => self.address_value.get_or_init(|| value(client)).clone(),
            false => value(client),
        }
    }

    /// Records that a user was authenticated on this connection. A valid token permits larger request heads on it.
    ///
    /// # Errors
    /// [`Overloaded`] if this is the connection's first user, who has too many connections.
    pub fn authenticated(&self, user: FlowId, has_token: bool) -> Result<(), Overloaded> {
        if self.user.get().is_none() {
            self.admission.take_connection(user)?;
            if self.user.set(user).is_err() {
                // Another stream of an HTTP/2 connection was first.
                self.admission.return_connection(user);
            }
        }
        if has_token {
            self.slot.token_accepted();
        }
        Ok(())
    }

    /// Common name and DNS names of the client certificate; `None` without a certificate.
    pub fn names(&self) -> Option<&[String]> {
        let own = self.certificates.first()?;
        Some(self.names.get_or_init(|| names(own)))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(user) = self.user.get() {
            self.admission.return_connection(*user);
        }
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

    /// Called once, when the listener has stopped accepting connections and in-flight requests have `grace` to finish:
    /// ends streams that clients can continue elsewhere.
    fn begin_drain(&self, grace: Duration) {
        let _ = grace;
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
    let admission = Arc::new(Admission::new(&limits));
    let serving = ConnectionServer { limits, security, admission, metrics, stop };
    let metrics = Arc::clone(&serving.metrics);
    let slots = ConnectionSlots::new(limits.connections, limits.unfinished_bytes, MIN_IDLE, metrics);
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
        let (serving, handler, slot) = (serving.clone(), Arc::clone(&handler), Arc::new(slot));
        tokio::spawn(async move {
            let metrics = Arc::clone(&serving.metrics);
            let _open = metrics.connection_opened();
            tokio::select! {
                biased;
                () = serving.serve_connection(stream, peer, handler, &slot) => {}
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
    admission: Arc<Admission>,
    metrics: Arc<ListenerMetrics>,
    stop: watch::Receiver<bool>,
}

impl ConnectionServer {
    async fn serve_connection<H: Handler>(
        self,
        mut stream: TcpStream,
        peer: SocketAddr,
        handler: Arc<H>,
        slot: &Arc<SlotGuard>,
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
                let service = self.service(handler, peer, Vec::new(), slot);
                let head = slot.unfinished_head(&self.limits);
                self.serve_http1(StrictHttp1::new(stream, head), service).await
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
        slot: &Arc<SlotGuard>,
    ) -> hyper::Result<()> {
        // The session and what is needed only for a while are boxed, because a task is as large as its largest state: without
        // that, the task of an idle connection took 8,320 bytes.
        let accept = Box::pin(tokio::time::timeout(self.limits.handshake_timeout, acceptor.accept(stream)));
        let stream = match accept.await {
            Ok(Ok(stream)) => Box::new(stream),
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
        let service = self.service(handler, peer, certificates, slot);
        let head = slot.unfinished_head(&self.limits);
        match is_http2 {
            true => Box::pin(self.serve_http2(Http2Heads::new(stream, head), service)).await,
            false => self.serve_http1(StrictHttp1::new(CoalescingStream::new(stream), head), service).await,
        }
    }

    fn service<H>(
        &self,
        handler: Arc<H>,
        address: SocketAddr,
        certificates: Vec<CertificateDer<'static>>,
        guard: &Arc<SlotGuard>,
    ) -> Arc<ConnectionService<H>> {
        let (slot, admission) = (Arc::clone(guard.state()), Arc::clone(&self.admission));
        let flow = admission.peer_flow(address.ip());
        slot.set_peer(flow);
        let peer = Peer {
            address,
            certificates,
            names: OnceLock::new(),
            address_value: OnceLock::new(),
            slot,
            admission,
            flow,
            user: OnceLock::new(),
        };
        Arc::new(ConnectionService {
            handler,
            metrics: Arc::clone(&self.metrics),
            peer,
            slot: Arc::downgrade(guard),
            goaway: Notify::new(),
        })
    }

    async fn serve_http1<H: Handler>(
        mut self,
        mut stream: StrictHttp1<impl AsyncRead + AsyncWrite + Send + Unpin + 'static>,
        service: Arc<ConnectionService<H>>,
    ) -> hyper::Result<()> {
        let limits = self.limits;
        let slot = Arc::clone(&service.peer.slot);
        let mut builder = hyper::server::conn::http1::Builder::new();
        // hyper would create a timer per request; the slot already records idle time.
        builder.header_read_timeout(None).max_buf_size(limits.header_bytes.max(8 * 1024));
        builder.max_headers(limits.header_lines);
        let mut idle_limit = IDLE_BUFFER_TIMEOUT.min(limits.header_timeout);
        loop {
            // hyper's buffers are half of an idle connection's memory: it has none before its first request, and none
            // after it was idle for a while.
            let has_data = tokio::select! {
                biased;
                has_data = stream.wait_for_data() => has_data,
                _ = PollOnWake::new(self.stop.wait_for(|stop| *stop)) => false,
                () = PollOnWake::new(slot.idle_for(limits.header_timeout)) => false,
            };
            if !has_data {
                let _ = tokio::time::timeout(IDLE_SHUTDOWN_TIMEOUT, stream.shutdown()).await;
                return Ok(());
            }
            let service = Arc::clone(&service);
            let respond = service_fn(move |request| Arc::clone(&service).respond(request));
            let connection = builder.serve_connection(TokioIo::new(stream), respond).with_upgrades();
            let mut connection = Box::new(connection);
            let is_idle = loop {
                let is_idle = tokio::select! {
                    biased;
                    outcome = poll_until_parked(Pin::new(&mut *connection)) => return outcome,
                    _ = PollOnWake::new(self.stop.wait_for(|stop| *stop)) => false,
                    () = PollOnWake::new(slot.idle_for(idle_limit)) => true,
                };
                if !is_idle || idle_limit == limits.header_timeout || !slot.has_buffered_data() {
                    break is_idle;
                }
                // Part of a request or of a response is in a buffer: keep the buffers from now on.
                idle_limit = limits.header_timeout;
            };
            if !is_idle || idle_limit == limits.header_timeout {
                let mut connection = Pin::new(&mut *connection);
                connection.as_mut().graceful_shutdown();
                return match is_idle {
                    true => close_idle(connection, &slot, IDLE_SHUTDOWN_TIMEOUT).await,
                    false => connection.await,
                };
            }
            let Some(parts) = connection.into_parts() else { return Ok(()) };
            stream = parts.io.into_inner();
            stream.unread(&parts.read_buf);
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
        // One size for the whole connection: HTTP/2 has no way to raise it after the first token.
        let head = limits.unauthenticated_header_bytes.min(limits.header_bytes);
        let head = u32::try_from(head).unwrap_or(u32::MAX);
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.http2_streams)
            .max_header_list_size(head)
            .keep_alive_interval(KEEPALIVE_INTERVAL)
            .initial_stream_window_size(HTTP2_STREAM_WINDOW)
            .initial_connection_window_size(HTTP2_CONNECTION_WINDOW)
            .max_send_buf_size(HTTP2_SEND_BUFFER)
            .serve_connection(TokioIo::new(stream), respond);
        tokio::pin!(connection);
        let is_idle = tokio::select! {
            outcome = connection.as_mut() => return outcome,
            _ = self.stop.wait_for(|stop| *stop) => false,
            () = service_handle.goaway.notified() => false,
            // hyper has no idle timeout for HTTP/2, not even before the first request.
            () = service_handle.peer.slot.idle_for(limits.header_timeout) => true,
        };
        connection.as_mut().graceful_shutdown();
        match is_idle {
            true => close_idle(connection, &service_handle.peer.slot, limits.handshake_timeout).await,
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
    metrics: Arc<ListenerMetrics>,
    peer: Peer,
    /// The connection's slot, for tunnels.
    slot: Weak<SlotGuard>,
    /// Notified when an HTTP/2 connection should send `GOAWAY`.
    goaway: Notify,
}

impl<H: Handler> ConnectionService<H> {
    /// Handles one request. A single function, because each layer would move the request again.
    async fn respond(
        self: Arc<Self>,
        mut request: Request<Incoming>,
    ) -> Result<Response<TrackedBody>, Infallible> {
        let active = self.peer.slot.begin_request();
        let in_flight_request = self.metrics.request_started();
        let version = request.version();
        let asked_upgrade = version != Version::HTTP_2
            && (request.headers().contains_key(UPGRADE) || *request.method() == Method::CONNECT);
        if asked_upgrade && let Some(slot) = self.slot.upgrade() {
            request.extensions_mut().insert(TunnelSlot::new(slot));
        }
        let mut response = self.handler.handle(request, &self.peer).await;
        if version == Version::HTTP_10 && response.status() == StatusCode::SWITCHING_PROTOCOLS {
            response = Problem::Malformed("protocol upgrades require HTTP/1.1").response();
        }
        // Bytes after a request for another protocol are not a second request, whatever the response is (S252).
        let is_refused_upgrade = asked_upgrade && response.status() != StatusCode::SWITCHING_PROTOCOLS;
        if response.extensions_mut().remove::<CloseConnection>().is_some() || is_refused_upgrade {
            match version {
                Version::HTTP_2 => self.goaway.notify_one(),
                _ => drop(response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"))),
            }
        }
        Ok(in_flight_request.finish(response).map(|body| TrackedBody::new(body, active)))
    }
}
