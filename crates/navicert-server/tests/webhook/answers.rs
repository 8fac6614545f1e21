//! One response per outcome (S217–S222), without confidential details.

use http::Request;
use navicert_authn::KubeVersion;
use navicert_authn::config::BaseProfile;
use navicert_server::webhook::{AudienceMode, NotReadyStatus, WebhookSettings};
use navicert_testkit::pki::jws::with_tampered_signature;
use navicert_testkit::{Answer, Ca, Gate, Issuer};
use serde_json::json;

use super::{Fixture, Options, now, review};

// S217, S218, S219, S222, S223: the mapped user, in the requested version.
#[tokio::test]
async fn returns_the_mapped_user_in_the_requested_version() {
    let fixture = Fixture::start(Options::default()).await;
    let token = fixture.ann();
    for http2 in [false, true] {
        for version in ["v1", "v1beta1"] {
            let client = if http2 { fixture.client().http2() } else { fixture.client() };
            let url = fixture.url("/authenticate?timeout=30s");
            let reply = client.post_json(&url, &review(version, &token, &[])).await.unwrap();
            assert_eq!(
                (reply.status.as_u16(), reply.header("content-type")),
                (200, Some("application/json"))
            );
            let expected = json!({
                "kind": "TokenReview", "apiVersion": format!("authentication.k8s.io/{version}"),
                "status": {"authenticated": true, "user": {
                    "username": "oidc:ann", "uid": "u-1", "groups": ["dev", "ops, all"],
                    "extra": {"authentication.kubernetes.io/credential-id": ["JTI=j-1"], "example.org/team": ["a"]},
                }},
            });
            assert_eq!(reply.json(), expected, "S222: nothing is added, S218: nothing is echoed");
        }
    }
}

// S219, WV6: an invalid token gets a response without a reason.
#[tokio::test]
async fn invalid_token_gets_a_cacheable_response_without_details() {
    let fixture = Fixture::start(Options::default()).await;
    let other = Issuer::start(&fixture.ca);
    let second = now().as_second();
    for (token, reason) in [
        ("opaque".to_owned(), "unknown_token"),
        ("a.b.c".to_owned(), "unknown_token"),
        (other.token(&super::claims(&other, json!({}))), "unknown_token"),
        (with_tampered_signature(&fixture.ann()), "signature"),
        (fixture.token(json!({"exp": second - 60})), "expired"),
        (fixture.token(json!({"aud": "another-service"})), "audience"),
        (fixture.token(json!({"evil": true})), "claim_rule"),
        (fixture.token(json!({"sub": "a\nb"})), "identity_encoding"),
        (fixture.token(json!({"groups": ["system:masters"]})), "mapping"),
    ] {
        assert_eq!(fixture.status(&token).await, json!({"authenticated": false}), "{reason}");
        fixture
            .until(reason, || fixture.audit().lines().last().is_some_and(|line| line.contains(reason)))
            .await;
    }
    let audit = fixture.audit();
    // S224: nothing is logged about tokens of unknown issuers; other tokens are identified by a hash.
    let hashes = audit.lines().filter(|line| line.contains("\"jtiHash\":\"sha256:")).count();
    assert!(hashes == 6 && !audit.contains("j-1"), "{audit}");
    assert!(!audit.contains("oidc:ann") && audit.lines().count() == 9, "{audit}");
}

// S219: transient failures are marked, so that kube-apiserver does not cache them.
#[tokio::test]
async fn transient_failures_return_their_class() {
    let fixture = Fixture::start(Options::default()).await;
    let unknown = navicert_testkit::SigningKey::generate(navicert_testkit::Algorithm::Es256, "unknown-key");
    let claims = super::claims(&fixture.issuer, json!({}));
    let later = fixture.token(json!({"nbf": now().as_second() + 600}));
    for (token, class) in [(unknown.token(&claims), "kid_unknown"), (later, "not_yet_valid")] {
        assert_eq!(fixture.status(&token).await, json!({"authenticated": false, "error": class}));
    }
}

// S108, S220
#[tokio::test]
async fn unready_issuer_is_an_http_error_only_if_configured() {
    for (status, code) in [(NotReadyStatus::Ok, 200), (NotReadyStatus::Unavailable, 503)] {
        let ca = Ca::new("down");
        let issuer = Issuer::start(&ca);
        issuer.answer(issuer.discovery_path(), Answer::status(500));
        let settings = WebhookSettings { not_ready_status: status, ..WebhookSettings::default() };
        let fixture =
            Fixture::with(ca, issuer, Options { settings, is_ready: false, ..Options::default() }).await;
        let reply = fixture.review(&fixture.ann()).await;
        assert_eq!(reply.status, code);
        assert_eq!(reply.header("retry-after"), None, "S215");
        if code == 200 {
            assert_eq!(reply.json()["status"], json!({"authenticated": false, "error": "not_ready"}));
        }
        assert!(fixture.health.report().1.contains("[-]issuers failed"));
    }
}

