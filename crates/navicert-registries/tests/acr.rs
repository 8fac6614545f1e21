//! `acr-credential-provider` against the test kit's Azure fake, which checks every header and field.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "test helpers fail by panicking, and the support module serves several suites"
)]

mod support;

use std::fs;
use std::path::PathBuf;

use navicert_testkit::services::cloud::Azure;
use navicert_testkit::{Answer, Ca, Canaries, Cut, HttpServer};
use serde_json::{Value, json};
use support::{ACR, Run, linked, now};
use tempfile::TempDir;

const IMAGE: &str = "mine.azurecr.io/team/app";
const HOST: &str = "mine.azurecr.io";
const REFRESH_TOKEN_USERNAME: &str = "00000000-0000-0000-0000-000000000000";

/// A node with its configuration file, and an Azure fake.
struct Node {
    azure: Azure,
    dir: TempDir,
}

impl Node {
    fn new(config: &Value) -> Self {
        let node = Node { azure: Azure::start(HOST, "tenant-1"), dir: tempfile::tempdir().unwrap() };
        fs::write(node.config(), config.to_string()).unwrap();
        node
    }

    fn managed() -> Self {
        Node::new(
            &json!({"tenantId": "tenant-1", "useManagedIdentityExtension": true, "aadClientId": "msi", "location": "x"}),
        )
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join("azure.json")
    }

    fn run(&self, image: &str) -> Run {
        self.near(Run::new(ACR, image).arguments(&[self.config().to_str().unwrap()]))
    }

    fn near(&self, run: Run) -> Run {
        let url = self.azure.server().url();
        run.variable("AZURE_POD_IDENTITY_AUTHORITY_HOST", &url)
            .variable("AZURE_AUTHORITY_HOST", &url)
            .variable("NAVICERT_ACR_ENDPOINT", &url)
    }
}

#[test]
fn exchanges_managed_identity_for_refresh_token() {
    // I203, I204, I206, I208, I209, I212
    let node = Node::managed();
    let token = node.azure.hand_out("canary-access", "canary-refresh", now() + 3 * 3600);
    let ran = node.run(IMAGE).run();
    assert_eq!(ran.login(HOST), (REFRESH_TOKEN_USERNAME.to_owned(), token));
    assert_eq!(ran.login("*.azurecr.*"), (String::new(), String::new()));
    let response = ran.response();
    assert_eq!(response["auth"].as_object().unwrap().len(), 2);
    assert_eq!(response["cacheKeyType"], "Registry");
    let kept = response["cacheDuration"].as_str().unwrap();
    assert!(kept == "1h30m0s" || kept.starts_with("1h29m5"), "{kept}");
    let paths: Vec<String> =
        node.azure.server().requests().iter().map(|request| request.path().to_owned()).collect();
    assert_eq!(paths, ["/metadata/identity/oauth2/token", "/v2/", "/oauth2/exchange"]);
    node.azure.violations().assert_none();
    node.azure.hand_out("canary-access", "canary-refresh", now() - 60);
    assert_eq!(node.run(IMAGE).run().response()["cacheDuration"], "0s");
}

#[test]
fn selects_user_assigned_identity_by_client_or_resource_id() {
    // I203
    for (identity, parameter) in [
        ("/SUBSCRIPTIONS/x/resourcegroups/y/id", "msi_res_id"),
        ("11111111-2222-3333-4444-555555555555", "client_id"),
    ] {
        let node = Node::new(
            &json!({"tenantId": "tenant-1", "useManagedIdentityExtension": true, "userAssignedIdentityID": identity}),
        );
        node.azure.expect_identity(parameter, identity);
        assert_eq!(node.run(IMAGE).run().login(HOST).0, REFRESH_TOKEN_USERNAME);
        node.azure.violations().assert_none();
    }
}

