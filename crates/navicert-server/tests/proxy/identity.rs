//! The identity that reaches the API server: exactly the token's user, or none.

use http::Request;
use navicert_authn::config::BaseProfile;
use navicert_server::ServerLimits;
use navicert_server::proxy::identity_headers::{AllowedNames, HeaderNames, IdentityLimit};
use navicert_server::proxy::settings::{IdentityMode, ProxySettings, SelfCheck};
use navicert_testkit::net::http_server::Request as Seen;
use navicert_testkit::{Answer, HttpClient};
use serde_json::json;

use super::{Front, OWN, Plan};

fn values(seen: &Seen, name: &str) -> Vec<Vec<u8>> {
    seen.headers.get_all(name).iter().map(|value| value.as_bytes().to_vec()).collect()
}

// PV1, PV7, PV8, S99, S240, S242, S256
#[tokio::test]
async fn forwards_exactly_the_mapped_user_over_both_protocols() {
    let front = Front::start().await;
    let plain = front.client();
    for (number, client) in [plain.clone(), plain.http2()].into_iter().enumerate() {
        let token = front.token(
            "é",
            &json!({"groups": ["dev", "a,b", "", "dev"], "uid": "7", "foo": ["x", "y"], "jti": "4f2a"}),
        );
        let headers = [
            ("cookie", "a=b"),
            ("forwarded", "for=1.2.3.4"),
            ("x-forwarded-host", "evil"),
            ("accept", "a/b"),
        ];
        let reply = client.send(front.request("/api/v1/pods?limit=1", &token, &headers)).await.unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
        let seen = &front.api.wait_for_requests(number + 1).await[number];
        assert_eq!(seen.target, "/api/v1/pods?limit=1");
        assert_eq!(seen.header_values("authorization"), [format!("Bearer {OWN}")]);
        assert_eq!(values(seen, "impersonate-user"), ["é".as_bytes().to_vec()]);
        assert_eq!(seen.header_values("impersonate-uid"), ["7"]);
        assert_eq!(seen.header_values("impersonate-group"), ["dev", "a,b"]);
        assert_eq!(seen.header_values("impersonate-extra-example.org%2ffoo"), ["x", "y"]);
        let credential = "impersonate-extra-authentication.kubernetes.io%2fcredential-id";
        assert_eq!(seen.header_values(credential), ["JTI=4f2a"]);
        let impersonation =
            seen.headers.keys().filter(|name| name.as_str().starts_with("impersonate")).count();
        assert_eq!(impersonation, 5, "{:?}", seen.headers);
        assert_eq!(seen.header_values("x-forwarded-for"), ["127.0.0.1"], "S242: our own value");
        assert_eq!(seen.header("accept"), Some("a/b"));
        for gone in ["cookie", "forwarded", "x-forwarded-host"] {
            assert_eq!(seen.header(gone), None, "{gone}");
        }
    }
    assert_eq!(front.observer.last(), "200 é - - /api/v1/pods");
}

// PV6, B9, B14, S260, S261: the proxy rejects such names even if the profile allows them.
#[tokio::test]
async fn rejects_names_that_headers_would_change() {
    for profile in [BaseProfile::Hardened, BaseProfile::Kube] {
        let front = Front::with(Plan { profile, ..Plan::default() }).await;
        for name in
            ["", " u ", " ", "a\nb", "a\u{0}b", "a\tb", "\u{7f}", "a\r\nImpersonate-Group: system:masters"]
        {
            let reply = front.get("/api", &front.token(name, &json!({}))).await;
            assert_eq!(reply.status, 401, "{name:?} {profile:?}");
        }
        for claims in
            [json!({"groups": ["dev", "a\nb"]}), json!({"uid": " 7"}), json!({"foo": ["x\u{1b}[2J"]})]
        {
            let reply = front.get("/api", &front.token("ann", &claims)).await;
            assert_eq!(reply.status, 401, "{claims} {profile:?}");
        }
        assert_eq!(front.api.connections().len(), 0, "not even a connection");
    }
}

