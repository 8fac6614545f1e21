//! The proxy's own permissions and those of `kubectl --as`, against a real kube-apiserver with constrained impersonation
//! (`make interop`): both halves, every verb, service accounts of pods, and the role that `--print-rbac` prints.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests")]

#[path = "serve_proxy/control_plane.rs"]
mod control_plane;
#[path = "serve_proxy/setup.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod setup;

use control_plane::{admin, kubectl, prepare, readiness, role};
use http::{Method, Request};
use navicert_testkit::HttpClient;
use navicert_testkit::k8s::cluster::Cluster;
use serde_json::{Value, json};
use setup::{Serving, Setup, text};

const FIRST_HALF: &str = "- {apiGroups: [authentication.k8s.io], resources: [users, groups, uids, userextras/example.org/foo, \
                          userextras/authentication.kubernetes.io/credential-id], verbs: ['impersonate:user-info']}\n";

/// A verb, and a request that has it.
const REQUESTS: [(&str, Method, &str); 8] = [
    ("get", Method::GET, "configmaps/x"),
    ("list", Method::GET, "configmaps"),
    ("watch", Method::GET, "configmaps?watch=1"),
    ("create", Method::POST, "configmaps"),
    ("update", Method::PUT, "configmaps/x"),
    ("patch", Method::PATCH, "configmaps/x"),
    ("delete", Method::DELETE, "configmaps/x"),
    ("deletecollection", Method::DELETE, "configmaps"),
];

fn second_half(verbs: &[&str], paths: bool) -> String {
    let verbs: Vec<String> = verbs.iter().map(|verb| format!("'impersonate-on:user-info:{verb}'")).collect();
    let mut rules = match verbs.is_empty() {
        true => String::new(),
        false => format!("- {{apiGroups: ['*'], resources: ['*'], verbs: [{}]}}\n", verbs.join(", ")),
    };
    if paths {
        rules += "- {nonResourceURLs: ['/*'], verbs: ['impersonate-on:user-info:get']}\n";
    }
    rules
}

/// A client certificate of this user, as a kubeconfig's user.
fn certificate(cluster: &Cluster, name: &str) -> Value {
    let identity = cluster.client_authority().client(name).issue();
    let files = identity.write_to(&tempfile::tempdir().unwrap().keep(), "own");
    json!({"client-certificate": files.certificate, "client-key": files.key})
}

/// A token of this user, with every mapped attribute.
fn token(setup: &Setup, subject: &str) -> String {
    setup.token(&json!({"sub": subject, "uid": "7", "foo": ["x"], "jti": subject, "groups": ["dev"]}))
}

/// Checks permissions until readiness has this code and these words.
async fn readiness_with(serving: &Serving, code: u16, words: &[&str]) {
    loop {
        let told = readiness(serving, code, "\u{0}").await;
        if words.iter().all(|word| told.contains(word)) {
            return;
        }
        serving.program.signal("HUP");
        tokio::task::yield_now().await;
    }
}

/// Status code and message of a request through the proxy. Users have no permissions, so that a request which the API server
/// authorizes for the user is a 403 that names the user.
async fn send(
    (setup, serving): (&Setup, &Serving),
    (method, path): (&Method, &str),
    token: &str,
    headers: &[(&str, &str)],
) -> (u16, String) {
    let request = Request::builder()
        .method(method)
        .uri(format!("https://{}{path}", serving.address))
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let request = request.body(bytes::Bytes::from_static(b"{}")).unwrap();
    let reply = Box::pin(HttpClient::trusting(&setup.ca).send(request)).await.unwrap();
    let message = reply.json()["message"].as_str().unwrap_or_default().to_owned();
    (reply.status.as_u16(), message)
}

