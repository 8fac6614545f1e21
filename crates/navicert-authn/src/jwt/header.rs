//! A token's JOSE header: parsed strictly (every member once, exact names), although most members are ignored.
// S110–S114

use std::borrow::Cow;

use navicert_go::json::{Kind, Raw};

use super::claims::has_duplicates;
use super::compact::RawToken;
use crate::jwks::key::{self, KeyRules};
use crate::model::outcome::Refusal;
use crate::model::{JwsAlgorithm, JwsAlgorithmSet};
use crate::profile::{AuthnProfile, Hardening};

/// The relevant members of a header.
pub(crate) struct Header<'h> {
    pub(crate) algorithm: JwsAlgorithm,
    /// Empty: every key may be tried.
    pub(crate) kid: Cow<'h, str>,
    /// Every critical extension is supported.
    pub(crate) is_understood: bool,
    /// The signature covers the encoded payload, not its raw bytes.
    pub(crate) payload_is_encoded: bool,
    /// The header has only `alg`, `kid` and `typ`: valid in every profile.
    pub(crate) is_plain: bool,
}

impl<'h> Header<'h> {
    /// Parses a header and checks its algorithm.
    pub(crate) fn read(
        bytes: &'h [u8],
        allowed: JwsAlgorithmSet,
        profile: &AuthnProfile,
    ) -> Result<Self, Refusal> {
        let mut members = Vec::with_capacity(8);
        let parsed = Raw::parse_object(if bytes.is_empty() { b"null" } else { bytes }, &mut members);
        let (raw, depth) = parsed.map_err(|_| Refusal::Malformed("the header is not JSON"))?;
        if !matches!(raw.kind(), Kind::Object | Kind::Null) {
            return Err(Refusal::Malformed("the header is not an object"));
        }
        if depth > profile.limits.header_depth {
            return Err(Refusal::TooLarge("the header is nested too deeply"));
        }
        reject_duplicates(&members)?;
        reject_large_numbers(&members)?;
        let find = |wanted: &str| {
            members.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value).filter(|v| !v.is_null())
        };
        let text = |name: &str, problem: &'static str| match find(name) {
            None => Ok(Cow::Borrowed("")),
            Some(value) => value.string().ok_or(Refusal::Malformed(problem)),
        };
        let algorithm = text("alg", "`alg` in the header is not a string")?;
        let kid = text("kid", "`kid` in the header is not a string")?;
        text("nonce", "`nonce` in the header is not a string")?;
        if let Some(jwk) = find("jwk") {
            key::check_embedded(jwk, KeyRules::upstream(profile))
                .map_err(|_| Refusal::Malformed("`jwk` in the header is not a public key"))?;
        }
        if let Some(chain) = find("x5c") {
            key::certificates(chain)
                .map_err(|_| Refusal::Malformed("`x5c` in the header is not a certificate chain"))?;
        }
        reject_forbidden_members(&find, profile)?;
        let algorithm = JwsAlgorithm::from_name(&algorithm)
            .filter(|algorithm| allowed.contains(*algorithm))
            .ok_or(Refusal::Algorithm { allowed })?;
        let payload_is_encoded =
            find("b64").is_none_or(|value| value.kind() != Kind::Bool || value.is_true());
        Ok(Header {
            algorithm,
            kid,
            is_understood: find("crit").is_none_or(is_understood),
            payload_is_encoded,
            is_plain: members.iter().all(|(name, _)| matches!(&**name, "alg" | "kid" | "typ")) && depth == 1,
        })
    }

    /// A plain header with these members.
    pub(crate) fn plain(algorithm: JwsAlgorithm, kid: &'h str) -> Self {
        let kid = Cow::Borrowed(kid);
        Header { algorithm, kid, is_understood: true, payload_is_encoded: true, is_plain: true }
    }
}

/// The `kid` of a token's header, if it has one.
pub(crate) fn kid(token: &str) -> Option<String> {
    let header = RawToken::new(token).ok()?.header()?;
    let raw = Raw::parse(&header.bytes).ok()?;
    let kid = raw.members().find(|(name, _)| name == "kid")?.1.string()?.into_owned();
    (!kid.is_empty()).then_some(kid)
}

// H8, H25
fn reject_forbidden_members<'r>(
    find: &impl Fn(&str) -> Option<Raw<'r>>,
    profile: &AuthnProfile,
) -> Result<(), Refusal> {
    if profile.has(Hardening::NoCriticalHeaders) && (find("crit").is_some() || find("b64").is_some()) {
        return Err(Refusal::Malformed("the header uses `crit` or `b64`"));
    }
    if profile.has(Hardening::AlgorithmAllowlist)
        && ["jwk", "jku", "x5u", "x5c"].iter().any(|name| find(name).is_some())
    {
        return Err(Refusal::Malformed("the header contains or refers to a key"));
    }
    Ok(())
}

/// `b64` is the only supported extension.
// S114
fn is_understood(critical: Raw<'_>) -> bool {
    critical.kind() == Kind::Array
        && critical.elements().all(|name| name.string().is_some_and(|name| name == "b64"))
}

/// Rejects numbers out of range of a double, at any depth. Members with a type of their own are checked elsewhere.
fn reject_large_numbers(members: &[(Cow<'_, str>, Raw<'_>)]) -> Result<(), Refusal> {
    let is_typed = |name: &str| matches!(name, "alg" | "kid" | "nonce" | "jwk" | "x5c");
    let may_contain = |value: &Raw<'_>| matches!(value.kind(), Kind::Number | Kind::Array | Kind::Object);
    let untyped = members.iter().filter(|(name, _)| !is_typed(name)).map(|(_, value)| *value);
    let mut todo: Vec<Raw<'_>> = untyped.filter(may_contain).collect();
    while let Some(raw) = todo.pop() {
        if raw.number().is_some_and(|text| text.parse::<f64>().is_ok_and(f64::is_infinite)) {
            return Err(Refusal::Malformed("a number in the header is out of range"));
        }
        todo.extend(raw.members().map(|(_, value)| value).chain(raw.elements()).filter(may_contain));
    }
    Ok(())
}

/// Rejects duplicate members at any depth.
fn reject_duplicates(members: &[(Cow<'_, str>, Raw<'_>)]) -> Result<(), Refusal> {
    const REPEATED: Refusal = Refusal::Malformed("duplicate member in the header");
    if has_duplicates(members) {
        return Err(REPEATED);
    }
    let is_container = |value: &Raw<'_>| matches!(value.kind(), Kind::Array | Kind::Object);
    let mut todo: Vec<Raw<'_>> = members.iter().map(|(_, value)| *value).filter(is_container).collect();
    while let Some(raw) = todo.pop() {
        let inner: Vec<_> = raw.members().collect();
        if has_duplicates(&inner) {
            return Err(REPEATED);
        }
        todo.extend(inner.into_iter().map(|(_, value)| value).chain(raw.elements()).filter(is_container));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // S112
    #[test]
    fn numbers_out_of_range_are_malformed() {
        let reads = |header: &str| {
            let mut members = Vec::new();
            Raw::parse_object(header.as_bytes(), &mut members).unwrap();
            reject_large_numbers(&members).is_ok()
        };
        assert!(!reads(r#"{"alg":"ES256","x":1e309}"#));
        assert!(!reads(r#"{"alg":"ES256","b64":[{"a":[-1e400]}]}"#));
        assert!(reads(r#"{"alg":"ES256","x":[1e308, 1e-400]}"#));
        assert!(reads(r#"{"alg":"ES256","jwk":{"x":1e309}}"#));
    }
}