#[test]
fn authenticates_with_service_account_token() {
    // I201, I202, I203
    let both =
        [("kubernetes.azure.com/acr-client-id", "app-1"), ("kubernetes.azure.com/acr-tenant-id", "tenant-1")];
    for config in [
        json!({"useManagedIdentityExtension": true}),
        json!({"aadClientId": "x", "aadClientSecret": "canary"}),
    ] {
        let node = Node::new(&config);
        node.azure.trust("app-1", "canary-subject");
        let ran = node.run(IMAGE).service_account("canary-subject", &both).run();
        assert_eq!(
            ran.login(HOST),
            (REFRESH_TOKEN_USERNAME.to_owned(), "refresh-token-of-the-registry".to_owned())
        );
        assert_eq!(ran.response()["cacheDuration"], "1h0m0s", "I209: no expiry");
        node.azure.violations().assert_none();
        for annotations in [&both[..1], &both[1..]] {
            let ran = node.run(IMAGE).service_account("canary-subject", annotations).run();
            ran.assert_error(1, "service account is missing annotation `kubernetes.azure.com/acr-");
            assert!(!ran.stderr.contains("canary"));
        }
    }
}

#[test]
fn authenticates_with_mounted_token() {
    let node = Node::managed();
    node.azure.trust("app-1", "canary-mounted");
    let token = node.dir.path().join("token");
    fs::write(&token, "canary-mounted\n").unwrap();
    let run = node
        .near(Run::new(ACR, IMAGE).arguments(&["--from-environment"]))
        .variable("AZURE_CLIENT_ID", "app-1")
        .variable("AZURE_TENANT_ID", "tenant-1")
        .variable("AZURE_FEDERATED_TOKEN_FILE", &token);
    assert_eq!(run.run().login(HOST).0, REFRESH_TOKEN_USERNAME);
    let config = json!({"tenantId": "tenant-1", "aadClientId": "app-1", "aadFederatedTokenFile": token});
    fs::write(node.config(), config.to_string()).unwrap();
    assert_eq!(node.run(IMAGE).run().login(HOST).0, REFRESH_TOKEN_USERNAME);
    node.azure.violations().assert_none();
}

#[test]
fn returns_service_principal_secret_unchanged() {
    // I207, I208
    let node = Node::new(
        &json!({"aadClientId": "principal", "aadClientSecret": "canary-secret", "tenantId": "tenant-1"}),
    );
    let ran = node.run(IMAGE).run();
    for key in ["*.azurecr.io", "*.azurecr.cn", "*.azurecr.de", "*.azurecr.us"] {
        assert_eq!(ran.login(key), ("principal".to_owned(), "canary-secret".to_owned()));
    }
    assert_eq!(ran.login("*.azurecr.*").0, "");
    assert!(node.azure.server().requests().is_empty());
    // Configuration files may be YAML.
    fs::write(node.config(), "aadClientId: principal\naadClientSecret: canary-secret\nunknown: {a: 1}\n")
        .unwrap();
    assert_eq!(node.run(IMAGE).run().login("*.azurecr.io").0, "principal");
    let explained = node.run(IMAGE).arguments(&["--explain", IMAGE]).run();
    assert!(
        explained.stdout.contains("service principal `principal`") && !explained.stdout.contains("canary")
    );
}

#[test]
fn uses_mirror_for_another_registry() {
    // I199, I201
    let node = Node::managed();
    let mirrored = |image: &str| node.run(image).arguments(&["-r", "mcr.example:mine.azurecr.io,bad"]).run();
    let ran = mirrored("mcr.example/team/app");
    assert_eq!(ran.login(HOST).1, "refresh-token-of-the-registry");
    assert_eq!(ran.login("mcr.example").1, "refresh-token-of-the-registry");
    assert!(ran.stderr.contains("`bad` in --registry-mirror: not `source:mirror`"), "{}", ran.stderr);
    assert!(mirrored("mcr.example.evil.example/x").is_empty());
    node.azure.violations().assert_none();
}

