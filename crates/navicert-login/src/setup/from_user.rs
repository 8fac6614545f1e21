//! The settings of an existing kubeconfig user as flags of `navicert login`: of the auth provider `oidc`, or of kubelogin.

use std::path::Path;

use navicert_types::Secret;
use navicert_types::kubeconfig::{AuthInfo, AuthProviderConfig, ExecConfig};

use crate::args::{self, ParsedFlags};
use crate::error::LoginError;

/// Where kubelogin listens first if nothing is given; the provider knows the address.
const KUBELOGIN_ADDRESS: &str = "127.0.0.1:8000";
/// Flags of one run, and those that are written anew.
const NOT_TAKEN: [&str; 5] = ["force-refresh", "v", "output", "listen-address", "oidc-redirect-url"];
/// Grants that open no browser on this machine, so that no redirect URI is used.
const WITHOUT_BROWSER: [&str; 4] = ["device-code", "password", "client-credentials", "token-exchange"];
/// Settings of the auth provider, with the flags that mean the same.
const PROVIDER_FLAGS: [(&str, &str); 6] = [
    ("idp-issuer-url", "oidc-issuer-url"),
    ("client-id", "oidc-client-id"),
    ("client-secret", "oidc-client-secret"),
    ("idp-certificate-authority", "certificate-authority"),
    ("idp-certificate-authority-data", "certificate-authority-data"),
    ("extra-scopes", "oidc-extra-scope"),
];

/// What kind of user is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserSource {
    /// A user with `auth-provider: oidc`.
    AuthProvider,
    /// A user that runs kubelogin.
    Kubelogin,
}

/// The words of `navicert login` that mean the same as this user's settings. The address that the provider has registered stays.
///
/// # Errors
/// The user is not of that kind, or has flags that are not understood.
// L1113
pub fn words_from_user(name: &str, user: &AuthInfo, source: UserSource) -> Result<Vec<String>, LoginError> {
    match source {
        UserSource::AuthProvider => {
            let provider = user.auth_provider.as_ref().filter(|provider| provider.name == "oidc");
            let missing = || LoginError::Usage(format!("user `{name}` has no `auth-provider` named `oidc`"));
            Ok(from_auth_provider(provider.ok_or_else(missing)?))
        }
        UserSource::Kubelogin => {
            let missing = || LoginError::Usage(format!("user `{name}` does not run kubelogin"));
            let words = user.exec.as_ref().and_then(kubelogin_words).ok_or_else(missing)?;
            Ok(from_kubelogin(&args::parse(words)?))
        }
    }
}

/// The variables that the user sets for its plugin, with their values. They may change how the provider is reached.
pub fn variables_from_user(user: &AuthInfo) -> Vec<(String, Secret<String>)> {
    let variables = user.exec.iter().flat_map(|exec| &exec.env);
    variables.map(|variable| (variable.name.clone(), variable.value.clone())).collect()
}

/// Tokens are left behind: the next login gets new ones. kubelogin, which writes such users too, listens on its own address.
fn from_auth_provider(provider: &AuthProviderConfig) -> Vec<String> {
    let value =
        |setting: &str| provider.config.get(setting).map(Secret::expose).filter(|text| !text.is_empty());
    let words =
        PROVIDER_FLAGS.iter().filter_map(|(setting, flag)| Some(format!("--{flag}={}", value(setting)?)));
    words.chain(registered_address(KUBELOGIN_ADDRESS, "http", None)).collect()
}

fn from_kubelogin(flags: &ParsedFlags) -> Vec<String> {
    let mut words = flags.words_except(&NOT_TAKEN);
    if flags.text("grant-type").is_some_and(|grant| WITHOUT_BROWSER.contains(&grant)) {
        return words;
    }
    let addresses = flags.list("listen-address");
    let address = addresses.first().map_or(KUBELOGIN_ADDRESS, String::as_str);
    let scheme = if flags.filled("local-server-cert").is_some() { "https" } else { "http" };
    words.extend(registered_address(address, scheme, flags.filled("oidc-redirect-url")));
    words
}

/// The address of the callback, as the provider knows it.
fn registered_address(address: &str, scheme: &str, redirect_url: Option<String>) -> [String; 2] {
    let port = address.rsplit_once(':').map_or("8000", |(_, port)| port);
    let redirect_url = redirect_url.unwrap_or_else(|| format!("{scheme}://localhost:{port}"));
    [format!("--listen-address={address}"), format!("--oidc-redirect-url={redirect_url}")]
}

