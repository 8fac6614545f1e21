//! Forwards one request to an API server. Shared by the proxy and the gateway.
//!
//! ```text
//! check ──▶ identify ──▶ strip ──▶ identity headers ──▶ fairness ──▶ transport ──▶ stream | upgrade
//! reject    authenticate hop-by-hop  written last,     a seat of     adds the      chunk by chunk,
//! ambiguity the caller   headers     not strippable    the user      credential    bytes after a 101
//! ```
//!
//! [`Forwarder::forward`] is the entry function. Stages do not call each other.

pub(crate) mod headers;
mod query;
mod status_message;
mod stream;
mod upgrade;
mod upstream_state;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode, request};
use http_body::Body as _;
use hyper::body::Incoming;
use navicert_client::transport::{Timer, TokioTimer, Transport, TransportError};
use navicert_types::error_chain;

use crate::fairness::{Admission, FlowId};
use crate::problem::Problem;

pub use headers::host_of;
pub use stream::{EarlyEnd, Inbound, ReplyBody, StreamKind};
pub(crate) use upstream_state::UpstreamState;

/// Authenticates a request: the step that differs between proxy and gateway.
pub trait Identify: Send + Sync {
    /// Decides from the original request head, which has passed the ambiguity checks.
    ///
    /// # Errors
    /// The [`Problem`] to respond with; nothing is sent to the API server.
    fn identify(
        &self,
        head: &request::Parts,
    ) -> impl Future<Output = Result<UpstreamIdentity, Problem>> + Send;

    /// A request failed the ambiguity checks, and [`Identify::identify`] is not called. Returns the problem to respond
    /// with.
    fn reject(&self, head: &request::Parts, problem: Problem) -> impl Future<Output = Problem> + Send {
        let _ = head;
        async { problem }
    }

    /// Whether [`Identify::denied`] is to be called.
    fn examines_denials(&self) -> bool {
        false
    }

    /// The API server forbade a request that was sent with the transport's credential; this is the message of its `Status`.
    /// Returns the problem to respond with instead, if it is the credential's account that lacks a permission.
    fn denied(&self, message: &str) -> impl Future<Output = Option<Problem>> + Send {
        let _ = message;
        async { None }
    }

    /// The response of an identified request outlives its head. Returns a future that completes when it has to end
    /// early; `None` never ends it.
    fn supervise(&self, kind: StreamKind, status: StatusCode) -> Option<EarlyEnd> {
        let _ = (kind, status);
        None
    }
}

/// Headers and credential that a request is forwarded with. The headers are written last.
///
/// Only [`Identify::identify`] creates one for a request, so an unauthenticated request is never forwarded.
// S240
#[derive(Clone, Debug, Default)]
pub struct UpstreamIdentity {
    headers: Vec<(HeaderName, HeaderValue)>,
    credential: UpstreamCredential,
    flow: FlowId,
}

/// Whose credential a request is sent with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum UpstreamCredential {
    /// The transport's.
    #[default]
    Proxy,
    /// The caller's own, in the headers; the transport has none.
    // S277
    Caller,
}

impl UpstreamIdentity {
    /// Only the transport's credential.
    pub(crate) fn with_proxy_credential() -> Self {
        UpstreamIdentity::default()
    }

    /// The transport's credential and these headers. A name may occur more than once.
    pub fn with_headers(headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        UpstreamIdentity { headers, ..UpstreamIdentity::default() }
    }

    /// The caller's own credential, sent over a transport without one ([`Forwarder::with_anonymous_upstream`]). A 401
    /// is relayed to the caller.
    pub(crate) fn with_caller_credential(authorization: HeaderValue) -> Self {
        let headers = vec![(http::header::AUTHORIZATION, authorization)];
        UpstreamIdentity { headers, credential: UpstreamCredential::Caller, ..UpstreamIdentity::default() }
    }

    /// Adds a header.
    #[must_use]
    pub(crate) fn and_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Counts the request for this flow. Without one, all requests share a flow.
    #[must_use]
    pub(crate) fn with_flow(mut self, flow: FlowId) -> Self {
        self.flow = flow;
        self
    }
}

/// What is forwarded.
#[derive(Clone, Debug)]
pub struct ForwardRules {
    /// What to do with a client's `Impersonate-*` headers.
    pub impersonation: ClientImpersonation,
    /// Further identity headers to reject, like `X-Remote-*`: names, or prefixes ending in `-`, in lower case.
    // S241
    pub identity_headers: Vec<String>,
    /// What to do with a 401 of the API server.
    pub unauthorized: UnauthorizedPolicy,
    /// Whether to tell clients why the API server is unreachable. Only for clients of the same user.
    // S273
    pub expose_details: bool,
    /// Whether to forward cookies.
    // S242
    pub cookies: bool,
}

