//! From a request to its answer: the stack every request goes through.
//!
//! ```text
//! Draft ──▶ attach ──▶ rotation ──▶ pool ──▶ connector ──▶ tls
//! (headers)  (credential) (whose       (reuse   (name, socket,
//!    ▲                     connection)  or open)  proxy)
//!    └──── unauthorized ◀── 401, TLS alert: refresh, then once more
//! ```
//!
//! [`Transport`] is a tower service. It needs a tokio runtime to be called in, and none to be made.
//!
//! ```
//! use navicert_client::credential::CredentialSource;
//! use navicert_client::transport::{Around, Body, Settings, Transport};
//! use std::sync::Arc;
//!
//! # async fn example(source: Arc<dyn CredentialSource>) -> Result<(), Box<dyn std::error::Error>> {
//! let transport = Transport::new(Settings::new("https://127.0.0.1:6443"), source, Around::system())?;
//! let response = transport.send(http::Request::get("/version").body(Body::empty())?).await?;
//! assert!(response.status().is_success());
//! # Ok(()) }
//! ```

mod attach;
mod body;
mod connect;
mod connector;
mod draft;
mod driver;
mod error;
mod head_start;
mod impersonate;
mod line;
mod pool;
mod proxy;
mod rotation;
mod server;
mod settings;
mod timer;
mod tls;
mod unauthorized;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;

pub use attach::attach_ready;
pub use body::{Body, ResponseBody};
pub use connect::{connect, connect_with};
pub use connector::Timeouts;
pub use draft::Outgoing;
pub use error::{BuildError, TransportError};
pub use impersonate::Impersonation;
pub(crate) use proxy::host_and_port;
pub use proxy::{Proxy, ProxyEnvironment, ProxyError};
pub use rotation::Rotation;
pub use settings::{Around, Environment, ProxyChoice, Settings};
#[cfg(any(test, feature = "test-util"))]
pub use timer::ManualTimer;
pub use timer::{Timer, TokioTimer};
pub use tls::Trust;

use crate::credential::{Asking, BoxFuture, Credential, CredentialSource, Generation, Refused};
use draft::{Draft, Spare, Traits};
use head_start::HeadStart;
use pool::{Answered, Failure, Forwarding, PoolSettings};
use rotation::Pools;
use server::Server;

/// How often a request may find that its credential was replaced while it was on its way.
const OVERTAKEN: usize = 4;
/// How much of a 401's body is read away so that its connection can serve again.
const WORTH_READING: u64 = 64 * 1024;
/// How long that may take.
const READING_AWAY: Duration = Duration::from_secs(1);

/// Sends requests to one API server, with whatever credential its source has. Clones share everything.
///
/// The caller's request is taken as it is: a path, or a whole address if it is the server's own. A request that has an
/// `Authorization` of its own keeps it, and a 401 to it is simply the answer (C471). An [`Asking`] among its extensions
/// says who is waiting.
#[derive(Clone, Debug)]
pub struct Transport(Arc<Stack>);

#[derive(Debug)]
struct Stack {
    settings: Settings,
    server: Server,
    source: Arc<dyn CredentialSource>,
    pools: Arc<Pools>,
    timer: Arc<dyn Timer>,
    hinted: AtomicBool,
}

impl Transport {
    /// A transport for this server. Nothing is connected yet.
    ///
    /// # Errors
    /// [`BuildError`]: the settings cannot be used.
    pub fn new(
        settings: Settings,
        source: Arc<dyn CredentialSource>,
        around: Around,
    ) -> Result<Self, BuildError> {
        let server = Server::parse(&settings.server, &settings.tls_server_name)?;
        let proxy = settings.proxy_to(&server)?;
        if !server.is_https() {
            tracing::warn!(server = %server.shown(), "plain http: no credentials are sent");
        }
        let tls_to_proxy = proxy.as_ref().is_some_and(|proxy| proxy.scheme == proxy::Scheme::Https);
        let roots = (server.is_https() || tls_to_proxy)
            .then(|| tls::Roots::new(settings.trust.clone(), &around))
            .transpose()?;
        let pool_settings = pool_settings(&settings, &server, proxy, &around.clock, &around.timer);
        let pools = Pools::new(
            Arc::new(pool_settings),
            roots,
            (settings.http2, tls_to_proxy),
            settings.rotation,
            Arc::clone(&around.timer),
        );
        let (pools, timer, hinted) = (Arc::new(pools), around.timer, AtomicBool::new(false));
        Ok(Transport(Arc::new(Stack { settings, server, source, pools, timer, hinted })))
    }

