//! From a listening socket to requests: TLS, HTTP/1.1 and HTTP/2, each within its limits, and an orderly end.
//!
//! ```text
//! accept ──▶ admit ──▶ TLS ──▶ one_meaning (HTTP/1.1) ──▶ hyper ──▶ Handler
//! ```

mod answer;
mod one_meaning;
mod places;
mod proxy_protocol;

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
use navicert_client::at_once::at_once;
use navicert_client::piecewise::Piecewise;
use navicert_client::when_rung::Dozing;
use rustls::ServerConfig;
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::forward::ReplyBody;
use crate::limits::{InFlight, Limits};
use crate::metrics::Traffic;
use crate::problem::Problem;
use answer::Answer;
use one_meaning::OneMeaning;
use places::{LEAST_REST, Places, Seat};

/// Between two questions whether an idle peer is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Until the next try, after the system could not give us a connection; and how long a connection that has rested has to end.
const BREATH: Duration = Duration::from_millis(100);

/// Put among an answer's extensions, it makes this the connection's last answer: `Connection: close` in HTTP/1.1, `GOAWAY` in
/// HTTP/2 (S274).
#[derive(Clone, Copy, Debug)]
pub struct CloseConnection;

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The address it comes from.
    pub address: SocketAddr,
    /// The certificates it showed, its own first; none if it was not asked or has none.
    pub certificates: Vec<CertificateDer<'static>>,
    names: OnceLock<Vec<String>>,
}

impl Peer {
    /// Somebody at this address who showed these certificates.
    pub fn new(address: SocketAddr, certificates: Vec<CertificateDer<'static>>) -> Self {
        Peer { address, certificates, names: OnceLock::new() }
    }

    /// The common name and the DNS names of its certificate; `None` if it showed none.
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

/// What answers requests.
pub trait Handler: Send + Sync + 'static {
    /// Whether this peer may talk to us at all; asked before a byte is read.
    fn admits(&self, peer: SocketAddr, local: SocketAddr) -> bool {
        let _ = (peer, local);
        true
    }

    /// Whether every connection begins with a header of the PROXY protocol, which says where it really comes from.
    fn has_proxy_protocol(&self) -> bool {
        false
    }

    /// Answers a request of this peer's. Dropped when the client goes away first.
    fn handle(
        &self,
        request: Request<Incoming>,
        peer: &Peer,
    ) -> impl Future<Output = Response<ReplyBody>> + Send;

    /// What a request is answered with that there is no place for.
    fn overloaded(&self) -> Response<ReplyBody> {
        Problem::TooMany.response()
    }
}

/// How connections are secured.
#[derive(Clone, Debug)]
pub enum Security {
    /// Not at all. For loopback, and for what holds no secrets.
    Plain,
    /// By TLS; whatever is stored here counts for the connections that come from then on.
    Tls(Arc<ArcSwap<ServerConfig>>),
}

impl Security {
    /// TLS that never changes.
    pub fn fixed(config: Arc<ServerConfig>) -> Self {
        Security::Tls(Arc::new(ArcSwap::new(config)))
    }
}

/// A socket and the rules of whoever comes through it.
#[derive(Debug)]
pub struct Socket {
    /// It listens.
    pub listener: std::net::TcpListener,
    /// How connections are secured.
    pub security: Security,
    /// How much anybody may ask.
    pub limits: Limits,
    /// What is counted.
    pub traffic: Arc<Traffic>,
}

