//! docs/symptoms.md: texts that only a recent kubectl prints (`make interop`, which builds one).

use navicert_testkit::k8s::cluster::Cluster;
use navicert_testkit::{Kubeconfig, TestContext};
use serde_json::json;

#[test]
fn recent_kubectl_prints_what_the_row_quotes() {
    let symptoms = include_str!("../../../docs/symptoms.md");
    let (row, arguments) = symptoms
        .lines()
        .find_map(|line| line.split_once("<!-- doctor/auth-provider-removed interop kubectl "))
        .unwrap();
    let (seen, arguments) = (row.split('`').nth(1).unwrap(), arguments.split(" -->").next().unwrap());
    let cluster = Cluster::shared();
    let config = Kubeconfig::new(cluster.server())
        .ca_file(cluster.ca())
        .user(json!({"auth-provider": {"name": "gcp"}}));
    let context = TestContext::new().file("config", &config.to_string());
    let kubectl = cluster.kubectl(&context.directory().join("config"));
    let outcome = kubectl.arguments(arguments.split(' ')).merged().run().unwrap();
    let printed = String::from_utf8_lossy(&outcome.stdout);
    assert!(outcome.code() == Some(1) && printed.contains(seen), "`{seen}`: {printed}");
}
