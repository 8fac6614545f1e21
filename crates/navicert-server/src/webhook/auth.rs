//! `GET /auth` for nginx's `auth_request` and Envoy's HTTP `ext_authz`. Responds 200 with identity headers, 401, or
//! 403 (client not authorized, or user name not representable in headers).

use http::header::{HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION};
use http::request::Parts;
use http::{Method, Response};
use navicert_authn::{AuthenticatedUser, AuthnOutcome};

use super::{Webhook, WebhookDecision, reply};
use crate::audit::{Decision, Reason};
use crate::bearer;
use crate::forward::ReplyBody;
use crate::limits::with_timeout;
use crate::listener::Peer;
use crate::problem::Problem;
use crate::proxy::identity_headers::{
    AllowedNames, HeaderNames, IdentityError, IdentityLimit, encode_within,
};

/// Maximum number of identity headers; servers behind the caller have limits too.
// S267
const MAX_IDENTITY_HEADERS: usize = 1_000;
/// Maximum size of all identity headers but `X-Remote-Groups`, which repeats others.
// S267
const MAX_IDENTITY_BYTES: usize = 64 << 10;

impl Webhook {
    /// The client's token is in `Authorization`, the caller's own in `Proxy-Authorization`.
    pub(super) async fn authorize(&self, head: &Parts, peer: &Peer) -> WebhookDecision {
        // nginx sends GET, Envoy the client's method.
        if head.method == Method::CONNECT {
            return WebhookDecision::rejected(reply::wrong_method("GET"), Reason::Method);
        }
        if let Err(problem) = self.client_auth.check(head, peer, PROXY_AUTHORIZATION) {
            // 401 would tell the end user that their token is invalid.
            let problem = match problem {
                Problem::Unauthorized => {
                    Problem::Forbidden("client is not authorized to use this webhook".to_owned())
                }
                problem => problem,
            };
            return WebhookDecision::rejected(keep_open(problem.response()), Reason::Caller);
        }
        let token = match bearer::token(&head.headers) {
            Ok(Some(token)) => token,
            Ok(None) => {
                return WebhookDecision::rejected(
                    keep_open(Problem::Unauthorized.response()),
                    Reason::NoToken,
                );
            }
            Err(problem) => return WebhookDecision::rejected(keep_open(problem.response()), Reason::Request),
        };
        let Ok(seat) = peer.admission().peer_seat(peer.flow()).await else {
            return WebhookDecision::overloaded();
        };
        let decided = with_timeout(self.settings.timeout, self.authenticator.decide(token)).await;
        drop(seat);
        let Some(decision) = decided else {
            return WebhookDecision::new(
                keep_open(Problem::Unauthorized.response()),
                Decision::Error,
                Reason::Timeout,
            );
        };
        let response = match &decision.outcome {
            AuthnOutcome::Authenticated(user) => match identity_headers(user) {
                Ok(headers) => allowed(headers),
                Err(error) => {
                    let response =
                        Problem::Forbidden("user cannot be encoded in headers".to_owned()).response();
                    return WebhookDecision::new(keep_open(response), Decision::Deny, error.reason())
                        .with_judgement(decision);
                }
            },
            // The same response for every reason (S271).
            AuthnOutcome::NoOpinion(_) | AuthnOutcome::Rejected(_) => {
                keep_open(Problem::Unauthorized.response())
            }
        };
        WebhookDecision::from_judgement(response, decision)
    }
}

/// Keeps the connection open: it belongs to the caller, not to the end user.
fn keep_open(mut response: Response<ReplyBody>) -> Response<ReplyBody> {
    response.extensions_mut().remove::<crate::problem::CloseConnection>();
    response
}

fn allowed(headers: HeaderMap) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::empty());
    *response.headers_mut() = headers;
    response
}

/// `X-Remote-User`, `-Uid`, `-Group` (one per group), `-Extra-…` as the proxy encodes them, and `-Groups` (comma-separated,
/// for nginx, which copies only one).
fn identity_headers(user: &AuthenticatedUser) -> Result<HeaderMap, IdentityError> {
    const GROUPS: HeaderName = HeaderName::from_static("x-remote-groups");
    let limit = IdentityLimit::from_bytes(MAX_IDENTITY_BYTES).unwrap_or_default();
    let names = HeaderNames::front_proxy();
    let encoded = encode_within(limit, user.into(), &names, AllowedNames::ALL)?;
    if encoded.len() > MAX_IDENTITY_HEADERS {
        return Err(IdentityError::TooLarge(limit));
    }
    let groups = encoded.iter().filter(|(name, _)| *name == names.group).map(|(_, value)| value.as_bytes());
    let groups: Vec<&[u8]> = groups.collect();
    // A group that contains a comma would be split.
    let joined = Some(groups.join(&b','))
        .filter(|_| !groups.is_empty() && !groups.iter().any(|group| group.contains(&b',')))
        .and_then(|joined| HeaderValue::from_bytes(&joined).ok());
    let mut headers = HeaderMap::with_capacity(encoded.len() + 1);
    for (name, value) in encoded.into_iter().chain(joined.map(|joined| (GROUPS, joined))) {
        headers.append(name, value);
    }
    Ok(headers)
}
