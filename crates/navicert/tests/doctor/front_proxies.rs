//! `navicert doctor --front-proxy`: what an API server makes of a front proxy's certificate.

use navicert_testkit::{Answer, ApiServer};
use serde_json::json;

use super::setup::{Setup, check, check_fix};

/// A setup whose credential is a certificate of `navicert-proxy`. The API server is of this version, takes the user that the
/// header names, or else that of the certificate, or none.
fn setup(minor: u32, header: Option<&'static str>, certificate: Option<&'static str>) -> Setup {
    let setup = Setup::new();
    let identity = setup.ca.client("navicert-proxy").issue();
    let version = json!({"major": "1", "minor": minor.to_string(), "gitVersion": format!("v1.{minor}.0")});
    setup.api.answer("/version", Answer::json(&version));
    setup.api.answer_with(ApiServer::WHO_AM_I, move |request| {
        assert!(request.client.is_some(), "the certificate is sent");
        match header.and_then(|header| request.header(header)).or(certificate) {
            Some(user) => Answer::json(&json!({"status": {"userInfo": {"username": user}}})).with_status(201),
            None => Answer::unauthorized(),
        }
    });
    setup.certificate(&identity)
}

// S228
#[test]
fn trusted_front_proxy_has_no_problems() {
    check("front-proxy", "no problems found", setup(37, Some("x-remote-user"), None).context(34));
    let own = setup(37, Some("x-corp-user"), None);
    check("front-proxy-own-header", "no problems found", own.context(34));
}

// V7: before 1.35, an upgrade may stop the API server; later versions have the flag, or would not have started.
#[test]
fn authority_shared_with_users_is_a_recommendation() {
    for (name, minor) in [("front-proxy-shared-authority", 34), ("front-proxy-shared-authority-1-35", 35)] {
        let shared = setup(minor, Some("x-remote-user"), Some("navicert-proxy"));
        check(name, "no errors; recommended: ", shared.context(34));
    }
}

// S228
#[test]
fn untrusted_front_proxy_is_an_error() {
    let fix = "check the API server's flags: --requestheader-client-ca-file has to vouch for the certificate, \
               --requestheader-allowed-names to be empty or to list `navicert-proxy`, and --requestheader-username-headers to \
               name the header";
    check_fix("front-proxy-headers-ignored", fix, setup(37, None, Some("navicert-proxy")).context(34));
    let fix = "check the API server's flags: --requestheader-client-ca-file has to vouch for the certificate, and \
               --requestheader-allowed-names to be empty or to list its common name";
    check_fix("front-proxy-rejected", fix, setup(37, None, None).context(34));
}

#[test]
fn front_proxy_without_a_certificate_is_an_error() {
    let fix = "give user `ann` a client certificate that the API server's --requestheader-client-ca-file vouches for";
    check_fix("front-proxy-with-token", fix, Setup::new().context(34));
}

// V7: what an upgrade looks like from here.
#[test]
fn api_server_that_does_not_start_is_explained() {
    let setup = setup(37, Some("x-remote-user"), None);
    setup.api.refuse_connections();
    check("front-proxy-refused", "to do: start the server at ", setup.context(34));
}
