//! Faults under load: three hundred questions a second while issuers, files and processes come and go. No answer is wrong, none
//! is missing that a healthy system could have given, and the log says what happened. A few seconds here, a minute each in
//! `make soak`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use navicert_testkit::jws::with_tampered_signature;
use navicert_testkit::load::{Trouble, Verdict, lasting};
use navicert_testkit::{HttpClient, Load, soak, wait};
use serde_json::{Value, json};

use super::{OPEN, Place};

/// Tokens, and the names that may be answered. Copies share them.
#[derive(Clone)]
pub(crate) struct Questions(Arc<Vec<(String, Vec<&'static str>)>>);

impl Questions {
    /// Good tokens, mostly; some that are not.
    pub(crate) fn of(place: &Place, names: &[&'static str]) -> Self {
        let good = (0..60).map(|number| (place.token(&json!({"jti": number.to_string()})), names.to_vec()));
        let bad = [
            place.token(&json!({"exp": 1_000})),
            place.token(&json!({"aud": "other"})),
            with_tampered_signature(&place.token(&json!({"jti": "x"}))),
            "opaque".to_owned(),
        ];
        Questions(Arc::new(good.chain(bad.into_iter().map(|token| (token, vec!["nobody"]))).collect()))
    }
}

/// Asks one question after another: the first address, or the second once the first is not ready any more.
fn ask_both(
    place: &Place,
    addresses: Vec<String>,
    questions: &Questions,
    is_first_ready: Arc<AtomicBool>,
) -> Load {
    let (client, questions, addresses) =
        (HttpClient::trusting(&place.ca), questions.clone(), Arc::new(addresses));
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

pub(crate) fn ask(place: &Place, addresses: Vec<String>, questions: &Questions) -> Load {
    ask_both(place, addresses, questions, Arc::new(AtomicBool::new(true)))
}

fn name(answer: &Value) -> String {
    let status = &answer["status"];
    match (status["user"]["username"].as_str(), status["error"].as_str()) {
        (Some(name), _) => name.to_owned(),
        (None, Some(error)) => format!("error: {error}"),
        (None, None) => "nobody".to_owned(),
    }
}

#[tokio::test]
async fn an_issuer_in_trouble_makes_no_answer_wrong() {
    let place = Place::new();
    let serving = place.serve(OPEN).await;
    let trouble = Trouble { issuer: &place.issuer, audience: "aud1", server: &serving.running };
    // New ones each time: all of it together takes longer than a token lasts.
    let start = || ask(&place, vec![serving.listen.clone()], &Questions::of(&place, &["oidc:ann"]));
    let accepts = async |token: &str| serving.name(&place.ca, token).await.as_deref() == Some("oidc:bob");
    Box::pin(trouble.befall(start, accepts)).await;
}

#[tokio::test]
async fn files_that_change_make_no_answer_wrong() {
    let place = Place::new();
    let serving = place.serve(OPEN).await;
    let load = ask(&place, vec![serving.listen.clone()], &Questions::of(&place, &["oidc:ann", "new:ann"]));
    let mut round = 0;
    while round < 4 || load.right() < 180 * soak::factor() {
        round += 1;
        // The same authority: whoever asks need not know.
        place.write_identity(&place.ca);
        place.write("config.yaml", if round % 2 == 0 { "jwt: [" } else { "{}" });
        serving.running.signal("HUP");
        let prefix = if round % 2 == 0 { "new:" } else { "oidc:" };
        place.write("config.yaml", &place.config(prefix));
        let token = place.token(&json!({"jti": format!("round-{round}")}));
        serving.until(&place.ca, &token, &format!("{prefix}ann")).await;
    }
    load.end(&format!("{round} changes of certificate and configuration")).await;
    for told in [
        "the TLS certificate has been replaced",
        "the configuration has been reloaded",
        "told to look at the files",
    ] {
        serving.running.wait_for_repeated_output(told, 2, wait::LIMIT).await;
    }
}

// One replica ends while another goes on, as in a rollout: whoever minds readiness loses nothing.
#[tokio::test]
async fn a_replica_that_ends_loses_no_request() {
    let place = Place::new();
    let first = place.serve(&[OPEN, &["--shutdown-delay", "2s"]].concat()).await;
    let second = place.serve(OPEN).await;
    let is_ready = Arc::new(AtomicBool::new(true));
    let addresses = vec![first.listen.clone(), second.listen.clone()];
    let load = ask_both(&place, addresses, &Questions::of(&place, &["oidc:ann"]), Arc::clone(&is_ready));
    lasting().await;
    first.running.signal("TERM");
    let noticed = async { while first.inspect("/readyz").await.0 == 200 {} };
    wait::within("not ready", noticed).await;
    is_ready.store(false, Ordering::Release);
    let outcome = first.running.wait().await;
    assert_eq!(outcome.code(), Some(0));
    let said = String::from_utf8_lossy(&outcome.stdout);
    for told in ["shutting down: what has begun is finished", "everything was finished"] {
        assert!(said.contains(told), "{said}");
    }
    load.more(20).await;
    load.end("SIGTERM").await;
    drop(second);
}
