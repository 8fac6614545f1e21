//! Verifies an ID token for the client that requested it: signature and the claims that every login checks. The same code
//! verifies tokens for servers.

use aws_lc_rs::digest::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use navicert_types::Timestamp;
use serde_json::{Map, Value};
use thiserror::Error;

use super::claims::UnverifiedClaims;
use super::compact::RawToken;
use super::header::Header;
use super::signature;
use crate::jwks::KeySet;
use crate::model::outcome::Refusal;
use crate::model::{JwsAlgorithm, JwsAlgorithmSet};
use crate::profile::AuthnProfile;

/// How far `iat` and `nbf` may be ahead of the provider's time, in seconds.
const MAX_AHEAD_SECONDS: i64 = 300;
/// Length limit of `sub`, in characters.
const MAX_SUBJECT_CHARS: usize = 255;

/// What the client expects of an ID token.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedIdToken<'e> {
    /// The configured issuer; compared byte for byte.
    pub issuer: &'e str,
    /// The client id.
    pub client_id: &'e str,
    /// Accepted signature algorithms.
    pub algorithms: JwsAlgorithmSet,
    /// The provider's time.
    pub now: Timestamp,
}

/// Why an ID token is not accepted. No variant holds a token.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdTokenError {
    /// Not a signed token in compact form.
    #[error("not a signed token")]
    NotCompact,
    /// Encrypted: five parts.
    #[error("the token is encrypted")]
    Encrypted,
    /// The payload or header is malformed.
    #[error("malformed token: {0}")]
    Malformed(String),
    /// Another issuer.
    #[error("the issuer is `{0}`")]
    Issuer(String),
    /// The audiences do not contain the client.
    #[error("the audience is `{}`", .0.join(", "))]
    Audience(Vec<String>),
    /// `azp` is another client.
    #[error("the authorized party is another client")]
    AuthorizedParty,
    /// Expired at the provider's time.
    #[error("the token has expired")]
    Expired,
    /// `iat` is missing, or `iat` or `nbf` is in the future.
    #[error("`{0}` is missing or in the future")]
    Future(&'static str),
    /// `sub` is missing, empty or too long.
    #[error("`sub` is missing, empty or too long")]
    Subject,
    /// The algorithm is not accepted.
    #[error("the signature algorithm is `{0}`")]
    Algorithm(String),
    /// No key has the token's `kid`.
    #[error("no key of the provider has the key id of the token")]
    UnknownKey,
    /// No key made the signature.
    #[error("invalid signature")]
    Signature,
}

/// The claims of a verified ID token. Only [`verify`] and [`verify_signature`] make a value.
#[derive(Clone)]
pub struct IdTokenClaims {
    algorithm: JwsAlgorithm,
    expires: i64,
    claims: Map<String, Value>,
}

impl IdTokenClaims {
    /// A claim.
    pub fn claim(&self, name: &str) -> Option<&Value> {
        self.claims.get(name)
    }

    /// A claim that is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.claim(name)?.as_str()
    }

    /// A claim that is a time in seconds since 1970.
    #[expect(clippy::cast_possible_truncation, reason = "a fraction of a second is dropped")]
    pub fn seconds(&self, name: &str) -> Option<i64> {
        let value = self.claim(name)?;
        value.as_i64().or_else(|| value.as_f64().map(|seconds| seconds as i64))
    }

    /// `exp`, in seconds since 1970.
    pub fn expires(&self) -> i64 {
        self.expires
    }

    /// `sub`.
    pub fn subject(&self) -> &str {
        self.text("sub").unwrap_or_default()
    }

    /// All claims, in the order of their names.
    pub fn claims(&self) -> &Map<String, Value> {
        &self.claims
    }

    /// Whether the token belongs to the access token; `None` if it has no `at_hash`.
    pub fn matches_access_token(&self, access_token: &str) -> Option<bool> {
        let stated = self.claim("at_hash")?;
        let hash = digest(self.algorithm.digest(), access_token.as_bytes());
        let half = hash.as_ref().get(..hash.as_ref().len() / 2).unwrap_or_default();
        Some(stated.as_str() == Some(URL_SAFE_NO_PAD.encode(half).as_str()))
    }
}

impl std::fmt::Debug for IdTokenClaims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdTokenClaims").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

/// Verifies an ID token. `nonce`, `auth_time`, `acr` and `at_hash` depend on the request and are left to the caller.
///
/// # Errors
/// [`IdTokenError`]: the first check that fails.
pub fn verify(
    token: &str,
    keys: &KeySet,
    expected: &ExpectedIdToken<'_>,
) -> Result<IdTokenClaims, IdTokenError> {
    let verified = verify_signature(token, keys, expected.algorithms)?;
    check_claims(&verified, expected)?;
    Ok(verified)
}

