//! A long-running client whose token lives five units and whose certificate lives twenty: no request fails, the plugin
//! runs only when needed, and nothing leaks. A unit is ten rounds of requests, by a clock that the client advances: the
//! result does not depend on the speed of the machine. `make soak` runs fifty times as many rounds.
#![cfg(target_os = "linux")]
#![expect(
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "test helpers; a failed setup stops the test, and it prints its figures"
)]

mod client;

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::Plan;
use navicert_testkit::cli::program::child_input;
use navicert_testkit::{Answer, ApiServer, Ca, FakeExecPlugin, Identity, Kubeconfig, Program, soak, wait};
use navicert_types::Timestamp;
use serde_json::{Value, json};

/// The client's clock at the beginning, in seconds of the Unix epoch.
const START: i64 = 1_800_000_000;
/// What the client's clock advances after a round.
const ROUND: Duration = Duration::from_millis(100);
const REQUESTS_PER_ROUND: usize = 4;
/// Rounds of the short form: the lifetimes of twelve tokens or three certificates.
const SHORT_ROUNDS: u64 = 600;
/// Lifetimes of tokens and certificates.
const TOKEN_LIFETIME: Duration = Duration::from_secs(5);
const CERTIFICATE_LIFETIME: Duration = Duration::from_secs(20);
/// Header with the time at which a request was sent.
const TIME_HEADER: &str = "x-test-time";

/// The client's clock as the API server and the plugin see it, and what is valid until when.
#[derive(Default)]
struct Cluster {
    now: Mutex<Option<Timestamp>>,
    valid: Mutex<HashMap<String, Timestamp>>,
    rejected: Mutex<Vec<String>>,
    certificates: Mutex<usize>,
}

impl Cluster {
    fn is_valid(&self, name: Option<&str>, now: Timestamp) -> bool {
        name.is_some_and(|name| self.valid.lock().unwrap().get(name).is_some_and(|end| now < *end))
    }

    fn start() -> Timestamp {
        Timestamp::from_second(START).unwrap()
    }

    /// When the plugin runs: at the last request, or a round later.
    fn now(&self) -> Timestamp {
        self.now.lock().unwrap().unwrap_or_else(Cluster::start)
    }
}

/// Issues tokens and certificates that expire at fixed times, so that the number needed does not depend on when the
/// plugin runs.
struct Issuer {
    ca: Ca,
    cluster: Arc<Cluster>,
    certificate: Option<(Timestamp, Identity)>,
}

impl Issuer {
    /// The first multiple of this lifetime that is at least half of one in the future.
    fn end(lifetime: Duration, now: Timestamp) -> Timestamp {
        let step = lifetime.as_millis();
        let passed = now.duration_since(Cluster::start()).unsigned_abs().as_millis();
        let steps = (passed + step / 2) / step + 1;
        Cluster::start() + Duration::from_millis(u64::try_from(steps * step).unwrap())
    }

    fn status(&mut self, run: usize) -> Value {
        let (token, end) = (format!("token-{run}"), Issuer::end(TOKEN_LIFETIME, self.cluster.now()));
        self.cluster.valid.lock().unwrap().insert(token.clone(), end);
        if self.certificate.as_ref().is_none_or(|(until, _)| *until < end) {
            let until = Issuer::end(CERTIFICATE_LIFETIME, end);
            let mut count = self.cluster.certificates.lock().unwrap();
            *count += 1;
            let name = format!("client-{count}");
            self.cluster.valid.lock().unwrap().insert(name.clone(), until);
            self.certificate = Some((until, self.ca.client(&name).issue()));
        }
        let (_, identity) = self.certificate.as_ref().unwrap();
        json!({
            "token": token, "expirationTimestamp": end.to_string(),
            "clientCertificateData": identity.chain_pem(), "clientKeyData": identity.key_pem(),
        })
    }
}

#[test]
fn every_request_succeeds_and_nothing_leaks_while_tokens_and_certificates_rotate() {
    let rounds = SHORT_ROUNDS * soak::factor() as u64;
    let (ca, cluster) = (Ca::new("root"), Arc::new(Cluster::default()));
    let api = ApiServer::start(&ca);
    let server = Arc::clone(&cluster);
    api.answer_with("/version", move |request| {
        let now: Timestamp = request.header(TIME_HEADER).unwrap().parse().unwrap();
        *server.now.lock().unwrap() = Some(now);
        let name = request.client.as_ref().map(|client| client.common_name.as_str());
        if server.is_valid(request.bearer_token(), now) && server.is_valid(name, now) {
            return Answer::json(&json!({"major": "1", "minor": "34"}));
        }
        server.rejected.lock().unwrap().push(format!("{now}: {:?} {name:?}", request.bearer_token()));
        Answer::unauthorized()
    });
    let mut issuer = Issuer { ca: ca.clone(), cluster: Arc::clone(&cluster), certificate: None };
    let plugin = FakeExecPlugin::start(move |run| issuer.status(run));
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = Kubeconfig::new(api.url()).ca(&ca).exec(plugin.write_plugin(dir.path()));
    let kubeconfig = kubeconfig.write(dir.path().join("config"));

    let plan = Plan { kubeconfig, rounds, report: dir.path().join("report") };
    let limit = wait::LIMIT * u32::try_from(soak::factor()).unwrap();
    let outcome = Program::this_test("client_process", plan.to_json()).limit(limit).run().unwrap();
    let stderr = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(outcome.status.success(), "{stderr}");
    let report: Value = serde_json::from_slice(&fs::read(&plan.report).unwrap()).unwrap();
    let runs = plugin.runs().len();
    let rotations = *cluster.certificates.lock().unwrap();
    eprintln!("{rounds} rounds, {runs} runs, {rotations} certificates: {report}");

    assert_eq!(report["failures"], json!([]));
    assert_eq!(*cluster.rejected.lock().unwrap(), Vec::<String>::new(), "no request was retried");
    assert_eq!(report["good"], json!(rounds * REQUESTS_PER_ROUND as u64));
    let lifetimes = |lifetime: Duration| {
        usize::try_from(u128::from(rounds) * ROUND.as_millis() / lifetime.as_millis()).unwrap()
    };
    // One more each: the client refreshes before a token expires, also the last one.
    assert_eq!(runs, lifetimes(TOKEN_LIFETIME) + 1);
    assert_eq!(rotations, lifetimes(CERTIFICATE_LIFETIME) + 1);
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_u64).unwrap();
    assert!(number("/descriptors/1") <= number("/descriptors/0") + 4, "{report}");
    let allowance = number("/kibibytes/0") / 10 + 2048;
    assert!(number("/kibibytes/1") <= number("/kibibytes/0") + allowance, "{report}");
}

/// The other process of the test above.
#[tokio::test]
async fn client_process() {
    if let Some(plan) = child_input() {
        client::run(&plan).await;
    }
}
