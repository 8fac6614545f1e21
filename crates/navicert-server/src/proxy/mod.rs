//! Authenticating reverse proxy for a Kubernetes API server.
//!
//! ```text
//! listener ──▶ forward ──check──▶ bearer ──▶ navicert-authn ──▶ impersonation ──▶ identity_headers ──▶ forward ──▶ API server
//!              strict checks      token      verify             --as               or rejected          headers last
//! ```
//!
//! `RequestIdentity::identify` is the entry function. Only it creates an [`UpstreamIdentity`], and the forwarder
//! requires one, so an unauthenticated request cannot reach the API server.

mod active_streams;
pub mod bearer;
pub mod client_address;
mod denial;
pub mod identity_headers;
mod impersonation;
mod missing_permission;
mod observer;
mod permission;
pub mod rbac;
mod rejection;
pub mod required_permissions;
mod reviews;
mod self_check;
mod server_version;
pub mod service_accounts;
pub mod settings;
pub mod upstream_access;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri, request};
use hyper::body::Incoming;
use navicert_authn::jwt::{StatedExpiry, stated_expiry};
use navicert_authn::metrics::sha256_label;
use navicert_authn::outcome::RefusalClass;
use navicert_authn::{AuthenticatedUser, AuthnDecision, AuthnOutcome, NoOpinion, ReloadableAuthenticator};
use navicert_client::transport::{Timer, Transport};
use navicert_types::Clock;
use navicert_types::authentication_config::AnonymousAuthConfig;
use navicert_types::token_review::UserInfo;

use crate::audit::Reason;
use crate::fairness::{Admission, FlowId};
use crate::forward::{
    ClientImpersonation, EarlyEnd, ForwardRules, Forwarder, Identify, Inbound, ReplyBody, StreamKind,
    UnauthorizedPolicy, UpstreamIdentity,
};
use crate::listener::{Handler, Peer};
use crate::problem::Problem;
use crate::request_info::RequestInfo;
use crate::trace_context::TraceParent;
use crate::user_ref::{self, UserRef};
use active_streams::{ActiveStreams, StreamDetails};
use bearer::Token;
use client_address::FORWARDED_FOR;
use identity_headers::{AllowedNames, HeaderNames, IdentityError};
use impersonation::{ImpersonationError, ImpersonationRequest};
use rejection::Rejected;
use server_version::ServerVersion;
use service_accounts::{ServiceAccountReviews, TokenReviewer};
use settings::{IdentityMode, ImpersonationPolicy, ServiceAccountTokens};

pub use observer::{RequestObserver, RequestOutcome};
pub use settings::ProxySettings;
pub use upstream_access::UpstreamAccess;

/// Dependencies of a proxy.
#[derive(Debug)]
pub struct ProxyParts {
    /// Verifies tokens.
    pub authenticator: Arc<ReloadableAuthenticator>,
    /// Transport to the API server with the proxy's credential. It should not request compression.
    pub upstream: Transport,
    /// Transport without a credential, for forwarded service account tokens.
    // S277
    pub anonymous_upstream: Option<Transport>,
    /// Reviews tokens of unknown issuers.
    pub reviewer: Option<Arc<dyn TokenReviewer>>,
    /// Receives the outcome of every request.
    pub observer: Arc<dyn RequestObserver>,
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Timer.
    pub timer: Arc<dyn Timer>,
}

/// The proxy.
#[derive(Debug)]
pub struct Proxy {
    authenticator: Arc<ReloadableAuthenticator>,
    forwarder: Forwarder,
    service_accounts: Option<ServiceAccountReviews>,
    observer: Arc<dyn RequestObserver>,
    clock: Arc<dyn Clock>,
    settings: ProxySettings,
    names: HeaderNames,
    anonymous: Option<AnonymousAuthConfig>,
    upstream_access: Arc<UpstreamAccess>,
    server_version: ServerVersion,
    streams: Arc<ActiveStreams>,
}

