//! The connections of one client certificate: those that wait for a request, and a way to open more.
//!
//! HTTP/2 has one connection for many exchanges; HTTP/1.1 has one per exchange, kept for the next. When the certificate is
//! replaced, the whole pool retires: what is unused closes at once, what is in use finishes (C462).

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
use super::connector::{Connected, Connector, Encryption};
use super::draft::Outgoing;
use super::driver::Driver;
use super::error::TransportError;
use super::head_start::HeadStart;
use super::line::LineState;
use super::timer;

/// What stays the same for every pool of a transport.
#[derive(Debug)]
pub(super) struct PoolSettings {
    pub(super) scheme: Scheme,
    pub(super) authority: Authority,
    /// The authority as a header.
    pub(super) host: HeaderValue,
    pub(super) connector: Connector,
    pub(super) head_start: HeadStart,
    /// Set where an http proxy forwards plain requests: it sees the whole address, and who we are to it.
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

/// A handshake that took longer than this may have failed because the server had given up (C842).
const SLOW_SIGNATURE: Duration = Duration::from_secs(25);

/// The TLS side of a pool.
pub(super) struct PoolTls {
    /// Offers HTTP/2 if that is wanted at all.
    pub(super) any: Arc<ClientConfig>,
    /// Offers HTTP/1.1 alone, for upgrades.
    pub(super) http1: Arc<ClientConfig>,
    /// Where another program signs: one handshake at a time (C845).
    pub(super) turn: Option<Arc<Semaphore>>,
}

/// The connections of one client certificate.
pub(super) struct Pool {
    settings: Arc<PoolSettings>,
    tls: Option<PoolTls>,
    proxy_tls: Option<Arc<ClientConfig>>,
    state: Mutex<State>,
    /// Held by whoever opens a connection while it is not known whether the server speaks HTTP/2: if it does, one
    /// connection is enough for everybody.
    first: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    retired: bool,
    closed: bool,
    speaks_http1: bool,
    http2: Vec<Http2>,
    idle: Vec<Idle>,
    lines: Vec<Weak<LineState>>,
}

impl State {
    /// Lets connections go that are closed, and those that nobody needs: one without a request is enough.
    fn tidy(&mut self) {
        let mut spare = 0;
        self.http2.retain(|http2| {
            let is_spare = http2.load() == 0;
            spare += usize::from(is_spare);
            !http2.sender.is_closed() && (!is_spare || spare == 1)
        });
    }
}

#[derive(Clone)]
struct Http2 {
    sender: http2::SendRequest<Body>,
    line: Arc<LineState>,
    /// Every exchange on it holds one more of these.
    load: Arc<()>,
}

impl Http2 {
    /// How many exchanges are on it.
    fn load(&self) -> usize {
        Arc::strong_count(&self.load) - 1
    }
}

/// The sender goes first: a connection that has none left ends in good order.
struct Http1 {
    sender: http1::SendRequest<Body>,
    driver: Driver,
    line: Arc<LineState>,
}

struct Idle {
    connection: Box<Http1>,
    since: Duration,
}

enum Connection {
    Http1(Box<Http1>),
    Http2(Http2),
}

/// An answer; on the heap, as its request was.
pub(super) type Answered = Box<Response<ResponseBody>>;

/// A request that got no answer.
pub(super) struct Failure {
    pub(super) error: TransportError,
    /// The request, if not a byte of it was sent.
    pub(super) unsent: Option<Box<Outgoing>>,
    /// Whether the connection had served before: then the server may just have been closing it.
    pub(super) reused: bool,
}

impl Failure {
    fn unsent(error: TransportError, request: Box<Outgoing>) -> Box<Self> {
        Box::new(Failure { error, unsent: Some(request), reused: false })
    }

    /// Whether the connection broke, rather than anybody saying no.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self.error, TransportError::Http(_))
    }
}

impl From<TransportError> for Box<Failure> {
    fn from(error: TransportError) -> Self {
        Box::new(Failure { error, unsent: None, reused: false })
    }
}

