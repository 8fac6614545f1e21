//! Logins, refreshes and failures against a provider on loopback.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "login/connections.rs"]
mod connections;
#[path = "login/exchange.rs"]
mod exchange;
#[path = "login/keyring.rs"]
mod keyring;
#[path = "login/logout.rs"]
mod logout;
mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use navicert_login::request::{GrantType, SecretSource, TokenKind, TokenSource};
use navicert_login::{
    Invocation, LoginContext, LoginRequest, LogoutOptions, Messages, SessionOrigin, SetupApiVersion,
    SetupOptions,
};
use navicert_testkit::{Algorithm, Answer, SigningKey};
use serde_json::json;

use navicert_testkit::services::login_provider::{failure, form};
use support::Setup;

/// A setup whose session was obtained without a person.
fn with_password() -> Setup {
    Setup::with_password()
}

// L751, L753, L754, L205, L1318
#[test]
fn device_login_polls_until_the_person_has_answered() {
    let mut setup = Setup::new();
    setup.request.grant = GrantType::DeviceCode;
    setup.provider.state().device_answers =
        vec!["authorization_pending", "slow_down", "authorization_pending"];
    let session = setup.login();
    assert_eq!((session.origin, session.display()), (SessionOrigin::LoggedIn, "ann@example.com"));
    assert_eq!(setup.timer.waits(), [5_000, 5_000, 10_000, 10_000], "slow_down adds five seconds for good");
    let messages = setup.messages.all().join("\n");
    assert!(messages.contains("ABCD-EFGH") && messages.contains("Only go on if you started"), "{messages}");
    assert!(!messages.contains("canary"), "{messages}");
    let polls = setup.provider.state().forms.clone();
    assert!(polls.iter().all(|form| form["code_verifier"].len() == 43), "PKCE binds the device code");
    let (requests, shown) = (setup.provider.requests(), setup.messages.all().len());
    assert_eq!(setup.login().origin, SessionOrigin::Cached);
    assert_eq!(
        (setup.provider.requests(), setup.messages.all().len()),
        (requests, shown),
        "nothing is asked or shown"
    );
}

// L752, L754
#[test]
fn device_login_falls_back_to_no_pkce_and_remembers_it() {
    let mut setup = Setup::new();
    setup.request.grant = GrantType::DeviceCode;
    setup.provider.state().device_without_pkce = true;
    setup.login();
    assert_eq!(setup.provider.device_requests(), 2);
    assert_eq!(setup.entry()["memo"]["deviceWithoutPkce"], json!(true));
    assert!(!setup.provider.state().forms[0].contains_key("code_verifier"));
}

// L754, L1202, L1203, L1227
#[test]
fn device_login_ends_with_the_providers_reason() {
    for (answers, code) in [
        (vec!["expired_token"], "timed-out"),
        (vec!["authorization_pending", "access_denied"], "denied"),
        (vec!["access_denied"], "device-blocked"),
        (vec!["invalid_scope"], "scope"),
    ] {
        let mut setup = Setup::new();
        setup.request.grant = GrantType::DeviceCode;
        setup.provider.state().device_answers = answers;
        assert_eq!(setup.failure(), code);
    }
}

// L701: without a browser, `auto` is a device login.
#[test]
fn without_a_browser_the_device_login_is_used() {
    let setup = Setup::new();
    assert_eq!(setup.login().origin, SessionOrigin::LoggedIn);
    assert_eq!(setup.provider.device_requests(), 1);
}

// L210, L212, L1201
#[test]
fn without_a_person_the_login_is_refused_and_nothing_is_requested() {
    let mut setup = Setup::new();
    setup.context.terminals.stderr = false;
    let error = navicert_login::login(&setup.request, &setup.context).unwrap_err();
    assert_eq!(error.code().as_str(), "login-needed");
    let issuer = setup.provider.issuer.issuer_url();
    assert!(error.to_string().contains(&format!("navicert login --oidc-issuer-url={issuer}")), "{error}");
    assert_eq!(setup.provider.requests(), 0);
    assert!(setup.messages.all().is_empty());
}

// L304, L761, L801, L802, L831, L832
#[test]
fn refresh_is_one_request_and_keeps_the_rotated_token() {
    let setup = with_password();
    setup.login();
    assert_eq!(setup.entry()["refreshToken"], json!("canary-refresh-1"));
    setup.clock.advance(3_590);
    let before = setup.provider.requests();
    let session = setup.login();
    assert_eq!(session.origin, SessionOrigin::Refreshed);
    assert_eq!(setup.provider.requests() - before, 1, "documents and keys are cached");
    assert_eq!(setup.entry()["refreshToken"], json!("canary-refresh-2"));
    assert_eq!(setup.entry()["history"]["refreshes"], json!(1));
    assert!(!setup.provider.state().forms.last().unwrap().contains_key("scope"));
}

