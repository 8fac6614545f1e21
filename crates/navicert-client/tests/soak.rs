//! A client that goes on and on while its token lives five units and its certificate twenty: no request fails, the plugin
//! runs when it has to and not more often, and nothing is left behind. A unit is a fifth of a second here; `make soak` makes
//! it a second, and the whole ten minutes.
#![cfg(target_os = "linux")]
#![expect(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "helpers of a test; a broken set-up should stop it, and its figures are worth seeing"
)]

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use navicert_testkit::{Answer, ApiServer, Ca, Identity, PluginDesk, Program, soak};
use navicert_types::{Clock, SystemClock, Timestamp};
use serde_json::{Value, json};

const CLIENT: &str = env!("CARGO_BIN_EXE_navicert-soak-client");
/// How long a token lives, and a certificate, in units.
const TOKEN: u32 = 5;
const CERTIFICATE: u32 = 20;
/// How long the short form is.
const SHORT: Duration = Duration::from_secs(12);

/// Hands out tokens and certificates that end at fixed moments, so that how many are needed does not depend on when a
/// plugin happens to be run.
struct Issuer {
    ca: Arc<Ca>,
    unit: Duration,
    begun: Timestamp,
    valid: Arc<Mutex<HashMap<String, Timestamp>>>,
    certificate: Option<(Timestamp, Identity)>,
    certificates: Arc<Mutex<usize>>,
}

impl Issuer {
    /// The first moment on a grid of so many units that is at least half a step away.
    fn end(&self, units: u32, now: Timestamp) -> Timestamp {
        let step = (self.unit * units).as_millis();
        let passed = now.duration_since(self.begun).unsigned_abs().as_millis();
        let steps = (passed + step / 2) / step + 1;
        self.begun + Duration::from_millis(u64::try_from(steps * step).unwrap())
    }

    fn status(&mut self, run: usize) -> Value {
        let now = SystemClock.now();
        let (token, end) = (format!("token-{run}"), self.end(TOKEN, now));
        self.valid.lock().unwrap().insert(token.clone(), end);
        if self.certificate.as_ref().is_none_or(|(until, _)| *until < end) {
            let until = self.end(CERTIFICATE, end);
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
fn while_tokens_and_certificates_come_and_go_every_request_is_answered_and_nothing_grows() {
    let length = SHORT * u32::try_from(soak::factor()).unwrap();
    let is_long = soak::factor() > 1;
    let unit = if is_long { Duration::from_secs(1) } else { Duration::from_millis(200) };
    let ca = Arc::new(Ca::new("root"));
    let api = ApiServer::start(&ca);
    let valid = Arc::new(Mutex::new(HashMap::new()));
    let refused = Arc::new(Mutex::new(Vec::new()));
    let (desk, complaints) = (Arc::clone(&valid), Arc::clone(&refused));
    // Servers allow for clocks that differ; so does this one, but for less than a token's life.
    let leeway = unit * TOKEN / 2;
    api.answer_with("/version", move |request| {
        let (known, now) = (desk.lock().unwrap(), SystemClock.now());
        let name = request.client.as_ref().map(|client| client.common_name.as_str());
        let good =
            |what: Option<&str>| what.and_then(|what| known.get(what)).is_some_and(|end| now < *end + leeway);
        if good(request.bearer_token()) && good(name) {
            return Answer::json(&json!({"major": "1", "minor": "34"}));
        }
        complaints.lock().unwrap().push(format!("{now}: {:?} {name:?}", request.bearer_token()));
        Answer::unauthorized()
    });
    let certificates = Arc::new(Mutex::new(0));
    let mut issuer = Issuer {
        ca: Arc::clone(&ca),
        unit,
        begun: SystemClock.now(),
        valid,
        certificate: None,
        certificates: Arc::clone(&certificates),
    };
    let desk = PluginDesk::start(move |run| issuer.status(run));
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(&folder, &ca, &api, &desk);

    let pause = if is_long { "40" } else { "20" };
    let outcome = Program::new(CLIENT)
        .arguments([config.as_os_str(), length.as_millis().to_string().as_ref(), pause.as_ref()])
        .limit(length + Duration::from_secs(60))
        .run()
        .unwrap();
    let complaint = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(outcome.status.success(), "{complaint}");
    let told: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    let number = |pointer: &str| told.pointer(pointer).and_then(Value::as_u64).unwrap();
    let runs = desk.runs().len();
    let rotations = *certificates.lock().unwrap();
    eprintln!("{} s, {runs} runs, {rotations} certificates: {told}", length.as_secs());

    assert_eq!(number("/bad"), 0, "{complaint}");
    assert_eq!(*refused.lock().unwrap(), Vec::<String>::new(), "no request had to be sent twice");
    assert!(number("/good") > 100, "{told}");
    let steps = |units: u32| usize::try_from(length.as_millis() / (unit * units).as_millis()).unwrap();
    let expected = steps(TOKEN) + 1;
    assert!(runs.abs_diff(expected) <= 1, "{runs} runs, {expected} expected");
    assert!(rotations.abs_diff(steps(CERTIFICATE) + 1) <= 1, "{rotations} certificates");
    let (descriptors, memory) = (number("/descriptors/1"), number("/kibibytes/1"));
    assert!(descriptors <= number("/descriptors/0") + 4, "{told}");
    let room = number("/kibibytes/0") / 10 + 2048;
    assert!(memory <= number("/kibibytes/0") + room, "{told}");
}

fn kubeconfig(folder: &tempfile::TempDir, ca: &Ca, api: &ApiServer, desk: &PluginDesk) -> PathBuf {
    let folder = folder.path();
    fs::write(folder.join("ca.crt"), ca.pem()).unwrap();
    let config = json!({
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": api.url(), "certificate-authority": "ca.crt"}}],
        "users": [{"name": "u", "user": {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": desk.write_plugin(folder),
        }}}],
    });
    let path = folder.join("config");
    fs::write(&path, config.to_string()).unwrap();
    path
}