/// What to do with a client's `Impersonate-*` headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientImpersonation {
    /// 403: if they were dropped silently, the client would believe that impersonation worked.
    // S239
    Rejected,
    /// Forward; the API server authorizes them. Only its four names are allowed.
    Forwarded,
    /// [`Identify::identify`] authorizes them. Only the four names are allowed, and none is forwarded.
    Authorized,
}

/// What to do with a 401 of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnauthorizedPolicy {
    /// 502: the proxy's credential was rejected, not the client's.
    // S246
    BadGateway,
    /// Relay: the credential belongs to the client's user.
    Relayed,
}

impl Default for ForwardRules {
    fn default() -> Self {
        ForwardRules {
            impersonation: ClientImpersonation::Rejected,
            identity_headers: Vec::new(),
            unauthorized: UnauthorizedPolicy::BadGateway,
            expose_details: false,
            cookies: false,
        }
    }
}

/// Learns how requests with the transport's credential end.
pub trait UpstreamObserver: fmt::Debug + Send + Sync {
    /// A request got no response.
    fn failed(&self, error: &TransportError);

    /// The API server rejected the credential (401).
    fn rejected(&self);

    /// The API server accepted the credential.
    fn accepted(&self);
}

/// Forwards requests to one API server.
#[derive(Clone, Debug)]
pub struct Forwarder {
    upstream: Transport,
    anonymous_upstream: Option<Transport>,
    rules: ForwardRules,
    timer: Arc<dyn Timer>,
    upstream_state: Arc<UpstreamState>,
    observer: Option<Arc<dyn UpstreamObserver>>,
}

impl Forwarder {
    /// Uses this transport, which should not request compression.
    pub fn new(upstream: Transport, rules: ForwardRules) -> Self {
        let timer = Arc::new(TokioTimer);
        Forwarder {
            upstream,
            anonymous_upstream: None,
            rules,
            timer,
            upstream_state: Arc::default(),
            observer: None,
        }
    }

    /// Adds a transport without a credential, for [`UpstreamIdentity::with_caller_credential`].
    #[must_use]
    pub(crate) fn with_anonymous_upstream(mut self, bare: Option<Transport>) -> Self {
        self.anonymous_upstream = bare;
        self
    }

    /// Reports the end of every request with the transport's credential.
    #[must_use]
    pub(crate) fn with_observer(mut self, observer: Option<Arc<dyn UpstreamObserver>>) -> Self {
        self.observer = observer;
        self
    }

    /// Uses another timer.
    #[must_use]
    pub(crate) fn with_timer(mut self, timer: Arc<dyn Timer>) -> Self {
        self.timer = timer;
        self
    }

    /// What the last requests say about the API server and the proxy's credential.
    // S246
    pub(crate) fn upstream_state(&self) -> &UpstreamState {
        &self.upstream_state
    }

    /// The transport with the proxy's credential.
    pub fn upstream(&self) -> &Transport {
        &self.upstream
    }

    /// Forwards a request, or responds with an error.
    pub async fn forward(
        &self,
        inbound: Inbound,
        identify: &impl Identify,
        admission: &Admission,
    ) -> Box<Response<ReplyBody>> {
        self.forward_authorized(inbound, identify, admission).await.unwrap_or_else(|problem| {
            tracing::debug!(event = "request_rejected", %problem, "rejected request");
            Box::new(problem.response())
        })
    }