// L802
#[test]
fn refresh_without_a_new_refresh_token_keeps_the_old_one() {
    let setup = with_password();
    setup.login();
    setup.provider.state().answer.insert("refresh_token".to_owned(), json!(null));
    setup.provider.state().rotates = false;
    setup.clock.advance(3_590);
    setup.login();
    assert_eq!(setup.entry()["refreshToken"], json!("canary-refresh-1"));
}

// L805, L611, L1224
#[test]
fn failing_provider_never_starts_a_login() {
    for answer in [Answer::status(503), Answer::status(429), failure("temporarily_unavailable", "")] {
        let mut setup = with_password();
        setup.login();
        setup.request.password = None;
        let entry = std::fs::read(setup.entry_path()).unwrap();
        setup.provider.answer_token(answer);
        // Inside the margin: the old token is handed over.
        setup.clock.advance(3_550);
        let before = setup.provider.token_requests();
        assert_eq!(setup.login().origin, SessionOrigin::KeptAfterFault);
        assert_eq!(setup.provider.token_requests() - before, 3, "three tries");
        // Expired: an error, and still no login is started.
        setup.clock.advance(100);
        assert_eq!(setup.failure(), "provider-fault");
        assert_eq!(setup.provider.device_requests(), 0);
        assert_eq!(std::fs::read(setup.entry_path()).unwrap(), entry, "the entry is unchanged");
        setup.provider.serve_honestly();
        assert_eq!(setup.login().origin, SessionOrigin::Refreshed);
    }
}

// L833, L805
#[test]
fn lost_connection_is_retried_once_with_the_same_token() {
    let setup = with_password();
    setup.login();
    setup.provider.answer_token(Answer::cut(navicert_testkit::Cut::Reset));
    setup.clock.advance(3_650);
    assert_eq!(setup.failure(), "unreachable");
    setup.provider.serve_honestly();
    assert_eq!(setup.login().origin, SessionOrigin::Refreshed);
}

// L804, L1223
#[test]
fn ended_session_is_not_renewed_and_says_why() {
    let mut setup = with_password();
    setup.login();
    setup.request.username = Some("ann".to_owned());
    setup.request.password = None;
    setup.context.terminals.stderr = false;
    setup.provider.state().is_over = true;
    setup.clock.advance(3_590);
    let error = navicert_login::login(&setup.request, &setup.context).unwrap_err();
    assert_eq!(error.code().as_str(), "session-over");
    assert!(error.to_string().contains("Session not active"), "{error}");
    assert_eq!(setup.entry().get("refreshToken"), None);
}

// L804
#[test]
fn other_errors_of_a_refresh_leave_the_session_as_it_is() {
    for (code, expected) in
        [("invalid_client", "client"), ("invalid_scope", "scope"), ("not_allowed", "provider-error")]
    {
        let setup = with_password();
        setup.login();
        setup.provider.answer_token(failure(code, ""));
        setup.clock.advance(3_590);
        assert_eq!(setup.failure(), expected);
        assert_eq!(setup.entry()["refreshToken"], json!("canary-refresh-1"), "{code}");
        assert_eq!(setup.entry()["history"]["lastFailure"]["code"], json!(expected));
    }
}

// L801
#[test]
fn refresh_names_the_scopes_if_no_id_token_comes_without_them() {
    let setup = with_password();
    setup.login();
    setup.clock.advance(3_590);
    setup.provider.issuer.answer_once(
        "/token",
        Answer::json(
            &json!({"token_type": "Bearer", "access_token": "canary-x", "refresh_token": "canary-refresh-1"}),
        ),
    );
    assert_eq!(setup.login().origin, SessionOrigin::Refreshed);
    assert_eq!(setup.provider.state().forms.last().unwrap()["scope"], "openid");
    assert_eq!(setup.entry()["memo"]["refreshNeedsScope"], json!(true));
}

// L803, L1021
#[test]
fn refresh_for_another_user_removes_the_session() {
    let setup = with_password();
    setup.login();
    setup.provider.state().claims.insert("sub".to_owned(), json!("bob"));
    setup.clock.advance(3_590);
    let path = setup.entry_path();
    assert_eq!(setup.failure(), "subject-changed");
    assert!(!path.exists());
}

