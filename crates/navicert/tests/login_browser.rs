//! `navicert login` with a real browser (Chromium) and a certified provider (npm `oidc-provider`): every way through a login that a
//! person sees. `scripts/install-tools` installs both; if one is missing, the tests are reported as skipped.
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
    be_ignored, be_refused, check_page, log_in, log_in_again, log_in_many_at_once, log_in_with_device_code,
    log_out, renew, use_a_wrong_redirect_uri,
};
use login_support::kubelogin::use_kubeconfig_of_kubelogin;
use login_support::kubelogin_arguments::{ROWS, claims_of};
use login_support::{LoginUser, NAVICERT, ProviderFacts, run};
use navicert_testkit::cli::tools;
use navicert_testkit::services::browser::{Behaviour, Browser};
use navicert_testkit::services::login_provider::CLIENT;
use navicert_testkit::services::openid_provider::NpmProvider;
use navicert_testkit::{Ca, LoginProvider};
use serde_json::json;

/// Processes at once.
const PROCESSES: usize = 64;

struct Setup {
    provider: NpmProvider,
    user: LoginUser,
    /// Kept as long as its files are used.
    dir: tempfile::TempDir,
}

/// `None` if provider or browser is not installed.
async fn setup() -> Option<Setup> {
    let dir = tempfile::tempdir().unwrap();
    let ca = Ca::new("provider");
    let provider = NpmProvider::start(&ca, dir.path(), None).await?;
    let browser = Browser::start(dir.path()).await?;
    let facts = ProviderFacts {
        issuer: provider.issuer().to_owned(),
        ca_file: provider.ca_file().to_owned(),
        // It grants `offline_access` only with a consent.
        flags: vec!["--prompt=consent".to_owned(), "--oidc-extra-scope=email".to_owned()],
        display: "ann@example.com",
        ends_sessions: true,
        detects_reuse: true,
        can_be_refused: true,
    };
    let user = LoginUser { provider: facts, browser, dir: dir.path().to_owned() };
    Some(Setup { provider, user, dir })
}

#[tokio::test]
async fn login_in_a_browser_ends_with_a_page_and_logout_ends_the_session() {
    let Some(Setup { user, provider: _provider, dir: _dir }) = setup().await else { return };
    let (_, page) = log_in(&user).await;
    log_in_again(&user).await;
    log_out(&user, page.count("forms")).await;
}

// L912: Chromium keeps the steps of redirects in its database, though no list shows them. A posted answer is in no address.
#[tokio::test]
async fn posted_answer_is_not_in_the_history_on_disk() {
    let Some(Setup { user, provider: _provider, dir: _dir }) = setup().await else { return };
    let posted = user.login().arguments(["--oidc-auth-request-extra-params=response_mode=form_post"]);
    let (code, _, stderr) = run(&posted);
    assert_eq!(code, Some(0), "{stderr}");
    let page = user.browser.last_report(1).await;
    check_page(&page, "Logged in");
    let visits = user.browser.visits().await;
    assert!(visits.iter().any(|url| url.contains("/done/")), "{visits:?}");
    let has_code = |url: &String| url.contains("?code=") || url.contains("&code=");
    assert!(!visits.iter().any(has_code), "{visits:?}");
}

// L506, L831: reuse of a refresh token would end the session.
#[tokio::test]
async fn sixty_four_processes_open_one_tab_and_renew_a_rotating_session() {
    let Some(Setup { user, provider, dir: _dir }) = setup().await else { return };
    be_ignored(&user, PROCESSES).await;
    log_in_many_at_once(&user, PROCESSES).await;
    assert_eq!(provider.grants("authorization_code").await, 1, "one code was exchanged");
    renew(&user, 3, PROCESSES).await;
    assert_eq!(provider.grants("refresh_token").await, 3, "one request for each refresh");
}

// L805: a provider that is gone never opens a browser.
#[tokio::test]
async fn device_login_refusal_wrong_redirect_uri_and_a_provider_that_is_down() {
    let Some(Setup { user, provider, dir: _dir }) = setup().await else { return };
    log_in_with_device_code(&user).await;
    be_refused(&user).await;
    use_a_wrong_redirect_uri(&user).await;
    log_in(&user).await;
    user.expire();
    let (tabs, entry) = (user.browser.tabs().await.len(), user.entry());
    drop(provider);
    let (code, _, stderr) = run(&user.login());
    assert_eq!(code, Some(4), "{stderr}");
    assert_eq!(
        (user.browser.tabs().await.len(), user.entry()),
        (tabs, entry),
        "no tab, and the session is kept"
    );
}

// L901, L903, L905, L911, L1301, L1311, L1313: a page in another tab calls the port a thousand times.
#[tokio::test]
async fn hostile_page_has_no_effect_and_answered_logins_stay_answered() {
    let Some(Setup { user, provider, dir: _dir }) = setup().await else { return };
    user.browser.behave(Behaviour::VisitHostilePage).await;
    let (_, page) = log_in(&user).await;
    assert!(page.count("attacks").is_some_and(|attacks| attacks >= 1000), "{page:?}");
    check_page(&page, "Logged in");
    assert_eq!(provider.grants("authorization_code").await, 1);
    // The port is closed: opening the link again, loading again and going back reach nothing.
    for keys in [&["again", "reload"][..], &["back"]] {
        for key in keys {
            let shown = user.browser.press(key).await;
            let is_from_us =
                shown.0["status"].as_u64() == Some(200) && shown.text("url").starts_with("http://");
            assert!(!is_from_us, "{key}: {shown:?}");
        }
        log_in_again(&user).await;
    }
    assert_eq!(provider.grants("authorization_code").await, 3, "each code was exchanged once");
}

// L102, L103, LT1 of the specification: `make interop` compares the claims with those that kubelogin gets.
#[test]
fn thirty_command_lines_of_kubelogin_work_by_its_name_and_as_a_verb() {
    let dir = tempfile::tempdir().unwrap();
    let provider = LoginProvider::start(dir.path());
    let link = dir.path().join("kubectl-oidc_login");
    std::os::unix::fs::symlink(NAVICERT, &link).unwrap();
    for row in ROWS {
        for program in [&[link.as_path()][..], &[Path::new(NAVICERT), Path::new("login")]] {
            let claims = claims_of(&provider, program, row);
            assert_eq!((&claims["sub"], &claims["aud"]), (&json!("ann"), &json!(CLIENT)), "{row:?}");
        }
    }
}

// L103, L120: only `PATH` has changed.
#[tokio::test]
async fn kubeconfig_written_for_kubelogin_works_with_debians_kubectl() {
    let Some(Setup { user, provider: _provider, dir: _dir }) = setup().await else { return };
    let Some(kubectl) = tools::kubectl() else { return };
    let claims = use_kubeconfig_of_kubelogin(&user, &kubectl, Path::new(NAVICERT)).await;
    assert_eq!(claims["email"], "ann@example.com");
}