    /// Large values are boxed, so that the future of every request stays small.
    async fn forward_authorized(
        &self,
        inbound: Inbound,
        identify: &impl Identify,
        admission: &Admission,
    ) -> Result<Box<Response<ReplyBody>>, Problem> {
        let Inbound { mut request, body } = inbound;
        let head = &mut request.head;
        let upgrade = match self.check(head, &body) {
            Ok(upgrade) => upgrade,
            // Boxed, because it is large and rare.
            Err(problem) => return Err(Box::pin(identify.reject(head, problem)).await),
        };
        let identity = identify.identify(head).await?;
        let is_watch = stream::is_watch(head);
        let client = upgrade.as_ref().map(|_| upgrade::ClientSide::take(head));
        stream::retarget(head, headers::target(head)?);
        headers::strip_request(&mut head.headers, &self.rules);
        if let Some(upgrade) = &upgrade {
            upgrade.write(&mut head.headers);
        }
        headers::write_identity(&mut head.headers, identity.headers)?;
        let upstream = match identity.credential {
            UpstreamCredential::Proxy => &self.upstream,
            UpstreamCredential::Caller => self.anonymous_upstream.as_ref().ok_or(Problem::Unauthorized)?,
        };
        let mut reserved = None;
        if !body.is_end_stream() {
            let receiving = stream::buffer_or_stream(body, identity.flow, admission);
            (request.body, reserved) = Box::pin(receiving).await?;
        }
        // Only now, so that a client that sends its body slowly holds no seat.
        let seat = admission.user_seat(identity.flow).await?;
        let mut response = upstream.send_boxed(request).await.map_err(|error| {
            tracing::warn!(
                event = "upstream_request_failed",
                error = error_chain(&error),
                "failed to forward request to the API server"
            );
            if identity.credential == UpstreamCredential::Proxy {
                self.upstream_state.observe_failure(&error);
            }
            if let Some(observer) = self.observer_of(identity.credential) {
                observer.failed(&error);
            }
            Problem::from_transport(&error, self.rules.expose_details)
        })?;
        drop((seat, reserved));
        self.check_response(&response, upgrade.is_some(), identity.credential)?;
        let is_denied = response.status() == StatusCode::FORBIDDEN;
        if is_denied && identity.credential == UpstreamCredential::Proxy && identify.examines_denials() {
            // Boxed, because it is large and rare.
            response = Box::pin(examine_denial(response, identify)).await?;
        }
        match (upgrade, client) {
            (Some(upgrade), Some(client)) if !upgrade::is_error(&response) => {
                upgrade.check_response(&response)?;
                let early_end = identify.supervise(StreamKind::Tunnel, response.status());
                Ok(upgrade.connect(client, response, early_end, Arc::clone(&self.timer)))
            }
            _ => {
                let kind = stream::kind(&response, is_watch);
                let early_end = kind.and_then(|kind| identify.supervise(kind, response.status()));
                stream::prepare_response(&mut response, early_end);
                Ok(response)
            }
        }
    }

    /// Rejects ambiguous requests; returns the upgrade that an unambiguous one asks for.
    fn check(
        &self,
        head: &request::Parts,
        body: &Incoming,
    ) -> Result<Option<upgrade::UpgradeRequest>, Problem> {
        headers::check(head, &self.rules)?;
        upgrade::UpgradeRequest::from_request(head, body)
    }

    fn observer_of(&self, credential: UpstreamCredential) -> Option<&dyn UpstreamObserver> {
        self.observer.as_deref().filter(|_| credential == UpstreamCredential::Proxy)
    }

    /// Rejects responses that must not be forwarded.
    // S246, S252
    fn check_response<B>(
        &self,
        response: &Response<B>,
        upgrade: bool,
        credential: UpstreamCredential,
    ) -> Result<(), Problem> {
        let status = response.status();
        let is_proxy_credential = credential == UpstreamCredential::Proxy;
        let rejected = is_proxy_credential && status == StatusCode::UNAUTHORIZED;
        match self.observer_of(credential) {
            Some(observer) if rejected => observer.rejected(),
            Some(observer) => observer.accepted(),
            None => {}
        }
        if is_proxy_credential {
            self.upstream_state.observe_response(status);
        }
        if rejected && self.rules.unauthorized == UnauthorizedPolicy::BadGateway {
            return Err(Problem::BadUpstreamResponse("the API server rejected the proxy's credential"));
        }
        if status == StatusCode::SWITCHING_PROTOCOLS && !upgrade {
            return Err(Problem::BadUpstreamResponse("the API server switched protocols without a request"));
        }
        if status.is_redirection() && !headers::is_same_server_redirect(response) {
            return Err(Problem::BadUpstreamResponse(
                "the API server responded with a redirect, which is not followed",
            ));
        }
        Ok(())
    }
}

/// A denial of the API server, unless it is about the account of the transport's credential.
// S246
async fn examine_denial(
    response: Box<Response<ReplyBody>>,
    identify: &impl Identify,
) -> Result<Box<Response<ReplyBody>>, Problem> {
    let (response, message) = status_message::read(response).await?;
    let Some(message) = message else { return Ok(response) };
    identify.denied(&message).await.map_or(Ok(response), Err)
}
