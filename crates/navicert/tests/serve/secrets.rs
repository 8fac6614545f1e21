//! Planted secrets must not appear in any output of the webhook, at any log level.

use http::Request;
use navicert_authn::metrics::sha256_label;
use navicert_testkit::cli::program::copy_executable;
use navicert_testkit::{Canaries, HttpClient, Program, report};
use serde_json::json;

use super::{NAVICERT, OPEN, Setup};

// S224, S282; CVE-2019-11250
#[tokio::test]
async fn no_token_or_key_is_logged_at_any_level() {
    let mut canaries = Canaries::new();
    let setup = Setup::new();
    let callers = canaries.plant("the callers' token");
    setup.write("token", &callers);
    let key = std::fs::read_to_string(setup.path("tls.key")).unwrap();
    canaries.adopt("the key's first line", key.lines().nth(1).unwrap().as_bytes());
    let mut identifiers = Canaries::new();
    let (good, bad) = (identifiers.plant("a jti"), identifiers.plant("another jti"));
    let tokens = [
        setup.token(&json!({"jti": good})),
        setup.token(&json!({"jti": bad, "exp": 1_000})),
        navicert_testkit::pki::jws::with_tampered_signature(&setup.token(&json!({"n": 1}))),
        canaries.plant("an opaque token"),
    ];
    for token in &tokens {
        canaries.adopt("a token", token.as_bytes());
        // The signature alone is sensitive too.
        if let Some((_, signature)) = token.rsplit_once('.') {
            canaries.adopt("a signature", signature.as_bytes());
        }
    }
    for format in ["text", "json"] {
        let serving = setup
            .serve(&[
                "--tls-cert-file",
                "tls.crt",
                "--tls-private-key-file",
                "tls.key",
                "--bearer-token-file",
                "token",
                "--log-level",
                "trace",
                "--log-format",
                format,
                "--audit-log-path",
                "audit.log",
            ])
            .await;
        let mut answers = Vec::new();
        let client = HttpClient::trusting(&setup.ca);
        for token in &tokens {
            for (path, body, own) in [
                (
                    "/authenticate",
                    json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1",
                    "spec": {"token": token}}),
                    &callers,
                ),
                ("/authenticate", json!({"kind": "TokenReview", "spec": {"token": token}}), &callers),
                ("/authenticate", json!({"token": token}), &"wrong".to_owned()),
                ("/auth", json!(null), token),
                (&*format!("/{token}"), json!(token), token),
            ] {
                let request = Request::post(format!("https://{}{path}?token={token}", serving.listen))
                    .header("authorization", format!("Bearer {own}"))
                    .header("proxy-authorization", format!("Bearer {callers}"))
                    .header("audit-id", "a-1")
                    .body(bytes::Bytes::from(body.to_string()))
                    .unwrap();
                for client in [&client, &client.http2()] {
                    let reply = client.send(request.clone()).await.unwrap();
                    answers.extend_from_slice(format!("{:?}", reply.headers).as_bytes());
                    answers.extend_from_slice(&reply.body);
                }
            }
        }
        canaries.assert_absent("answers", &answers);
        canaries.assert_absent("figures", serving.inspect("/metrics").await.1.as_bytes());
        canaries.assert_absent("readiness", serving.inspect("/readyz?verbose").await.1.as_bytes());
        serving.running.signal("TERM");
        let outcome = serving.running.wait().await;
        assert!(outcome.stdout.len() > 1_000, "something is logged at this level");
        let audit = std::fs::read(setup.path("audit.log")).unwrap();
        assert!(String::from_utf8_lossy(&audit).contains("\"username\":\"oidc:ann\""), "the real identity");
        assert!(String::from_utf8_lossy(&audit).contains("\"auditId\":\"a-1\""));
        // S224: tokens are identified by a hash, whether accepted or not.
        for jti in [&good, &bad] {
            let told = format!("\"jtiHash\":\"{}\"", sha256_label(jti.as_bytes()));
            assert!(String::from_utf8_lossy(&audit).contains(&told), "{told}");
        }
        for canaries in [&canaries, &identifiers] {
            canaries.assert_absent("the log", &outcome.stdout);
            canaries.assert_absent("the audit log", &audit);
        }
    }
}

/// The user whose processes may read the memory of this one, and write its core: root if it is protected.
fn owner(pid: u32) -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(format!("/proc/{pid}/environ")).unwrap().uid()
}

// No other process of the same user can read tokens and keys in the server's memory, and no core is written.
#[tokio::test]
async fn memory_is_not_readable_by_other_processes_of_the_user() {
    let setup = Setup::new();
    let copy = setup.path("navicert");
    copy_executable(NAVICERT, &copy).unwrap();
    // Root reads everything, so it runs the server as another user.
    let is_root = owner(std::process::id()) == 0;
    let as_user = |arguments: &[&str]| match (is_root, arguments) {
        (false, [program, rest @ ..]) => Program::new(program).arguments(rest),
        _ => {
            Program::new("setpriv").arguments(["--reuid=nobody", "--clear-groups", "--"]).arguments(arguments)
        }
    };
    if is_root {
        let dir = setup.dir.path().to_str().unwrap();
        let given = Program::new("chown").arguments(["-R", "nobody", dir]).run().unwrap();
        let can_switch = as_user(&["true"]).run().is_ok_and(|outcome| outcome.code() == Some(0));
        if given.code() != Some(0) || !can_switch {
            return report::skipped("root", "only root can run a program as another user");
        }
    }
    let ordinary = as_user(&["sleep", "60"]).start_running().unwrap();
    let changed = async {
        while owner(ordinary.pid()) == 0 {
            tokio::task::yield_now().await;
        }
    };
    navicert_testkit::wait::within("an ordinary process", changed).await;
    let serving = setup.serve_by(as_user(&[copy.to_str().unwrap()]), OPEN).await;
    assert_eq!(owner(serving.running.pid()), 0);
}
