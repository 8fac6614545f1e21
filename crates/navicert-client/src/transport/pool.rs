//! The connections of one client certificate: idle ones, shared HTTP/2 ones, and opening new ones.
//!
//! An HTTP/2 connection carries many requests; an HTTP/1.1 connection carries one at a time and is then kept idle. When
//! the certificate is replaced, the pool retires: idle connections close at once, requests in flight finish.
// C462

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{Entry, HOST, HeaderValue, PROXY_AUTHORIZATION};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, StatusCode, Uri, Version, request};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use navicert_types::Clock;
use rustls::ClientConfig;
use tokio::sync::Semaphore;

use super::body::{Body, ResponseBody};
use super::connection_io::ConnectionState;
use super::connector::{Connected, Connector, TlsConfigs};
use super::driver::Driver;
use super::error::TransportError;
use super::pending_request::OutgoingRequest;
use super::preconnect::Preconnect;
use super::timer;

/// Settings that all pools of a transport share.
#[derive(Debug)]
pub(super) struct PoolSettings {
    pub(super) scheme: Scheme,
    pub(super) authority: Authority,
    /// The authority as a `Host` header.
    pub(super) host: HeaderValue,
    pub(super) connector: Connector,
    pub(super) preconnect: Preconnect,
    /// Set where an HTTP proxy forwards plain requests: it gets the absolute URI and its own credentials.
    pub(super) forwarding: Option<Forwarding>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) max_idle: usize,
    pub(super) http2_streams: usize,
    pub(super) http2_read_idle: Duration,
    pub(super) http2_ping_timeout: Duration,
}

#[derive(Debug)]
pub(super) struct Forwarding {
    pub(super) authorization: Option<HeaderValue>,
}

/// A handshake that took longer than this may have failed because the server timed out.
// C842
const SLOW_HANDSHAKE: Duration = Duration::from_secs(25);

/// The TLS configurations of a pool.
pub(super) struct PoolTls {
    /// Offers HTTP/2 if it is enabled.
    pub(super) default: Arc<ClientConfig>,
    /// Offers HTTP/1.1 only, for upgrades.
    pub(super) http1: Arc<ClientConfig>,
    /// Set for external signers: allows one handshake at a time.
    // C845
    pub(super) handshake_permit: Option<Arc<Semaphore>>,
}

/// The connections of one client certificate.
pub(super) struct Pool {
    settings: Arc<PoolSettings>,
    tls: Option<PoolTls>,
    proxy_tls: Option<Arc<ClientConfig>>,
    state: Mutex<PoolState>,
    /// Held while opening a connection before it is known whether the server speaks HTTP/2: if it does, all requests
    /// share that connection.
    http2_probe: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct PoolState {
    retired: bool,
    closed: bool,
    speaks_http1: bool,
    http2: Vec<Http2>,
    idle: Vec<Idle>,
    connections: Vec<Weak<ConnectionState>>,
}

impl PoolState {
    /// Drops closed HTTP/2 connections, and all but one of those without a request.
    fn prune(&mut self) {
        let mut idle = 0;
        self.http2.retain(|http2| {
            let is_idle = http2.load() == 0;
            idle += usize::from(is_idle);
            !http2.sender.is_closed() && (!is_idle || idle == 1)
        });
    }
}

#[derive(Clone)]
struct Http2 {
    sender: http2::SendRequest<Body>,
    state: Arc<ConnectionState>,
    /// Each request on the connection holds a clone.
    load: Arc<()>,
}

impl Http2 {
    /// The number of requests in flight.
    fn load(&self) -> usize {
        Arc::strong_count(&self.load) - 1
    }
}

/// Fields drop in order: without its sender, the connection shuts down cleanly.
struct Http1 {
    sender: http1::SendRequest<Body>,
    driver: Driver,
    state: Arc<ConnectionState>,
}

struct Idle {
    connection: Box<Http1>,
    since: Duration,
}

enum Connection {
    Http1(Box<Http1>),
    Http2(Http2),
}

/// A response; boxed, as its request was.
pub(super) type BoxedResponse = Box<Response<ResponseBody>>;

/// A request without a response.
pub(super) struct SendFailure {
    pub(super) error: TransportError,
    /// The request, if no byte of it was sent.
    pub(super) unsent: Option<Box<OutgoingRequest>>,
    /// Whether the connection was reused: then the server may have been closing it.
    pub(super) reused: bool,
}

impl SendFailure {
    fn unsent(error: TransportError, request: Box<OutgoingRequest>) -> Box<Self> {
        Box::new(SendFailure { error, unsent: Some(request), reused: false })
    }