// S237, S246, S270: the four combinations of granted halves. Until both are granted, the proxy is not ready and its users get
// a 502 that names a rule.
#[tokio::test(flavor = "multi_thread")]
async fn constrained_impersonation_works_with_both_halves_only() {
    let cluster = Cluster::shared();
    let setup = prepare(cluster, "{}", &certificate(cluster, "navicert-halves"));
    let serving = setup.start(&[]).await;
    let second = second_half(&REQUESTS.map(|(verb, ..)| verb), true);
    let token = token(&setup, "ann");
    // Successes are cached by the API server for ten seconds, so the combination that works is the last one.
    for (rules, missing) in [
        ("  []\n".to_owned(), "verbs: [\"impersonate\"]"),
        (FIRST_HALF.to_owned(), "\"impersonate-on:user-info:deletecollection\""),
        (second.clone(), "verbs: [\"impersonate:user-info\"]"),
    ] {
        role(cluster, "navicert-halves", &rules, "navicert-halves");
        readiness_with(&serving, 503, &[missing]).await;
        let path = "/api/v1/namespaces/default/configmaps";
        let (code, message) = send((&setup, &serving), (&Method::GET, path), &token, &[]).await;
        assert_eq!(code, 502, "{rules}: {message}");
        let prefix = "the API server does not permit the proxy to impersonate this user; missing ";
        assert!(message.starts_with(prefix), "{message}");
    }
    role(cluster, "navicert-halves", &format!("{FIRST_HALF}{second}"), "navicert-halves");
    let told = readiness(&serving, 200, "[-]").await;
    assert!(told.contains("[+]upstream-permissions ok\n"), "{told}");
    let path = "/api/v1/namespaces/default/configmaps";
    let (code, message) = send((&setup, &serving), (&Method::GET, path), &token, &[]).await;
    assert_eq!(code, 403, "{message}");
    assert!(message.contains("User \"corp:ann\" cannot list"), "{message}");
    serving.end().await;
}

// S237, S270: each verb is served if and only if its rule exists; readiness names those that are not.
#[tokio::test(flavor = "multi_thread")]
async fn each_verb_needs_its_own_rule() {
    let cluster = Cluster::shared();
    let setup = prepare(cluster, "{}", &certificate(cluster, "navicert-verbs"));
    let serving = setup.start(&[]).await;
    for (missing, ..) in REQUESTS {
        let verbs: Vec<&str> =
            REQUESTS.iter().map(|(verb, ..)| *verb).filter(|verb| *verb != missing).collect();
        role(
            cluster,
            "navicert-verbs",
            &format!("{FIRST_HALF}{}", second_half(&verbs, true)),
            "navicert-verbs",
        );
        let limit = format!("but not for {missing}; ");
        readiness_with(&serving, 200, &[&limit]).await;
        // Another user and namespace each time: the API server caches successes.
        let token = token(&setup, &format!("ann-{missing}"));
        for (verb, method, path) in &REQUESTS {
            let path = format!("/api/v1/namespaces/without-{missing}/{path}");
            let (code, message) = send((&setup, &serving), (method, &path), &token, &[]).await;
            if *verb == missing {
                assert_eq!(code, 502, "{verb} without {missing}: {message}");
                let rule = format!(
                    "{{apiGroups: [\"\"], resources: [\"configmaps\"], verbs: [\"impersonate-on:user-info:{verb}\"]}}"
                );
                assert!(message.ends_with(&rule), "{message}");
            } else {
                assert_eq!(code, 403, "{verb} without {missing}: {message}");
                assert!(message.contains(&format!("User \"corp:ann-{missing}\" cannot {verb}")), "{message}");
            }
        }
        let path = format!("/without-{missing}");
        let (code, message) = send((&setup, &serving), (&Method::GET, &path), &token, &[]).await;
        assert_eq!(code, 403, "{message}");
    }
    // Everything but other paths.
    let verbs = REQUESTS.map(|(verb, ..)| verb);
    role(cluster, "navicert-verbs", &format!("{FIRST_HALF}{}", second_half(&verbs, false)), "navicert-verbs");
    readiness_with(&serving, 200, &["but not for get of paths such as /version and /apis; "]).await;
    let token = token(&setup, "ann-paths");
    let (code, message) = send((&setup, &serving), (&Method::GET, "/without-paths"), &token, &[]).await;
    assert_eq!(code, 502, "{message}");
    let rule = "{nonResourceURLs: [\"/without-paths\"], verbs: [\"impersonate-on:user-info:get\"]}";
    assert!(message.ends_with(rule), "{message}");
    serving.end().await;
}

