//! `navicert serve proxy` between the current kubectl and a real kube-apiserver (`make interop`): in both modes the API
//! server sees exactly the user a token authenticates, and readiness names missing RBAC rules.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests")]

#[path = "serve_proxy/control_plane.rs"]
mod control_plane;
#[path = "serve_proxy/setup.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod setup;

use control_plane::{admin, kubectl, prepare, readiness, role};
use navicert_testkit::k8s::cluster::Cluster;
use serde_json::{Value, json};
use setup::{Serving, Setup, text};

/// What ann's kubectl uses.
fn ann(setup: &Setup, serving: &Serving) -> std::path::PathBuf {
    let token = setup.token(&json!({"uid": "7", "foo": ["x", "y"], "jti": "4f2a", "groups": ["dev", "a,b"]}));
    setup.kubeconfig("client.kubeconfig", &format!("https://{}", serving.address), &json!({"token": token}))
}

/// whoami, create, get and watch, as ann.
async fn works_as_ann(cluster: &Cluster, setup: &Setup, serving: &Serving, namespace: &str) {
    let client = ann(setup, serving);
    let outcome = kubectl(cluster, &client, &["auth", "whoami", "-o", "json"]).run().unwrap();
    assert_eq!(outcome.code(), Some(0), "{}", text(&outcome.stderr));
    let review: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    let expected = json!({
        "username": "corp:ann", "uid": "7", "groups": ["corp:dev", "corp:a,b", "system:authenticated"],
        "extra": {
            "example.org/foo": ["x", "y"],
            "authentication.kubernetes.io/credential-id": ["JTI=4f2a"],
        },
    });
    assert_eq!(review["status"]["userInfo"], expected, "S145, S256");
    let rules = "- {apiGroups: [''], resources: [configmaps, namespaces], verbs: ['*']}\n";
    role(cluster, &format!("{namespace}-ann"), rules, "corp:ann");
    let run = |arguments: &[&str]| {
        let outcome = kubectl(cluster, &client, arguments).run().unwrap();
        assert_eq!(outcome.code(), Some(0), "{arguments:?}: {}", text(&outcome.stderr));
        text(&outcome.stdout)
    };
    run(&["create", "namespace", namespace]);
    let watching =
        kubectl(cluster, &client, &["get", "configmaps", "-n", namespace, "--watch", "-o", "name"])
            .start_running()
            .unwrap();
    for name in ["one", "two"] {
        run(&["create", "configmap", name, "-n", namespace, "--from-literal=a=b"]);
        watching.wait_for_output(&format!("configmap/{name}")).await;
    }
    watching.signal("INT");
    assert!(run(&["get", "configmap", "one", "-n", namespace, "-o", "yaml"]).contains("a: b"));
    // Ann's rights are ann's, not the proxy's.
    let refused = kubectl(cluster, &client, &["get", "secrets", "-n", namespace]).run().unwrap();
    assert!(text(&refused.stderr).contains("User \"corp:ann\" cannot list"), "{}", text(&refused.stderr));
}

// S270, S256, S233, S235: the rules that readiness names are exactly those that are missing.
#[tokio::test(flavor = "multi_thread")]
async fn impersonation_passes_the_mapped_user_once_the_reported_rules_exist() {
    let cluster = Cluster::shared();
    let identity = cluster.client_authority().client("navicert-proxy").issue();
    let dir = tempfile::tempdir().unwrap();
    let files = identity.write_to(dir.path(), "own");
    let user = json!({"client-certificate": files.certificate, "client-key": files.key});
    let setup = prepare(cluster, "{}", &user);
    let serving = setup.start(&[]).await;
    let users = "- {apiGroups: [''], resources: [users], verbs: [impersonate]}\n";
    role(cluster, "navicert-proxy", users, "navicert-proxy");
    let told = readiness(&serving, 503, "\"users\"").await;
    let named: Vec<&str> = told
        .match_indices("- {")
        .map(|(start, _)| told.get(start..).unwrap().split_inclusive('}').next().unwrap())
        .collect();
    let told: String = named.iter().map(|rule| format!("{rule}\n")).collect();
    for part in ["groups", "uids", "userextras/example.org/foo", "credential-id"] {
        assert!(told.contains(part), "{part} in {told}");
    }
    role(cluster, "navicert-proxy", &format!("{users}{told}"), "navicert-proxy");
    readiness(&serving, 200, "[-]").await;
    works_as_ann(cluster, &setup, &serving, "by-impersonation").await;
    serving.end().await;
}

