//! What is done with every provider: log in, renew, be refused, log out.

use navicert_testkit::cli::program::Running;
use navicert_testkit::services::browser::{Behaviour, PageReport};

use super::{LoginUser, claims, free_port, run, token};

/// Contrast of text that WCAG 2.2 AA requires.
const MIN_CONTRAST: f64 = 4.5;

/// A login in the browser: the token, and the page at its end.
// L902, L911, L912, L913, L931, L932, L933
pub(crate) async fn log_in(user: &LoginUser) -> (String, PageReport) {
    let tabs = user.browser.tabs().await.len();
    let (code, stdout, stderr) = run(&user.login());
    let page = user.browser.last_report(tabs + 1).await;
    // A machine that is busy with other tests may take longer than the 8 s after which the address is shown.
    assert!(stderr.is_empty() || stderr.starts_with("To log in to "), "{stderr}");
    assert_eq!(code, Some(0), "{stdout} {page:?}");
    let token = token(&stdout);
    assert_eq!(claims(&token)["iss"], user.provider.issuer);
    check_page(&page, "Logged in");
    assert!(page.text("text").contains(user.provider.display), "{page:?}");
    (token, page)
}

/// A page of ours: accessible, without any request but its own, and without the code in its address or in the tab's history.
pub(crate) fn check_page(page: &PageReport, title: &str) {
    assert_eq!((page.text("title"), page.text("lang")), (title, "en"), "{page:?}");
    assert_eq!((page.count("mains"), page.count("scripts")), (Some(1), Some(0)), "{page:?}");
    assert_eq!(page.list("headings"), [title]);
    assert_eq!(page.count("alerts"), Some(u64::from(title != "Logged in")), "{page:?}");
    for scheme in ["light", "dark"] {
        assert!(page.contrast(scheme).is_some_and(|contrast| contrast >= MIN_CONTRAST), "{scheme}: {page:?}");
    }
    assert_eq!((page.text("referrer"), page.list("complaints")), ("", vec![]), "{page:?}");
    let origin = page.text("url").split("/done/").next().unwrap().to_owned();
    assert!(origin.starts_with("http://") && page.text("url").contains("/done/"), "{page:?}");
    let of_ours = |urls: Vec<String>| -> Vec<String> {
        let paths = urls.iter().filter_map(|url| url.strip_prefix(&origin));
        let until_id =
            |path: &str| path.split(['?', '#']).next().unwrap().split('/').nth(1).unwrap().to_owned();
        paths.map(until_id).collect()
    };
    assert_eq!(of_ours(page.requests()), ["start", "callback", "done"], "{page:?}");
    assert_eq!(of_ours(page.list("history")), ["done"], "{page:?}");
    assert!(
        page.requests().last().is_some_and(|last| last == page.text("url")),
        "nothing is loaded after it: {page:?}"
    );
}

/// A second login by the same browser needs at most one form: a consent, or the name and password where the provider keeps no session.
pub(crate) async fn log_in_again(user: &LoginUser) {
    run(&user.navicert(&["login", "clean", &format!("--token-cache-dir={}", user.cache().display())]));
    let (_, page) = log_in(user).await;
    assert!(page.count("forms").is_some_and(|forms| forms <= 1), "{page:?}");
}

/// Refreshes by many processes at once, and what the provider does with an old refresh token.
// L506, L804, L831, L832, L1223
pub(crate) async fn renew(user: &LoginUser, rounds: usize, processes: usize) {
    let tabs = user.browser.tabs().await.len();
    let mut last = user.entry();
    for round in 0..rounds {
        user.expire();
        let before = user.entry();
        let running: Vec<Running> = (0..processes).map(|_| user.login().start_running().unwrap()).collect();
        let mut tokens = Vec::new();
        for process in running {
            let outcome = process.wait().await;
            let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
            assert_eq!(outcome.code(), Some(0), "round {round}: {output}");
            tokens.push(token(&output));
        }
        assert!(tokens.iter().all(|token| *token == tokens[0]), "one token for all");
        let after = user.entry();
        assert_ne!(after["refreshToken"], before["refreshToken"], "the provider rotates");
        let refreshes = |entry: &serde_json::Value| entry["history"]["refreshes"].as_u64().unwrap();
        assert_eq!(refreshes(&after), refreshes(&before) + 1, "one refresh for all");
        last = before;
    }
    let newest = user.entry();
    user.put_expired(last);
    let (code, _, stderr) = run(&user.background_login());
    assert_eq!(code, Some(5), "an old refresh token is refused: {stderr}");
    assert!(stderr.contains("session") && stderr.contains("navicert login"), "{stderr}");
    user.put_expired(newest);
    let (code, _, stderr) = run(&user.background_login());
    let expected = if user.provider.detects_reuse { Some(5) } else { Some(0) };
    assert_eq!(code, expected, "the newest one after that: {stderr}");
    assert_eq!(user.browser.tabs().await.len(), tabs, "no tab was opened");
}