    /// Whether the connection failed, as opposed to a configuration or credential error.
    pub(super) fn is_connection_error(&self) -> bool {
        matches!(self.error, TransportError::Http(_))
    }
}

impl From<TransportError> for Box<SendFailure> {
    fn from(error: TransportError) -> Self {
        Box::new(SendFailure { error, unsent: None, reused: false })
    }
}

impl Pool {
    pub(super) fn new(
        settings: Arc<PoolSettings>,
        tls: Option<PoolTls>,
        proxy_tls: Option<Arc<ClientConfig>>,
    ) -> Self {
        let state = PoolState { speaks_http1: tls.is_none(), ..PoolState::default() };
        Pool {
            settings,
            tls,
            proxy_tls,
            state: Mutex::new(state),
            http2_probe: tokio::sync::Mutex::default(),
        }
    }

    /// Sends a request that has a path as its URI.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Box<OutgoingRequest>,
        upgrade: bool,
    ) -> Result<BoxedResponse, Box<SendFailure>> {
        loop {
            let reusable = self.reusable_connection(upgrade).await.map(|connection| (connection, true));
            let found = match reusable {
                Some(found) => Ok(found),
                // Boxed: this path is rare, and would enlarge the future of every request.
                None => Box::pin(self.open_or_wait(upgrade)).await,
            };
            let (connection, reused) = match found {
                Ok(found) => found,
                Err(error) => return Err(SendFailure::unsent(error, request)),
            };
            if self.state().retired {
                // No new request with a replaced certificate: the caller can get a newer pool (C462).
                return Err(SendFailure::unsent(TransportError::Retired, request));
            }
            let mut failure = match self.send_on(connection, request, upgrade).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            match failure.unsent.take() {
                // The connection closed while it was idle, and the request was not sent.
                Some(unsent) if reused && failure.reused => request = unsent,
                unsent => {
                    (failure.unsent, failure.reused) = (unsent, reused);
                    return Err(failure);
                }
            }
        }
    }

    /// Stops reuse of connections, and closes the idle ones.
    pub(super) fn retire(&self) {
        let (http2, idle) = {
            let mut state = self.state();
            state.retired = true;
            (std::mem::take(&mut state.http2), std::mem::take(&mut state.idle))
        };
        drop((http2, idle));
    }

    /// Closes the connections in use as well; reading from them fails.
    pub(super) fn close(&self) {
        let connections: Vec<_> = {
            let mut state = self.state();
            state.closed = true;
            state.connections.iter().filter_map(Weak::upgrade).collect()
        };
        for connection in connections {
            connection.close_after_response();
        }
    }

    async fn send_on(
        self: &Arc<Self>,
        connection: Connection,
        mut request: Box<OutgoingRequest>,
        upgrade: bool,
    ) -> Result<BoxedResponse, Box<SendFailure>> {
        match connection {
            Connection::Http2(Http2 { mut sender, state, load }) => {
                self.settings.prepare_http2(&mut request.head).map_err(TransportError::from)?;
                let exchange =
                    Exchange { pool: Weak::new(), connection: None, state, held: false, _load: Some(load) };
                into_response(sender.try_send_request(request.into_request()).await, exchange)
            }
            Connection::Http1(mut connection) => {
                self.settings.prepare_http1(&mut request.head).map_err(TransportError::from)?;
                let Http1 { sender, driver, state } = &mut *connection;
                let state = Arc::clone(state);
                let sent = driver.drive_until(|| sender.try_send_request(request.into_request())).await;
                // A connection with an upgrade request is never reused, whatever the response
                // (structured-authentication.md S252).
                let pool = if upgrade { Weak::new() } else { Arc::downgrade(self) };
                into_response(
                    sent,
                    Exchange { pool, connection: Some(connection), state, held: false, _load: None },
                )
            }
        }
    }

    /// Opens a connection, or waits for one being opened; the flag says whether the connection was reused.
    async fn open_or_wait(&self, upgrade: bool) -> Result<(Connection, bool), TransportError> {
        if upgrade || self.state().speaks_http1 {
            return Ok((self.open(upgrade).await?, false));
        }
        let probe = match self.http2_probe.try_lock() {
            Ok(probe) => Some(probe),
            Err(_) => {
                let probe = self.http2_probe.lock().await;
                if let Some(connection) = self.reusable_connection(upgrade).await {
                    return Ok((connection, true));
                }
                // All HTTP/2 connections are full: open one more while the others wait for it. If opening failed, or
                // the server speaks HTTP/1.1, there is no reason to queue.
                (!self.state().http2.is_empty()).then_some(probe)
            }
        };
        let connection = self.open(upgrade).await?;
        drop(probe);
        Ok((connection, false))
    }

