//! Faults under load: three hundred questions a second while issuers, files and processes come and go. No answer is wrong, and
//! none is missing that a healthy system could have given. A few seconds here, a minute each in `make soak`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use navicert_testkit::jws::with_tampered_signature;
use navicert_testkit::{Algorithm, Answer, Gate, HttpClient, SigningKey, soak, wait};
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{OPEN, Place};

const A_SECOND: u32 = 300;
const WORKERS: u32 = 6;

/// How long each fault lasts.
fn period() -> Duration {
    Duration::from_millis(600) * u32::try_from(soak::factor()).unwrap()
}

/// What is asked, and what may be answered.
struct Question {
    token: String,
    names: Vec<&'static str>,
}

struct Load {
    asked: AtomicUsize,
    wrong: std::sync::Mutex<Vec<String>>,
    is_over: AtomicBool,
    /// Where to ask: the first as long as it is ready.
    addresses: Vec<String>,
    is_first_ready: AtomicBool,
}

impl Load {
    fn new(addresses: Vec<String>) -> Arc<Self> {
        Arc::new(Load {
            asked: AtomicUsize::new(0),
            wrong: std::sync::Mutex::default(),
            is_over: AtomicBool::new(false),
            addresses,
            is_first_ready: AtomicBool::new(true),
        })
    }

    /// Asks one question after another, at the pace of its share, until it is over.
    async fn ask(self: Arc<Self>, client: HttpClient, questions: Arc<Vec<Question>>, number: usize) {
        let mut pace = tokio::time::interval(Duration::from_secs(1) * WORKERS / A_SECOND);
        for index in (number..).step_by(7) {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            pace.tick().await;
            let question = &questions[index % questions.len()];
            let is_first = self.is_first_ready.load(Ordering::Acquire);
            let address = &self.addresses[usize::from(!is_first) % self.addresses.len()];
            let review = json!({
                "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": question.token},
            });
            let reply = Box::pin(client.post_json(&format!("https://{address}/authenticate"), &review)).await;
            let told = match reply {
                Ok(reply) if reply.status == 200 => name(&reply.json()),
                Ok(reply) => format!("{}: {}", reply.status, reply.text()),
                Err(error) => format!("no answer: {error}"),
            };
            self.asked.fetch_add(1, Ordering::Relaxed);
            if !question.names.contains(&told.as_str()) {
                self.wrong.lock().unwrap().push(format!("`{told}`, expected one of {:?}", question.names));
            }
        }
    }

    fn assert_right(&self, what: &str) {
        let wrong = self.wrong.lock().unwrap();
        let asked = self.asked.load(Ordering::Relaxed);
        let some: Vec<_> = wrong.iter().take(5).collect();
        assert!(wrong.is_empty(), "{what}: {} of {asked} answers are wrong: {some:#?}", wrong.len());
        assert!(asked > 50, "{what}: only {asked} questions were asked");
    }
}

fn name(answer: &Value) -> String {
    let status = &answer["status"];
    match (status["user"]["username"].as_str(), status["error"].as_str()) {
        (Some(name), _) => name.to_owned(),
        (None, Some(error)) => format!("error: {error}"),
        (None, None) => "nobody".to_owned(),
    }
}