impl Pool {
    pub(super) fn new(
        settings: Arc<PoolSettings>,
        tls: Option<PoolTls>,
        proxy_tls: Option<Arc<ClientConfig>>,
    ) -> Self {
        let state = State { speaks_http1: tls.is_none(), ..State::default() };
        Pool { settings, tls, proxy_tls, state: Mutex::new(state), first: tokio::sync::Mutex::default() }
    }

    /// Sends a request whose address is a path alone.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Box<Outgoing>,
        upgrade: bool,
    ) -> Result<Answered, Box<Failure>> {
        loop {
            let waiting = self.waiting(upgrade).await.map(|connection| (connection, true));
            let found = match waiting {
                Some(found) => Ok(found),
                // On the heap: what is rare should not make room for itself in every request.
                None => Box::pin(self.opened(upgrade)).await,
            };
            let (connection, reused) = match found {
                Ok(found) => found,
                Err(error) => return Err(Failure::unsent(error, request)),
            };
            if self.state().retired {
                // No new request on an old certificate: the caller has a newer pool by now (C462).
                return Err(Failure::unsent(TransportError::Retired, request));
            }
            let mut failure = match self.send_on(connection, request, upgrade).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            match failure.unsent.take() {
                // It closed while it waited in the pool, and the request came back untouched.
                Some(unsent) if reused && failure.reused => request = unsent,
                unsent => {
                    (failure.unsent, failure.reused) = (unsent, reused);
                    return Err(failure);
                }
            }
        }
    }

    /// Takes no more connections, and closes those that are not in use.
    pub(super) fn retire(&self) {
        let (http2, idle) = {
            let mut state = self.state();
            state.retired = true;
            (std::mem::take(&mut state.http2), std::mem::take(&mut state.idle))
        };
        drop((http2, idle));
    }

    /// Closes the connections in use as well; whoever reads from them gets an error.
    pub(super) fn close(&self) {
        let lines: Vec<_> = {
            let mut state = self.state();
            state.closed = true;
            state.lines.iter().filter_map(Weak::upgrade).collect()
        };
        for line in lines {
            line.condemn();
        }
    }

    async fn send_on(
        self: &Arc<Self>,
        connection: Connection,
        mut request: Box<Outgoing>,
        upgrade: bool,
    ) -> Result<Answered, Box<Failure>> {
        match connection {
            Connection::Http2(Http2 { mut sender, line, load }) => {
                self.settings.for_http2(&mut request.head).map_err(TransportError::from)?;
                let exchange =
                    Exchange { pool: Weak::new(), connection: None, line, held: false, _load: Some(load) };
                answered(sender.try_send_request(request.into_request()).await, exchange)
            }
            Connection::Http1(mut connection) => {
                self.settings.for_http1(&mut request.head).map_err(TransportError::from)?;
                let Http1 { sender, driver, line } = &mut *connection;
                let line = Arc::clone(line);
                let sent = driver.along(|| sender.try_send_request(request.into_request())).await;
                // A connection that was asked for another protocol serves nobody else, whatever the answer
                // (structured-authentication.md S252).
                let pool = if upgrade { Weak::new() } else { Arc::downgrade(self) };
                answered(
                    sent,
                    Exchange { pool, connection: Some(connection), line, held: false, _load: None },
                )
            }
        }
    }

    /// A connection to send on where none waits, and whether it has served before after all.
    async fn opened(&self, upgrade: bool) -> Result<(Connection, bool), TransportError> {
        if upgrade || self.state().speaks_http1 {
            return Ok((self.open(upgrade).await?, false));
        }
        let first = match self.first.try_lock() {
            Ok(first) => Some(first),
            Err(_) => {
                let first = self.first.lock().await;
                if let Some(connection) = self.waiting(upgrade).await {
                    return Ok((connection, true));
                }
                // Full again: one more is opened, and the others wait for it. If it failed, or speaks HTTP/1.1, there is
                // no reason to queue.
                (!self.state().http2.is_empty()).then_some(first)
            }
        };
        let connection = self.open(upgrade).await?;
        drop(first);
        Ok((connection, false))
    }

    /// A connection from the pool that still stands.
    async fn waiting(&self, upgrade: bool) -> Option<Connection> {
        loop {
            let mut connection = {
                let mut state = self.state();
                if !upgrade {
                    state.tidy();
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
            if driver.takes(sender).await {
                return Some(Connection::Http1(connection));
            }
        }
    }

    async fn open(&self, upgrade: bool) -> Result<Connection, TransportError> {
        let server = self.tls.as_ref().map(|tls| if upgrade { &tls.http1 } else { &tls.any });
        let turn = self.tls.as_ref().and_then(|tls| tls.turn.as_ref());
        let encryption = Encryption { server, proxy: self.proxy_tls.as_ref(), turn };
        let Connected { line, state: line_state, http2 } = self.dial(encryption).await?;
        let io = TokioIo::new(line);
        let connection = if http2 {
            let (sender, driver) = http2::Builder::new(TokioExecutor::new())
                .timer(timer::for_hyper())
                .keep_alive_interval(self.settings.http2_read_idle)
                .keep_alive_timeout(self.settings.http2_ping_timeout)
                .keep_alive_while_idle(true)
                .adaptive_window(true)
                .handshake(io)
                .await
                .map_err(|error| explain(&line_state, error))?;
            drive(driver);
            Connection::Http2(Http2 { sender, line: Arc::clone(&line_state), load: Arc::default() })
        } else {
            let (sender, driver) = http1::handshake(io).await.map_err(|error| explain(&line_state, error))?;
            let driver = Driver::new(driver);
            Connection::Http1(Box::new(Http1 { sender, driver, line: Arc::clone(&line_state) }))
        };
        let mut state = self.state();
        if state.closed {
            return Err(TransportError::Retired);
        }
        state.lines.retain(|line| line.strong_count() > 0);
        state.lines.push(Arc::downgrade(&line_state));
        match &connection {
            Connection::Http2(http2) if !state.retired => state.http2.push(http2.clone()),
            Connection::Http2(_) => {}
            Connection::Http1(_) => state.speaks_http1 |= !upgrade,
        }
        Ok(connection)
    }

    /// Opens a connection; where a human was so slow to touch a device that the server had gone, once more (C842).
    async fn dial(&self, encryption: Encryption<'_>) -> Result<Connected, TransportError> {
        let (connector, clock) = (&self.settings.connector, &self.settings.clock);
        let started = clock.monotonic();
        let was_slow = |since| clock.monotonic().saturating_sub(since) > SLOW_SIGNATURE;
        // Nobody's word about the server counts that was given before the credential was there: if it does not agree
        // on such a socket, it is asked again.
        if let Some(socket) = self.settings.head_start.take(started, &*connector.timer).await
            && encryption.turn.is_none()
        {
            match connector.open_on(Box::new(socket), encryption).await {
                Err(TransportError::Handshake { .. }) => {}
                opened => return opened,
            }
        }
        match connector.open(encryption).await {
            Err(TransportError::Handshake { .. }) if encryption.turn.is_some() && was_slow(started) => {}
            opened => return opened,
        }
        let again = clock.monotonic();
        match connector.open(encryption).await {
            Err(TransportError::Handshake { name, .. }) if was_slow(again) => {
                let seconds = clock.monotonic().saturating_sub(again).as_secs();
                Err(TransportError::SlowSigner { name, seconds })
            }
            opened => opened,
        }
    }

    /// Takes a connection back.
    fn give_back(&self, connection: Box<Http1>) {
        let since = self.settings.clock.monotonic();
        let too_old = since.saturating_sub(self.settings.connector.timeouts.idle);
        connection.driver.rest();
        let mut state = self.state();
        state.idle.retain(|idle| idle.since >= too_old);
        if !state.retired && state.idle.len() < self.settings.max_idle {
            state.idle.push(Idle { connection, since });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
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
    /// A path and a `Host`; the whole address where a proxy forwards.
    fn for_http1(&self, head: &mut request::Parts) -> Result<(), http::Error> {
        head.version = Version::HTTP_11;
        let path = path_of(head);
        head.uri = match &self.forwarding {
            None => Uri::from(path),
            Some(_) => self.whole(path)?,
        };
        if let Entry::Vacant(entry) = head.headers.entry(HOST) {
            entry.insert(self.host.clone());
        }
        if let Some(authorization) = self.forwarding.as_ref().and_then(|proxy| proxy.authorization.clone()) {
            head.headers.insert(PROXY_AUTHORIZATION, authorization);
        }
        Ok(())
    }

    fn for_http2(&self, head: &mut request::Parts) -> Result<(), http::Error> {
        head.version = Version::HTTP_2;
        head.uri = self.whole(path_of(head))?;
        Ok(())
    }

    fn whole(&self, path: PathAndQuery) -> Result<Uri, http::Error> {
        let (scheme, authority) = (self.scheme.clone(), self.authority.clone());
        Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build()
    }
}

fn path_of(head: &request::Parts) -> PathAndQuery {
    head.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"))
}

/// Runs a connection until it ends; what goes wrong is told to those who have a request on it.
fn drive<E>(connection: impl Future<Output = Result<(), E>> + Send + 'static)
where
    E: Send + 'static,
{
    tokio::spawn(async move {
        let _ = connection.await;
    });
}

fn answered(
    sent: Result<Response<Incoming>, hyper::client::conn::TrySendError<Request<Body>>>,
    mut exchange: Exchange,
) -> Result<Answered, Box<Failure>> {
    match sent {
        Ok(response) => {
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                exchange.line.upgrade();
                exchange.set_free();
            }
            Ok(Box::new(response.map(|incoming| ResponseBody::new(incoming, exchange))))
        }
        Err(mut error) => {
            let unsent = error.take_message().map(Into::into);
            Err(Box::new(Failure { error: exchange.explain(error.into_error()), reused: true, unsent }))
        }
    }
}

fn explain(line: &LineState, error: hyper::Error) -> TransportError {
    match line.alert() {
        Some(alert) if super::unauthorized::is_about_us(alert) => {
            TransportError::CertificateRefused { alert: format!("{alert:?}") }
        }
        _ if line.is_closed_by_us() => TransportError::Retired,
        _ => TransportError::Http(error),
    }
}

/// One request and its answer on a connection.
pub(super) struct Exchange {
    pool: Weak<Pool>,
    /// What goes back to the pool at the end.
    connection: Option<Box<Http1>>,
    line: Arc<LineState>,
    held: bool,
    /// Its place on an HTTP/2 connection.
    _load: Option<Arc<()>>,
}

impl Exchange {
    /// The answer has been read to its end.
    pub(super) fn finish(&mut self) {
        self.let_go();
        if let (Some(connection), Some(pool)) = (self.connection.take(), self.pool.upgrade()) {
            pool.give_back(connection);
        }
    }

    /// Moves the connection on, if it needs somebody to do so, beside whoever waits for something from it.
    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        mut waiting: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        match &mut self.connection {
            Some(connection) => connection.driver.poll(context, waiting),
            None => waiting(context),
        }
    }

    /// What the connection becomes is the caller's.
    fn set_free(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.driver.set_free();
        }
    }

    /// Keeps the connection from being closed by a rotation.
    pub(super) fn hold(&mut self) {
        if !self.held {
            self.held = true;
            self.line.hold();
        }
    }

    /// What an error of hyper's means.
    pub(super) fn explain(&self, error: hyper::Error) -> TransportError {
        explain(&self.line, error)
    }

    fn let_go(&mut self) {
        if self.held {
            self.held = false;
            self.line.release();
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.let_go();
    }
}
