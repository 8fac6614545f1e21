//! `GET /auth` for nginx's `auth_request` and Envoy's HTTP `ext_authz`. Responds 200 with identity headers, 401, or
//! 403 (client not authorized, or user name not representable in headers).

use http::header::{HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION};
use http::request::Parts;
use http::{Method, Response};
use navicert_authn::outcome::RefusalClass;
use navicert_authn::{AuthenticatedUser, AuthnOutcome};
use navicert_go::percent::{Plus, encode, is_header_key_byte};

use super::{Webhook, WebhookDecision, reply};
use crate::audit::{Decision, Reason};
use crate::bearer;
use crate::forward::ReplyBody;
use crate::limits::with_timeout;
use crate::listener::Peer;
use crate::problem::Problem;

/// Maximum number of identity headers; servers behind the caller have limits too.
// S267
const MAX_IDENTITY_HEADERS: usize = 1_000;
/// Maximum size of all identity headers.
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
                Err(unwritable) => {
                    let response =
                        Problem::Forbidden("user cannot be encoded in headers".to_owned()).response();
                    let reason = Reason::Refused(match unwritable {
                        Unwritable::Changed => RefusalClass::IdentityEncoding,
                        Unwritable::TooLarge => RefusalClass::IdentityTooLarge,
                    });
                    return WebhookDecision::new(keep_open(response), Decision::Deny, reason)
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

/// Why an identity cannot be written into headers.
#[derive(Debug)]
enum Unwritable {
    /// Part of it would be changed in transit.
    Changed,
    /// It exceeds the limits.
    TooLarge,
}

/// `X-Remote-User`, `-Uid`, `-Group` (one per group), `-Groups` (comma-separated, for nginx, which copies only one),
/// `-Extra-…`.
fn identity_headers(user: &AuthenticatedUser) -> Result<HeaderMap, Unwritable> {
    const USER: HeaderName = HeaderName::from_static("x-remote-user");
    const UID: HeaderName = HeaderName::from_static("x-remote-uid");
    const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
    const GROUPS: HeaderName = HeaderName::from_static("x-remote-groups");
    let mut lines = vec![(USER, user.username())];
    if user.username().is_empty() {
        return Err(Unwritable::Changed);
    }
    if !user.uid().is_empty() {
        lines.push((UID, user.uid()));
    }
    let groups: Vec<&str> =
        user.groups().iter().map(String::as_str).filter(|group| !group.is_empty()).collect();
    lines.extend(groups.iter().map(|group| (GROUP, *group)));
    for (key, values) in user.extra() {
        let name = format!("x-remote-extra-{}", encode(key, Plus::Literal, is_header_key_byte));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unwritable::Changed)?;
        lines.extend(
            values.iter().filter(|value| !value.is_empty()).map(|value| (name.clone(), value.as_str())),
        );
    }
    let joined = groups.join(",");
    // A group that contains a comma would be split.
    if !groups.is_empty() && !groups.iter().any(|group| group.contains(',')) {
        lines.push((GROUPS, &joined));
    }
    let bytes: usize =
        lines.iter().map(|(name, value)| name.as_str().len().saturating_add(value.len())).sum();
    if lines.len() > MAX_IDENTITY_HEADERS || bytes > MAX_IDENTITY_BYTES {
        return Err(Unwritable::TooLarge);
    }
    let mut headers = HeaderMap::with_capacity(lines.len());
    for (name, text) in lines {
        headers.append(name, header_value(text)?);
    }
    Ok(headers)
}

/// Rejects values that would be changed in transit.
// S261
fn header_value(text: &str) -> Result<HeaderValue, Unwritable> {
    let bytes = text.as_bytes();
    let is_kept = bytes.first() != Some(&b' ')
        && bytes.last() != Some(&b' ')
        && bytes.iter().all(|byte| *byte >= 0x20 && *byte != 0x7f);
    if !is_kept {
        return Err(Unwritable::Changed);
    }
    HeaderValue::from_bytes(bytes).map_err(|_| Unwritable::Changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    // S236, S261, S265
    #[test]
    fn rejects_header_values_that_would_be_changed_in_transit() {
        for good in ["ann", "é", "a,b", "a b", "%41", "x"] {
            assert_eq!(header_value(good).unwrap().as_bytes(), good.as_bytes());
        }
        for bad in [" a", "a ", "a\nb", "a\r", "a\0", "a\tb", "a\u{7f}", "\u{1b}[2J"] {
            assert!(header_value(bad).is_err(), "{bad:?}");
        }
    }
}
