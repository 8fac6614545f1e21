//! Checks what a provider sent, and makes an entry of it. Nothing that was not verified is stored or handed over.

use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use navicert_authn::jwt::JwsAlgorithmSet;
use navicert_authn::jwt::id_token::{self, ExpectedIdToken, IdTokenClaims, IdTokenError};
use navicert_go::base64::RAW_URL;
use navicert_types::{Secret, Timestamp};
use serde_json::{Map, Value};

use crate::cache::Entry;
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::key::KeyFields;
use crate::provider::{ProviderClient, TokenAnswer, clean};
use crate::random;
use crate::request::TokenKind;

/// Lifetime of a token whose expiry is not known.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(300);
/// Tolerance of `auth_time`.
const AUTH_TIME_LEEWAY_SECONDS: i64 = 300;
/// A clock that differs more is reported at login.
pub(crate) const REPORTED_SKEW_SECONDS: i64 = 300;

/// What the tokens have to match.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expectation<'e> {
    /// The nonce of this login; the token must have it.
    pub(crate) nonce: Option<&'e Secret<String>>,
    /// The session that was refreshed.
    pub(crate) previous: Option<&'e Entry>,
    /// The token is in `access_token` whatever its type, and is not for this client (token exchange).
    pub(crate) is_exchanged: bool,
}

/// Checks an answer and makes an entry of it.
///
/// # Errors
/// A token is missing or not valid.
pub(crate) async fn check(
    client: &ProviderClient<'_>,
    key: &KeyFields,
    answer: TokenAnswer,
    expectation: Expectation<'_>,
) -> Result<Entry, LoginError> {
    let request = client.request;
    let host = || request.host().to_owned();
    let provider_time = provider_time(&answer);
    let claims = match answer.id_token.as_ref().filter(|_| !expectation.is_exchanged) {
        Some(token) => {
            let claims = verify_id_token(client, token, provider_time).await?;
            check_login(client, &claims, expectation, provider_time)?;
            let access_token = answer.access_token.as_ref();
            let is_bound = access_token.and_then(|token| claims.matches_access_token(token.expose()));
            if is_bound == Some(false) {
                return Err(LoginError::AtHash { host: host() });
            }
            Some(claims)
        }
        None => None,
    };
    let previous = expectation.previous;
    let mut entry = Entry::new(key.clone(), answer.received_at);
    entry.arguments = request.arguments();
    let token_kind = request.base_token_kind();
    let (token_expiry, token) = match token_kind {
        TokenKind::Id if !expectation.is_exchanged => {
            let claims = claims.as_ref().ok_or_else(|| LoginError::NoIdToken { host: host() })?;
            entry.id_token.clone_from(&answer.id_token);
            (Some(claims.expires()), None)
        }
        _ => {
            let token =
                answer.access_token.clone().ok_or_else(|| LoginError::NoAccessToken { host: host() })?;
            (check_access_token(client, &token).await?, Some(token))
        }
    };
    match (token_kind, token) {
        (TokenKind::Id, Some(token)) => entry.id_token = Some(token),
        (TokenKind::Access, token) => {
            entry.access_token = token;
            entry.id_token.clone_from(&answer.id_token.clone().filter(|_| claims.is_some()));
        }
        (TokenKind::Id, None) => {}
    }
    entry.local_expiry = local_expiry(&answer, token_expiry, provider_time, request.host())?;
    entry.base_expiry = request.exchange.audience.is_some().then_some(entry.local_expiry);
    entry.skew_seconds = provider_time.as_second().saturating_sub(answer.received_at.as_second());
    entry.scope = answer.scope.or_else(|| previous.and_then(|previous| previous.scope.clone()));
    entry.refresh_expires_at =
        answer.refresh_expires_in.and_then(|duration| answer.received_at.checked_add(duration).ok());
    let keeps_refresh_token = !request.no_refresh_token;
    let old = previous.and_then(|previous| previous.refresh_token.clone());
    entry.refresh_token = answer.refresh_token.or(old).filter(|_| keeps_refresh_token);
    entry.host = LoginContext::host_name();
    entry.nonce_sha256 = match (expectation.nonce, previous) {
        (Some(nonce), _) => Some(random::hashed(nonce)),
        (None, previous) => previous.and_then(|previous| previous.nonce_sha256.clone()),
    };
    if let Some(claims) = &claims {
        claims.subject().clone_into(&mut entry.subject);
        entry.display = display(claims);
        entry.auth_time = claims.seconds("auth_time");
        entry.azp = claims.text("azp").map(ToOwned::to_owned);
    }
    if let Some(previous) = previous {
        entry.logged_in_at = previous.logged_in_at;
        entry.memo = previous.memo.clone();
        entry.history = previous.history.clone();
        entry.handed_to.clone_from(&previous.handed_to);
        if claims.is_none() {
            entry.subject.clone_from(&previous.subject);
            entry.display.clone_from(&previous.display);
            entry.auth_time = previous.auth_time;
        }
    }
    Ok(entry)
}

