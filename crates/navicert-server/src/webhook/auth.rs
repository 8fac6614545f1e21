//! `GET /auth`, for nginx's `auth_request` and Envoy's `ext_authz` over HTTP: may this request pass, and who is it? 200 with
//! identity headers, 401, or 403 (a caller that may not ask, or a user that cannot be written into headers).

use http::header::{HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION};
use http::request::Parts;
use http::{Method, Response};
use navicert_authn::{Outcome, User};

use super::{Reviewed, Webhook, reply};
use crate::audit::Decision;
use crate::bearer;
use crate::forward::ReplyBody;
use crate::limits::within;
use crate::listener::Peer;
use crate::problem::Problem;

/// Lines of identity in all; what stands behind has limits of its own (S267).
const MOST_LINES: usize = 1_000;
/// Bytes of identity in all (S267).
const MOST_BYTES: usize = 64 << 10;

impl Webhook {
    /// The token is in `Authorization`, as the client sent it; a caller's own is in `Proxy-Authorization`.
    pub(super) async fn check(&self, head: &Parts, peer: &Peer) -> Reviewed {
        // nginx asks with GET; Envoy with the method of the client.
        if head.method == Method::CONNECT {
            return Reviewed::refused(reply::wrong_method("GET"), "method");
        }
        if let Err(problem) = self.callers.check(head, peer, PROXY_AUTHORIZATION) {
            // 401 would tell the client that its own token is bad.
            let problem = match problem {
                Problem::Unauthorized => {
                    Problem::Forbidden("who may ask is set, and it is not you".to_owned())
                }
                problem => problem,
            };
            return Reviewed::refused(keep_open(problem.response()), "caller");
        }
        let token = match bearer::token(&head.headers) {
            Ok(Some(token)) => token,
            Ok(None) => return Reviewed::refused(keep_open(Problem::Unauthorized.response()), "no_token"),
            Err(problem) => return Reviewed::refused(keep_open(problem.response()), "request"),
        };
        let judged = within(self.settings.timeout, self.live.judge(token)).await;
        let Some(judgement) = judged else {
            return Reviewed::of(keep_open(Problem::Unauthorized.response()), Decision::Error, "timeout");
        };
        let response = match &judgement.outcome {
            Outcome::Authenticated(user) => match identity(user) {
                Ok(headers) => passed(headers),
                Err(Unwritable) => {
                    let response =
                        Problem::Forbidden("this user cannot be named in headers".to_owned()).response();
                    return Reviewed::of(keep_open(response), Decision::Deny, "identity_encoding");
                }
            },
            // The same for every reason (S271).
            Outcome::NoOpinion(_) | Outcome::Rejected(_) => keep_open(Problem::Unauthorized.response()),
        };
        self.judged(response, judgement, token)
    }
}

/// The connection is the caller's, not the client's: it is of further use.
fn keep_open(mut response: Response<ReplyBody>) -> Response<ReplyBody> {
    response.extensions_mut().remove::<crate::listener::CloseConnection>();
    response
}

fn passed(headers: HeaderMap) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::empty());
    *response.headers_mut() = headers;
    response
}

/// Some part of the user would not arrive as it is.
#[derive(Debug)]
struct Unwritable;

/// `X-Remote-User`, `-Uid`, `-Group` (one line each, and all of them in one for nginx, which takes only one), `-Extra-…`.
fn identity(user: &User) -> Result<HeaderMap, Unwritable> {
    const USER: HeaderName = HeaderName::from_static("x-remote-user");
    const UID: HeaderName = HeaderName::from_static("x-remote-uid");
    const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
    const GROUPS: HeaderName = HeaderName::from_static("x-remote-groups");
    let mut lines = vec![(USER, user.username())];
    if user.username().is_empty() {
        return Err(Unwritable);
    }
    if !user.uid().is_empty() {
        lines.push((UID, user.uid()));
    }
    let groups: Vec<&str> =
        user.groups().iter().map(String::as_str).filter(|group| !group.is_empty()).collect();
    lines.extend(groups.iter().map(|group| (GROUP, *group)));
    for (key, values) in user.extra() {
        let name = format!("x-remote-extra-{}", encoded(key));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unwritable)?;
        lines.extend(
            values.iter().filter(|value| !value.is_empty()).map(|value| (name.clone(), value.as_str())),
        );
    }
    let joined = groups.join(",");
    // A group with a comma in it would become two.
    if !groups.is_empty() && !groups.iter().any(|group| group.contains(',')) {
        lines.push((GROUPS, &joined));
    }
    let bytes: usize =
        lines.iter().map(|(name, value)| name.as_str().len().saturating_add(value.len())).sum();
    if lines.len() > MOST_LINES || bytes > MOST_BYTES {
        return Err(Unwritable);
    }
    let mut headers = HeaderMap::with_capacity(lines.len());
    for (name, text) in lines {
        headers.append(name, value(text)?);
    }
    Ok(headers)
}

/// Arrives as it is, or not at all (S261).
fn value(text: &str) -> Result<HeaderValue, Unwritable> {
    let bytes = text.as_bytes();
    let is_kept = bytes.first() != Some(&b' ')
        && bytes.last() != Some(&b' ')
        && bytes.iter().all(|byte| *byte >= 0x20 && *byte != 0x7f);
    if !is_kept {
        return Err(Unwritable);
    }
    HeaderValue::from_bytes(bytes).map_err(|_| Unwritable)
}

/// Everything that cannot stand in a header's name, and `%`, as `%XX` (S236).
fn encoded(key: &str) -> String {
    use std::fmt::Write as _;
    let mut name = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            name.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    // S236, S261, S265
    #[test]
    fn what_would_not_arrive_as_it_is_is_not_sent() {
        for good in ["ann", "é", "a,b", "a b", "%41", "x"] {
            assert_eq!(value(good).unwrap().as_bytes(), good.as_bytes());
        }
        for bad in [" a", "a ", "a\nb", "a\r", "a\0", "a\tb", "a\u{7f}", "\u{1b}[2J"] {
            assert!(value(bad).is_err(), "{bad:?}");
        }
        for (key, name) in
            [("example.org/foo", "example.org%2Ffoo"), ("a%b", "a%25b"), ("é", "%C3%A9"), ("a_b", "a_b")]
        {
            assert_eq!(encoded(key), name);
        }
    }
}
