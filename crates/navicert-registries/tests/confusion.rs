//! Host confusion: image names that imitate a registry never get its credential.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "test helpers fail by panicking, and the support module serves several suites"
)]

mod support;

use std::collections::BTreeSet;
use std::fs;

use navicert_image::{Keyring, Profile, RegistryCredential};
use navicert_testkit::services::cloud::{Amazon, Azure, Google};
use support::{ACR, ECR, GCP, Run};

/// The cloud an image belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Amazon,
    Google,
    Azure,
    NoProvider,
}

use Owner::NoProvider;

/// Images and the cloud they belong to. GO-2026-6225, CVE-2021-41092, I171, I188, I198.
const SHAPES: [(&str, Owner); 76] = [
    ("123456789012.dkr.ecr.us-west-2.amazonaws.com/x", Owner::Amazon),
    ("123456789012.DKR.ecr.us-west-2.AmazonAWS.com/x", Owner::Amazon),
    ("public.ecr.aws/x/y", Owner::Amazon),
    ("eu.gcr.io/p/x", Owner::Google),
    ("us-docker.pkg.dev/p/r/x", Owner::Google),
    ("mine.azurecr.io/x", Owner::Azure),
    ("mine-more.azurecr.io/x", Owner::Azure),
    // Text after the host.
    ("123456789012.dkr.ecr.us-west-2.amazonaws.com.evil.example/x", NoProvider),
    ("mine.azurecr.io.evil.example/x", NoProvider),
    ("gcr.io.evil.example/x", NoProvider),
    ("us-docker.pkg.dev.evil.example/x", NoProvider),
    ("public.ecr.aws.evil.example/x", NoProvider),
    ("mine.azurecr.io-evil.example/x", NoProvider),
    ("mine.azurecr.ioevil/x", NoProvider),
    // Text before the host.
    ("evil-azurecr.io/x", NoProvider),
    ("evilgcr.io/x", NoProvider),
    ("evilpkg.dev/x", NoProvider),
    ("evil.public.ecr.aws/x", NoProvider),
    ("evil.123456789012.dkr.ecr.us-west-2.amazonaws.com/x", NoProvider),
    ("evil.mine.azurecr.io/x", NoProvider),
    ("a.b.gcr.io/x", NoProvider),
    ("a.us-docker.pkg.dev/x", NoProvider),
    ("xcontainer.cloud.google.com/x", NoProvider),
    // Suffix only.
    ("azurecr.io/x", NoProvider),
    ("pkg.dev/x", NoProvider),
    ("amazonaws.com/x", NoProvider),
    (".azurecr.io/x", NoProvider),
    ("-.azurecr.io/x", NoProvider),
    // Registry host in the path.
    ("evil.example/mine.azurecr.io/x", NoProvider),
    ("evil.example/azurecr.io", NoProvider),
    ("evil.example/gcr.io/x", NoProvider),
    ("evil.example/123456789012.dkr.ecr.us-west-2.amazonaws.com/x", NoProvider),
    ("evil.example//public.ecr.aws/x", NoProvider),
    // User info, as in a URL.
    ("mine.azurecr.io@evil.example/x", NoProvider),
    ("mine.azurecr.io:pw@evil.example/x", NoProvider),
    ("gcr.io@evil.example/x", NoProvider),
    ("evil.example@gcr.io/x", NoProvider),
    ("user:pw@public.ecr.aws/x", NoProvider),
    // Ports.
    ("mine.azurecr.io:5000/x", NoProvider),
    ("gcr.io:80/x", NoProvider),
    ("gcr.io:/x", NoProvider),
    ("public.ecr.aws:443:443/x", NoProvider),
    ("123456789012.dkr.ecr.us-west-2.amazonaws.com:8443/x", NoProvider),
    // Trailing and doubled dots.
    ("gcr.io./x", NoProvider),
    ("mine.azurecr.io./x", NoProvider),
    ("mine..azurecr.io/x", NoProvider),
    ("123456789012.dkr.ecr.us-west-2.amazonaws.com./x", NoProvider),
    // Characters that are not separators.
    ("mine.azurecr.io\\evil.example/x", NoProvider),
    ("mine.azurecr.io%2fevil.example/x", NoProvider),
    ("mine.azurecr.io%00.evil.example/x", NoProvider),
    ("mine.azurecr.io#.evil.example/x", NoProvider),
    ("mine.azurecr.io?.evil.example/x", NoProvider),
    ("mine.azurecr.io;evil.example/x", NoProvider),
    ("mine.azurecr.io,evil.example/x", NoProvider),
    ("mine.azurecr.io evil.example/x", NoProvider),
    ("mine.azurecr.io\n.evil.example/x", NoProvider),
    ("mine.azurecr.io\r\nhost: evil.example/x", NoProvider),
    ("mine.azurecr.io\t/x", NoProvider),
    // Schemes.
    ("http://mine.azurecr.io/x", NoProvider),
    ("ftp://gcr.io/x", NoProvider),
    ("https://https://gcr.io/x", NoProvider),
    ("//gcr.io/x", NoProvider),
    ("file:///gcr.io/x", NoProvider),
    // Non-ASCII letters.
    ("mine.аzurecr.io/x", NoProvider),
    ("mine.azurecr。io/x", NoProvider),
    ("gcr.іo/x", NoProvider),
    ("mine.azurecr.io\u{200b}/x", NoProvider),
    // Inconsistent accounts, services and regions.
    ("12345678901.dkr.ecr.us-west-2.amazonaws.com/x", NoProvider),
    ("1234567890123.dkr.ecr.us-west-2.amazonaws.com/x", NoProvider),
    ("12345678901x.dkr.ecr.us-west-2.amazonaws.com/x", NoProvider),
    ("123456789012.dog.ecr.us-west-2.amazonaws.com/x", NoProvider),
    ("123456789012.dkr.cat.us-west-2.amazonaws.com/x", NoProvider),
    ("123456789012.dkr.ecr.us-west-2.amazonaws.lol/x", NoProvider),
    ("123456789012.dkr.ecr.us-west-2.amazonaws.com.cn/x", NoProvider),
    ("123456789012.dkr.ecr.evil.us-west-2.amazonaws.com/x", NoProvider),
    ("*.azurecr.io/x", NoProvider),
];