impl Proxy {
    /// Creates a proxy.
    pub fn new(settings: ProxySettings, parts: ProxyParts) -> Self {
        let ProxyParts { authenticator, upstream, anonymous_upstream, reviewer, observer, clock, timer } =
            parts;
        let names = settings.mode.names();
        let rules = ForwardRules {
            impersonation: match (settings.client_impersonation, &settings.mode) {
                (ImpersonationPolicy::Refuse, _) => ClientImpersonation::Rejected,
                // The API server knows the real user and authorizes impersonation itself.
                (ImpersonationPolicy::Allow, IdentityMode::RequestHeader(_)) => {
                    ClientImpersonation::Forwarded
                }
                (ImpersonationPolicy::Allow, IdentityMode::Impersonation) => ClientImpersonation::Authorized,
            },
            identity_headers: names.canonical(),
            unauthorized: UnauthorizedPolicy::BadGateway,
            expose_details: false,
            cookies: settings.forward_cookies,
        };
        let forwarder = Forwarder::new(upstream, rules)
            .with_anonymous_upstream(anonymous_upstream)
            .with_timer(Arc::clone(&timer));
        let service_accounts = reviewer
            .map(|reviewer| ServiceAccountReviews::new(reviewer, Arc::clone(&clock), Arc::clone(&timer)));
        let anonymous = authenticator.anonymous().filter(|anonymous| anonymous.enabled);
        let streams = Arc::new(ActiveStreams::new(
            &settings,
            Arc::clone(&authenticator),
            Arc::clone(&observer),
            Arc::clone(&clock),
            Arc::clone(&timer),
        ));
        let upstream_access =
            Arc::new(UpstreamAccess::new(&forwarder, &authenticator, &settings, anonymous.is_some(), timer));
        Proxy {
            authenticator,
            forwarder,
            service_accounts,
            observer,
            server_version: ServerVersion::new(Arc::clone(&clock)),
            clock,
            settings,
            names,
            anonymous,
            upstream_access,
            streams,
        }
    }

    /// Whether the API server accepts the proxy's credential and permissions.
    pub fn upstream_access(&self) -> &Arc<UpstreamAccess> {
        &self.upstream_access
    }

    /// Authenticates a request. Tokens of unknown issuers are rejected if `reviews` is false.
    async fn authenticate(
        &self,
        head: &request::Parts,
        details: &TokenDetails,
        reviews: bool,
    ) -> Result<Authenticated, Rejected> {
        let malformed = Rejected::Unauthenticated(Reason::Refused(RefusalClass::Malformed));
        let token = match bearer::read(&head.headers) {
            Ok(Some(token)) => token,
            Ok(None) => return self.anonymous(head),
            Err(_) => return Err(malformed),
        };
        let decision = self.authenticator.decide(token.expose()).await;
        if self.observer.is_enabled() {
            details.record(&decision);
        }
        match &decision.outcome {
            AuthnOutcome::Authenticated(user) => Ok(Authenticated {
                user: ProxyUser::Token(user.clone()),
                expiry: decision.expires().map_or(StatedExpiry::Unknown, StatedExpiry::At),
                decision: Some(decision),
                token: None,
                method: AuthnMethod::Token,
            }),
            AuthnOutcome::Rejected(rejection) => {
                Err(Rejected::Unauthenticated(Reason::Refused(rejection.refusal.class())))
            }
            AuthnOutcome::NoOpinion(NoOpinion::UnknownIssuer) if reviews => {
                // Boxed, because it is large and rare.
                Box::pin(self.review_service_account(token, details)).await
            }
            AuthnOutcome::NoOpinion(NoOpinion::UnknownIssuer) => {
                Err(Rejected::Unauthenticated(Reason::UnknownIssuer))
            }
            AuthnOutcome::NoOpinion(_) => Err(malformed),
        }
    }

    /// A request without credentials. Invalid credentials are rejected before.
    // S272, S58
    fn anonymous(&self, head: &request::Parts) -> Result<Authenticated, Rejected> {
        let is_open = self.anonymous.as_ref().is_some_and(|anonymous| {
            let mut conditions = anonymous.conditions.iter();
            anonymous.conditions.is_empty() || conditions.any(|condition| condition.path == head.uri.path())
        });
        if !is_open {
            return Err(Rejected::Unauthenticated(Reason::NoCredentials));
        }
        Ok(Authenticated {
            user: ProxyUser::UserInfo(Arc::new(user_ref::anonymous())),
            expiry: StatedExpiry::Never,
            decision: None,
            token: None,
            method: AuthnMethod::Anonymous,
        })
    }

