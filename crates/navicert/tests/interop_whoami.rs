//! `navicert whoami` and `doctor` against a real API server, through an exec plugin whose token and certificate live for a
//! few seconds (`make interop`).
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests; a broken set-up should stop the test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use navicert_testkit::k8s::cluster::Cluster;
use navicert_testkit::{FakeExecPlugin, Kubeconfig, TestContext};
use navicert_types::{Clock, SystemClock};
use serde_json::{Value, json};

const LIFE: Duration = Duration::from_secs(3);

fn context(cluster: &Cluster, plugin_server: &FakeExecPlugin) -> TestContext {
    let context = TestContext::new().program("navicert", env!("CARGO_BIN_EXE_navicert"));
    let plugin = plugin_server.write_plugin(&context.directory());
    let config = Kubeconfig::new(cluster.server()).names("real", "c", "u").ca_file(cluster.ca()).exec(plugin);
    context.file("config", &config.to_string()).variable("KUBECONFIG", "config")
}

fn review(context: &TestContext) -> Value {
    let outcome = context.run("navicert whoami -o json");
    let complaint = String::from_utf8_lossy(&outcome.stderr);
    assert_eq!(outcome.code(), Some(0), "{complaint}");
    serde_json::from_slice(&outcome.stdout).unwrap()
}

fn text<'a>(review: &'a Value, pointer: &str) -> &'a str {
    review.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn whoami_follows_the_plugins_rotating_certificate_and_token() {
    let cluster = Cluster::shared();
    let authority = cluster.client_authority();
    let plugin_server = FakeExecPlugin::start(move |run| {
        let now = SystemClock.now();
        let mut status = json!({"expirationTimestamp": (now + LIFE).to_string()});
        let given = status.as_object_mut().unwrap();
        if run % 2 == 0 {
            given.insert("token".into(), json!(cluster.short_token("ann", &["developers"], LIFE)));
        } else {
            let ann =
                authority.client("peers:ann").organization("peers:developers").valid(now, now + LIFE).issue();
            given.insert("clientCertificateData".into(), json!(ann.chain_pem()));
            given.insert("clientKeyData".into(), json!(ann.key_pem()));
        }
        status
    });
    let context = context(cluster, &plugin_server);
    let mut credentials = BTreeSet::new();
    for run in 1..=6 {
        let review = review(&context);
        assert_eq!(text(&review, "/status/userInfo/username"), "peers:ann", "run {run}");
        assert!(review.to_string().contains("peers:developers"), "{review}");
        let id = text(&review, "/status/userInfo/extra/authentication.kubernetes.io~1credential-id/0");
        credentials.insert(id.to_owned());
    }
    assert_eq!(plugin_server.runs().len(), 6, "one run each");
    assert!(credentials.iter().filter(|id| id.starts_with("X509SHA256=")).count() >= 3, "{credentials:?}");
    let outcome = context.run("navicert doctor");
    let told = String::from_utf8_lossy(&outcome.stdout);
    assert_eq!(outcome.code(), Some(0), "{told}");
    assert!(told.ends_with("no problems found\n"), "{told}");
}

#[test]
fn a_refusal_of_the_real_server_is_explained() {
    let cluster = Cluster::shared();
    let plugin_server = FakeExecPlugin::start(|_| json!({"token": "unknown-token"}));
    let context = context(cluster, &plugin_server);
    let outcome = context.run("navicert whoami");
    assert_eq!(outcome.code(), Some(1));
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert!(
        said.starts_with("error: server rejected the request: 401 Unauthorized: Unauthorized;"),
        "{said}"
    );
    let told = context.run("navicert doctor").stdout;
    let told = String::from_utf8_lossy(&told);
    assert!(
        told.contains("FAIL  request    server responded with 401 Unauthorized, although the plugin has just returned the credential"),
        "{told}"
    );
}

#[test]
fn whoami_agrees_with_kubectl() {
    let cluster = Cluster::shared();
    for kubeconfig in [cluster.admin_kubeconfig(), cluster.jwt_kubeconfig()] {
        let ours = TestContext::new().program("navicert", env!("CARGO_BIN_EXE_navicert"));
        let ours = ours.variable("KUBECONFIG", &path(kubeconfig));
        let theirs = cluster.kubectl(kubeconfig).arguments(["auth", "whoami", "-o", "json"]).run().unwrap();
        let theirs: Value = serde_json::from_slice(&theirs.stdout).unwrap();
        let ours = review(&ours);
        for field in ["/apiVersion", "/kind", "/status/userInfo/username", "/status/userInfo/groups"] {
            assert_eq!(ours.pointer(field), theirs.pointer(field), "{field}");
        }
    }
}

fn path(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
