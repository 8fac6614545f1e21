//! A long-running client whose token lives five units and whose certificate lives twenty: no request fails, the plugin
//! runs only when needed, and nothing leaks. A unit is a fifth of a second here; with `make soak` it is a second, and the
//! test takes ten minutes.
#![cfg(target_os = "linux")]
#![expect(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "test helpers; a failed setup stops the test, and it prints its figures"
)]

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use navicert_testkit::{Answer, ApiServer, Ca, FakeExecPlugin, Identity, Program, soak};
use navicert_types::{Clock, SystemClock, Timestamp};
use serde_json::{Value, json};

const CLIENT: &str = env!("CARGO_BIN_EXE_navicert-soak-client");
/// Lifetimes of tokens and certificates, in units.
const TOKEN_UNITS: u32 = 5;
const CERTIFICATE_UNITS: u32 = 20;
/// Duration of the short form.
const SHORT_DURATION: Duration = Duration::from_secs(12);

/// Issues tokens and certificates that expire at fixed times, so that the number needed does not depend on when the
/// plugin runs.
struct Issuer {
    ca: Arc<Ca>,
    unit: Duration,
    started: Timestamp,
    valid: Arc<Mutex<HashMap<String, Timestamp>>>,
    certificate: Option<(Timestamp, Identity)>,
    certificates: Arc<Mutex<usize>>,
}

impl Issuer {
    /// The first multiple of so many units that is at least half a step in the future.
    fn end(&self, units: u32, now: Timestamp) -> Timestamp {
        let step = (self.unit * units).as_millis();
        let passed = now.duration_since(self.started).unsigned_abs().as_millis();
        let steps = (passed + step / 2) / step + 1;
        self.started + Duration::from_millis(u64::try_from(steps * step).unwrap())
    }

    fn status(&mut self, run: usize) -> Value {
        let now = SystemClock.now();
        let (token, end) = (format!("token-{run}"), self.end(TOKEN_UNITS, now));
        self.valid.lock().unwrap().insert(token.clone(), end);
        if self.certificate.as_ref().is_none_or(|(until, _)| *until < end) {
            let until = self.end(CERTIFICATE_UNITS, end);
            let mut count = self.certificates.lock().unwrap();
            *count += 1;
            let name = format!("client-{count}");
            self.valid.lock().unwrap().insert(name.clone(), until);
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
    let length = SHORT_DURATION * u32::try_from(soak::factor()).unwrap();
    let is_long = soak::factor() > 1;
    let unit = if is_long { Duration::from_secs(1) } else { Duration::from_millis(200) };
    let ca = Arc::new(Ca::new("root"));
    let api = ApiServer::start(&ca);
    let valid = Arc::new(Mutex::new(HashMap::new()));
    let rejected = Arc::new(Mutex::new(Vec::new()));
    let (known, rejections) = (Arc::clone(&valid), Arc::clone(&rejected));
    // Like real servers, this one tolerates clock skew, but less than a token's lifetime.
    let leeway = unit * TOKEN_UNITS / 2;
    api.answer_with("/version", move |request| {
        let (expiries, now) = (known.lock().unwrap(), SystemClock.now());
        let name = request.client.as_ref().map(|client| client.common_name.as_str());
        let good = |what: Option<&str>| {
            what.and_then(|what| expiries.get(what)).is_some_and(|end| now < *end + leeway)
        };
        if good(request.bearer_token()) && good(name) {
            return Answer::json(&json!({"major": "1", "minor": "34"}));
        }
        rejections.lock().unwrap().push(format!("{now}: {:?} {name:?}", request.bearer_token()));
        Answer::unauthorized()
    });
    let certificates = Arc::new(Mutex::new(0));
    let mut issuer = Issuer {
        ca: Arc::clone(&ca),
        unit,
        started: SystemClock.now(),
        valid,
        certificate: None,
        certificates: Arc::clone(&certificates),
    };
    let plugin = FakeExecPlugin::start(move |run| issuer.status(run));
    let dir = tempfile::tempdir().unwrap();
    let config = kubeconfig(&dir, &ca, &api, &plugin);

    let pause = if is_long { "40" } else { "20" };
    let outcome = Program::new(CLIENT)
        .arguments([config.as_os_str(), length.as_millis().to_string().as_ref(), pause.as_ref()])
        .limit(length + Duration::from_secs(60))
        .run()
        .unwrap();
    let stderr = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(outcome.status.success(), "{stderr}");
    let report: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_u64).unwrap();
    let runs = plugin.runs().len();
    let rotations = *certificates.lock().unwrap();
    eprintln!("{} s, {runs} runs, {rotations} certificates: {report}", length.as_secs());

    assert_eq!(number("/bad"), 0, "{stderr}");
    assert_eq!(*rejected.lock().unwrap(), Vec::<String>::new(), "no request was retried");
    assert!(number("/good") > 100, "{report}");
    let steps = |units: u32| usize::try_from(length.as_millis() / (unit * units).as_millis()).unwrap();
    let expected = steps(TOKEN_UNITS) + 1;
    assert!(runs.abs_diff(expected) <= 1, "{runs} runs, {expected} expected");
    assert!(rotations.abs_diff(steps(CERTIFICATE_UNITS) + 1) <= 1, "{rotations} certificates");
    let (descriptors, memory) = (number("/descriptors/1"), number("/kibibytes/1"));
    assert!(descriptors <= number("/descriptors/0") + 4, "{report}");
    let allowance = number("/kibibytes/0") / 10 + 2048;
    assert!(memory <= number("/kibibytes/0") + allowance, "{report}");
}

fn kubeconfig(dir: &tempfile::TempDir, ca: &Ca, api: &ApiServer, plugin: &FakeExecPlugin) -> PathBuf {
    let dir = dir.path();
    fs::write(dir.join("ca.crt"), ca.pem()).unwrap();
    let config = json!({
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": api.url(), "certificate-authority": "ca.crt"}}],
        "users": [{"name": "u", "user": {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": plugin.write_plugin(dir),
        }}}],
    });
    let path = dir.join("config");
    fs::write(&path, config.to_string()).unwrap();
    path
}