/// This many groups with names as long as a UUID.
fn groups(count: usize) -> serde_json::Value {
    json!({"groups": (0..count).map(|number| format!("00000000-0000-0000-0000-{number:012}")).collect::<Vec<_>>()})
}

/// Limits that admit tokens of this size, which a client presents before it is authenticated.
fn admitting(token_bytes: usize) -> ServerLimits {
    let head = token_bytes + 8 * 1024;
    let limits = ServerLimits::for_proxy();
    ServerLimits { unauthenticated_header_bytes: head, header_bytes: limits.header_bytes.max(head), ..limits }
}

// PV21, S267: kube-apiserver accepts them as well, over both protocols.
#[tokio::test]
async fn forwards_nine_hundred_groups_over_both_protocols() {
    for upstream_http2 in [true, false] {
        let front =
            Front::with(Plan { limits: admitting(64 * 1024), upstream_http2, ..Plan::default() }).await;
        for client in [front.client(), front.client().http2()] {
            let request = front.request("/api", &front.token("ann", &groups(900)), &[]);
            assert_eq!(client.send(request).await.unwrap().status, 200);
            let seen = front.api.requests().pop().unwrap();
            assert_eq!(json!({"groups": seen.header_values("impersonate-group")}), groups(900));
        }
    }
}

// PV21, S267: the largest limit fits into what an API server accepts.
#[tokio::test]
async fn rejects_identities_above_the_configured_limit() {
    let settings = |limit| ProxySettings {
        max_identity: IdentityLimit::from_bytes(limit).unwrap(),
        self_check: SelfCheck::Off,
        ..ProxySettings::default()
    };
    let plan = |limit| Plan {
        settings: settings(limit),
        profile: BaseProfile::Kube,
        limits: admitting(480 * 1024),
        ..Plan::default()
    };
    // Name, value and 32 bytes for each header.
    let front = Front::with(plan(51 + 3 * 85)).await;
    assert_eq!(front.get("/api", &front.token("ann", &groups(3))).await.status, 200);
    assert_eq!(front.get("/api", &front.token("ann", &groups(4))).await.status, 401);
    assert_eq!(front.observer.last(), "401 ann - identity_too_large /api");
    assert_eq!(front.api.requests().len(), 1);
    let max = IdentityLimit::MAX.bytes();
    let front = Front::with(plan(max)).await;
    let most = (max - 51) / 85;
    let token = front.token("ann", &groups(most));
    assert_eq!(front.get("/api", &token).await.status, 200);
    assert_eq!(front.api.requests()[0].header_values("impersonate-group").len(), most);
    assert_eq!(front.get("/api", &front.token("ann", &groups(most + 1))).await.status, 401);
    assert_eq!(front.observer.last(), "401 ann - identity_too_large /api");
}

// W3C Trace Context: forwarded as it is, logged only if it is well-formed.
#[tokio::test]
async fn trace_context_is_forwarded_and_recorded() {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let front = Front::start().await;
    for client in [front.client(), front.client().http2()] {
        for (parent, recorded) in [(PARENT, Some(PARENT)), ("00-secret", None)] {
            let headers = [("traceparent", parent), ("tracestate", "vendor=1,other=2")];
            let request = front.request("/api", &front.ann(), &headers);
            assert_eq!(client.send(request).await.unwrap().status, 200);
            let seen = front.api.requests().pop().unwrap();
            assert_eq!(seen.header_values("traceparent"), [parent]);
            assert_eq!(seen.header_values("tracestate"), ["vendor=1,other=2"]);
            assert_eq!(front.observer.last_traceparent().as_deref(), recorded);
        }
    }
    assert_eq!(front.get("/api", &front.ann()).await.status, 200);
    assert_eq!(front.observer.last_traceparent(), None);
}

