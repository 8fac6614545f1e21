//! An HTTP server over TLS that records every request and sends scripted answers; the fake issuer and API server use it.
//!
//! ```text
//! accept.rs ──▶ tls.rs ──▶ serve.rs ──▶ rules.rs ──▶ Answer
//! (port, outage) (handshake) (record.rs keeps it)  (which one)
//! ```

mod accept;
mod builder;
mod record;
mod rules;
mod serve;
mod socket;
mod state;
mod tls;

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};

use rustls::CertificateError;
use tokio::sync::mpsc;

pub use builder::HttpServerBuilder;
pub use record::{BodyState, ClientCertificate, Connection, Log, Request, Tls};
pub use tls::ClientAuth;

use crate::net::answer::{Answer, Cut};
use crate::net::background::Background;
use crate::net::gate::Gate;
use crate::pki::ca::{Ca, Identity};
use crate::wait;
use accept::{Listening, Reception};
use rules::Choice;
use state::Shared;
use tls::TlsSettings;

/// A server on a loopback port, in a thread of its own; it is gone when dropped.
///
/// ```
/// use navicert_testkit::{Answer, Ca, HttpClient, HttpServer};
/// use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let ca = Ca::new("server example");
/// let server = HttpServer::start(&ca);
/// server.answer("/hello", Answer::json(&json!({"hello": "world"})));
///
/// let reply = HttpClient::trusting(&ca).get(&server.url_of("/hello")).await.unwrap();
/// assert_eq!(reply.json()["hello"], "world");
/// let requests = server.wait_for_requests(1).await;
/// assert_eq!(requests[0].path(), "/hello");
/// # }
/// ```
pub struct HttpServer {
    address: SocketAddr,
    scheme: &'static str,
    shared: Arc<Shared>,
    settings: TlsSettings,
    orders: mpsc::UnboundedSender<Listening>,
    // Last, so that the server's tasks are gone when everything else is.
    _background: Background,
}

impl HttpServer {
    /// A TLS server with a certificate for loopback from this CA. It answers 404 until another answer is set.
    pub fn start(ca: &Ca) -> Self {
        HttpServer::builder().start(ca)
    }

    /// A server without TLS.
    pub fn start_plain() -> Self {
        HttpServer::builder().start_plain()
    }

    /// Begins a server with other settings.
    pub fn builder() -> HttpServerBuilder {
        HttpServerBuilder::default()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https://127.0.0.1:port`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// The URL of a path that begins with a slash.
    pub fn url_of(&self, path: &str) -> String {
        assert!(path.starts_with('/'), "`{path}` does not begin with a slash");
        format!("{}{path}", self.url())
    }

    /// Sets the answer to every request to `path`; a `*` at the end of the path matches any rest.
    pub fn answer(&self, path: &str, answer: Answer) {
        self.shared.rules().stand(path, Choice::Fixed(Box::new(answer)));
    }

    /// Sets the answer to the next request to `path`; several such answers are sent in order.
    pub fn answer_once(&self, path: &str, answer: Answer) {
        self.shared.rules().once(path, Choice::Fixed(Box::new(answer)));
    }

    /// Computes the answer to every request to `path` with `choose`.
    pub fn answer_with(&self, path: &str, choose: impl Fn(&Request) -> Answer + Send + Sync + 'static) {
        self.shared.rules().stand(path, Choice::Chosen(Arc::new(choose)));
    }

    /// The same for an answer that is not known at once, such as another server's.
    pub fn answer_with_future<F>(&self, path: &str, choose: impl Fn(Request) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        self.shared.rules().stand(path, Choice::Awaited(Arc::new(move |request| Box::pin(choose(request)))));
    }

    /// Removes all answers that were set: the default answers apply.
    pub fn forget_answers(&self) {
        self.shared.rules().forget();
    }

    /// Everything seen so far.
    pub fn log(&self) -> Log {
        self.shared.log.borrow().clone()
    }

    /// The requests so far, in the order their heads arrived.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log.borrow().requests.clone()
    }

    /// How many requests came to a path, whatever their query.
    pub fn count(&self, path: &str) -> usize {
        self.shared.log.borrow().requests.iter().filter(|request| request.path() == path).count()
    }

