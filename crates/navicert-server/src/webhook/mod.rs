//! The TokenReview webhook for API servers, and `GET /auth` for nginx and Envoy.
//!
//! ```text
//! route ──▶ client_auth ──▶ request ──▶ audience ──▶ navicert_authn::ReloadableAuthenticator ──▶ reply
//! path,     authorize       body,       audience     verify the token                            one response
//! method    the client      TokenReview rule                                                     per outcome
//! ```
//!
//! `Webhook::review` is the entry function. An invalid token is a 200 response, not an HTTP error: kube-apiserver
//! would retry.
// S208–S227

mod audience;
mod auth;
mod reply;
mod request;
mod settings;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderName};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use navicert_authn::metrics::sha256_label;
use navicert_authn::outcome::RefusalClass;
use navicert_authn::{AuthnDecision, AuthnOutcome, ReloadableAuthenticator};
use navicert_types::Clock;
use navicert_types::token_review::TokenReviewRequest;

use crate::audit::{AuditEvent, AuditLog, Decision, EventKind, Reason};
use crate::client_auth::ClientAuth;
use crate::forward::ReplyBody;
use crate::limits::with_timeout;
use crate::listener::{Handler, Peer};
use crate::problem::Problem;
use crate::trace_context::TraceParent;
use crate::user_ref::UserRef;

pub use settings::{AudienceMode, NotReadyStatus, WebhookSettings};

/// Handler of the webhook.
#[derive(Debug)]
pub struct Webhook {
    authenticator: Arc<ReloadableAuthenticator>,
    client_auth: ClientAuth,
    settings: WebhookSettings,
    audit: AuditLog,
    clock: Arc<dyn Clock>,
    has_warned_about_audiences: AtomicBool,
}

/// Purpose of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// The webhook path: 200.
    Webhook,
    /// The TokenReview API path: 201, as in Kubernetes.
    // S226
    Api,
    /// nginx's `auth_request` and Envoy's `ext_authz`.
    Auth,
}

impl Webhook {
    /// Reviews tokens with `authenticator`, for clients that `client_auth` allows.
    pub fn new(
        authenticator: Arc<ReloadableAuthenticator>,
        callers: ClientAuth,
        settings: WebhookSettings,
        audit: AuditLog,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Webhook {
            authenticator,
            client_auth: callers,
            settings,
            audit,
            clock,
            has_warned_about_audiences: AtomicBool::new(false),
        }
    }

    fn route(&self, path: &str) -> Option<Route> {
        if path == self.settings.path {
            return Some(Route::Webhook);
        }
        if self.settings.auth_path.as_deref().is_some_and(|own| is_below(path, own)) {
            return Some(Route::Auth);
        }
        let version = path.strip_prefix("/apis/authentication.k8s.io/")?.strip_suffix("/tokenreviews")?;
        ["v1", "v1beta1"].contains(&version).then_some(Route::Api)
    }

    /// Handles a token review.
    async fn review(&self, head: &Parts, body: Incoming, peer: &Peer, route: Route) -> WebhookDecision {
        if head.method != Method::POST {
            return WebhookDecision::rejected(reply::wrong_method("POST"), Reason::Method);
        }
        if let Err(problem) = self.client_auth.check(head, peer, AUTHORIZATION) {
            return WebhookDecision::rejected(problem.response(), Reason::Caller);
        }
        let admission = peer.admission();
        let flow = peer.flow();
        let body = match request::read_body(body, &self.settings, flow, admission).await {
            Ok(body) => body,
            Err(Problem::TooManyRequests) => return WebhookDecision::overloaded(),
            Err(problem) => return WebhookDecision::rejected(problem.response(), Reason::Request),
        };
        let review = match request::parse_review(&body) {
            Ok(review) => review,
            Err(problem) => return WebhookDecision::rejected(problem.response(), Reason::Request),
        };
        let Ok(audiences) = audience::requested(&review, &self.settings, route) else {
            // The token is not verified for a foreign audience (S221).
            self.warn_about_audiences(&review);
            return WebhookDecision::new(
                reply::unauthenticated(review.version, route),
                Decision::Deny,
                Reason::Refused(RefusalClass::Audience),
            );
        };
        let Ok(seat) = admission.peer_seat(flow).await else { return WebhookDecision::overloaded() };
        let decided = with_timeout(self.settings.timeout, self.authenticator.decide(&review.token)).await;
        drop(seat);
        let Some(judgement) = decided else {
            let reply = reply::not_ready(review.version, route, &self.settings, "timeout");
            return WebhookDecision::new(reply, Decision::Error, Reason::Timeout);
        };
        let audiences = audience::granted(audiences, &judgement, &self.settings);
        let Some(audiences) = audiences else {
            let response = reply::unauthenticated(review.version, route);
            let reason = Reason::Refused(RefusalClass::Audience);
            return WebhookDecision::new(response, Decision::Deny, reason).with_judgement(judgement);
        };
        let response =
            reply::for_outcome(&judgement.outcome, review.version, route, &audiences, &self.settings);
        WebhookDecision::from_judgement(response, judgement)
    }

