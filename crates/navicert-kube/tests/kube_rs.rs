//! Checks what README.md and docs/clients.md say about unmodified kube-rs, with the release that this workspace uses. When a test
//! fails, kube-rs has improved, and the docs have to be updated (client-credentials.md §11).
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests; a broken set-up should stop the test"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kube::config::KubeConfigOptions;
use navicert_client::exec::AuthenticatorRegistry;
use navicert_client::{Client, ConfigOptions};
use navicert_testkit::k8s::kubeconfig::exec_user;
use navicert_testkit::{ApiServer, Ca, FakeExecPlugin, Kubeconfig};
use navicert_types::clock::ManualClock;
use navicert_types::{Clock, SystemClock};
use serde_json::{Value, json};

/// Writes a kubeconfig for this server with this exec section.
fn kubeconfig(dir: &Path, api: &ApiServer, ca: &Ca, exec: &Value) -> PathBuf {
    let mut user = exec_user("replaced");
    user["exec"].as_object_mut().unwrap().extend(exec.as_object().unwrap().clone());
    Kubeconfig::new(api.url()).ca(ca).user(user).write(dir.join("config"))
}

async fn stock(path: &Path) -> Result<kube::Client, kube::Error> {
    let read = kube::config::Kubeconfig::read_from(path).unwrap();
    let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config)
}

fn ours(path: &Path) -> kube::Client {
    ours_at(path, Arc::new(SystemClock))
}

fn ours_at(path: &Path, clock: Arc<dyn Clock>) -> kube::Client {
    let environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    let config = ConfigOptions::new(environment, "/").kubeconfig(path).clock(clock).resolve().unwrap();
    let builder = Client::builder(config).registry(AuthenticatorRegistry::new());
    navicert_kube::client(builder.build().unwrap(), "default")
}

// C1115
#[tokio::test]
async fn kube_rs_runs_the_plugin_three_times_to_build_a_client_and_navicert_not_at_all() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    let plugin = FakeExecPlugin::start(|_| json!({"token": "t"}));
    let path = kubeconfig(dir.path(), &api, &ca, &json!({"command": plugin.write_plugin(dir.path())}));
    let _client = stock(&path).await.unwrap();
    assert_eq!(plugin.runs().len(), 3);
    let _client = ours(&path);
    assert_eq!(plugin.runs().len(), 3);
}

// C1118, C1119
#[tokio::test]
async fn kube_rs_keeps_a_revoked_token_and_navicert_refreshes_it() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    for run in 1..=9 {
        api.accept_token(&format!("token-{run}"), "ann", &[]);
    }
    let plugin = FakeExecPlugin::start(|run| json!({"token": format!("token-{run}")}));
    let path = kubeconfig(dir.path(), &api, &ca, &json!({"command": plugin.write_plugin(dir.path())}));
    let (theirs, ours) = (stock(&path).await.unwrap(), ours(&path));
    for client in [&theirs, &ours] {
        client.apiserver_version().await.unwrap();
    }
    let given = plugin.runs().len();
    (1..=given).for_each(|run| api.revoke_token(&format!("token-{run}")));
    for _ in 0..3 {
        assert!(theirs.apiserver_version().await.is_err());
        ours.apiserver_version().await.unwrap();
    }
    assert_eq!(plugin.runs().len(), given + 1, "one more run, by navicert");
}

// C1120
#[tokio::test]
async fn kube_rs_always_presents_its_first_certificate_and_navicert_the_current_one() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    let issuer = ca.clone();
    let plugin = FakeExecPlugin::start(move |run| {
        let identity = issuer.client(&format!("client-{run}")).issue();
        // Expired on arrival: the next request should run the plugin again.
        json!({
            "clientCertificateData": identity.chain_pem(), "clientKeyData": identity.key_pem(),
            "expirationTimestamp": "2020-01-01T00:00:00Z",
        })
    });
    let path = kubeconfig(dir.path(), &api, &ca, &json!({"command": plugin.write_plugin(dir.path())}));
    let theirs = stock(&path).await.unwrap();
    let seen = || api.requests().last().unwrap().client.clone().unwrap().common_name;
    theirs.apiserver_version().await.unwrap();
    let first = seen();
    for _ in 0..3 {
        theirs.apiserver_version().await.unwrap();
        assert_eq!(seen(), first);
    }
    let clock = Arc::new(ManualClock::at(1_900_000_000));
    let ours = ours_at(&path, Arc::clone(&clock) as Arc<dyn Clock>);
    for _ in 0..3 {
        ours.apiserver_version().await.unwrap();
        assert_eq!(seen(), format!("client-{}", plugin.runs().len()), "the plugin's newest certificate");
        // A credential that arrives expired is used for ten seconds (C412).
        clock.advance(Duration::from_secs(11));
    }
    assert_eq!(plugin.runs().len(), 6, "three to build kube-rs's client, three for navicert");
}

// C1129, C195
#[tokio::test]
async fn kube_rs_prints_the_plugins_environment_and_output_in_an_error_and_navicert_neither() {
    let ca = Ca::new("root");
    let (api, dir) = (ApiServer::start(&ca), tempfile::tempdir().unwrap());
    let exec = json!({
        "command": "/bin/sh", "args": ["-c", "echo canary-in-output; exit 1"],
        "env": [{"name": "PASSWORD", "value": "canary-in-environment"}],
    });
    let path = kubeconfig(dir.path(), &api, &ca, &exec);
    let theirs = stock(&path).await.err().unwrap();
    let theirs = format!("{theirs} {theirs:?}");
    assert!(theirs.contains("canary-in-environment") && theirs.contains("canary-in-output"), "{theirs}");
    let ours = ours(&path).apiserver_version().await.unwrap_err();
    let ours = format!("{} {ours:?}", navicert_types::error_chain(&ours));
    assert!(ours.contains("failed with exit code 1") && !ours.contains("canary"), "{ours}");
}
