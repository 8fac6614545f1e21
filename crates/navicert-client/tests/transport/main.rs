//! From a kubeconfig file to a response, with a real plugin and a real server (T02, T05, T23, T24, T28, T30).
#![cfg(unix)]
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "test helpers; a failed setup stops the test"
)]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use navicert_client::ClientContext;
use navicert_client::exec::{self, AuthenticatorRegistry};
use navicert_client::transport::{Body, Transport};
use navicert_client::{Client, ConfigOptions};
use navicert_testkit::cli::FAKE_PLUGIN;
use navicert_testkit::k8s::kubeconfig::exec_user;
use navicert_testkit::{ApiServer, Ca, Kubeconfig, wait};
use navicert_types::Clock;
use navicert_types::clock::ManualClock;
use serde_json::{Value, json};

/// A directory with a kubeconfig for a server, and a plugin that returns token-1, token-2 and so on.
struct Setup {
    dir: tempfile::TempDir,
    clock: Arc<ManualClock>,
    transport: Transport,
}

impl Setup {
    fn new(api: &ApiServer, ca: &Ca, with_plugin: bool, user: impl FnOnce(&Path) -> Value) -> Self {
        Setup::with(api, ca, &exec::ExecSettings::default(), with_plugin.then_some("0"), user)
    }

    /// With these settings, and a plugin that exits with this code.
    fn with(
        api: &ApiServer,
        ca: &Ca,
        settings: &exec::ExecSettings,
        plugin_exit: Option<&str>,
        user: impl FnOnce(&Path) -> Value,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut user = user(dir.path());
        if let Some(exit) = plugin_exit {
            let stdout = json!({
                "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                "status": {"token": "token-{n}"},
            });
            let runs = dir.path().join("runs");
            user["exec"] = exec_user(FAKE_PLUGIN)["exec"].take();
            user["exec"]["env"] = json!([
                {"name": "FAKE_RUNS", "value": runs},
                {"name": "FAKE_STDOUT", "value": stdout.to_string()},
                {"name": "FAKE_EXIT", "value": exit},
            ]);
        }
        let path = Kubeconfig::new(api.url()).ca(ca).user(user).write(dir.path().join("config"));
        let clock = Arc::new(ManualClock::at(1_800_000_000));
        let client_context = ClientContext {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            registry: AuthenticatorRegistry::new(),
            ..ClientContext::new(navicert_plugin::Environment::empty())
        };
        let config = ConfigOptions::new(navicert_plugin::Environment::empty(), dir.path())
            .kubeconfig(&path)
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .resolve()
            .unwrap();
        let builder = Client::builder(config).exec_settings(settings.clone()).client_context(client_context);
        Setup { transport: builder.build().unwrap().into(), dir, clock }
    }

    async fn status(&self) -> u16 {
        status(self.transport.clone()).await
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.dir.path().join("runs")).map_or(0, |runs| runs.lines().count())
    }
}

async fn status(transport: Transport) -> u16 {
    let request = http::Request::get("/version").body(Body::empty()).unwrap();
    wait::within("an answer", transport.send(request)).await.unwrap().status().as_u16()
}

// T02, T05
#[tokio::test]
async fn plugin_runs_once_for_concurrent_first_requests_and_later_ones() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("token-1", "ann", &[]);
    let setup = Setup::new(&api, &ca, true, |_| json!({}));
    assert_eq!(setup.runs(), 0, "no plugin runs before the first request");
    let tasks: Vec<_> = (0..64).map(|_| tokio::spawn(status(setup.transport.clone()))).collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), 200);
    }
    for _ in 0..100 {
        assert_eq!(setup.status().await, 200);
    }
    assert_eq!(setup.runs(), 1);
}

// T28, C432, C442
#[tokio::test]
async fn revoked_token_causes_one_run_and_a_server_that_always_rejects_causes_few() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    for token in ["token-1", "token-2"] {
        api.accept_token(token, "ann", &[]);
    }
    let setup = Setup::new(&api, &ca, true, |_| json!({}));
    assert_eq!(setup.status().await, 200);
    api.revoke_token("token-1");
    assert_eq!((setup.status().await, setup.runs()), (200, 2));

    setup.clock.advance(Duration::from_secs(3600));
    api.revoke_token("token-2");
    for _ in 0..50 {
        assert_eq!(setup.status().await, 401);
    }
    let runs = setup.runs();
    assert!((3..=5).contains(&runs), "{runs} runs for fifty rejected requests");
    api.accept_token(&format!("token-{}", runs + 1), "ann", &[]);
    setup.clock.advance(Duration::from_secs(60));
    assert_eq!(setup.status().await, 200, "the plugin runs again after the back-off");
}

