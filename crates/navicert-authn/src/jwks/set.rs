//! A JWK set: the keys of one issuer, in order. Upstream rejects the set for one bad key, and since Kubernetes 1.38 skips keys of
//! unsupported types; with [`Hardening::SkipUnusableKeys`] every bad key is skipped.

use std::borrow::Cow;

use navicert_go::json::{Kind, Raw};

use super::key::{Jwk, JwkError, KeyRules};
use crate::jwt::JwsAlgorithm;
use crate::jwt::header::Header;
use crate::jwt::registered_claim::go_name_matches;
use crate::profile::{AuthnProfile, Hardening, UnreadableKeys};

/// The keys of one issuer.
#[derive(Debug, Default)]
pub struct KeySet {
    keys: Vec<Jwk>,
    skipped: usize,
}

/// Why a document is not a key set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeySetError {
    /// Not JSON, or not a key set.
    #[error("failed to decode keys: not a JSON Web Key Set")]
    Shape,
    /// One key does not parse, so the set is rejected.
    // S165
    #[error("failed to decode keys: keys[{index}]: {error}")]
    Key {
        /// Index of the key.
        index: usize,
        /// What is wrong with it.
        error: JwkError,
    },
}

impl KeySet {
    /// Parses a key set.
    ///
    /// # Errors
    /// The document is not a key set, or one key does not parse and the profile does not skip it.
    // S164
    pub fn parse(body: &[u8], profile: &AuthnProfile) -> Result<Self, KeySetError> {
        let raw = Raw::parse(body).map_err(|_| KeySetError::Shape)?;
        if !matches!(raw.kind(), Kind::Object | Kind::Null) {
            return Err(KeySetError::Shape);
        }
        let mut set = KeySet::default();
        let is_keys = |(name, _): &(Cow<'_, str>, Raw<'_>)| go_name_matches(name, "keys");
        for (_, list) in raw.members().filter(is_keys) {
            if !matches!(list.kind(), Kind::Array | Kind::Null) {
                return Err(KeySetError::Shape);
            }
            set = KeySet::default();
            for (index, raw) in list.elements().enumerate() {
                match read_key(raw, profile).map_err(|error| KeySetError::Key { index, error })? {
                    Some(key) => set.keys.push(key),
                    None => set.skipped += 1,
                }
            }
        }
        Ok(set)
    }

    /// The keys in the order of the document.
    pub fn keys(&self) -> &[Jwk] {
        &self.keys
    }

    /// Number of keys that were skipped because they do not parse.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// The header of a token, if a key has it cached.
    pub(crate) fn remembered(&self, header: &str) -> Option<Header<'_>> {
        self.keys
            .iter()
            .find_map(|key| key.remembered(header).map(|algorithm| Header::plain(algorithm, key.kid())))
    }

    /// The candidate keys for a token: those with its `kid`, or all if it has none.
    // S116
    pub(crate) fn candidates<'s>(&'s self, kid: &'s str) -> impl Iterator<Item = &'s Jwk> {
        self.keys.iter().filter(move |key| kid.is_empty() || key.kid() == kid)
    }
}

/// A key of a set; `None` if it is skipped.
// S165, V2, H21
pub(crate) fn read_key(raw: Raw<'_>, profile: &AuthnProfile) -> Result<Option<Jwk>, JwkError> {
    if profile.has(Hardening::SkipUnusableKeys) {
        return Ok(Jwk::read(raw, KeyRules::for_profile(profile)).ok());
    }
    let skips_unsupported = profile.facts().unreadable_keys == UnreadableKeys::SkipUnsupported;
    if skips_unsupported && !is_supported(&algorithm(raw)?) {
        return Ok(None);
    }
    match Jwk::read(raw, KeyRules::for_profile(profile)) {
        Ok(key) => Ok(Some(key)),
        Err(JwkError::Type) if skips_unsupported => Ok(None),
        Err(error) => Err(error),
    }
}

/// The algorithm of a key as Go's decoder finds it: by folded name, the last of several, null changes nothing.
fn algorithm(raw: Raw<'_>) -> Result<Cow<'_, str>, JwkError> {
    if !matches!(raw.kind(), Kind::Object | Kind::Null) {
        return Err(JwkError::Shape);
    }
    let mut algorithm = Cow::Borrowed("");
    for (name, value) in raw.members() {
        if go_name_matches(&name, "alg") && !value.is_null() {
            algorithm = value.string().ok_or(JwkError::Member("alg"))?;
        }
    }
    Ok(algorithm)
}

/// Whether go-oidc 3 reads keys of this algorithm; empty: not stated.
fn is_supported(algorithm: &str) -> bool {
    algorithm.is_empty() || algorithm == "EdDSA" || JwsAlgorithm::from_name(algorithm).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::profile::KubeVersion;

    /// The number of keys read, or `None` if the set is rejected.
    fn read(keys: &Value, profile: &AuthnProfile) -> Option<usize> {
        KeySet::parse(keys.to_string().as_bytes(), profile).ok().map(|set| set.keys().len())
    }

    // V2, JV4, JV10
    #[test]
    fn each_version_skips_or_rejects_unreadable_keys() {
        let oct = json!({"kty": "oct", "k": "AA"});
        let ed25519 = |x: &str| json!({"kty": "OKP", "crv": "Ed25519", "x": x});
        let usable = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        for (key, before, since) in [
            (json!({"kty": "new"}), None, Some(1)),
            (json!({"kty": "new", "alg": "ES256K"}), None, Some(1)),
            (json!({"kty": "RSA", "ALG": "RSA-OAEP"}), None, Some(1)),
            (json!({"kty": "RSA", "alg": "RS256"}), None, None),
            (json!({"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"}), None, None),
            (json!({"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA", "alg": "ES256K"}), None, Some(1)),
            (json!({"kty": "OKP", "crv": "X25519", "x": "AA"}), None, Some(1)),
            (json!({"kty": "OKP", "crv": "Ed25519"}), None, None),
            (ed25519("AA"), Some(2), None),
            (ed25519(usable), Some(2), Some(2)),
            (ed25519("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), Some(2), None),
            (json!({"alg": "RS256"}), None, None),
            (json!({"kty": "oct", "k": "AA", "alg": 5}), None, None),
            (json!({"kty": "oct", "k": "AA", "x5u": "https://i/c"}), None, Some(2)),
            (json!({"kty": "oct", "k": "AA", "x5u": "https://i/%"}), None, None),
            (json!({"kty": "oct", "k": "AA", "x5u": {}}), Some(2), None),
            (json!(null), None, None),
            (json!("text"), None, None),
        ] {
            let set = json!({"keys": [oct, key]});
            for version in KubeVersion::ALL {
                let expected = if version == KubeVersion::V1_38 { since } else { before };
                assert_eq!(read(&set, &AuthnProfile::kube(version)), expected, "{version}: {key}");
            }
            assert!(read(&set, &AuthnProfile::HARDENED).is_some(), "{key}");
        }
    }
}
