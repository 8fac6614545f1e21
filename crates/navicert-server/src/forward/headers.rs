//! Header rules in both directions: removes hop-by-hop headers, rejects identity headers of clients, rejects
//! ambiguous requests.
// S240–S246, S258

use http::header::{
    CONNECTION, Entry, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, SEC_WEBSOCKET_PROTOCOL,
};
use http::uri::{Authority, PathAndQuery};
use http::{Method, Response, StatusCode, Uri, Version, request};

use super::{ClientImpersonation, ForwardRules, query};
use crate::problem::Problem;

/// Prefix of the WebSocket subprotocol that carries a token.
const TOKEN_PROTOCOL: &[u8] = b"base64url.bearer.authorization.k8s.io.";

/// Rejects ambiguous requests, and headers that only the proxy may send.
pub(crate) fn check(head: &request::Parts, rules: &ForwardRules) -> Result<(), Problem> {
    check_target(head)?;
    let headers = &head.headers;
    let is_twice = |name: &HeaderName| is_single(name) && headers.get_all(name).iter().nth(1).is_some();
    if headers.len() > headers.keys_len() && headers.keys().any(is_twice) {
        return Err(Problem::Malformed("duplicate header that may occur only once")); // S244
    }
    if host_of(&head.uri, headers).is_none() {
        return Err(Problem::Malformed("missing or conflicting host"));
    }
    headers.iter().try_for_each(|(name, value)| check_field(name, value, rules))
}

/// Checks each header once: requests have few, so a lookup by name costs as much as a full scan.
fn check_field(name: &HeaderName, value: &HeaderValue, rules: &ForwardRules) -> Result<(), Problem> {
    match name.as_str() {
        "transfer-encoding" if !is_value(value, b"chunked") => {
            Err(Problem::Malformed("unsupported transfer encoding"))
        }
        "expect" if !is_value(value, b"100-continue") => Err(Problem::Malformed("unsupported expectation")),
        "connection" => check_connection(value, rules),
        _ => check_name(name, rules),
    }
}

/// A client must not strip headers that it does not own.
// B1
fn check_connection(value: &HeaderValue, rules: &ForwardRules) -> Result<(), Problem> {
    for token in tokens(value) {
        let canonical = canonical(&token);
        if is_identity_header(&canonical, rules)
            || canonical.starts_with("impersonate")
            || canonical == "authorization"
        {
            return Err(Problem::Malformed("`Connection` lists a header that clients must not remove"));
        }
    }
    Ok(())
}

/// The first header with this name.
pub(super) fn find<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

fn is_single(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "authorization" | "host" | "content-length" | "transfer-encoding" | "upgrade" | "expect" | "origin"
    )
}

fn check_target(head: &request::Parts) -> Result<(), Problem> {
    let request::Parts { method, uri, version, headers, .. } = head;
    if *method == Method::CONNECT || *method == Method::TRACE {
        return Err(Problem::Malformed("method is not allowed"));
    }
    // HTTP/2 carries scheme and authority separately; in HTTP/1.1 this is the absolute form (S258).
    if *version != Version::HTTP_2 && (uri.scheme().is_some() || uri.authority().is_some()) {
        check_absolute_form(uri, headers)?;
    }
    let is_path = uri.path_and_query().is_some_and(|path| path.as_str().starts_with('/'));
    if !is_path || uri.path().contains("%00") {
        return Err(Problem::Malformed("request target is not a path"));
    }
    Ok(())
}

/// A request target in absolute form names this server as `Host` does: clients must send the same text in both (RFC
/// 9112, section 3.2), and another server in the chain may use either.
fn check_absolute_form(uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority().map(Authority::as_str).filter(|authority| !authority.contains('@'));
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    match is_http && authority.is_some() && authority == host {
        true => Ok(()),
        false => Err(Problem::Malformed("request target is not a path, and does not name this server")),
    }
}

/// The host of a request, from header or authority; `None` if it is missing or they differ.
pub fn host_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let header = headers.get(HOST).map(|value| value.to_str().ok());
    match (uri.authority().map(Authority::as_str), header) {
        (_, Some(None)) | (None, None) => None,
        (Some(authority), Some(Some(host))) => (authority == host).then_some(host),
        (Some(host), None) | (None, Some(Some(host))) => Some(host),
    }
}

/// Compares names as the most lenient server would.
// S241
fn check_name(name: &HeaderName, rules: &ForwardRules) -> Result<(), Problem> {
    let canonical = canonical(name.as_str());
    if canonical.starts_with("impersonate") {
        let known = matches!(name.as_str(), "impersonate-user" | "impersonate-uid" | "impersonate-group")
            || name.as_str().starts_with("impersonate-extra-");
        return match rules.impersonation {
            ClientImpersonation::Forwarded | ClientImpersonation::Authorized if known => Ok(()),
            _ => Err(Problem::Forbidden("impersonation is not allowed".to_owned())),
        };
    }
    if is_identity_header(&canonical, rules) {
        return Err(Problem::Malformed("identity headers are not allowed in requests"));
    }
    // `Content_Length` and the like have no legitimate use.
    let aliased = ["content-length", "transfer-encoding", "authorization", "proxy-authorization", "host"];
    if name.as_str().contains('_') && aliased.contains(&&*canonical) {
        return Err(Problem::Malformed("invalid header name: underscore instead of dash"));
    }
    Ok(())
}

