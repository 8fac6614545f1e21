//! Accepts connections and serves one request on each, with limits. At the limit of connections the oldest one that has not
//! sent its request is closed, so that idle connections cannot keep the browser out.
// L901, L1310

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::guard::{OwnerCheck, Trust};

/// Connections at one time.
const MAX_CONNECTIONS: usize = 16;
/// Request line and headers.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Time for a request to arrive, and for its response to be taken.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failure to accept, mostly for lack of descriptors.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// The state of a connection that its handler sets.
#[derive(Debug)]
pub(super) struct ConnectionState {
    pub(super) trust: Trust,
    /// The request is complete: the connection is not closed to make room.
    pub(super) is_received: AtomicBool,
    /// The request waits for the end of the login: no time limit applies.
    pub(super) is_waiting: AtomicBool,
    /// The response ends the receiver's work.
    pub(super) is_last: AtomicBool,
}

/// Answers requests.
pub(super) trait Handler: Send + Sync + 'static {
    /// Answers one request.
    fn respond(
        &self,
        request: Request<Incoming>,
        connection: &ConnectionState,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send;

    /// The connection of a last response has ended.
    fn last_response_sent(&self);
}

/// Serves until dropped.
pub(super) async fn serve<H: Handler>(
    listeners: Vec<TcpListener>,
    tls: Option<TlsAcceptor>,
    owners: OwnerCheck,
    handler: Arc<H>,
) -> Infallible {
    let mut connections = FuturesUnordered::new();
    let mut slots: Vec<Slot> = Vec::new();
    let mut next_id = 0_u64;
    loop {
        tokio::select! {
            // First the requests that have arrived, then new connections: a flood of the second does not delay the first.
            biased;
            Some(ended) = connections.next(), if !connections.is_empty() => {
                slots.retain(|slot| Ok(slot.id) != ended);
            }
            (stream, peer) = accept(&listeners) => {
                let trust = stream.local_addr().ok().and_then(|local| owners.admit(peer, local));
                let Some(trust) = trust else { continue };
                evict_oldest_idle(&mut slots);
                next_id += 1;
                let (abort, registration) = AbortHandle::new_pair();
                let state = Arc::new(ConnectionState {
                    trust,
                    is_received: AtomicBool::new(false),
                    is_waiting: AtomicBool::new(false),
                    is_last: AtomicBool::new(false),
                });
                slots.push(Slot { id: next_id, abort, state: Arc::clone(&state) });
                let serving = serve_connection(next_id, stream, tls.clone(), Arc::clone(&handler), state);
                connections.push(Abortable::new(serving, registration));
            }
        }
    }
}

struct Slot {
    id: u64,
    abort: AbortHandle,
    state: Arc<ConnectionState>,
}

/// Closes a connection if the limit is reached. One whose request is complete is never closed; responses are short and
/// do not wait for the peer, so that there is always another one.
fn evict_oldest_idle(slots: &mut Vec<Slot>) {
    if slots.len() < MAX_CONNECTIONS {
        return;
    }
    if let Some(oldest) = slots.iter().position(|slot| !slot.state.is_received.load(Ordering::Relaxed)) {
        slots.remove(oldest).abort.abort();
    }
}

/// The next connection of any listener.
async fn accept(listeners: &[TcpListener]) -> (TcpStream, SocketAddr) {
    loop {
        let accepted: io::Result<(TcpStream, SocketAddr)> = poll_fn(|context| {
            let mut ready = listeners.iter().filter_map(|listener| match listener.poll_accept(context) {
                Poll::Ready(accepted) => Some(accepted),
                Poll::Pending => None,
            });
            ready.next().map_or(Poll::Pending, Poll::Ready)
        })
        .await;
        match accepted {
            Ok(accepted) => return accepted,
            Err(_) => {
                let _ = tokio::time::timeout(ACCEPT_RETRY_INTERVAL, pending::<()>()).await;
            }
        }
    }
}

/// Serves one request; returns the connection's id.
async fn serve_connection<H: Handler>(
    id: u64,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    handler: Arc<H>,
    state: Arc<ConnectionState>,
) -> u64 {
    let serving = async {
        match tls {
            None => serve_request(stream, &handler, &state).await,
            Some(tls) => {
                if let Ok(stream) = tls.accept(stream).await {
                    serve_request(stream, &handler, &state).await;
                }
            }
        }
    };
    let mut serving = pin!(serving);
    loop {
        let ended = tokio::time::timeout(REQUEST_TIMEOUT, serving.as_mut()).await.is_ok();
        if ended || !state.is_waiting.load(Ordering::Relaxed) {
            break;
        }
    }
    if state.is_last.load(Ordering::Relaxed) {
        handler.last_response_sent();
    }
    id
}

async fn serve_request<H: Handler>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    handler: &Arc<H>,
    state: &ConnectionState,
) {
    let respond = service_fn(async |request| Ok::<_, Infallible>(handler.respond(request, state).await));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .keep_alive(false)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), respond);
    // A peer that sends no HTTP, or leaves, is not worth a word.
    let _ = connection.await;
}