/// Serves until told to stop (`true`), then lets what is being answered finish. Streams that do not end by themselves are
/// the caller's to end, by dropping the runtime.
///
/// # Errors
/// The socket cannot be used by the runtime.
pub async fn serve<H: Handler>(
    socket: Socket,
    handler: Arc<H>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let Socket { listener, security, limits, traffic } = socket;
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let in_flight = InFlight::new(limits.requests);
    let serving = Serving { limits, security, in_flight, traffic, stop };
    let places = Places::new(limits.connections, LEAST_REST, Arc::clone(&serving.traffic));
    let mut stopping = serving.stop.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // A peer that was gone before we looked, or we are out of descriptors: some are to be had from whoever
                // stands idle.
                tracing::warn!(%error, "accept a connection");
                if error.kind() != io::ErrorKind::ConnectionAborted {
                    places.make_room_if_crowded();
                    let _ = tokio::time::timeout(BREATH, stopping.wait_for(|stop| *stop)).await;
                }
                continue;
            }
        };
        let place = tokio::select! {
            place = places.take() => place,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        let (serving, handler) = (serving.clone(), Arc::clone(&handler));
        tokio::spawn(async move {
            let traffic = Arc::clone(&serving.traffic);
            let _counted = traffic.connection();
            tokio::select! {
                biased;
                () = serving.connection(stream, peer, handler, place.seat()) => {}
                () = Dozing::new(place.seat().asked_to_go()) => {}
            }
            drop(place);
        });
    }
    drop(listener);
    places.empty().await;
    Ok(())
}

#[derive(Clone)]
struct Serving {
    limits: Limits,
    security: Security,
    in_flight: InFlight,
    traffic: Arc<Traffic>,
    stop: watch::Receiver<bool>,
}

impl Serving {
    async fn connection<H: Handler>(
        self,
        mut stream: TcpStream,
        peer: SocketAddr,
        handler: Arc<H>,
        seat: &Arc<Seat>,
    ) {
        let Ok(local) = stream.local_addr() else { return };
        if !handler.admits(peer, local) {
            tracing::warn!(%peer, "connection refused: not a peer of ours");
            return;
        }
        let _ = stream.set_nodelay(true);
        let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
        let _ = socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive);
        let peer = match self.real_peer(&mut stream, peer, &*handler).await {
            Ok(peer) => peer,
            Err(error) => return tracing::debug!(%peer, %error, "PROXY protocol"),
        };
        let outcome = match &self.security {
            Security::Plain => {
                let answering = self.answering(handler, Peer::new(peer, Vec::new()), seat);
                self.http1(stream, answering).await
            }
            Security::Tls(config) => {
                let acceptor = TlsAcceptor::from(config.load_full());
                self.secured(stream, acceptor, peer, handler, seat).await
            }
        };
        if let Err(error) = outcome {
            tracing::debug!(%error, "connection ended");
        }
    }

    /// Where a connection comes from, by the word of whoever passed it on.
    async fn real_peer<H: Handler>(
        &self,
        stream: &mut TcpStream,
        peer: SocketAddr,
        handler: &H,
    ) -> io::Result<SocketAddr> {
        if !handler.has_proxy_protocol() {
            return Ok(peer);
        }
        let read = tokio::time::timeout(self.limits.handshake, proxy_protocol::read(stream)).await;
        Ok(read.map_err(|_| io::ErrorKind::TimedOut)??.unwrap_or(peer))
    }

    async fn secured<H: Handler>(
        self,
        stream: TcpStream,
        acceptor: TlsAcceptor,
        peer: SocketAddr,
        handler: Arc<H>,
        seat: &Arc<Seat>,
    ) -> hyper::Result<()> {
        let stream = match tokio::time::timeout(self.limits.handshake, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                self.traffic.handshake_failed();
                tracing::debug!(%peer, %error, "TLS handshake");
                return Ok(());
            }
            Err(_) => {
                self.traffic.handshake_failed();
                tracing::debug!(%peer, "TLS handshake: too slow");
                return Ok(());
            }
        };
        let session = stream.get_ref().1;
        let is_http2 = session.alpn_protocol() == Some(b"h2");
        let certificates = session.peer_certificates().unwrap_or_default();
        let certificates = certificates.iter().map(|certificate| certificate.clone().into_owned()).collect();
        let answering = self.answering(handler, Peer::new(peer, certificates), seat);
        match is_http2 {
            true => self.http2(stream, answering).await,
            false => self.http1(Piecewise::new(stream), answering).await,
        }
    }

    fn answering<H>(&self, handler: Arc<H>, peer: Peer, seat: &Arc<Seat>) -> Arc<Answering<H>> {
        let (in_flight, traffic) = (self.in_flight.clone(), Arc::clone(&self.traffic));
        let (seat, had_enough) = (Arc::clone(seat), Notify::new());
        Arc::new(Answering { handler, in_flight, traffic, peer, seat, had_enough })
    }

    async fn http1<H: Handler>(
        mut self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        answering: Arc<Answering<H>>,
    ) -> hyper::Result<()> {
        let limits = self.limits;
        let seat = Arc::clone(&answering.seat);
        let service = service_fn(move |request| Arc::clone(&answering).answer(request));
        let connection = hyper::server::conn::http1::Builder::new()
            // Its timer would be a new one for every request; the seat knows since when it rests.
            .header_read_timeout(None)
            .max_buf_size(limits.head.max(8 * 1024))
            .max_headers(limits.header_lines)
            .serve_connection(TokioIo::new(OneMeaning::new(stream, limits.head)), service)
            .with_upgrades();
        tokio::pin!(connection);
        let has_rested = tokio::select! {
            biased;
            outcome = at_once(connection.as_mut()) => return outcome,
            _ = Dozing::new(self.stop.wait_for(|stop| *stop)) => false,
            () = Dozing::new(seat.has_rested(limits.head_time)) => true,
        };
        connection.as_mut().graceful_shutdown();
        match has_rested {
            true => farewell(connection, &seat, BREATH).await,
            false => connection.await,
        }
    }

    async fn http2<H: Handler>(
        mut self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        answering: Arc<Answering<H>>,
    ) -> hyper::Result<()> {
        let limits = self.limits;
        let answered = Arc::clone(&answering);
        let service = service_fn(move |request| Arc::clone(&answering).answer(request));
        let head = u32::try_from(limits.head).unwrap_or(u32::MAX);
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.http2_streams)
            .max_header_list_size(head)
            .keep_alive_interval(KEEPALIVE)
            .adaptive_window(true)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let has_rested = tokio::select! {
            outcome = connection.as_mut() => return outcome,
            _ = self.stop.wait_for(|stop| *stop) => false,
            () = answered.had_enough.notified() => false,
            // hyper has no such limit for HTTP/2, and waits for ever for a peer that does not even begin.
            () = answered.seat.has_rested(limits.head_time) => true,
        };
        connection.as_mut().graceful_shutdown();
        match has_rested {
            true => farewell(connection, &answered.seat, limits.handshake).await,
            false => connection.await,
        }
    }
}