// L610, L1002, L1004, L1022, L1212, L1220, L1221
#[test]
fn tokens_that_do_not_verify_are_never_stored() {
    for (claim, value, code) in [
        ("aud", json!("other"), "audience"),
        ("iss", json!("https://evil.example"), "id-token"),
        ("azp", json!("other"), "id-token"),
        ("exp", json!(1), "clock"),
        ("iat", json!(99_999_999_999_i64), "id-token"),
        ("sub", json!(""), "id-token"),
    ] {
        let setup = with_password();
        setup.provider.state().claims.insert(claim.to_owned(), value);
        assert_eq!(setup.failure(), code, "{claim}");
        let entries =
            navicert_login::cache::CacheFolder::locate(&setup.request, &setup.context).unwrap().keys();
        assert!(entries.unwrap().is_empty(), "{claim}");
    }
    let setup = with_password();
    setup.provider.state().answer.insert("id_token".to_owned(), json!(null));
    assert_eq!(setup.failure(), "no-id-token");
    setup.provider.state().answer.insert("id_token".to_owned(), json!("a.b.c.d.e"));
    assert_eq!(setup.failure(), "algorithm");
    setup.provider.state().answer.insert("token_type".to_owned(), json!("DPoP"));
    assert_eq!(setup.failure(), "token-type");
}

// L1003
#[test]
fn id_token_of_another_access_token_is_rejected() {
    let setup = with_password();
    setup.provider.state().claims.insert("at_hash".to_owned(), json!("AAAAAAAAAAAAAAAAAAAAAA"));
    assert_eq!(setup.failure(), "at-hash");
}

// L605, L1005
#[test]
fn unknown_key_is_fetched_once() {
    let setup = with_password();
    setup.login();
    setup.provider.issuer.add_key(SigningKey::generate(Algorithm::Es384, "key-2"));
    setup.provider.serve_honestly();
    setup.clock.advance(3_590);
    let before = setup.provider.requests();
    assert_eq!(setup.login().origin, SessionOrigin::Refreshed);
    assert_eq!(setup.provider.requests() - before, 2, "one for the token, one for the keys");
    // A key that is not published.
    setup.provider.issuer.replace_keys([SigningKey::generate(Algorithm::Es256, "key-3")]);
    setup.provider.serve_honestly();
    setup.provider.issuer.replace_keys([SigningKey::generate(Algorithm::Es256, "key-4")]);
    setup.clock.advance(3_590);
    assert_eq!(setup.failure(), "signature");
}

// L832, L1022: the provider has replaced the refresh token although its answer cannot be used.
#[test]
fn refresh_that_cannot_be_checked_keeps_the_new_refresh_token() {
    let setup = with_password();
    setup.login();
    let token = setup.entry()["idToken"].clone();
    let is_current = || setup.entry()["refreshToken"] == json!(setup.provider.state().refresh_token);
    setup.provider.state().claims.insert("aud".to_owned(), json!("other"));
    setup.clock.advance(3_590);
    assert_eq!(setup.failure(), "audience");
    assert!(is_current() && setup.entry()["idToken"] == token, "the token that failed is not kept");
    setup.provider.state().claims.clear();
    assert_eq!(setup.login().origin, SessionOrigin::Refreshed);
    // A new signing key, and no key set.
    setup.provider.issuer.add_key(SigningKey::generate(Algorithm::Es384, "key-2"));
    setup.provider.serve_honestly();
    let (path, keys) = (setup.provider.issuer.jwks_path().to_owned(), setup.provider.issuer.jwks());
    setup.provider.issuer.answer(&path, Answer::status(503));
    setup.clock.advance(3_650);
    assert_eq!(setup.failure(), "provider-fault");
    assert!(is_current());
    setup.provider.issuer.answer(&path, Answer::json(&keys));
    assert_eq!(setup.login().origin, SessionOrigin::Refreshed);
    // No ID token, and no answer to the request that names the scopes.
    setup.clock.advance(3_650);
    let without =
        json!({"token_type": "Bearer", "access_token": "canary-x", "refresh_token": "canary-refresh-next"});
    setup.provider.issuer.answer_once("/token", Answer::json(&without));
    setup.provider.answer_token(Answer::status(503));
    assert_eq!(setup.failure(), "provider-fault");
    assert_eq!(setup.entry()["refreshToken"], "canary-refresh-next");
    assert!(!setup.provider.state().is_over, "no refresh token was used twice");
}

