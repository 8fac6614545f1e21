//! `--read-only`: lets through requests that change nothing, by kube-apiserver's own interpretation of method, path and
//! query ([`RequestInfo`]): a GET of `pods/exec` runs a command, a POST of a `SelfSubjectReview` changes nothing. Paths
//! that another server may interpret differently are rejected.

use http::header::UPGRADE;
use http::{Method, Uri, request};

use crate::problem::Problem;
use crate::request_info::{RequestInfo, ResourceRequest, ResourceVerb};

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
    let info = match RequestInfo::from_parts(&head.method, &head.uri) {
        Ok(info) if is_unambiguous(&info, &head.uri) => info,
        _ => return rejected("has an ambiguous path"),
    };
    if head.headers.keys().any(|name| name.as_str().contains("method-override") || name == "x-http-method") {
        return rejected("overrides the method");
    }
    if head.headers.contains_key(UPGRADE) {
        return rejected("requests a protocol upgrade");
    }
    let is_read_method = matches!(head.method, Method::GET | Method::HEAD);
    match info.resource() {
        // Every method connects through `proxy`, OPTIONS too.
        Some(resource) if connects(&resource) => rejected("connects to a pod, service or node"),
        Some(resource) if is_read_method && reads(resource.verb()) => Ok(()),
        Some(resource) if head.method == Method::POST && is_access_review(&resource) => Ok(()),
        None if is_read_method => Ok(()),
        _ => rejected("may change something"),
    }
}

/// Whether every server interprets the path in the same way: no dot segments, empty segments, escaped slashes,
/// parameters, backslashes, control characters or doubly escaped characters.
fn is_unambiguous(info: &RequestInfo<'_>, uri: &Uri) -> bool {
    let (decoded, sent) = (info.path(), uri.path());
    let is_odd = |character: char| character.is_control() || "\\;%?#".contains(character);
    // A trailing slash makes no difference; `/` has no segments.
    let inner = decoded.strip_prefix('/').unwrap_or(decoded);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    let is_dots = |segment: &str| segment.chars().all(|character| character == '.');
    let slashes = |text: &str| text.bytes().filter(|byte| *byte == b'/').count();
    slashes(decoded) == slashes(sent)
        && !decoded.contains(is_odd)
        && (inner.is_empty() || !inner.split('/').any(is_dots))
}

/// Subresources that connect to a pod, service or node.
const CONNECT_SUBRESOURCES: [&str; 4] = ["exec", "attach", "portforward", "proxy"];

/// Whether the request runs a command or connects to a workload, with any method. Compared in any case and in every
/// place behind the name: aggregated API servers have their own subresources.
fn connects(resource: &ResourceRequest<'_>) -> bool {
    let is_connect = |part: &str| CONNECT_SUBRESOURCES.iter().any(|name| part.eq_ignore_ascii_case(name));
    resource.verb() == ResourceVerb::Proxy
        || resource.resource().eq_ignore_ascii_case("proxy")
        || resource.parts().skip(2).any(is_connect)
}

fn reads(verb: ResourceVerb) -> bool {
    matches!(verb, ResourceVerb::Get | ResourceVerb::List | ResourceVerb::Watch)
}

/// Whether the request creates an access review, which the server answers and does not store.
fn is_access_review(resource: &ResourceRequest<'_>) -> bool {
    if resource.verb() != ResourceVerb::Create || resource.parts().count() != 1 {
        return false;
    }
    match resource.group() {
        "authorization.k8s.io" => matches!(
            resource.resource(),
            "selfsubjectaccessreviews"
                | "selfsubjectrulesreviews"
                | "subjectaccessreviews"
                | "localsubjectaccessreviews"
        ),
        "authentication.k8s.io" => resource.resource() == "selfsubjectreviews",
        _ => false,
    }
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
            ("POST", "/api/v1/watch/namespaces/a/pods"),
            ("DELETE", "/api/v1/watch/pods"),
            ("GET", "/api/v1/watch"),
            ("OPTIONS", "/api/v1/namespaces"),
            ("OPTIONS", "/api/v1/namespaces/a/pods/b/proxy/x"),
            ("OPTIONS", "/api/v1/namespaces/a/services/b/proxy"),
            ("OPTIONS", "/api/v1/nodes/n/proxy/run/a/b/c"),
            ("OPTIONS", "/version"),
            ("CONNECT", "/api/v1/nodes/n/proxy"),
            ("CONNECT", "/api/v1/namespaces/a/pods"),
            ("GET", "/apis/g/v1/namespaces/a/status/b/exec"),
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
