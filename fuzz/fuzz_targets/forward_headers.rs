//! A request head as a proxy forwards it: nothing that only the proxy may send comes from the client, and no hop-by-hop
//! header or credential is forwarded.

#![no_main]

use http::header::{HeaderName, HeaderValue};
use http::request::Parts;
use http::{Request, Version};
use libfuzzer_sys::fuzz_target;
use navicert_server::forward::{ClientImpersonation, ForwardRules};
use navicert_server::fuzzing::forward_head;

// The first line is method and target, the others are headers.
fuzz_target!(|bytes: &[u8]| {
    let Some(head) = read(bytes, Version::HTTP_11) else { return };
    let over_http2 = read(bytes, Version::HTTP_2);
    for impersonation in
        [ClientImpersonation::Rejected, ClientImpersonation::Forwarded, ClientImpersonation::Authorized]
    {
        let identity_headers = vec!["x-tenant".to_owned(), "x-scope-".to_owned()];
        let rules = ForwardRules { impersonation, identity_headers, ..ForwardRules::default() };
        check(head.clone(), &rules);
        if let Some(head) = &over_http2 {
            check(head.clone(), &rules);
        }
    }
});

fn read(bytes: &[u8], version: Version) -> Option<Parts> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let (method, target) = first.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(target).version(version);
    for line in lines.take(40) {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        request = request.header(name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?);
    }
    Some(request.body(()).ok()?.into_parts().0)
}

fn check(mut head: Parts, rules: &ForwardRules) {
    let original = head.clone();
    let identity = vec![
        (HeaderName::from_static("impersonate-user"), HeaderValue::from_static("ann")),
        (HeaderName::from_static("impersonate-group"), HeaderValue::from_static("a")),
        (HeaderName::from_static("impersonate-group"), HeaderValue::from_static("b")),
        (HeaderName::from_static("x-remote-user"), HeaderValue::from_static("ann")),
    ];
    if forward_head(&mut head, rules, identity).is_err() {
        return;
    }
    let values =
        |name: &str| -> Vec<&[u8]> { head.headers.get_all(name).iter().map(HeaderValue::as_bytes).collect() };
    assert_eq!(values("impersonate-user"), [b"ann"]);
    assert_eq!(values("impersonate-group"), [b"a", b"b"]);
    assert_eq!(values("x-remote-user"), [b"ann"]);
    for name in head.headers.keys() {
        let lenient = name.as_str().replace('_', "-");
        let is_identity = lenient.starts_with("x-remote-") && lenient != "x-remote-user"
            || lenient == "x-tenant"
            || lenient.starts_with("x-scope-");
        assert!(!is_identity, "an identity header of the client: {name}");
        let is_own = matches!(name.as_str(), "impersonate-user" | "impersonate-group");
        let is_known = name == "impersonate-uid" || name.as_str().starts_with("impersonate-extra-");
        let is_forwarded = is_known && rules.impersonation == ClientImpersonation::Forwarded;
        assert!(!lenient.starts_with("impersonate") || is_own || is_forwarded, "impersonation: {name}");
        let removed = [
            "authorization",
            "proxy-authorization",
            "connection",
            "keep-alive",
            "proxy-connection",
            "transfer-encoding",
            "upgrade",
            "trailer",
            "host",
            "content-length",
            "forwarded",
            "http2-settings",
            "cookie",
            "expect",
            "x-real-ip",
        ];
        assert!(
            !removed.contains(&name.as_str()) && !lenient.starts_with("x-forwarded-"),
            "forwarded: {name}"
        );
    }
    assert!(values("te").iter().all(|value| *value == b"trailers"));
    let token = b"base64url.bearer.authorization.k8s.io.";
    for protocol in
        values("sec-websocket-protocol").iter().flat_map(|value| value.split(|byte| *byte == b','))
    {
        let start = protocol.trim_ascii().get(..token.len()).unwrap_or_default();
        assert!(!start.eq_ignore_ascii_case(token), "a token as subprotocol");
    }
    assert!(head.uri.authority().is_none() && head.uri.path().starts_with('/'));
    assert_eq!(head.uri.path(), original.uri.path(), "the path has changed");
    let query = head.uri.query().unwrap_or_default();
    assert!(
        query.split('&').all(|part| part.split('=').next() != Some("access_token")),
        "a token in the query"
    );
}
