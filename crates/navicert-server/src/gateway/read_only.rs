//! `--read-only`: what changes nothing, as the API server would understand the request. Not a method's name decides but what
//! kube-apiserver makes of method and path (its `RequestInfo`): a GET on `pods/exec` runs a command, a POST of a
//! `SelfSubjectReview` changes nothing. A path that could be read in two ways on its way there is refused.

use std::borrow::Cow;

use http::header::UPGRADE;
use http::{Method, Uri, request};

use crate::problem::Problem;

/// Whether a request changes nothing.
///
/// # Errors
/// 403, with what it was taken for.
pub fn check(head: &request::Parts) -> Result<(), Problem> {
    let refused = |why: &str| {
        Err(Problem::Forbidden(format!(
            "this gateway is read-only: {} {} {why}",
            head.method,
            head.uri.path()
        )))
    };
    let Some(path) = Path::read(&head.uri) else {
        return refused("has a path that can be read in more than one way");
    };
    if head.headers.keys().any(|name| name.as_str().contains("method-override") || name == "x-http-method") {
        return refused("asks to be taken for another method");
    }
    if head.headers.contains_key(UPGRADE) {
        return refused("asks for another protocol");
    }
    match head.method {
        Method::GET | Method::HEAD if path.reaches_further() => {
            refused("reaches into a pod, service or node")
        }
        Method::GET | Method::HEAD | Method::OPTIONS => Ok(()),
        Method::POST if path.is_question() => Ok(()),
        _ => refused("changes something"),
    }
}

/// A path as kube-apiserver takes it apart.
#[derive(Debug, PartialEq, Eq)]
struct Path<'a> {
    /// `""` for the core group; `None` for a path that is no resource.
    group: Option<Cow<'a, str>>,
    /// What stands behind group and version: resource, name, subresource, the namespace taken off.
    rest: Vec<Cow<'a, str>>,
}

/// Subresources that carry a caller's bytes on to something else.
const FURTHER: [&str; 4] = ["exec", "attach", "portforward", "proxy"];

impl<'a> Path<'a> {
    /// Takes a path apart, unless anybody on the way could see another one in it: dot segments, empty segments, escaped
    /// slashes, parameters, backslashes, control characters.
    fn read(uri: &'a Uri) -> Option<Self> {
        let whole = uri.path();
        let inner = whole.strip_prefix('/')?;
        // A slash at the end makes no difference to the server; `/` itself has no segments.
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        let mut parts: Vec<Cow<'a, str>> = Vec::new();
        if !inner.is_empty() {
            for segment in inner.split('/') {
                parts.push(unambiguous(segment)?);
            }
        }
        let behind = match parts.first().map(Cow::as_ref) {
            Some("api") => 2,
            Some("apis") => 3,
            _ => return Some(Path { group: None, rest: Vec::new() }),
        };
        if parts.len() < behind {
            return Some(Path { group: None, rest: Vec::new() }); // Discovery.
        }
        let group = if behind == 3 { parts.get(1).cloned()? } else { Cow::Borrowed("") };
        let mut rest = parts.split_off(behind);
        // The old form of a watch; what follows is a path as usual.
        if rest.first().is_some_and(|first| first == "watch") {
            rest.remove(0);
        }
        if rest.first().is_some_and(|first| first == "namespaces") && rest.len() > 2 {
            rest.drain(..2);
        }
        Some(Path { group: Some(group), rest })
    }

    /// Whether a GET of it does more than read: it runs a command, or talks to what runs in the cluster. Also the old form
    /// `/api/v1/proxy/…`.
    fn reaches_further(&self) -> bool {
        let is_further = |part: &Cow<'_, str>| FURTHER.iter().any(|name| part.eq_ignore_ascii_case(name));
        let is_old_form = self.rest.first().is_some_and(|first| first.eq_ignore_ascii_case("proxy"));
        self.group.is_some() && (is_old_form || self.rest.iter().skip(2).any(is_further))
    }

    /// Whether a POST to it is a question that leaves nothing behind.
    fn is_question(&self) -> bool {
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

/// A segment as the server decodes it, if nobody could decode it differently.
fn unambiguous(segment: &str) -> Option<Cow<'_, str>> {
    let decoded = if segment.contains('%') { Cow::Owned(decode(segment)?) } else { Cow::Borrowed(segment) };
    let is_odd = |character: char| character.is_control() || "/\\;%?#".contains(character);
    let is_dots = decoded.chars().all(|character| character == '.');
    (!is_dots && !decoded.chars().any(is_odd)).then_some(decoded)
}

/// `None` for broken escapes and for what is not UTF-8.
fn decode(segment: &str) -> Option<String> {
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
    fn what_only_reads_passes() {
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

    // Issue 8: thirty shapes and more.
    #[test]
    fn what_changes_something_or_might_is_refused() {
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
    fn a_header_cannot_turn_a_read_into_something_else() {
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