/// The output of kubectl as the administrator.
fn admin_output(cluster: &Cluster, arguments: &[&str]) -> String {
    let outcome = kubectl(cluster, cluster.admin_kubeconfig(), arguments).run().unwrap();
    assert_eq!(outcome.code(), Some(0), "{arguments:?}: {}", text(&outcome.stderr));
    text(&outcome.stdout).trim().to_owned()
}

/// The permissions of the applied role, one rule each: one resource or path and one verb.
fn single_rules(cluster: &Cluster) -> Vec<Value> {
    let role = admin_output(cluster, &["get", "clusterrole", "navicert-proxy", "-o", "json"]);
    let role: Value = serde_json::from_str(&role).unwrap();
    let list = |rule: &Value, field: &str| rule[field].as_array().cloned().unwrap_or_default();
    let mut single = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        for verb in list(rule, "verbs") {
            let resources = list(rule, "resources").into_iter();
            single.extend(resources.map(
                |resource| json!({"apiGroups": rule["apiGroups"], "resources": [resource], "verbs": [verb]}),
            ));
            let paths = list(rule, "nonResourceURLs").into_iter();
            single.extend(paths.map(|path| json!({"nonResourceURLs": [path], "verbs": [verb]})));
        }
    }
    single
}

/// Applies the role with these rules.
fn apply_rules(cluster: &Cluster, rules: &[Value]) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "navicert-proxy"}, "rules": rules,
    });
    admin(cluster, &["apply", "-f", "-"], &role.to_string());
}

/// A new service account with a pod on a node, and a token that is bound to the pod.
fn pod_token(cluster: &Cluster, name: &str) -> String {
    let objects = format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: worker-1}}\n---\n\
         apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}, namespace: navicert}}\n---\n\
         apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: navicert}}\n\
         spec: {{serviceAccountName: {name}, nodeName: worker-1, containers: [{{name: a, image: a}}]}}\n"
    );
    admin(cluster, &["apply", "-f", "-"], &objects);
    let uid =
        admin_output(cluster, &["get", "pod", name, "-n", "navicert", "-o", "jsonpath={.metadata.uid}"]);
    let bound = ["--bound-object-kind=Pod", "--bound-object-name", name, "--bound-object-uid", &uid];
    admin_output(cluster, &[&["create", "token", name, "-n", "navicert"], &bound[..]].concat())
}

/// Requests of every kind that the configuration permits, of new users; those that the proxy could not forward.
async fn failures(cluster: &Cluster, (setup, serving): (&Setup, &Serving), round: usize) -> Vec<String> {
    let users = [
        ("user", token(setup, &format!("ann-{round}"))),
        ("pod", pod_token(cluster, &format!("robot-{round}"))),
    ];
    let mut failed = Vec::new();
    for (kind, token) in &users {
        for (verb, method, path) in &REQUESTS {
            let path = format!("/api/v1/namespaces/round-{round}/{path}");
            let (code, message) = send((setup, serving), (method, &path), token, &[]).await;
            if code != 403 {
                failed.push(format!("{kind} {verb}: {code} {message}"));
            }
        }
        let path = format!("/round-{round}");
        let (code, message) = send((setup, serving), (&Method::GET, &path), token, &[]).await;
        if code != 403 {
            failed.push(format!("{kind} path: {code} {message}"));
        }
    }
    // Authorized by a rule of the test for the group `corp:dev`.
    let bob = format!("bob-{round}");
    let headers = [("impersonate-user", bob.as_str()), ("impersonate-group", "ops")];
    let path = format!("/api/v1/namespaces/round-{round}/configmaps");
    let (code, message) = send((setup, serving), (&Method::GET, &path), &users[0].1, &headers).await;
    if code != 403 || !message.contains(&format!("User \"{bob}\" cannot list")) {
        failed.push(format!("--as: {code} {message}"));
    }
    failed
}

