//! `auth-provider-gcp` against the test kit's Google fake, which checks every header and field.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "test helpers fail by panicking, and the support module serves several suites"
)]

mod support;

use navicert_testkit::services::cloud::Google;
use navicert_testkit::{Answer, Canaries, Cut, HttpServer};
use serde_json::json;
use support::{GCP, Run, linked};

const IMAGE: &str = "us-central1-docker.pkg.dev/project/repository/app";
const HOST: &str = "us-central1-docker.pkg.dev";
const TOKEN_PATH: &str = "/computeMetadata/v1/instance/service-accounts/default/token";

fn run(google: &Google, image: &str) -> Run {
    Run::new(GCP, image).arguments(&["get-credentials", "--v=3"]).variable("GCE_METADATA_HOST", google.host())
}

#[test]
fn only_google_hosts_get_the_node_token() {
    // I168, I186, I187, I188, I193, I218
    let google = Google::start("canary-access-token", Some(3600));
    for host in ["gcr.io", "eu.gcr.io", HOST, "container.cloud.google.com"] {
        let ran = run(&google, &format!("{host}/p/app")).run();
        assert_eq!(ran.login(host), ("_token".to_owned(), "canary-access-token".to_owned()));
        let response = ran.response();
        assert_eq!(response["auth"].as_object().unwrap().len(), 1, "no wildcards");
        assert_eq!(
            (&response["cacheDuration"], &response["cacheKeyType"]),
            (&json!("30m0s"), &json!("Registry"))
        );
    }
    google.violations().assert_none();
    let calls = google.server().requests().len();
    for image in [
        "registry.example/x",
        "gcr.io.evil.example/x",
        "a.b.gcr.io/x",
        "evil-pkg.dev/x",
        "docker.io/library/busybox",
    ] {
        let ran = run(&google, image).run();
        assert!(ran.is_empty() && ran.stderr.contains("--registry-host"), "{image}: {}", ran.stderr);
    }
    assert_eq!(google.server().requests().len(), calls, "no request was sent");
    let custom = run(&google, "registry.example/x").arguments(&["--registry-host", "Registry.Example"]).run();
    assert_eq!(custom.login("registry.example").1, "canary-access-token");
}

#[test]
fn environment_sets_cache_type_and_duration_within_expiry() {
    // I185, I212
    let google = Google::start("token", Some(600));
    for (variables, duration, key_type, keys) in [
        (&[("KUBE_SIDECAR_CACHE_DURATION", "2m")][..], "2m0s", "Registry", 1),
        (&[("KUBE_SIDECAR_CACHE_DURATION", "24h")], "10m0s", "Registry", 1),
        (&[("KUBE_SIDECAR_CACHE_DURATION", "0s"), ("KUBE_SIDECAR_CACHE_TYPE", "image")], "0s", "Image", 1),
        (&[("KUBE_SIDECAR_CACHE_TYPE", "global")], "5m0s", "Global", 5),
    ] {
        let run = variables.iter().fold(run(&google, IMAGE), |run, (name, value)| run.variable(name, value));
        let response = run.run().response();
        assert_eq!(
            (&response["cacheDuration"], &response["cacheKeyType"]),
            (&json!(duration), &json!(key_type))
        );
        assert_eq!(response["auth"].as_object().unwrap().len(), keys);
    }
    let never = Google::start("token", None);
    assert_eq!(run(&never, IMAGE).run().response()["cacheDuration"], "0s", "no expiry is known");
    for (name, value) in [
        ("KUBE_SIDECAR_CACHE_TYPE", "Image"),
        ("KUBE_SIDECAR_CACHE_DURATION", "5"),
        ("KUBE_SIDECAR_CACHE_DURATION", "-5s"),
    ] {
        run(&google, IMAGE).variable(name, value).run().assert_error(3, name);
    }
}

#[test]
fn service_account_identity_never_falls_back_to_the_node() {
    // I192
    let google = Google::start("canary-node-token", Some(3600));
    google.exchange(
        "identitynamespace:my-project.svc.id.goog:my-provider",
        "canary-subject",
        "canary-federated",
    );
    let enabled = [("iam.gke.io/enable-wi-image-pull", "true")];
    let run = |token: &str, annotations: &[(&str, &str)]| {
        run(&google, IMAGE)
            .arguments(&["--identity-provider=my-provider", "--project-id", "my-project"])
            .variable("NAVICERT_GCP_STS_ENDPOINT", google.server().url())
            .service_account(token, annotations)
    };
    let ran = run("canary-subject", &enabled).run();
    assert_eq!(ran.login(HOST).1, "canary-federated");
    assert_eq!(ran.response()["cacheDuration"], "30m0s");
    google.violations().assert_none();
    for annotations in [&[][..], &[("iam.gke.io/enable-wi-image-pull", "True")]] {
        assert_eq!(run("canary-subject", annotations).run().login(HOST).1, "canary-node-token");
    }
    let refused = run("canary-other-token", &enabled).run();
    refused.assert_error(1, "invalid_grant");
    assert!(!refused.stderr.contains("canary"), "{}", refused.stderr);
    run("", &enabled).run().assert_error(1, "the kubelet sent no token");
    let half = Run::new(GCP, IMAGE)
        .arguments(&["--identity-provider=x"])
        .variable("GCE_METADATA_HOST", google.host());
    half.run().assert_error(2, "--identity-provider requires --project-id");
}

