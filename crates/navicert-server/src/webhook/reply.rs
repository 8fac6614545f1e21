//! What a caller of the webhook may read: one answer for each outcome (S218, S219). Never the token, never a claim.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use navicert_authn::{Outcome, User};
use navicert_types::token_review::Version;

use super::{NotReadyStatus, Route, Settings};
use crate::forward::ReplyBody;
use crate::problem::Problem;

/// The answer to an outcome.
pub(super) fn of(
    outcome: &Outcome,
    version: Version,
    route: Route,
    audiences: &[Cow<'_, str>],
    settings: &Settings,
) -> Response<ReplyBody> {
    match outcome {
        Outcome::Authenticated(user) => reviewed(version, route, |json| somebody(json, user, audiences)),
        Outcome::NoOpinion(_) => nobody(version, route),
        Outcome::Rejected(rejection) if rejection.refusal.is_not_ready() => {
            unknown(version, route, settings, rejection.refusal.class().name())
        }
        // A negative that the caller may keep, and nothing in its log (S219).
        Outcome::Rejected(_) if !settings.expose_errors => nobody(version, route),
        Outcome::Rejected(rejection) => reviewed(version, route, |json| {
            json.extend_from_slice(b"\"authenticated\":false,\"error\":");
            text(json, &rejection.refusal.to_string());
        }),
    }
}

/// Nobody's token; the caller may keep the answer.
pub(super) fn nobody(version: Version, route: Route) -> Response<ReplyBody> {
    reviewed(version, route, |json| json.extend_from_slice(b"\"authenticated\":false"))
}

/// It cannot be said now; the caller does not keep the answer.
pub(super) fn unknown(
    version: Version,
    route: Route,
    settings: &Settings,
    class: &str,
) -> Response<ReplyBody> {
    if settings.not_ready_status == NotReadyStatus::Unavailable {
        return Problem::Unavailable.response();
    }
    reviewed(version, route, |json| {
        json.extend_from_slice(b"\"authenticated\":false,\"error\":");
        text(json, class);
    })
}

/// More requests than are served at a time. No `Retry-After`: it would make kube-apiserver come back ten times (S215).
pub(super) fn overloaded() -> Response<ReplyBody> {
    let mut response = Problem::TooMany.response();
    response.headers_mut().remove(http::header::RETRY_AFTER);
    response
}

pub(super) fn wrong_method(allowed: &'static str) -> Response<ReplyBody> {
    let mut response = Problem::WrongMethod.response();
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

pub(super) fn not_found() -> Response<ReplyBody> {
    Problem::NotFound.response()
}

fn reviewed(version: Version, route: Route, status: impl FnOnce(&mut Vec<u8>)) -> Response<ReplyBody> {
    let mut json = Vec::with_capacity(512);
    json.extend_from_slice(match version {
        Version::V1 => {
            b"{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\",\"status\":{".as_slice()
        }
        Version::V1beta1 => {
            b"{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1beta1\",\"status\":{"
        }
    });
    status(&mut json);
    json.extend_from_slice(b"}}");
    let mut response = Response::new(ReplyBody::whole(Bytes::from(json)));
    if route == Route::Api {
        *response.status_mut() = StatusCode::CREATED;
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Who it is. `system:authenticated` is the API server's to add (S222).
fn somebody(json: &mut Vec<u8>, user: &User, audiences: &[Cow<'_, str>]) {
    json.extend_from_slice(b"\"authenticated\":true,\"user\":{\"username\":");
    text(json, user.username());
    if !user.uid().is_empty() {
        json.extend_from_slice(b",\"uid\":");
        text(json, user.uid());
    }
    if !user.groups().is_empty() {
        json.extend_from_slice(b",\"groups\":");
        list(json, user.groups());
    }
    if !user.extra().is_empty() {
        json.extend_from_slice(b",\"extra\":{");
        for (index, (key, values)) in user.extra().iter().enumerate() {
            if index > 0 {
                json.push(b',');
            }
            text(json, key);
            json.push(b':');
            list(json, values);
        }
        json.push(b'}');
    }
    json.push(b'}');
    if !audiences.is_empty() {
        json.extend_from_slice(b",\"audiences\":");
        list(json, audiences);
    }
}

fn list(json: &mut Vec<u8>, texts: &[impl AsRef<str>]) {
    json.push(b'[');
    for (index, one) in texts.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        text(json, one.as_ref());
    }
    json.push(b']');
}

/// A JSON string. Writing to memory does not fail.
fn text(json: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(json, text);
}
