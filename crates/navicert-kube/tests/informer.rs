//! A kube-rs watcher whose credentials expire, are revoked and rotate while it runs (T20, T21, T29).
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers; a failed setup stops the test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use kube::{Api, ResourceExt};
use navicert_client::exec::AuthenticatorRegistry;
use navicert_client::{Client, ConfigOptions};
use navicert_testkit::{Answer, ApiServer, Ca, Cut, Kubeconfig, Watch, wait};
use navicert_types::Clock;
use navicert_types::clock::ManualClock;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/pods";

/// A cluster with one resource, one accepted credential, and a shell script as plugin.
struct Cluster {
    api: ApiServer,
    pods: Watch,
    /// The accepted credential: a token, or the common name of a certificate.
    accepted: Arc<Mutex<String>>,
    dir: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Cluster {
    fn new(ca: &Ca) -> Self {
        let api = ApiServer::start(ca);
        let (pods, accepted) = (Watch::new(), Arc::new(Mutex::new(String::new())));
        let (events, expected) = (pods.clone(), Arc::clone(&accepted));
        api.answer_with(PODS, move |request| {
            let certificate = request.client.as_ref().map(|client| client.common_name.as_str());
            if request.bearer_token().or(certificate) != Some(expected.lock().unwrap().as_str()) {
                return Answer::unauthorized();
            }
            if request.query().is_some_and(|query| query.contains("watch=true")) {
                return events.answer();
            }
            Answer::json(&json!({
                "kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"},
                "items": [pod("listed")],
            }))
        });
        let dir = tempfile::tempdir().unwrap();
        Cluster { api, pods, accepted, dir, clock: Arc::new(ManualClock::at(1_800_000_000)) }
    }

    fn accept(&self, credential: &str) {
        credential.clone_into(&mut self.accepted.lock().unwrap());
    }

    /// Sets the plugin's output from now on.
    fn set_plugin_status(&self, status: &Value) {
        let answer = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status,
        });
        fs::write(self.dir.path().join("answer"), answer.to_string()).unwrap();
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.dir.path().join("runs")).map_or(0, |runs| runs.lines().count())
    }

    fn client(&self, ca: &Ca) -> kube::Client {
        let dir = self.dir.path();
        let script = dir.join("plugin");
        let (runs, answer) = (dir.join("runs"), dir.join("answer"));
        let text = format!(
            "#!/bin/sh\necho run >> '{}'\n[ ! -e '{}' ] || exit 1\nexec cat '{}'\n",
            runs.display(),
            dir.join("fails").display(),
            answer.display()
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let path = Kubeconfig::new(self.api.url()).ca(ca).exec("./plugin").write(dir.join("config"));
        navicert_kube::client(self.transport(&path), "default")
    }

    fn transport(&self, path: &Path) -> Client {
        let environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
        let config = ConfigOptions::new(environment, self.dir.path())
            .kubeconfig(path)
            .clock(Arc::clone(&self.clock) as Arc<dyn Clock>)
            .resolve()
            .unwrap();
        Client::builder(config).registry(AuthenticatorRegistry::new()).build().unwrap()
    }
}

fn pod(name: &str) -> Value {
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default", "resourceVersion": "2"},
    })
}

type Events = Pin<Box<dyn Stream<Item = watcher::Result<Event<Pod>>>>>;

/// Waits until this pod is reported by a list or a watch; returns the number of errors before it.
async fn next_pod(events: &mut Events, name: &str) -> usize {
    let mut errors = 0;
    let find = async {
        loop {
            match events.next().await.unwrap() {
                Ok(Event::Apply(found) | Event::InitApply(found)) if found.name_any() == name => return,
                Ok(_) => {}
                Err(_) => errors += 1,
            }
        }
    };
    wait::within(name, find).await;
    errors
}