    /// A token of an unknown issuer.
    // S276
    async fn review_service_account(
        &self,
        token: Token<'_>,
        details: &TokenDetails,
    ) -> Result<Authenticated, Rejected> {
        let Some(service_accounts) = &self.service_accounts else {
            return Err(Rejected::Unauthenticated(Reason::UnknownIssuer));
        };
        match service_accounts.review(token.expose()).await {
            Ok(Some(user_info)) if impersonation::service_account(&user_info.username).is_some() => {
                if let Some(jti) = UserRef::from(&*user_info).jti().filter(|_| self.observer.is_enabled()) {
                    let _ = details.jti_hash.set(sha256_label(jti.as_bytes()));
                }
                Ok(Authenticated {
                    user: ProxyUser::UserInfo(user_info),
                    // The API server has verified the token, but a review does not contain its expiry.
                    expiry: stated_expiry(token.expose()),
                    decision: None,
                    token: Some(token.into_owned()),
                    method: AuthnMethod::Review,
                })
            }
            Ok(_) => Err(Rejected::Unauthenticated(Reason::UnknownIssuer)),
            Err(_) => Err(Rejected::ReviewFailed),
        }
    }

    /// The identity that the API server receives.
    async fn identity(
        &self,
        head: &request::Parts,
        authenticated: &Authenticated,
        acting_as: &OnceLock<UserInfo>,
        (admission, flow): (&Admission, FlowId),
    ) -> Result<UpstreamIdentity, Rejected> {
        let user = authenticated.user.user_ref();
        let is_forwarded = authenticated.method == AuthnMethod::Review
            && self.settings.service_account_tokens == ServiceAccountTokens::PassThrough;
        if is_forwarded {
            return self.caller_identity(head, authenticated, acting_as);
        }
        let authorizes_impersonation = (self.settings.client_impersonation, &self.settings.mode)
            == (ImpersonationPolicy::Allow, &IdentityMode::Impersonation);
        if authorizes_impersonation && let Some(requested) = ImpersonationRequest::read(&head.headers)? {
            if authenticated.method == AuthnMethod::Anonymous {
                return Err(Rejected::Impersonation(ImpersonationError::Malformed(
                    "anonymous requests cannot impersonate",
                )));
            }
            // It sends requests to the API server. Boxed, because it is large and rare.
            let seat = admission.user_seat(flow).await?;
            let user_info = Box::pin(self.authorize(requested, user, head)).await?;
            drop(seat);
            // The API server has authorized every part of it.
            let headers = self.encode(UserRef::from(&user_info), AllowedNames::ALL)?;
            let _ = acting_as.set(user_info);
            return Ok(UpstreamIdentity::with_headers(headers));
        }
        let allowed = match authenticated.method {
            AuthnMethod::Token => self.settings.allowed_names,
            AuthnMethod::Review | AuthnMethod::Anonymous => AllowedNames::ALL,
        };
        let is_name_only = authenticated.method == AuthnMethod::Review
            && self.upstream_access.impersonates_service_accounts_by_name();
        let user = if is_name_only { user.without_attributes() } else { user };
        Ok(UpstreamIdentity::with_headers(self.encode(user, allowed)?))
    }

    fn encode(
        &self,
        user: UserRef<'_>,
        allowed: AllowedNames,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, IdentityError> {
        identity_headers::encode_within(self.settings.max_identity, user, &self.names, allowed)
    }

    /// Asks the API server whether a user may impersonate an identity for a request.
    // S237, S239
    async fn authorize(
        &self,
        requested: ImpersonationRequest,
        user: UserRef<'_>,
        head: &request::Parts,
    ) -> Result<UserInfo, ImpersonationError> {
        let upstream = self.forwarder.upstream();
        // A request that the API server cannot interpret has no verb that a rule could permit.
        let request = RequestInfo::from_parts(&head.method, &head.uri).ok();
        let is_constrained = self.server_version.has_constrained_impersonation(upstream).await;
        requested.authorize(user, request.as_ref().filter(|_| is_constrained), upstream).await
    }

    /// A service account's own token. Its impersonation headers are forwarded with it, and the API server authorizes
    /// them: without them, the request would run with the account's own rights.
    // S239, S276
    fn caller_identity(
        &self,
        head: &request::Parts,
        authenticated: &Authenticated,
        acting_as: &OnceLock<UserInfo>,
    ) -> Result<UpstreamIdentity, Rejected> {
        let authorization = authenticated.token.as_ref().and_then(Token::authorization);
        let malformed = Rejected::Unauthenticated(Reason::Refused(RefusalClass::Malformed));
        let identity = UpstreamIdentity::with_caller_credential(authorization.ok_or(malformed)?);
        let Some(requested) = ImpersonationRequest::read(&head.headers)? else { return Ok(identity) };
        if self.settings.client_impersonation == ImpersonationPolicy::Refuse {
            return Err(Rejected::Impersonation(ImpersonationError::Malformed(
                "impersonation is not allowed",
            )));
        }
        let _ = acting_as.set(requested.into_user());
        let headers = head.headers.iter().filter(|(name, _)| name.as_str().starts_with("impersonate-"));
        Ok(headers.fold(identity, |identity, (name, value)| identity.and_header(name.clone(), value.clone())))
    }
}

/// An authenticated request. Only [`Proxy::authenticate`] creates it.
#[derive(Debug)]
struct Authenticated {
    user: ProxyUser,
    /// When the token of the request expires.
    expiry: StatedExpiry,
    /// The decision on a token of a configured issuer.
    decision: Option<AuthnDecision>,
    /// A token that only the API server can verify.
    token: Option<Token<'static>>,
    method: AuthnMethod,
}

/// A user, from a verified token or from a TokenReview.
#[derive(Clone, Debug)]
enum ProxyUser {
    Token(AuthenticatedUser),
    UserInfo(Arc<UserInfo>),
}

impl ProxyUser {
    fn user_ref(&self) -> UserRef<'_> {
        match self {
            ProxyUser::Token(user) => UserRef::from(user),
            ProxyUser::UserInfo(user_info) => UserRef::from(&**user_info),
        }
    }
}

