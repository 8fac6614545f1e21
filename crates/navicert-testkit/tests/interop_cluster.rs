//! The control plane of `make interop`: the user the API server reports for each kind of credential.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use navicert_testkit::Kubeconfig;
use navicert_testkit::k8s::cluster::Cluster;

/// What kubectl prints; it has to succeed.
fn kubectl(cluster: &Cluster, kubeconfig: &Path, arguments: &[&str]) -> String {
    let outcome = cluster.kubectl(kubeconfig).arguments(arguments).run().unwrap();
    let complaint = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success(), "kubectl {arguments:?}: {complaint}");
    String::from_utf8(outcome.stdout).unwrap()
}

const USERNAME: &str = "jsonpath={.status.userInfo.username}";

#[test]
fn a_client_certificate_and_an_exec_plugin_s_token_both_list_namespaces() {
    let cluster = Cluster::shared();
    for (kubeconfig, user) in
        [(cluster.admin_kubeconfig(), "peers-admin"), (cluster.jwt_kubeconfig(), "peers:ann")]
    {
        let namespaces = kubectl(cluster, kubeconfig, &["get", "namespaces", "-o", "name"]);
        assert!(namespaces.lines().any(|line| line == "namespace/default"), "{user} sees {namespaces}");
        assert_eq!(kubectl(cluster, kubeconfig, &["auth", "whoami", "-o", USERNAME]), user);
    }
}

#[test]
fn a_token_of_another_subject_is_that_user_and_may_not_list() {
    let cluster = Cluster::shared();
    let token = cluster.token("bob", &["nobodies"]);
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = Kubeconfig::new(cluster.server()).ca_file(cluster.ca()).token(&token);
    let file = kubeconfig.write(directory.path().join("kubeconfig"));
    assert_eq!(kubectl(cluster, &file, &["auth", "whoami", "-o", USERNAME]), "peers:bob");
    let refused = cluster.kubectl(&file).arguments(["get", "namespaces"]).run().unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("Forbidden"));
}

#[test]
fn a_stopped_cluster_leaves_no_directory() {
    let cluster = Cluster::start();
    let directory = cluster.admin_kubeconfig().parent().unwrap().to_owned();
    assert!(directory.exists());
    cluster.stop();
    assert!(!directory.exists());
}
