use http::Request;

use super::*;

fn request(headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder().uri("/api").header("host", "a");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

fn code(request: &Request<()>, rules: &ForwardRules) -> u16 {
    let (head, ()) = request.clone().into_parts();
    check(&head, rules).map_or_else(|problem| problem.code().0.as_u16(), |()| 200)
}

fn forwarding() -> ForwardRules {
    ForwardRules { impersonation: ClientImpersonation::Forwarded, ..ForwardRules::default() }
}

// PV2, PV4, S241, A74, B7, B17
#[test]
fn rejects_identity_headers_in_every_spelling() {
    let configured =
        ForwardRules { identity_headers: vec!["x-who".into(), "x-more-".into()], ..ForwardRules::default() };
    for (name, strict, forwarded) in [
        ("Impersonate-User", 403, 200),
        ("impersonate-group", 403, 200),
        ("Impersonate-Extra-Scopes%2fa", 403, 200),
        ("Impersonate-Uid", 403, 200),
        ("Impersonate_User", 403, 403),
        ("Impersonate-Foo", 403, 403),
        ("Impersonate", 403, 403),
        ("Impersonated-By", 403, 403),
        ("X-Remote-User", 400, 400),
        ("X_Remote_Group", 400, 400),
        ("X-Remote-Extra-A", 400, 400),
        ("Content_Length", 400, 400),
        ("X-Other", 200, 200),
    ] {
        let request = request(&[(name, "1")]);
        assert_eq!(code(&request, &ForwardRules::default()), strict, "{name}");
        assert_eq!(code(&request, &forwarding()), forwarded, "{name}");
    }
    for (name, expected) in [("X-Who", 400), ("x_who", 400), ("X-Who-Else", 200), ("X-More-1", 400)] {
        assert_eq!(code(&request(&[(name, "1")]), &configured), expected, "{name}");
    }
}

// PV3, B1, B2
#[test]
fn rejects_connection_options_that_strip_protected_headers() {
    for (list, expected) in [
        ("Impersonate-User", 400),
        ("close, impersonate_group", 400),
        ("X-Remote-User", 400),
        ("authorization", 400),
        ("keep-alive, X-Mine", 200),
    ] {
        assert_eq!(code(&request(&[("connection", list)]), &forwarding()), expected, "{list}");
    }
}

// PV5, S244
#[test]
fn rejects_duplicate_singleton_headers() {
    for name in ["authorization", "host", "content-length", "upgrade", "expect", "origin"] {
        let twice = [(name, "100-continue"), (name, "100-continue")];
        assert_eq!(code(&request(&twice), &ForwardRules::default()), 400, "{name}");
    }
    assert_eq!(code(&request(&[("accept", "a"), ("accept", "b")]), &ForwardRules::default()), 200);
}

// S258
#[test]
fn rejects_targets_other_than_a_path() {
    for (method, target, expected) in [
        ("GET", "https://other/api", 400),
        ("GET", "other:443", 400),
        ("CONNECT", "other:443", 400),
        ("TRACE", "/", 400),
        ("OPTIONS", "*", 400),
        ("GET", "/a%00b", 400),
        ("GET", "//a/..;/%2e%2E/b", 200),
    ] {
        let request = Request::builder().method(method).uri(target).header("host", "a").body(()).unwrap();
        assert_eq!(code(&request, &ForwardRules::default()), expected, "{method} {target}");
    }
    for (target, host, expected) in [
        ("https://a/api", Some("a"), 200),
        ("http://a/api", Some("a"), 200),
        ("https://a:8443", Some("a:8443"), 200),
        ("https://a/api", Some("b"), 400),
        ("https://a/api", Some("a:443"), 400),
        ("https://a:443/api", Some("a"), 400),
        ("https://a/api", None, 400),
        ("https://u@a/api", Some("u@a"), 400),
        ("ftp://a/api", Some("a"), 400),
        ("https://a?x=1", Some("a"), 400),
        ("https://a/a%00b", Some("a"), 400),
        ("a", Some("a"), 400),
    ] {
        let request = Request::builder().uri(target);
        let request = host.into_iter().fold(request, |request, host| request.header("host", host));
        let request = request.body(()).unwrap();
        assert_eq!(code(&request, &ForwardRules::default()), expected, "{target} {host:?}");
    }
    let mut two_hosts = request(&[]);
    *two_hosts.version_mut() = Version::HTTP_2;
    *two_hosts.uri_mut() = Uri::from_static("https://b/api");
    assert_eq!(code(&two_hosts, &ForwardRules::default()), 400);
    *two_hosts.uri_mut() = Uri::from_static("https://a/api");
    assert_eq!(code(&two_hosts, &ForwardRules::default()), 200);
}

// PV17, PV18, S243, S258
#[test]
fn forwards_the_target_unchanged_without_access_token() {
    for (asked, forwarded) in [
        ("/a%2Fb/../c//d;e=f?q=%20&&x", "/a%2Fb/../c//d;e=f?q=%20&&x"),
        ("/a?", "/a?"),
        ("/a?access_token=secret", "/a"),
        ("/a?x=1&access_token=secret&y=%2f", "/a?x=1&y=%2f"),
        ("/a?access%5ftoken=secret", "/a"),
        ("/a?x_access_token=1", "/a?x_access_token=1"),
        ("https://a:1/b%2Fc?x=1", "/b%2Fc?x=1"),
        ("https://a:1/b?x=1&access_token=secret", "/b?x=1"),
        ("https://a:1", "/"),
    ] {
        let (head, ()) = Request::builder().uri(asked).body(()).unwrap().into_parts();
        assert_eq!(target(&head).unwrap().to_string(), forwarded);
    }
}

// S240, S242, B3, B8, A72
#[test]
fn removes_hop_by_hop_headers_and_writes_identity_last() {
    let (mut head, ()) = request(&[
        ("connection", "x-mine, upgrade"),
        ("x-mine", "1"),
        ("upgrade", "h2c"),
        ("authorization", "Bearer secret"),
        ("cookie", "a=b"),
        ("x-forwarded-for", "1.2.3.4"),
        ("x_forwarded_host", "a"),
        ("forwarded", "for=1"),
        ("te", "trailers"),
        ("keep-alive", "1"),
        ("accept", "application/json"),
        (
            "sec-websocket-protocol",
            "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0, v4.channel.k8s.io",
        ),
        ("impersonate-group", "admins"),
    ])
    .into_parts();
    strip_request(&mut head.headers, &ForwardRules::default());
    let identity = ["a", "b"]
        .map(|group| (HeaderName::from_static("impersonate-group"), HeaderValue::from_static(group)));
    write_identity(&mut head.headers, identity.to_vec()).unwrap();
    let mut left: Vec<String> =
        head.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    left.sort();
    assert_eq!(
        left,
        [
            "accept: application/json",
            "impersonate-group: a",
            "impersonate-group: b",
            "sec-websocket-protocol: v5.channel.k8s.io, v4.channel.k8s.io",
        ]
    );
}

// S246, S257
#[test]
fn strips_hop_by_hop_and_cors_response_headers() {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("connection", "x-hop"),
        ("x-hop", "1"),
        ("transfer-encoding", "chunked"),
        ("access-control-allow-origin", "*"),
        ("access-control-allow-methods", "GET"),
        ("warning", "299 - old"),
        ("audit-id", "1"),
        ("x-kubernetes-pf-flowschema-uid", "2"),
        ("retry-after", "1"),
        ("trailer", "x-sum"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    strip_response(&mut headers);
    let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    left.sort_unstable();
    assert_eq!(left, ["audit-id", "retry-after", "warning", "x-kubernetes-pf-flowschema-uid"]);
}

// PV16, B6
#[test]
fn rejects_redirects_to_other_servers() {
    for (status, location, harmless) in [
        (301, Some("https://evil/"), false),
        (302, Some("//evil/"), false),
        (302, Some("/\\evil/"), false),
        (302, None, false),
        (301, Some("/api/v1/namespaces/a/services/b/proxy/"), true),
        (304, None, true),
    ] {
        let mut answer = Response::builder().status(status);
        if let Some(location) = location {
            answer = answer.header("location", location);
        }
        assert_eq!(is_same_server_redirect(&answer.body(()).unwrap()), harmless, "{status} {location:?}");
    }
}
