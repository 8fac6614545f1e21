//! `navicert image get --service-account|--pod`: requests to the API server, what reaches the provider, and the errors
//! when the API server rejects a request.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

mod image_support;

use std::fs;

use image_support::Fixture;
use navicert_testkit::cli::program::copy_executable;
use navicert_testkit::{Answer, ApiServer, Ca, Kubeconfig};
use serde_json::{Value, json};

const ATTRIBUTES: &str = "{serviceAccountTokenAudience: registry, cacheType: ServiceAccount, requireServiceAccount: true, \
    requiredServiceAccountAnnotationKeys: [example.com/role], optionalServiceAccountAnnotationKeys: [example.com/other]}";
const ACCOUNT: &str = "/api/v1/namespaces/team/serviceaccounts/builder";
const TOKEN: &str = "/api/v1/namespaces/team/serviceaccounts/builder/token";
const POD: &str = "/api/v1/namespaces/team/pods/app-0";

fn api_server(fixture: &Fixture) -> ApiServer {
    let ca = Ca::new("service accounts");
    let api = ApiServer::start(&ca);
    api.accept_token("node", "system:node:n", &["system:nodes"]);
    Kubeconfig::new(api.url()).ca(&ca).token("node").write(fixture.path("kubeconfig"));
    let annotations = json!({"example.com/role": "puller", "example.com/private": "x"});
    let account = json!({"metadata": {"uid": "uid-1", "annotations": annotations}});
    api.answer(ACCOUNT, Answer::json(&account));
    let pod = json!({"metadata": {"uid": "uid-2"}, "spec": {"serviceAccountName": "builder"}});
    api.answer(POD, Answer::json(&pod));
    let token = json!({
        "spec": {"expirationSeconds": 3600},
        "status": {"token": "canary-token", "expirationTimestamp": "2100-01-01T00:00:00Z"},
    });
    api.answer(TOKEN, Answer::json(&token).with_status(201));
    api
}

fn token_request(api: &ApiServer) -> Value {
    let requests = api.requests();
    let request = requests.iter().find(|request| request.path() == TOKEN).unwrap();
    assert_eq!((request.method.as_str(), request.bearer_token()), ("POST", Some("node")));
    serde_json::from_slice(&request.body).unwrap()
}

#[test]
fn a_service_account_s_token_and_the_annotations_asked_for_reach_the_provider() {
    // I109, I112–I114
    let fixture = Fixture::new(ATTRIBUTES);
    let api = api_server(&fixture);
    let outcome = fixture.ask("get", &["--service-account", "team/builder", "-o", "json"]);
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert_eq!(outcome.code(), Some(0), "{said}{}", String::from_utf8_lossy(&outcome.stderr));
    let response: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(response.pointer("/credentials/0/username"), Some(&json!("ann")));
    assert_eq!(response.pointer("/credentials/0/serviceAccount"), Some(&json!("team/builder")), "I118");
    assert!(!said.contains("canary"), "{said}");
    let asked = token_request(&api);
    assert_eq!(
        asked,
        json!({
            "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"uid": "uid-1"}, "spec": {"audiences": ["registry"]},
        })
    );
    let request = fixture.request().unwrap();
    assert_eq!(request.pointer("/serviceAccountToken"), Some(&json!("canary-token")));
    assert_eq!(request.pointer("/serviceAccountAnnotations"), Some(&json!({"example.com/role": "puller"})));
}

#[test]
fn several_providers_ask_the_api_server_at_the_same_time() {
    // I148
    let fixture = Fixture::new(ATTRIBUTES);
    let api = api_server(&fixture);
    let config = fs::read_to_string(fixture.path("config.yaml")).unwrap();
    let (head, provider) = config.split_once("- name: workload\n").unwrap();
    let named = |number: usize| {
        format!(
            "- name: workload-{number}\n{}",
            provider.replace("ce: registry", &format!("ce: registry-{number}"))
        )
    };
    fs::write(fixture.path("config.yaml"), format!("{head}{}", (0..4).map(named).collect::<String>()))
        .unwrap();
    for number in 0..4 {
        copy_executable(fixture.path("bin/workload"), fixture.path(&format!("bin/workload-{number}")))
            .unwrap();
    }
    let outcome = fixture.ask("get", &["--pod", "team/app-0"]);
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert_eq!(outcome.code(), Some(0), "{said}{}", String::from_utf8_lossy(&outcome.stderr));
    assert_eq!(said.lines().count(), 4, "{said}");
    assert_eq!(api.count(TOKEN), 4, "one token for each audience");
}

