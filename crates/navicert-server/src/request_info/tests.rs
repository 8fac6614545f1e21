//! Tests of the interpretation. `conformance/vectors/request-info.jsonl` has kube-apiserver's own answers.

use super::*;

fn read(method: &'static str, target: &'static str) -> Result<RequestInfo<'static>, RequestInfoError> {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    RequestInfo::read(method, path, query)
}

/// Verb, group, version, namespace, resource, name, subresource.
fn summary(method: &'static str, target: &'static str) -> String {
    let info = read(method, target).unwrap();
    match info.resource() {
        None => format!("{} {}", info.verb(), info.path()),
        Some(resource) => [
            resource.verb().as_str(),
            resource.group(),
            resource.version(),
            resource.namespace(),
            resource.resource(),
            resource.name(),
            resource.subresource(),
        ]
        .join("|"),
    }
}

#[test]
fn interprets_resource_requests() {
    for (method, target, expected) in [
        ("GET", "/api/v1/pods", "list||v1||pods||"),
        ("HEAD", "/api/v1/pods", "list||v1||pods||"),
        ("GET", "/api/v1/namespaces", "list||v1||namespaces||"),
        ("GET", "/api/v1/namespaces/a", "get||v1|a|namespaces|a|"),
        ("PUT", "/api/v1/namespaces/a/status", "update||v1|a|namespaces|a|status"),
        ("PUT", "/api/v1/namespaces/a/finalize", "update||v1|a|namespaces|a|finalize"),
        ("GET", "/api/v1/namespaces/a/pods/", "list||v1|a|pods||"),
        ("GET", "/api/v1/namespaces/a/pods/b/exec?command=ls", "get||v1|a|pods|b|exec"),
        ("GET", "/api/v1/namespaces/a/pods/b/proxy/c/d", "get||v1|a|pods|b|proxy"),
        ("OPTIONS", "/api/v1/nodes/n/proxy/x", "||v1||nodes|n|proxy"),
        ("CONNECT", "/api/v1/nodes/n/proxy/x", "||v1||nodes|n|proxy"),
        ("get", "/api/v1/nodes/n", "||v1||nodes|n|"),
        ("POST", "/apis/apps/v1/namespaces/a/deployments", "create|apps|v1|a|deployments||"),
        ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/scale", "patch|apps|v1|a|deployments|b|scale"),
        ("DELETE", "/apis/apps/v1/namespaces/a/deployments/b", "delete|apps|v1|a|deployments|b|"),
        ("DELETE", "/apis/apps/v1/namespaces/a/deployments", "deletecollection|apps|v1|a|deployments||"),
        ("GET", "/api/v1/watch/namespaces/a/pods/b", "watch||v1|a|pods|b|"),
        ("DELETE", "/api/v1/watch/pods", "watch||v1||pods||"),
        ("POST", "/api/v1/proxy/namespaces/a/pods/b/exec", "proxy||v1|a|pods|b|"),
        ("GET", "/api/v1/pods?watch", "watch||v1||pods||"),
        ("GET", "/api/v1/pods?watch=FALSE", "list||v1||pods||"),
        ("GET", "/api/v1/pods?watch=0&limit=x", "list||v1||pods||"),
        ("GET", "/api/v1/pods?watch=1&limit=x", "watch||v1||pods||"),
        ("GET", "/api/v1/pods/a?watch=1", "get||v1||pods|a|"),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Da", "list||v1||pods|a|"),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Da&limit=x", "list||v1||pods||"),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Da&labelSelector=a+b", "list||v1||pods||"),
        ("DELETE", "/api/v1/pods?fieldSelector=metadata.name%3Da", "deletecollection||v1||pods||"),
        ("GET", "//api/v1//pods", "get||v1|||pods|"),
        ("GET", "/api/v1/pods//exec", "list||v1||pods||exec"),
        ("GET", "/api/v1/%6eamespaces/a%2Fpods", "list||v1|a|pods||"),
    ] {
        assert_eq!(summary(method, target), expected, "{method} {target}");
    }
}

#[test]
fn interprets_non_resource_requests() {
    for (method, target, expected) in [
        ("GET", "/", "get /"),
        ("GET", "/api/v1", "get /api/v1"),
        ("GET", "/apis/apps/v1/", "get /apis/apps/v1/"),
        ("OPTIONS", "/version", "options /version"),
        ("POST", "/API/v1/pods", "post /API/v1/pods"),
        ("GET", "/openapi/v3/apis/apps/v1", "get /openapi/v3/apis/apps/v1"),
    ] {
        assert_eq!(summary(method, target), expected, "{method} {target}");
    }
    assert_eq!(read("GET", "/apis/apps/v1").unwrap().api_prefix(), "apis");
    assert_eq!(read("GET", "/api/v1").unwrap().api_prefix(), "");
}

#[test]
fn reports_selectors_as_sent() {
    let info = read("DELETE", "/api/v1/pods?labelSelector=a+in+(&fieldSelector=%3D&labelSelector=b").unwrap();
    let resource = info.resource().unwrap();
    assert_eq!((resource.label_selector(), resource.field_selector()), ("a in (", "="));
    let info = read("GET", "/api/v1/watch/pods?labelSelector=a").unwrap();
    assert_eq!(info.resource().unwrap().label_selector(), "");
}

#[test]
fn rejects_what_kube_apiserver_rejects() {
    for target in ["/api/v1/watch", "/apis/apps/v1/proxy/", "/api/v1/watch//"] {
        assert_eq!(read("GET", target), Err(RequestInfoError::NoResource), "{target}");
    }
    for target in ["/api/v1/pods/%zz", "/%", "/a%4", "/a\tb", "/a?b=\u{7f}", "*", "api/v1/pods", ""] {
        assert_eq!(read("GET", target), Err(RequestInfoError::InvalidPath), "{target:?}");
    }
    for target in ["/%ff", "/api/v1/pods?fieldSelector=%ff"] {
        assert_eq!(read("GET", target), Err(RequestInfoError::NotUtf8), "{target}");
    }
}
