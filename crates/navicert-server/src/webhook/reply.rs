//! Responses of the webhook, one per outcome. They never contain the token or a claim.
// S218, S219

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use navicert_authn::{AuthenticatedUser, AuthnOutcome, Refusal};
use navicert_types::token_review::TokenReviewVersion;

use super::{NotReadyStatus, Route, WebhookSettings};
use crate::forward::ReplyBody;
use crate::problem::Problem;

/// The response for an outcome.
pub(super) fn for_outcome(
    outcome: &AuthnOutcome,
    version: TokenReviewVersion,
    route: Route,
    audiences: &[Cow<'_, str>],
    settings: &WebhookSettings,
) -> Response<ReplyBody> {
    match outcome {
        AuthnOutcome::Authenticated(user) => {
            token_review(version, route, |json| write_user(json, user, audiences))
        }
        AuthnOutcome::NoOpinion(_) => unauthenticated(version, route),
        AuthnOutcome::Rejected(rejection) if rejection.refusal.is_transient() => {
            // The text names the leeway and the Kubernetes version that has it.
            let is_early = matches!(rejection.refusal, Refusal::NotYetValid { .. });
            if is_early && settings.expose_errors {
                return not_ready(version, route, settings, &rejection.refusal.to_string());
            }
            not_ready(version, route, settings, rejection.refusal.class().name())
        }
        // A cacheable negative response; kube-apiserver logs no error for it (S219).
        AuthnOutcome::Rejected(_) if !settings.expose_errors => unauthenticated(version, route),
        AuthnOutcome::Rejected(rejection) => token_review(version, route, |json| {
            json.extend_from_slice(b"\"authenticated\":false,\"error\":");
            write_string(json, &rejection.refusal.to_string());
        }),
    }
}

/// A negative response that the client may cache.
pub(super) fn unauthenticated(version: TokenReviewVersion, route: Route) -> Response<ReplyBody> {
    token_review(version, route, |json| json.extend_from_slice(b"\"authenticated\":false"))
}

/// No decision is possible now; the client does not cache this.
pub(super) fn not_ready(
    version: TokenReviewVersion,
    route: Route,
    settings: &WebhookSettings,
    class: &str,
) -> Response<ReplyBody> {
    if settings.not_ready_status == NotReadyStatus::Unavailable {
        return Problem::Unavailable.response();
    }
    token_review(version, route, |json| {
        json.extend_from_slice(b"\"authenticated\":false,\"error\":");
        write_string(json, class);
    })
}

/// The in-flight limit is reached. Without `Retry-After`, because kube-apiserver would retry ten times.
// S215
pub(super) fn overloaded() -> Response<ReplyBody> {
    let mut response = Problem::TooManyRequests.response();
    response.headers_mut().remove(http::header::RETRY_AFTER);
    response
}

pub(super) fn wrong_method(allowed: &'static str) -> Response<ReplyBody> {
    let mut response = Problem::MethodNotAllowed.response();
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

pub(super) fn not_found() -> Response<ReplyBody> {
    Problem::NotFound.response()
}

fn token_review(
    version: TokenReviewVersion,
    route: Route,
    status: impl FnOnce(&mut Vec<u8>),
) -> Response<ReplyBody> {
    let mut json = Vec::with_capacity(512);
    json.extend_from_slice(match version {
        TokenReviewVersion::V1 => {
            b"{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\",\"status\":{".as_slice()
        }
        TokenReviewVersion::V1beta1 => {
            b"{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1beta1\",\"status\":{"
        }
    });
    status(&mut json);
    json.extend_from_slice(b"}}");
    let mut response = Response::new(ReplyBody::full(Bytes::from(json)));
    if route == Route::Api {
        *response.status_mut() = StatusCode::CREATED;
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Writes the user. The API server adds `system:authenticated`.
// S222
fn write_user(json: &mut Vec<u8>, user: &AuthenticatedUser, audiences: &[Cow<'_, str>]) {
    json.extend_from_slice(b"\"authenticated\":true,\"user\":{\"username\":");
    write_string(json, user.username());
    if !user.uid().is_empty() {
        json.extend_from_slice(b",\"uid\":");
        write_string(json, user.uid());
    }
    if !user.groups().is_empty() {
        json.extend_from_slice(b",\"groups\":");
        write_list(json, user.groups());
    }
    if !user.extra().is_empty() {
        json.extend_from_slice(b",\"extra\":{");
        for (index, (key, values)) in user.extra().iter().enumerate() {
            if index > 0 {
                json.push(b',');
            }
            write_string(json, key);
            json.push(b':');
            write_list(json, values);
        }
        json.push(b'}');
    }
    json.push(b'}');
    if !audiences.is_empty() {
        json.extend_from_slice(b",\"audiences\":");
        write_list(json, audiences);
    }
}

fn write_list(json: &mut Vec<u8>, texts: &[impl AsRef<str>]) {
    json.push(b'[');
    for (index, one) in texts.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        write_string(json, one.as_ref());
    }
    json.push(b']');
}

/// Writes a JSON string. Names rarely need escapes, and a loop without a branch finds that out; serde_json's loop took 1,560
/// instructions per review.
fn write_string(json: &mut Vec<u8>, text: &str) {
    let needs_escape = |byte: u8| (byte < 0x20) | (byte == b'"') | (byte == b'\\');
    if text.bytes().fold(false, |found, byte| found | needs_escape(byte)) {
        // Writing to memory cannot fail.
        let _ = serde_json::to_writer(json, text);
        return;
    }
    json.push(b'"');
    json.extend_from_slice(text.as_bytes());
    json.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_are_written_as_serde_json_writes_them(text in any::<String>()) {
            let mut json = Vec::new();
            write_string(&mut json, &text);
            prop_assert_eq!(json, serde_json::to_vec(&text).unwrap());
        }
    }

    #[test]
    fn escapes_what_json_requires() {
        let mut json = Vec::new();
        write_string(&mut json, "a\"b\\c\n\u{1f}\u{7f}é");
        assert_eq!(json, "\"a\\\"b\\\\c\\n\\u001f\u{7f}é\"".as_bytes());
    }
}
