//! skopeo and podman pull from a real registry that accepts the password of the ECR fake, with the provider as their
//! only credential helper.

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
use navicert_testkit::services::image_registry::User;
use navicert_testkit::{ImageRegistry, Program};
use support::{ECR, linked};

/// The registry user with ECR's password.
const USER: User = User {
    name: "AWS",
    password: "password-of-the-registry",
    hash: "$2y$05$iFg2q17smxPIlYphAl2I8On2xd/nHiYErFWN/HBDvlUtDLa7i9O4S",
};

#[test]
fn skopeo_and_podman_pull_with_ecr_credentials() {
    let Some(registry) = ImageRegistry::start(USER) else { return };
    let amazon = Amazon::start();
    amazon.hand_out(USER.password, None);
    let (dir, _) = linked(ECR, "docker-credential-ecr-login");
    let path = |name: &str| dir.path().join(name);
    let auth = format!("{{\"credHelpers\":{{\"{}\":\"ecr-login\"}}}}", registry.host());
    fs::write(path("auth.json"), auth).unwrap();
    let puller = |name: &str, arguments: &[&str]| {
        Program::new(name)
            .arguments(arguments)
            .variable("PATH", format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", dir.path().display()))
            .variable("HOME", dir.path())
            .variable("XDG_RUNTIME_DIR", dir.path())
            .variable("REGISTRY_AUTH_FILE", path("auth.json"))
            .variable("AWS_ENDPOINT_URL", amazon.server().url())
            .variable("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
            .variable("AWS_SECRET_ACCESS_KEY", Amazon::SECRET)
    };
    let (source, target) =
        (format!("docker://{}", registry.image()), format!("dir:{}", path("pulled").display()));
    let skopeo = puller("skopeo", &["copy", "--src-tls-verify=false", &source, &target]);
    let image = registry.image();
    let (root, run) = (path("podman"), path("podman-run"));
    let podman = puller(
        "podman",
        &[
            "--storage-driver",
            "vfs",
            "--root",
            root.to_str().unwrap(),
            "--runroot",
            run.to_str().unwrap(),
            "pull",
            "--tls-verify=false",
            &image,
        ],
    );
    // The registry counts as ECR only because it is configured so; without that, the pull fails.
    let custom = format!("{}=us-west-2", registry.host());
    for pull in [skopeo.clone(), podman] {
        let outcome = pull.variable("NAVICERT_REGISTRY_HOSTS", &custom).run().unwrap();
        assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    }
    assert!(amazon.server().requests().len() >= 2, "each run requested the password");
    amazon.violations().assert_none();
    let calls = amazon.server().requests().len();
    assert_ne!(skopeo.clone().run().unwrap().code(), Some(0));
    assert_eq!(amazon.server().requests().len(), calls);
    amazon.hand_out("another-password", None);
    let outcome = skopeo.variable("NAVICERT_REGISTRY_HOSTS", &custom).run().unwrap();
    assert_ne!(outcome.code(), Some(0), "the registry wants exactly this password");
}