/// A connection that is to end has so long to do so in good order.
async fn farewell(
    mut connection: Pin<&mut impl Future<Output = hyper::Result<()>>>,
    seat: &Seat,
    patience: Duration,
) -> hyper::Result<()> {
    loop {
        match tokio::time::timeout(patience, connection.as_mut()).await {
            Ok(outcome) => return outcome,
            Err(_) if seat.is_resting() => return Ok(()),
            // It asked while we said goodbye.
            Err(_) => {}
        }
    }
}

/// What a connection needs to answer its requests. One for each connection: what all share is not counted for every request.
struct Answering<H> {
    handler: Arc<H>,
    in_flight: InFlight,
    traffic: Arc<Traffic>,
    peer: Peer,
    /// What its connection does.
    seat: Arc<Seat>,
    /// Told when an answer should be the last of an HTTP/2 connection.
    had_enough: Notify,
}

impl<H: Handler> Answering<H> {
    /// One request, if there is a place for it. One function, since every layer would move the request once more.
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Answer>, Infallible> {
        let busy = self.seat.busy();
        let counted = self.traffic.request();
        let version = request.version();
        let place = self.in_flight.enter();
        let mut response = if place.is_some() {
            self.handler.handle(request, &self.peer).await
        } else {
            // Given away on either side, so that what waits for an answer does not keep a place for it.
            drop(request);
            self.handler.overloaded()
        };
        drop(place);
        if version == Version::HTTP_10 && response.status() == StatusCode::SWITCHING_PROTOCOLS {
            response = Problem::Malformed("HTTP/1.0 has no other protocols").response();
        }
        if response.extensions_mut().remove::<CloseConnection>().is_some() {
            match version {
                Version::HTTP_2 => self.had_enough.notify_one(),
                _ => drop(response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"))),
            }
        }
        Ok(counted.answered(response).map(|body| Answer::new(body, busy)))
    }
}
