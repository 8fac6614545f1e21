//! `/auth`, as used by nginx's `auth_request` and Envoy's `ext_authz`: 200 with identity headers, 401, 403.

use http::Request;
use navicert_server::client_auth::{ClientAuth, TokenFile};
use navicert_testkit::net::http_client::Reply;
use serde_json::json;

use super::{Fixture, Options};

async fn ask(fixture: &Fixture, headers: &[(&str, &str)]) -> Reply {
    let mut request = Request::get(fixture.url("/auth"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    fixture.client().send(request.body(bytes::Bytes::new()).unwrap()).await.unwrap()
}

// S261–S265
#[tokio::test]
async fn valid_token_returns_identity_headers() {
    let fixture = Fixture::start(Options::default()).await;
    let reply = ask(&fixture, &[("authorization", &format!("Bearer {}", fixture.ann()))]).await;
    assert_eq!((reply.status.as_u16(), reply.body.len()), (200, 0));
    assert_eq!(reply.header("x-remote-user"), Some("oidc:ann"));
    assert_eq!(reply.header("x-remote-uid"), Some("u-1"));
    let groups: Vec<_> = reply.headers.get_all("x-remote-group").iter().collect();
    assert_eq!(groups, ["dev", "ops, all"]);
    assert_eq!(reply.header("x-remote-groups"), None, "a comma in a group's name would make two of it");
    assert_eq!(reply.header("x-remote-extra-example.org%2fteam"), Some("a"));
    let reply = ask(
        &fixture,
        &[("authorization", &format!("Bearer {}", fixture.token(json!({"groups": ["a", "b"]}))))],
    )
    .await;
    assert_eq!(reply.header("x-remote-groups"), Some("a,b"));
    let umlaut = fixture.token(json!({"sub": "é"}));
    let reply = ask(&fixture, &[("authorization", &format!("Bearer {umlaut}"))]).await;
    assert_eq!(reply.headers.get("x-remote-user").unwrap().as_bytes(), "oidc:é".as_bytes(), "S262");
}

// S271: every rejection has the same response.
#[tokio::test]
async fn rejects_other_requests_without_a_reason() {
    let fixture = Fixture::start(Options::default()).await;
    let expired = format!("Bearer {}", fixture.token(json!({"exp": 1_000})));
    let mut bodies = Vec::new();
    for headers in [
        &[][..],
        &[("authorization", "Bearer")],
        &[("authorization", "Bearer ")],
        &[("authorization", "Bearer opaque")],
        &[("authorization", expired.as_str())],
        &[("authorization", "Basic YTpi")],
        &[("cookie", "token=x")],
    ] {
        let reply = ask(&fixture, headers).await;
        assert_eq!((reply.status.as_u16(), reply.header("x-remote-user")), (401, None), "{headers:?}");
        bodies.push(reply.body);
    }
    assert!(bodies.windows(2).all(|two| two[0] == two[1]));
    let good = format!("Bearer {}", fixture.ann());
    let reply = ask(&fixture, &[("authorization", &good), ("authorization", &good)]).await;
    assert_eq!(reply.status, 400, "two of them");
}

// S267: servers behind nginx and Envoy accept fewer headers than an API server.
#[tokio::test]
async fn too_many_groups_are_a_403_with_their_own_reason() {
    let fixture = Fixture::start(Options::default()).await;
    let groups: Vec<String> = (0..1_001).map(|number| number.to_string()).collect();
    let token = fixture.token(json!({"groups": groups}));
    let reply = ask(&fixture, &[("authorization", &format!("Bearer {token}"))]).await;
    assert_eq!((reply.status.as_u16(), reply.header("x-remote-user")), (403, None));
    let same = fixture.token(json!({"groups": vec!["g"; 1_001]}));
    let reply = ask(&fixture, &[("authorization", &format!("Bearer {same}"))]).await;
    assert_eq!(reply.header("x-remote-groups"), Some("g"), "S264: each group once, as in the proxy");
    fixture.until("its line", || fixture.audit().contains("\"reason\":\"identity_too_large\"")).await;
}

// S223: the caller's own token is separate from the client's.
#[tokio::test]
async fn caller_token_is_in_proxy_authorization_and_required() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    std::fs::write(&path, "a-long-enough-secret").unwrap();
    let client_auth = ClientAuth::require(None, Some(TokenFile::open(&path).unwrap()));
    let fixture = Fixture::start(Options { client_auth, ..Options::default() }).await;
    let good = format!("Bearer {}", fixture.ann());
    let own = "Bearer a-long-enough-secret";
    assert_eq!(ask(&fixture, &[("authorization", &good)]).await.status, 403);
    assert_eq!(ask(&fixture, &[("authorization", &good), ("proxy-authorization", own)]).await.status, 200);
    assert_eq!(ask(&fixture, &[("authorization", own)]).await.status, 403);
}

// Envoy sends its client's method and appends its path.
#[tokio::test]
async fn accepts_envoys_method_and_path() {
    let fixture = Fixture::start(Options::default()).await;
    for (method, path, code) in [
        ("GET", "/auth", 200),
        ("GET", "/auth?next=/page", 200),
        ("POST", "/auth/api/v1/things?x=1", 200),
        ("DELETE", "/auth/", 200),
        ("GET", "/authx", 404),
        ("GET", "/x/auth", 404),
    ] {
        let request = Request::builder().method(method).uri(fixture.url(path));
        let request = request.header("authorization", format!("Bearer {}", fixture.ann()));
        let reply = fixture.client().send(request.body(bytes::Bytes::from("{}")).unwrap()).await.unwrap();
        assert_eq!(reply.status, code, "{method} {path}");
    }
}