// S219
#[tokio::test]
async fn exposes_the_reason_only_if_configured_and_never_a_claim() {
    let settings = WebhookSettings { expose_errors: true, ..WebhookSettings::default() };
    let fixture = Fixture::start(Options { settings, ..Options::default() }).await;
    let expired = fixture.token(json!({"exp": now().as_second() - 60}));
    assert_eq!(fixture.status(&expired).await, json!({"authenticated": false, "error": "token is expired"}));
    let status = fixture.status(&fixture.token(json!({"evil": "s3cret-claim"}))).await;
    let told = status["error"].as_str().unwrap();
    assert!(told.contains("no evil here") && !told.contains("s3cret-claim"), "{told}");
}

// S221
#[tokio::test]
async fn returns_only_configured_audiences() {
    let server_audiences = vec!["api".to_owned(), "api2".to_owned()];
    let settings = WebhookSettings { server_audiences, ..WebhookSettings::default() };
    let fixture = Fixture::start(Options { settings, ..Options::default() }).await;
    let token = fixture.ann();
    let asked = async |audiences: &[&str], path: &str| {
        fixture.client().post_json(&fixture.url(path), &review("v1", &token, audiences)).await.unwrap().json()
            ["status"]
            .clone()
    };
    for (audiences, authenticated, told) in [
        (&[][..], true, json!(null)),
        (&["api"], true, json!(["api"])),
        (&["x", "api2", "api"], true, json!(["api2", "api"])),
        (&["aud1"], false, json!(null)),
        (&["x", "aud1"], false, json!(null)),
    ] {
        let status = asked(audiences, "/authenticate").await;
        assert_eq!(
            (&status["authenticated"], &status["audiences"]),
            (&json!(authenticated), &told),
            "{audiences:?}"
        );
    }
    // S226: the API returns the audiences of the API server itself.
    let status = asked(&[], "/apis/authentication.k8s.io/v1/tokenreviews").await;
    assert_eq!(status["audiences"], json!(["api", "api2"]));
    // S146: the token is not verified: no attempt is counted.
    let attempts =
        |page: String| page.lines().find(|line| line.contains("result=\"success\"")).unwrap().to_owned();
    let before = attempts(fixture.metrics.render());
    asked(&["aud1"], "/authenticate").await;
    assert_eq!(attempts(fixture.metrics.render()), before);
}

// S221
#[tokio::test]
async fn token_mode_returns_the_tokens_audiences() {
    let settings = WebhookSettings { audience_mode: AudienceMode::Token, ..WebhookSettings::default() };
    let fixture = Fixture::start(Options { settings, ..Options::default() }).await;
    let token = fixture.token(json!({"aud": ["aud1", "more"]}));
    for (audiences, status) in
        [(&["more", "x"][..], json!(["more"])), (&["x"], json!(null)), (&["aud1"], json!(["aud1"]))]
    {
        let reply = fixture
            .client()
            .post_json(&fixture.url("/authenticate"), &review("v1", &token, audiences))
            .await
            .unwrap();
        let told = reply.json()["status"].clone();
        assert_eq!(
            (&told["authenticated"], &told["audiences"]),
            (&json!(!status.is_null()), &status),
            "{audiences:?}"
        );
    }
}

// S221, S130: of `aud` beside `AUD` the verifier compares the last with the configuration, and no other is returned.
#[tokio::test]
async fn token_mode_returns_only_audiences_that_were_verified() {
    let settings = WebhookSettings { audience_mode: AudienceMode::Token, ..WebhookSettings::default() };
    let profile = Some(BaseProfile::Kube);
    let fixture = Fixture::start(Options { settings, profile, ..Options::default() }).await;
    let claims = super::claims(&fixture.issuer, json!({"aud": "more", "team": "a"})).to_string();
    let claims = claims.strip_suffix('}').unwrap().to_owned() + r#","AUD":"aud1"}"#;
    let key = fixture.issuer.key();
    let token = key.token_of_bytes(key.header().to_string().as_bytes(), claims.as_bytes());
    // Each twice: the second time from the cache.
    for (audience, is_valid) in [("more", false), ("more", false), ("aud1", true), ("aud1", true)] {
        let body = review("v1", &token, &[audience]);
        let reply = fixture.client().post_json(&fixture.url("/authenticate"), &body).await.unwrap();
        let expected = if is_valid { json!(["aud1"]) } else { json!(null) };
        let status = &reply.json()["status"];
        assert_eq!(
            (&status["authenticated"], &status["audiences"]),
            (&json!(is_valid), &expected),
            "{audience}"
        );
    }
}

