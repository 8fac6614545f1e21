//! `navicert run` between the current kubectl and a real kube-apiserver (`make interop`): whose rights a command has, by
//! certificate and by plugin, and what a read-only gateway lets through.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use navicert_testkit::Program;
use navicert_testkit::cluster::Cluster;
use navicert_testkit::program::Outcome;
use serde_json::Value;

/// `navicert run [flags] -- kubectl …` with the kubectl that belongs to the cluster.
fn run(cluster: &Cluster, kubeconfig: &Path, flags: &[&str], arguments: &[&str]) -> Outcome {
    let home = tempfile::tempdir().unwrap();
    let kubectl = cluster.kubectl(kubeconfig).to_string();
    Program::new(env!("CARGO_BIN_EXE_navicert"))
        .arguments(["run"])
        .arguments(flags)
        .arguments(["--", kubectl.as_str()])
        .arguments(arguments)
        .variable("HOME", home.path())
        .variable("KUBECONFIG", kubeconfig)
        .run()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeds(cluster: &Cluster, kubeconfig: &Path, flags: &[&str], arguments: &[&str]) -> String {
    let outcome = run(cluster, kubeconfig, flags, arguments);
    assert_eq!(outcome.code(), Some(0), "{flags:?} {arguments:?}: {}", text(&outcome.stderr));
    text(&outcome.stdout)
}

// Issue 8: whoami through the gateway is the certificate's user and groups; so is a plugin's token.
#[test]
fn a_command_is_whoever_the_credential_says() {
    let Some(cluster) = Cluster::shared() else { return };
    for (kubeconfig, user, group) in [
        (cluster.admin_kubeconfig(), "peers-admin", "system:masters"),
        (cluster.jwt_kubeconfig(), "peers:ann", "peers:developers"),
    ] {
        for flags in [&[][..], &["--read-only"]] {
            let review = succeeds(cluster, kubeconfig, flags, &["auth", "whoami", "-o", "json"]);
            let review: Value = serde_json::from_str(&review).unwrap();
            assert_eq!(review["status"]["userInfo"]["username"], user);
            let groups = review["status"]["userInfo"]["groups"].to_string();
            assert!(groups.contains(group), "{groups}");
        }
    }
}

#[test]
fn reading_and_writing_go_through_and_a_watch_ends_with_its_command() {
    let Some(cluster) = Cluster::shared() else { return };
    let admin = cluster.admin_kubeconfig();
    let made = succeeds(cluster, admin, &[], &["create", "namespace", "through-the-gateway"]);
    assert!(made.contains("created"), "{made}");
    let listed = succeeds(cluster, admin, &[], &["get", "namespaces", "-o", "name"]);
    assert!(listed.contains("namespace/through-the-gateway"), "{listed}");
    let waited =
        ["wait", "--for=jsonpath={.status.phase}=Active", "namespace/through-the-gateway", "--timeout=20s"];
    assert!(succeeds(cluster, admin, &[], &waited).contains("condition met"));
    let applied = ["apply", "--server-side", "-f", "-"];
    let manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: through-the-gateway}, data: {a: b}}";
    let home = tempfile::tempdir().unwrap();
    let kubectl = cluster.kubectl(admin).to_string();
    let outcome = Program::new(env!("CARGO_BIN_EXE_navicert"))
        .arguments(["run", "--", kubectl.as_str()])
        .arguments(applied)
        .variable("HOME", home.path())
        .variable("KUBECONFIG", admin)
        .stdin(manifest)
        .run()
        .unwrap();
    assert_eq!(outcome.code(), Some(0), "{}", text(&outcome.stderr));
}

#[test]
fn a_read_only_gateway_lets_look_and_ask_but_not_change() {
    let Some(cluster) = Cluster::shared() else { return };
    let admin = cluster.admin_kubeconfig();
    let read_only = ["--read-only"];
    assert!(succeeds(cluster, admin, &read_only, &["get", "namespaces"]).contains("default"));
    assert_eq!(succeeds(cluster, admin, &read_only, &["auth", "can-i", "delete", "pods"]).trim(), "yes");
    succeeds(cluster, admin, &read_only, &["api-resources"]);
    succeeds(cluster, admin, &read_only, &["explain", "pods.spec"]);
    for arguments in [
        &["create", "namespace", "never"][..],
        &["delete", "namespace", "default"],
        &["label", "namespace", "default", "a=b"],
        &["create", "token", "default"],
        &["get", "--raw", "/api/v1/namespaces/default/services/kubernetes/proxy/"],
    ] {
        let refused = run(cluster, admin, &read_only, arguments);
        assert_ne!(refused.code(), Some(0), "{arguments:?}");
        assert!(text(&refused.stderr).contains("read-only"), "{arguments:?}: {}", text(&refused.stderr));
    }
    let never = run(cluster, admin, &[], &["get", "namespace", "never"]);
    assert_ne!(never.code(), Some(0));
}

// The API server's own refusal arrives as it is.
#[test]
fn a_user_without_rights_is_told_so_by_the_api_server() {
    let Some(cluster) = Cluster::shared() else { return };
    let refused = run(cluster, cluster.jwt_kubeconfig(), &[], &["delete", "namespace", "default"]);
    assert_ne!(refused.code(), Some(0));
    assert!(text(&refused.stderr).contains("Forbidden"), "{}", text(&refused.stderr));
}
