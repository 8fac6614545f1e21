//! `ecr-credential-provider` against the test kit's AWS fake, which verifies every signature.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "test helpers fail by panicking, and the support module serves several suites"
)]

mod support;

use std::fs;

use navicert_testkit::services::cloud::Amazon;
use navicert_testkit::{Answer, Ca, Canaries, Cut, HttpServer};
use serde_json::json;
use support::{ECR, Run, linked, now};

const IMAGE: &str = "123456789012.dkr.ecr.us-west-2.amazonaws.com/team/app";
const HOST: &str = "123456789012.dkr.ecr.us-west-2.amazonaws.com";
const ROLE: &str = "arn:aws:iam::123456789012:role/puller";

/// A run with the AWS fake as its endpoint, without credentials.
fn run(amazon: &Amazon, image: &str) -> Run {
    Run::new(ECR, image)
        .variable("AWS_ENDPOINT_URL", amazon.server().url())
        .variable("AWS_EC2_METADATA_DISABLED", "true")
}

fn with_key(amazon: &Amazon, image: &str) -> Run {
    run(amazon, image)
        .variable("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        .variable("AWS_SECRET_ACCESS_KEY", Amazon::SECRET)
}

fn hours(hours: f64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "seconds of this century are exact")]
    let now = now() as f64;
    Some(now + hours * 3600.0)
}

#[test]
fn returns_login_cached_for_half_of_its_lifetime() {
    // I172, I173, I176, I212
    let amazon = Amazon::start();
    amazon.hand_out("canary-password", hours(12.0));
    let ran = with_key(&amazon, IMAGE).run();
    assert_eq!(ran.login(HOST), ("AWS".to_owned(), "canary-password".to_owned()));
    let response = ran.response();
    assert_eq!(response["cacheKeyType"], "Registry");
    assert_eq!(response["auth"].as_object().unwrap().len(), 1, "I218");
    let kept = response["cacheDuration"].as_str().unwrap();
    assert!(kept == "6h0m0s" || kept.starts_with("5h59m5"), "{kept}");
    assert_eq!(ran.stderr, "");
    amazon.violations().assert_none();
}

#[test]
fn does_not_cache_tokens_without_remaining_lifetime() {
    // I176, I177
    let amazon = Amazon::start();
    for expires in [hours(-24.0 * 365.0), hours(0.05), None] {
        amazon.hand_out("x", expires);
        let ran = with_key(&amazon, IMAGE).run();
        assert_eq!(ran.response()["cacheDuration"], "0s");
        assert!(ran.stderr.contains("is not cached"), "{}", ran.stderr);
    }
}

#[test]
fn public_registry_uses_ecr_public() {
    // I170, I174
    let amazon = Amazon::start();
    amazon.hand_out("public-password", hours(12.0));
    for host in ["public.ecr.aws", "ecr-public.aws.com"] {
        let ran = with_key(&amazon, &format!("{host}/docker/library/busybox")).run();
        assert_eq!(ran.login(host).1, "public-password");
    }
    let seen = amazon.server().requests();
    assert!(
        seen.iter()
            .all(|request| request.header("authorization").unwrap().contains("/us-east-1/ecr-public/"))
    );
    amazon.violations().assert_none();
    amazon.server().answer("/", Answer::json(&json!({"__type": "AccessDeniedException"})).with_status(400));
    let ran = with_key(&amazon, "public.ecr.aws/x/y").run();
    ran.assert_error(1, "AccessDeniedException");
    assert!(ran.stderr.contains("sts:GetServiceBearerToken"), "{}", ran.stderr);
}

