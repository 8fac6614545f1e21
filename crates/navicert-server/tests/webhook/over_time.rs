//! Certificates, configuration and issuers that change while the webhook serves, and its shutdown.

use std::fs;
use std::time::Duration;

use navicert_server::serving::ShutdownTiming;
use navicert_testkit::{Algorithm, Answer, Ca, HttpClient, Issuer, RawClient, SigningKey, wait};
use serde_json::json;

use super::{Fixture, Options, config, review, write_identity};

// A replaced certificate applies to new connections; a mismatched pair changes nothing.
#[tokio::test]
async fn reloads_certificates_and_keeps_the_previous_one_on_error() {
    let fixture = Fixture::start(Options::default()).await;
    let mut kept = RawClient::connect_tls(fixture.address, &fixture.ca, None, &["http/1.1"]).await;
    // A key that does not match the certificate, until that is noticed.
    let new = Ca::new("new");
    fs::write(fixture.path("tls.key"), new.server().issue().key_pem()).unwrap();
    let failed = "navicert_tls_certificate_reloads_total{status=\"failure\"} 1";
    fixture.until("it is refused", || fixture.metrics.render().contains(failed)).await;
    assert_eq!(fixture.status(&fixture.ann()).await["authenticated"], true, "the earlier one stays");
    write_identity(fixture.dir.path(), &new.server().issue());
    let replaced = "navicert_tls_certificate_reloads_total{status=\"success\"} 1";
    fixture.until("it takes over", || fixture.metrics.render().contains(replaced)).await;
    let body = review("v1", &fixture.ann(), &[]);
    let reply = HttpClient::trusting(&new).post_json(&fixture.url("/authenticate"), &body).await.unwrap();
    assert_eq!(reply.status, 200);
    assert!(
        fixture.client().post_json(&fixture.url("/authenticate"), &body).await.is_err(),
        "the old one is gone"
    );
    let body = body.to_string();
    let request =
        format!("POST /authenticate HTTP/1.1\r\nhost: h\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    kept.write(request.as_bytes()).await;
    kept.read_until(b"oidc:ann").await;
    fixture.reload_task.reload_now();
}

// S185–S189, PV20, LV2, LV6: a configuration change applies at once, also to cached tokens.
#[tokio::test]
async fn reloads_configuration_and_keeps_the_previous_one_on_error() {
    let fixture = Fixture::start(Options::default()).await;
    let token = fixture.ann();
    assert_eq!(fixture.status(&token).await["authenticated"], true);
    fs::write(fixture.path("config.yaml"), "not: [a configuration").unwrap();
    fixture.tasks.reload_now();
    fixture.until("it is refused", || fixture.reloader.problem().is_some()).await;
    assert_eq!(fixture.status(&token).await["authenticated"], true);
    let other = Issuer::start(&fixture.ca);
    fs::write(fixture.path("config.yaml"), config(&[(&other.issuer_url(), &fixture.ca)])).unwrap();
    let gone = wait::within("it takes over", async {
        loop {
            if fixture.status(&token).await == json!({"authenticated": false}) {
                return;
            }
        }
    });
    Box::pin(gone).await;
    let theirs = other.token(&super::claims(&other, json!({})));
    assert_eq!(fixture.status(&theirs).await["user"]["username"], "oidc:ann");
}

// An unavailable, broken or slow issuer does not affect known keys; new keys are found.
#[tokio::test]
async fn failing_issuer_does_not_affect_verifiable_tokens() {
    let fixture = Fixture::start(Options::default()).await;
    let fresh = |number: usize| fixture.token(json!({"jti": format!("fresh-{number}")}));
    for trouble in [Answer::status(500), Answer::text("not json"), Answer::cut(navicert_testkit::Cut::Reset)]
    {
        fixture.issuer.answer(fixture.issuer.jwks_path(), trouble);
        for number in 0..20 {
            assert_eq!(fixture.status(&fresh(number)).await["authenticated"], true);
        }
        let unknown = SigningKey::generate(Algorithm::Es256, "unknown")
            .token(&super::claims(&fixture.issuer, json!({})));
        let status = fixture.status(&unknown).await;
        assert_eq!(
            (&status["authenticated"], status["error"].is_string()),
            (&json!(false), true),
            "{status}"
        );
    }
    fixture.issuer.refuse_connections();
    assert_eq!(fixture.status(&fresh(99)).await["authenticated"], true);
    fixture.issuer.accept_connections();
}

// A rotated key is fetched with its first token.
#[tokio::test]
async fn accepts_tokens_of_a_new_key_once_published() {
    let fixture = Fixture::start(Options::default()).await;
    let key = SigningKey::generate(Algorithm::Es256, "rotated");
    fixture.issuer.add_key(key.clone());
    let token = key.token(&super::claims(&fixture.issuer, json!({})));
    let accepted = wait::within("the new key", async {
        loop {
            if fixture.status(&token).await["authenticated"] == true {
                return;
            }
        }
    });
    Box::pin(accepted).await;
}

// SIGTERM: readiness fails at once, no new connections, in-flight requests finish.
#[tokio::test]
async fn shutdown_drains_in_flight_requests_and_accepts_no_new_ones() {
    let mut fixture = Fixture::start(Options::default()).await;
    let body = review("v1", &fixture.ann(), &[]).to_string();
    let (begun, rest) = body.split_at(20);
    let mut client = RawClient::connect_tls(fixture.address, &fixture.ca, None, &["http/1.1"]).await;
    let head =
        format!("POST /authenticate HTTP/1.1\r\nhost: h\r\ncontent-length: {}\r\n\r\n{begun}", body.len());
    client.write(head.as_bytes()).await;
    fixture
        .until("it has begun", || {
            fixture.metrics.render().contains("navicert_requests_in_flight{server=\"webhook\"} 1")
        })
        .await;
    fixture.stop.take().unwrap().send(()).unwrap();
    fixture.until("not ready", || !fixture.health.report().0).await;
    let refused = wait::within("nothing new", async {
        while tokio::net::TcpStream::connect(fixture.address).await.is_ok() {}
    });
    refused.await;
    client.write(rest.as_bytes()).await;
    let answer = String::from_utf8(client.read_to_end(1 << 16).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("oidc:ann"), "{answer}");
    wait::within("the end", &mut fixture.served).await.unwrap();
}

// Requests that do not finish are aborted.
#[tokio::test]
async fn shutdown_aborts_requests_after_the_grace_period() {
    let shutdown = ShutdownTiming { grace: Duration::from_millis(50), ..ShutdownTiming::default() };
    let mut fixture = Fixture::start(Options { shutdown, ..Options::default() }).await;
    let mut client = RawClient::connect_tls(fixture.address, &fixture.ca, None, &["http/1.1"]).await;
    client.write(b"POST /authenticate HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\n{").await;
    fixture
        .until("it has begun", || {
            fixture.metrics.render().contains("navicert_requests_in_flight{server=\"webhook\"} 1")
        })
        .await;
    fixture.stop.take().unwrap().send(()).unwrap();
    wait::within("the end", &mut fixture.served).await.unwrap();
}
