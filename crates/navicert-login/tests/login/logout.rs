//! Ending sessions: one, all, and the browser's own.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use navicert_login::cache::CacheFolder;
use navicert_login::{LogoutOptions, Revocation, end_browser_session, logout, logout_all};
use serde_json::json;

use super::browse;
use super::support::Setup;

fn options() -> LogoutOptions {
    LogoutOptions::default()
}

// L1101, L1103, L1104
#[test]
fn logout_revokes_the_session_and_removes_it() {
    let setup = Setup::with_password();
    setup.login();
    let path = setup.entry_path();
    let ended = logout(&setup.request, &setup.context, &options()).unwrap().unwrap();
    assert_eq!(ended.revocation, Revocation::Revoked);
    let page = ended.end_session.unwrap().page().to_owned();
    assert!(page.contains("client_id=kubernetes"), "{page}");
    assert!(!page.contains("hint") && !page.contains("redirect") && !page.contains("state"), "{page}");
    assert!(setup.provider.state().is_over && !path.exists());
    assert!(logout(&setup.request, &setup.context, &options()).unwrap().is_none());
}

// L1104
#[test]
fn logout_removes_the_session_although_the_provider_is_down() {
    let setup = Setup::with_password();
    setup.login();
    let path = setup.entry_path();
    setup.provider.issuer.refuse_connections();
    let ended = logout(&setup.request, &setup.context, &options()).unwrap().unwrap();
    assert!(matches!(ended.revocation, Revocation::Failed { .. }));
    assert!(!path.exists());
}

// L1104
#[test]
fn local_logout_sends_no_request() {
    let setup = Setup::with_password();
    setup.login();
    let before = setup.provider.requests();
    let local = LogoutOptions { is_local: true, ..options() };
    let ended = logout(&setup.request, &setup.context, &local).unwrap().unwrap();
    assert_eq!((ended.revocation, setup.provider.requests()), (Revocation::Skipped, before));
    assert!(ended.end_session.is_none() && !setup.provider.state().is_over);
}

// L1102
#[test]
fn all_sessions_are_ended_without_the_flags_of_their_logins() {
    let mut setup = Setup::with_password();
    setup.login();
    setup.request.account = "second".to_owned();
    setup.login();
    setup.provider.state().is_over = false;
    let folder = CacheFolder::locate_default(setup.request.cache_dir.as_deref(), &setup.context).unwrap();
    let ended = logout_all(&folder, &setup.context, &options()).unwrap();
    assert!(ended.failures.is_empty(), "{ended:?}");
    assert_eq!(ended.sessions.len(), 2);
    assert!(ended.sessions.iter().all(|ended| ended.revocation == Revocation::Revoked), "{ended:?}");
    assert!(setup.provider.state().is_over && folder.keys().unwrap().is_empty());
    assert!(!format!("{ended:?}").contains("canary"));
}

// L411, L1102, L1104
#[test]
fn session_whose_root_certificate_changed_is_removed_and_its_token_not_sent() {
    let setup = Setup::with_password();
    setup.login();
    std::fs::remove_file(&setup.provider.ca_file).unwrap();
    let before = setup.provider.requests();
    let folder = CacheFolder::locate_default(setup.request.cache_dir.as_deref(), &setup.context).unwrap();
    let ended = logout_all(&folder, &setup.context, &options()).unwrap();
    assert!(matches!(&ended.sessions[..], [ended] if matches!(ended.revocation, Revocation::Failed { .. })));
    assert_eq!(setup.provider.requests(), before);
    assert!(folder.keys().unwrap().is_empty());
}

// L1102, L1103
#[test]
fn browser_gets_the_id_token_through_the_receiver_alone() {
    let setup = Setup::with_password();
    setup.login();
    let id_token = setup.entry()["idToken"].as_str().unwrap().to_owned();
    let options = LogoutOptions {
        is_local: true,
        ends_browser_session: true,
        post_logout_redirect_url: Some("https://app.example/bye".to_owned()),
    };
    let ended = logout(&setup.request, &setup.context, &options).unwrap().unwrap();
    assert!(!setup.provider.state().is_over, "not revoked");
    let end_session = ended.end_session.unwrap();
    assert!(end_session.page().contains("post_logout_redirect_uri=https%3A%2F%2Fapp.example%2Fbye&state="));
    assert!(!format!("{end_session:?}{}", end_session.page()).contains(&id_token));
    let messages = setup.messages.listen();
    let target = std::thread::scope(|scope| {
        let browser = scope.spawn(move || {
            loop {
                match messages.recv_timeout(Duration::from_secs(60)) {
                    Ok(message) => match message.split_once(", open ") {
                        Some((_, url)) => return browse(url).1.unwrap(),
                        None => continue,
                    },
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => panic!("no address"),
                }
            }
        });
        end_browser_session(&end_session, &setup.request, &setup.context).unwrap();
        browser.join().unwrap()
    });
    assert!(target.starts_with(&setup.provider.issuer.url_of("/end")), "{target}");
    let parameters = super::form(target.split_once('?').unwrap().1);
    assert_eq!(parameters["id_token_hint"], id_token);
    assert_eq!(parameters["client_id"], "kubernetes");
    assert!(!setup.messages.all().concat().contains(&id_token));
}

// L1102
#[test]
fn provider_without_such_a_page_has_none() {
    let setup = Setup::with_password();
    setup.provider.issuer.set_discovery("end_session_endpoint", json!(null));
    setup.login();
    let ended = logout(&setup.request, &setup.context, &options()).unwrap().unwrap();
    assert!(ended.end_session.is_none());
}
