//! A token of Azure's directory for one of the registry: the registry's challenge, whether it may be followed, and
//! the exchange itself.
// I204, I206, I215

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use navicert_types::{Secret, Timestamp};
use serde::Deserialize;

use super::challenge::Challenge;
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::form::Form;
use crate::host::AcrHost;
use crate::http::{HttpRequest, HttpUrl, UrlScheme};
use crate::lifetime::cache_duration;

/// The user name that goes with a refresh token.
pub(super) const USERNAME: &str = "00000000-0000-0000-0000-000000000000";
const SERVICE: &str = "the registry";
const USER_AGENT: &str = "kubernetes-credentialprovider-acr";
const ENDPOINT_VARIABLE: &str = "NAVICERT_ACR_ENDPOINT";
/// For a refresh token that does not say when it ends; they live about three hours.
// I209
const DEFAULT_CACHE_DURATION: Duration = Duration::from_secs(3600);

/// What a registry takes as a password.
pub(super) struct RefreshToken {
    pub(super) token: Secret<String>,
    pub(super) cache_for: Duration,
}

#[derive(Deserialize)]
struct ExchangeResponse {
    refresh_token: Option<Secret<String>>,
}

/// The exchange.
pub(super) fn refresh_token(
    context: &ProviderContext,
    registry: &AcrHost,
    access_token: &Secret<String>,
    tenant: &str,
) -> Result<RefreshToken, RegistryError> {
    let base = match context.variable(ENDPOINT_VARIABLE) {
        Some(text) => HttpUrl::parse(text)
            .map_err(|error| RegistryError::Environment(format!("{ENDPOINT_VARIABLE}: {error}")))?,
        None => HttpUrl::https(&registry.login_server, "/"),
    };
    let challenge = challenge(context, &base)?;
    let url = checked_realm(&challenge, registry, &base)?.join("/oauth2/exchange");
    let form = exchange_form(&challenge.service, tenant, access_token);
    let request = form.request(url).header("user-agent", USER_AGENT);
    let reply = context.send(SERVICE, &request)?;
    if reply.status != 200 {
        let (code, message) = error_body(reply.text());
        return Err(rejection(SERVICE, &request, &reply, &code, &message));
    }
    let wrong = |what| RegistryError::Answer { service: SERVICE, what };
    let answer: ExchangeResponse =
        serde_json::from_slice(reply.body.expose()).map_err(|_| wrong("what is no refresh token"))?;
    let token =
        answer.refresh_token.filter(|token| !token.is_empty()).ok_or_else(|| wrong("no refresh token"))?;
    let now = context.clock.now();
    let expires = jwt_expiry(token.expose());
    let cache_for = expires.map_or(DEFAULT_CACHE_DURATION, |expires| cache_duration(Some(expires), now));
    let until = expires.map_or_else(|| "an unknown time".to_owned(), |expires| expires.to_string());
    context.journal.note("token", format!("a refresh token of {SERVICE}, good until {until}"));
    Ok(RefreshToken { token, cache_for })
}

/// The form of the exchange.
// I275
pub fn exchange_form(service: &str, tenant: &str, access_token: &Secret<String>) -> Form {
    Form::new()
        .field("access_token", access_token.expose())
        .field("grant_type", "access_token_refresh_token")
        .field("refresh_token", access_token.expose())
        .field("service", service)
        .field("tenant", tenant)
}

fn challenge(context: &ProviderContext, base: &HttpUrl) -> Result<Challenge, RegistryError> {
    let request = HttpRequest::new("GET", base.join("/v2/")).header("user-agent", USER_AGENT);
    let reply = context.send(SERVICE, &request)?;
    if reply.status != 401 {
        let message = "it did not ask for a login of Azure's";
        return Err(rejection(SERVICE, &request, &reply, "", message));
    }
    Challenge::from_headers(reply.header("www-authenticate")).map_err(|error| {
        rejection(SERVICE, &request, &reply, "", &format!("its challenge is not usable: {error}"))
    })
}

