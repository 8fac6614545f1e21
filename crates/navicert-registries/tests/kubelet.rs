//! The providers run by a kubelet: its protocol rules and its configuration files.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "test helpers fail by panicking, and the support module serves several suites"
)]

mod support;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use navicert_image::config::{ConfigFile, lint};
use navicert_image::conformance::{ImagePluginUnderTest, check};
use navicert_image::provider::ProviderSettings;
use navicert_image::service_account::PullIdentity;
use navicert_image::{Profile, Providers, reload};
use navicert_plugin::{Environment, ProcessRunner};
use navicert_testkit::Program;
use navicert_testkit::cli::sibling::NAVICERT;
use navicert_testkit::services::cloud::{Amazon, Azure, Google};
use navicert_types::SystemClock;
use navicert_types::image_credential::WireVersion;
use support::{ACR, ECR, GCP, now};
use tempfile::TempDir;

const IMAGES: [(&str, &str, &str); 3] = [
    (ECR, "ecr.yaml", "123456789012.dkr.ecr.us-west-2.amazonaws.com/team/app"),
    (GCP, "gcp.yaml", "eu.gcr.io/project/app"),
    (ACR, "acr.yaml", "mine.azurecr.io/team/app"),
];

/// A node with the fakes of all three clouds.
struct Node {
    amazon: Amazon,
    google: Google,
    azure: Azure,
    dir: TempDir,
}

impl Node {
    fn new() -> Self {
        let node = Node {
            amazon: Amazon::start(),
            google: Google::start("canary-google-token", Some(3600)),
            azure: Azure::start("mine.azurecr.io", "t"),
            dir: tempfile::tempdir().unwrap(),
        };
        #[expect(clippy::cast_precision_loss, reason = "seconds of this century are exact")]
        node.amazon.hand_out("canary-amazon-password", Some((now() + 12 * 3600) as f64));
        fs::write(node.path("azure.json"), r#"{"useManagedIdentityExtension": true, "tenantId": "t"}"#)
            .unwrap();
        fs::create_dir(node.path("bin")).unwrap();
        for program in [ECR, GCP, ACR] {
            let name = Path::new(program).file_name().unwrap();
            symlink(program, node.path("bin").join(name)).unwrap();
        }
        node
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT_URL", self.amazon.server().url()),
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", Amazon::SECRET.to_owned()),
            ("GCE_METADATA_HOST", self.google.host()),
            ("AZURE_POD_IDENTITY_AUTHORITY_HOST", self.azure.server().url()),
            ("AZURE_AUTHORITY_HOST", self.azure.server().url()),
            ("NAVICERT_ACR_ENDPOINT", self.azure.server().url()),
        ]
    }

    fn environment(&self) -> Environment {
        self.variables().into_iter().collect()
    }

    /// An example of the project, with this node's paths in it.
    fn example(&self, name: &str) -> PathBuf {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/image-providers");
        let text = fs::read_to_string(dir.join(name)).unwrap();
        let text = text.replace("/etc/kubernetes/azure.json", self.path("azure.json").to_str().unwrap());
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }
}

fn runner() -> ProcessRunner {
    ProcessRunner::new(Arc::new(SystemClock))
}

#[test]
fn every_provider_follows_every_protocol_rule_in_every_version() {
    // I164; what `navicert image plugin-check` runs
    let node = Node::new();
    for (program, _, image) in IMAGES {
        let args: Vec<OsString> =
            if program == ACR { vec![node.path("azure.json").into()] } else { Vec::new() };
        for version in WireVersion::ALL {
            let plugin = ImagePluginUnderTest {
                program: program.into(),
                args: args.clone(),
                environment: node.environment(),
                image: image.to_owned(),
                version,
                limit: Duration::from_secs(20),
            };
            let results = check(&plugin, &runner());
            let broken: Vec<_> = results.iter().filter(|result| result.result.is_err()).collect();
            assert!(broken.is_empty(), "{program} {version:?}: {broken:?}");
            assert!(results.len() >= 14, "{results:?}");
        }
    }
}