    /// Gets the credential now rather than with the first request: a plugin that talks to the user does so before anything
    /// else has the terminal. Needs no runtime.
    ///
    /// # Errors
    /// There is none to be had.
    pub async fn prepare(&self, asking: Asking) -> Result<(), TransportError> {
        if self.0.server.is_https() && self.0.source.ready().is_none() {
            self.0.source.current(asking).await.map_err(TransportError::Credentials)?;
        }
        Ok(())
    }

    /// Sends a request. The answer's body streams, so a watch works; an answer of 101 can be given to
    /// `hyper::upgrade::on`.
    ///
    /// # Errors
    /// [`TransportError`]: there is no answer. An answer of 401 is an answer.
    pub async fn send(&self, request: Request<Body>) -> Result<Response<ResponseBody>, TransportError> {
        self.pass(request.into()).await.map(|response| *response)
    }

    /// The same for whoever passes requests and answers on: neither is moved, only handed on.
    ///
    /// # Errors
    /// As [`Transport::send`].
    pub async fn pass(&self, request: Box<Outgoing>) -> Result<Box<Response<ResponseBody>>, TransportError> {
        let draft = Draft::new(request, &self.0.settings, &self.0.server)?;
        let traits = draft.traits();
        let mut response = Box::pin(self.0.exchange(draft, traits)).await?;
        traits.expand(&mut response);
        Ok(response)
    }
}

impl tower_service::Service<Request<Body>> for Transport {
    type Response = Response<ResponseBody>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<Response<ResponseBody>, TransportError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let transport = self.clone();
        Box::pin(async move { transport.send(request).await })
    }
}

impl Stack {
    /// The spine: attach, send, and if the credential is turned down, refresh and send once more.
    async fn exchange(&self, draft: Draft, traits: Traits) -> Result<Answered, TransportError> {
        let spare = draft.spare();
        let mut credential = self.credential(traits).await?;
        let mut outcome = self.attempt(draft, spare.as_ref(), traits, &mut credential).await;
        let ours = credential.filter(|_| !traits.has_authorization);
        let refusal = ours.and_then(|used| Some((unauthorized::refusal(&outcome, &used)?, used.generation)));
        let Some(refusal) = refusal else {
            return outcome.map_err(|failure| failure.error);
        };
        if let Ok(response) = &mut outcome {
            response.body_mut().hold();
        }
        // On the heap: what is rare should not make room for itself in every request.
        Box::pin(self.exchange_again(outcome, refusal, spare, traits)).await
    }

    /// The second half of the spine: the credential was turned down.
    async fn exchange_again(
        &self,
        mut outcome: Result<Answered, Box<Failure>>,
        (refused, generation): (Refused, Generation),
        spare: Option<Spare>,
        traits: Traits,
    ) -> Result<Answered, TransportError> {
        let new = match self.source.refused(generation, refused).await {
            Ok(new) => new,
            Err(error) => {
                tracing::warn!(%error, "refreshing credentials");
                None
            }
        };
        let (Some(new), true) = (new, self.settings.retry_unauthorized) else {
            return self.turned_down(outcome);
        };
        let unsent = match &mut outcome {
            Err(failure) => failure.unsent.take().map(|request| Draft::take_back(request, traits)),
            Ok(_) => None,
        };
        let Some(again) = unsent.or_else(|| spare.as_ref().map(Spare::draft)) else {
            return self.turned_down(outcome);
        };
        if let Ok(response) = outcome {
            self.read_away(response).await;
        }
        let mut credential = Some(new);
        let outcome = self.attempt(again, None, traits, &mut credential).await;
        if let Some(used) = credential
            && let Some(refused) = unauthorized::refusal(&outcome, &used)
        {
            // The source should know, so that it does not hand this one out for ever; it also knows when not to run
            // again (C442). This request is not sent a third time.
            if let Err(error) = self.source.refused(used.generation, refused).await {
                tracing::warn!(%error, "refreshing credentials");
            }
            return self.turned_down(outcome);
        }
        outcome.map_err(|failure| failure.error)
    }

