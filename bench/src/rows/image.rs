//! Image credentials: cached answers of several providers, one pattern, a keyring of a thousand.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use navicert_image::config::{ConfigFile, ImageConfig};
use navicert_image::provider::ProviderSettings;
use navicert_image::service_account::PullIdentity;
use navicert_image::{ImagePattern, Keyring, Location, Profile, Providers, RegistryCredential};
use navicert_plugin::{Environment, ProcessRunner};
use navicert_types::SystemClock;

use super::Row;
use crate::race::{Contestant, Fault};

pub(super) const ROWS: [Row; 6] = [
    ("image-cached-1", || cached(1)),
    ("image-cached-10", || cached(10)),
    ("image-cached-100", || cached(100)),
    ("image-match-exact", || matching("123456789012.dkr.ecr.us-east-1.amazonaws.com")),
    ("image-match-glob", || matching("*.dkr.ecr.*.amazonaws.com")),
    ("keyring-1000", keyring),
];

const IMAGE: &str = "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/app:v1";
const ANSWER: &str = r#"{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Image","auth":{"*.dkr.ecr.*.amazonaws.com":{"username":"AWS","password":"secret"}}}"#;

/// This many providers match the image, and each has a cached response for it.
fn cached(count: usize) -> Result<Contestant, Fault> {
    let dir = tempfile::tempdir()?;
    let response = dir.path().join("answer.json");
    std::fs::write(&response, ANSWER)?;
    let mut text =
        "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n".to_owned();
    for number in 0..count {
        symlink("/bin/cat", dir.path().join(format!("cat-{number}")))?;
        text += &format!(
            "- name: cat-{number}\n  matchImages: ['*.dkr.ecr.*.amazonaws.com']\n  defaultCacheDuration: 1h\n  \
            apiVersion: credentialprovider.kubelet.k8s.io/v1\n  args: [{}]\n",
            response.display()
        );
    }
    let file = ConfigFile { path: "race".into(), text: text.into() };
    let config = ImageConfig::decode(&[file], Profile::Kube)?;
    let clock = Arc::new(SystemClock);
    let runner = Arc::new(ProcessRunner::new(Arc::clone(&clock) as _));
    let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    let settings = ProviderSettings {
        profile: Profile::Kube,
        ..ProviderSettings::new(dir.path(), environment, runner, clock)
    };
    let providers = Providers::new(&config, settings);
    providers.lookup(IMAGE, &PullIdentity::None);
    Ok(Box::new(move || {
        let _kept = &dir;
        let found = providers.lookup(std::hint::black_box(IMAGE), &PullIdentity::None);
        match found.answers().count() {
            answers if answers == count => Ok(()),
            answers => Err(format!("{answers} answers: {:?}", found.errors().next()).into()),
        }
    }))
}

/// Both the pattern and the image are text.
fn matching(pattern: &'static str) -> Result<Contestant, Fault> {
    use std::hint::black_box;
    Ok(Box::new(move || {
        let pattern = ImagePattern::parse(black_box(pattern), Profile::Kube)?;
        let matched = pattern.matches(&Location::parse(black_box(IMAGE).as_bytes())?);
        if matched { Ok(()) } else { Err("it does not match".into()) }
    }))
}

/// One image among a thousand stored registries, of which the last matches.
fn keyring() -> Result<Contestant, Fault> {
    let credential = || RegistryCredential::new("u", "p".to_owned());
    let registries = (0..999).map(|number| format!("registry-{number}.example.com"));
    let last = "123456789012.dkr.ecr.us-east-1.amazonaws.com".to_owned();
    let entries = registries.chain([last]).map(|registry| (registry, credential()));
    let keyring = Keyring::new(entries, Profile::Kube);
    Ok(Box::new(move || match keyring.lookup(std::hint::black_box(IMAGE)).len() {
        1 => Ok(()),
        found => Err(format!("{found} credentials found").into()),
    }))
}
