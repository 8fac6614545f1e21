//! Which headers cross, in both directions: nothing hop-by-hop, nothing that says who is calling but what we say
//! ourselves, and nothing that could be read in two ways (structured-authentication.md S240–S246, S258).

use http::header::{
    CONNECTION, Entry, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, SEC_WEBSOCKET_PROTOCOL, TE,
};
use http::uri::PathAndQuery;
use http::{Method, Response, StatusCode, Uri, Version, request};

use super::{ClientImpersonation, Rules};
use crate::problem::Problem;

/// How browsers put a token into a WebSocket's protocols.
const TOKEN_PROTOCOL: &[u8] = b"base64url.bearer.authorization.k8s.io.";

/// Refuses what could be understood in two ways, and what only we may say.
pub(super) fn check(head: &request::Parts, rules: &Rules) -> Result<(), Problem> {
    check_target(&head.method, &head.uri, head.version)?;
    let headers = &head.headers;
    let is_twice = |name: &HeaderName| is_single(name) && headers.get_all(name).iter().nth(1).is_some();
    if headers.len() > headers.keys_len() && headers.keys().any(is_twice) {
        return Err(Problem::Malformed("a header that may occur only once occurs twice")); // S244
    }
    if host_of(&head.uri, headers).is_none() {
        return Err(Problem::Malformed("no host, or two different ones"));
    }
    headers.iter().try_for_each(|(name, value)| check_field(name, value, rules))
}

/// One look at each: requests have few, and asking for one by its name costs as much as looking at all.
fn check_field(name: &HeaderName, value: &HeaderValue, rules: &Rules) -> Result<(), Problem> {
    match name.as_str() {
        "transfer-encoding" if !is(value, b"chunked") => {
            Err(Problem::Malformed("a transfer encoding other than chunked"))
        }
        "expect" if !is(value, b"100-continue") => {
            Err(Problem::Malformed("an expectation other than 100-continue"))
        }
        "connection" => check_connection(value, rules),
        _ => check_name(name, rules),
    }
}

/// B1: a client must not be able to strip what it does not own.
fn check_connection(value: &HeaderValue, rules: &Rules) -> Result<(), Problem> {
    for token in tokens(value) {
        let canonical = canonical(&token);
        if says_who(&canonical, rules) || canonical.starts_with("impersonate") || canonical == "authorization"
        {
            return Err(Problem::Malformed("`Connection` names a header that is not the client's to remove"));
        }
    }
    Ok(())
}

/// The first header of this name.
pub(super) fn find<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

fn is_single(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "authorization" | "host" | "content-length" | "transfer-encoding" | "upgrade" | "expect" | "origin"
    )
}

fn check_target(method: &Method, uri: &Uri, version: Version) -> Result<(), Problem> {
    if *method == Method::CONNECT || *method == Method::TRACE {
        return Err(Problem::Malformed("a method that is not forwarded"));
    }
    // HTTP/2 has the authority beside the path; in HTTP/1.1 it would be the absolute form (S258).
    if version != Version::HTTP_2 && (uri.scheme().is_some() || uri.authority().is_some()) {
        return Err(Problem::Malformed("the target is not a path"));
    }
    if !uri.path().starts_with('/') || uri.path().contains("%00") {
        return Err(Problem::Malformed("the target is not a path"));
    }
    Ok(())
}

/// The one host a request names, by header or by authority; `None` if there is none or the two differ.
pub fn host_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let header = headers.get(HOST).map(|value| value.to_str().ok());
    match (uri.authority().map(http::uri::Authority::as_str), header) {
        (_, Some(None)) | (None, None) => None,
        (Some(authority), Some(Some(host))) => (authority == host).then_some(host),
        (Some(host), None) | (None, Some(Some(host))) => Some(host),
    }
}

/// S241: names are compared as the most lenient server behind us might.
fn check_name(name: &HeaderName, rules: &Rules) -> Result<(), Problem> {
    let canonical = canonical(name.as_str());
    if canonical.starts_with("impersonate") {
        let known = matches!(name.as_str(), "impersonate-user" | "impersonate-uid" | "impersonate-group")
            || name.as_str().starts_with("impersonate-extra-");
        return match rules.impersonation {
            ClientImpersonation::Forwarded | ClientImpersonation::Judged if known => Ok(()),
            _ => Err(Problem::Forbidden("impersonation is not allowed here".to_owned())),
        };
    }
    if says_who(&canonical, rules) {
        return Err(Problem::Malformed("a header that only a front proxy may send"));
    }
    // `Content_Length`, `Authorization` with an underscore and their like: nobody means well by them.
    let aliased = ["content-length", "transfer-encoding", "authorization", "proxy-authorization", "host"];
    if name.as_str().contains('_') && aliased.contains(&&*canonical) {
        return Err(Problem::Malformed("a header's name with an underscore for a dash"));
    }
    Ok(())
}

fn says_who(canonical: &str, rules: &Rules) -> bool {
    let is_configured = |configured: &String| match configured.ends_with('-') {
        true => canonical.starts_with(configured.as_str()),
        false => canonical == configured,
    };
    canonical.starts_with("x-remote-") || rules.identity_headers.iter().any(is_configured)
}

fn canonical(name: &str) -> std::borrow::Cow<'_, str> {
    if name.bytes().any(|byte| byte == b'_' || byte.is_ascii_uppercase()) {
        name.to_ascii_lowercase().replace('_', "-").into()
    } else {
        name.into()
    }
}