/// The words after `get-token`, if the plugin is kubelogin or its replacement.
fn kubelogin_words(exec: &ExecConfig) -> Option<&[String]> {
    let program = Path::new(&exec.command).file_name()?.to_str()?;
    let words: Vec<&str> = exec.args.iter().map(String::as_str).collect();
    let skipped = match (program, words.as_slice()) {
        ("kubectl", ["oidc-login" | "oidc_login", "get-token", ..]) => 2,
        ("navicert", ["login", "get-token", ..]) => 2,
        (_, ["get-token", ..]) if args::is_alias(program.as_ref()) => 1,
        _ => return None,
    };
    exec.args.get(skipped..)
}

#[cfg(test)]
mod tests {
    use navicert_types::kubeconfig::decode;

    use super::*;
    use crate::args::{ExtensionDefaults, login_request};
    use crate::request::{Form, LoginRequest};

    fn user(text: &str) -> AuthInfo {
        let config = format!("users: [{{name: a, user: {text}}}]");
        decode(config.as_bytes()).unwrap().users.remove(0).user
    }

    fn request(words: &[String]) -> LoginRequest {
        login_request(Form::Own, &args::parse(words).unwrap(), None, ExtensionDefaults::default()).unwrap()
    }

    // L1113
    #[test]
    fn auth_provider_becomes_a_login_without_its_tokens() {
        let old = user(
            "{auth-provider: {name: oidc, config: {idp-issuer-url: https://id, client-id: kube, client-secret: canary-s, \
             id-token: canary-i, refresh-token: canary-r, idp-certificate-authority: /ca, extra-scopes: 'email,groups'}}}",
        );
        let words = words_from_user("a", &old, UserSource::AuthProvider).unwrap();
        assert!(!words.concat().contains("canary-i") && !words.concat().contains("canary-r"));
        let request = request(&words);
        assert_eq!((request.issuer.as_str(), request.client_id.as_str()), ("https://id", "kube"));
        assert_eq!(request.extra_scopes, ["email", "groups"]);
        assert_eq!(request.browser.listen, ["127.0.0.1:8000"]);
        assert_eq!(request.browser.redirect_url.as_deref(), Some("http://localhost:8000"));
        assert_eq!(request.left_out(), ["oidc-client-secret"], "never written");
        assert!(!request.arguments().concat().contains("canary"));
        let error = words_from_user("a", &user("{token: x}"), UserSource::AuthProvider).unwrap_err();
        assert_eq!(error.to_string(), "user `a` has no `auth-provider` named `oidc`");
    }

    // L1113
    #[test]
    fn kubelogin_becomes_a_login_with_the_registered_address() {
        let flags = "--oidc-issuer-url=https://id, --oidc-client-id=kube, --logtostderr, --v=1";
        for (exec, listen, redirect) in [
            (
                format!("command: kubectl, args: [oidc-login, get-token, {flags}]"),
                "127.0.0.1:8000",
                "http://localhost:8000",
            ),
            (
                format!(
                    "command: /x/kubelogin, args: [get-token, {flags}, '--listen-address=127.0.0.1:9,127.0.0.1:10']"
                ),
                "127.0.0.1:9",
                "http://localhost:9",
            ),
            (
                format!(
                    "command: navicert, args: [login, get-token, {flags}, --oidc-redirect-url=http://localhost:7/x]"
                ),
                "127.0.0.1:8000",
                "http://localhost:7/x",
            ),
        ] {
            let words =
                words_from_user("a", &user(&format!("{{exec: {{{exec}}}}}")), UserSource::Kubelogin).unwrap();
            assert!(
                !words.iter().any(|word| word.starts_with("--logtostderr") || word.starts_with("--v")),
                "{words:?}"
            );
            let request = request(&words);
            assert_eq!(
                (request.browser.listen.as_slice(), request.form),
                (&[listen.to_owned()][..], Form::Own)
            );
            assert_eq!(request.browser.redirect_url.as_deref(), Some(redirect));
        }
        let device = user(&format!(
            "{{exec: {{command: kubelogin, args: [get-token, {flags}, --grant-type=device-code]}}}}"
        ));
        let words = words_from_user("a", &device, UserSource::Kubelogin).unwrap();
        assert!(!words.concat().contains("listen-address"), "{words:?}");
        for other in [
            "{exec: {command: aws, args: [get-token]}}",
            "{exec: {command: kubectl, args: [get-token]}}",
            "{token: x}",
        ] {
            let error = words_from_user("a", &user(other), UserSource::Kubelogin).unwrap_err();
            assert_eq!(error.to_string(), "user `a` does not run kubelogin", "{other}");
        }
    }
}
