//! Authenticating reverse proxy for a Kubernetes API server.
//!
//! ```text
//! listener ──▶ forward ──check──▶ bearer ──▶ navicert-authn ──▶ impersonation ──▶ identity_headers ──▶ forward ──▶ API server
//!              strict checks      token      verify             --as               or rejected          headers last
//! ```
//!
//! `RequestIdentity::identify` is the entry function. Only it creates an [`UpstreamIdentity`], and the forwarder
//! requires one, so an unauthenticated request cannot reach the API server.

pub mod bearer;
pub mod client_address;
pub mod identity_headers;
pub mod impersonation;
pub mod reviews;
pub mod self_check;
pub mod service_accounts;
pub mod settings;
pub mod upstream_access;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::header::HeaderValue;
use http::{Method, Request, Response, Uri, request};
use hyper::body::Incoming;
use navicert_authn::jwt::{StatedExpiry, stated_expiry};
use navicert_authn::metrics::sha256_label;
use navicert_authn::{AuthenticatedUser, AuthnDecision, AuthnOutcome, NoOpinion, ReloadableAuthenticator};
use navicert_client::transport::{Timer, Transport};
use navicert_types::authentication_config::AnonymousAuthConfig;
use navicert_types::token_review::UserInfo;
use navicert_types::{Clock, error_chain};

use crate::audit::{AuditEvent, AuditLog, Decision};
use crate::forward::{
    ClientImpersonation, ForwardRules, Forwarder, Identify, Inbound, ReplyBody, UnauthorizedPolicy,
    UpstreamIdentity,
};
use crate::listener::{Handler, Peer};
use crate::problem::Problem;
use crate::user_ref::{self, UserRef};
use bearer::Token;
use client_address::FORWARDED_FOR;
use identity_headers::{AllowedNames, HeaderNames, IdentityError};
use impersonation::{ImpersonationError, ImpersonationRequest};
use service_accounts::{ServiceAccountReviews, TokenReviewer};
use settings::{IdentityMode, ImpersonationPolicy, MaxStreamAge, ServiceAccountTokens};

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

/// Receives the outcome of every request, for example an audit log.
pub trait RequestObserver: fmt::Debug + Send + Sync {
    /// Whether outcomes are recorded.
    fn is_enabled(&self) -> bool {
        true
    }

    /// Called after the response head is known.
    fn observe(&self, outcome: &RequestOutcome<'_>);
}

impl RequestObserver for AuditLog {
    fn is_enabled(&self) -> bool {
        self.is_enabled()
    }

