//! `navicert login` with dex, Keycloak and kubelogin, and through a real API server (`make interop`). dex and kubelogin come from
//! `make peers-tools`, Keycloak and Chromium from `scripts/install-tools`; what is missing is reported as skipped.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "helpers of tests fail by panicking"
)]

mod login_support;

use std::path::Path;

use login_support::flows::{
    be_ignored, be_refused, log_in, log_in_again, log_in_many_at_once, log_in_with_device_code, log_out,
    renew, use_a_wrong_redirect_uri,
};
use login_support::kubelogin::use_kubeconfig_of_kubelogin;
use login_support::kubelogin_arguments::{ROWS, claims_of};
use login_support::{LoginUser, NAVICERT, ProviderFacts, free_port, run};
use navicert_testkit::cli::tools;
use navicert_testkit::k8s::cluster::current_kubectl;
use navicert_testkit::services::browser::Browser;
use navicert_testkit::services::openid_provider::{Dex, Keycloak, NpmProvider};
use navicert_testkit::{Ca, LoginProvider};

/// Processes at once.
const PROCESSES: usize = 64;

/// Everything that is done with a provider, in one browser.
async fn use_provider(facts: ProviderFacts, dir: &Path) -> Option<LoginUser> {
    let browser = Browser::start(dir).await?;
    let user = LoginUser { provider: facts, browser, dir: dir.to_owned() };
    let (_, page) = log_in(&user).await;
    log_in_again(&user).await;
    log_out(&user, page.count("forms")).await;
    run(&user.navicert(&["login", "clean", &format!("--token-cache-dir={}", user.cache().display())]));
    log_in_with_device_code(&user).await;
    log_in_many_at_once(&user, PROCESSES).await;
    renew(&user, 5, PROCESSES).await;
    use_a_wrong_redirect_uri(&user).await;
    run(&user.navicert(&["login", "clean", &format!("--token-cache-dir={}", user.cache().display())]));
    be_refused(&user).await;
    be_ignored(&user, PROCESSES).await;
    log_in(&user).await;
    user.expire();
    Some(user)
}

/// With the provider gone: no tab, exit code 4, and the session is kept.
// L805
async fn provider_is_down(user: &LoginUser) {
    let (tabs, entry) = (user.browser.tabs().await.len(), user.entry());
    let (code, _, stderr) = run(&user.login());
    assert_eq!(code, Some(4), "{stderr}");
    assert_eq!((user.browser.tabs().await.len(), user.entry()), (tabs, entry));
}

#[tokio::test]
async fn dex_takes_logins_device_codes_and_rotating_refreshes() {
    let dir = tempfile::tempdir().unwrap();
    let Some((dex, ca_file)) = Dex::start_for_login(&Ca::new("dex"), dir.path()).await else { return };
    let facts = ProviderFacts {
        issuer: dex.address().to_owned(),
        ca_file,
        // It allows `localhost` to a client without redirect URIs, and not the address.
        flags: vec![
            "--oidc-extra-scope=email".to_owned(),
            format!("--oidc-redirect-url=http://localhost:{}/callback", free_port()),
        ],
        display: "kilgore@kilgore.trout",
        ends_sessions: false,
        detects_reuse: false,
        can_be_refused: false,
    };
    let Some(user) = use_provider(facts, dir.path()).await else { return };
    drop(dex);
    provider_is_down(&user).await;
}

#[tokio::test]
async fn keycloak_takes_logins_device_codes_and_rotating_refreshes_and_detects_reuse() {
    let dir = tempfile::tempdir().unwrap();
    let Some(keycloak) = Keycloak::start(&Ca::new("keycloak"), dir.path()).await else { return };
    let facts = ProviderFacts {
        issuer: keycloak.issuer().to_owned(),
        ca_file: keycloak.ca_file().to_owned(),
        flags: vec!["--oidc-extra-scope=email".to_owned()],
        display: "ann@example.com",
        ends_sessions: true,
        detects_reuse: true,
        can_be_refused: false,
    };
    let Some(user) = use_provider(facts, dir.path()).await else { return };
    drop(keycloak);
    provider_is_down(&user).await;
}