    /// The credential to begin with; none if it is not needed.
    async fn credential(&self, traits: Traits) -> Result<Option<Arc<Credential>>, TransportError> {
        if !self.server.is_https() {
            return Ok(None); // C160: never over plain http, so nobody is even asked.
        }
        // The caller's own header needs nothing of ours but a connection, and if there is one no plugin need run for it.
        if traits.has_authorization && self.pools.latest().is_some() {
            return Ok(None);
        }
        if let Some(credential) = self.source.ready() {
            return Ok(Some(credential));
        }
        let head_start = if self.source.may_call_ahead() { self.pools.head_start() } else { None };
        let credential = self.source.current(traits.asking).await.map_err(TransportError::Credentials)?;
        if let Some(untaken) = head_start {
            untaken.keep();
        }
        Ok(Some(credential))
    }

    /// Sends once. Twice only where the first time did not count: the connection was already closing, or a new
    /// certificate took its place before a byte was sent.
    async fn attempt(
        &self,
        mut draft: Draft,
        spare: Option<&Spare>,
        traits: Traits,
        credential: &mut Option<Arc<Credential>>,
    ) -> Result<Answered, Box<Failure>> {
        if self.pools.roots_to_look_at().is_some() {
            Box::pin(self.pools.look_at_roots()).await;
        }
        let mut was_stale = false;
        for _ in 0..OVERTAKEN {
            let pool = match credential.as_deref() {
                Some(credential) => self.pools.pool_for(credential)?,
                None => match self.pools.latest() {
                    Some(pool) => Some(pool),
                    None => self.pools.pool_for(&Credential::anonymous())?,
                },
            };
            if let Some(pool) = pool {
                let attached = credential.as_deref().filter(|_| !traits.has_authorization);
                let mut failure = match pool.send(draft.with(attached), traits.upgrade).await {
                    Ok(answered) => return Ok(answered),
                    Err(failure) => failure,
                };
                if failure.reused && traits.is_safe && !was_stale && failure.is_broken() {
                    let Some(again) = spare.map(Spare::draft) else {
                        return Err(failure);
                    };
                    (draft, was_stale) = (again, true);
                    continue;
                }
                match failure.unsent.take() {
                    Some(request) if matches!(failure.error, TransportError::Retired) => {
                        draft = Draft::take_back(request, traits);
                    }
                    unsent => {
                        failure.unsent = unsent;
                        return Err(failure);
                    }
                }
            }
            // Overtaken by a newer certificate: whoever has it has its credential too.
            if credential.is_some() {
                let newer = self.source.current(traits.asking).await.map_err(TransportError::Credentials)?;
                *credential = Some(newer);
            }
        }
        Err(TransportError::Retired.into())
    }

    /// A refusal that stays one; if the source knows why that may be, it says so once (C168).
    fn turned_down(&self, outcome: Result<Answered, Box<Failure>>) -> Result<Answered, TransportError> {
        if let Some(hint) = self.source.hint()
            && !self.hinted.swap(true, Ordering::Relaxed)
        {
            tracing::warn!("{hint}");
        }
        outcome.map_err(|failure| failure.error)
    }

    /// Reads a small body to its end, so that its connection serves again.
    async fn read_away(&self, response: Answered) {
        let body = response.into_body();
        if http_body::Body::size_hint(&body).upper().is_some_and(|size| size <= WORTH_READING) {
            timer::within(&*self.timer, READING_AWAY, body.collect()).await;
        }
    }
}

fn pool_settings(
    settings: &Settings,
    server: &Server,
    proxy: Option<Proxy>,
    clock: &Arc<dyn navicert_types::Clock>,
    timer: &Arc<dyn Timer>,
) -> PoolSettings {
    let forwards = |proxy: &&Proxy| !server.is_https() && proxy.scheme != proxy::Scheme::Socks5;
    PoolSettings {
        scheme: server.scheme.clone(),
        // An authority is made of characters a header may have.
        host: HeaderValue::try_from(server.authority.as_str())
            .unwrap_or(HeaderValue::from_static("localhost")),
        authority: server.authority.clone(),
        forwarding: proxy
            .as_ref()
            .filter(forwards)
            .map(|proxy| Forwarding { authorization: proxy.authorization() }),
        connector: connector::Connector {
            host: server.host.clone(),
            port: server.port,
            server_name: server.name.clone(),
            proxy,
            timeouts: settings.timeouts,
            public_only: settings.public_only,
            timer: Arc::clone(timer),
        },
        head_start: HeadStart::default(),
        clock: Arc::clone(clock),
        max_idle: settings.max_idle,
        http2_streams: settings.http2_streams.max(1),
        http2_read_idle: settings.http2_read_idle,
        http2_ping_timeout: settings.http2_ping_timeout,
    }
}

#[cfg(test)]
mod tests;