// V1
#[tokio::test]
async fn webhook_follows_the_kubernetes_version() {
    for (version, is_valid) in [(KubeVersion::V1_37, false), (KubeVersion::V1_38, true)] {
        let (profile, kube_version) = (Some(BaseProfile::Kube), Some(version));
        let settings = WebhookSettings { expose_errors: true, ..WebhookSettings::default() };
        let fixture = Fixture::start(Options { settings, profile, kube_version, ..Options::default() }).await;
        let now = now().as_second();
        let claims = super::claims(&fixture.issuer, json!({"nbf": now + 180, "exp": now + 600}));
        let body = review("v1", &fixture.issuer.key().token(&claims), &[]);
        let reply = fixture.client().post_json(&fixture.url("/authenticate"), &body).await.unwrap();
        let status = &reply.json()["status"];
        assert_eq!(status["authenticated"] == true, is_valid, "{version}: {status}");
        let error = status["error"].as_str().unwrap_or_default();
        assert_eq!(error.contains("which Kubernetes 1.37 does not accept"), !is_valid, "{version}: {error}");
    }
}

// S217, S226, S259
#[tokio::test]
async fn rejects_unknown_paths_and_methods() {
    let settings = WebhookSettings { path: "/review".into(), auth_path: None, ..WebhookSettings::default() };
    let fixture = Fixture::start(Options { settings, ..Options::default() }).await;
    let body = review("v1", &fixture.ann(), &[]);
    for (path, code) in [
        ("/review", 200),
        ("/apis/authentication.k8s.io/v1/tokenreviews", 201),
        ("/apis/authentication.k8s.io/v1beta1/tokenreviews", 201),
        ("/apis/authentication.k8s.io/v2/tokenreviews", 404),
        ("/authenticate", 404),
        ("/review/", 404),
        ("/auth", 404),
        ("/metrics", 404),
        ("/healthz", 404),
        ("/", 404),
    ] {
        assert_eq!(
            fixture.client().post_json(&fixture.url(path), &body).await.unwrap().status,
            code,
            "{path}"
        );
    }
    for method in ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"] {
        let request =
            Request::builder().method(method).uri(fixture.url("/review")).body(bytes::Bytes::new()).unwrap();
        let reply = fixture.client().send(request).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, Some("POST")), "{method}");
    }
}

// S219: overload is 429 without Retry-After, and ends.
#[tokio::test]
async fn returns_429_above_the_in_flight_limit_and_its_queue() {
    let ca = Ca::new("slow");
    let issuer = Issuer::start(&ca);
    let gate = Gate::new();
    let limits = navicert_server::ServerLimits { requests: 2, ..Default::default() };
    let fixture = Fixture::with(ca, issuer, Options { limits, ..Options::default() }).await;
    // An unknown key makes the webhook fetch keys from a slow issuer.
    fixture.issuer.answer(fixture.issuer.jwks_path(), Answer::json(&fixture.issuer.jwks()).after(&gate));
    let claims = super::claims(&fixture.issuer, json!({}));
    let unknown = |id: &str| {
        navicert_testkit::SigningKey::generate(navicert_testkit::Algorithm::Es256, id).token(&claims)
    };
    let (one, two) = (unknown("one"), unknown("two"));
    let waiting = async { tokio::join!(fixture.review(&one), fixture.review(&two)) };
    let third = async {
        gate.wait_for_arrivals(1).await;
        let metric = "navicert_requests_in_flight{server=\"webhook\"} 2";
        fixture.until("two in flight", || fixture.metrics.render().contains(metric)).await;
        // Two of the three wait, one finds the queue full.
        let ask = async || {
            let reply = fixture.review("opaque").await;
            if reply.status == 429 {
                assert_eq!(reply.header("retry-after"), None);
                gate.open();
            }
            reply.status.as_u16()
        };
        let (one, two, three) = tokio::join!(ask(), ask(), ask());
        let mut codes = [one, two, three];
        codes.sort_unstable();
        assert_eq!(codes, [200, 200, 429]);
    };
    let ((one, two), ()) = tokio::join!(waiting, third);
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 200));
    assert_eq!(fixture.status(&fixture.ann()).await["authenticated"], true);
}

// W3C Trace Context: kube-apiserver sends it if its own tracing is on.
#[tokio::test]
async fn audit_log_has_a_valid_traceparent_and_no_other() {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let fixture = Fixture::start(Options::default()).await;
    for parent in ["00-secret-value", PARENT] {
        let request = Request::post(fixture.url("/authenticate"))
            .header("traceparent", parent)
            .body(bytes::Bytes::from(review("v1", &fixture.ann(), &[]).to_string()))
            .unwrap();
        assert_eq!(fixture.client().send(request).await.unwrap().status, 200);
    }
    fixture.until("two lines", || fixture.audit().lines().count() == 2).await;
    let lines: Vec<serde_json::Value> =
        fixture.audit().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!([&lines[0]["traceparent"], &lines[1]["traceparent"]], [&json!(null), &json!(PARENT)]);
    assert!(!fixture.audit().contains("secret-value"));
}