/// Puts the token that was exchanged for the session's access token into its entry. Its issuer may be another one, and its
/// audience is that of the exchange.
///
/// # Errors
/// There is no token, or it is not valid.
pub(crate) async fn add_exchanged(
    client: &ProviderClient<'_>,
    answer: &TokenAnswer,
    entry: &mut Entry,
) -> Result<(), LoginError> {
    let host = client.request.host();
    let missing = || LoginError::NoAccessToken { host: host.to_owned() };
    let token = answer.access_token.clone().ok_or_else(missing)?;
    let expiry = check_access_token(client, &token).await?;
    entry.local_expiry = local_expiry(answer, expiry, provider_time(answer), host)?;
    entry.received_at = answer.received_at;
    entry.exchanged_token = Some(token);
    Ok(())
}

/// When a token of an answer expires by the local clock: its lifetime is counted from receipt.
fn local_expiry(
    answer: &TokenAnswer,
    token_expiry: Option<i64>,
    provider_time: Timestamp,
    host: &str,
) -> Result<Timestamp, LoginError> {
    let lifetime = match token_expiry {
        Some(expiry) => {
            let seconds = expiry.saturating_sub(provider_time.as_second());
            u64::try_from(seconds).map(Duration::from_secs).unwrap_or_default()
        }
        None => answer.expires_in.unwrap_or(UNKNOWN_LIFETIME),
    };
    if lifetime.is_zero() {
        return Err(LoginError::Expired { host: host.to_owned() });
    }
    Ok(answer.received_at.checked_add(lifetime).unwrap_or(Timestamp::MAX))
}

/// The provider's time: of its answer, else of its token, else the local time.
fn provider_time(answer: &TokenAnswer) -> Timestamp {
    let issued = || {
        let token = answer.id_token.as_ref().or(answer.access_token.as_ref())?;
        let issued = unverified_claims(token)?.get("iat")?.as_i64()?;
        Timestamp::from_second(issued).ok()
    };
    answer.date.or_else(issued).unwrap_or(answer.received_at)
}

/// The claims of a JWT without verification: for times alone.
pub(crate) fn unverified_claims(token: &Secret<String>) -> Option<Map<String, Value>> {
    let mut parts = token.expose().split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    serde_json::from_slice(&RAW_URL.decode(payload).ok()?).ok()
}

async fn verify_id_token(
    client: &ProviderClient<'_>,
    token: &Secret<String>,
    provider_time: Timestamp,
) -> Result<IdTokenClaims, LoginError> {
    let request = client.request;
    let expected = ExpectedIdToken {
        issuer: &request.issuer,
        client_id: &request.client_id,
        algorithms: JwsAlgorithmSet::ALL,
        now: provider_time,
    };
    let mut newer = false;
    loop {
        let Some(keys) = client.keys(newer).await? else {
            return Err(LoginError::Signature { host: request.host().to_owned() });
        };
        match id_token::verify(token.expose(), &keys, &expected) {
            Ok(claims) => return Ok(claims),
            // The provider may have a new key.
            Err(IdTokenError::UnknownKey | IdTokenError::Signature) if !newer => newer = true,
            Err(error) => return Err(login_error(client, error)),
        }
    }
}

