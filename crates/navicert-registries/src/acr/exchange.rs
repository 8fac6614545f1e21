//! Exchanges a Microsoft Entra access token for a registry refresh token: reads the registry's challenge, checks its
//! realm, and makes the exchange.
// I204, I206, I215

use std::time::Duration;

use base64::Engine as _;
use navicert_go::base64::RAW_URL;
use navicert_types::{Secret, Timestamp};
use serde::Deserialize;

use super::challenge::Challenge;
use crate::context::ProviderContext;
use crate::error::{RegistryError, rejection};
use crate::form::Form;
use crate::host::AcrHost;
use crate::http::{HttpRequest, HttpUrl, UrlScheme};
use crate::lifetime::cache_duration;

/// The user name for a refresh token.
pub(super) const USERNAME: &str = "00000000-0000-0000-0000-000000000000";
const SERVICE: &str = "the registry";
const USER_AGENT: &str = "kubernetes-credentialprovider-acr";
const ENDPOINT_VARIABLE: &str = "NAVICERT_ACR_ENDPOINT";
/// For a refresh token without an expiry; refresh tokens live about three hours.
// I209
const DEFAULT_CACHE_DURATION: Duration = Duration::from_secs(3600);

/// A refresh token, which the registry accepts as a password.
pub(super) struct RefreshToken {
    pub(super) token: Secret<String>,
    pub(super) cache_for: Duration,
}

#[derive(Deserialize)]
struct ExchangeResponse {
    refresh_token: Option<Secret<String>>,
}

/// Exchanges an access token for a refresh token.
pub(super) fn refresh_token(
    context: &ProviderContext,
    registry: &AcrHost,
    access_token: &Secret<String>,
    tenant: &str,
) -> Result<RefreshToken, RegistryError> {
    let base = match context.variable(ENDPOINT_VARIABLE) {
        Some(text) => HttpUrl::parse(text)
            .map_err(|error| RegistryError::Environment(format!("invalid {ENDPOINT_VARIABLE}: {error}")))?,
        None => HttpUrl::https(&registry.login_server, "/"),
    };
    let challenge = challenge(context, &base)?;
    let url = checked_realm(&challenge, registry, &base)?.join("/oauth2/exchange");
    let form = exchange_form(&challenge.service, tenant, access_token);
    let request = form.request(url).header("user-agent", USER_AGENT);
    let response = context.send(SERVICE, &request)?;
    if response.status != 200 {
        let (code, message) = error_body(response.text());
        return Err(rejection(SERVICE, &request, &response, &code, &message));
    }
    let invalid = |what| RegistryError::InvalidResponse { service: SERVICE, what };
    let answer: ExchangeResponse = serde_json::from_slice(response.body.expose())
        .map_err(|_| invalid("malformed refresh token response"))?;
    let token = answer
        .refresh_token
        .filter(|token| !token.is_empty())
        .ok_or_else(|| invalid("missing refresh token"))?;
    let now = context.clock.now();
    let expires = jwt_expiry(token.expose());
    let cache_for = expires.map_or(DEFAULT_CACHE_DURATION, |expires| cache_duration(Some(expires), now));
    let until = expires.map_or_else(|| "unknown".to_owned(), |expires| expires.to_string());
    context.journal.note("token", format!("refresh token from {SERVICE}, valid until {until}"));
    Ok(RefreshToken { token, cache_for })
}

/// Form of the exchange request.
// I275
pub(crate) fn exchange_form(service: &str, tenant: &str, access_token: &Secret<String>) -> Form {
    Form::new()
        .field("access_token", access_token.expose())
        .field("grant_type", "access_token_refresh_token")
        .field("refresh_token", access_token.expose())
        .field("service", service)
        .field("tenant", tenant)
}

fn challenge(context: &ProviderContext, base: &HttpUrl) -> Result<Challenge, RegistryError> {
    let request = HttpRequest::new("GET", base.join("/v2/")).header("user-agent", USER_AGENT);
    let response = context.send(SERVICE, &request)?;
    if response.status != 401 {
        let message = "expected status 401 with a `Bearer` challenge";
        return Err(rejection(SERVICE, &request, &response, "", message));
    }
    Challenge::from_headers(response.header("www-authenticate"))
        .map_err(|error| rejection(SERVICE, &request, &response, "", &format!("invalid challenge: {error}")))
}

/// Checks the challenge's realm: the registry itself or a host under the same suffix, over TLS.
// I215
fn checked_realm(
    challenge: &Challenge,
    registry: &AcrHost,
    base: &HttpUrl,
) -> Result<HttpUrl, RegistryError> {
    let realm = HttpUrl::parse(&challenge.realm).map_err(|error| {
        RegistryError::Policy(format!("invalid realm in the registry's challenge: {error}"))
    })?;
    let root = HttpUrl { target: "/".to_owned(), ..base.clone() };
    let is_overridden = base.host != registry.login_server;
    if is_overridden && (realm.scheme, &realm.host, realm.port) == (base.scheme, &base.host, base.port) {
        return Ok(root);
    }
    let allowed = realm.scheme == UrlScheme::Https && realm.port == 443 && registry.allows_realm(&realm.host);
    if !allowed {
        return Err(RegistryError::Policy(format!(
            "registry `{}` names token server `{}`, which is not one of its own hosts",
            registry.login_server,
            realm.authority()
        )));
    }
    // An overridden registry endpoint serves the token exchange as well.
    Ok(if is_overridden { root } else { HttpUrl::https(&realm.host, "/") })
}

/// Code and message of a registry's error response.
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

/// Expiry claim of a JWT, not verified: only the registry can verify it.
fn jwt_expiry(token: &str) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Claims {
        exp: i64,
    }
    let payload = RAW_URL.decode(token.split('.').nth(1)?).ok()?;
    let claims: Claims = serde_json::from_slice(&payload).ok()?;
    Timestamp::from_second(claims.exp).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Host, RegistrySuffixes};

    #[test]
    fn exchange_form_matches_the_published_vector() {
        // I275
        let form = exchange_form("s", "t", &Secret::new("a".into()));
        let expected =
            "access_token=a&grant_type=access_token_refresh_token&refresh_token=a&service=s&tenant=t";
        assert_eq!(form.text(), expected);
    }

    #[test]
    fn rejects_realms_outside_the_registry() {
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
    fn reads_jwt_expiry_if_present() {
        let token = |payload: &str| format!("x.{}.y", RAW_URL.encode(payload));
        assert_eq!(
            jwt_expiry(&token(r#"{"exp":1700000000}"#)).map(Timestamp::as_second),
            Some(1_700_000_000)
        );
        for text in ["", "a", "a.b.c", &token("{}"), &token(r#"{"exp":"1"}"#), &token(r#"{"exp":9e99}"#)] {
            assert_eq!(jwt_expiry(text), None, "{text}");
        }
    }
}