/// Verifies only the signature of a token: for access tokens, whose claims are not for the client.
///
/// # Errors
/// [`IdTokenError`]: the token is malformed, has no expiry, or no key made its signature.
pub fn verify_signature(
    token: &str,
    keys: &KeySet,
    algorithms: JwsAlgorithmSet,
) -> Result<IdTokenClaims, IdTokenError> {
    let profile = AuthnProfile::HARDENED;
    if token.bytes().filter(|byte| *byte == b'.').count() == 4 {
        return Err(IdTokenError::Encrypted);
    }
    let raw = RawToken::new(token).map_err(|_| IdTokenError::NotCompact)?;
    if raw.lengths().0 > profile.limits.token {
        return Err(malformed("too long"));
    }
    let payload = raw.payload().map_err(|_| malformed("the payload is not base64url"))?;
    let claims = UnverifiedClaims::read(&payload.bytes).map_err(|_| malformed("no issuer"))?;
    claims.reject_ambiguity().map_err(|refusal| IdTokenError::from_refusal(&refusal))?;
    let header_part = raw.header().ok_or_else(|| malformed("the header is not base64url"))?;
    let header = Header::read(&header_part.bytes, algorithms, &profile).map_err(|refusal| match refusal {
        Refusal::Algorithm { .. } => IdTokenError::Algorithm(stated_algorithm(&header_part.bytes)),
        other => IdTokenError::from_refusal(&other),
    })?;
    signature::check(&raw, (&header, &header_part), &payload, keys, &profile)
        .map_err(|refusal| IdTokenError::from_refusal(&refusal))?;
    let registered = claims.registered_as_go_reads_them();
    let registered = registered.ok_or_else(|| malformed("a registered claim has the wrong type"))?;
    Ok(IdTokenClaims {
        algorithm: header.algorithm,
        expires: registered.stated_expiry().ok_or(IdTokenError::Expired)?,
        claims: serde_json::from_slice(&payload.bytes)
            .map_err(|_| malformed("the payload is not an object"))?,
    })
}

fn check_claims(token: &IdTokenClaims, expected: &ExpectedIdToken<'_>) -> Result<(), IdTokenError> {
    let now = expected.now.as_second();
    let issuer = token.text("iss").unwrap_or_default();
    if issuer != expected.issuer {
        return Err(IdTokenError::Issuer(issuer.to_owned()));
    }
    let audiences = audiences(token);
    if !audiences.iter().any(|audience| audience == expected.client_id) {
        return Err(IdTokenError::Audience(audiences));
    }
    if token.claim("azp").is_some_and(|azp| azp.as_str() != Some(expected.client_id)) {
        return Err(IdTokenError::AuthorizedParty);
    }
    if token.expires <= now {
        return Err(IdTokenError::Expired);
    }
    let is_ahead = |seconds: i64| seconds > now.saturating_add(MAX_AHEAD_SECONDS);
    if token.seconds("iat").is_none_or(is_ahead) {
        return Err(IdTokenError::Future("iat"));
    }
    if token.seconds("nbf").is_some_and(is_ahead) {
        return Err(IdTokenError::Future("nbf"));
    }
    let subject = token.subject();
    if subject.is_empty() || subject.chars().count() > MAX_SUBJECT_CHARS {
        return Err(IdTokenError::Subject);
    }
    Ok(())
}

