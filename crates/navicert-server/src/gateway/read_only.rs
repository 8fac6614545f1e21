//! `--read-only`: lets through requests that change nothing, by kube-apiserver's own interpretation of method and
//! path (`RequestInfo`): a GET of `pods/exec` runs a command, a POST of a `SelfSubjectReview` changes nothing.
//! Ambiguous paths are rejected.

use std::borrow::Cow;

use http::header::UPGRADE;
use http::{Method, Uri, request};

use crate::problem::Problem;

/// Checks that a request changes nothing.
///
/// # Errors
/// 403, with the reason.
pub fn check(head: &request::Parts) -> Result<(), Problem> {
    let rejected = |why: &str| {
        Err(Problem::Forbidden(format!(
            "this gateway is read-only: {} {} {why}",
            head.method,
            head.uri.path()
        )))
    };
    let Some(path) = RequestPath::read(&head.uri) else {
        return rejected("has an ambiguous path");
    };
    if head.headers.keys().any(|name| name.as_str().contains("method-override") || name == "x-http-method") {
        return rejected("overrides the method");
    }
    if head.headers.contains_key(UPGRADE) {
        return rejected("requests a protocol upgrade");
    }
    match head.method {
        Method::GET | Method::HEAD if path.is_connect() => rejected("connects to a pod, service or node"),
        Method::GET | Method::HEAD | Method::OPTIONS => Ok(()),
        Method::POST if path.is_access_review() => Ok(()),
        _ => rejected("may change something"),
    }
}

/// A path as kube-apiserver parses it.
#[derive(Debug, PartialEq, Eq)]
struct RequestPath<'a> {
    /// `""` for the core group; `None` for a non-resource path.
    group: Option<Cow<'a, str>>,
    /// Segments after group and version, without the namespace: resource, name, subresource.
    rest: Vec<Cow<'a, str>>,
}

/// Subresources that connect to a pod, service or node.
const CONNECT_SUBRESOURCES: [&str; 4] = ["exec", "attach", "portforward", "proxy"];

impl<'a> RequestPath<'a> {
    /// Parses a path. `None` if another server might parse it differently: dot segments, empty segments, escaped
    /// slashes, parameters, backslashes, control characters.
    fn read(uri: &'a Uri) -> Option<Self> {
        let whole = uri.path();
        let inner = whole.strip_prefix('/')?;
        // A trailing slash makes no difference to the server; `/` has no segments.
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        let mut parts: Vec<Cow<'a, str>> = Vec::new();
        if !inner.is_empty() {
            for segment in inner.split('/') {
                parts.push(decode_segment(segment)?);
            }
        }
        let behind = match parts.first().map(Cow::as_ref) {
            Some("api") => 2,
            Some("apis") => 3,
            _ => return Some(RequestPath { group: None, rest: Vec::new() }),
        };
        if parts.len() < behind {
            return Some(RequestPath { group: None, rest: Vec::new() }); // Discovery.
        }
        let group = if behind == 3 { parts.get(1).cloned()? } else { Cow::Borrowed("") };
        let mut rest = parts.split_off(behind);
        // Deprecated watch paths; the rest is a normal path.
        if rest.first().is_some_and(|first| first == "watch") {
            rest.remove(0);
        }
        if rest.first().is_some_and(|first| first == "namespaces") && rest.len() > 2 {
            rest.drain(..2);
        }
        Some(RequestPath { group: Some(group), rest })
    }

    /// Whether a GET runs a command or connects to a workload, including the deprecated `/api/v1/proxy/…`.
    fn is_connect(&self) -> bool {
        let is_further =
            |part: &Cow<'_, str>| CONNECT_SUBRESOURCES.iter().any(|name| part.eq_ignore_ascii_case(name));
        let is_old_form = self.rest.first().is_some_and(|first| first.eq_ignore_ascii_case("proxy"));
        self.group.is_some() && (is_old_form || self.rest.iter().skip(2).any(is_further))
    }

    /// Whether a POST is an access review, which stores nothing.
    fn is_access_review(&self) -> bool {
        let Some(group) = self.group.as_deref() else { return false };
        let [resource] = self.rest.as_slice() else { return false };
        match group {
            "authorization.k8s.io" => matches!(
                resource.as_ref(),
                "selfsubjectaccessreviews"
                    | "selfsubjectrulesreviews"
                    | "subjectaccessreviews"
                    | "localsubjectaccessreviews"
            ),
            "authentication.k8s.io" => resource == "selfsubjectreviews",
            _ => false,
        }
    }
}

/// A percent-decoded segment; `None` if it is ambiguous.
fn decode_segment(segment: &str) -> Option<Cow<'_, str>> {
    let decoded =
        if segment.contains('%') { Cow::Owned(percent_decode(segment)?) } else { Cow::Borrowed(segment) };
    let is_odd = |character: char| character.is_control() || "/\\;%?#".contains(character);
    let is_dots = decoded.chars().all(|character| character == '.');
    (!is_dots && !decoded.chars().any(is_odd)).then_some(decoded)
}

