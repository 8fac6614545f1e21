//! How the provider is reached: proxies, root certificates, names, and client certificates.

use navicert_login::Environment;
use navicert_testkit::services::issuer::IssuerBuilder;
use navicert_testkit::{Ca, ClientAuth, ConnectProxy, Issuer, LoginProvider};

use super::support::Setup;

/// A host that no resolver is asked for: the proxy connects it.
const HOST: &str = "id.example";

/// A login without a person at a provider with these settings, and the authority of its certificate.
fn setup_with(issuer: impl FnOnce(IssuerBuilder, &Ca) -> IssuerBuilder) -> (Setup, Ca) {
    let mut setup = Setup::with_password();
    let ca = Ca::new("login provider");
    let settings = issuer(Issuer::builder(), &ca);
    setup.provider = LoginProvider::start_with(setup.dir.path(), &ca, settings);
    setup.request.issuer = setup.provider.issuer.issuer_url();
    (setup, ca)
}

/// A provider that only a proxy can connect to.
fn behind_proxy() -> Setup {
    setup_with(|issuer, _| issuer.host(HOST)).0
}

fn tunnels(setup: &Setup) -> Vec<String> {
    let port = setup.provider.issuer.address().port();
    vec![format!("CONNECT {HOST}:{port} HTTP/1.1")]
}

// L601
#[test]
fn flag_and_variables_name_the_proxy() {
    for variable in [None, Some("HTTPS_PROXY"), Some("https_proxy")] {
        let mut setup = behind_proxy();
        let proxy = ConnectProxy::start(setup.provider.issuer.address());
        match variable {
            None => setup.request.connection.proxy_url = proxy.url(),
            Some(name) => setup.context.environment = Environment::from_iter([(name, proxy.url())]),
        }
        setup.login();
        let requests = proxy.requests();
        assert!(
            !requests.is_empty() && requests.iter().all(|line| *line == tunnels(&setup)[0]),
            "{requests:?}"
        );
        assert_eq!(setup.provider.token_requests(), 1);
    }
}

// L601, L1217, L1234
#[test]
fn proxy_with_a_password_gets_it_and_no_message_contains_it() {
    let setup = behind_proxy();
    let address = setup.provider.issuer.address();
    let proxy = ConnectProxy::start_with_password(address, "ann:canary@p");
    let with = |user: &str| {
        let mut setup = behind_proxy_at(&setup);
        let url = format!("http://{user}{}", proxy.address());
        setup.context.environment = Environment::from_iter([("HTTPS_PROXY", url)]);
        setup
    };
    for user in ["", "ann:canary-wrong@"] {
        let refused = with(user);
        let error = navicert_login::login(&refused.request, &refused.context).unwrap_err();
        assert_eq!(error.code().as_str(), "proxy-login", "{error}");
        assert!(
            error.to_string().contains("HTTPS_PROXY") && !error.to_string().contains("canary"),
            "{error}"
        );
        assert_eq!(refused.timer.waits(), [0_u128; 0], "not retried");
    }
    with("ann:canary%40p@").login();
    // A proxy that is down is named without its password.
    let mut down = behind_proxy_at(&setup);
    down.request.connection.proxy_url = "http://ann:canary@127.0.0.1:1".to_owned();
    let error = navicert_login::login(&down.request, &down.context).unwrap_err();
    assert_eq!(error.code().as_str(), "unreachable", "{error}");
    assert!(error.to_string().contains("127.0.0.1:1") && !error.to_string().contains("canary"), "{error}");
}

/// Another user of the same provider.
fn behind_proxy_at(other: &Setup) -> Setup {
    let mut setup = Setup::with_password();
    setup.request.issuer.clone_from(&other.request.issuer);
    setup.request.connection.authorities.clone_from(&other.request.connection.authorities);
    setup
}

// L601
#[test]
fn exceptions_and_loopback_are_not_proxied() {
    // This machine too, but not one of its loopback addresses.
    let host = "0.0.0.0";
    for (host, no_proxy, is_proxied) in [
        (None, "", false),
        (Some(host), "", true),
        (Some(host), "other.example", true),
        (Some(host), "other.example,0.0.0.0", false),
        (Some(host), "*", false),
    ] {
        let (mut setup, _) = setup_with(|issuer, _| match host {
            Some(host) => issuer.host(host),
            None => issuer,
        });
        let proxy = ConnectProxy::start(setup.provider.issuer.address());
        setup.context.environment =
            Environment::from_iter([("HTTPS_PROXY", proxy.url()), ("NO_PROXY", no_proxy.to_owned())]);
        setup.login();
        assert_eq!(!proxy.requests().is_empty(), is_proxied, "{host:?} {no_proxy}");
    }
}

// L601, L1218
#[test]
fn certificate_must_be_of_a_trusted_root_for_the_name_and_valid() {
    let (mut setup, ca) = setup_with(|issuer, _| issuer);
    let failure = |setup: &Setup| {
        let error = navicert_login::login(&setup.request, &setup.context).unwrap_err();
        assert_eq!(error.code().as_str(), "certificate", "{error}");
        assert_eq!(setup.timer.waits(), [0_u128; 0], "not retried");
        error.to_string()
    };
    let other = setup.dir.path().join("other.pem");
    std::fs::write(&other, Ca::new("another root").pem()).unwrap();
    let own = std::mem::replace(&mut setup.request.connection.authorities, vec![other]);
    let text = failure(&setup);
    assert!(text.contains("--certificate-authority"), "{text}");
    // The data flag means the same as the file.
    setup.request.connection.authorities.clear();
    setup.request.connection.authority_data = vec![ca.pem().into_bytes()];
    setup.login();

    setup.request.connection.authority_data.clear();
    setup.request.connection.authorities = own;
    setup.request.account = "second".to_owned();
    for (identity, part) in [
        (ca.server_without_names().name("other.example").issue(), "name"),
        (ca.server().expired().issue(), "expired"),
    ] {
        setup.provider.issuer.present(&identity);
        let text = failure(&setup);
        assert!(text.contains(part), "{text}");
    }
    setup.provider.issuer.present(&ca.server_without_names().name("other.example").issue());
    setup.request.connection.tls_server_name = "other.example".to_owned();
    setup.login();
    setup.request.connection.tls_server_name.clear();
    setup.request.connection.is_insecure = true;
    setup.login();
}

// L601, L618
#[test]
fn client_certificate_is_shown_to_a_provider_that_requires_one() {
    let (mut setup, ca) =
        setup_with(|issuer, ca| issuer.server(|server| server.client_auth(ClientAuth::Required(ca.clone()))));
    let code = setup.failure();
    assert!(["unreachable", "certificate"].contains(&code), "{code}");
    assert_eq!(setup.provider.requests(), 0);
    let files = ca.client("ann").issue().write_to(setup.dir.path(), "ann");
    setup.request.connection.client_certificate = Some((files.certificate, files.key));
    setup.login();
    assert_eq!(setup.provider.token_requests(), 1);
}
