//! Image credentials: a lookup must not cost more because more is configured, and a helper with a daemon behind it
//! little more than a program that prints the same.

mod helper;

use std::path::Path;
use std::sync::Arc;

use navicert_image::config::{ConfigFile, ImageConfig};
use navicert_image::provider::ProviderSettings;
use navicert_image::service_account::PullIdentity;
use navicert_image::{ImagePattern, Keyring, Location, Profile, Providers, RegistryCredential};
use navicert_plugin::{Environment, ProcessRunner};
use navicert_types::SystemClock;

use crate::race::{Contest, Fault, Race};

pub(crate) fn races() -> Vec<Race> {
    let (size, each) =
        ("image: keyring of 1000 patterns / of 10", "image: keyring of 1000 / asking each pattern");
    let providers = "image: cached answer, 100 providers / 1";
    vec![
        Race::new(size, 3.0, || Ok(Contest::time(lookup(1_000), lookup(10)))),
        Race::new(each, 0.02, || Ok(Contest::time(lookup(1_000), scan(1_000)?))),
        Race::new(providers, 3.0, || Ok(Contest::time(cached(100)?, cached(1)?))),
        helper::race(),
    ]
}

/// Pattern mix: of twenty, twelve exact hosts, five with a glob label, three with a path; half have three labels. The
/// first ten are the same for every size.
fn patterns(count: usize) -> Vec<String> {
    let pattern = |number: usize| {
        let host = match (number % 2, number % 3) {
            (0, _) => format!("r{number}.registry.example"),
            (_, 0) => format!("r{number}.example"),
            (_, 1) => format!("r{number}.eu.registry.example"),
            _ => format!("r{number}.eu.west.registry.example"),
        };
        match number % 20 {
            0..12 => host,
            12..17 => host.split_once('.').map(|(first, rest)| format!("*.{first}-{rest}")).unwrap_or(host),
            _ => format!("{host}/team-{number}"),
        }
    };
    (0..count).map(pattern).collect()
}

/// Images that the first ten patterns match, and some that none does.
const IMAGES: [&str; 5] = [
    "r0.registry.example/team/app",
    "r4.registry.example/a/rather/longer/path/app",
    "r3.example/app",
    "r8.registry.example/app",
    "unmatched.registry.example/app",
];

fn lookup(count: usize) -> impl FnMut() -> Result<(), Fault> {
    let credential = || RegistryCredential::new("user", "password".to_owned());
    let keyring = Keyring::new(patterns(count).into_iter().map(|key| (key, credential())), Profile::Kube);
    let mut turn = 0_usize;
    move || {
        turn = turn.wrapping_add(1);
        let image = IMAGES.get(turn % IMAGES.len()).copied().unwrap_or_default();
        let found = keyring.lookup(std::hint::black_box(image)).len();
        if (found == 1) == (image != "unmatched.registry.example/app") {
            Ok(())
        } else {
            Err("wrong answer".into())
        }
    }
}

fn scan(count: usize) -> Result<impl FnMut() -> Result<(), Fault>, Fault> {
    let parsed = patterns(count).into_iter().map(|text| ImagePattern::parse(&text, Profile::Kube));
    let patterns = parsed.collect::<Result<Vec<_>, _>>()?;
    let mut turn = 0_usize;
    Ok(move || {
        turn = turn.wrapping_add(1);
        let image = IMAGES.get(turn % IMAGES.len()).copied().unwrap_or_default();
        let location = Location::parse(std::hint::black_box(image).as_bytes())?;
        let found = patterns.iter().filter(|pattern| pattern.matches(&location)).count();
        if (found == 1) == (image != "unmatched.registry.example/app") {
            Ok(())
        } else {
            Err("wrong answer".into())
        }
    })
}

/// A lookup that hits the cache. Every provider is a link to one program, which runs once.
fn cached(count: usize) -> Result<impl FnMut() -> Result<(), Fault>, Fault> {
    let dir = helper::ProviderDir::new(&format!("cached-{count}"))?;
    dir.provider("answer", "registry-0.example")?;
    let provider = |number: usize| {
        format!(
        "- {{name: answer, matchImages: [registry-{number}.example], defaultCacheDuration: 10h, apiVersion: credentialprovider.kubelet.k8s.io/v1}}\n"
    ).replace("name: answer", &format!("name: answer-{number}"))
    };
    let list: String = (0..count).map(provider).collect();
    let text =
        format!("apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n{list}");
    let config =
        ImageConfig::decode(&[ConfigFile { path: "bench".into(), text: text.into() }], Profile::Hardened)?;
    std::os::unix::fs::symlink(dir.path().join("answer"), dir.path().join("answer-0"))?;
    let clock = Arc::new(SystemClock);
    let runner = Arc::new(ProcessRunner::new(Arc::clone(&clock) as _));
    let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    let providers = Providers::new(&config, ProviderSettings::new(dir.path(), environment, runner, clock));
    Ok(move || {
        let _kept: &Path = dir.path();
        let found =
            providers.lookup(std::hint::black_box("registry-0.example/team/app"), &PullIdentity::None);
        if found.attempts().len() == 1 { Ok(()) } else { Err(format!("{:?}", found.errors().next()).into()) }
    })
}