#[test]
fn reads_custom_cloud_metadata() {
    // I196, I198, I207
    let node = Node::managed();
    node.azure.suffix("azurecr.stack.example");
    let config = json!({"cloud": "AzureStackCloud", "tenantId": "tenant-1", "useManagedIdentityExtension": true,
        "resourceManagerEndpoint": node.azure.server().url()});
    fs::write(node.config(), config.to_string()).unwrap();
    node.azure.realm("https://mine.azurecr.stack.example/oauth2/token");
    let url = node.azure.server().url();
    let run = |image: &str| {
        let run = Run::new(ACR, image).arguments(&[node.config().to_str().unwrap()]);
        run.variable("AZURE_POD_IDENTITY_AUTHORITY_HOST", &url).variable("NAVICERT_ACR_ENDPOINT", &url).run()
    };
    assert_eq!(
        run("mine.azurecr.stack.example/x").login("mine.azurecr.stack.example").0,
        REFRESH_TOKEN_USERNAME
    );
    assert!(run("mine.azurecr.stack.example.evil.example/x").is_empty());
    let described = node.dir.path().join("environment.json");
    fs::write(
        &described,
        json!({"activeDirectoryEndpoint": url, "containerRegistryDNSSuffix": "azurecr.stack.example"})
            .to_string(),
    )
    .unwrap();
    fs::write(
        node.config(),
        json!({"cloud": "custom", "tenantId": "tenant-1", "useManagedIdentityExtension": true}).to_string(),
    )
    .unwrap();
    run("mine.azurecr.stack.example/x").assert_error(3, "unknown cloud name");
    let by_file =
        node.run("mine.azurecr.stack.example/x").variable("AZURE_ENVIRONMENT_FILEPATH", &described).run();
    assert_eq!(by_file.login("mine.azurecr.stack.example").0, REFRESH_TOKEN_USERNAME);
}

#[test]
fn requests_bound_identity_at_the_api_server() {
    // I203: connects to an IP address with another server name, trusting the cluster's certificate authority
    let node = Node::managed();
    let ca = Ca::new("cluster");
    let identity = ca.server().name("bindings.example").issue();
    let server = HttpServer::builder().identity(&identity).start(&ca);
    server.answer(
        "/",
        Answer::json(&json!({"access_token": "access-token-of-the-directory", "expires_in": 1})),
    );
    let authority = node.dir.path().join("ca.crt");
    fs::write(&authority, ca.pem()).unwrap();
    let name = format!("bindings.example:{}", server.address().port());
    let flags = [
        "--ib-sni-name",
        &name,
        "--ib-apiserver-ip=127.0.0.1",
        "--ib-default-client-id",
        "identity-1",
        "--ib-ca-file",
        authority.to_str().unwrap(),
    ];
    let ran = node.run(IMAGE).arguments(&flags).service_account("canary-subject", &[]).run();
    assert_eq!(ran.login(HOST).0, REFRESH_TOKEN_USERNAME);
    let seen = &server.requests()[0];
    assert!(
        seen.text().contains("client_assertion=canary-subject")
            && seen.text().contains("client_id=identity-1")
    );
    assert_eq!(
        server.connections()[0].tls.as_ref().unwrap().server_name.as_deref(),
        Some("bindings.example")
    );
    node.azure.violations().assert_none();
    node.run(IMAGE).arguments(&flags).run().assert_error(1, "the kubelet sent none");
    node.run(IMAGE).arguments(&flags[..2]).run().assert_error(2, "requires --ib-apiserver-ip");
}