// L506: the lock is free again when this process gets to it.
#[test]
fn session_that_another_process_renewed_meanwhile_is_not_renewed_again() {
    #[derive(Debug)]
    struct OtherProcess(LoginRequest, LoginContext);
    impl Messages for OtherProcess {
        fn show(&self, text: &str) {
            if text == "cache: no fresh token" {
                navicert_login::login(&self.0, &self.1).unwrap();
            }
        }
    }
    let mut setup = with_password();
    setup.login();
    setup.clock.advance(3_590);
    let before = setup.provider.token_requests();
    let other = OtherProcess(setup.request.clone(), setup.context.clone());
    setup.request.verbosity = 1;
    setup.context.messages = Arc::new(other);
    assert_eq!(setup.login().origin, SessionOrigin::Cached);
    assert_eq!(setup.provider.token_requests() - before, 1, "one refresh");
}

// L311, L313
#[test]
fn lifetimes_are_counted_from_receipt_whatever_the_local_clock_says() {
    for offset in [-86_400, -600, 600, 86_400] {
        let mut setup = with_password();
        setup.context.invocation = Invocation::ByHand;
        setup.provider.state().clock_offset = offset;
        setup.login();
        assert_eq!(setup.login().origin, SessionOrigin::Cached, "{offset}");
        let skew = setup.entry()["skewSeconds"].as_i64().unwrap();
        assert!((skew - offset).abs() <= 2, "{skew}");
        setup.clock.advance(3_500);
        assert_eq!(setup.login().origin, SessionOrigin::Cached, "{offset}");
        setup.clock.advance(90);
        assert_eq!(setup.login().origin, SessionOrigin::Refreshed, "{offset}");
        let warned = setup.messages.all().iter().any(|message| message.contains("clock"));
        assert_eq!(warned, offset.abs() > 300, "{offset}");
    }
}

// L314
#[test]
fn token_that_the_api_server_rejected_is_renewed_once_a_minute() {
    let setup = with_password();
    setup.login();
    assert_eq!(setup.login().origin, SessionOrigin::Cached, "asked twice at once");
    for (seconds, origin) in [
        (2, SessionOrigin::Refreshed),
        (10, SessionOrigin::Cached),
        (51, SessionOrigin::Refreshed),
        (2, SessionOrigin::Cached),
    ] {
        setup.clock.advance(seconds);
        assert_eq!(setup.login().origin, origin, "after {seconds} s");
    }
}

// L315
#[test]
fn forced_refresh_renews_a_fresh_token() {
    let mut setup = with_password();
    setup.login();
    setup.request.force_refresh = true;
    assert_eq!(setup.login().origin, SessionOrigin::Refreshed);
}

// L615, L616
#[test]
fn client_secret_is_tried_in_header_and_form_and_the_place_is_remembered() {
    let mut setup = Setup::new();
    setup.request.grant = GrantType::ClientCredentials;
    let file = setup.dir.path().join("secret");
    std::fs::write(&file, "canary-secret").unwrap();
    setup.request.client.secret = Some(SecretSource::File(file));
    setup.provider.issuer.answer_once("/token", failure("invalid_client", ""));
    setup.login();
    assert_eq!(setup.entry()["memo"]["clientAuth"], json!("post"));
    let forms = setup.provider.state().forms.clone();
    assert_eq!(forms.last().unwrap()["client_secret"], "canary-secret");
    let first = &setup.provider.issuer.log().requests;
    let first = first.iter().find(|request| request.path() == "/token").unwrap();
    assert!(first.header("authorization").unwrap().starts_with("Basic "));
    setup.clock.advance(3_590);
    setup.provider.state().answer.insert("refresh_token".to_owned(), json!(null));
    let before = setup.provider.token_requests();
    setup.login();
    assert_eq!(setup.provider.token_requests() - before, 1, "the place is known");
}

// L771, L1212
#[test]
fn client_credentials_without_an_id_token_need_the_access_token() {
    let mut setup = Setup::new();
    setup.request.grant = GrantType::ClientCredentials;
    setup.request.client.secret = Some(SecretSource::Argument("canary-secret".to_owned().into()));
    setup.provider.state().answer.insert("id_token".to_owned(), json!(null));
    assert_eq!(setup.failure(), "no-id-token");
    setup.request.token_kind = TokenKind::Access;
    // L1006: an opaque token expires with `expires_in`.
    let session = setup.login();
    assert!(session.token().unwrap().expose().starts_with("canary-access-"));
    assert_eq!(setup.entry().get("idToken"), None);
}