    /// Logs once: all tokens of this client are rejected until the configuration changes.
    fn warn_about_audiences(&self, review: &TokenReviewRequest<'_>) {
        if !self.has_warned_about_audiences.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                event = "unknown_audiences",
                requested = ?review.audiences,
                configured = ?self.settings.server_audiences,
                "client requests audiences that are not configured, rejecting its tokens; add them with --api-audiences or \
                 `serverAudiences`"
            );
        }
    }

    fn record(
        &self,
        event: EventKind,
        request: &Request<impl Sized>,
        peer: &Peer,
        reviewed: &WebhookDecision,
        started: Duration,
    ) {
        let judgement = reviewed.judgement.as_ref();
        let user = judgement.and_then(|judgement| match &judgement.outcome {
            AuthnOutcome::Authenticated(user) => Some(UserRef::from(user)),
            _ => None,
        });
        let hash = |claim: &str| sha256_label(claim.as_bytes());
        let took = self.clock.monotonic().saturating_sub(started);
        self.audit.record(&AuditEvent {
            event,
            decision: reviewed.decision,
            reason: reviewed.reason,
            user,
            acting_as: None,
            issuer_hash: judgement.and_then(AuthnDecision::issuer).map(hash).as_deref(),
            jti_hash: judgement.and_then(AuthnDecision::jti).map(hash).as_deref(),
            source: Some(peer.address.ip()),
            caller: peer.names().and_then(|names| names.first()).map(String::as_str),
            audit_id: audit_id(request.headers()),
            traceparent: TraceParent::from_headers(request.headers()),
            // The methods and paths that the webhook serves are fixed. An unknown path may contain a token: a client that
            // appends it to a URL does not know what it does.
            method: (event == EventKind::Request).then_some(request.method().as_str()),
            path: None,
            code: reviewed.response.status().as_u16(),
            took_micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        });
    }
}

impl Handler for Webhook {
    async fn handle(&self, request: Request<Incoming>, peer: &Peer) -> Response<ReplyBody> {
        let started = if self.audit.is_enabled() { self.clock.monotonic() } else { Duration::ZERO };
        let (head, body) = request.into_parts();
        let (event, reviewed) = match self.route(head.uri.path()) {
            Some(Route::Auth) => (EventKind::Auth, self.authorize(&head, peer).await),
            Some(route) => (EventKind::TokenReview, self.review(&head, body, peer, route).await),
            None => (EventKind::Request, WebhookDecision::rejected(reply::not_found(), Reason::Path)),
        };
        tracing::debug!(
            event = "webhook_request_decided",
            request = event.name(),
            decision = ?reviewed.decision,
            reason = reviewed.reason.map(Reason::name),
            code = reviewed.response.status().as_u16(),
            "decided webhook request"
        );
        if self.audit.is_enabled() {
            self.record(event, &Request::from_parts(head, ()), peer, &reviewed, started);
        }
        reviewed.response
    }
}

/// A response and its reason.
struct WebhookDecision {
    response: Response<ReplyBody>,
    decision: Decision,
    reason: Option<Reason>,
    judgement: Option<AuthnDecision>,
}

impl WebhookDecision {
    fn new(response: Response<ReplyBody>, decision: Decision, reason: Reason) -> Self {
        WebhookDecision { response, decision, reason: Some(reason), judgement: None }
    }

    /// Adds the decision on the token, which names the user.
    fn with_judgement(self, judgement: AuthnDecision) -> Self {
        WebhookDecision { judgement: Some(judgement), ..self }
    }

    /// The client is above its share. Without `Retry-After`: kube-apiserver would hold the request and retry.
    // S215, S219
    fn overloaded() -> Self {
        WebhookDecision::new(reply::overloaded(), Decision::Error, Reason::TooManyRequests)
    }

    /// Rejected before a token was verified.
    fn rejected(response: Response<ReplyBody>, reason: Reason) -> Self {
        let is_ours = response.status() >= StatusCode::INTERNAL_SERVER_ERROR;
        WebhookDecision::new(response, if is_ours { Decision::Error } else { Decision::Deny }, reason)
    }

    fn from_judgement(response: Response<ReplyBody>, judgement: AuthnDecision) -> Self {
        let (decision, reason) = match &judgement.outcome {
            AuthnOutcome::Authenticated(_) => (Decision::Allow, None),
            AuthnOutcome::NoOpinion(_) => (Decision::Deny, Some(Reason::UnknownToken)),
            AuthnOutcome::Rejected(rejection) => {
                let may_heal = rejection.refusal.is_transient();
                let decision = if may_heal { Decision::Error } else { Decision::Deny };
                (decision, Some(Reason::Refused(rejection.refusal.class())))
            }
        };
        WebhookDecision { response, decision, reason, judgement: Some(judgement) }
    }
}

/// Whether `path` is `own` or below it; Envoy appends the client's path.
fn is_below(path: &str, own: &str) -> bool {
    path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The request's audit ID, if it is short enough for a log.
fn audit_id(headers: &HeaderMap) -> Option<&str> {
    const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
    let id = headers.get(AUDIT_ID)?.to_str().ok()?;
    (id.len() <= 64).then_some(id)
}
