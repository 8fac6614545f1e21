//! The example controller against a real API server, through an exec plugin whose token and certificate live for a few
//! seconds (`make interop`).
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "test helpers; a failed setup stops the test")]

#[path = "../examples/controller/counting.rs"]
mod counting;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, PostParams};
use navicert_testkit::k8s::cluster::Cluster;
use navicert_testkit::{Ca, FakeExecPlugin, Kubeconfig, wait};
use navicert_types::{Clock, SystemClock};
use serde_json::{Value, json};

const TOKEN_LIFETIME: Duration = Duration::from_secs(3);
const CERTIFICATE_LIFETIME: Duration = Duration::from_secs(6);

fn kubectl(cluster: &Cluster, arguments: &[&str]) {
    let outcome = cluster.kubectl(cluster.admin_kubeconfig()).arguments(arguments).run().unwrap();
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
}

/// A plugin that issues short-lived tokens and, optionally, certificates; the API server authenticates both.
fn rotating(cluster: &'static Cluster, authority: Ca, with_certificate: bool) -> FakeExecPlugin {
    let mut certificate: Option<(navicert_types::Timestamp, Value)> = None;
    FakeExecPlugin::start(move |run| {
        let now = SystemClock.now();
        let mut status = json!({
            "token": cluster.short_token("rotating", &["rotators"], TOKEN_LIFETIME + Duration::from_secs(1)),
            "expirationTimestamp": (now + TOKEN_LIFETIME).to_string(),
        });
        if with_certificate {
            if certificate.as_ref().is_none_or(|(until, _)| *until < now + TOKEN_LIFETIME) {
                let until = now + CERTIFICATE_LIFETIME;
                let name = format!("rotating-{run}");
                let identity =
                    authority.client(&name).organization("peers:rotators").valid(now, until).issue();
                let pair = json!({"clientCertificateData": identity.chain_pem(), "clientKeyData": identity.key_pem()});
                certificate = Some((until, pair));
            }
            let (_, pair) = certificate.as_ref().unwrap();
            status.as_object_mut().unwrap().extend(pair.as_object().unwrap().clone());
        }
        status
    })
}

fn kubeconfig(cluster: &Cluster, plugin: &FakeExecPlugin, dir: &Path, namespace: &str) -> PathBuf {
    Kubeconfig::new(cluster.server())
        .ca_file(cluster.ca())
        .exec(plugin.write_plugin(dir))
        .namespace(namespace)
        .write(dir.join("config"))
}

/// Creates a ConfigMap and waits until the controller has counted its entries.
async fn counted(maps: &Api<ConfigMap>, admin: &Api<ConfigMap>, name: &str) {
    let map: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {(counting::LABEL): "yes"}}, "data": {"a": "1", "b": "2"},
    }))
    .unwrap();
    admin.create(&PostParams::default(), &map).await.unwrap();
    let watched = kube::runtime::wait::await_condition(maps.clone(), name, |map: Option<&ConfigMap>| {
        let annotations = map.and_then(|map| map.metadata.annotations.as_ref());
        annotations.and_then(|all| all.get(counting::LABEL)).is_some_and(|count| count == "2")
    });
    wait::within(name, watched).await.unwrap();
}

/// Runs the controller for at least so many credential rotations; returns how many names it counted.
async fn survives(with_certificate: bool, runs: usize) {
    let cluster = Cluster::shared();
    let namespace = if with_certificate { "with-certificate" } else { "with-token" };
    kubectl(cluster, &["create", "namespace", namespace]);
    kubectl(
        cluster,
        &["-n", namespace, "create", "role", "count", "--verb=get,list,watch,patch", "--resource=configmaps"],
    );
    kubectl(
        cluster,
        &["-n", namespace, "create", "rolebinding", "count", "--role=count", "--group=peers:rotators"],
    );

    let plugin = rotating(cluster, cluster.client_authority(), with_certificate);
    let dir = tempfile::tempdir().unwrap();
    let config = kubeconfig(cluster, &plugin, dir.path(), namespace);
    let client = counting::client(&config).unwrap();
    assert_eq!(client.default_namespace(), namespace);
    let admin = counting::client(cluster.admin_kubeconfig()).unwrap();
    let (maps, admin) =
        (Api::<ConfigMap>::default_namespaced(client.clone()), Api::namespaced(admin, namespace));

    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let (recorded, (stop, stopped)) = (Arc::clone(&outcomes), tokio::sync::oneshot::channel::<()>());
    let stopped = async {
        let _ = stopped.await;
    };
    let running = tokio::spawn(counting::run(client.clone(), stopped, move |outcome| {
        recorded.lock().unwrap().push(outcome);
    }));
    let mut names = 0;
    while plugin.runs().len() < runs {
        names += 1;
        counted(&maps, &admin, &format!("map-{names}")).await;
        // A request is always sent with the newest credential.
        let listed = maps.list(&ListParams::default().labels(counting::LABEL)).await.unwrap();
        assert_eq!(listed.items.len(), names);
    }
    drop(stop);
    wait::within("the controller to stop", running).await.unwrap();
    let errors: Vec<String> =
        outcomes.lock().unwrap().iter().filter_map(|outcome| outcome.clone().err()).collect();
    assert_eq!(errors, Vec::<String>::new());
    assert!(names >= runs, "{names} maps over {runs} credentials");
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_with_short_lived_certificates_and_tokens_never_fails() {
    survives(true, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_with_short_lived_tokens_never_fails() {
    survives(false, 6).await;
}