// L781, L783
#[test]
fn token_exchange_hands_over_what_it_got() {
    let mut setup = Setup::new();
    let file = setup.dir.path().join("subject");
    std::fs::write(&file, "canary-subject\n").unwrap();
    setup.request.exchange.subject = Some(TokenSource::File(file));
    setup.request.parameters.audiences = vec!["cluster-a".to_owned()];
    assert_eq!(setup.failure(), "provider-error", "`issued_token_type` is required");
    let issued = json!("urn:ietf:params:oauth:token-type:access_token");
    setup.provider.state().answer.insert("issued_token_type".to_owned(), issued);
    let session = setup.login();
    assert!(session.token().unwrap().expose().starts_with("canary-access-"));
    let form = setup.provider.state().forms.last().unwrap().clone();
    assert_eq!(form["subject_token"], "canary-subject");
    assert_eq!(form["subject_token_type"], "urn:ietf:params:oauth:token-type:jwt");
    assert_eq!(form["audience"], "cluster-a");
}

// L783, L1232
#[test]
fn missing_subject_token_names_its_source() {
    let mut setup = Setup::new();
    setup.request.exchange.subject = Some(TokenSource::Variable("NO_SUCH".to_owned()));
    let error = navicert_login::login(&setup.request, &setup.context).unwrap_err();
    assert_eq!(error.code().as_str(), "subject-token");
    assert!(error.to_string().contains("NO_SUCH"), "{error}");
    setup.request.exchange.subject = Some(TokenSource::GithubActions);
    let error = navicert_login::login(&setup.request, &setup.context).unwrap_err();
    assert!(error.to_string().contains("id-token: write"), "{error}");
}

// L784
#[test]
fn ambient_token_is_handed_over_unchanged_and_unstored() {
    let mut setup = Setup::new();
    let now = navicert_types::Clock::now(&*setup.clock);
    let token = setup.provider.issuer.token(&json!({"sub": "job", "exp": now.as_second() + 600}));
    setup.context.environment = [("JOB_TOKEN", token.as_str())].into_iter().collect();
    setup.request.grant = GrantType::Ambient;
    setup.request.exchange.subject = Some(TokenSource::Variable("JOB_TOKEN".to_owned()));
    assert_eq!(setup.login().token().unwrap().expose(), &token);
    assert_eq!(setup.provider.requests(), 0);
    setup.clock.advance(700);
    assert_eq!(setup.failure(), "subject-token");
}

// L836
#[test]
fn unwanted_refresh_token_is_revoked_and_dropped() {
    let mut setup = with_password();
    setup.request.no_refresh_token = true;
    setup.login();
    assert_eq!(setup.entry().get("refreshToken"), None);
    assert!(setup.provider.state().is_over, "revoked at the provider");
}

// L834
#[test]
fn credential_that_cannot_be_kept_is_handed_over_all_the_same() {
    use std::os::unix::fs::PermissionsExt as _;
    if rustix::process::geteuid().is_root() {
        // Root writes anywhere; the entry's name is taken by a folder instead.
        let setup = with_password();
        let key = navicert_login::KeyFields::new(&setup.request).unwrap().cache_key();
        let folder = setup.dir.path().join("cache");
        std::fs::create_dir_all(folder.join(format!("{}.json", key.as_str())).join("x")).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        // Reading sets the folder aside, so a second one takes its name only if the first stays.
        std::fs::create_dir_all(folder.join(format!("{}.bad", key.as_str())).join("x")).unwrap();
        assert_eq!(setup.login().origin, SessionOrigin::LoggedIn);
        assert!(setup.messages.all().iter().any(|message| message.contains("cannot keep the session")));
        return;
    }
    let setup = with_password();
    setup.login();
    let folder = setup.dir.path().join("cache");
    setup.clock.advance(3_590);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o500)).unwrap();
    assert_eq!(setup.login().origin, SessionOrigin::Refreshed);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(setup.messages.all().iter().any(|message| message.contains("cannot keep the session")));
}

// L604, L1215, L1216, L1217
#[test]
fn discovery_errors_name_what_to_change() {
    let setup = with_password();
    setup.provider.issuer.set_discovery("issuer", json!(format!("{}/", setup.provider.issuer.issuer_url())));
    assert_eq!(setup.failure(), "issuer");
    setup.provider.issuer.answer(setup.provider.issuer.discovery_path(), Answer::text("<html>"));
    assert_eq!(setup.failure(), "discovery");
    setup.provider.issuer.answer(setup.provider.issuer.discovery_path(), Answer::status(404));
    assert_eq!(setup.failure(), "discovery");
    setup.provider.issuer.refuse_connections();
    assert_eq!(setup.failure(), "unreachable");
}