    fn observe(&self, outcome: &RequestOutcome<'_>) {
        let decision = match (outcome.reason, outcome.code) {
            (_, 500..) => Decision::Error,
            (Some(_), _) | (None, 400) => Decision::Deny,
            (None, _) if outcome.user.is_none() => Decision::Deny,
            _ => Decision::Allow,
        };
        self.record(&AuditEvent {
            event: "request",
            decision,
            reason: outcome.reason,
            user: outcome.user,
            acting_as: outcome.acting_as,
            issuer_hash: outcome.issuer.map(|url| sha256_label(url.as_bytes())).as_deref(),
            jti_hash: outcome.jti_hash,
            source: outcome.source,
            caller: None,
            audit_id: outcome.audit_id,
            method: Some(outcome.method.as_str()),
            path: Some(outcome.uri.path()),
            code: outcome.code,
            took_micros: u64::try_from(outcome.took.as_micros()).unwrap_or(u64::MAX),
        });
    }
}

/// Outcome of one request.
#[derive(Debug)]
pub struct RequestOutcome<'s> {
    /// The authenticated user, if known.
    pub user: Option<UserRef<'s>>,
    /// The impersonated user, if any.
    pub acting_as: Option<&'s str>,
    /// URL of the token's issuer, if it is configured.
    pub issuer: Option<&'s str>,
    /// Hash of the token's `jti`, if it has one and its issuer is configured or the API server reviewed it.
    // S224
    pub jti_hash: Option<&'s str>,
    /// Reason of a rejection, from a closed set.
    pub reason: Option<&'static str>,
    /// Client address.
    pub source: Option<IpAddr>,
    /// HTTP method.
    pub method: &'s Method,
    /// Request target.
    pub uri: &'s Uri,
    /// `Audit-ID` of the API server's response, if any.
    pub audit_id: Option<&'s str>,
    /// Status code of the response.
    pub code: u16,
    /// Time until the response head.
    pub took: Duration,
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
        let service_accounts =
            reviewer.map(|reviewer| ServiceAccountReviews::new(reviewer, Arc::clone(&clock)));
        let anonymous = authenticator.anonymous().filter(|anonymous| anonymous.enabled);
        let upstream_access =
            Arc::new(UpstreamAccess::new(&forwarder, &authenticator, &settings, anonymous.is_some(), timer));
        Proxy {
            authenticator,
            forwarder,
            service_accounts,
            observer,
            clock,
            settings,
            names,
            anonymous,
            upstream_access,
        }
    }

    /// Whether the API server accepts the proxy's credential and permissions.
    pub fn upstream_access(&self) -> &Arc<UpstreamAccess> {
        &self.upstream_access
    }

    /// Authenticates a request.
    async fn authenticate(
        &self,
        head: &request::Parts,
        details: &TokenDetails,
    ) -> Result<Authenticated, Rejected> {
        let Some(token) = bearer::read(&head.headers).map_err(|_| Rejected::Unauthenticated("malformed"))?
        else {
            return self.anonymous(head);
        };
        let decision = self.authenticator.decide(token.expose()).await;
        if self.observer.is_enabled() {
            details.record(&decision);
        }
        let expires = decision.expires();
        match decision.outcome {
            AuthnOutcome::Authenticated(user) => Ok(Authenticated {
                user: ProxyUser::Token { user, expires },
                token: Some(token),
                method: AuthnMethod::Token,
            }),
            AuthnOutcome::Rejected(rejection) => {
                Err(Rejected::Unauthenticated(rejection.refusal.class().name()))
            }
            AuthnOutcome::NoOpinion(NoOpinion::UnknownIssuer) => {
                self.review_service_account(token, details).await
            }
            AuthnOutcome::NoOpinion(_) => Err(Rejected::Unauthenticated("malformed")),
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
            return Err(Rejected::Unauthenticated("no_credentials"));
        }
        Ok(Authenticated {
            user: ProxyUser::UserInfo(Arc::new(user_ref::anonymous())),
            token: None,
            method: AuthnMethod::Anonymous,
        })
    }

    /// A token of an unknown issuer.
    // S276
    async fn review_service_account(
        &self,
        token: Token,
        details: &TokenDetails,
    ) -> Result<Authenticated, Rejected> {
        let Some(service_accounts) = &self.service_accounts else {
            return Err(Rejected::Unauthenticated("unknown_issuer"));
        };
        match service_accounts.review(token.expose()).await {
            Ok(Some(user_info)) if user_info.username.starts_with("system:serviceaccount:") => {
                if let Some(jti) = UserRef::from(&*user_info).jti().filter(|_| self.observer.is_enabled()) {
                    let _ = details.jti_hash.set(sha256_label(jti.as_bytes()));
                }
                Ok(Authenticated {
                    user: ProxyUser::UserInfo(user_info),
                    token: Some(token),
                    method: AuthnMethod::Review,
                })
            }
            Ok(_) => Err(Rejected::Unauthenticated("unknown_issuer")),
            Err(_) => Err(Rejected::ReviewFailed),
        }
    }

    /// The identity that the API server receives.
    async fn identity(
        &self,
        head: &request::Parts,
        authenticated: &Authenticated,
        acting_as: &OnceLock<UserInfo>,
    ) -> Result<UpstreamIdentity, Rejected> {
        let user = authenticated.user.user_ref();
        let is_forwarded = authenticated.method == AuthnMethod::Review
            && self.settings.service_account_tokens == ServiceAccountTokens::PassThrough;
        if is_forwarded {
            let authorization = authenticated.token.as_ref().and_then(Token::authorization);
            return authorization
                .map(UpstreamIdentity::with_caller_credential)
                .ok_or(Rejected::Unauthenticated("malformed"));
        }
        let authorizes_impersonation = (self.settings.client_impersonation, &self.settings.mode)
            == (ImpersonationPolicy::Allow, &IdentityMode::Impersonation);
        if authorizes_impersonation && let Some(requested) = ImpersonationRequest::read(&head.headers)? {
            if authenticated.method == AuthnMethod::Anonymous {
                return Err(Rejected::Impersonation(ImpersonationError::Malformed(
                    "anonymous requests cannot impersonate",
                )));
            }
            let user_info = requested.authorize(user, self.forwarder.upstream()).await?;
            // The API server has authorized every part of it.
            let headers =
                identity_headers::encode(UserRef::from(&user_info), &self.names, AllowedNames::ALL)?;
            let _ = acting_as.set(user_info);
            return Ok(UpstreamIdentity::with_headers(headers));
        }
        let allowed = match authenticated.method {
            AuthnMethod::Token => self.settings.allowed_names,
            AuthnMethod::Review | AuthnMethod::Anonymous => AllowedNames::ALL,
        };
        Ok(UpstreamIdentity::with_headers(identity_headers::encode(user, &self.names, allowed)?))
    }

    /// Maximum duration of a response.
    // S255
    fn max_duration(&self, authenticated: &Authenticated) -> Option<Duration> {
        match self.settings.max_stream_age {
            MaxStreamAge::Off => None,
            MaxStreamAge::After(limit) => Some(limit),
            MaxStreamAge::TokenExpiry => {
                let expires = match authenticated.expiry() {
                    StatedExpiry::At(expires) => expires,
                    StatedExpiry::Never => return None,
                    // A stream that could outlive its token is not allowed.
                    StatedExpiry::Unknown => return Some(Duration::ZERO),
                };
                let left = expires.saturating_sub(self.clock.now().as_second());
                Some(Duration::from_secs(u64::try_from(left).unwrap_or(0)))
            }
        }
    }
}