// S233, S237, S239, S270, S276: the printed role, applied as it is, permits everything that the configuration allows, and
// without any one of its permissions something fails. Readiness agrees.
#[tokio::test(flavor = "multi_thread")]
async fn printed_role_suffices_and_none_of_its_permissions_can_be_left_out() {
    let cluster = Cluster::shared();
    let account = "apiVersion: v1\nkind: Namespace\nmetadata: {name: navicert}\n---\n\
                   apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: navicert-proxy, namespace: navicert}\n";
    admin(cluster, &["apply", "-f", "-"], account);
    let may_impersonate = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: dev}\n\
                           rules: [{apiGroups: [''], resources: [users, groups], verbs: [impersonate]}]\n---\n\
                           apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: dev}\n\
                           roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: dev}\n\
                           subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: 'corp:dev'}]\n";
    admin(cluster, &["apply", "-f", "-"], may_impersonate);
    let own = admin_output(cluster, &["create", "token", "navicert-proxy", "-n", "navicert"]);
    let settings = "{clientImpersonation: allow, serviceAccountTokens: impersonate}";
    let setup = prepare(cluster, settings, &json!({"token": own}));
    let serving = setup.start(&[]).await;
    let mut round = 0;
    for flags in [&["--print-rbac"][..], &["--print-rbac", "--constrained"]] {
        let printed = setup.navicert(flags).run().unwrap();
        assert_eq!(printed.code(), Some(0), "{}", text(&printed.stderr));
        admin(cluster, &["apply", "-f", "-"], &text(&printed.stdout));
        let told = readiness(&serving, 200, "[-]").await;
        assert!(told.contains("[+]upstream-permissions ok\n"), "{told}");
        assert_eq!(failures(cluster, (&setup, &serving), round).await, [""; 0], "{flags:?}");
        round += 1;
        let rules = single_rules(cluster);
        assert!(rules.len() > 10, "{rules:?}");
        for (index, removed) in rules.iter().enumerate() {
            let mut fewer = rules.clone();
            fewer.remove(index);
            apply_rules(cluster, &fewer);
            let verb = removed["verbs"][0].as_str().unwrap();
            let resource =
                removed["resources"][0].as_str().or(removed["nonResourceURLs"][0].as_str()).unwrap();
            let code = if verb.starts_with("impersonate-on:") { 200 } else { 503 };
            let words = [format!("\"{resource}\""), format!("\"{verb}\"")];
            readiness_with(&serving, code, &words.each_ref().map(String::as_str)).await;
            let failed = failures(cluster, (&setup, &serving), round).await;
            assert!(!failed.is_empty(), "nothing needs {removed}");
            round += 1;
        }
    }
    serving.end().await;
}

// S233, S237, S270: values that the configuration fixes are the only ones that the printed role names, and each of them is needed.
#[tokio::test(flavor = "multi_thread")]
async fn values_that_the_configuration_fixes_are_named_and_needed() {
    let cluster = Cluster::shared();
    let setup = prepare(cluster, "{}", &certificate(cluster, "navicert-fixed"));
    let path = setup.dir.path().join("authentication.yaml");
    let config = std::fs::read_to_string(&path).unwrap();
    let (head, _) = config.split_once("claimMappings: ").unwrap();
    let mappings = "{username: {claim: sub, prefix: 'corp:'}, \
                    groups: {expression: \"has(claims.admin) ? ['corp:admins'] : ['corp:users']\"}, \
                    extra: [{key: example.org/stage, valueExpression: \"'prod'\"}]}\n";
    std::fs::write(&path, format!("{head}claimMappings: {mappings}")).unwrap();
    let serving = setup.start(&[]).await;
    let mut round = 0;
    for flags in [&["--print-rbac"][..], &["--print-rbac", "--constrained"]] {
        let printed = setup.navicert(flags).arguments(["--rbac-subject", "navicert-fixed"]).run().unwrap();
        // Other tests apply a role of the same name.
        let role = text(&printed.stdout).replace("name: navicert-proxy", "name: navicert-fixed");
        for names in ["resourceNames: [\"corp:admins\", \"corp:users\"]", "resourceNames: [\"prod\"]"] {
            assert!(role.contains(names), "{role}");
        }
        for missing in [None, Some("corp:admins"), Some("corp:users"), Some("prod")] {
            let fewer = missing.map(|name| role.replace(&format!("\"{name}\""), "\"of-no-user\""));
            admin(cluster, &["apply", "-f", "-"], fewer.as_ref().unwrap_or(&role));
            match missing {
                None => drop(readiness(&serving, 200, "[-]").await),
                Some(name) => {
                    readiness_with(&serving, 503, &[&format!("resourceNames: [\"{name}\"]")]).await;
                }
            }
            // New users and namespaces each time: the API server caches successes.
            round += 1;
            for (group, claims) in
                [("corp:admins", json!({"admin": true, "groups": []})), ("corp:users", json!({"groups": []}))]
            {
                let mut claims = claims;
                claims["sub"] = json!(format!("{round}-of-{}", group.replace(':', "-")));
                let path = format!("/api/v1/namespaces/fixed-{round}/configmaps");
                let token = setup.token(&claims);
                let (code, message) = send((&setup, &serving), (&Method::GET, &path), &token, &[]).await;
                let is_missing = missing.is_some_and(|name| name == group || name == "prod");
                let expected = if is_missing { 502 } else { 403 };
                assert_eq!(code, expected, "{flags:?} without {missing:?}, {group}: {message}");
            }
        }
    }
    serving.end().await;
}