fn is_identity_header(canonical: &str, rules: &ForwardRules) -> bool {
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

/// Path and query byte for byte, without a parameter that carries a token.
// S243, S258
pub(crate) fn target(head: &request::Parts) -> Result<Uri, Problem> {
    let malformed = |_| Problem::Malformed("request target is not a path");
    let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let query = path.split_once('?').and_then(|(path, query)| Some((path, query::without_tokens(query)?)));
    match query {
        Some((path, kept)) => {
            let separator = if kept.is_empty() { "" } else { "?" };
            Uri::try_from(format!("{path}{separator}{kept}")).map_err(malformed)
        }
        None => head
            .uri
            .path_and_query()
            .cloned()
            .map_or_else(|| Uri::try_from(path).map_err(malformed), |path| Ok(Uri::from(path))),
    }
}

/// Removes hop-by-hop headers, credentials, and headers that the transport sets.
// S242
pub(crate) fn strip_request(headers: &mut HeaderMap, rules: &ForwardRules) {
    let strips_impersonation = rules.impersonation == ClientImpersonation::Authorized;
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
                || (strips_impersonation && canonical.starts_with("impersonate"))
        }
    });
    if find(headers, &SEC_WEBSOCKET_PROTOCOL).is_some() {
        remove_token_protocol(headers);
    }
}

/// Writes the identity headers last, replacing any header of the same name.
// S240, B8
pub(crate) fn write_identity(
    headers: &mut HeaderMap,
    identity: Vec<(HeaderName, HeaderValue)>,
) -> Result<(), Problem> {
    // Comparing names costs less than a lookup of each, and normally none is left by now.
    if headers.keys().any(|known| identity.iter().any(|(name, _)| name == known)) {
        for (name, _) in &identity {
            headers.remove(name);
        }
    }
    for (name, value) in identity {
        // Fails above 24,576 names.
        headers.try_append(name, value).map_err(|_| Problem::Malformed("too many headers"))?;
    }
    Ok(())
}

/// Removes hop-by-hop headers, the announcement of trailers, which are dropped, and headers that would let a web page
/// read the response.
// S253, S257
pub(super) fn strip_response(headers: &mut HeaderMap) {
    remove(headers, |name| {
        matches!(name, "proxy-authenticate" | "trailer") || name.starts_with("access-control-")
    });
}

/// `304`, or a redirect to the same server: the client sends a new request, which is authenticated again
/// (CVE-2022-3172).
pub(super) fn is_same_server_redirect<B>(response: &Response<B>) -> bool {
    let stays = |location: &HeaderValue| {
        let bytes = location.as_bytes();
        bytes.starts_with(b"/") && !bytes.starts_with(b"//") && !bytes.contains(&b'\\')
    };
    response.status() == StatusCode::NOT_MODIFIED || response.headers().get(LOCATION).is_some_and(stays)
}

/// Removes hop-by-hop headers, those listed in `Connection`, and those that `is_removed` selects, in one scan.
fn remove(headers: &mut HeaderMap, is_removed: impl Fn(&str) -> bool) {
    for token in connection_tokens(headers) {
        if let Ok(name) = HeaderName::try_from(token) {
            headers.remove(name);
        }
    }
    let is_removed = |name: &&HeaderName| match name.as_str() {
        "connection" | "keep-alive" | "proxy-connection" | "te" | "transfer-encoding" | "upgrade" => true,
        name => is_removed(name),
    };
    // In batches, which avoids an allocation; usually one suffices.
    loop {
        let mut removed = [const { None }; 8];
        for (slot, name) in removed.iter_mut().zip(headers.keys().filter(is_removed)) {
            *slot = Some(name.clone());
        }
        let was_full = removed.iter().all(Option::is_some);
        for name in removed.into_iter().flatten() {
            headers.remove(name);
        }
        if !was_full {
            break;
        }
    }
}

/// Names listed in `Connection`, in lower case.
pub(super) fn connection_tokens(headers: &HeaderMap) -> Vec<String> {
    headers.iter().filter(|(name, _)| *name == CONNECTION).flat_map(|(_, value)| tokens(value)).collect()
}

fn tokens(list: &HeaderValue) -> impl Iterator<Item = String> {
    let tokens = list.to_str().unwrap_or_default().split(',');
    tokens.map(|token| token.trim().to_ascii_lowercase()).filter(|token| !token.is_empty())
}

/// A token in the WebSocket subprotocols is for the proxy, never for the API server.
// A72
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

fn is_value(value: &HeaderValue, text: &[u8]) -> bool {
    value.as_bytes().eq_ignore_ascii_case(text)
}

#[cfg(test)]
mod tests;