/// An authenticated request. Only [`Proxy::authenticate`] creates it.
#[derive(Debug)]
struct Authenticated {
    user: ProxyUser,
    token: Option<Token>,
    method: AuthnMethod,
}

impl Authenticated {
    /// When the token of the request expires.
    fn expiry(&self) -> StatedExpiry {
        match (&self.user, &self.token) {
            (ProxyUser::Token { expires, .. }, _) => expires.map_or(StatedExpiry::Unknown, StatedExpiry::At),
            // The API server has verified the token, but a review does not contain its expiry.
            (ProxyUser::UserInfo(_), Some(token)) => stated_expiry(token.expose()),
            (ProxyUser::UserInfo(_), None) => StatedExpiry::Never,
        }
    }
}

/// A user, from a verified token or from a TokenReview.
#[derive(Debug)]
enum ProxyUser {
    Token {
        user: Arc<AuthenticatedUser>,
        /// Expiry of the token, in seconds since 1970.
        expires: Option<i64>,
    },
    UserInfo(Arc<UserInfo>),
}

impl ProxyUser {
    fn user_ref(&self) -> UserRef<'_> {
        match self {
            ProxyUser::Token { user, .. } => UserRef::from(&**user),
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

/// A request was rejected.
#[derive(Debug)]
enum Rejected {
    /// Authentication failed; the reason is only logged.
    // S271
    Unauthenticated(&'static str),
    /// The user cannot be encoded in headers.
    Identity(IdentityError),
    /// Impersonation was rejected.
    Impersonation(ImpersonationError),
    /// The TokenReview failed.
    ReviewFailed,
}

impl From<IdentityError> for Rejected {
    fn from(error: IdentityError) -> Self {
        Rejected::Identity(error)
    }
}

impl From<ImpersonationError> for Rejected {
    fn from(error: ImpersonationError) -> Self {
        Rejected::Impersonation(error)
    }
}

impl Rejected {
    fn class(&self) -> &'static str {
        match self {
            Rejected::Unauthenticated(class) => class,
            Rejected::Identity(error) => error.class(),
            Rejected::Impersonation(_) => "impersonation",
            Rejected::ReviewFailed => "not_reviewed",
        }
    }

    fn problem(self) -> Problem {
        match self {
            Rejected::Unauthenticated(_) => Problem::Unauthorized,
            Rejected::Identity(error) => {
                tracing::warn!(
                    event = "identity_rejected",
                    reason = error.class(),
                    %error,
                    "rejected a valid token: its user cannot be forwarded"
                );
                Problem::Unauthorized
            }
            Rejected::Impersonation(ImpersonationError::Review(error)) => {
                tracing::warn!(
                    event = "impersonation_review_failed",
                    error = error_chain(&error),
                    "failed to authorize impersonation"
                );
                Problem::UpstreamUnreachable(None)
            }
            Rejected::Impersonation(error) => Problem::Forbidden(error.to_string()),
            Rejected::ReviewFailed => Problem::UpstreamUnreachable(None),
        }
    }
}

/// Authentication of one request, and its result for the observer.
struct RequestIdentity<'p> {
    proxy: &'p Proxy,
    peer: IpAddr,
    user: OnceLock<ProxyUser>,
    acting_as: OnceLock<UserInfo>,
    rejection: OnceLock<&'static str>,
    source: OnceLock<IpAddr>,
    token: TokenDetails,
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
        let settings = &self.proxy.settings;
        let source = client_address::client(self.peer, &head.headers, &settings.trusted_proxies);
        let _ = self.source.set(source);
        // Boxed, because it is large and completes before the response arrives.
        let identity = Box::pin(self.authenticate(head)).await.map_err(|rejected| {
            let _ = self.rejection.set(rejected.class());
            rejected.problem()
        })?;
        if !settings.forward_client_address {
            return Ok(identity);
        }
        Ok(match HeaderValue::try_from(source.to_string()) {
            Ok(source) => identity.and_header(FORWARDED_FOR, source),
            Err(_) => identity,
        })
    }
}