// PV22, H17, GHSA-c7xh-gjv4-4jgv
#[tokio::test]
async fn reserved_groups_must_be_allowed_by_the_operator() {
    let masters = json!({"groups": ["system:masters"]});
    let front = Front::start().await;
    assert_eq!(front.get("/api", &front.token("ann", &masters)).await.status, 401);
    assert_eq!(front.api.connections().len(), 0);
    let navicert_config = "issuers: [{url: ISSUER, allowSystemPrefix: true}]\n".to_owned();
    let front = Front::with(Plan { navicert_config, ..Plan::default() }).await;
    let nodes = json!({"groups": ["system:nodes"]});
    assert_eq!(front.get("/api", &front.token("ann", &nodes)).await.status, 200);
    assert_eq!(front.get("/api", &front.token("ann", &masters)).await.status, 401);
    assert_eq!(front.observer.last(), "401 - - mapping /api");
    // S268, S269: some names need another setting.
    for name in ["system:serviceaccount:a:b", "system:node:n", "system:anonymous"] {
        assert_eq!(front.get("/api", &front.token(name, &json!({}))).await.status, 401, "{name}");
        assert_eq!(front.observer.last(), format!("401 {name} - name_class /api"));
    }
    let unauthenticated = json!({"groups": ["system:unauthenticated"]});
    assert_eq!(front.get("/api", &front.token("ann", &unauthenticated)).await.status, 401);
    let settings = ProxySettings {
        allowed_names: AllowedNames::ALL,
        self_check: SelfCheck::Off,
        ..ProxySettings::default()
    };
    let navicert_config = "issuers: [{url: ISSUER, allowSystemPrefix: true}]\n".to_owned();
    let front = Front::with(Plan { navicert_config, settings, ..Plan::default() }).await;
    let token = front.token("system:serviceaccount:a:b", &json!({}));
    assert_eq!(front.get("/api", &token).await.status, 200);
}

// H17, S231: the group that RBAC does not restrict needs an allowance of the issuer and one of the proxy.
#[tokio::test]
async fn system_masters_must_be_allowed_by_issuer_and_proxy() {
    let masters = json!({"groups": ["dev", "system:masters"]});
    let issuer = "issuers: [{url: ISSUER, allowSystemPrefix: true, allowSystemMasters: true}]\n".to_owned();
    let allowed = AllowedNames { masters: true, ..AllowedNames::default() };
    for (profile, navicert_config, allowed_names, expected) in [
        (BaseProfile::Hardened, issuer.clone(), AllowedNames::default(), 401),
        (BaseProfile::Kube, String::new(), AllowedNames::default(), 401),
        (BaseProfile::Hardened, issuer, allowed, 200),
        (BaseProfile::Kube, String::new(), allowed, 200),
    ] {
        let settings =
            ProxySettings { allowed_names, self_check: SelfCheck::Off, ..ProxySettings::default() };
        let front = Front::with(Plan { profile, navicert_config, settings, ..Plan::default() }).await;
        assert_eq!(front.get("/api", &front.token("ann", &masters)).await.status, expected, "{profile:?}");
        match expected {
            200 => assert_eq!(front.observer.last(), "200 ann - - /api"),
            _ => {
                assert_eq!(front.observer.last(), "401 ann - name_class /api");
                assert_eq!(front.api.connections().len(), 0, "not even a connection");
            }
        }
    }
}