    /// The connections so far.
    pub fn connections(&self) -> Vec<Connection> {
        self.shared.log.borrow().connections.clone()
    }

    /// Waits until this many requests have arrived with their bodies, and returns all of them.
    ///
    /// # Panics
    /// If they do not arrive within [`wait::LIMIT`].
    pub async fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        let arrived = |request: &&Request| request.body_state != BodyState::Arriving;
        self.wait_until(&format!("{count} requests"), |log| {
            log.requests.iter().filter(arrived).count() >= count
        })
        .await
        .requests
    }

    /// Waits until this many requests to one path have arrived with their bodies, and returns them.
    ///
    /// # Panics
    /// If they do not arrive within [`wait::LIMIT`].
    pub async fn wait_for_requests_to(&self, path: &str, count: usize) -> Vec<Request> {
        let arrived =
            |request: &&Request| request.path() == path && request.body_state != BodyState::Arriving;
        let what = format!("{count} requests to {path}");
        let log = self.wait_until(&what, |log| log.requests.iter().filter(arrived).count() >= count).await;
        log.requests.into_iter().filter(|request| arrived(&request)).collect()
    }

    /// Waits until the log satisfies `done`, and returns it.
    ///
    /// # Panics
    /// With `what`, if that does not happen within [`wait::LIMIT`].
    pub async fn wait_until(&self, what: &str, done: impl Fn(&Log) -> bool) -> Log {
        wait::until(what, self.shared.log.subscribe(), done, summary).await;
        self.log()
    }

    /// From now on new connections are refused, and open ones are clipped. Done when it returns.
    pub fn refuse_connections(&self) {
        self.listen(false);
        self.cut_connections(Cut::Clip);
    }

    /// From now on new connections are accepted and reset at once, and open ones are reset too.
    pub fn reset_connections(&self) {
        self.shared.reception.send_replace(Reception::Reset);
        self.cut_connections(Cut::Reset);
    }

    /// From now on, the server accepts connections but sends nothing, not even a TLS handshake, before the gate opens.
    pub fn stall_connections(&self, gate: &Gate) {
        self.shared.reception.send_replace(Reception::Stall(gate.clone()));
    }

    /// Ends an outage: new connections are served again, on the same port.
    pub fn accept_connections(&self) {
        self.shared.reception.send_replace(Reception::Serve);
        self.listen(true);
    }

    /// Breaks all open connections off. Their sockets are closed when it returns.
    pub fn cut_connections(&self, how: Cut) {
        let open: Vec<usize> = self.shared.cut_all(how);
        let gone = |log: &Log| open.iter().all(|id| log.connections[*id].closed);
        if !gone(&self.shared.log.borrow()) {
            wait::blocking(wait::until("connections to close", self.shared.log.subscribe(), gone, summary));
        }
    }

    /// Presents another certificate from the next handshake on.
    pub fn present(&self, identity: &Identity) {
        *self.shared.tls.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(self.settings.config(identity));
    }

    /// Refuses client certificates with the TLS alert that belongs to `reason`; `None` ends that.
    ///
    /// A server that does not ask for certificates has nothing to refuse.
    pub fn refuse_client_certificates(&self, reason: Option<CertificateError>) {
        assert!(
            !matches!(self.settings.client_auth, ClientAuth::None),
            "this server does not ask for client certificates; start it with `client_auth`"
        );
        *self.settings.refusal.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    fn listen(&self, open: bool) {
        let (done, finished) = std::sync::mpsc::channel();
        self.orders.send(Listening { open, done }).expect("the server runs");
        finished.recv_timeout(wait::LIMIT).expect("the server opens or closes its listening socket");
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpServer").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// What to say of a log when a wait for something in it was in vain.
fn summary(log: &Log) -> String {
    let requests: Vec<String> =
        log.requests.iter().map(|request| format!("{} {}", request.method, request.target)).collect();
    format!(
        "{} connections, requests {requests:?}, handshake failures {:?}",
        log.connections.len(),
        log.handshake_failures
    )
}

#[cfg(test)]
mod tests;