/// Path and query as they came, byte for byte, without a token that somebody put into the query (S243, S258).
pub(super) fn target(head: &request::Parts) -> Result<Uri, Problem> {
    let malformed = |_| Problem::Malformed("the target is not a path");
    let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let is_token = |part: &str| part.split('=').next() == Some("access_token");
    match path.split_once('?') {
        Some((path, query)) if query.split('&').any(is_token) => {
            let kept: Vec<&str> = query.split('&').filter(|part| !is_token(part)).collect();
            let separator = if kept.is_empty() { "" } else { "?" };
            Uri::try_from(format!("{path}{separator}{}", kept.join("&"))).map_err(malformed)
        }
        _ => head
            .uri
            .path_and_query()
            .cloned()
            .map_or_else(|| Uri::try_from(path).map_err(malformed), |path| Ok(Uri::from(path))),
    }
}

/// Takes off everything that is between the client and us (S242). What the transport writes itself goes too.
pub(super) fn clean_request(headers: &mut HeaderMap, rules: &Rules) {
    let te_trailers = find(headers, &TE).is_some_and(|value| is(value, b"trailers"));
    let judged = rules.impersonation == ClientImpersonation::Judged;
    remove(headers, |name| match name {
        "trailer"
        | "expect"
        | "host"
        | "content-length"
        | "authorization"
        | "proxy-authorization"
        | "forwarded"
        | "http2-settings" => true,
        "cookie" => !rules.cookies,
        name => {
            let canonical = canonical(name);
            canonical.starts_with("x-forwarded-")
                || canonical == "x-real-ip"
                || (judged && canonical.starts_with("impersonate"))
        }
    });
    if find(headers, &SEC_WEBSOCKET_PROTOCOL).is_some() {
        remove_token_protocol(headers);
    }
    if te_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Our own identity headers come last, and replace whatever may still be there under their names (S240, B8).
pub(super) fn write_identity(headers: &mut HeaderMap, identity: Vec<(HeaderName, HeaderValue)>) {
    for (name, _) in &identity {
        headers.remove(name);
    }
    for (name, value) in identity {
        headers.append(name, value);
    }
}

/// Takes off what is between the server and us, and what would let a page in a browser read the answer (S257).
pub(super) fn clean_response(headers: &mut HeaderMap) {
    remove(headers, |name| name == "proxy-authenticate" || name.starts_with("access-control-"));
}

/// `304`, and redirections that stay on this server: the client asks again, and is looked at again (CVE-2022-3172).
pub(super) fn is_harmless_redirection<B>(answer: &Response<B>) -> bool {
    let stays = |location: &HeaderValue| {
        let bytes = location.as_bytes();
        bytes.starts_with(b"/") && !bytes.starts_with(b"//") && !bytes.contains(&b'\\')
    };
    answer.status() == StatusCode::NOT_MODIFIED || answer.headers().get(LOCATION).is_some_and(stays)
}

/// Takes off what is hop-by-hop, what `Connection` lists, and what `goes` besides. Every name is looked at once: most requests
/// have few, and many more are not welcome.
fn remove(headers: &mut HeaderMap, goes: impl Fn(&str) -> bool) {
    for token in connection_tokens(headers) {
        if let Ok(name) = HeaderName::try_from(token) {
            headers.remove(name);
        }
    }
    let goes = |name: &&HeaderName| match name.as_str() {
        "connection" | "keep-alive" | "proxy-connection" | "te" | "transfer-encoding" | "upgrade" => true,
        name => goes(name),
    };
    // A few at a time, which takes no memory; mostly all of them.
    loop {
        let mut going = [const { None }; 8];
        for (place, name) in going.iter_mut().zip(headers.keys().filter(goes)) {
            *place = Some(name.clone());
        }
        let was_full = going.iter().all(Option::is_some);
        for name in going.into_iter().flatten() {
            headers.remove(name);
        }
        if !was_full {
            break;
        }
    }
}

/// What `Connection` lists, in lower case.
pub(super) fn connection_tokens(headers: &HeaderMap) -> Vec<String> {
    headers.iter().filter(|(name, _)| *name == CONNECTION).flat_map(|(_, value)| tokens(value)).collect()
}

fn tokens(list: &HeaderValue) -> impl Iterator<Item = String> {
    let tokens = list.to_str().unwrap_or_default().split(',');
    tokens.map(|token| token.trim().to_ascii_lowercase()).filter(|token| !token.is_empty())
}

/// A token among a WebSocket's protocols is for us, never for the server behind us (A72).
fn remove_token_protocol(headers: &mut HeaderMap) {
    let values: Vec<HeaderValue> = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().cloned().collect();
    let has_token = |value: &HeaderValue| {
        value.as_bytes().windows(TOKEN_PROTOCOL.len()).any(|part| part.eq_ignore_ascii_case(TOKEN_PROTOCOL))
    };
    if !values.iter().any(has_token) {
        return;
    }
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    let is_token = |protocol: &&[u8]| {
        protocol.get(..TOKEN_PROTOCOL.len()).is_some_and(|start| start.eq_ignore_ascii_case(TOKEN_PROTOCOL))
    };
    for value in values {
        let protocols = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        let kept: Vec<&[u8]> = protocols.filter(|protocol| !is_token(protocol)).collect();
        if let Ok(value) = HeaderValue::from_bytes(&kept.join(&b", "[..]))
            && !value.is_empty()
        {
            match headers.entry(SEC_WEBSOCKET_PROTOCOL) {
                Entry::Occupied(mut entry) => entry.append(value),
                Entry::Vacant(entry) => {
                    entry.insert(value);
                }
            }
        }
    }
}

fn is(value: &HeaderValue, text: &[u8]) -> bool {
    value.as_bytes().eq_ignore_ascii_case(text)
}

#[cfg(test)]
mod tests;
