//! Signals, files that change, and flags.

use navicert_testkit::{Ca, Program, RawClient, wait};
use serde_json::json;

use super::{NAVICERT, OPEN, Setup};

// A replaced certificate or configuration is reloaded automatically; SIGHUP reloads at once and reopens the audit log.
#[tokio::test]
async fn changed_files_are_reloaded_and_sighup_reopens_the_audit_log() {
    let setup = Setup::new();
    let serving = setup.serve(&[OPEN, &["--audit-log-path", "audit.log"]].concat()).await;
    let token = setup.token(&json!({}));
    serving.until(&setup.ca, &token, "oidc:ann").await;
    setup.write("config.yaml", &setup.config("other:"));
    serving.until(&setup.ca, &token, "other:ann").await;
    setup.write("config.yaml", "jwt: [");
    serving.running.wait_for_output("previous configuration stays in use").await;
    assert_eq!(serving.name(&setup.ca, &token).await.as_deref(), Some("other:ann"));
    let (code, told) = serving.inspect("/readyz?verbose").await;
    assert!(code == 200 && told.contains("[+]configuration ok: configuration files are invalid"), "{told}");

    let new = Ca::new("new");
    setup.write_identity(&new);
    serving.until(&new, &token, "other:ann").await;

    std::fs::rename(setup.path("audit.log"), setup.path("audit.log.1")).unwrap();
    serving.running.signal("HUP");
    let made = async {
        while !setup.path("audit.log").exists() {
            tokio::task::yield_now().await;
        }
    };
    wait::within("a new log", made).await;
    let (code, page) = serving.inspect("/metrics").await;
    assert_eq!(code, 200);
    for figure in [
        "apiserver_authentication_config_controller_automatic_reloads_total",
        "authentication_token_cache_request_total",
        "navicert_requests_total{code=\"200\",server=\"webhook\"}",
        "navicert_tls_certificate_reloads_total{status=\"success\"} 1",
        "navicert_audit_lines_total{result=\"dropped\"} 0",
    ] {
        assert!(page.contains(figure), "{figure} in\n{page}");
    }
    assert_eq!(serving.inspect("/healthz").await, (200, "ok".to_owned()));
}

// SIGTERM: in-flight requests complete, new ones are rejected, and the exit code is 0.
#[tokio::test]
async fn sigterm_drains_in_flight_requests() {
    let setup = Setup::new();
    let serving = setup.serve(OPEN).await;
    let body = json!({
        "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": setup.token(&json!({}))},
    });
    let body = body.to_string();
    let (begun, rest) = body.split_at(30);
    let address = serving.listen.parse().unwrap();
    let mut client = RawClient::connect_tls(address, &setup.ca, None, &["http/1.1"]).await;
    let head =
        format!("POST /authenticate HTTP/1.1\r\nhost: h\r\ncontent-length: {}\r\n\r\n{begun}", body.len());
    client.write(head.as_bytes()).await;
    let in_flight = async {
        while !serving
            .inspect("/metrics")
            .await
            .1
            .contains("navicert_requests_in_flight{server=\"webhook\"} 1")
        {}
    };
    wait::within("it has begun", in_flight).await;
    serving.running.signal("TERM");
    serving.running.wait_for_output("shutting down").await;
    let (code, told) = serving.inspect("/readyz").await;
    assert!(code == 503 && told.contains("[-]shutdown failed"), "{told}");
    client.write(rest.as_bytes()).await;
    let response = String::from_utf8(client.read_to_end(1 << 16).await).unwrap();
    assert!(response.starts_with("HTTP/1.1 200") && response.contains("oidc:ann"), "{response}");
    let outcome = serving.running.wait().await;
    assert_eq!(outcome.code(), Some(0));
    assert!(String::from_utf8_lossy(&outcome.stdout).contains("shutdown_completed"));
}

// S198–S201, S203: kube-apiserver's own flags, with the algorithms they allow.
#[tokio::test]
async fn oidc_flags_replace_the_configuration_file() {
    let setup = Setup::new();
    setup.write("ca.pem", &setup.ca.pem());
    let running = Program::new(NAVICERT)
        .arguments([
            "serve",
            "webhook",
            "-o",
            "json",
            "--listen",
            "127.0.0.1:0",
            "--health-listen",
            "127.0.0.1:0",
        ])
        .arguments(["--oidc-issuer-url", &setup.issuer.issuer_url(), "--oidc-client-id", "aud1"])
        .arguments(["--oidc-ca-file", "ca.pem", "--oidc-username-prefix", "-", "--oidc-groups-claim=groups"])
        .arguments(["--oidc-signing-algs=RS256,ES256"])
        .arguments(OPEN)
        .directory(setup.dir.path())
        .start_running()
        .unwrap();
    let said = running.wait_for_output("\"server\":\"webhook\"}\n").await;
    let line = said.lines().find(|line| line.starts_with("{\"health\"")).unwrap();
    let told: serde_json::Value = serde_json::from_str(line).unwrap();
    let address = |name: &str| told[name].as_str().unwrap().to_owned();
    let serving = super::Serving { listen: address("listen"), health: address("health"), running };
    serving.until(&setup.ca, &setup.token(&json!({})), "ann").await;
    let key = navicert_testkit::SigningKey::generate(navicert_testkit::Algorithm::Es384, "narrow");
    setup.issuer.add_key(key.clone());
    let claims = setup.issuer.claims("ann", "aud1", navicert_types::Clock::now(&navicert_types::SystemClock));
    assert_eq!(
        serving.name(&setup.ca, &key.token(&claims)).await.as_deref(),
        Some(""),
        "ES384 is not among them"
    );
}

// The file for --authentication-token-webhook-config-file holds no secret, and our own reader understands it.
#[test]
fn the_kubeconfig_for_the_api_server_is_printed() {
    let setup = Setup::new();
    setup.write("token", "a-long-enough-secret");
    let arguments = ["serve", "webhook", "--authentication-config", "config.yaml", "--print-kubeconfig"];
    let outcome = Program::new(NAVICERT)
        .arguments(arguments)
        .arguments([
            "--tls-cert-file",
            "tls.crt",
            "--tls-private-key-file",
            "tls.key",
            "--bearer-token-file",
            "token",
        ])
        .arguments(["--server-url", "https://navicert.auth.svc:8443", "--client-certificate", "/pki/c.crt"])
        .directory(setup.dir.path())
        .run()
        .unwrap();
    let text = String::from_utf8(outcome.stdout).unwrap();
    assert_eq!(outcome.status.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    assert!(!text.contains("a-long-enough-secret"), "{text}");
    let config = navicert_types::kubeconfig::decode(text.as_bytes()).unwrap();
    assert_eq!(config.clusters[0].cluster.server, "https://navicert.auth.svc:8443/authenticate");
    assert!(!config.clusters[0].cluster.certificate_authority_data.is_empty());
    assert_eq!(config.users[0].user.token_file, "token");
    assert_eq!(config.users[0].user.client_certificate, "/pki/c.crt");
    assert_eq!(config.current_context, "webhook");
}
