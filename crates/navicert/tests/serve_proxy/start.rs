//! Startup: error messages, readiness, the audit log and secrets that must never be logged.

use std::fs;

use navicert_authn::metrics::sha256_label;
use navicert_testkit::{Answer, Canaries, wait};
use serde_json::{Value, json};

use super::setup::{Setup, text};

#[test]
fn configuration_errors_are_reported_before_listening() {
    let setup = Setup::new();
    let fine = setup.navicert(&["--check"]).run().unwrap();
    assert_eq!(fine.code(), Some(0), "{}", text(&fine.stderr));
    let told = text(&fine.stdout);
    assert!(told.starts_with("ok: 1 issuer\nlimits: ") && told.contains(" connections, "), "{told}");
    setup.configure("{mode: header}", &json!({"claim": "sub", "prefix": ""}));
    let bad = setup.navicert(&["--check"]).run().unwrap();
    assert_eq!(bad.code(), Some(3));
    let told = text(&bad.stderr);
    assert!(told.contains("servers.proxy.mode: expected one of `impersonation`, `requestHeader`"), "{told}");
    setup.configure("{}", &json!({"claim": "sub", "prefix": ""}));
    let acting = json!({"token": "t", "as": "admin"});
    setup.kubeconfig("proxy.kubeconfig", &setup.api.url(), &acting);
    let bad = setup.navicert(&["--check"]).run().unwrap();
    assert_eq!(bad.code(), Some(3), "{}", text(&bad.stderr));
    assert!(text(&bad.stderr).contains("sets `as`"), "{}", text(&bad.stderr));
}

// S270: readiness names the missing rule and recovers once it exists.
#[tokio::test(flavor = "multi_thread")]
async fn readiness_reports_the_missing_rbac_rule() {
    let setup = Setup::new();
    setup.configure("{}", &json!({"claim": "sub", "prefix": ""}));
    let review = |may: bool| {
        setup.api.answer_with("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", move |request| {
            let mut review = request.json();
            let is_groups = review["spec"]["resourceAttributes"]["resource"] == "groups";
            review["status"] = json!({"allowed": may || !is_groups});
            Answer::json(&review).with_status(201)
        });
    };
    review(false);
    let serving = setup.start(&[]).await;
    let rule = "add these rules to its ClusterRole:\n  - {apiGroups: [\"\"], resources: [\"groups\"], verbs: [\"impersonate\"]}\n";
    let until = |code: u16, words: &'static str| {
        let serving = &serving;
        let asking = async move {
            loop {
                let reply = serving.inspect("/readyz?verbose").await;
                if reply.status.as_u16() == code && reply.text().contains(words) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        wait::within(words, Box::pin(asking))
    };
    until(503, rule).await;
    review(true);
    serving.program.signal("HUP");
    until(200, "[+]upstream-permissions ok").await;
    // The credential is not `ok` while the API server does not answer.
    setup.api.refuse_connections();
    serving.program.signal("HUP");
    until(503, "[-]upstream-credential failed: no answer from the API server: ").await;
    setup.api.accept_connections();
    serving.program.signal("HUP");
    until(200, "[+]upstream-credential ok").await;
    serving.end().await;
}

// S247, S282: no token, key or claim is logged, at any level.
#[tokio::test(flavor = "multi_thread")]
async fn audit_log_has_the_real_user_and_no_log_has_a_token() {
    let setup = Setup::new();
    let serving = setup.start(&["--audit-log-path", "audit.log", "--log-level", "trace"]).await;
    let good = setup.token(&json!({"jti": "canary-good-token", "secret": "canary-claim"}));
    let bad = setup.token(&json!({"jti": "canary-bad-token", "aud": "elsewhere"}));
    assert_eq!(setup.get(&serving, "/api/v1/pods?limit=1", &good).await.status, 200);
    assert_eq!(setup.get(&serving, "/api/v1/pods", &bad).await.status, 401);
    assert_eq!(setup.get(&serving, "/api/v1/pods", "canary-garbage").await.status, 401);
    let metrics = serving.inspect("/metrics").await.text().to_owned();
    serving.program.signal("TERM");
    let told = text(&serving.program.wait().await.stdout);
    let log = fs::read_to_string(setup.dir.path().join("audit.log")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{log}");
    assert_eq!(lines[0]["user"]["username"], "corp:ann");
    assert_eq!(lines[0]["user"]["groups"], json!(["corp:dev", "corp:ops"]));
    assert_eq!((&lines[0]["decision"], &lines[0]["code"]), (&json!("allow"), &json!(200)));
    assert_eq!((&lines[0]["method"], &lines[0]["path"]), (&json!("GET"), &json!("/api/v1/pods")));
    assert_eq!((&lines[1]["decision"], &lines[1]["reason"]), (&json!("deny"), &json!("audience")));
    assert_eq!((&lines[2]["reason"], &lines[2]["user"]), (&json!("malformed"), &Value::Null));
    // S224: tokens are identified by a hash.
    assert_eq!(lines[0]["jtiHash"], sha256_label(b"canary-good-token"));
    assert_eq!(lines[1]["jtiHash"], sha256_label(b"canary-bad-token"));
    assert_eq!(lines[2]["jtiHash"], Value::Null);
    let key = fs::read_to_string(setup.dir.path().join("proxy.key")).unwrap();
    let mut canaries = Canaries::new();
    for token in [&good, &bad] {
        for part in token.split('.').skip(1) {
            canaries.adopt("token", part.as_bytes());
        }
    }
    canaries.adopt("token", b"canary-garbage");
    canaries.adopt("claim", b"canary-claim");
    canaries.adopt("jti", b"canary-good-token");
    canaries.adopt("jti", b"canary-bad-token");
    canaries.adopt("key", key.lines().nth(1).unwrap().as_bytes());
    for (output, text) in [("log", told), ("audit", log), ("metrics", metrics)] {
        canaries.assert_absent(output, text.as_bytes());
    }
}
