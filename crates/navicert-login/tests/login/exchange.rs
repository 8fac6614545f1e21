//! `--exchange-audience`: the session's access token is exchanged for the token that is handed over.

use navicert_login::SessionOrigin;
use navicert_testkit::Answer;
use navicert_testkit::services::login_provider::{failure, form};
use serde_json::json;

use super::support::Setup;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

fn with_exchange() -> Setup {
    let mut setup = Setup::with_password();
    setup.request.exchange.audience = Some("cluster-a".to_owned());
    let issued = json!("urn:ietf:params:oauth:token-type:access_token");
    setup.provider.state().answer.insert("issued_token_type".to_owned(), issued);
    // This provider would rotate the refresh token with every answer, those of exchanges too.
    setup.provider.state().rotates = false;
    setup
}

/// Grants of the requests to the token endpoint.
fn grants(setup: &Setup) -> Vec<String> {
    setup.provider.state().forms.iter().map(|form| form["grant_type"].clone()).collect()
}

// L782
#[test]
fn exchanged_token_is_handed_over_and_cached() {
    let setup = with_exchange();
    let session = setup.login();
    assert_eq!(grants(&setup), ["password", GRANT]);
    let sent = setup.provider.state().forms.last().unwrap().clone();
    assert_eq!(sent["subject_token"], "canary-access-1");
    assert_eq!(sent["subject_token_type"], "urn:ietf:params:oauth:token-type:access_token");
    assert_eq!(sent["audience"], "cluster-a");
    assert_eq!(session.token().unwrap().expose(), "canary-access-2");
    assert_eq!((session.display(), session.can_be_renewed()), ("ann@example.com", true));
    assert_eq!(setup.login().origin, SessionOrigin::Cached);
    assert_eq!(setup.provider.token_requests(), 2);
}

// L782: the exchanged token has its own expiry; the access token is exchanged again while it is valid.
#[test]
fn short_lived_token_is_exchanged_again_without_a_refresh() {
    let setup = with_exchange();
    setup.login();
    let mut entry = setup.entry();
    entry["localExpiry"] = entry["receivedAt"].clone();
    std::fs::write(setup.entry_path(), entry.to_string()).unwrap();
    assert_eq!(setup.login().origin, SessionOrigin::Refreshed);
    assert_eq!(grants(&setup), ["password", GRANT, GRANT]);
    // Both have expired: the session is renewed as usual, then exchanged.
    setup.clock.advance(3_700);
    assert_eq!(setup.login().token().unwrap().expose(), "canary-access-5");
    assert_eq!(grants(&setup)[3..], ["refresh_token", GRANT]);
}

// L782, L832, L1235
#[test]
fn failed_exchange_keeps_the_session_and_its_rotated_token() {
    let setup = with_exchange();
    setup.provider.issuer.answer_with("/token", move |request| {
        let form = form(request.text());
        match form["grant_type"].as_str() {
            GRANT => failure("invalid_target", "no such audience"),
            _ => Answer::json(&json!({
                "token_type": "bearer", "access_token": "canary-access", "refresh_token": "canary-refresh-9", "expires_in": 60,
            })),
        }
    });
    let error = navicert_login::login(&setup.request, &setup.context).unwrap_err();
    assert_eq!(error.code().as_str(), "target");
    assert!(error.to_string().contains("cluster-a") && !error.to_string().contains("canary"), "{error}");
    assert_eq!(setup.entry()["refreshToken"], json!("canary-refresh-9"));
    assert_eq!(setup.entry().get("exchangedToken"), None);
}
