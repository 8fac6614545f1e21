//! Faults under a load of three hundred requests per second: no wrong response, no avoidable failure, and the log reports
//! every fault. A few seconds each here, a minute in `make soak`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use navicert_testkit::net::load::{Verdict, sleep_period};
use navicert_testkit::pki::jws::with_tampered_signature;
use navicert_testkit::services::issuer_faults::IssuerFaults;
use navicert_testkit::{HttpClient, Load, soak, wait};
use serde_json::{Value, json};

use super::{OPEN, Setup};

/// Tokens, and the names that may be answered. Copies share them.
#[derive(Clone)]
pub(crate) struct Questions(Arc<Vec<(String, Vec<&'static str>)>>);

impl Questions {
    /// Good tokens, mostly; some that are not.
    pub(crate) fn of(setup: &Setup, names: &[&'static str]) -> Self {
        let good = (0..60).map(|number| (setup.token(&json!({"jti": number.to_string()})), names.to_vec()));
        let bad = [
            setup.token(&json!({"exp": 1_000})),
            setup.token(&json!({"aud": "other"})),
            with_tampered_signature(&setup.token(&json!({"jti": "x"}))),
            "opaque".to_owned(),
        ];
        Questions(Arc::new(good.chain(bad.into_iter().map(|token| (token, vec!["rejected"]))).collect()))
    }
}

/// Asks one question after another: the first address, or the second once the first is not ready any more.
fn ask_both(
    setup: &Setup,
    addresses: Vec<String>,
    questions: &Questions,
    is_first_ready: Arc<AtomicBool>,
) -> Load {
    let (client, questions, addresses) =
        (HttpClient::trusting(&setup.ca), questions.clone(), Arc::new(addresses));
    Load::start(move |number| {
        let (client, questions, addresses) = (client.clone(), questions.clone(), Arc::clone(&addresses));
        let is_first = is_first_ready.load(Ordering::Acquire);
        async move {
            let (token, names) = &questions.0[number % questions.0.len()];
            let address = &addresses[usize::from(!is_first) % addresses.len()];
            let review = json!({
                "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token},
            });
            let told =
                match Box::pin(client.post_json(&format!("https://{address}/authenticate"), &review)).await {
                    Ok(reply) if reply.status == 200 => name(&reply.json()),
                    Ok(reply) => format!("{}: {}", reply.status, reply.text()),
                    Err(error) => return Verdict::Lost(error.to_string()),
                };
            if names.contains(&told.as_str()) {
                return Verdict::Right;
            }
            Verdict::Wrong(format!("`{told}`, expected one of {names:?}"))
        }
    })
}

pub(crate) fn ask(setup: &Setup, addresses: Vec<String>, questions: &Questions) -> Load {
    ask_both(setup, addresses, questions, Arc::new(AtomicBool::new(true)))
}

fn name(response: &Value) -> String {
    let status = &response["status"];
    match (status["user"]["username"].as_str(), status["error"].as_str()) {
        (Some(name), _) => name.to_owned(),
        (None, Some(error)) => format!("error: {error}"),
        (None, None) => "rejected".to_owned(),
    }
}

#[tokio::test]
async fn issuer_faults_cause_no_wrong_response() {
    let setup = Setup::new();
    let serving = setup.serve(OPEN).await;
    let trouble = IssuerFaults { issuer: &setup.issuer, audience: "aud1", server: &serving.running };
    // New tokens each time: the whole run takes longer than a token's lifetime.
    let start = || ask(&setup, vec![serving.listen.clone()], &Questions::of(&setup, &["oidc:ann"]));
    let accepts = async |token: &str| serving.name(&setup.ca, token).await.as_deref() == Some("oidc:bob");
    Box::pin(trouble.run(start, accepts)).await;
}

#[tokio::test]
async fn file_changes_cause_no_wrong_response() {
    let setup = Setup::new();
    let serving = setup.serve(OPEN).await;
    let load = ask(&setup, vec![serving.listen.clone()], &Questions::of(&setup, &["oidc:ann", "new:ann"]));
    let mut round = 0;
    while round < 4 || load.right() < 180 * soak::factor() {
        round += 1;
        // The same authority: clients need no change.
        setup.write_identity(&setup.ca);
        setup.write("config.yaml", if round % 2 == 0 { "jwt: [" } else { "{}" });
        serving.running.signal("HUP");
        let prefix = if round % 2 == 0 { "new:" } else { "oidc:" };
        setup.write("config.yaml", &setup.config(prefix));
        let token = setup.token(&json!({"jti": format!("round-{round}")}));
        serving.until(&setup.ca, &token, &format!("{prefix}ann")).await;
    }
    load.end(&format!("{round} changes of certificate and configuration")).await;
    for told in ["reloaded TLS certificate", "reloaded configuration", "reload_requested"] {
        serving.running.wait_for_repeated_output(told, 2, wait::LIMIT).await;
    }
}

// One replica stops while another runs, as in a rollout: clients that respect readiness lose no request.
#[tokio::test]
async fn stopping_a_replica_loses_no_request() {
    let setup = Setup::new();
    let first = setup.serve(&[OPEN, &["--shutdown-delay", "2s"]].concat()).await;
    let second = setup.serve(OPEN).await;
    let is_ready = Arc::new(AtomicBool::new(true));
    let addresses = vec![first.listen.clone(), second.listen.clone()];
    let load = ask_both(&setup, addresses, &Questions::of(&setup, &["oidc:ann"]), Arc::clone(&is_ready));
    sleep_period().await;
    first.running.signal("TERM");
    let noticed = async { while first.inspect("/readyz").await.0 == 200 {} };
    wait::within("not ready", noticed).await;
    is_ready.store(false, Ordering::Release);
    let outcome = first.running.wait().await;
    assert_eq!(outcome.code(), Some(0));
    let said = String::from_utf8_lossy(&outcome.stdout);
    for told in ["shutting down, draining in-flight requests", "all requests finished"] {
        assert!(said.contains(told), "{said}");
    }
    load.more(20).await;
    load.end("SIGTERM").await;
    drop(second);
}