#[test]
fn a_pod_s_token_is_bound_to_the_pod() {
    // I114
    let fixture = Fixture::new(ATTRIBUTES);
    let api = api_server(&fixture);
    let outcome = fixture.ask("explain", &["--pod", "team/app-0"]);
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert_eq!(outcome.code(), Some(0), "{said}{}", String::from_utf8_lossy(&outcome.stderr));
    assert!(said.contains("token      service account token for audience registry"), "{said}");
    assert!(said.contains("only for pods of team/builder"), "{said}");
    let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": "app-0", "uid": "uid-2"});
    assert_eq!(token_request(&api).pointer("/spec/boundObjectRef"), Some(&bound));
}

#[test]
fn explain_shows_the_run_time_of_slow_plugins() {
    // I264
    let fixture =
        Fixture::new("{serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: false}");
    let plugin = fs::read_to_string(fixture.path("bin/workload")).unwrap();
    fs::write(fixture.path("bin/workload"), plugin.replace("cat >", "sleep 1; cat >")).unwrap();
    let text = String::from_utf8(fixture.ask("explain", &[]).stdout).unwrap();
    assert!(text.contains("  took       1."), "{text}");
    fs::write(fixture.path("bin/workload"), plugin).unwrap();
    let json: Value = serde_json::from_slice(&fixture.ask("explain", &["-o", "json"]).stdout).unwrap();
    assert!(json.pointer("/providers/0/outcome/tookMilliseconds").unwrap().is_u64(), "{json}");
}

#[test]
fn api_server_rejection_names_the_missing_role() {
    // I112, I116, I243
    let fixture = Fixture::new(ATTRIBUTES);
    let api = api_server(&fixture);
    let refusal = "serviceaccounts \"builder\" is forbidden: audience: User \"system:node:n\" is not authorized to request \
        tokens for audience \"registry\"";
    for (path, message, told) in [
        (ACCOUNT, "serviceaccounts \"builder\" not found", "failed to get service account: serviceaccounts"),
        (TOKEN, refusal, "verbs: [\"request-serviceaccounts-token-audience\"]"),
    ] {
        api.answer_once(path, Answer::failure(403, "Forbidden", message));
        let outcome = fixture.ask("get", &["--service-account", "team/builder"]);
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert_eq!(outcome.code(), Some(1), "{said}");
        assert!(said.contains(message) && said.contains(told), "{said}");
    }
    assert_eq!(fixture.request(), None, "the provider was not run");
    api.answer(POD, Answer::failure(404, "NotFound", "pods \"app-0\" not found"));
    let outcome = fixture.ask("get", &["--pod", "team/app-0"]);
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert_eq!(outcome.code(), Some(4), "{said}");
    assert!(said.contains("failed to read pod `team/app-0`: pods \"app-0\" not found"), "{said}");
}

#[test]
fn rejects_names_with_path_segments_and_responses_without_a_token() {
    let fixture = Fixture::new(ATTRIBUTES);
    let api = api_server(&fixture);
    for name in ["team/..", "team/a?b", "../x", "team/a%2fb", "Team/a"] {
        let outcome = fixture.ask("get", &["--service-account", name]);
        assert_ne!(outcome.code(), Some(0), "{name}");
    }
    assert!(api.requests().is_empty(), "nothing was asked");
    for (response, told) in [
        (Answer::text("canary"), "the response is not valid JSON"),
        (
            Answer::json(&json!({"status": {"token": "canary"}})),
            "missing `status.expirationTimestamp` in the response",
        ),
        (
            Answer::json(&json!({"status": {"expirationTimestamp": "2100-01-01T00:00:00Z"}})),
            "missing `status.token` in the response",
        ),
        (Answer::status(503), "responded with 503"),
    ] {
        api.answer_once(TOKEN, response);
        let outcome = fixture.ask("get", &["--service-account", "team/builder"]);
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert!(outcome.code() == Some(1) && said.contains(told) && !said.contains("canary"), "{said}");
    }
}

#[test]
fn kuberc_policy_applies_to_image_lookups() {
    // C740
    let fixture = Fixture::new(ATTRIBUTES);
    let api = api_server(&fixture);
    Kubeconfig::new(api.url()).exec("/bin/true").write(fixture.path("kubeconfig"));
    fs::create_dir(fixture.path(".kube")).unwrap();
    let kuberc =
        "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ncredentialPluginPolicy: DenyAll\n";
    fs::write(fixture.path(".kube/kuberc"), kuberc).unwrap();
    let outcome = fixture.ask("get", &["--service-account", "team/builder"]);
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(outcome.code() == Some(5) && said.to_lowercase().contains("denyall"), "{said}");
}
