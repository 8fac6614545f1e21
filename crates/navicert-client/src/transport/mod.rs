//! HTTP transport: attaches credentials, pools connections and retries after a rejected credential.
//!
//! ```text
//! PendingRequest ──▶ attach ──▶ rotation ──▶ pool ──▶ connector ──▶ tls
//! (headers)       (credential)  (which        (reuse   (DNS, socket,
//!    ▲                           certificate)  or open)  proxy)
//!    └──── rejection ◀── 401 or TLS alert: refresh, then retry once
//! ```
//!
//! [`Transport`] is a tower service. Calling it needs a tokio runtime; creating it does not.
//!
//! ```
//! use navicert_client::ClientContext;
//! use navicert_client::credential::CredentialSource;
//! use navicert_client::transport::{Body, Transport, TransportSettings};
//! use std::sync::Arc;
//!
//! # async fn example(source: Arc<dyn CredentialSource>) -> Result<(), Box<dyn std::error::Error>> {
//! let settings = TransportSettings::new("https://127.0.0.1:6443");
//! let transport = Transport::new(settings, source, ClientContext::system())?;
//! let response = transport.send(http::Request::get("/version").body(Body::empty())?).await?;
//! assert!(response.status().is_success());
//! # Ok(()) }
//! ```

mod attach;
mod body;
mod connection_io;
mod connector;
mod driver;
mod error;
mod impersonate;
mod pending_request;
mod pool;
mod preconnect;
mod rejection;
mod rotation;
mod server;
mod settings;
mod timer;
mod tls;
mod tunnel;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use navicert_types::error_chain;
use navicert_types::proxy::ProxyScheme;
pub use navicert_types::proxy::{Proxy, ProxyEnvironment, ProxyError};

pub use attach::{attach, attach_cached};
pub use body::{Body, BodyEnd, ResponseBody};
pub use connector::Timeouts;
pub use error::{BuildError, TransportError};
pub use impersonate::Impersonation;
pub use pending_request::OutgoingRequest;
pub(crate) use settings::TransportEnvironment;
pub use settings::{ProxyChoice, TransportSettings};
#[cfg(any(test, feature = "test-util"))]
pub use timer::ManualTimer;
pub use timer::{Timer, TokioTimer};
pub use tls::Trust;
pub(crate) use tls::has_certificate;

use crate::context::ClientContext;
use crate::credential::{BoxFuture, Credential, CredentialSource, Generation, Rejection, RequestOrigin};
use pending_request::{PendingRequest, RequestFlags, RetryParts};
use pool::{BoxedResponse, Forwarding, PoolSettings, SendFailure};
use preconnect::Preconnect;
use rotation::Pools;
use server::Server;

/// How often one request is retried because its client certificate was replaced before it was sent.
const MAX_GENERATION_RETRIES: usize = 4;
/// The largest 401 body that is drained so that its connection can be reused.
const MAX_DRAIN_BYTES: u64 = 64 * 1024;
/// How long draining may take.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends requests to one API server with credentials from a [`CredentialSource`]. Clones share connections and state.
///
/// A request URI is a path, or an absolute URI of this server. A request that already has an `Authorization` header keeps
/// it, and a 401 response to it is returned without a refresh. A [`RequestOrigin`] in the request's extensions says whether
/// a person waits for the response.
// C471
#[derive(Clone, Debug)]
pub struct Transport(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: TransportSettings,
    server: Server,
    source: Arc<dyn CredentialSource>,
    pools: Arc<Pools>,
    timer: Arc<dyn Timer>,
    hint_logged: AtomicBool,
}

impl Transport {
    /// Creates a transport for one server. Opens no connection.
    ///
    /// # Errors
    /// [`BuildError`]: the settings are invalid.
    pub fn new(
        settings: TransportSettings,
        source: Arc<dyn CredentialSource>,
        client_context: ClientContext,
    ) -> Result<Self, BuildError> {
        let server = Server::parse(&settings.server, &settings.tls_server_name)?;
        let proxy = settings.proxy_to(&server)?;
        if !server.is_https() {
            tracing::warn!(
                event = "server_not_encrypted",
                server = %server.origin(),
                "server address is plain http, sending no credentials"
            );
        }
        let tls_to_proxy = proxy.as_ref().is_some_and(|proxy| proxy.scheme() == ProxyScheme::Https);
        let roots = (server.is_https() || tls_to_proxy)
            .then(|| tls::Roots::new(settings.trust.clone(), &client_context))
            .transpose()?;
        let pool_settings =
            pool_settings(&settings, &server, proxy, &client_context.clock, &client_context.timer);
        let pools = Pools::new(
            Arc::new(pool_settings),
            roots,
            (settings.http2, tls_to_proxy),
            settings.drain_timeout,
            Arc::clone(&client_context.timer),
        );
        let (pools, timer, hint_logged) = (Arc::new(pools), client_context.timer, AtomicBool::new(false));
        Ok(Transport(Arc::new(Inner { settings, server, source, pools, timer, hint_logged })))
    }

