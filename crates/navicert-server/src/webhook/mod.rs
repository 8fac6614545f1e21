//! The TokenReview webhook: an API server asks whose a token is (S208–S227), and nginx or Envoy asks whether a request may
//! pass (`GET /auth`).
//!
//! ```text
//! route ──▶ callers ──▶ request ──▶ audience rule ──▶ navicert_authn::Live ──▶ reply
//! path,      who may     body,       for whom the       whose token             one answer for
//! method     ask         TokenReview token may be       it is                   each outcome (S219)
//! ```
//!
//! `Webhook::review` is the spine. A bad token is an answer, never an error of HTTP: kube-apiserver would ask again.

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
use navicert_authn::metrics::hashed;
use navicert_authn::{Judgement, Live, Outcome};
use navicert_types::Clock;
use navicert_types::token_review::Question;

use crate::audit::{Audit, Decision, Entry};
use crate::callers::Callers;
use crate::forward::ReplyBody;
use crate::limits::within;
use crate::listener::{Handler, Peer};
use crate::who::{Told, jti_hash};

pub use settings::{AudienceMode, NotReadyStatus, Settings};

/// Answers TokenReviews.
#[derive(Debug)]
pub struct Webhook {
    live: Arc<Live>,
    callers: Callers,
    settings: Settings,
    audit: Audit,
    clock: Arc<dyn Clock>,
    has_told: AtomicBool,
}

/// What a path is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// The webhook's own path: 200.
    Webhook,
    /// As in the API of Kubernetes: 201 (S226).
    Api,
    /// nginx's `auth_request`.
    Auth,
}

impl Webhook {
    /// Asks `live`, for whoever is among the callers.
    pub fn new(
        live: Arc<Live>,
        callers: Callers,
        settings: Settings,
        audit: Audit,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Webhook { live, callers, settings, audit, clock, has_told: AtomicBool::new(false) }
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

    /// The spine.
    async fn review(&self, head: &Parts, body: Incoming, peer: &Peer, route: Route) -> Reviewed {
        if head.method != Method::POST {
            return Reviewed::refused(reply::wrong_method("POST"), "method");
        }
        if let Err(problem) = self.callers.check(head, peer, AUTHORIZATION) {
            return Reviewed::refused(problem.response(), "caller");
        }
        let body = match request::read(body, &self.settings).await {
            Ok(body) => body,
            Err(problem) => return Reviewed::refused(problem.response(), "request"),
        };
        let question = match request::question(&body) {
            Ok(question) => question,
            Err(problem) => return Reviewed::refused(problem.response(), "request"),
        };
        let Ok(audiences) = audience::wanted(&question, &self.settings, route) else {
            // Not for anybody we speak for: the token is not even looked at (S221).
            self.tell_of_audiences(&question);
            return Reviewed::of(reply::nobody(question.version, route), Decision::Deny, "audience");
        };
        let judged = within(self.settings.timeout, self.live.judge(&question.token)).await;
        let Some(judgement) = judged else {
            let reply = reply::unknown(question.version, route, &self.settings, "timeout");
            return Reviewed::of(reply, Decision::Error, "timeout");
        };
        let audiences = audience::told(audiences, &question.token, &judgement, &self.settings);
        let Some(audiences) = audiences else {
            return Reviewed::of(reply::nobody(question.version, route), Decision::Deny, "audience");
        };
        let response = reply::of(&judgement.outcome, question.version, route, &audiences, &self.settings);
        self.judged(response, judgement, &question.token)
    }

    fn judged(&self, response: Response<ReplyBody>, judgement: Judgement, token: &str) -> Reviewed {
        let jti_hash = if self.audit.is_on() { jti_hash(&judgement, token) } else { None };
        Reviewed { jti_hash, ..Reviewed::judged(response, judgement) }
    }

    /// Every token is refused for as long as this is so: once, it is worth a line.
    fn tell_of_audiences(&self, question: &Question<'_>) {
        if !self.has_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                asked = ?question.audiences,
                ours = ?self.settings.server_audiences,
                "a caller asks for audiences none of which is ours: its tokens are all refused; name them with --api-audiences or \
                 `serverAudiences`"
            );
        }
    }

    fn record(
        &self,
        event: &'static str,
        (head, peer): (&Parts, &Peer),
        reviewed: &Reviewed,
        started: Duration,
    ) {
        let judgement = reviewed.judgement.as_ref();
        let user = judgement.and_then(|judgement| match &judgement.outcome {
            Outcome::Authenticated(user) => Some(Told::from(&**user)),
            _ => None,
        });
        let took = self.clock.monotonic().saturating_sub(started);
        self.audit.record(&Entry {
            event,
            decision: reviewed.decision,
            reason: reviewed.reason,
            user,
            acting_as: None,
            issuer_hash: judgement.and_then(Judgement::issuer).map(|url| hashed(url.as_bytes())).as_deref(),
            jti_hash: reviewed.jti_hash.as_deref(),
            source: Some(peer.address.ip()),
            caller: peer.names().and_then(|names| names.first()).map(String::as_str),
            audit_id: audit_id(&head.headers),
            method: None,
            path: None,
            code: reviewed.response.status().as_u16(),
            took_micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        });
    }
}