// T24, C470, C167
#[tokio::test]
async fn static_credential_disables_the_plugin_whether_accepted_or_rejected() {
    let ca = Ca::new("root");
    let ann = ca.client("ann").issue();
    let in_files = |dir: &Path| {
        ann.write_to(dir, "ann");
        fs::write(dir.join("token"), "static\n").unwrap();
    };
    for (user, rejected) in [
        (json!({"token": "static"}), 401),
        (json!({"tokenFile": "token"}), 401),
        (json!({"username": "ann", "password": "secret"}), 401),
        (json!({"client-certificate": "ann.crt", "client-key": "ann.key"}), 200),
    ] {
        let api = ApiServer::start(&ca);
        let make = |dir: &Path| {
            in_files(dir);
            user.clone()
        };
        let setup = Setup::new(&api, &ca, true, make);
        assert_eq!(setup.status().await, rejected, "{user}");
        api.accept_everyone();
        api.accept_token("static", "ann", &[]);
        let _ = setup.status().await;
        assert_eq!(setup.runs(), 0, "{user}");
        let seen = api.requests();
        let (header, client) =
            (seen.first().unwrap().header("authorization"), seen.first().unwrap().client.as_ref());
        assert!(header.is_some() != client.is_some(), "{user}");
    }
}

// C455, C163
#[tokio::test]
async fn certificate_files_of_a_kubeconfig_user_are_reloaded() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    let write = |dir: &Path, name: &str| ca.client(name).issue().write_to(dir, "user");
    let setup = Setup::new(&api, &ca, false, |dir| {
        write(dir, "ann");
        json!({"client-certificate": "user.crt", "client-key": "user.key"})
    });
    assert_eq!(setup.status().await, 200);
    write(setup.dir.path(), "bob");
    setup.clock.advance(Duration::from_secs(1));
    assert_eq!(setup.status().await, 200);
    let users: Vec<_> =
        api.requests().into_iter().map(|request| request.client.unwrap().common_name).collect();
    assert_eq!(users, ["ann", "bob"]);
}

// T30, C152
#[tokio::test]
async fn user_without_credentials_is_anonymous() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_everyone();
    let setup = Setup::new(&api, &ca, false, |_| json!({}));
    assert_eq!(setup.status().await, 200);
    assert_eq!(api.requests().first().unwrap().header("authorization"), None);
}

/// Sends requests evenly over five seconds of the test's clock; returns how often the plugin ran.
async fn flood(setup: &Setup, requests: u32) -> usize {
    let pause = Duration::from_secs(5) / requests;
    for _ in 0..requests {
        let request = http::Request::get("/version").body(Body::empty()).unwrap();
        let outcome = wait::within("an answer", setup.transport.send(request)).await;
        assert!(outcome.is_err() || outcome.unwrap().status() == 401);
        setup.clock.advance(pause);
    }
    setup.runs()
}

// T23, C441, C442
#[tokio::test]
async fn failing_or_rejected_plugin_runs_at_most_four_times_in_five_seconds_of_load() {
    let ca = Ca::new("root");
    for exit in ["1", "0"] {
        let api = ApiServer::start(&ca);
        let settings = exec::ExecSettings::default();
        let setup = Setup::with(&api, &ca, &settings, Some(exit), |_| json!({}));
        let runs = flood(&setup, 5_000).await;
        assert!((2..=4).contains(&runs), "{runs} runs of a plugin that exits with {exit}");
    }
}

// T23, control: without back-off it is a hot loop.
#[tokio::test]
async fn without_back_off_every_request_runs_the_plugin() {
    let ca = Ca::new("root");
    for exit in ["1", "0"] {
        let api = ApiServer::start(&ca);
        let settings = exec::ExecSettings { backoff: None, ..exec::ExecSettings::default() };
        let setup = Setup::with(&api, &ca, &settings, Some(exit), |_| json!({}));
        let runs = flood(&setup, 50).await;
        assert!(runs >= 50, "{runs} runs of a plugin that exits with {exit}");
    }
}