#[test]
fn misbehaving_registry_gets_no_token() {
    // I204, I205, I215, I217
    let node = Node::managed();
    let mut canaries = Canaries::new();
    let access = canaries.plant("access token");
    node.azure.hand_out(&access, "refresh", now() + 3600);
    let elsewhere = HttpServer::start_plain();
    let challenge = |value: &str| Answer::status(401).header("www-authenticate", value);
    let evil = format!("Bearer realm=\"{}\",service=\"s\"", elsewhere.url_of("/oauth2/token"));
    for (path, answer, code, said) in [
        ("/v2/", challenge(&evil), 5, "which is not one of its own hosts"),
        (
            "/v2/",
            challenge("Bearer realm=\"https://mine.azurecr.io.evil.example/t\",service=\"s\""),
            5,
            "which is not one of its own hosts",
        ),
        ("/v2/", challenge("Bearer"), 1, "invalid challenge"),
        ("/v2/", challenge("Bearer realm=x"), 1, "invalid challenge"),
        ("/v2/", Answer::status(401), 1, "missing `Bearer` challenge"),
        ("/v2/", Answer::status(200), 1, "expected status 401"),
        ("/v2/", Answer::redirect(302, &elsewhere.url_of("/")), 5, "redirects are not followed"),
        ("/oauth2/exchange", Answer::redirect(307, &elsewhere.url_of("/")), 5, "redirects are not followed"),
        ("/oauth2/exchange", Answer::status(500), 1, "rejected the request: 500"),
        (
            "/oauth2/exchange",
            Answer::json(
                &json!({"errors": [{"code": "UNAUTHORIZED", "message": format!("bad token {access}")}]}),
            )
            .with_status(401),
            1,
            "rejected the request: 401 UNAUTHORIZED (bad token …)",
        ),
        ("/oauth2/exchange", Answer::text("{"), 1, "malformed refresh token response"),
        ("/oauth2/exchange", Answer::json(&json!({"refresh_token": ""})), 1, "missing refresh token"),
        ("/oauth2/exchange", Answer::endless("application/json"), 4, "is larger than"),
        ("/oauth2/exchange", Answer::cut(Cut::Clip), 4, "failed to reach"),
        (
            "/metadata/identity/oauth2/token",
            Answer::status(404),
            1,
            "the Azure metadata server rejected the request: 404",
        ),
        (
            "/metadata/identity/oauth2/token",
            Answer::json(&json!({"error": "invalid_request", "error_description": "Identity not found"}))
                .with_status(400),
            1,
            "invalid_request (Identity not found)",
        ),
    ] {
        node.azure.server().forget_answers();
        node.azure.server().answer(path, answer);
        let ran = node.run(IMAGE).run();
        ran.assert_error(code, said);
        canaries.assert_absent("standard error", ran.stderr.as_bytes());
    }
    assert!(elsewhere.requests().is_empty(), "the token was sent elsewhere");
}

#[test]
fn other_registries_get_empty_response_and_usage_errors_are_reported() {
    // I195, I200
    let node = Node::managed();
    for image in ["docker.io/library/busybox", "mine.azurecr.io.evil.example/x", "host.example/azurecr.io/x"]
    {
        assert!(node.run(image).run().is_empty(), "{image}");
    }
    assert!(node.azure.server().requests().is_empty());
    Run::new(ACR, IMAGE).run().assert_error(2, "config file is not specified");
    node.run(IMAGE).arguments(&["another.json"]).run().assert_error(2, "more than one config file");
    Run::new(ACR, IMAGE).arguments(&["/no/such/azure.json"]).run().assert_error(3, "failed to load");
    fs::write(node.config(), "aadClientSecret: [canary-list]\n").unwrap();
    let ran = node.run(IMAGE).run();
    ran.assert_error(3, "aadClientSecret");
    assert!(!ran.stderr.contains("canary"), "{}", ran.stderr);
}

#[test]
fn docker_helper_reads_azure_environment_variables() {
    // GO-2026-6225
    let node = Node::managed();
    let (_folder, link) = linked(ACR, "docker-credential-acr-env");
    let helper = |run: Run| node.near(run.arguments(&["get"]));
    let managed = helper(Run::new(&link, "")).variable("AZURE_TENANT_ID", "tenant-1");
    let answer: Value = serde_json::from_str(&managed.run_with("https://mine.azurecr.io").stdout).unwrap();
    assert_eq!(
        (&answer["Username"], &answer["Secret"]),
        (&json!(REFRESH_TOKEN_USERNAME), &json!("refresh-token-of-the-registry"))
    );
    let principal = helper(Run::new(&link, ""))
        .variable("AZURE_CLIENT_ID", "principal")
        .variable("AZURE_CLIENT_SECRET", "canary-secret");
    let answer: Value = serde_json::from_str(&principal.run_with("mine.azurecr.io").stdout).unwrap();
    assert_eq!((&answer["Username"], &answer["Secret"]), (&json!("principal"), &json!("canary-secret")));
    for server in [
        "mine.azurecr.io.evil.example",
        "https://evil.example/.azurecr.io",
        "xazurecr.io",
        "index.docker.io",
        "mine.azurecr.io@evil.example",
    ] {
        let ran = principal.run_with(server);
        assert!(ran.code == 1 && !ran.stdout.contains("canary"), "{server}: {}", ran.stdout);
    }
    let by_file = helper(Run::new(&link, "")).variable("NAVICERT_ACR_CONFIG", node.config());
    assert_eq!(by_file.run_with("mine.azurecr.io").code, 0);
}