#[test]
fn credential_goes_only_to_its_own_registry() {
    // I168, I169, I170
    let (amazon, google) = (Amazon::start(), Google::start("canary-google", Some(3600)));
    let azure = Azure::start("mine.azurecr.io", "t");
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("azure.json");
    fs::write(&config, r#"{"useManagedIdentityExtension": true, "tenantId": "t"}"#).unwrap();
    let ask = |owner: Owner, image: &str| match owner {
        Owner::Amazon => Run::new(ECR, image)
            .variable("AWS_ENDPOINT_URL", amazon.server().url())
            .variable("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
            .variable("AWS_SECRET_ACCESS_KEY", Amazon::SECRET),
        Owner::Google => Run::new(GCP, image).variable("GCE_METADATA_HOST", google.host()),
        _ => Run::new(ACR, image)
            .arguments(&[config.to_str().unwrap()])
            .variable("AZURE_POD_IDENTITY_AUTHORITY_HOST", azure.server().url())
            .variable("NAVICERT_ACR_ENDPOINT", azure.server().url()),
    };
    let calls = || {
        amazon.server().requests().len() + google.server().requests().len() + azure.server().requests().len()
    };
    assert_eq!(SHAPES.iter().map(|(image, _)| image).collect::<BTreeSet<_>>().len(), SHAPES.len());
    for (image, owner) in SHAPES {
        for provider in [Owner::Amazon, Owner::Google, Owner::Azure] {
            let before = calls();
            let ran = ask(provider, image).run();
            if provider != owner {
                assert!(ran.is_empty(), "{provider:?} answered for {image:?}: {}", ran.stdout);
                assert_eq!(calls(), before, "{provider:?} sent a request for {image:?}");
                continue;
            }
            let response = ran.response();
            let logins = response["auth"].as_object().unwrap().iter().map(|(key, login)| {
                let text = |name: &str| login[name].as_str().unwrap().to_owned();
                (key.clone(), RegistryCredential::new(text("username"), text("password")))
            });
            let keyring = Keyring::new(logins, Profile::Kube);
            let found =
                |image: &str| keyring.lookup(image).iter().any(|credential| !credential.is_anonymous());
            assert!(found(image), "{provider:?} has no credential for its own {image}");
            // The kubelet parses user info, queries and fragments as in a URL: the host is the same, so no credential leaks.
            let host_of = |image: &str| {
                image.rsplit('@').next().unwrap().split(['/', '#', '?']).next().unwrap().to_owned()
            };
            let others = SHAPES
                .iter()
                .filter(|(other, other_owner)| *other_owner != owner && host_of(other) != host_of(image));
            for (other, _) in others {
                assert!(!found(other), "credential of {provider:?} for {image} would be sent to {other:?}");
            }
        }
    }
}