/// Good tokens, mostly; some that are not.
fn questions(place: &Place, names: &[&'static str]) -> Arc<Vec<Question>> {
    let mut all: Vec<Question> = (0..60)
        .map(|number| Question {
            token: place.token(&json!({"jti": number.to_string()})),
            names: names.to_vec(),
        })
        .collect();
    for bad in [
        place.token(&json!({"exp": 1_000})),
        place.token(&json!({"aud": "other"})),
        with_tampered_signature(&place.token(&json!({"jti": "x"}))),
        "opaque".to_owned(),
    ] {
        all.push(Question { token: bad, names: vec!["nobody"] });
    }
    Arc::new(all)
}

/// Asks all the time that `fault` takes.
async fn under(
    load: &Arc<Load>,
    place: &Place,
    questions: &Arc<Vec<Question>>,
    fault: impl Future<Output = ()>,
) {
    let client = HttpClient::trusting(&place.ca);
    let mut workers = JoinSet::new();
    for number in 0..WORKERS {
        let number = usize::try_from(number).unwrap();
        workers.spawn(Arc::clone(load).ask(client.clone(), Arc::clone(questions), number));
    }
    fault.await;
    load.is_over.store(true, Ordering::Relaxed);
    while let Some(ended) = workers.join_next().await {
        ended.unwrap();
    }
}

async fn lasting() {
    let mut interval = tokio::time::interval(period());
    interval.tick().await;
    interval.tick().await;
}

#[tokio::test]
async fn an_issuer_in_trouble_makes_no_answer_wrong() {
    let place = Place::new();
    let serving = place.serve(OPEN).await;
    let (gate, path) = (Gate::new(), place.issuer.jwks_path().to_owned());
    for (what, begin, end) in [
        ("healthy", None, None),
        ("500", Some(Answer::status(500)), None),
        ("nonsense", Some(Answer::text("{\"keys\": 5}")), None),
        ("slow", Some(Answer::json(&place.issuer.jwks()).after(&gate)), Some(&gate)),
    ] {
        if let Some(answer) = begin {
            place.issuer.answer(&path, answer);
        }
        let load = Load::new(vec![serving.listen.clone()]);
        let questions = questions(&place, &["oidc:ann"]);
        Box::pin(under(&load, &place, &questions, lasting())).await;
        load.assert_right(what);
        if let Some(gate) = end {
            gate.open();
        }
    }
    place.issuer.refuse_connections();
    let load = Load::new(vec![serving.listen.clone()]);
    Box::pin(under(&load, &place, &questions(&place, &["oidc:ann"]), lasting())).await;
    load.assert_right("down");
    place.issuer.accept_connections();
    place.issuer.forget_answers();
    // Rotation: tokens of the old key all the time, and of the new one from the moment it is known.
    let key = SigningKey::generate(Algorithm::Es256, "rotated");
    place.issuer.add_key(key.clone());
    let token = key.token(&place.issuer.claims("bob", "aud1", SystemClock.now()));
    let load = Load::new(vec![serving.listen.clone()]);
    let rotation = async {
        serving.until(&place.ca, &token, "oidc:bob").await;
        lasting().await;
        assert_eq!(serving.name(&place.ca, &token).await.as_deref(), Some("oidc:bob"));
    };
    Box::pin(under(&load, &place, &questions(&place, &["oidc:ann"]), rotation)).await;
    load.assert_right("rotating");
}

#[tokio::test]
async fn files_that_change_make_no_answer_wrong() {
    let place = Place::new();
    let serving = place.serve(OPEN).await;
    let load = Load::new(vec![serving.listen.clone()]);
    let changes = async {
        let mut round = 0;
        while round < 4 || load.asked.load(Ordering::Relaxed) < 150 * soak::factor() {
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
    };
    Box::pin(under(&load, &place, &questions(&place, &["oidc:ann", "new:ann"]), changes)).await;
    load.assert_right("files");
}

// One replica ends while another goes on, as in a rollout: whoever minds readiness loses nothing.
#[tokio::test]
async fn a_replica_that_ends_loses_no_request() {
    let place = Place::new();
    let first = place.serve(&[OPEN, &["--shutdown-delay", "2s"]].concat()).await;
    let second = place.serve(OPEN).await;
    let load = Load::new(vec![first.listen.clone(), second.listen.clone()]);
    let questions = questions(&place, &["oidc:ann"]);
    let end = async {
        lasting().await;
        first.running.signal("TERM");
        let noticed = async { while first.inspect("/readyz").await.0 == 200 {} };
        wait::within("not ready", noticed).await;
        load.is_first_ready.store(false, Ordering::Release);
        let outcome = first.running.wait().await;
        assert_eq!(outcome.code(), Some(0));
        assert!(String::from_utf8_lossy(&outcome.stdout).contains("everything was finished"));
    };
    Box::pin(under(&load, &place, &questions, end)).await;
    load.assert_right("the end of a replica");
    drop(second);
}
