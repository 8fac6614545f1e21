//! Names made to be mistaken for a registry's: none gets a credential that is not its own.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "helpers of tests fail by panicking, and the support module serves several suites"
)]

mod support;

use std::collections::BTreeSet;
use std::fs;

use navicert_image::{Credential, Keyring, Profile};
use navicert_testkit::cloud::{Amazon, Azure, Google};
use support::{ACR, ECR, GCP, Run};

/// Whose an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Amazon,
    Google,
    Azure,
    Nobody,
}

use Owner::Nobody;

/// Images, and whose they are. GO-2026-6225, CVE-2021-41092, I171, I188, I198.
const SHAPES: [(&str, Owner); 76] = [
    ("123456789012.dkr.ecr.us-west-2.amazonaws.com/x", Owner::Amazon),
    ("123456789012.DKR.ecr.us-west-2.AmazonAWS.com/x", Owner::Amazon),
    ("public.ecr.aws/x/y", Owner::Amazon),
    ("eu.gcr.io/p/x", Owner::Google),
    ("us-docker.pkg.dev/p/r/x", Owner::Google),
    ("mine.azurecr.io/x", Owner::Azure),
    ("mine-more.azurecr.io/x", Owner::Azure),
    // Something behind the name.
    ("123456789012.dkr.ecr.us-west-2.amazonaws.com.evil.example/x", Nobody),
    ("mine.azurecr.io.evil.example/x", Nobody),
    ("gcr.io.evil.example/x", Nobody),
    ("us-docker.pkg.dev.evil.example/x", Nobody),
    ("public.ecr.aws.evil.example/x", Nobody),
    ("mine.azurecr.io-evil.example/x", Nobody),
    ("mine.azurecr.ioevil/x", Nobody),
    // Something in front of it.
    ("evil-azurecr.io/x", Nobody),
    ("evilgcr.io/x", Nobody),
    ("evilpkg.dev/x", Nobody),
    ("evil.public.ecr.aws/x", Nobody),
    ("evil.123456789012.dkr.ecr.us-west-2.amazonaws.com/x", Nobody),
    ("evil.mine.azurecr.io/x", Nobody),
    ("a.b.gcr.io/x", Nobody),
    ("a.us-docker.pkg.dev/x", Nobody),
    ("xcontainer.cloud.google.com/x", Nobody),
    // The suffix alone.
    ("azurecr.io/x", Nobody),
    ("pkg.dev/x", Nobody),
    ("amazonaws.com/x", Nobody),
    (".azurecr.io/x", Nobody),
    ("-.azurecr.io/x", Nobody),
    // The name in the path.
    ("evil.example/mine.azurecr.io/x", Nobody),
    ("evil.example/azurecr.io", Nobody),
    ("evil.example/gcr.io/x", Nobody),
    ("evil.example/123456789012.dkr.ecr.us-west-2.amazonaws.com/x", Nobody),
    ("evil.example//public.ecr.aws/x", Nobody),
    // User info, as a browser would read it.
    ("mine.azurecr.io@evil.example/x", Nobody),
    ("mine.azurecr.io:pw@evil.example/x", Nobody),
    ("gcr.io@evil.example/x", Nobody),
    ("evil.example@gcr.io/x", Nobody),
    ("user:pw@public.ecr.aws/x", Nobody),
    // Ports.
    ("mine.azurecr.io:5000/x", Nobody),
    ("gcr.io:80/x", Nobody),
    ("gcr.io:/x", Nobody),
    ("public.ecr.aws:443:443/x", Nobody),
    ("123456789012.dkr.ecr.us-west-2.amazonaws.com:8443/x", Nobody),
    // Dots.
    ("gcr.io./x", Nobody),
    ("mine.azurecr.io./x", Nobody),
    ("mine..azurecr.io/x", Nobody),
    ("123456789012.dkr.ecr.us-west-2.amazonaws.com./x", Nobody),
    // Separators that are none.
    ("mine.azurecr.io\\evil.example/x", Nobody),
    ("mine.azurecr.io%2fevil.example/x", Nobody),
    ("mine.azurecr.io%00.evil.example/x", Nobody),
    ("mine.azurecr.io#.evil.example/x", Nobody),
    ("mine.azurecr.io?.evil.example/x", Nobody),
    ("mine.azurecr.io;evil.example/x", Nobody),
    ("mine.azurecr.io,evil.example/x", Nobody),
    ("mine.azurecr.io evil.example/x", Nobody),
    ("mine.azurecr.io\n.evil.example/x", Nobody),
    ("mine.azurecr.io\r\nhost: evil.example/x", Nobody),
    ("mine.azurecr.io\t/x", Nobody),
    // Schemes.
    ("http://mine.azurecr.io/x", Nobody),
    ("ftp://gcr.io/x", Nobody),
    ("https://https://gcr.io/x", Nobody),
    ("//gcr.io/x", Nobody),
    ("file:///gcr.io/x", Nobody),
    // Other alphabets.
    ("mine.аzurecr.io/x", Nobody),
    ("mine.azurecr。io/x", Nobody),
    ("gcr.іo/x", Nobody),
    ("mine.azurecr.io\u{200b}/x", Nobody),
    // Accounts, services and regions that do not fit together.
    ("12345678901.dkr.ecr.us-west-2.amazonaws.com/x", Nobody),
    ("1234567890123.dkr.ecr.us-west-2.amazonaws.com/x", Nobody),
    ("12345678901x.dkr.ecr.us-west-2.amazonaws.com/x", Nobody),
    ("123456789012.dog.ecr.us-west-2.amazonaws.com/x", Nobody),
    ("123456789012.dkr.cat.us-west-2.amazonaws.com/x", Nobody),
    ("123456789012.dkr.ecr.us-west-2.amazonaws.lol/x", Nobody),
    ("123456789012.dkr.ecr.us-west-2.amazonaws.com.cn/x", Nobody),
    ("123456789012.dkr.ecr.evil.us-west-2.amazonaws.com/x", Nobody),
    ("*.azurecr.io/x", Nobody),
];

#[test]
fn a_credential_goes_to_its_own_registry_and_nobody_else() {
    // I168, I169, I170
    let (amazon, google) = (Amazon::start(), Google::start("canary-google", Some(3600)));
    let azure = Azure::start("mine.azurecr.io", "t");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("azure.json");
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
                assert_eq!(calls(), before, "{provider:?} asked somebody because of {image:?}");
                continue;
            }
            let response = ran.response();
            let logins = response["auth"].as_object().unwrap().iter().map(|(key, login)| {
                let text = |name: &str| login[name].as_str().unwrap().to_owned();
                (key.clone(), Credential::new(text("username"), text("password")))
            });
            let keyring = Keyring::new(logins, Profile::Kube);
            let found =
                |image: &str| keyring.lookup(image).iter().any(|credential| !credential.is_anonymous());
            assert!(found(image), "{provider:?} has nothing for its own {image}");
            // A kubelet reads user info, queries and fragments as in a URL: what is left is the same host, so nobody is robbed.
            let host_of = |image: &str| {
                image.rsplit('@').next().unwrap().split(['/', '#', '?']).next().unwrap().to_owned()
            };
            let others =
                SHAPES.iter().filter(|(other, whose)| *whose != owner && host_of(other) != host_of(image));
            for (other, _) in others {
                assert!(!found(other), "what {provider:?} gave for {image} would be sent to {other:?}");
            }
        }
    }
}
