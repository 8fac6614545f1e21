//! From a listening socket to requests: TLS, HTTP/1.1 and HTTP/2, each within its limits, and an orderly end.
//!
//! ```text
//! accept ──▶ admit ──▶ TLS ──▶ one_meaning (HTTP/1.1) ──▶ hyper ──▶ Handler
//! ```

mod one_meaning;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls_pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::forward::ReplyBody;
use crate::limits::{InFlight, Limits};
use crate::problem::Problem;
use one_meaning::OneMeaning;

/// Between two questions whether an idle peer is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Put among an answer's extensions, it makes this the connection's last answer: `Connection: close` in HTTP/1.1, `GOAWAY` in
/// HTTP/2 (S274).
#[derive(Clone, Copy, Debug)]
pub struct CloseConnection;

/// Who is at the other end of a connection; an `Arc` of it is among every request's extensions.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The address it comes from.
    pub address: SocketAddr,
    /// The certificates it showed, its own first; none if it was not asked or has none.
    pub certificates: Vec<CertificateDer<'static>>,
}

/// What answers requests.
pub trait Handler: Send + Sync + 'static {
    /// Whether this peer may talk to us at all; asked before a byte is read.
    fn admits(&self, peer: SocketAddr, local: SocketAddr) -> bool {
        let _ = (peer, local);
        true
    }

    /// Answers a request. Dropped when the client goes away first.
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<ReplyBody>> + Send;
}

/// Serves until told to stop (`true`), then lets what is being answered finish. Streams that do not end by themselves are
/// the caller's to end, by dropping the runtime.
///
/// # Errors
/// The socket cannot be used by the runtime.
pub async fn serve<H: Handler>(
    listener: std::net::TcpListener,
    tls: Arc<ServerConfig>,
    limits: Limits,
    handler: Arc<H>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let serving =
        Serving { limits, acceptor: TlsAcceptor::from(tls), in_flight: InFlight::new(limits.requests), stop };
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut stopping = serving.stop.clone();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, or a peer that was gone before we looked: the next one may be luckier.
                tracing::warn!(%error, "accept a connection");
                tokio::task::yield_now().await;
                continue;
            }
        };
        let (serving, handler) = (serving.clone(), Arc::clone(&handler));
        tokio::spawn(async move {
            serving.connection(stream, peer, handler).await;
            drop(place);
        });
    }
    drop(listener);
    // Every connection gives its place back; having them all is the end.
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    let _ = places.acquire_many(all).await;
    Ok(())
}

#[derive(Clone)]
struct Serving {
    limits: Limits,
    acceptor: TlsAcceptor,
    in_flight: InFlight,
    stop: watch::Receiver<bool>,
}

impl Serving {
    async fn connection<H: Handler>(self, stream: TcpStream, peer: SocketAddr, handler: Arc<H>) {
        let Ok(local) = stream.local_addr() else { return };
        if !handler.admits(peer, local) {
            tracing::warn!(%peer, "connection refused: not a peer of ours");
            return;
        }
        let _ = stream.set_nodelay(true);
        let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
        let _ = socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive);
        let stream = match tokio::time::timeout(self.limits.handshake, self.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake"),
            Err(_) => return tracing::debug!("TLS handshake: too slow"),
        };
        let session = stream.get_ref().1;
        let is_http2 = session.alpn_protocol() == Some(b"h2");
        let certificates = session.peer_certificates().unwrap_or_default();
        let certificates = certificates.iter().map(|certificate| certificate.clone().into_owned()).collect();
        let peer = Arc::new(Peer { address: peer, certificates });
        let answering = Answering { handler, in_flight: self.in_flight.clone(), peer };
        let outcome =
            if is_http2 { self.http2(stream, answering).await } else { self.http1(stream, answering).await };
        if let Err(error) = outcome {
            tracing::debug!(%error, "connection ended");
        }
    }

    async fn http1<H: Handler>(
        mut self,
        stream: TlsStream<TcpStream>,
        answering: Answering<H>,
    ) -> hyper::Result<()> {
        let limits = self.limits;
        let service = service_fn(move |request: Request<Incoming>| {
            let answering = answering.clone();
            async move {
                let mut response = answering.answer(request).await;
                if response.extensions_mut().remove::<CloseConnection>().is_some() {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(response)
            }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_time)
            .max_buf_size(limits.head.max(8 * 1024))
            .max_headers(limits.header_lines)
            .serve_connection(TokioIo::new(OneMeaning::new(stream, limits.head)), service)
            .with_upgrades();
        tokio::pin!(connection);
        tokio::select! {
            outcome = connection.as_mut() => return outcome,
            _ = self.stop.wait_for(|stop| *stop) => {}
        }
        connection.as_mut().graceful_shutdown();
        connection.await
    }

    async fn http2<H: Handler>(
        mut self,
        stream: TlsStream<TcpStream>,
        answering: Answering<H>,
    ) -> hyper::Result<()> {
        let limits = self.limits;
        let (enough, mut had_enough) = watch::channel(false);
        let service = service_fn(move |request: Request<Incoming>| {
            let (answering, enough) = (answering.clone(), enough.clone());
            async move {
                let mut response = answering.answer(request).await;
                if response.extensions_mut().remove::<CloseConnection>().is_some() {
                    enough.send_replace(true);
                }
                Ok::<_, Infallible>(response)
            }
        });
        let head = u32::try_from(limits.head).unwrap_or(u32::MAX);
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.http2_streams)
            .max_header_list_size(head)
            .keep_alive_interval(KEEPALIVE)
            .adaptive_window(true)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        tokio::select! {
            outcome = connection.as_mut() => return outcome,
            _ = self.stop.wait_for(|stop| *stop) => {}
            _ = had_enough.wait_for(|enough| *enough) => {}
        }
        connection.as_mut().graceful_shutdown();
        connection.await
    }
}

/// What a connection needs to answer its requests.
struct Answering<H> {
    handler: Arc<H>,
    in_flight: InFlight,
    peer: Arc<Peer>,
}

impl<H> Clone for Answering<H> {
    fn clone(&self) -> Self {
        let (handler, peer) = (Arc::clone(&self.handler), Arc::clone(&self.peer));
        Answering { handler, in_flight: self.in_flight.clone(), peer }
    }
}

impl<H: Handler> Answering<H> {
    /// One request, if there is a place for it.
    async fn answer(self, mut request: Request<Incoming>) -> Response<ReplyBody> {
        let Some(_place) = self.in_flight.enter() else { return Problem::TooMany.response() };
        let version = request.version();
        request.extensions_mut().insert(self.peer);
        let response = self.handler.handle(request).await;
        if version == Version::HTTP_10 && response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Problem::Malformed("HTTP/1.0 has no other protocols").response();
        }
        response
    }
}
