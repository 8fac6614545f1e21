//! A JWK set: the keys of one issuer, in order. Upstream rejects the set for one bad key; with
//! [`Hardening::SkipUnusableKeys`] the key is skipped.

use std::borrow::Cow;

use navicert_go::json::{Kind, Raw};

use super::key::{Jwk, JwkError};
use crate::jwt::header::Header;
use crate::jwt::registered_claim::go_name_matches;
use crate::profile::{AuthnProfile, Hardening};

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
                match Jwk::read(raw, profile.has(Hardening::SkipUnusableKeys)) {
                    Ok(key) => set.keys.push(key),
                    Err(_) if profile.has(Hardening::SkipUnusableKeys) => set.skipped += 1,
                    Err(error) => return Err(KeySetError::Key { index, error }),
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
