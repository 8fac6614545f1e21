//! Service account tokens, which only the API server can verify.

use std::sync::Arc;
use std::time::Duration;

use navicert_client::credential::BoxFuture;
use navicert_client::transport::ManualTimer;
use navicert_server::proxy::service_accounts::{ReviewFailed, TokenReviewer};
use navicert_server::proxy::settings::{
    ImpersonationPolicy, MaxStreamAge, ProxySettings, SelfCheck, ServiceAccountTokens,
};
use navicert_testkit::Watch;
use navicert_testkit::pki::jws::unsigned;
use navicert_types::clock::ManualClock;
use navicert_types::token_review::UserInfo;
use serde_json::json;

use super::{Front, OWN, Plan, status};

/// Accepts one token, by its signature.
#[derive(Debug)]
struct Knows(String);

impl TokenReviewer for Knows {
    fn review<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewFailed>> {
        let robot = UserInfo {
            username: "system:serviceaccount:ns:robot".to_owned(),
            groups: vec!["system:serviceaccounts".to_owned()],
            ..UserInfo::default()
        };
        let answer = match token {
            _ if token == self.0 => Ok(Some(robot)),
            _ if token.ends_with("eve") => {
                Ok(Some(UserInfo { username: "admin".to_owned(), ..UserInfo::default() }))
            }
            _ if token.ends_with("down") => Err(ReviewFailed),
            _ => Ok(None),
        };
        Box::pin(async move { answer })
    }
}

/// A token that looks like the cluster's own.
fn robot(front: &Front, end: &str) -> String {
    let token =
        front.token("system:serviceaccount:ns:robot", &json!({"iss": "https://kubernetes.default.svc"}));
    format!("{}.{end}", token.rsplit_once('.').unwrap().0)
}

async fn front(tokens: ServiceAccountTokens, known: &str) -> Front {
    let settings = ProxySettings {
        service_account_tokens: tokens,
        self_check: SelfCheck::Off,
        ..ProxySettings::default()
    };
    let reviewer = (tokens != ServiceAccountTokens::Reject).then(|| Arc::new(Knows(known.to_owned())) as _);
    Front::with(Plan { settings, reviewer, ..Plan::default() }).await
}

// S276, S277: the token is forwarded unchanged over a connection without the proxy's credential.
#[tokio::test]
async fn service_account_token_is_forwarded_alone() {
    let sample = Front::start().await;
    let token = robot(&sample, "good");
    let front = front(ServiceAccountTokens::PassThrough, &token).await;
    front.api.accept_token(&token, "system:serviceaccount:ns:robot", &[]);
    assert_eq!(front.get("/api", &token).await.status, 200);
    let seen = &front.api.wait_for_requests(1).await[0];
    assert_eq!(seen.header_values("authorization"), [format!("Bearer {token}")]);
    assert!(!seen.headers.keys().any(|name| name.as_str().starts_with("impersonate")), "{:?}", seen.headers);
    // Other users still use the proxy's credential, over another connection.
    assert_eq!(front.get("/api", &front.ann()).await.status, 200);
    let ours = &front.api.requests()[1];
    assert_eq!((ours.bearer_token(), ours.header_values("impersonate-user")), (Some(OWN), vec!["ann"]));
    assert_ne!(seen.connection, ours.connection);
    // S277: the header rules apply here too.
    for (name, code) in [("impersonate-user", 403), ("x-remote-user", 400)] {
        let request = front.request("/api", &token, &[(name, "admin")]);
        assert_eq!(front.client().send(request).await.unwrap().status.as_u16(), code, "{name}");
    }
    // The API server's response is relayed to the service account.
    front.api.revoke_token(&token);
    assert_eq!(front.get("/api", &token).await.status, 401);
    assert_eq!(front.proxy.upstream_access().credential(), Ok(()));
}

