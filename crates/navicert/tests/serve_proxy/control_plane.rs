//! A proxy before a real control plane, and the roles of its users.

use std::fs;
use std::path::Path;

use navicert_testkit::k8s::cluster::Cluster;
use navicert_testkit::{Program, wait};
use serde_json::{Value, json};

use super::setup::{Serving, Setup, text};

const MAPPINGS: &str = "{
  username: {claim: sub, prefix: 'corp:'}, groups: {claim: groups, prefix: 'corp:'}, uid: {claim: uid},
  extra: [{key: example.org/foo, valueExpression: claims.foo}]}";

/// A proxy before the cluster, with its own issuer, as this client.
pub(crate) fn prepare(cluster: &Cluster, proxy: &str, user: &Value) -> Setup {
    let setup = Setup::new();
    let config = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer: {}\n  claimMappings: {}\n",
        json!({
            "url": setup.issuer.issuer_url(), "audiences": ["kubernetes"], "certificateAuthority": setup.ca.pem(),
        }),
        MAPPINGS.replace('\n', " "),
    );
    setup.configure(proxy, &json!({"claim": "sub", "prefix": ""}));
    fs::write(setup.dir.path().join("authentication.yaml"), config).unwrap();
    setup.kubeconfig("proxy.kubeconfig", cluster.server(), user);
    // That kubeconfig is for the cluster's own authority.
    let path = setup.dir.path().join("proxy.kubeconfig");
    let mut kubeconfig: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    kubeconfig["clusters"][0]["cluster"]["certificate-authority"] = json!(cluster.ca());
    fs::write(path, kubeconfig.to_string()).unwrap();
    setup
}

pub(crate) fn kubectl(cluster: &Cluster, kubeconfig: &Path, arguments: &[&str]) -> Program {
    cluster.kubectl(kubeconfig).arguments(arguments)
}

pub(crate) fn admin(cluster: &Cluster, arguments: &[&str], stdin: &str) {
    let outcome =
        kubectl(cluster, cluster.admin_kubeconfig(), arguments).stdin(stdin.to_owned()).run().unwrap();
    assert_eq!(outcome.code(), Some(0), "{arguments:?}: {}", text(&outcome.stderr));
}

/// A ClusterRole with these rules, for this user.
pub(crate) fn role(cluster: &Cluster, name: &str, rules: &str, user: &str) {
    let role = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {name}}}\nrules:\n{rules}---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {name}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}\n\
         subjects: [{{kind: User, apiGroup: rbac.authorization.k8s.io, name: '{user}'}}]\n"
    );
    admin(cluster, &["apply", "-f", "-"], &role);
}

/// Asks until readiness has this code and this does not stand in it.
pub(crate) async fn readiness(serving: &Serving, code: u16, without: &str) -> String {
    let mut last = String::new();
    let asking = async {
        loop {
            let reply = serving.inspect("/readyz?verbose").await;
            reply.text().clone_into(&mut last);
            if reply.status.as_u16() == code && !last.contains("not checked yet") && !last.contains(without) {
                return;
            }
            // RBAC rules take a moment to apply, and permissions are checked on request.
            serving.program.signal("HUP");
            tokio::task::yield_now().await;
        }
    };
    let asked = tokio::time::timeout(wait::LIMIT, Box::pin(asking)).await;
    assert!(asked.is_ok(), "readiness {code} does not come: {last}");
    last
}
