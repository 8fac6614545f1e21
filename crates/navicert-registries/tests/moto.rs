//! End-to-end test against moto, an independent implementation of ECR and STS.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "test helpers fail by panicking, and the support module serves several suites"
)]

mod support;

#[path = "support/moto.rs"]
mod moto;

use std::fs;

use moto::Moto;
use support::{ECR, Run, linked};

const IMAGE: &str = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/team/app";
const HOST: &str = "123456789012.dkr.ecr.eu-central-1.amazonaws.com";
const ROLE: &str = "arn:aws:iam::123456789012:role/puller";

#[test]
fn logs_in_to_moto_and_does_not_cache_its_expired_token() {
    // I172–I177, I181: moto's tokens expired on 2015-01-01.
    let Some(moto) = Moto::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    fs::write(&token, "header.payload.signature").unwrap();
    let config = dir.path().join("config");
    fs::write(&config, format!("[default]\nrole_arn = {ROLE}\nsource_profile = keys\n[profile keys]\naws_access_key_id = a\naws_secret_access_key = b\n")).unwrap();
    let run = || {
        Run::new(ECR, IMAGE)
            .variable("AWS_ENDPOINT_URL", &moto.url)
            .variable("AWS_EC2_METADATA_DISABLED", "true")
    };
    let with_key = |run: Run| run.variable("AWS_ACCESS_KEY_ID", "a").variable("AWS_SECRET_ACCESS_KEY", "b");
    for (how, run, assumes) in [
        ("a key", with_key(run()), false),
        (
            "web identity",
            run().variable("AWS_WEB_IDENTITY_TOKEN_FILE", &token).variable("AWS_ROLE_ARN", ROLE),
            true,
        ),
        (
            "a service account",
            run().service_account("token", &[("eks.amazonaws.com/ecr-role-arn", ROLE)]),
            true,
        ),
        ("a profile's role", run().variable("AWS_CONFIG_FILE", &config), true),
    ] {
        let ran = run.run();
        assert_eq!(ran.login(HOST), ("AWS".to_owned(), "123456789012-auth-token".to_owned()), "{how}");
        assert_eq!(ran.response()["cacheDuration"], "0s", "{how}");
        assert!(ran.stderr.contains("expires at 2015-01-01"), "{how}: {}", ran.stderr);
        let explained = run.arguments(&["--explain", "-"]).run();
        assert_eq!(
            explained.stdout.contains("STS returned access key `ASIA"),
            assumes,
            "{how}: {}",
            explained.stdout
        );
    }
    // moto has no ECR Public: an internal error, reported after three attempts.
    with_key(Run::new(ECR, "public.ecr.aws/x/y").variable("AWS_ENDPOINT_URL", &moto.url))
        .run()
        .assert_error(1, "ECR Public rejected the request: ");
    let (_folder, link) = linked(ECR, "docker-credential-ecr-login");
    let helper = with_key(Run::new(link, "").arguments(&["get"]).variable("AWS_ENDPOINT_URL", &moto.url));
    assert!(helper.run_with(HOST).stdout.contains("123456789012-auth-token"));
}