    /// A connection from the pool that is still open.
    async fn reusable_connection(&self, upgrade: bool) -> Option<Connection> {
        loop {
            let mut connection = {
                let mut state = self.state();
                if !upgrade {
                    state.prune();
                    let has_room = |http2: &&Http2| http2.load() < self.settings.http2_streams;
                    if let Some(http2) = state.http2.iter().find(has_room) {
                        return Some(Connection::Http2(http2.clone()));
                    }
                }
                let idle = state.idle.pop()?;
                let age = self.settings.clock.monotonic().saturating_sub(idle.since);
                if age > self.settings.connector.timeouts.idle {
                    continue;
                }
                idle.connection
            };
            let Http1 { sender, driver, .. } = &mut *connection;
            if driver.is_ready(sender).await {
                return Some(Connection::Http1(connection));
            }
        }
    }

    async fn open(&self, upgrade: bool) -> Result<Connection, TransportError> {
        let server = self.tls.as_ref().map(|tls| if upgrade { &tls.http1 } else { &tls.default });
        let handshake_permit = self.tls.as_ref().and_then(|tls| tls.handshake_permit.as_ref());
        let tls = TlsConfigs { server, proxy: self.proxy_tls.as_ref(), handshake_permit };
        let Connected { io, state: io_state, http2 } = self.dial(tls).await?;
        let io = TokioIo::new(io);
        let connection = if http2 {
            let (sender, driver) = http2::Builder::new(TokioExecutor::new())
                .timer(timer::hyper_timer())
                .keep_alive_interval(self.settings.http2_read_idle)
                .keep_alive_timeout(self.settings.http2_ping_timeout)
                .keep_alive_while_idle(true)
                .adaptive_window(true)
                .handshake(io)
                .await
                .map_err(|error| explain(&io_state, error))?;
            drive(driver);
            Connection::Http2(Http2 { sender, state: Arc::clone(&io_state), load: Arc::default() })
        } else {
            let (sender, driver) = http1::handshake(io).await.map_err(|error| explain(&io_state, error))?;
            let driver = Driver::new(driver);
            Connection::Http1(Box::new(Http1 { sender, driver, state: Arc::clone(&io_state) }))
        };
        let mut state = self.state();
        if state.closed {
            return Err(TransportError::Retired);
        }
        state.connections.retain(|connection| connection.strong_count() > 0);
        state.connections.push(Arc::downgrade(&io_state));
        match &connection {
            Connection::Http2(http2) if !state.retired => state.http2.push(http2.clone()),
            Connection::Http2(_) => {}
            Connection::Http1(_) => state.speaks_http1 |= !upgrade,
        }
        Ok(connection)
    }

    /// Opens a connection. If a person took so long to touch the device that the server timed out, tries once more.
    // C842
    async fn dial(&self, tls: TlsConfigs<'_>) -> Result<Connected, TransportError> {
        let (connector, clock) = (&self.settings.connector, &self.settings.clock);
        let started = clock.monotonic();
        let was_slow = |since| clock.monotonic().saturating_sub(since) > SLOW_HANDSHAKE;
        // The server may have timed out on a socket opened before the credential arrived: if the TLS handshake fails on
        // it, a new socket is tried.
        if let Some(socket) = self.settings.preconnect.take(started, &*connector.timer).await
            && tls.handshake_permit.is_none()
        {
            match connector.open_on(Box::new(socket), tls).await {
                Err(TransportError::Handshake { .. }) => {}
                outcome => return outcome,
            }
        }
        match connector.open(tls).await {
            Err(TransportError::Handshake { .. }) if tls.handshake_permit.is_some() && was_slow(started) => {}
            outcome => return outcome,
        }
        let again = clock.monotonic();
        match connector.open(tls).await {
            Err(TransportError::Handshake { name, .. }) if was_slow(again) => {
                let seconds = clock.monotonic().saturating_sub(again).as_secs();
                Err(TransportError::SlowSigner { name, seconds })
            }
            outcome => outcome,
        }
    }

