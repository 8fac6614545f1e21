//! Credentials that do not arrive, are of the wrong kind, or are not accepted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use navicert_testkit::{Answer, ApiServer, Ca, ClientAuth};
use serde_json::json;

use super::plugins;
use super::setup::{EXPIRED, GOOD, KNOWN, OPAQUE, Setup, anonymous_forbidden, check, check_fix, version};

const REMOVED: &str = "set the server of cluster `east` to the API server's own address: a load balancer or proxy at `https://127.0.0.1:[PORT]` removes the credential";
const ENDS_TLS: &str = "set the server of cluster `east` to the API server's own address: a load balancer at `https://127.0.0.1:[PORT]` ends TLS";
const NO_PASSWORD: &str = "give user `ann` a token, a client certificate or an exec plugin: Kubernetes 1.19 removed username and password";

#[test]
fn credential_that_does_not_reach_the_api_server_is_an_error() {
    check_fix("anonymous-token-removed", REMOVED, Setup::new().stripping().context(34));
    let setup = Setup::new();
    let anonymous = json!({"status": {"userInfo": {"username": "system:anonymous"}}});
    setup.api.answer(ApiServer::WHO_AM_I, Answer::json(&anonymous).with_status(201));
    check_fix("anonymous-although-token-sent", REMOVED, setup.context(34));
    let setup = Setup::new().plugin("v1beta1").stripping();
    let context = plugins::with_script(&setup, &plugins::response(KNOWN));
    check_fix("anonymous-plugin-token-removed", REMOVED, context);
    for (name, answer) in [
        ("anonymous-certificate-not-requested", anonymous_forbidden()),
        ("unauthorized-certificate-not-requested", Answer::unauthorized()),
    ] {
        let ca = Ca::new("cluster root");
        let api = ApiServer::start_with(&ca, |server| server.client_auth(ClientAuth::None));
        api.answer("/version", version());
        api.answer("/api*", answer);
        let setup = Setup {
            cluster: json!({"server": api.url(), "certificate-authority": "ca.crt"}),
            ca,
            api,
            user: json!({}),
        };
        let identity = setup.ca.client("ann").issue();
        check_fix(name, ENDS_TLS, setup.certificate(&identity).context(34));
    }
}

#[test]
fn missing_users_and_credentials_are_named() {
    let missing = json!({"cluster": "east", "user": "bob"});
    let fix = "add an entry named `bob` to `users`, or name another in the context";
    check_fix("missing-user", fix, Setup::new().context_with(34, &missing));
    check_fix("missing-user-anonymous", fix, Setup::new().anonymous().context_with(34, &missing));
    let setup = Setup::new();
    setup.api.accept_everyone();
    check_fix("missing-user-everyone-accepted", fix, setup.context_with(34, &missing));
    let fix = "give user `ann` a credential, or name another user in the context";
    check_fix("no-credential-anonymous", fix, Setup::new().user(json!({})).anonymous().context(34));
    let without_user = json!({"cluster": "east"});
    check_fix(
        "no-user-in-context",
        "add `user:` to the context",
        Setup::new().anonymous().context_with(34, &without_user),
    );
    let setup = Setup::new().user(json!({}));
    setup.api.accept_everyone();
    check_fix("anonymous-is-accepted", fix, setup.context(34));
}

#[test]
fn username_and_password_are_reported_as_removed() {
    let user = json!({"username": "ann", "password": OPAQUE});
    check_fix("password-unauthorized", NO_PASSWORD, Setup::new().user(user.clone()).context(34));
    let setup = Setup::new().user(user);
    setup.api.answer("/version", version());
    setup.api.answer("/api*", anonymous_forbidden());
    check_fix("password-ignored", NO_PASSWORD, setup.context(34));
}

#[test]
fn tokens_in_the_wrong_form_are_recognised() {
    let scheme = "remove `Bearer ` from the token of user `ann`";
    let encoded = "decode the token of user `ann` with `base64 -d`: a Secret's data is encoded";
    for (name, fix, token) in [
        ("token-with-bearer", scheme, format!("Bearer {KNOWN}")),
        ("token-with-lower-case-bearer", scheme, format!("bearer {GOOD}")),
        ("token-in-base64", encoded, STANDARD.encode(GOOD)),
        ("token-in-base64-without-padding", encoded, STANDARD.encode(GOOD).trim_end_matches('=').to_owned()),
        ("opaque-token-in-base64", encoded, STANDARD.encode(KNOWN)),
    ] {
        check_fix(name, fix, Setup::new().user(json!({"token": token})).context(34));
    }
    let setup = Setup::new().user(json!({"tokenFile": "token"}));
    let context = setup.context(34).file("token", &format!("Bearer {KNOWN}\n"));
    check_fix("token-file-with-bearer", scheme, context);
}