/// Where the challenge may send the token: to the registry itself or its neighbours, encrypted.
// I215
fn checked_realm(
    challenge: &Challenge,
    registry: &AcrHost,
    base: &HttpUrl,
) -> Result<HttpUrl, RegistryError> {
    let realm = HttpUrl::parse(&challenge.realm)
        .map_err(|error| RegistryError::Policy(format!("the realm of the registry's challenge: {error}")))?;
    let root = HttpUrl { target: "/".to_owned(), ..base.clone() };
    let is_overridden = base.host != registry.login_server;
    if is_overridden && (realm.scheme, &realm.host, realm.port) == (base.scheme, &base.host, base.port) {
        return Ok(root);
    }
    let usual = realm.scheme == UrlScheme::Https && realm.port == 443 && registry.allows_realm(&realm.host);
    if !usual {
        return Err(RegistryError::Policy(format!(
            "the registry `{}` sends its token to `{}`, which is not its own",
            registry.login_server,
            realm.authority()
        )));
    }
    // Whoever overrides the registry's address has its token server there too.
    Ok(if is_overridden { root } else { HttpUrl::https(&realm.host, "/") })
}

/// The registry's own words about a refusal.
fn error_body(body: &str) -> (String, String) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Fault {
        errors: Vec<One>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct One {
        code: String,
        message: String,
    }
    let fault: Fault = serde_json::from_str(body).unwrap_or_default();
    let first = fault.errors.into_iter().next().unwrap_or_default();
    (first.code, first.message)
}

/// When a JSON web token ends, as far as it says; nobody here can verify it, and the registry will.
fn jwt_expiry(token: &str) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Claims {
        exp: i64,
    }
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Claims = serde_json::from_slice(&payload).ok()?;
    Timestamp::from_second(claims.exp).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Host, RegistrySuffixes};

    #[test]
    fn the_form_is_that_of_the_published_vector() {
        // I275
        let form = exchange_form("s", "t", &Secret::new("a".into()));
        let expected =
            "access_token=a&grant_type=access_token_refresh_token&refresh_token=a&service=s&tenant=t";
        assert_eq!(form.text(), expected);
    }

    #[test]
    fn a_realm_elsewhere_is_not_followed() {
        // I215, CVE-2020-15157
        let host = Host::from_image("foo.azurecr.io/x").unwrap();
        let registry = AcrHost::from_host(&host, &RegistrySuffixes::default()).unwrap();
        let own = HttpUrl::https("foo.azurecr.io", "/");
        let other = HttpUrl::parse("http://127.0.0.1:5000").unwrap();
        for (realm, base, goes_to) in [
            ("https://foo.azurecr.io/oauth2/token", &own, Some("foo.azurecr.io")),
            ("https://eus.azurecr.io/oauth2/token", &own, Some("eus.azurecr.io")),
            ("http://foo.azurecr.io/oauth2/token", &own, None),
            ("https://foo.azurecr.io:8443/oauth2/token", &own, None),
            ("https://foo.azurecr.io.evil.example/oauth2/token", &own, None),
            ("https://foo.azurecr.io@evil.example/oauth2/token", &own, None),
            ("https://evil.example/foo.azurecr.io", &own, None),
            ("https://169.254.169.254/", &own, None),
            ("//foo.azurecr.io", &own, None),
            ("", &own, None),
            ("https://foo.azurecr.io/oauth2/token", &other, Some("127.0.0.1:5000")),
            ("http://127.0.0.1:5000/oauth2/token", &other, Some("127.0.0.1:5000")),
            ("http://127.0.0.1:5001/oauth2/token", &other, None),
            ("https://evil.example/oauth2/token", &other, None),
        ] {
            let challenge = Challenge { realm: realm.into(), service: "s".into() };
            let followed = checked_realm(&challenge, &registry, base).ok().map(|url| url.authority());
            assert_eq!(followed.as_deref(), goes_to, "{realm}");
        }
    }

    #[test]
    fn an_expiry_is_read_where_there_is_one() {
        let token = |payload: &str| format!("x.{}.y", URL_SAFE_NO_PAD.encode(payload));
        assert_eq!(
            jwt_expiry(&token(r#"{"exp":1700000000}"#)).map(Timestamp::as_second),
            Some(1_700_000_000)
        );
        for text in ["", "a", "a.b.c", &token("{}"), &token(r#"{"exp":"1"}"#), &token(r#"{"exp":9e99}"#)] {
            assert_eq!(jwt_expiry(text), None, "{text}");
        }
    }
}