// S237, S276: the name is all that constrained impersonation passes of a service account; the API server adds its groups.
#[tokio::test(flavor = "multi_thread")]
async fn service_accounts_of_pods_are_impersonated_in_both_ways() {
    let cluster = Cluster::shared();
    admin(cluster, &["apply", "-f", "-"], "apiVersion: v1\nkind: Namespace\nmetadata: {name: navicert}\n");
    let own = certificate(cluster, "navicert-pods");
    let setup = prepare(cluster, "{serviceAccountTokens: impersonate}", &own);
    for (name, flags, has_extra) in [
        ("pod-legacy", &["--print-rbac"][..], true),
        ("pod-constrained", &["--print-rbac", "--constrained"], false),
    ] {
        let printed = setup.navicert(flags).arguments(["--rbac-subject", "navicert-pods"]).run().unwrap();
        // Other tests apply a role of the same name.
        let role = text(&printed.stdout).replace("name: navicert-proxy", "name: navicert-pods");
        admin(cluster, &["apply", "-f", "-"], &role);
        let serving = setup.start(&[]).await;
        readiness(&serving, 200, "[-]").await;
        let client = setup.kubeconfig(
            "pod.kubeconfig",
            &format!("https://{}", serving.address),
            &json!({"token": pod_token(cluster, name)}),
        );
        let outcome = kubectl(cluster, &client, &["auth", "whoami", "-o", "json"]).run().unwrap();
        assert_eq!(outcome.code(), Some(0), "{name}: {}", text(&outcome.stderr));
        let review: Value = serde_json::from_slice(&outcome.stdout).unwrap();
        let user = &review["status"]["userInfo"];
        assert_eq!(user["username"], format!("system:serviceaccount:navicert:{name}"));
        let groups =
            json!(["system:serviceaccounts", "system:serviceaccounts:navicert", "system:authenticated"]);
        assert_eq!(user["groups"], groups, "{name}");
        let node = &user["extra"]["authentication.kubernetes.io/node-name"];
        assert_eq!((node == &json!(["worker-1"]), user["uid"].is_string()), (has_extra, has_extra), "{user}");
        serving.end().await;
    }
}