/// Logs out; the session is over here, at the provider, and in the browser.
// L1101, L1104
pub(crate) async fn log_out(user: &LoginUser, forms_of_first_login: Option<u64>) {
    let entry = user.entry();
    let path = user.entry_path();
    let (code, stdout, stderr) = run(&user.navicert(&["logout"]).arguments(user.selection()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let (code, _, stderr) = run(&user.background_login());
    assert!(code == Some(5) && stderr.contains("run in a terminal: navicert login"), "{stderr}");
    if !user.provider.ends_sessions {
        assert!(stdout.contains("no revocation"), "{stdout}");
        return;
    }
    assert!(stdout.contains("revoked"), "{stdout}");
    std::fs::write(&path, entry.to_string()).unwrap();
    user.expire();
    let (code, _, stderr) = run(&user.background_login());
    assert_eq!(code, Some(5), "the provider refuses the refresh token: {stderr}");
    std::fs::remove_file(path).unwrap();
    let address = stdout
        .split_whitespace()
        .find(|word| word.starts_with(user.provider.issuer.as_str()) && word.contains('?'));
    let page = user.browser.open(address.unwrap_or_else(|| panic!("no address: {stdout}"))).await;
    assert!(page.count("forms").is_some_and(|forms| forms >= 1), "the provider asks: {page:?}");
    let (_, page) = log_in(user).await;
    assert_eq!(page.count("forms"), forms_of_first_login, "the browser's session is over: {page:?}");
}

/// A device login on a terminal: the browser is opened with the code.
// L751, L752, L753, L754
pub(crate) async fn log_in_with_device_code(user: &LoginUser) {
    let tabs = user.browser.tabs().await.len();
    let (code, shown, _) = run(&user.terminal_login(&["--grant-type=device-code", "--account=device"]));
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("enter the code") && shown.contains("Only go on if you started"), "{shown}");
    assert!(shown.contains("logged in") && shown.contains(user.provider.display), "{shown}");
    assert_eq!(user.browser.tabs().await.len(), tabs + 1);
    let account = ["logout", "--account=device"];
    let (code, stdout, stderr) = run(&user.navicert(&account).arguments(user.selection()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
}

/// Many processes without a session: one tab, one token.
// L505, L506
pub(crate) async fn log_in_many_at_once(user: &LoginUser, processes: usize) {
    let tabs = user.browser.tabs().await.len();
    let running: Vec<Running> = (0..processes).map(|_| user.login().start_running().unwrap()).collect();
    let mut tokens = Vec::new();
    for process in running {
        let outcome = process.wait().await;
        let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
        assert_eq!(outcome.code(), Some(0), "{output}");
        tokens.push(token(&output));
    }
    assert!(tokens.len() == processes && tokens.iter().all(|token| *token == tokens[0]), "one token for all");
    assert_eq!(user.browser.tabs().await.len(), tabs + 1, "one tab");
}

/// Many processes, and the person does not answer: one tab, and one failure for all.
// L520, L521, L1202
pub(crate) async fn be_ignored(user: &LoginUser, processes: usize) {
    let tabs = user.browser.tabs().await.len();
    user.browser.behave(Behaviour::Ignore).await;
    let ignored = user.login().arguments(["--authentication-timeout-sec=3", "--account=ignored"]);
    let running: Vec<Running> = (0..processes).map(|_| ignored.start_running().unwrap()).collect();
    for process in running {
        let outcome = process.wait().await;
        let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
        assert!(outcome.code() == Some(1) && output.contains("login timed out after 3 s"), "{output}");
    }
    user.browser.behave(Behaviour::Answer).await;
    assert_eq!(user.browser.tabs().await.len(), tabs + 1, "one tab");
}

/// The person refuses: both the page and the terminal say so.
// L1203, L932
pub(crate) async fn be_refused(user: &LoginUser) {
    if !user.provider.can_be_refused {
        return;
    }
    let tabs = user.browser.tabs().await.len();
    user.browser.behave(Behaviour::Deny).await;
    let (code, _, stderr) = run(&user.login());
    let page = user.browser.last_report(tabs + 1).await;
    user.browser.behave(Behaviour::Answer).await;
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("denied"), "{stderr}");
    check_page(&page, "Not logged in");
}

/// A redirect URI that is not registered: the provider says so in the browser, and nothing comes back.
// L1202
pub(crate) async fn use_a_wrong_redirect_uri(user: &LoginUser) {
    let tabs = user.browser.tabs().await.len();
    let port = free_port();
    let wrong = user.login().arguments([
        format!("--listen-address=127.0.0.1:{port}"),
        format!("--oidc-redirect-url=http://127.0.0.1:{port}/not-registered"),
        "--authentication-timeout-sec=6".to_owned(),
        "--account=redirect".to_owned(),
    ]);
    let (code, _, stderr) = run(&wrong);
    let page = user.browser.last_report(tabs + 1).await;
    assert!(code == Some(1) && stderr.contains("timed out"), "{stderr}");
    assert!(page.text("url").starts_with(origin(&user.provider.issuer)), "the provider's page: {page:?}");
    assert!(page.text("text").to_lowercase().contains("redirect"), "{page:?}");
}

fn origin(url: &str) -> &str {
    let end = url.char_indices().filter(|(_, character)| *character == '/').nth(2);
    end.map_or(url, |(end, _)| url.split_at(end).0)
}