// S228, S229, PV4, B7
#[tokio::test]
async fn front_proxy_uses_configured_headers_and_rejects_them_from_clients() {
    let corporate = HeaderNames {
        user: "x-corp-user".parse().unwrap(),
        group: "x_corp_group".parse().unwrap(),
        extra_prefix: "x-corp-extra-".to_owned(),
        ..HeaderNames::front_proxy()
    };
    for (names, user, group, extra) in [
        (HeaderNames::front_proxy(), "x-remote-user", "x-remote-group", "x-remote-extra-example.org%2ffoo"),
        (corporate, "x-corp-user", "x_corp_group", "x-corp-extra-example.org%2ffoo"),
    ] {
        let front = Front::set(ProxySettings {
            mode: IdentityMode::RequestHeader(names.clone()),
            ..ProxySettings::default()
        })
        .await;
        let token = front.ann();
        assert_eq!(front.get("/api", &token).await.status, 200);
        let seen = &front.api.wait_for_requests(1).await[0];
        assert_eq!(seen.header_values(user), ["ann"]);
        assert_eq!(seen.header_values("x-remote-uid"), ["7"]);
        assert_eq!(seen.header_values(group), ["dev", "a,b"]);
        assert_eq!(seen.header_values(extra), ["x", "y"]);
        assert!(!seen.headers.keys().any(|name| name.as_str().starts_with("impersonate")));
        let own = [user, "x-remote-uid", group, extra];
        let aliases =
            [user.replace('-', "_"), group.replace('_', "-"), group.to_uppercase(), format!("{extra}x")];
        let standard = ["X-Remote-User", "X-Remote-Group", "X-Remote-Extra-a", "X_Remote_User"];
        for name in own.into_iter().chain(standard).chain(aliases.iter().map(String::as_str)) {
            let mut client = front.raw().await;
            let lines = [format!("Authorization: Bearer {token}"), format!("{name}: admin")];
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            client.write(front.head("GET /api", &lines).as_bytes()).await;
            assert_eq!(super::status(&client.read_to_end(10_000).await), 400, "{name}");
        }
        // S239: a client's impersonation headers are still rejected.
        let request = front.request("/api", &token, &[("impersonate-user", "admin")]);
        assert_eq!(front.client().send(request).await.unwrap().status, 403);
        assert_eq!(front.api.requests().len(), 1);
    }
}

// S144, S271, S275, A69, B16: the same 401 for every reason, byte for byte.
#[tokio::test]
async fn every_rejection_has_the_same_response() {
    let front = Front::start().await;
    let good = front.ann();
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let first = if signature.starts_with('A') { "B" } else { "A" };
    let forged = format!("{signed}.{first}{}", signature.get(1..).unwrap());
    let expired = front.token("ann", &json!({"exp": 1_000, "iat": 1, "nbf": 1}));
    let elsewhere = front.token("ann", &json!({"aud": "elsewhere"}));
    let strange = front.token("ann", &json!({"iss": "https://strange.example"}));
    let unknown_key = front.issuer.key().renamed("unknown").token(&front.issuer.claims(
        "ann",
        "kubernetes",
        front.clock.now(),
    ));
    let unverified = front.token(" u ", &json!({}));
    let dots = ".".repeat(20_000);
    let client = front.ca.client("admin").organization("system:masters").issue();
    let mut answers = Vec::new();
    for token in
        [&forged, &expired, &elsewhere, &strange, &unknown_key, &unverified, &dots, "a.b.c", "x", "{}"]
    {
        // An unsolicited certificate changes nothing.
        let request = front.request("/api", token, &[]);
        let reply = HttpClient::with_identity(&front.ca, &client).send(request).await.unwrap();
        let mut headers = reply.headers.clone();
        headers.remove("date");
        answers.push((reply.status, format!("{headers:?}"), reply.body));
    }
    for value in ["", "Bearer", "Bearer ", "Basic YTpi", "bearer\t"] {
        let request = Request::get(front.url("/api")).header("authorization", value);
        let reply = front.client().send(request.body(bytes::Bytes::new()).unwrap()).await.unwrap();
        let mut headers = reply.headers.clone();
        headers.remove("date");
        answers.push((reply.status, format!("{headers:?}"), reply.body));
    }
    let expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "Unauthorized", "reason": "Unauthorized", "code": 401,
    });
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&answers[0].2).unwrap(), expected);
    for answer in &answers {
        assert_eq!(answer, &answers[0]);
    }
    assert_eq!(front.api.connections().len(), 0);
    // S301: the log tells them apart.
    let reasons: Vec<String> = front
        .observer
        .requests
        .lock()
        .unwrap()
        .iter()
        .map(|line| line.split(' ').nth(3).unwrap().to_owned())
        .collect();
    for reason in
        ["signature", "expired", "audience", "unknown_issuer", "kid_unknown", "malformed", "no_credentials"]
    {
        assert!(reasons.iter().any(|one| one == reason), "{reason} in {reasons:?}");
    }
}