// S228, S229, S232, S256
#[tokio::test(flavor = "multi_thread")]
async fn as_a_front_proxy_the_api_server_sees_the_mapped_user() {
    let cluster = Cluster::shared();
    let (certificate, key) = cluster.front_proxy();
    let user = json!({"client-certificate": certificate, "client-key": key});
    let setup = prepare(cluster, "{mode: requestHeader, requireUid: true}", &user);
    let serving = setup.start(&[]).await;
    let told = readiness(&serving, 200, "[-]").await;
    assert!(told.contains("[+]upstream-permissions ok\n"), "the certificate is no user's: {told}");
    works_as_ann(cluster, &setup, &serving, "as-front-proxy").await;
    // S268: no token can add a user to the cluster's system groups.
    let masters = setup.token(&json!({"uid": "7", "foo": [], "groups": ["x"], "sub": "system:admin\n"}));
    assert_eq!(setup.get(&serving, "/api", &masters).await.status, 401);
    serving.end().await;
}

// S228: a certificate that the API server does not take for a front proxy's is found out at the start.
#[tokio::test(flavor = "multi_thread")]
async fn untrusted_front_proxy_is_not_ready() {
    let cluster = Cluster::shared();
    let identity = cluster.client_authority().client("navicert-other").issue();
    let dir = tempfile::tempdir().unwrap();
    let files = identity.write_to(dir.path(), "own");
    let user = json!({"client-certificate": files.certificate, "client-key": files.key});
    let setup = prepare(cluster, "{mode: requestHeader}", &user);
    let serving = setup.start(&[]).await;
    let told = readiness(&serving, 503, "failed to send a request to the API server").await;
    assert!(told.contains("as user `navicert-other` and ignores identity headers"), "{told}");
    assert!(told.contains("--requestheader-client-ca-file"), "{told}");
    serving.end().await;
}

// S228: `doctor` finds out the same without the proxy.
#[tokio::test(flavor = "multi_thread")]
async fn doctor_checks_the_certificate_of_a_front_proxy() {
    let cluster = Cluster::shared();
    let (certificate, key) = cluster.front_proxy();
    let front = json!({"client-certificate": certificate, "client-key": key});
    let identity = cluster.client_authority().client("navicert-other").issue();
    let files = identity.write_to(&tempfile::tempdir().unwrap().keep(), "own");
    let other = json!({"client-certificate": files.certificate, "client-key": files.key});
    for (user, flag, code, expected) in [
        (&front, "--front-proxy", 0, "PASS  request    the API server accepts identity headers"),
        (&front, "--front-proxy=X-Other-User", 1, "FAIL  request    the API server does not accept"),
        (&other, "--front-proxy", 1, "as user `navicert-other` and ignores identity headers"),
    ] {
        let setup = prepare(cluster, "{mode: requestHeader}", user);
        let outcome = navicert_testkit::Program::new(env!("CARGO_BIN_EXE_navicert"))
            .arguments(["doctor", flag, "--kubeconfig"])
            .arguments([setup.dir.path().join("proxy.kubeconfig")])
            .run()
            .unwrap();
        let told = text(&outcome.stdout);
        assert_eq!(outcome.code(), Some(code), "{flag}: {told}{}", text(&outcome.stderr));
        assert!(told.contains(expected), "{flag}: {told}");
    }
}

// S276, S277: a service account's own token, both ways.
#[tokio::test(flavor = "multi_thread")]
async fn service_account_tokens_are_forwarded_or_impersonated() {
    let cluster = Cluster::shared();
    admin(cluster, &["create", "serviceaccount", "robot", "-n", "default"], "");
    let made = kubectl(cluster, cluster.admin_kubeconfig(), &["create", "token", "robot", "-n", "default"])
        .run()
        .unwrap();
    let token = text(&made.stdout).trim().to_owned();
    let user = {
        let identity = cluster.client_authority().client("navicert-accounts").issue();
        let dir = tempfile::tempdir().unwrap().keep();
        let files = identity.write_to(&dir, "own");
        json!({"client-certificate": files.certificate, "client-key": files.key})
    };
    let rules = "- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}\n\
                 - {apiGroups: [''], resources: [users, groups, serviceaccounts], verbs: [impersonate]}\n\
                 - {apiGroups: [authentication.k8s.io], resources: ['*'], verbs: [impersonate]}\n";
    role(cluster, "navicert-accounts", rules, "navicert-accounts");
    for mode in ["passthrough", "impersonate"] {
        let setup = prepare(cluster, &format!("{{serviceAccountTokens: {mode}}}"), &user);
        let serving = setup.start(&[]).await;
        let client = setup.kubeconfig(
            "robot.kubeconfig",
            &format!("https://{}", serving.address),
            &json!({"token": token}),
        );
        let outcome = kubectl(cluster, &client, &["auth", "whoami", "-o", "json"]).run().unwrap();
        assert_eq!(outcome.code(), Some(0), "{mode}: {}", text(&outcome.stderr));
        let review: Value = serde_json::from_slice(&outcome.stdout).unwrap();
        assert_eq!(review["status"]["userInfo"]["username"], "system:serviceaccount:default:robot", "{mode}");
        let forged = format!("{token}x");
        assert_eq!(setup.get(&serving, "/api", &forged).await.status, 401, "{mode}");
        serving.end().await;
    }
}