// L1218
#[test]
fn untrusted_certificate_is_not_a_passing_fault() {
    let mut setup = with_password();
    setup.request.connection.authorities.clear();
    assert_eq!(setup.failure(), "certificate");
    assert_eq!(setup.timer.waits(), [0_u128; 0], "not retried");
}

// L606, L1231, L602
#[test]
fn redirects_and_long_answers_of_the_token_endpoint_are_refused() {
    let setup = with_password();
    setup.provider.answer_token(Answer::redirect(307, "https://evil.example/token"));
    assert_eq!(setup.failure(), "redirected");
    setup.provider.answer_token(Answer::filler("application/json", 2 << 20));
    assert_eq!(setup.failure(), "answer-too-long");
    setup.provider.answer_token(Answer::text("<html>"));
    assert_eq!(setup.failure(), "not-json");
}

/// One request of a browser: status, `Location` and the whole answer.
fn browse(url: &str) -> (u16, Option<String>, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (authority, path) = rest.split_at(rest.find('/').unwrap());
    let mut stream = TcpStream::connect(authority).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let location = text.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("location").then(|| value.to_owned())
    });
    (status, location, text)
}

/// Logs in as a person with a browser would: `answer` gets the parameters of the authorization request and returns those of
/// the callback.
fn log_in_with_browser(
    setup: &Setup,
    answer: impl FnOnce(&std::collections::HashMap<String, String>) -> String + Send,
) -> (Result<navicert_login::LoginSession, navicert_login::LoginError>, String) {
    let messages = setup.messages.listen();
    std::thread::scope(|scope| {
        let page = scope.spawn(move || {
            let start = loop {
                let message = messages.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
                if let Some((_, url)) = message.split_once(", open ") {
                    break url.to_owned();
                }
            };
            let (status, location, _) = browse(&start);
            assert_eq!(status, 303);
            let authorization = location.unwrap();
            let mut parameters = form(authorization.split_once('?').unwrap().1);
            if parameters.contains_key("request_uri") {
                assert_eq!(parameters.len(), 2, "the address has only the client and the pushed request");
                let log = setup.provider.issuer.log();
                let pushed = log.requests.iter().find(|request| request.path() == "/par").unwrap();
                parameters = form(pushed.text());
            }
            let callback = format!("{}?{}", parameters.get("redirect_uri").unwrap(), answer(&parameters));
            let (status, location, text) = browse(&callback);
            match location {
                Some(path) if status == 303 => {
                    let origin = callback.split("/callback").next().unwrap();
                    browse(&format!("{origin}{path}")).2
                }
                _ => text,
            }
        });
        let result = navicert_login::login(&setup.request, &setup.context);
        (result, page.join().unwrap())
    })
}

fn with_browser() -> Setup {
    let mut setup = Setup::new();
    setup.request.grant = GrantType::Authcode;
    setup.request.browser.skip_open = true;
    setup
}

// L120, L703, L704, L726, L713, L911, L913, L921
#[test]
fn browser_login_sends_pkce_state_and_nonce_and_shows_a_page() {
    let setup = with_browser();
    let state = &setup;
    let (result, page) = log_in_with_browser(&setup, move |parameters| {
        assert_eq!(parameters["response_type"], "code");
        assert_eq!(parameters["code_challenge_method"], "S256");
        assert_eq!(parameters["scope"], "openid offline_access");
        assert!(
            parameters["redirect_uri"].starts_with("http://127.0.0.1:"),
            "{}",
            parameters["redirect_uri"]
        );
        assert!(parameters["redirect_uri"].ends_with("/callback"));
        assert!(!parameters.contains_key("access_type"));
        state.provider.state().codes.insert("the-code".to_owned(), parameters["nonce"].clone());
        format!("code=the-code&state={}", parameters["state"])
    });
    assert_eq!(result.unwrap().origin, SessionOrigin::LoggedIn);
    assert!(page.contains("Logged in") && page.contains("ann@example.com"), "{page}");
    let form = setup.provider.state().forms[0].clone();
    assert_eq!((form["code"].as_str(), form["code_verifier"].len()), ("the-code", 43));
    assert!(form["redirect_uri"].ends_with("/callback"));
}