/// How a user was authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AuthnMethod {
    /// By a token of a configured issuer.
    Token,
    /// By a TokenReview of the API server.
    Review,
    /// Not at all.
    Anonymous,
}

/// Authentication of one request, and its result for the observer.
struct RequestIdentity<'p> {
    proxy: &'p Proxy,
    peer: &'p Peer,
    source: IpAddr,
    /// The request, if the observer is enabled.
    observed: Option<ObservedRequest>,
    authenticated: OnceLock<Authenticated>,
    acting_as: OnceLock<UserInfo>,
    rejection: OnceLock<Reason>,
    token: TokenDetails,
}

/// What the observer learns about a request whatever happens to it.
#[derive(Clone, Debug)]
struct ObservedRequest {
    method: Method,
    uri: Uri,
    traceparent: Option<TraceParent>,
    started: Duration,
}

/// Token details for the log.
#[derive(Default)]
struct TokenDetails {
    issuer: OnceLock<String>,
    jti_hash: OnceLock<String>,
}

impl TokenDetails {
    fn record(&self, decision: &AuthnDecision) {
        if let Some(url) = decision.issuer() {
            let _ = self.issuer.set(url.to_owned());
        }
        if let Some(jti) = decision.jti() {
            let _ = self.jti_hash.set(sha256_label(jti.as_bytes()));
        }
    }
}

impl Identify for RequestIdentity<'_> {
    /// Authenticates the request and adds the client address.
    async fn identify(&self, head: &request::Parts) -> Result<UpstreamIdentity, Problem> {
        // Boxed, because it is large and completes before the response arrives.
        let identity = Box::pin(self.authenticate(head)).await.map_err(|rejected| self.rejected(rejected))?;
        if !self.proxy.settings.forward_client_address {
            return Ok(identity);
        }
        Ok(match self.peer.address_value(self.source) {
            Some(source) => identity.and_header(FORWARDED_FOR, source),
            None => identity,
        })
    }

    /// Authenticates the request nevertheless, so that the observer learns its user.
    async fn reject(&self, head: &request::Parts, problem: Problem) -> Problem {
        let is_forbidden = matches!(problem, Problem::Forbidden(_));
        let is_ambiguous = head.headers.get_all(AUTHORIZATION).iter().nth(1).is_some();
        if is_ambiguous || !(is_forbidden || self.observed.is_some()) {
            return problem;
        }
        // Nothing is sent to the API server for a request that it would not understand.
        match self.authenticate_user(head, is_forbidden).await {
            Ok(authenticated) => {
                let _ = self.authenticated.set(authenticated);
                problem
            }
            // Unauthenticated clients learn nothing but that.
            Err(rejected) if is_forbidden => self.rejected(rejected),
            Err(_) => problem,
        }
    }

    fn examines_denials(&self) -> bool {
        self.proxy.settings.mode == IdentityMode::Impersonation
    }

    /// A denial that names the proxy's own account is not the user's.
    async fn denied(&self, message: &str) -> Option<Problem> {
        let user = match self.acting_as.get() {
            Some(target) => UserRef::from(target),
            None => self.authenticated.get()?.user.user_ref(),
        };
        missing_permission::problem(message, user, &self.proxy.upstream_access).await
    }

    fn supervise(&self, kind: StreamKind, status: StatusCode) -> Option<EarlyEnd> {
        let authenticated = self.authenticated.get()?;
        let details = StreamDetails {
            user: authenticated.user.clone(),
            decision: authenticated.decision.clone(),
            expiry: authenticated.expiry,
            acting_as: self.acting_as.get().map(|user_info| user_info.username.clone()),
            source: self.source,
            observed: self.observed.clone(),
            status,
        };
        Some(self.proxy.streams.supervise(kind, details))
    }
}