    /// Returns an idle connection to the pool.
    fn return_idle(&self, connection: Box<Http1>) {
        let since = self.settings.clock.monotonic();
        let too_old = since.saturating_sub(self.settings.connector.timeouts.idle);
        connection.driver.clear_waker();
        let mut state = self.state();
        state.idle.retain(|idle| idle.since >= too_old);
        if !state.retired && state.idle.len() < self.settings.max_idle {
            state.idle.push(Idle { connection, since });
        }
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Pool")
            .field("retired", &state.retired)
            .field("http2", &state.http2.len())
            .field("idle", &state.idle.len())
            .finish_non_exhaustive()
    }
}

impl PoolSettings {
    /// Sets path and `Host`, or the absolute URI where a proxy forwards.
    fn prepare_http1(&self, head: &mut request::Parts) -> Result<(), http::Error> {
        head.version = Version::HTTP_11;
        let path = path_of(head);
        head.uri = match &self.forwarding {
            None => Uri::from(path),
            Some(_) => self.absolute_uri(path)?,
        };
        if let Entry::Vacant(entry) = head.headers.entry(HOST) {
            entry.insert(self.host.clone());
        }
        if let Some(authorization) = self.forwarding.as_ref().and_then(|proxy| proxy.authorization.clone()) {
            head.headers.insert(PROXY_AUTHORIZATION, authorization);
        }
        Ok(())
    }

    fn prepare_http2(&self, head: &mut request::Parts) -> Result<(), http::Error> {
        head.version = Version::HTTP_2;
        head.uri = self.absolute_uri(path_of(head))?;
        Ok(())
    }

    fn absolute_uri(&self, path: PathAndQuery) -> Result<Uri, http::Error> {
        let (scheme, authority) = (self.scheme.clone(), self.authority.clone());
        Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build()
    }
}

fn path_of(head: &request::Parts) -> PathAndQuery {
    head.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"))
}

/// Runs a connection in the background until it ends; errors surface through the requests on it.
fn drive<E>(connection: impl Future<Output = Result<(), E>> + Send + 'static)
where
    E: Send + 'static,
{
    tokio::spawn(async move {
        let _ = connection.await;
    });
}

fn into_response(
    sent: Result<Response<Incoming>, hyper::client::conn::TrySendError<Request<Body>>>,
    mut exchange: Exchange,
) -> Result<BoxedResponse, Box<SendFailure>> {
    match sent {
        Ok(response) => {
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                exchange.state.upgrade();
                exchange.detach();
            }
            Ok(Box::new(response.map(|incoming| ResponseBody::new(incoming, exchange))))
        }
        Err(mut error) => {
            let unsent = error.take_message().map(Into::into);
            Err(Box::new(SendFailure { error: exchange.explain(error.into_error()), reused: true, unsent }))
        }
    }
}

fn explain(state: &ConnectionState, error: hyper::Error) -> TransportError {
    match state.alert() {
        Some(alert) if super::rejection::is_client_certificate_alert(alert) => {
            TransportError::CertificateRejected { alert: format!("{alert:?}") }
        }
        _ if state.is_closed_by_rotation() => TransportError::Retired,
        _ => TransportError::Http(error),
    }
}

/// One request and its response on a connection.
pub(super) struct Exchange {
    pool: Weak<Pool>,
    /// The connection to return to the pool.
    connection: Option<Box<Http1>>,
    state: Arc<ConnectionState>,
    held: bool,
    /// Counts the request on its HTTP/2 connection.
    _load: Option<Arc<()>>,
}

impl Exchange {
    /// Returns the connection to the pool: the response has been read completely.
    pub(super) fn finish(&mut self) {
        self.release_hold();
        if let (Some(connection), Some(pool)) = (self.connection.take(), self.pool.upgrade()) {
            pool.return_idle(connection);
        }
    }

    /// Polls the connection, if this request drives it, and a future that waits for it.
    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        mut poll_caller: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        match &mut self.connection {
            Some(connection) => connection.driver.poll(context, poll_caller),
            None => poll_caller(context),
        }
    }

    /// Hands an upgraded connection over to the caller.
    fn detach(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.driver.detach();
        }
    }

    /// Keeps a rotation from closing the connection.
    pub(super) fn hold(&mut self) {
        if !self.held {
            self.held = true;
            self.state.hold();
        }
    }

    /// Classifies an error from hyper.
    pub(super) fn explain(&self, error: hyper::Error) -> TransportError {
        explain(&self.state, error)
    }

    fn release_hold(&mut self) {
        if self.held {
            self.held = false;
            self.state.release();
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.release_hold();
    }
}