#[test]
fn token_files_and_expired_tokens_name_the_file() {
    let setup = Setup::new().user(json!({"tokenFile": "token"}));
    let fix = "put a token into `[DIRECTORY]/token`, or correct the path in `tokenFile`";
    check_fix("token-file-missing", fix, setup.context(34));
    let fix = "put a token into `[DIRECTORY]/token`";
    check_fix("token-file-empty", fix, setup.context(34).file("token", "\n"));
    let context = setup.context(34).file("token", EXPIRED);
    check_fix("token-file-expired", "put a new token into `[DIRECTORY]/token`", context);
    check("token-file-good", "no problems found", setup.context(34).file("token", KNOWN));
}

#[test]
fn forbidden_requests_are_distinguished_by_cause() {
    let setup = Setup::new().user(json!({"token": KNOWN, "as": "boss"}));
    let message = "users \"boss\" is forbidden: User \"ann\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope";
    setup.api.answer("/api*", Answer::failure(403, "Forbidden", message));
    let fix =
        "remove the impersonation (`as`, `--as`), or ask an administrator to let user `ann` impersonate";
    check_fix("impersonation-forbidden", fix, setup.context(34));
    let setup = Setup::new();
    let message =
        "selfsubjectreviews.authentication.k8s.io is forbidden: User \"ann\" cannot create resource";
    setup.api.answer(ApiServer::WHO_AM_I, Answer::failure(403, "Forbidden", message));
    let advice =
        "no errors; recommended: ask an administrator to grant this user the role `system:basic-user`";
    check("no-basic-role", advice, setup.context(34));
}

#[test]
fn client_certificates_are_checked_before_and_by_the_server() {
    let other = "give user `ann` a certificate issued by this cluster's certificate authority";
    for (name, auth) in
        [("certificate-of-another-authority", false), ("certificate-required-and-of-another-authority", true)]
    {
        let ca = Ca::new("cluster root");
        let clients = if auth { ClientAuth::Required(ca.clone()) } else { ClientAuth::Optional(ca.clone()) };
        let api = ApiServer::start_with(&ca, |server| server.client_auth(clients));
        let cluster = json!({"server": api.url(), "certificate-authority": "ca.crt"});
        let setup = Setup { cluster, ca, api, user: json!({}) };
        let identity = Ca::new("another root").client("ann").issue();
        check_fix(name, other, setup.certificate(&identity).context(34));
    }
    let ca = Ca::new("cluster root");
    let api = ApiServer::start_with(&ca, |server| server.client_auth(ClientAuth::Required(ca.clone())));
    api.accept_token(KNOWN, "ann", &[]);
    let cluster = json!({"server": api.url(), "certificate-authority": "ca.crt"});
    let setup = Setup { cluster, ca, api, user: json!({"token": KNOWN}) };
    let fix = "give user `ann` a client certificate and key for this cluster";
    check_fix("certificate-required", fix, setup.context(34));
    let setup = Setup::new();
    setup.api.answer("/api*", Answer::unauthorized());
    let identity = setup.ca.client("ann").issue();
    check_fix("certificate-unauthorized", other, setup.certificate(&identity).context(34));
    for (name, ending, identity) in [
        (
            "certificate-expired",
            "to do: give user `ann` a new client certificate",
            Ca::new("r").client("ann").expired().issue(),
        ),
        (
            "certificate-not-yet-valid",
            "to do: correct the local clock, or wait",
            Ca::new("r").client("ann").not_yet_valid().issue(),
        ),
    ] {
        let setup = Setup::new();
        setup.api.answer("/api*", Answer::unauthorized());
        check(name, ending, setup.certificate(&identity).context(34));
    }
    let setup = Setup::new();
    let (one, another) = (setup.ca.client("ann").issue(), setup.ca.client("ann").issue());
    let encoded = |text: String| json!(STANDARD.encode(text));
    let setup = setup.user(json!({
        "client-certificate-data": encoded(one.chain_pem()), "client-key-data": encoded(another.key_pem()),
    }));
    let fix = "give user `ann` the key that its certificate was issued for";
    check_fix("key-of-another-certificate", fix, setup.context(34));
    let setup = Setup::new();
    let identity = setup.ca.client("ann").organization("developers").issue();
    check("certificate-good", "no problems found", setup.certificate(&identity).context(34));
}

#[test]
fn users_that_two_files_define_differently_are_named() {
    let fix = "remove or rename user `ann` in `config` or `other`: the first file in KUBECONFIG wins";
    let two_files = |first: &str, second: &str| {
        let setup = Setup::new().user(json!({"token": first}));
        let other = json!({"users": [{"name": "ann", "user": {"token": second}}]});
        let context =
            setup.context(34).file("other", &other.to_string()).variable("KUBECONFIG", "config:other");
        (setup, context)
    };
    let (_setup, context) = two_files(OPAQUE, KNOWN);
    check_fix("user-in-two-files", fix, context);
    let (_setup, context) = two_files(KNOWN, OPAQUE);
    check("working-user-in-two-files", &format!("no errors; recommended: {fix}"), context);
    let (_setup, context) = two_files(KNOWN, KNOWN);
    check("same-user-in-two-files", "no problems found", context);
}