#[test]
fn environment_overrides_endpoints_of_one_or_all_services() {
    // I180, I211: plain HTTP too, which no default endpoint serves.
    let amazon = Amazon::start();
    amazon.hand_out("password", hours(12.0));
    let keyed = |image: &str| {
        Run::new(ECR, image)
            .variable("AWS_EC2_METADATA_DISABLED", "true")
            .variable("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
            .variable("AWS_SECRET_ACCESS_KEY", Amazon::SECRET)
            .variable("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    };
    for (image, host, variable) in [
        (IMAGE, HOST, "AWS_ENDPOINT_URL_ECR"),
        ("public.ecr.aws/x/y", "public.ecr.aws", "AWS_ENDPOINT_URL_ECR_PUBLIC"),
    ] {
        let ran = keyed(image).variable(variable, amazon.server().url()).run();
        assert_eq!(ran.login(host).1, "password", "{variable}");
    }
    let sts = keyed(IMAGE)
        .variable("AWS_ENDPOINT_URL_STS", amazon.server().url())
        .variable("AWS_ENDPOINT_URL_ECR", amazon.server().url())
        .service_account("canary-token", &[("eks.amazonaws.com/ecr-role-arn", ROLE)]);
    sts.run();
    let seen = amazon.server().requests();
    let called = seen.iter().any(|request| request.text().contains("Action=AssumeRoleWithWebIdentity"));
    assert!(called, "STS at its own endpoint");
}

#[test]
fn finds_credentials_in_every_source() {
    // I178, I179
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let amazon = Amazon::start();
    amazon.trust(ROLE, "canary-web-token", "session-of-web-identity");
    amazon.trust("arn:aws:iam::1:role/chained", "external", "session-of-chain");
    amazon.agent_wants("canary-agent-token");
    fs::write(path("token"), "canary-web-token\n").unwrap();
    fs::write(path("agent-token"), "canary-agent-token\n").unwrap();
    let secret = Amazon::SECRET;
    let keys = format!("aws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = {secret}\n");
    let printed =
        format!("{{\"Version\":1,\"AccessKeyId\":\"AKIDEXAMPLE\",\"SecretAccessKey\":\"{secret}\"}}");
    fs::write(path("printed"), printed).unwrap();
    let config = format!(
        "[profile chained]\nrole_arn = arn:aws:iam::1:role/chained\nsource_profile = keys\nexternal_id = external\n\
         [profile process]\ncredential_process = /bin/cat '{}'\n\
         [profile web]\nrole_arn = {ROLE}\nweb_identity_token_file = {}\n\
         [profile container]\nrole_arn = arn:aws:iam::1:role/chained\ncredential_source = EcsContainer\nexternal_id = external\n\
         [profile loop]\nrole_arn = x\nsource_profile = loop2\n[profile loop2]\nrole_arn = x\nsource_profile = loop\n\
         [profile sso]\nsso_session = x\n",
        path("printed").display(),
        path("token").display()
    );
    fs::write(path("config"), config).unwrap();
    fs::write(path("credentials"), format!("[keys]\n{keys}[default]\n{keys}")).unwrap();
    let run = || run(&amazon, IMAGE);
    let files = || {
        run()
            .variable("AWS_CONFIG_FILE", path("config"))
            .variable("AWS_SHARED_CREDENTIALS_FILE", path("credentials"))
    };
    let agent = |run: Run| {
        run.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI", amazon.server().url_of("/agent"))
            .variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path("agent-token"))
    };
    fs::create_dir(path(".aws")).unwrap();
    fs::copy(path("credentials"), path(".aws/credentials")).unwrap();
    for (source, run) in [
        ("environment", with_key(&amazon, IMAGE)),
        (
            "web identity",
            run().variable("AWS_WEB_IDENTITY_TOKEN_FILE", path("token")).variable("AWS_ROLE_ARN", ROLE),
        ),
        ("default profile", files()),
        ("home", run().variable("HOME", dir.path())),
        ("keys", files().variable("AWS_PROFILE", "keys")),
        ("chained", files().variable("AWS_PROFILE", "chained")),
        ("process", files().variable("AWS_PROFILE", "process")),
        ("web profile", files().variable("AWS_PROFILE", "web")),
        ("container profile", agent(files().variable("AWS_PROFILE", "container"))),
        ("container", agent(run())),
        (
            "metadata",
            Run::new(ECR, IMAGE)
                .variable("AWS_ENDPOINT_URL", amazon.server().url())
                .variable("AWS_EC2_METADATA_SERVICE_ENDPOINT", amazon.server().url()),
        ),
    ] {
        let ran = run.run();
        assert_eq!(ran.code, 0, "{source}: {}", ran.stderr);
        assert_eq!(ran.login(HOST).0, "AWS", "{source}");
    }
    amazon.violations().assert_none();
    for (run, code, said) in [
        (
            run(),
            1,
            "AWS_ACCESS_KEY_ID is not set; AWS_WEB_IDENTITY_TOKEN_FILE is not set; no profile found; \
          AWS_CONTAINER_CREDENTIALS_FULL_URI is not set; AWS_EC2_METADATA_DISABLED disables instance metadata",
        ),
        (run().variable("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), 3, "but AWS_SECRET_ACCESS_KEY is not"),
        (run().variable("AWS_WEB_IDENTITY_TOKEN_FILE", path("token")), 3, "but AWS_ROLE_ARN is not"),
        (
            run().variable("AWS_WEB_IDENTITY_TOKEN_FILE", path("none")).variable("AWS_ROLE_ARN", ROLE),
            3,
            "failed to load",
        ),
        (files().variable("AWS_PROFILE", "missing"), 3, "unknown profile `missing` in AWS_PROFILE"),
        (files().variable("AWS_PROFILE", "loop"), 3, "is circular"),
        (files().variable("AWS_PROFILE", "sso"), 3, "requires an interactive login"),
        (
            run().variable("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://198.51.100.1/x"),
            5,
            "plain HTTP is not allowed",
        ),
        (
            run().variable("AWS_CONTAINER_CREDENTIALS_FULL_URI", amazon.server().url_of("/agent")),
            1,
            "rejected the request: 401",
        ),
    ] {
        run.run().assert_error(code, said);
    }
}

#[test]
fn tls_trusts_system_roots_or_a_ca_file() {
    let (ca, other) = (Ca::new("machine"), Ca::new("other"));
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, ca: &Ca| {
        let path = dir.path().join(name);
        fs::write(&path, ca.pem()).unwrap();
        path
    };
    let (trusted, foreign) = (file("ca.pem", &ca), file("other.pem", &other));
    let server = HttpServer::start(&ca);
    // QVdTOnBhc3N3b3Jk is AWS:password
    server.answer(
        "/",
        Answer::json(&json!({"authorizationData": [{"authorizationToken": "QVdTOnBhc3N3b3Jk"}]})),
    );
    let run = || {
        let run = Run::new(ECR, IMAGE).variable("AWS_ENDPOINT_URL_ECR", server.url());
        run.variable("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").variable("AWS_SECRET_ACCESS_KEY", Amazon::SECRET)
    };
    for variable in ["SSL_CERT_FILE", "AWS_CA_BUNDLE"] {
        assert_eq!(run().variable(variable, &trusted).run().login(HOST).1, "password");
        let ran = run().variable(variable, &foreign).run();
        ran.assert_error(4, "TLS connection to");
        assert!(ran.stderr.contains("hint: the system root certificates"), "{}", ran.stderr);
    }
    let nothing = run().variable("AWS_CA_BUNDLE", dir.path().join("absent")).run();
    nothing.assert_error(4, "absent");

    // C186: an endpoint with a self-signed certificate that is trusted itself.
    let own = Ca::self_signed_server("endpoint");
    server.present(&own.own_identity());
    let trusted = file("own.pem", &own);
    assert_eq!(run().variable("AWS_CA_BUNDLE", &trusted).run().login(HOST).1, "password");
}

#[test]
fn service_account_role_never_falls_back_to_the_node() {
    // I181
    let amazon = Amazon::start();
    let mut canaries = Canaries::new();
    let (token, session) = (canaries.plant("token"), canaries.plant("session"));
    canaries.adopt("key", Amazon::SECRET.as_bytes());
    amazon.trust(ROLE, &token, &session);
    let annotated = [("eks.amazonaws.com/ecr-role-arn", ROLE)];
    let by_annotation = with_key(&amazon, IMAGE).service_account(&token, &annotated);
    let by_variable = run(&amazon, IMAGE).service_account(&token, &[]).variable("AWS_ECR_ROLE_ARN", ROLE);
    for run in [&by_annotation, &by_variable] {
        assert_eq!(run.run().login(HOST).0, "AWS");
    }
    let seen = amazon.server().requests();
    assert!(seen.iter().any(|request| request.header("x-amz-security-token") == Some(&session)));
    assert!(seen[0].text().contains("RoleSessionName=ecr-credential-provider"));
    amazon.violations().assert_none();

    // Without a role the node's credentials are used. A rejected role is an error, and the token is not shown.
    let no_role = with_key(&amazon, IMAGE).service_account(&token, &[]);
    assert_eq!(no_role.run().login(HOST).0, "AWS");
    let wrong = [("eks.amazonaws.com/ecr-role-arn", "arn:aws:iam::1:role/other")];
    let ran = with_key(&amazon, IMAGE).service_account(&token, &wrong).run();
    ran.assert_error(
        1,
        "STS rejected the request: 403 AccessDenied (Not authorized to perform sts:AssumeRoleWithWebIdentity with …)",
    );
    canaries.assert_absent("standard error", ran.stderr.as_bytes());
    let explained =
        with_key(&amazon, IMAGE).service_account(&token, &wrong).arguments(&["--explain", "-"]).run();
    assert_eq!(explained.code, 1);
    canaries.assert_absent("the explanation", explained.stdout.as_bytes());
}

#[test]
fn names_misbehaving_service_without_secrets() {
    let amazon = Amazon::start();
    let mut canaries = Canaries::new();
    let session = canaries.plant("session token");
    canaries.adopt("key", Amazon::SECRET.as_bytes());
    let elsewhere = Amazon::start();
    let run = || with_key(&amazon, IMAGE).variable("AWS_SESSION_TOKEN", &session);
    for (answer, code, said) in [
        (Answer::status(500), 1, "ECR rejected the request: 500"),
        (
            Answer::json(&json!({"__type": "x#ThrottlingException"})).with_status(400),
            1,
            "ThrottlingException",
        ),
        (
            Answer::json(&json!({"__type": "ExpiredTokenException", "message": "it is over"}))
                .with_status(400),
            1,
            "(it is over)",
        ),
        (Answer::text("<html>hello"), 1, "malformed authorization data"),
        (Answer::json(&json!({"authorizationData": []})), 1, "empty authorization data"),
        (Answer::redirect(307, &elsewhere.server().url_of("/")), 5, "redirects are not followed"),
        (Answer::filler("application/json", 1 << 40), 4, "is larger than"),
        (Answer::endless("application/json"), 4, "is larger than"),
        (Answer::cut(Cut::Clip), 4, "closed in the middle of the head"),
        (Answer::text("x").truncated_at(0), 4, "closed in the middle of the body"),
    ] {
        amazon.server().answer("/", answer);
        let ran = run().run();
        ran.assert_error(code, said);
        canaries.assert_absent("standard error", ran.stderr.as_bytes());
    }
    assert!(elsewhere.server().requests().is_empty(), "I217");
    // AWS echoes the session token in its message about a wrong signature.
    amazon.server().forget_answers();
    amazon.trust(ROLE, "a token", &session);
    let ran = run()
        .variable("AWS_ACCESS_KEY_ID", "ASIAROLE1")
        .variable("AWS_SECRET_ACCESS_KEY", "not-the-right-key-at-all")
        .run();
    ran.assert_error(
        1,
        "ECR rejected the request: 403 InvalidSignatureException (The Canonical String for this request",
    );
    canaries.assert_absent("standard error", ran.stderr.as_bytes());
    let gate = navicert_testkit::Gate::new();
    amazon.server().answer("/", Answer::text("x").after(&gate));
    run().arguments(&["--timeout=300ms"]).run().assert_error(4, "timed out after");
    amazon.server().refuse_connections();
    run().run().assert_error(4, "failed to connect to");
}

#[test]
fn retries_throttling_and_transient_errors() {
    // I183, I214
    let amazon = Amazon::start();
    amazon
        .server()
        .answer_once("/", Answer::json(&json!({"__type": "ThrottlingException"})).with_status(400));
    amazon.server().answer_once("/", Answer::status(503));
    assert_eq!(with_key(&amazon, IMAGE).run().login(HOST).0, "AWS");
    assert_eq!(amazon.server().requests().len(), 3);
}

#[test]
fn explain_shows_every_step_without_secrets() {
    let amazon = Amazon::start();
    let mut canaries = Canaries::new();
    let password = canaries.plant("password");
    canaries.adopt("key", Amazon::SECRET.as_bytes());
    amazon.hand_out(&password, hours(12.0));
    let ran = with_key(&amazon, IMAGE).arguments(&["--explain", IMAGE]).run();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for said in [
        "registry    ECR, region us-west-2, partition aws",
        "identity    environment: access key `AKIDEXAMPLE`",
        ": 200",
        "credential  for `123456789012.dkr.ecr.us-west-2.amazonaws.com`: user `AWS`",
        "cache       by Registry, for ",
    ] {
        assert!(ran.stdout.contains(said), "{}", ran.stdout);
    }
    canaries.assert_absent("the explanation", ran.stdout.as_bytes());
    let foreign = with_key(&amazon, IMAGE).arguments(&["--explain=docker.io/library/busybox"]).run();
    assert!(foreign.stdout.contains("`docker.io` is not an Amazon ECR registry"), "{}", foreign.stdout);
}

#[test]
fn runs_as_docker_helper_under_docker_name() {
    // CVE-2021-41092
    let amazon = Amazon::start();
    amazon.hand_out("canary-password", hours(12.0));
    let (_folder, link) = linked(ECR, "docker-credential-ecr-login");
    let helper = |verb: &str| {
        let run = Run::new(&link, "").arguments(&[verb]).variable("AWS_ENDPOINT_URL", amazon.server().url());
        run.variable("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").variable("AWS_SECRET_ACCESS_KEY", Amazon::SECRET)
    };
    let server = format!("https://{HOST}");
    let ran = helper("get").run_with(format!("{server}\n"));
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer, json!({"ServerURL": server, "Username": "AWS", "Secret": "canary-password"}));
    let calls = amazon.server().requests().len();
    for server in [
        "https://index.docker.io/v1/",
        "docker.io",
        "",
        "registry.example",
        &format!("{HOST}.evil.example"),
        &format!("me@{HOST}"),
        &format!("{HOST}\nhost=evil.example"),
        &format!("https://evil.example/{HOST}"),
    ] {
        let ran = helper("get").run_with(server);
        assert_eq!(ran.code, 1, "{server}: {}", ran.stdout);
        assert!(!ran.stdout.contains("canary"), "{server}");
    }
    assert_eq!(amazon.server().requests().len(), calls, "no request was sent");
    assert_eq!(helper("get").run_with("docker.io").stdout, "credentials not found in native keychain\n");
    for (verb, code, stdout) in [("list", 0, "{}\n"), ("erase", 0, "")] {
        let ran = helper(verb).run_with(HOST);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, stdout));
    }
    let stored = helper("store").run_with(r#"{"ServerURL":"x","Username":"u","Secret":"canary"}"#);
    assert!(stored.code == 1 && !stored.stdout.contains("canary"));
    assert!(helper("version").run().stdout.starts_with("docker-credential-ecr-login "));
    assert!(helper("frobnicate").run().stdout.starts_with("usage: "));
}

#[test]
fn custom_host_is_ecr_only_if_configured() {
    // I168, I170
    let amazon = Amazon::start();
    let image = "images.example/team/app";
    assert!(with_key(&amazon, image).run().is_empty());
    let custom = with_key(&amazon, image).arguments(&["--registry-host", "images.example=eu-west-1"]);
    assert_eq!(custom.run().login("images.example").0, "AWS");
    assert!(amazon.server().requests()[0].header("authorization").unwrap().contains("/eu-west-1/ecr/"));
    with_key(&amazon, image)
        .arguments(&["--registry-host=images.example"])
        .run()
        .assert_error(2, "invalid registry host");
}

#[test]
fn rejects_invalid_requests_and_flags() {
    // I164
    let amazon = Amazon::start();
    let run = with_key(&amazon, "");
    run.run().assert_error(1, "image in plugin request was empty");
    run.run_with("hello").assert_error(1, "invalid CredentialProviderRequest");
    run.clone().arguments(&["--nonsense"]).run().assert_error(2, "unknown flag");
    assert!(run.clone().arguments(&["--help"]).run().stdout.contains("--explain IMAGE"));
    assert!(run.arguments(&["--version"]).run().stdout.starts_with("ecr-credential-provider 0."));
    assert!(amazon.server().requests().is_empty());
}
