//! Service-account tokens from a real kube-apiserver: as a service account, and as a pod.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

mod image_support;

use std::fs;

use image_support::Fixture;
use navicert_testkit::k8s::cluster::Cluster;
use serde_json::{Value, json};

const ATTRIBUTES: &str = "{serviceAccountTokenAudience: registry.example, cacheType: Token, requireServiceAccount: true, \
    requiredServiceAccountAnnotationKeys: [example.com/role]}";

/// The claims of the token that reached the provider.
fn claims(fixture: &Fixture) -> Value {
    use base64::Engine as _;
    let request = fixture.request().unwrap();
    let token = request.pointer("/serviceAccountToken").and_then(Value::as_str).unwrap().to_owned();
    let payload = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

#[test]
fn provider_receives_a_token_from_a_real_api_server() {
    // I112–I114
    let cluster = Cluster::shared();
    let kubectl = |arguments: &[&str]| {
        let outcome = cluster.kubectl(cluster.admin_kubeconfig()).arguments(arguments).run().unwrap();
        assert!(outcome.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&outcome.stderr));
    };
    kubectl(&["create", "namespace", "images"]);
    kubectl(&["create", "serviceaccount", "builder", "-n", "images"]);
    kubectl(&["annotate", "serviceaccount", "builder", "-n", "images", "example.com/role=puller"]);
    let pod = json!({"spec": {"serviceAccountName": "builder"}}).to_string();
    kubectl(&["run", "app-0", "-n", "images", "--image=registry.example/app", "--overrides", &pod]);

    let fixture = Fixture::new(ATTRIBUTES);
    fs::copy(cluster.admin_kubeconfig(), fixture.path("kubeconfig")).unwrap();
    for (flag, of, bound) in
        [("--service-account", "images/builder", None), ("--pod", "images/app-0", Some(json!("app-0")))]
    {
        let outcome = fixture.ask("get", &[flag, of]);
        assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
        let claims = claims(&fixture);
        assert_eq!(claims.pointer("/aud/0"), Some(&json!("registry.example")));
        assert_eq!(claims.pointer("/sub"), Some(&json!("system:serviceaccount:images:builder")));
        assert_eq!(claims.pointer("/kubernetes.io/pod/name"), bound.as_ref());
    }
    let outcome = fixture.ask("get", &["--service-account", "images/missing"]);
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(said.contains("failed to get service account: serviceaccounts \"missing\" not found"), "{said}");
}