fn audiences(token: &IdTokenClaims) -> Vec<String> {
    match token.claim("aud") {
        Some(Value::String(audience)) => vec![audience.clone()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// The algorithm that a header names, for messages.
fn stated_algorithm(header: &[u8]) -> String {
    let members: Option<Map<String, Value>> = serde_json::from_slice(header).ok();
    let name = members.as_ref().and_then(|members| members.get("alg")?.as_str());
    name.unwrap_or_default().chars().take(16).collect()
}

fn malformed(why: &str) -> IdTokenError {
    IdTokenError::Malformed(why.to_owned())
}

impl IdTokenError {
    fn from_refusal(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::UnknownKey => IdTokenError::UnknownKey,
            Refusal::Signature => IdTokenError::Signature,
            Refusal::Malformed(why) | Refusal::TooLarge(why) => IdTokenError::Malformed((*why).to_owned()),
            other => IdTokenError::Malformed(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use navicert_testkit::{Algorithm, SigningKey};
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn key() -> SigningKey {
        SigningKey::generate(Algorithm::Es256, "k")
    }

    fn claims() -> Value {
        json!({"iss": "https://i", "sub": "ann", "aud": "c", "iat": NOW, "exp": NOW + 60})
    }

    fn with(name: &str, value: Value) -> Value {
        let mut claims = claims();
        claims[name] = value;
        claims
    }

    fn without(name: &str) -> Value {
        let mut claims = claims();
        claims.as_object_mut().unwrap().remove(name);
        claims
    }

    fn verify_with(key: &SigningKey, token: &str) -> Result<IdTokenClaims, IdTokenError> {
        let keys = json!({"keys": [key.jwk()]}).to_string();
        let keys = KeySet::parse(keys.as_bytes(), &AuthnProfile::HARDENED).unwrap();
        let now = Timestamp::from_second(NOW).unwrap();
        let (issuer, client_id) = ("https://i", "c");
        verify(token, &keys, &ExpectedIdToken { issuer, client_id, algorithms: JwsAlgorithmSet::ALL, now })
    }

    fn judge(claims: &Value) -> Result<IdTokenClaims, IdTokenError> {
        let key = key();
        verify_with(&key, &key.token(claims))
    }

    // L1001, L1002
    #[test]
    fn accepts_a_token_for_this_client() {
        let verified = judge(&claims()).unwrap();
        assert_eq!((verified.subject(), verified.expires()), ("ann", NOW + 60));
        for claims in [
            with("aud", json!(["other", "c"])),
            with("azp", json!("c")),
            with("iat", json!(NOW + 300)),
            with("nbf", json!(NOW + 300)),
            with("sub", json!("s".repeat(255))),
        ] {
            assert!(judge(&claims).is_ok(), "{claims}");
        }
    }

    // L1002
    #[test]
    fn rejects_claims_that_are_missing_or_of_another_login() {
        for (claims, error) in [
            (with("iss", json!("https://i/")), IdTokenError::Issuer("https://i/".to_owned())),
            (with("aud", json!("d")), IdTokenError::Audience(vec!["d".to_owned()])),
            (without("aud"), IdTokenError::Audience(Vec::new())),
            (with("azp", json!("d")), IdTokenError::AuthorizedParty),
            (with("exp", json!(NOW)), IdTokenError::Expired),
            (without("exp"), IdTokenError::Expired),
            (without("iat"), IdTokenError::Future("iat")),
            (with("iat", json!(NOW + 301)), IdTokenError::Future("iat")),
            (with("nbf", json!(NOW + 301)), IdTokenError::Future("nbf")),
            (with("sub", json!("")), IdTokenError::Subject),
            (with("sub", json!("s".repeat(256))), IdTokenError::Subject),
        ] {
            assert_eq!(judge(&claims).unwrap_err(), error, "{claims}");
        }
    }

    // L1004, L1005, L1007, L1321
    #[test]
    fn rejects_foreign_signatures_and_algorithms() {
        let (key, other) = (key(), SigningKey::generate(Algorithm::Es256, "k"));
        assert_eq!(verify_with(&key, &other.token(&claims())).unwrap_err(), IdTokenError::Signature);
        let renamed = SigningKey::generate(Algorithm::Es256, "unknown");
        assert_eq!(verify_with(&key, &renamed.token(&claims())).unwrap_err(), IdTokenError::UnknownKey);
        for name in ["none", "HS256", "EdDSA"] {
            let header = URL_SAFE_NO_PAD.encode(json!({"alg": name, "kid": "k"}).to_string());
            let token = format!("{header}.{}.AA", URL_SAFE_NO_PAD.encode(claims().to_string()));
            let error = verify_with(&key, &token).unwrap_err();
            assert_eq!(error, IdTokenError::Algorithm(name.to_owned()));
        }
        assert_eq!(verify_with(&key, "a.b.c.d.e").unwrap_err(), IdTokenError::Encrypted);
        assert_eq!(verify_with(&key, "opaque").unwrap_err(), IdTokenError::NotCompact);
        assert_eq!(verify_with(&key, &".".repeat(1 << 20)).unwrap_err(), IdTokenError::NotCompact);
        let twice = r#"{"iss":"https://i","sub":"a","sub":"b"}"#;
        let token = format!("e30.{}.AA", URL_SAFE_NO_PAD.encode(twice));
        assert!(matches!(verify_with(&key, &token).unwrap_err(), IdTokenError::Malformed(_)));
    }

    // L1003
    #[test]
    fn hash_binds_the_access_token() {
        let hash = digest(&aws_lc_rs::digest::SHA256, b"access");
        let half = URL_SAFE_NO_PAD.encode(&hash.as_ref()[..16]);
        let bound = judge(&with("at_hash", json!(half))).unwrap();
        assert_eq!(bound.matches_access_token("access"), Some(true));
        assert_eq!(bound.matches_access_token("other"), Some(false));
        assert_eq!(judge(&claims()).unwrap().matches_access_token("access"), None);
    }
}