/// `None` for invalid escapes and invalid UTF-8.
fn percent_decode(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| !digits.contains('+'))?);
            rest = behind.get(2..)?;
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn passes(method: &str, path: &str, header: Option<(&str, &str)>) -> bool {
        let mut request = Request::builder().method(method).uri(path);
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        check(&head).is_ok()
    }

    #[test]
    fn allows_read_requests() {
        for (method, path) in [
            ("GET", "/"),
            ("GET", "/api"),
            ("GET", "/api/v1"),
            ("GET", "/apis/apps/v1"),
            ("HEAD", "/version"),
            ("GET", "/openapi/v3/apis/apps/v1?hash=1"),
            ("GET", "/api/v1/namespaces"),
            ("GET", "/api/v1/namespaces/proxy/pods?watch=true"),
            ("GET", "/api/v1/namespaces/exec/pods/attach"),
            ("GET", "/api/v1/namespaces/a/pods/b/log?follow=true"),
            ("GET", "/api/v1/namespaces/a/pods/b/status"),
            ("GET", "/api/v1/watch/namespaces/a/pods"),
            ("GET", "/api/v1/nodes/proxy"),
            ("GET", "/apis/apps/v1/namespaces/a/deployments/b/scale"),
            ("GET", "/apis/example.com/v1/namespaces/a/things/name%20with%3Acolon"),
            ("OPTIONS", "/api/v1/namespaces"),
            ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews"),
            ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
            ("POST", "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews"),
            ("GET", "/logs/kube-apiserver.log"),
        ] {
            assert!(passes(method, path, None), "{method} {path}");
        }
    }

    // Requests that modify something, connect to a workload, or have an ambiguous path.
    #[test]
    fn rejects_requests_that_may_change_something() {
        for (method, path) in [
            ("POST", "/api/v1/namespaces/a/pods"),
            ("PUT", "/api/v1/namespaces/a/pods/b"),
            ("PATCH", "/api/v1/namespaces/a/pods/b"),
            ("DELETE", "/api/v1/namespaces/a/pods/b"),
            ("DELETE", "/api/v1/namespaces/a/pods"),
            ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/scale"),
            ("POST", "/api/v1/namespaces/a/pods/b/eviction"),
            ("POST", "/api/v1/namespaces/a/pods/b/binding"),
            ("POST", "/api/v1/namespaces/a/serviceaccounts/b/token"),
            ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
            ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews/extra"),
            ("POST", "/apis/authentication.k8s.io.evil/v1/selfsubjectreviews"),
            ("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests"),
            ("POST", "/api/v1/namespaces/a/pods?dryRun=All"),
            ("GET", "/api/v1/namespaces/a/pods/b/exec?command=rm"),
            ("GET", "/api/v1/namespaces/a/pods/b/exec/"),
            ("GET", "/api/v1/namespaces/a/pods/b/%65xec?command=rm"),
            ("GET", "/api/v1/namespaces/a/pods/b/%65%78%65%63"),
            ("GET", "/api/v1/namespaces/a/pods/b/EXEC"),
            ("GET", "/api/v1/namespaces/a/pods/b/attach"),
            ("GET", "/api/v1/namespaces/a/pods/b/portforward"),
            ("GET", "/api/v1/namespaces/a/pods/b/proxy/delete-everything"),
            ("GET", "/api/v1/namespaces/a/services/https:b:443/proxy"),
            ("GET", "/api/v1/nodes/n/proxy/run/a/b/c?cmd=rm"),
            ("GET", "/api/v1/proxy/nodes/n/pods"),
            ("GET", "/api/v1/watch/namespaces/a/pods/b/exec"),
            ("HEAD", "/api/v1/namespaces/a/pods/b/proxy"),
            ("GET", "/api/v1/namespaces/a/pods/b/log/../exec"),
            ("GET", "/api/v1/namespaces/a/pods/b/%2e%2e/exec"),
            ("GET", "/api/v1/namespaces/a/pods/b/.%2E/x"),
            ("GET", "/api/v1/namespaces/a/pods/./b"),
            ("GET", "/api/v1//namespaces/a/pods/b/exec"),
            ("GET", "//api/v1/namespaces/a/pods/b/exec"),
            ("GET", "/api/v1/namespaces/a/pods/b//exec"),
            ("GET", "/api/v1/namespaces/a/pods/b/exec;x=1"),
            ("GET", "/api/v1/namespaces/a/pods;/b/exec"),
            ("GET", "/api/v1/namespaces/a/pods/b%2Fexec"),
            ("GET", "/api/v1/namespaces/a/pods/b%2fexec"),
            ("GET", "/api/v1/namespaces/a/pods/b%5cexec"),
            ("GET", "/api/v1/namespaces/a/pods/b%252Fexec"),
            ("GET", "/api/v1/namespaces/a/pods/b%00"),
            ("GET", "/api/v1/namespaces/a/pods/b%zz"),
            ("GET", "/api/v1/namespaces/a/pods/b%ff"),
            ("GET", "/api/v1/namespaces/a/pods/b%"),
            ("get", "/api/v1/namespaces/a/pods"),
            ("TRACE", "/api/v1"),
            ("PROPFIND", "/api/v1"),
            ("DELETE", "/"),
        ] {
            assert!(!passes(method, path, None), "{method} {path}");
        }
    }

    #[test]
    fn rejects_method_override_and_upgrade_headers() {
        let path = "/api/v1/namespaces/a/pods";
        for header in [
            ("upgrade", "websocket"),
            ("upgrade", "SPDY/3.1"),
            ("x-http-method-override", "DELETE"),
            ("x-http-method", "DELETE"),
            ("x-method-override", "DELETE"),
        ] {
            assert!(!passes("GET", path, Some(header)), "{header:?}");
        }
        assert!(passes("GET", path, Some(("accept", "application/json"))));
    }
}