impl Handler for Webhook {
    async fn handle(&self, request: Request<Incoming>, peer: &Peer) -> Response<ReplyBody> {
        let started = if self.audit.is_on() { self.clock.monotonic() } else { Duration::ZERO };
        let (head, body) = request.into_parts();
        let Some(route) = self.route(head.uri.path()) else { return reply::not_found() };
        let (event, reviewed) = match route {
            Route::Auth => ("auth", self.check(&head, peer).await),
            Route::Webhook | Route::Api => ("tokenreview", self.review(&head, body, peer, route).await),
        };
        tracing::debug!(
            event,
            decision = ?reviewed.decision,
            reason = reviewed.reason,
            code = reviewed.response.status().as_u16(),
            "decided"
        );
        if self.audit.is_on() {
            self.record(event, (&head, peer), &reviewed, started);
        }
        reviewed.response
    }

    /// Without `Retry-After`: kube-apiserver would keep the request, and ask again and again (S215, S219).
    fn overloaded(&self) -> Response<ReplyBody> {
        reply::overloaded()
    }
}

/// An answer, and what it rests on.
struct Reviewed {
    response: Response<ReplyBody>,
    decision: Decision,
    reason: Option<&'static str>,
    judgement: Option<Judgement>,
    /// Of the token that was judged, if decisions are recorded.
    jti_hash: Option<String>,
}

impl Reviewed {
    fn of(response: Response<ReplyBody>, decision: Decision, reason: &'static str) -> Self {
        Reviewed { response, decision, reason: Some(reason), judgement: None, jti_hash: None }
    }

    /// No token was looked at.
    fn refused(response: Response<ReplyBody>, reason: &'static str) -> Self {
        let is_ours = response.status() >= StatusCode::INTERNAL_SERVER_ERROR;
        Reviewed::of(response, if is_ours { Decision::Error } else { Decision::Deny }, reason)
    }

    fn judged(response: Response<ReplyBody>, judgement: Judgement) -> Self {
        let (decision, reason) = match &judgement.outcome {
            Outcome::Authenticated(_) => (Decision::Allow, None),
            Outcome::NoOpinion(_) => (Decision::Deny, Some("unknown_token")),
            Outcome::Rejected(rejection) => {
                let may_heal = rejection.refusal.is_not_ready();
                let decision = if may_heal { Decision::Error } else { Decision::Deny };
                (decision, Some(rejection.refusal.class().name()))
            }
        };
        Reviewed { response, decision, reason, judgement: Some(judgement), jti_hash: None }
    }
}

/// The path itself; Envoy puts the path that its client asked for behind it.
fn is_below(path: &str, own: &str) -> bool {
    path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The request's own name, if it is one that can stand in a log.
fn audit_id(headers: &HeaderMap) -> Option<&str> {
    const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
    let id = headers.get(AUDIT_ID)?.to_str().ok()?;
    (id.len() <= 64).then_some(id)
}