// S239, S276: `kubectl --as` with a forwarded token: the API server authorizes it for the token's own user.
#[tokio::test]
async fn impersonation_headers_are_forwarded_with_the_token() {
    let sample = Front::start().await;
    let token = robot(&sample, "good");
    let settings = ProxySettings {
        service_account_tokens: ServiceAccountTokens::PassThrough,
        client_impersonation: ImpersonationPolicy::Allow,
        self_check: SelfCheck::Off,
        ..ProxySettings::default()
    };
    let reviewer = Some(Arc::new(Knows(token.clone())) as _);
    let front = Front::with(Plan { settings, reviewer, ..Plan::default() }).await;
    front.api.accept_token(&token, "system:serviceaccount:ns:robot", &[]);
    let lines = [
        ("Impersonate-User", "bob"),
        ("IMPERSONATE-GROUP", "ops"),
        ("impersonate-group", "dev"),
        ("Impersonate-Uid", "9"),
        ("Impersonate-Extra-Example.org%2fTeam", "blue"),
    ];
    let reply = front.client().send(front.request("/api", &token, &lines)).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    let seen = &front.api.wait_for_requests(1).await[0];
    assert_eq!(seen.header_values("authorization"), [format!("Bearer {token}")]);
    assert_eq!(seen.header_values("impersonate-user"), ["bob"]);
    assert_eq!(seen.header_values("impersonate-group"), ["ops", "dev"]);
    assert_eq!(seen.header_values("impersonate-uid"), ["9"]);
    assert_eq!(seen.header_values("impersonate-extra-example.org%2fteam"), ["blue"]);
    assert_eq!(front.observer.last(), "200 system:serviceaccount:ns:robot bob - /api");
    // Nothing is dropped silently: every other spelling, and an incomplete or reserved identity, is a 403.
    for lines in [
        &[("impersonate_user", "bob")][..],
        &[("impersonate-user", "bob"), ("Impersonate_Group", "ops")],
        &[("impersonate-user", "bob"), ("impersonate-new", "x")],
        &[("impersonateuser", "bob")],
        &[("impersonate-group", "ops")],
        &[("impersonate-user", "")],
        &[("impersonate-user", "bob"), ("impersonate-extra-original-user.navicert%2fusername", "eve")],
    ] {
        let reply = front.client().send(front.request("/secret", &token, lines)).await.unwrap();
        assert_eq!(reply.status, 403, "{lines:?}");
        assert_eq!(front.observer.last(), "403 system:serviceaccount:ns:robot - impersonation /secret");
    }
    assert_eq!(front.api.count("/secret"), 0);
}

// S276
#[tokio::test]
async fn service_accounts_can_be_impersonated_or_rejected() {
    let sample = Front::start().await;
    let token = robot(&sample, "good");
    let impersonating = front(ServiceAccountTokens::Impersonate, &token).await;
    assert_eq!(impersonating.get("/api", &token).await.status, 200);
    let seen = &impersonating.api.wait_for_requests(1).await[0];
    assert_eq!(seen.header_values("impersonate-user"), ["system:serviceaccount:ns:robot"]);
    assert_eq!(seen.bearer_token(), Some(OWN));
    for (end, code) in [("bad", 401), ("eve", 401), ("down", 502)] {
        assert_eq!(impersonating.get("/api", &robot(&sample, end)).await.status.as_u16(), code, "{end}");
    }
    // Malformed tokens are not sent for review.
    assert_eq!(impersonating.get("/api", "opaque").await.status, 401);
    assert_eq!(impersonating.observer.last(), "401 - - malformed /api");
    let refusing = front(ServiceAccountTokens::Reject, &token).await;
    assert_eq!(refusing.get("/api", &token).await.status, 401);
    assert_eq!(refusing.api.connections().len(), 0);
}

// S255: a review does not contain the token's expiry.
#[tokio::test]
async fn stream_of_a_reviewed_token_ends_with_the_token_or_at_once() {
    const NOW: i64 = 1_900_000_000;
    for (expiry, limit) in [
        (json!({"exp": NOW + 300}), Some(300)),
        (json!({}), None),
        (json!({"exp": true}), Some(0)),
        (json!({"exp": NOW + 300, "aud": 5}), Some(0)),
    ] {
        let mut claims = json!({"iss": "https://kubernetes.default.svc"});
        for (name, value) in expiry.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let token = unsigned(&json!({"alg": "RS256"}), &claims) + "c2ln";
        let timer = ManualTimer::default();
        let settings = ProxySettings {
            service_account_tokens: ServiceAccountTokens::Impersonate,
            max_stream_age: MaxStreamAge::TokenExpiry,
            self_check: SelfCheck::Off,
            ..ProxySettings::default()
        };
        let front = Front::with(Plan {
            settings,
            reviewer: Some(Arc::new(Knows(token.clone()))),
            clock: Arc::new(ManualClock::at(NOW)),
            timer: Arc::new(timer.clone()),
            ..Plan::default()
        })
        .await;
        let pods = Watch::new();
        front.api.answer("/pods", pods.answer());
        let mut client = front.raw().await;
        let authorization = format!("Authorization: Bearer {token}");
        client.write(front.head("GET /pods", &[&authorization]).as_bytes()).await;
        if limit == Some(0) {
            client.read_to_end(1_000).await;
            pods.wait_for_closed(1).await;
        } else {
            assert_eq!(status(&client.read_until(b"\r\n\r\n").await), 200, "{expiry}");
        }
        assert_eq!(timer.sleeps().last().copied(), limit.map(Duration::from_secs), "{expiry}");
    }
}