    /// Gets the credential now rather than with the first request, so that an interactive plugin can use the terminal
    /// before the program does. Needs no async runtime.
    ///
    /// # Errors
    /// The credential source failed.
    pub async fn prepare(&self, origin: RequestOrigin) -> Result<(), TransportError> {
        if self.0.server.is_https() && self.0.source.cached().is_none() {
            self.0.source.get(origin).await.map_err(TransportError::Credentials)?;
        }
        Ok(())
    }

    /// Sends a request. The response body streams, so a watch works; pass a 101 response to `hyper::upgrade::on`.
    ///
    /// # Errors
    /// [`TransportError`]: no response was received. A 401 response is not an error.
    pub async fn send(&self, request: Request<Body>) -> Result<Response<ResponseBody>, TransportError> {
        self.send_boxed(request.into()).await.map(|response| *response)
    }

    /// Like [`Transport::send`], for callers that forward boxed requests and responses: neither is copied.
    ///
    /// # Errors
    /// As [`Transport::send`].
    pub async fn send_boxed(
        &self,
        request: Box<OutgoingRequest>,
    ) -> Result<Box<Response<ResponseBody>>, TransportError> {
        let request = PendingRequest::new(request, &self.0.settings, &self.0.server)?;
        let flags = request.flags();
        let mut response = Box::pin(self.0.send_with_refresh(request, flags)).await?;
        flags.decompress_response(&mut response);
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

impl Inner {
    /// Attaches the credential and sends the request; if the credential is rejected, refreshes it and retries once.
    async fn send_with_refresh(
        &self,
        request: PendingRequest,
        flags: RequestFlags,
    ) -> Result<BoxedResponse, TransportError> {
        let retry_parts = request.retry_parts();
        let mut credential = self.credential(flags).await?;
        let mut outcome = self.attempt(request, retry_parts.as_ref(), flags, &mut credential).await;
        let attached = credential.filter(|_| !flags.has_authorization);
        let rejection =
            attached.and_then(|used| Some((rejection::rejection_in(&outcome, &used)?, used.generation)));
        let Some(rejection) = rejection else {
            return outcome.map_err(|failure| failure.error);
        };
        if let Ok(response) = &mut outcome {
            response.body_mut().hold_connection();
        }
        // Boxed: this path is rare, and would enlarge the future of every request.
        Box::pin(self.retry_with_refreshed(outcome, rejection, retry_parts, flags)).await
    }

    /// Refreshes a rejected credential and retries the request, if it can be sent again.
    async fn retry_with_refreshed(
        &self,
        mut outcome: Result<BoxedResponse, Box<SendFailure>>,
        (rejection, generation): (Rejection, Generation),
        retry_parts: Option<RetryParts>,
        flags: RequestFlags,
    ) -> Result<BoxedResponse, TransportError> {
        let new = match self.source.refresh_rejected(generation, rejection).await {
            Ok(new) => new,
            Err(error) => {
                tracing::warn!(
                    event = "credential_refresh_failed",
                    error = error_chain(&error),
                    "failed to refresh rejected credential"
                );
                None
            }
        };
        let (Some(new), true) = (new, self.settings.retry_unauthorized) else {
            return self.finish_rejected(outcome);
        };
        let unsent = match &mut outcome {
            Err(failure) => failure.unsent.take().map(|request| PendingRequest::from_unsent(request, flags)),
            Ok(_) => None,
        };
        let Some(again) = unsent.or_else(|| retry_parts.as_ref().map(RetryParts::to_request)) else {
            return self.finish_rejected(outcome);
        };
        if let Ok(response) = outcome {
            self.drain(response).await;
        }
        let mut credential = Some(new);
        let outcome = self.attempt(again, None, flags, &mut credential).await;
        if let Some(used) = credential
            && let Some(rejection) = rejection::rejection_in(&outcome, &used)
        {
            // The source learns of the rejection, so that it does not return this credential for ever; it also limits
            // how often it refreshes (C442). This request is not sent a third time.
            if let Err(error) = self.source.refresh_rejected(used.generation, rejection).await {
                tracing::warn!(
                    event = "credential_refresh_failed",
                    error = error_chain(&error),
                    "failed to refresh rejected credential"
                );
            }
            return self.finish_rejected(outcome);
        }
        outcome.map_err(|failure| failure.error)
    }

    /// The credential for the first attempt; `None` if the request needs none.
    async fn credential(&self, flags: RequestFlags) -> Result<Option<Arc<Credential>>, TransportError> {
        if !self.server.is_https() {
            return Ok(None); // C160: credentials are never sent over plain http, so the source is not asked.
        }
        // A request with its own `Authorization` only needs a connection; if there is one, no plugin has to run.
        if flags.has_authorization && self.pools.current_pool().is_some() {
            return Ok(None);
        }
        if let Some(credential) = self.source.cached() {
            return Ok(Some(credential));
        }
        let preconnect = if self.source.may_preconnect() { self.pools.preconnect() } else { None };
        let credential = self.source.get(flags.origin).await.map_err(TransportError::Credentials)?;
        if let Some(guard) = preconnect {
            guard.disarm();
        }
        Ok(Some(credential))
    }

    /// Sends the request. It is sent again only if the server closed the reused connection, or if the client certificate
    /// was replaced before a byte was sent.
    async fn attempt(
        &self,
        mut request: PendingRequest,
        retry_parts: Option<&RetryParts>,
        flags: RequestFlags,
        credential: &mut Option<Arc<Credential>>,
    ) -> Result<BoxedResponse, Box<SendFailure>> {
        if self.pools.roots_due().is_some() {
            Box::pin(self.pools.reload_roots()).await;
        }
        let mut was_stale = false;
        for _ in 0..MAX_GENERATION_RETRIES {
            let pool = match credential.as_deref() {
                Some(credential) => self.pools.pool_for(credential)?,
                None => match self.pools.current_pool() {
                    Some(pool) => Some(pool),
                    None => self.pools.pool_for(&Credential::anonymous())?,
                },
            };
            if let Some(pool) = pool {
                let attached = credential.as_deref().filter(|_| !flags.has_authorization);
                let mut failure = match pool.send(request.attach(attached), flags.upgrade).await {
                    Ok(response) => return Ok(response),
                    Err(failure) => failure,
                };
                if failure.reused && flags.is_safe && !was_stale && failure.is_connection_error() {
                    let Some(again) = retry_parts.map(RetryParts::to_request) else {
                        return Err(failure);
                    };
                    (request, was_stale) = (again, true);
                    continue;
                }
                match failure.unsent.take() {
                    Some(unsent) if matches!(failure.error, TransportError::Retired) => {
                        request = PendingRequest::from_unsent(unsent, flags);
                    }
                    unsent => {
                        failure.unsent = unsent;
                        return Err(failure);
                    }
                }
            }
            // The certificate was replaced by a newer one: get the credential that goes with it.
            if credential.is_some() {
                let newer = self.source.get(flags.origin).await.map_err(TransportError::Credentials)?;
                *credential = Some(newer);
            }
        }
        Err(TransportError::Retired.into())
    }

    /// Returns the rejected outcome, and logs the source's hint about the reason once.
    // C168
    fn finish_rejected(
        &self,
        outcome: Result<BoxedResponse, Box<SendFailure>>,
    ) -> Result<BoxedResponse, TransportError> {
        if let Some(hint) = self.source.hint()
            && !self.hint_logged.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(event = "credential_rejected", hint, "server rejected the credential");
        }
        outcome.map_err(|failure| failure.error)
    }

    /// Reads a small body to its end, so that its connection can be reused.
    async fn drain(&self, response: BoxedResponse) {
        let body = response.into_body();
        if http_body::Body::size_hint(&body).upper().is_some_and(|size| size <= MAX_DRAIN_BYTES) {
            timer::with_timeout(&*self.timer, DRAIN_TIMEOUT, body.collect()).await;
        }
    }
}

fn proxy_authorization(proxy: &Proxy) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(proxy.authorization()?.expose().as_str()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn pool_settings(
    settings: &TransportSettings,
    server: &Server,
    proxy: Option<Proxy>,
    clock: &Arc<dyn navicert_types::Clock>,
    timer: &Arc<dyn Timer>,
) -> PoolSettings {
    let forwards = |proxy: &&Proxy| !server.is_https() && proxy.scheme() != ProxyScheme::Socks5;
    PoolSettings {
        scheme: server.scheme.clone(),
        // An authority consists of characters that are valid in a header.
        host: HeaderValue::try_from(server.authority.as_str())
            .unwrap_or(HeaderValue::from_static("localhost")),
        authority: server.authority.clone(),
        forwarding: proxy
            .as_ref()
            .filter(forwards)
            .map(|proxy| Forwarding { authorization: proxy_authorization(proxy) }),
        connector: connector::Connector {
            host: server.host.clone(),
            port: server.port,
            server_name: server.name.clone(),
            proxy,
            timeouts: settings.timeouts,
            public_only: settings.public_only,
            timer: Arc::clone(timer),
        },
        preconnect: Preconnect::default(),
        clock: Arc::clone(clock),
        max_idle: settings.max_idle,
        http2_streams: settings.http2_streams.max(1),
        http2_read_idle: settings.http2_read_idle,
        http2_ping_timeout: settings.http2_ping_timeout,
    }
}

#[cfg(test)]
mod tests;