/// The claims that depend on this login or the session before it.
fn check_login(
    client: &ProviderClient<'_>,
    claims: &IdTokenClaims,
    expectation: Expectation<'_>,
    provider_time: Timestamp,
) -> Result<(), LoginError> {
    let request = client.request;
    let host = || request.host().to_owned();
    let invalid = |why: &str| LoginError::IdToken { host: host(), why: why.to_owned() };
    if let Some(nonce) = expectation.nonce {
        let found = claims.text("nonce").unwrap_or_default();
        if verify_slices_are_equal(found.as_bytes(), nonce.expose().as_bytes()).is_err() {
            return Err(LoginError::Nonce { host: host() });
        }
        if let Some(max_age) = request.parameters.max_age {
            let max_age = i64::try_from(max_age).unwrap_or(i64::MAX).saturating_add(AUTH_TIME_LEEWAY_SECONDS);
            let age = claims.seconds("auth_time").map(|time| provider_time.as_second().saturating_sub(time));
            if age.is_none_or(|age| age > max_age) {
                return Err(invalid("the login at the provider is older than --max-age"));
            }
        }
        if let Some(wanted) = &request.parameters.acr_values {
            let acr = claims.text("acr").unwrap_or_default();
            if !wanted.split_whitespace().any(|value| value == acr) {
                return Err(invalid("`acr` is none of --acr-values"));
            }
        }
    }
    if let Some(previous) = expectation.previous {
        if !previous.subject.is_empty() && previous.subject != claims.subject() {
            return Err(LoginError::SubjectChanged { host: host() });
        }
        let nonce = claims.text("nonce").map(|nonce| random::hashed(&Secret::new(nonce.to_owned())));
        if nonce.is_some() && previous.nonce_sha256.is_some() && nonce != previous.nonce_sha256 {
            return Err(LoginError::Nonce { host: host() });
        }
        let times = (claims.seconds("auth_time"), previous.auth_time);
        if matches!(times, (Some(new), Some(old)) if new != old) {
            return Err(invalid("`auth_time` changed with a refresh"));
        }
        if previous.azp.is_some() && claims.text("azp") != previous.azp.as_deref() {
            return Err(invalid("`azp` changed with a refresh"));
        }
    }
    Ok(())
}

/// The expiry of an access token if it says one. The signature is verified if the provider is the token's issuer.
async fn check_access_token(
    client: &ProviderClient<'_>,
    token: &Secret<String>,
) -> Result<Option<i64>, LoginError> {
    let Some(claims) = unverified_claims(token) else { return Ok(None) };
    let Some(expiry) = claims.get("exp").and_then(Value::as_i64) else { return Ok(None) };
    if claims.get("iss").and_then(Value::as_str) != Some(&client.request.issuer) {
        return Ok(Some(expiry));
    }
    let mut newer = false;
    loop {
        let Some(keys) = client.keys(newer).await? else {
            return Err(LoginError::Signature { host: client.request.host().to_owned() });
        };
        match id_token::verify_signature(token.expose(), &keys, JwsAlgorithmSet::ALL) {
            Ok(verified) => return Ok(Some(verified.expires())),
            Err(IdTokenError::UnknownKey | IdTokenError::Signature) if !newer => newer = true,
            Err(error) => return Err(login_error(client, error)),
        }
    }
}

fn login_error(client: &ProviderClient<'_>, error: IdTokenError) -> LoginError {
    let host = client.request.host().to_owned();
    match error {
        IdTokenError::Encrypted => LoginError::Algorithm { host, found: "encrypted".to_owned() },
        IdTokenError::Algorithm(name) => {
            LoginError::Algorithm { host, found: format!("signed with `{}`", clean(&name, 16)) }
        }
        IdTokenError::Audience(found) => LoginError::Audience {
            found: clean(&found.join(", "), 200),
            client: client.request.client_id.clone(),
        },
        IdTokenError::Expired => LoginError::Expired { host },
        IdTokenError::UnknownKey | IdTokenError::Signature => LoginError::Signature { host },
        other => LoginError::IdToken { host, why: clean(&other.to_string(), 200) },
    }
}

/// A name for people: the first of these claims.
fn display(claims: &IdTokenClaims) -> String {
    let names = ["email", "preferred_username", "name", "sub"];
    let name = names.iter().find_map(|name| claims.text(name).filter(|text| !text.is_empty()));
    clean(name.unwrap_or_default(), 200)
}