// L707
#[test]
fn authorization_request_is_pushed_if_the_provider_requires_it() {
    let setup = with_browser();
    let issuer = &setup.provider.issuer;
    issuer.set_discovery("require_pushed_authorization_requests", json!(true));
    issuer.set_discovery("pushed_authorization_request_endpoint", json!(issuer.url_of("/par")));
    issuer
        .answer("/par", Answer::json(&json!({"request_uri": "urn:x:1", "expires_in": 60})).with_status(201));
    let state = &setup;
    let (result, _) = log_in_with_browser(&setup, move |parameters| {
        state.provider.state().codes.insert("the-code".to_owned(), parameters["nonce"].clone());
        format!("code=the-code&state={}", parameters["state"])
    });
    assert_eq!(result.unwrap().origin, SessionOrigin::LoggedIn);
}

// L1002, L1222, L1312
#[test]
fn code_of_another_login_is_rejected() {
    let setup = with_browser();
    let state = &setup;
    let (result, page) = log_in_with_browser(&setup, move |parameters| {
        state.provider.state().codes.insert("stolen".to_owned(), "another-nonce".to_owned());
        format!("code=stolen&state={}", parameters["state"])
    });
    assert_eq!(result.unwrap_err().code().as_str(), "nonce");
    assert!(page.contains("Not logged in"), "{page}");
}

// L911, L1203, L1302
#[test]
fn providers_error_ends_the_login_and_is_escaped() {
    let setup = with_browser();
    let (result, page) = log_in_with_browser(&setup, |parameters| {
        format!("error=access_denied&error_description=%1b%5b2J%3Cb%3Eno&state={}", parameters["state"])
    });
    let error = result.unwrap_err();
    assert_eq!(error.code().as_str(), "denied");
    assert!(!error.to_string().contains('\u{1b}'), "{error:?}");
    assert!(page.contains("Not logged in") && !page.contains("<b>no") && !page.contains('\u{1b}'), "{page}");
}

// L911, L1304
#[test]
fn answer_of_another_issuer_is_rejected() {
    let setup = with_browser();
    let (result, _) = log_in_with_browser(&setup, |parameters| {
        format!("code=x&iss=https%3A%2F%2Fevil.example&state={}", parameters["state"])
    });
    assert_eq!(result.unwrap_err().code().as_str(), "mix-up");
    assert_eq!(setup.provider.token_requests(), 0, "the code is sent nowhere");
}

// L106
#[test]
fn secret_on_the_command_line_is_noted_once() {
    let mut setup = Setup::new();
    setup.request.grant = GrantType::ClientCredentials;
    setup.request.client.secret = Some(SecretSource::Argument("canary-secret".to_owned().into()));
    setup.login();
    let notes =
        || setup.messages.all().iter().filter(|text| text.contains("--oidc-client-secret-file")).count();
    assert_eq!(notes(), 1);
    setup.clock.advance(4_000);
    setup.provider.state().is_over = true;
    assert_eq!(setup.login().origin, SessionOrigin::LoggedIn);
    assert_eq!(notes(), 1);
}

// L1211
#[test]
fn missing_refresh_token_is_told_after_the_login() {
    let mut setup = Setup::new();
    setup.request.grant = GrantType::DeviceCode;
    setup.provider.state().answer.insert("refresh_token".to_owned(), json!(null));
    setup.login();
    let messages = setup.messages.all().join("\n");
    assert!(messages.contains("no refresh token") && messages.contains("offline_access"), "{messages}");
}

// L701, L1205
#[test]
fn without_browser_device_login_and_keyboard_there_is_no_login() {
    let setup = Setup::new();
    setup.provider.issuer.remove_discovery("device_authorization_endpoint");
    assert_eq!(setup.failure(), "no-browser");
}

// L835
#[test]
fn session_of_another_machine_is_named_when_it_has_ended() {
    let mut setup = with_password();
    setup.login();
    let mut entry = setup.entry();
    entry["host"] = json!("other-machine");
    std::fs::write(setup.entry_path(), entry.to_string()).unwrap();
    setup.request.password = None;
    setup.context.terminals.stderr = false;
    setup.provider.state().is_over = true;
    setup.clock.advance(3_590);
    let error = navicert_login::login(&setup.request, &setup.context).unwrap_err();
    assert!(error.to_string().contains("other-machine"), "{error}");
}