#[test]
fn every_provider_works_with_its_example_configuration() {
    let node = Node::new();
    for (_, example, image) in IMAGES {
        let config = reload::load(&node.example(example), Profile::Hardened).unwrap();
        let settings = ProviderSettings::new(
            &node.path("bin"),
            node.environment(),
            Arc::new(runner()),
            Arc::new(SystemClock),
        );
        let providers = Providers::new(&config, settings);
        let lookup = providers.lookup(image, &PullIdentity::None);
        let errors: Vec<String> = lookup.errors().map(|error| format!("{error:?}")).collect();
        assert!(errors.is_empty(), "{errors:?}");
        let attempts = lookup.attempts();
        let first = attempts.first().unwrap_or_else(|| panic!("{example}: no credentials"));
        assert!(!first.credential.is_anonymous());
        let calls = node.amazon.server().requests().len();
        let _again = providers.lookup(image, &PullIdentity::None);
        assert_eq!(node.amazon.server().requests().len(), calls, "served from the cache");
    }
    node.amazon.violations().assert_none();
    node.google.violations().assert_none();
    node.azure.violations().assert_none();
}

#[test]
fn service_account_token_reaches_its_cloud_with_the_examples() {
    // I181, I192, I203, as requested by a kubelet with KEP-4412
    let node = Node::new();
    let role = "arn:aws:iam::123456789012:role/puller";
    node.amazon.trust(role, "canary-pod-token", "session");
    let cluster =
        "https://container.googleapis.com/v1/projects/my-project/locations/my-location/clusters/my-cluster";
    let audience = format!("identitynamespace:my-project.svc.id.goog:{cluster}");
    node.google.exchange(&audience, "canary-pod-token", "canary-federated");
    node.azure.trust("app-1", "canary-pod-token");
    for (example, image, annotations) in [
        ("ecr-service-account.yaml", IMAGES[0].2, &[("eks.amazonaws.com/ecr-role-arn", role)][..]),
        ("gcp-service-account.yaml", IMAGES[1].2, &[("iam.gke.io/enable-wi-image-pull", "true")]),
        (
            "acr-service-account.yaml",
            IMAGES[2].2,
            &[("kubernetes.azure.com/acr-client-id", "app-1"), ("kubernetes.azure.com/acr-tenant-id", "t")],
        ),
    ] {
        let config = reload::load(&node.example(example), Profile::Kube).unwrap();
        let variables =
            node.variables().into_iter().chain([("NAVICERT_GCP_STS_ENDPOINT", node.google.server().url())]);
        let settings = ProviderSettings::new(
            &node.path("bin"),
            variables.collect(),
            Arc::new(runner()),
            Arc::new(SystemClock),
        );
        let identity = PullIdentity::Bearer {
            token: "canary-pod-token".to_owned().into(),
            annotations: annotations
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        let providers = Providers::new(&config, settings);
        let lookup = providers.lookup(image, &identity);
        let errors: Vec<String> = lookup.errors().map(|error| format!("{error:?}")).collect();
        assert!(errors.is_empty(), "{example}: {errors:?}");
        assert!(!lookup.attempts().is_empty(), "{example}: no credentials");
    }
    assert!(node.amazon.server().requests()[0].text().contains("AssumeRoleWithWebIdentity"));
    node.amazon.violations().assert_none();
    node.google.violations().assert_none();
    node.azure.violations().assert_none();
}

#[test]
fn examples_have_no_configuration_errors() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/image-providers");
    let mut seen = 0;
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read(&path).unwrap();
        let findings = lint(&[ConfigFile { path: path.clone(), text }], None);
        assert!(findings.is_empty(), "{}: {findings:?}", path.display());
        seen += 1;
    }
    assert!(seen >= 7, "{seen} examples");
}

#[test]
fn navicert_image_get_and_plugin_check_agree() {
    let navicert = NAVICERT.find_or_build();
    let node = Node::new();
    let program = |arguments: &[&str]| {
        let program = Program::new(&navicert).own_environment().arguments(arguments);
        let variables = node.variables();
        variables.iter().fold(program, |program, (name, value)| program.variable(name, value)).run().unwrap()
    };
    for (provider, example, image) in IMAGES {
        let config = node.example(example);
        let outcome = program(&[
            "image",
            "get",
            image,
            "--show-secrets",
            "--image-credential-provider-config",
            config.to_str().unwrap(),
            "--image-credential-provider-bin-dir",
            node.path("bin").to_str().unwrap(),
        ]);
        let stdout = String::from_utf8(outcome.stdout.clone()).unwrap();
        assert_eq!(outcome.code(), Some(0), "{stdout}{}", String::from_utf8_lossy(&outcome.stderr));
        assert!(["canary", "refresh-token"].iter().any(|secret| stdout.contains(secret)), "{stdout}");
        let azure = node.path("azure.json");
        let mut arguments = vec!["image", "plugin-check", "--image", image, "--", provider];
        if provider == ACR {
            arguments.push(azure.to_str().unwrap());
        }
        let outcome = program(&arguments);
        assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stdout));
    }
}