// L103, L120: the same kubeconfig with kubelogin and with navicert, by both versions of kubectl.
#[tokio::test]
async fn kubeconfig_of_kubelogin_gives_the_same_user_with_only_the_path_changed() {
    let dir = tempfile::tempdir().unwrap();
    let Some(provider) = NpmProvider::start(&Ca::new("provider"), dir.path(), None).await else { return };
    let (Some(kubelogin), Some(debian)) = (tools::peer_tool("kubelogin", "kubelogin"), tools::kubectl())
    else {
        return;
    };
    let facts = ProviderFacts {
        issuer: provider.issuer().to_owned(),
        ca_file: provider.ca_file().to_owned(),
        flags: Vec::new(),
        display: "ann@example.com",
        ends_sessions: true,
        detects_reuse: true,
        can_be_refused: true,
    };
    let Some(browser) = Browser::start(dir.path()).await else { return };
    let user = LoginUser { provider: facts, browser, dir: dir.path().to_owned() };
    for kubectl in [debian, current_kubectl()] {
        let theirs = use_kubeconfig_of_kubelogin(&user, &kubectl, &kubelogin).await;
        let ours = use_kubeconfig_of_kubelogin(&user, &kubectl, Path::new(NAVICERT)).await;
        for claim in ["iss", "aud", "sub", "email", "email_verified"] {
            assert!(!ours[claim].is_null() && ours[claim] == theirs[claim], "{claim}: {ours} {theirs}");
        }
    }
}

// L102, LT1 of the specification
#[test]
fn thirty_command_lines_give_the_claims_that_kubelogin_gets() {
    let Some(kubelogin) = tools::peer_tool("kubelogin", "kubelogin") else { return };
    let dir = tempfile::tempdir().unwrap();
    let provider = LoginProvider::start(dir.path());
    for row in ROWS {
        let theirs = claims_of(&provider, &[&kubelogin], row);
        let ours = claims_of(&provider, &[Path::new(NAVICERT), Path::new("login")], row);
        for claim in ["iss", "aud", "sub", "email"] {
            assert!(
                !ours[claim].is_null() && ours[claim] == theirs[claim],
                "{row:?} {claim}: {ours} {theirs}"
            );
        }
    }
}

// L112
#[test]
fn every_flag_in_kubelogins_own_help_is_accepted() {
    let Some(kubelogin) = tools::peer_tool("kubelogin", "kubelogin") else { return };
    let outcome = navicert_testkit::Program::new(kubelogin).arguments(["get-token", "--help"]).run().unwrap();
    let help = String::from_utf8(outcome.stdout).unwrap();
    let mut found = Vec::new();
    for line in help.lines() {
        // `  -v, --v Level   number for the log level`
        let Some((_, rest)) =
            line.split_once("--").filter(|(before, _)| before.trim().trim_end_matches(',').len() <= 2)
        else {
            continue;
        };
        let mut words = rest.split("  ").next().unwrap().split(' ');
        let (name, kind) = (words.next().unwrap(), words.next().unwrap_or("bool"));
        if name != "help" {
            found.push(format!("{name} {kind}"));
        }
    }
    let recorded = include_str!("../../navicert-login/src/args/kubelogin-flags.txt");
    let recorded: Vec<&str> = recorded.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(found, recorded, "the flags of this version");
    for line in &found {
        let (name, kind) = line.split_once(' ').unwrap();
        let value = match kind {
            "bool" => "true",
            "int" | "uint" | "Level" => "1",
            "stringToString" => "a=b",
            _ => "a",
        };
        assert!(navicert_login::args::parse(&[format!("--{name}={value}")]).is_ok(), "--{name}");
    }
}