#[test]
fn returns_logins_from_instance_metadata() {
    // I184, I190, I191
    let google = Google::start("canary-node-token", Some(3600));
    let elsewhere = HttpServer::start_plain();
    // YW5uOnB3 is ann:pw
    let config = r#"{"https://registry.example":{"auth":"YW5uOnB3"},"*.other.example":{"username":"bob","password":"pw2"}}"#;
    google.attribute("google-dockercfg", config);
    google.attribute("google-dockercfg-url", &format!("{}\n", elsewhere.url_of("/config")));
    elsewhere.answer("/config", Answer::text(config));
    for flow in ["dockercfg", "dockercfg-url"] {
        let ask = |image: &str| run(&google, image).arguments(&["-a", flow]).run();
        assert_eq!(ask("registry.example/x").login("https://registry.example"), ("ann".into(), "pw".into()));
        assert_eq!(ask("eu.other.example/x").login("*.other.example"), ("bob".into(), "pw2".into()));
        let unmatched = ask("third.example/x");
        assert_eq!(unmatched.response()["auth"], json!({}));
        assert!(!unmatched.stdout.contains("canary"));
    }
    assert!(elsewhere.requests().iter().all(|request| request.header("metadata-flavor").is_none()), "I190");
    for (answer, said) in [
        (Answer::status(404), "rejected the request: 404"),
        (Answer::text("{"), "malformed docker configuration"),
    ] {
        elsewhere.answer("/config", answer);
        run(&google, "registry.example/x").arguments(&["-a=dockercfg-url"]).run().assert_error(1, said);
    }
    run(&google, IMAGE)
        .arguments(&["--authFlow=x"])
        .run()
        .assert_error(2, "invalid value \"x\" for authFlow");
}

#[test]
fn misbehaving_metadata_server_is_an_error_not_an_empty_response() {
    // I189
    let google = Google::start("token", Some(3600));
    let mut canaries = Canaries::new();
    let token = canaries.plant("token");
    let flavored = |answer: Answer| answer.header("metadata-flavor", "Google");
    let elsewhere = HttpServer::start_plain();
    for (answer, code, said) in [
        (flavored(Answer::status(500)), 1, "rejected the request: 500"),
        (flavored(Answer::status(404)), 1, "rejected the request: 404"),
        (Answer::json(&json!({"access_token": token})), 1, "missing header `Metadata-Flavor: Google`"),
        (flavored(Answer::text(&token)), 1, "malformed access token"),
        (flavored(Answer::json(&json!({"access_token": ""}))), 1, "empty access token"),
        (flavored(Answer::json(&json!({"access_token": [token]}))), 1, "malformed access token"),
        (Answer::redirect(302, &elsewhere.url_of("/")), 5, "redirects are not followed"),
        (flavored(Answer::filler("application/json", 11 << 20)), 4, "is larger than 10485760 bytes"),
        (Answer::cut(Cut::Reset), 4, "failed to reach"),
    ] {
        google.server().answer(TOKEN_PATH, answer);
        let ran = run(&google, IMAGE).run();
        ran.assert_error(code, said);
        canaries.assert_absent("standard error", ran.stderr.as_bytes());
    }
    assert!(elsewhere.requests().is_empty());
    google.server().forget_answers();
    google.server().answer_once(TOKEN_PATH, Answer::status(503).header("metadata-flavor", "Google"));
    assert_eq!(run(&google, IMAGE).run().login(HOST).1, "token", "I214");
}

#[test]
fn runs_under_its_alias_and_as_docker_helper() {
    let google = Google::start("canary-token", Some(3600));
    let (_folder, link) = linked(GCP, "gcp-credential-provider");
    let ran = Run::new(&link, IMAGE).variable("GCE_METADATA_HOST", google.host()).run();
    assert_eq!(ran.login(HOST).1, "canary-token");
    let (_folder, link) = linked(GCP, "docker-credential-gcr");
    let helper = Run::new(&link, "").arguments(&["get"]).variable("GCE_METADATA_HOST", google.host());
    let answer: serde_json::Value = serde_json::from_str(&helper.run_with("https://gcr.io").stdout).unwrap();
    assert_eq!(
        answer,
        json!({"ServerURL": "https://gcr.io", "Username": "_token", "Secret": "canary-token"})
    );
    let foreign = helper.run_with("https://index.docker.io/v1/");
    assert_eq!((foreign.code, foreign.stdout.as_str()), (1, "credentials not found in native keychain\n"));
}