impl RequestIdentity<'_> {
    async fn authenticate(&self, head: &request::Parts) -> Result<UpstreamIdentity, Rejected> {
        let authenticated = self.authenticate_user(head, true).await?;
        let authenticated = self.authenticated.get_or_init(|| authenticated);
        let admission = self.peer.admission();
        let flow = admission.user_flow(authenticated.user.user_ref().username);
        let has_token = authenticated.method != AuthnMethod::Anonymous;
        self.peer.authenticated(flow, has_token).map_err(|_| Rejected::TooManyConnections)?;
        let identity = self.proxy.identity(head, authenticated, &self.acting_as, (admission, flow)).await?;
        Ok(identity.with_flow(flow))
    }

    /// Authenticates within the share of the client's address.
    async fn authenticate_user(
        &self,
        head: &request::Parts,
        reviews: bool,
    ) -> Result<Authenticated, Rejected> {
        let _seat = self.peer.admission().peer_seat(self.peer.flow_of(self.source)).await?;
        self.proxy.authenticate(head, &self.token, reviews).await
    }

    fn rejected(&self, rejected: Rejected) -> Problem {
        let _ = self.rejection.set(rejected.reason());
        rejected.problem()
    }
}

impl Handler for Proxy {
    /// With the PROXY protocol, only trusted load balancers may connect.
    fn admits(&self, peer: SocketAddr, _: SocketAddr) -> bool {
        let is_trusted = || self.settings.trusted_proxies.iter().any(|network| network.contains(peer.ip()));
        !self.settings.proxy_protocol || is_trusted()
    }

    fn has_proxy_protocol(&self) -> bool {
        self.settings.proxy_protocol
    }

    fn handle(
        &self,
        request: Request<Incoming>,
        peer: &Peer,
    ) -> impl Future<Output = Response<ReplyBody>> + Send {
        self.respond(request.into(), peer)
    }

    fn begin_drain(&self, grace: Duration) {
        self.streams.end_watches(grace);
    }
}

impl Proxy {
    async fn respond(&self, inbound: Inbound, peer: &Peer) -> Response<ReplyBody> {
        let head = inbound.head();
        let observed = self.observer.is_enabled().then(|| ObservedRequest {
            method: head.method.clone(),
            uri: head.uri.clone(),
            traceparent: TraceParent::from_headers(&head.headers),
            started: self.clock.monotonic(),
        });
        let identity = RequestIdentity {
            proxy: self,
            peer,
            source: client_address::client(peer.address.ip(), &head.headers, &self.settings.trusted_proxies),
            observed,
            authenticated: OnceLock::new(),
            acting_as: OnceLock::new(),
            rejection: OnceLock::new(),
            token: TokenDetails::default(),
        };
        let reply = self.forwarder.forward(inbound, &identity, peer.admission()).await;
        if let Some(observed) = &identity.observed {
            self.observe(&identity, observed, &reply);
        }
        *reply
    }

    fn observe(
        &self,
        identity: &RequestIdentity<'_>,
        observed: &ObservedRequest,
        reply: &Response<ReplyBody>,
    ) {
        let reason = identity.rejection.get().or_else(|| reply.extensions().get::<Reason>());
        self.observer.observe(&RequestOutcome {
            user: identity.authenticated.get().map(|authenticated| authenticated.user.user_ref()),
            acting_as: identity.acting_as.get().map(|user_info| user_info.username.as_str()),
            issuer: identity.token.issuer.get().map(String::as_str),
            jti_hash: identity.token.jti_hash.get().map(String::as_str),
            reason: reason.copied(),
            source: Some(identity.source),
            method: &observed.method,
            uri: &observed.uri,
            audit_id: reply.headers().get("audit-id").and_then(|id| id.to_str().ok()),
            traceparent: observed.traceparent,
            code: reply.status().as_u16(),
            took: self.clock.monotonic().saturating_sub(observed.started),
        });
    }
}