// S237, S239: through the proxy, `kubectl --as` is permitted and denied as it is without the proxy, in the same words.
#[tokio::test(flavor = "multi_thread")]
async fn impersonation_through_the_proxy_is_decided_as_by_the_api_server() {
    let cluster = Cluster::shared();
    let own = "- {apiGroups: ['', authentication.k8s.io], resources: ['*'], verbs: [impersonate]}\n\
               - {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}\n";
    role(cluster, "navicert-nested", own, "navicert-nested");
    // Ann has constrained rights, carol legacy ones, dan none.
    let constrained = "- {apiGroups: [authentication.k8s.io], resources: [users], resourceNames: [bob], verbs: ['impersonate:user-info']}\n\
         - {apiGroups: [authentication.k8s.io], resources: [serviceaccounts], verbs: ['impersonate:serviceaccount']}\n\
         - {apiGroups: [authentication.k8s.io], resources: [groups], verbs: ['impersonate:user-info']}\n\
         - {apiGroups: [''], resources: [configmaps], verbs: ['impersonate-on:user-info:list', 'impersonate-on:serviceaccount:list']}\n\
         - {nonResourceURLs: [/metrics], verbs: ['impersonate-on:user-info:get']}\n";
    role(cluster, "nested-ann", constrained, "corp:ann");
    let legacy = "- {apiGroups: [''], resources: [users], verbs: [impersonate]}\n";
    role(cluster, "nested-carol", legacy, "corp:carol");
    let setup = prepare(cluster, "{clientImpersonation: allow}", &certificate(cluster, "navicert-nested"));
    let serving = setup.start(&[]).await;
    readiness(&serving, 200, "[-]").await;
    let (configmaps, secrets) =
        ("/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets");
    let robot = "system:serviceaccount:default:robot";
    let body = setup.dir.path().join("body.json");
    std::fs::write(&body, "{}").unwrap();
    let body = body.display().to_string();
    let mut permitted = 0;
    for user in ["ann", "carol", "dan"] {
        let plain = json!({"sub": user, "uid": "7", "foo": [], "groups": []});
        let through = setup.kubeconfig(
            &format!("{user}.kubeconfig"),
            &format!("https://{}", serving.address),
            &json!({"token": setup.token(&plain)}),
        );
        let direct = setup.kubeconfig(
            &format!("{user}-direct.kubeconfig"),
            cluster.server(),
            &certificate(cluster, &format!("corp:{user}")),
        );
        let mut file: Value = serde_json::from_slice(&std::fs::read(&direct).unwrap()).unwrap();
        file["clusters"][0]["cluster"]["certificate-authority"] = json!(cluster.ca());
        std::fs::write(&direct, file.to_string()).unwrap();
        for arguments in [
            &["get", "--raw", configmaps, "--as", "bob"][..],
            &["get", "--raw", secrets, "--as", "bob"],
            &["create", "--raw", configmaps, "-f", &body, "--as", "bob"],
            &["get", "--raw", configmaps, "--as", "eve"],
            &["get", "--raw", configmaps, "--as", "bob", "--as-group", "ops"],
            &["get", "--raw", configmaps, "--as", "bob", "--as-group", "system:masters"],
            &["get", "--raw", configmaps, "--as", "bob", "--as-uid", "9"],
            &["get", "--raw", configmaps, "--as", robot],
            &["get", "--raw", secrets, "--as", robot],
            &["get", "--raw", configmaps, "--as", robot, "--as-group", "ops"],
            &["get", "--raw", configmaps, "--as", "system:node:worker-1"],
            &["get", "--raw", "/metrics", "--as", "bob"],
            &["get", "--raw", "/metrics/slis", "--as", "bob"],
        ] {
            let run = |kubeconfig| {
                let outcome = kubectl(cluster, kubeconfig, arguments).run().unwrap();
                (outcome.code(), text(&outcome.stderr))
            };
            let (expected, found) = (run(&direct), run(&through));
            let is_denied = |text: &str| text.contains(&format!("User \"corp:{user}\" cannot impersonate"));
            assert_eq!(
                (found.0, is_denied(&found.1)),
                (expected.0, is_denied(&expected.1)),
                "{user}: {arguments:?}: {found:?}, not {expected:?}"
            );
            // After a success in the legacy way, the API server tries it first and reports its error.
            if user != "carol" {
                assert_eq!(found, expected, "{user}: {arguments:?}");
            }
            permitted += usize::from(!is_denied(&expected.1));
        }
    }
    assert!(permitted >= 8, "only {permitted} were permitted");
    serving.end().await;
}