// B11, S151: nothing of one request leaks into the next one of the same user.
#[tokio::test]
async fn cached_user_is_not_changed_by_requests() {
    let settings =
        ProxySettings { trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()], ..ProxySettings::default() };
    let front = Front::set(settings).await;
    let token = front.ann();
    for address in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        let headers = [("x-forwarded-for", address)];
        assert_eq!(front.client().send(front.request("/api", &token, &headers)).await.unwrap().status, 200);
    }
    let requests = front.api.wait_for_requests(3).await;
    let seen: Vec<Vec<&str>> =
        requests.iter().map(|request| request.header_values("x-forwarded-for")).collect();
    assert_eq!(seen, [["192.0.2.1"], ["192.0.2.2"], ["192.0.2.3"]]);
    let lines = |seen: &Seen| {
        seen.headers.iter().filter(|(name, _)| name.as_str().starts_with("impersonate")).count()
    };
    assert_eq!(requests.iter().map(lines).collect::<Vec<_>>(), [7, 7, 7]);
}

// S272, S57, S58
#[tokio::test]
async fn anonymous_requests_reach_only_listed_paths() {
    let anonymous = json!({"enabled": true, "conditions": [{"path": "/livez"}]});
    let front = Front::with(Plan { anonymous: Some(anonymous), ..Plan::default() }).await;
    for (path, authorization, code) in [
        ("/livez", None, 200),
        ("/livez?verbose", None, 200),
        ("/livez/", None, 401),
        ("/livez/x", None, 401),
        ("/%6civez", None, 401),
        ("/api", None, 401),
        ("/livez", Some("Bearer bad"), 401),
    ] {
        let mut request = Request::get(front.url(path));
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let reply = front.client().send(request.body(bytes::Bytes::new()).unwrap()).await.unwrap();
        assert_eq!(reply.status.as_u16(), code, "{path} {authorization:?}");
    }
    let requests = front.api.wait_for_requests(2).await;
    assert_eq!(requests.len(), 2);
    for seen in requests {
        assert_eq!(seen.header_values("impersonate-user"), ["system:anonymous"]);
        assert_eq!(seen.header_values("impersonate-group"), ["system:unauthenticated"]);
    }
    // Off by default, also for OPTIONS (S257).
    let front = Front::start().await;
    let request = Request::options(front.url("/livez")).body(bytes::Bytes::new()).unwrap();
    assert_eq!(front.client().send(request).await.unwrap().status, 401);
}

// S246: a rejected proxy credential is not a 401 for the client, but fails readiness.
#[tokio::test]
async fn rejected_proxy_credential_fails_readiness() {
    let front = Front::start().await;
    let token = front.ann();
    assert_eq!(front.get("/api", &token).await.status, 200);
    assert_eq!(front.proxy.upstream_access().credential(), Ok(()));
    front.api.revoke_token(OWN);
    assert_eq!(front.get("/api", &token).await.status, 502);
    assert!(front.proxy.upstream_access().credential().is_err());
    front.api.accept_token(OWN, "proxy", &[]);
    front.api.answer("/secret", Answer::failure(403, "Forbidden", "pods is forbidden: ann may not"));
    let relayed = front.get("/secret", &token).await;
    assert_eq!(
        (relayed.status.as_u16(), relayed.json()["message"].clone()),
        (403, json!("pods is forbidden: ann may not"))
    );
    assert_eq!(front.proxy.upstream_access().credential(), Ok(()));
}