// L505, L507
#[test]
fn logout_waits_for_a_running_login_and_names_its_process() {
    let setup = with_password();
    setup.login();
    let lock = std::fs::File::open(setup.entry_path().with_extension("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let local = LogoutOptions { is_local: true, ..LogoutOptions::default() };
    let error = navicert_login::logout(&setup.request, &setup.context, &local).unwrap_err();
    let pid = std::process::id();
    assert_eq!(error, navicert_login::LoginError::LockTimeout { pid });
    drop(lock);
    assert!(navicert_login::logout(&setup.request, &setup.context, &local).unwrap().is_some());
}

// L1106
#[test]
fn status_lists_sessions_without_tokens() {
    let setup = with_password();
    setup.login();
    let folder = navicert_login::cache::CacheFolder::locate(&setup.request, &setup.context).unwrap();
    let sessions = navicert_login::status(&folder, &setup.context).unwrap();
    assert_eq!(sessions.len(), 1);
    assert!(sessions[0].is_fresh && sessions[0].has_refresh_token);
    assert_eq!((sessions[0].display.as_str(), sessions[0].logins), ("ann@example.com", 1));
    assert!(!format!("{sessions:?}").contains("canary"));
    setup.clock.advance(4_000);
    assert!(!navicert_login::status(&folder, &setup.context).unwrap()[0].is_fresh);
}

// L522, L524
#[test]
fn failed_login_delays_the_next_one_unless_it_is_explicit() {
    let mut setup = Setup::new();
    setup.request.grant = GrantType::DeviceCode;
    setup.provider.state().device_answers = vec!["expired_token"];
    assert_eq!(setup.failure(), "timed-out");
    let requests = setup.provider.requests();
    let error = navicert_login::login(&setup.request, &setup.context).unwrap_err();
    assert_eq!(error.code().as_str(), "timed-out");
    assert!(error.to_string().contains("next attempt in"), "{error}");
    assert_eq!(setup.provider.requests(), requests, "no login is started");
    setup.context.invocation = Invocation::ByHand;
    assert_eq!(setup.login().origin, SessionOrigin::LoggedIn);
}

// L1110, L1111
#[test]
fn setup_proves_the_configuration_it_prints() {
    let setup = with_password();
    setup.provider.issuer.set_discovery("code_challenge_methods_supported", json!(["S256"]));
    setup.provider.state().claims.insert("groups".to_owned(), json!(["dev"]));
    setup.provider.state().claims.insert("email_verified".to_owned(), json!(true));
    let report = navicert_login::setup(&setup.request, &SetupOptions::default(), &setup.context).unwrap();
    assert!(report.is_good(), "{:?}", report.steps);
    let step = |name: &str| report.steps.iter().find(|step| step.name == name).unwrap().text.clone();
    assert_eq!(step("API server"), "user oidc:ann@example.com, groups [oidc:dev]");
    assert_eq!(step("refresh"), "works, and the refresh token rotates");
    let documents = report.documents.unwrap();
    let user: serde_json::Value = serde_json::from_str(&documents.kubeconfig_user).unwrap();
    let exec = &user["users"][0]["user"]["exec"];
    assert_eq!((&exec["command"], &exec["args"][0]), (&json!("navicert"), &json!("login")));
    assert_eq!(
        (&exec["interactiveMode"], &exec["provideClusterInfo"]),
        (&json!("IfAvailable"), &json!(true))
    );
    assert_eq!(documents.rbac.len(), 2);
    assert!(documents.rbac[1].contains("oidc:dev"));
    for text in [&documents.authentication_configuration, &documents.kubeconfig_user, &documents.command] {
        assert!(!text.contains("canary"), "{text}");
    }
}

// L1110, L1111
#[test]
fn setup_writes_the_requested_versions_and_name() {
    let setup = with_password();
    let options = SetupOptions {
        user: "ann at work".to_owned(),
        exec_version: SetupApiVersion::V1Beta1,
        authn_version: SetupApiVersion::V1,
        ..SetupOptions::default()
    };
    let report = navicert_login::setup(&setup.request, &options, &setup.context).unwrap();
    let documents = report.documents.unwrap();
    let configuration: serde_json::Value =
        serde_json::from_str(&documents.authentication_configuration).unwrap();
    assert_eq!(configuration["apiVersion"], "apiserver.config.k8s.io/v1");
    let user: serde_json::Value = serde_json::from_str(&documents.kubeconfig_user).unwrap();
    let entry = &user["users"][0];
    assert_eq!(entry["name"], "ann at work");
    assert_eq!(entry["user"]["exec"]["apiVersion"], "client.authentication.k8s.io/v1beta1");
    assert!(
        documents.command.starts_with("kubectl config set-credentials 'ann at work' "),
        "{}",
        documents.command
    );
    let written = navicert_login::kubeconfig_entry(&setup.request, &options);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&written.to_json()).unwrap(), entry["user"]);
}