impl RequestIdentity<'_> {
    async fn authenticate(&self, head: &request::Parts) -> Result<UpstreamIdentity, Rejected> {
        let authenticated = self.proxy.authenticate(head, &self.token).await?;
        let identity = self.proxy.identity(head, &authenticated, &self.acting_as).await;
        let limit = self.proxy.max_duration(&authenticated);
        let _ = self.user.set(authenticated.user);
        Ok(identity?.with_max_duration(limit))
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
        self.respond(request.into(), peer.address.ip())
    }
}

impl Proxy {
    async fn respond(&self, inbound: Inbound, peer: IpAddr) -> Response<ReplyBody> {
        let identity = RequestIdentity {
            proxy: self,
            peer,
            user: OnceLock::new(),
            acting_as: OnceLock::new(),
            rejection: OnceLock::new(),
            source: OnceLock::new(),
            token: TokenDetails::default(),
        };
        if !self.observer.is_enabled() {
            return *self.forwarder.forward(inbound, &identity).await;
        }
        let started = self.clock.monotonic();
        let (method, uri) = (inbound.head().method.clone(), inbound.head().uri.clone());
        let reply = self.forwarder.forward(inbound, &identity).await;
        self.observer.observe(&RequestOutcome {
            user: identity.user.get().map(ProxyUser::user_ref),
            acting_as: identity.acting_as.get().map(|user_info| user_info.username.as_str()),
            issuer: identity.token.issuer.get().map(String::as_str),
            jti_hash: identity.token.jti_hash.get().map(String::as_str),
            reason: identity.rejection.get().copied(),
            source: identity.source.get().copied(),
            method: &method,
            uri: &uri,
            audit_id: reply.headers().get("audit-id").and_then(|id| id.to_str().ok()),
            code: reply.status().as_u16(),
            took: self.clock.monotonic().saturating_sub(started),
        });
        *reply
    }
}