async fn error(events: &mut Events) -> watcher::Error {
    let find = async {
        loop {
            match events.next().await.unwrap() {
                Ok(Event::Apply(pod) | Event::InitApply(pod)) => panic!("{} came through", pod.name_any()),
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    };
    wait::within("an error", find).await
}

/// Delivers an event on the newest watch and waits for it; returns the number of errors before it.
async fn deliver(cluster: &Cluster, events: &mut Events, opened: usize, name: &str) -> usize {
    let push = async {
        cluster.pods.wait_for_opened(opened).await;
        cluster.pods.event(&json!({"type": "ADDED", "object": pod(name)}));
        std::future::pending().await
    };
    tokio::select! {
        errors = next_pod(events, name) => errors,
        never = push => never,
    }
}

// T20
#[tokio::test]
async fn informer_survives_expired_and_revoked_tokens_and_reset_connections() {
    let ca = Ca::new("root");
    let cluster = Cluster::new(&ca);
    cluster.accept("one");
    cluster.set_plugin_status(&json!({"token": "one", "expirationTimestamp": "2027-01-15T08:00:05Z"}));
    let client = cluster.client(&ca);
    let mut events: Events = Box::pin(watcher(Api::<Pod>::all(client), watcher::Config::default()));
    next_pod(&mut events, "listed").await;
    deliver(&cluster, &mut events, 1, "first").await;
    assert_eq!(cluster.runs(), 1);

    // The token expires after five seconds: the next request runs the plugin again, without an error.
    cluster.accept("two");
    cluster.set_plugin_status(&json!({"token": "two"}));
    cluster.clock.advance(Duration::from_secs(6));
    cluster.pods.finish();
    deliver(&cluster, &mut events, 2, "second").await;
    assert_eq!(cluster.runs(), 2);

    // The token is revoked, the plugin returns no valid one, and connections are reset: errors, no events, few runs.
    cluster.accept("three");
    cluster.api.cut_connections(Cut::Reset);
    for _ in 0..20 {
        error(&mut events).await;
    }
    let runs = cluster.runs();
    assert!((3..=5).contains(&runs), "{runs} runs");

    // The plugin returns a valid token again: the informer recovers by itself after the back-off.
    cluster.set_plugin_status(&json!({"token": "three"}));
    cluster.clock.advance(Duration::from_secs(60));
    let errors = deliver(&cluster, &mut events, 3, "third").await;
    assert_eq!(errors, 0, "the informer does not see the 401 of the old token");
    assert_eq!(cluster.runs(), runs + 1);
}

// T21, C441
#[tokio::test]
async fn informer_recovers_when_its_plugin_does_and_the_plugin_runs_back_off() {
    let ca = Ca::new("root");
    let cluster = Cluster::new(&ca);
    cluster.accept("one");
    cluster.set_plugin_status(&json!({"token": "one"}));
    let fails = cluster.dir.path().join("fails");
    fs::write(&fails, "").unwrap();
    let client = cluster.client(&ca);
    let mut events: Events = Box::pin(watcher(Api::<Pod>::all(client), watcher::Config::default()));
    // Three failed runs; the clock advances only between two of the watcher's many attempts.
    let step = Duration::from_millis(50);
    let mut waits: Vec<Duration> = Vec::new();
    let mut since = Duration::ZERO;
    let mut errors = 0;
    while cluster.runs() < 3 {
        let before = cluster.runs();
        error(&mut events).await;
        errors += 1;
        if cluster.runs() > before {
            waits.push(std::mem::take(&mut since));
        }
        cluster.clock.advance(step);
        since += step;
    }
    assert!(errors > 30, "{errors} errors: the watcher kept retrying");
    for (wait, doubled) in waits.iter().skip(1).zip([1, 2]) {
        let (min, max) =
            (Duration::from_millis(800 * doubled), Duration::from_millis(1_200 * doubled) + 2 * step);
        assert!((min..=max).contains(wait), "{waits:?}");
    }
    // The fourth run, after about four seconds, succeeds.
    fs::remove_file(&fails).unwrap();
    cluster.clock.advance(Duration::from_secs(5));
    next_pod(&mut events, "listed").await;
    deliver(&cluster, &mut events, 1, "first").await;
    assert_eq!(cluster.runs(), 4);
}

// T20, T29, C462
#[tokio::test]
async fn informer_keeps_its_watch_through_a_rotation_and_other_requests_use_the_new_certificate() {
    let ca = Ca::new("root");
    let cluster = Cluster::new(&ca);
    let status = |name: &str| {
        let identity = ca.client(name).issue();
        json!({
            "clientCertificateData": identity.chain_pem(), "clientKeyData": identity.key_pem(),
            "expirationTimestamp": "2027-01-15T08:00:20Z",
        })
    };
    cluster.accept("ann");
    cluster.set_plugin_status(&status("ann"));
    let client = cluster.client(&ca);
    let api = Api::<Pod>::all(client.clone());
    let mut events: Events = Box::pin(watcher(api.clone(), watcher::Config::default()));
    next_pod(&mut events, "listed").await;
    deliver(&cluster, &mut events, 1, "before").await;

    cluster.accept("bob");
    cluster.set_plugin_status(&status("bob"));
    cluster.clock.advance(Duration::from_secs(21));
    let listed = wait::within("a list", api.list(&kube::api::ListParams::default())).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    deliver(&cluster, &mut events, 1, "after").await;
    assert_eq!(cluster.pods.open_streams(), 1, "the watch with the old certificate stays open");
    let users: Vec<_> =
        cluster.api.requests().into_iter().map(|request| request.client.unwrap().common_name).collect();
    assert_eq!(users, ["ann", "ann", "bob"]);
}
